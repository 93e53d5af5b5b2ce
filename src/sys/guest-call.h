/*
 * PURPOSE: the places where the runtime touches the CPU's state by hand: system calls made for the
 * guest, entry and return of signals, guarded copies, threads' first and last instructions. The
 * labels let a signal handler recognise a pc; sys/arch/<cpu>/guest-call.S explains them.
 */
#ifndef SYS_GUEST_CALL_H
#define SYS_GUEST_CALL_H

#include "base/types.h"

struct sys_guest_ret {
	long val;
	u64 redo; /* the call was not completed: a signal came first */
};

/* @nr_args: number and six arguments. Not begun when *@pending is not 0. */
typedef struct sys_guest_ret guest_call_fn(const u64 *nr_args, const u32 *pending);
guest_call_fn guest_call;
extern const char guest_call_begin[], guest_call_insn[], guest_call_end[], guest_call_redo[];

/* The same, for a call that the seccomp supervisor is to answer. */
guest_call_fn guest_call_notified;
extern const char guest_call_notified_begin[], guest_call_notified_insn[];
extern const char guest_call_notified_end[], guest_call_notified_redo[];

/* Handler and restorer for rt_sigaction; calls signal_handler(sig, info, uc), the runtime's. */
extern const char signal_entry[], signal_restorer[];

/* Raises SIGTRAP at a known place: the interrupted pc is signal_trap_end. */
void signal_trap(void);
extern const char signal_trap_end[];

struct ucontext;
/*
 * rt_sigreturn for vector state and mask: comes back like a function. The pc and the stack pointer
 * in @uc are set here.
 */
void signal_return(struct ucontext *uc);

/*
 * Copies between guest and runtime memory; returns how many bytes were *not* copied because an
 * access faulted. The handler of SIGSEGV and SIGBUS moves a faulting guest_copy_insn to
 * guest_copy_end.
 */
size_t guest_copy(void *to, const void *from, size_t len);
extern const char guest_copy_insn[], guest_copy_end[];

/* munmap(@area, @len), which may hold the caller's stack, and exit(@status). Signals blocked. */
__attribute__((noreturn)) void thread_leave(u64 area, size_t len, int status);
/* Leaves @area to whoever takes it from *@place, and exits likewise. */
__attribute__((noreturn)) void thread_leave_to(u64 *place, u64 area, int status);

/*
 * clone(a, b, c, d, e) or clone3(a, b) for a child in the same memory: the child continues in
 * the function in ((void **)@stack_top)[1], which gets what is in [0], on that stack. Returns the
 * tid or -errno in the parent.
 */
long thread_spawn(u64 nr, u64 a, u64 b, u64 c, u64 d, void *stack_top, u64 e);

/* @fn(@arg) on another stack; does not come back. */
__attribute__((noreturn)) void start_on_stack(void *arg, u64 stack_top, void (*fn)(void *));

#endif
