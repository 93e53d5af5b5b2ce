/*
 * PURPOSE: signals. The runtime is the handler of every signal that the guest handles; it keeps the
 * guest's dispositions, and delivers by building on the guest's stack the frame that the kernel
 * would have built.
 *
 * The kernel's blocked mask of a thread equals the guest's (except for SIGNALS_SYNC, never
 * blocked), so that blocked, pending, ignored, sigtimedwait and signalfd remain the kernel's
 * business. A signal that arrives where it cannot be delivered at once is noted in the thread, and
 * the thread goes on with everything blocked until its next boundary: so at most one asynchronous
 * signal is ever noted.
 *
 * Functions named guest_* implement the system call of that name; see rt/syscall/syscall.h.
 */
#ifndef RT_SIGNAL_SIGNAL_H
#define RT_SIGNAL_SIGNAL_H

#include "rt/task/thread.h"

struct ucontext;

/* What the next program of @t's process is told, if nobody else can change it meanwhile. */
void signal_save(const struct thread *t, struct rt_control *control);
/* Fills in @t's dispositions from what the kernel kept over exec, and installs our handlers. */
void signal_init(struct thread *t, const struct rt_control *control);

/* Runtime handlers for the signals in SIGNALS_SYNC and the guest's own for the rest. */
void signal_install_all(struct sighand *sh);

/* The mask that the kernel has to have when the guest believes in @mask. */
static inline u64 signal_kernel_mask(u64 mask)
{
	return mask & ~SIGNALS_SYNC;
}

/* All blocked but what a bug of ours would raise. Returns what was blocked. */
u64 signal_block_all(void);
void signal_set_mask(u64 mask);

/* At a safe point, t->regs exact: delivers what is noted. */
void signal_deliver(struct thread *t);

/*
 * Raises a fault in the guest, as the CPU does at its pc: delivered before the guest runs on.
 * @fault is what the signal's frame says of the hardware exception.
 */
void signal_fault(struct thread *t, int sig, int code, u64 addr, struct cpu_fault fault);

/* SIGSEGV as the kernel forces it on a program whose frame or call cannot be repaired. */
void signal_force_segv(struct thread *t);

/* The same for any signal that the program brings upon itself. */
void signal_raise(struct thread *t, const siginfo_t *info, struct cpu_fault fault);
/* An event that the session has on a thread has stopped it (abi/trace.h). */
bool signal_is_stop(const siginfo_t *info);
/*
 * Raises it at once, by a signal of the kernel's: so a tracer sees it, and what that lets through
 * is delivered. False: the kernel refuses, and nothing has happened.
 */
bool signal_send_own(struct thread *t, const siginfo_t *info, struct cpu_fault fault);

/*
 * SIGTRAP of an event with attr.sigtrap: delivered before the guest runs on, or if that blocks it
 * when it does no longer, as one that comes late.
 */
void signal_perf(struct thread *t, siginfo_t *info);

/*
 * Queues @info for @t, which is this thread, to be delivered at the next safe point. Only with all
 * signals blocked: a handler does the same.
 */
void signal_note(struct thread *t, const siginfo_t *info, struct cpu_fault fault);

/*
 * Ends the process by @info's default action, with a core that shows the guest's registers. Called
 * in a handler; the caller returns from it. @uc is its context.
 */
void signal_die(struct thread *t, const siginfo_t *info, struct ucontext *uc);

/* Before execve: gives the kernel what only we know. If execve fails: takes it back. */
void signal_exec_prepare(struct thread *t);
void signal_exec_failed(struct thread *t);

struct sighand *sighand_copy(struct sighand *sh, u32 me);
void sighand_put(struct sighand *sh);

long guest_rt_sigaction(struct thread *t);
long guest_rt_sigprocmask(struct thread *t);
long guest_rt_sigreturn(struct thread *t);
long guest_rt_sigpending(struct thread *t);
long guest_rt_sigsuspend(struct thread *t);
long guest_rt_sigtimedwait(struct thread *t);
long guest_sigaltstack(struct thread *t);
/* Calls that have a signal mask for their duration, or may have one: mask= in syscall.tbl. */
long guest_mask_call(struct thread *t);

#endif
