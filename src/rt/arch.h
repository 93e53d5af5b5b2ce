/*
 * PURPOSE: the functions that the runtime asks of its CPU's folder (arch/x86_64). Together with
 * arch/x86_64/rt-arch.h, sys/arch and dbt/arch they are what another CPU needs.
 */
#ifndef RT_ARCH_H
#define RT_ARCH_H

#include "rt/load/stack.h"
#include "rt/task/thread.h"

struct ucontext;

/* Of struct dbt_ops. */
extern const struct dbt_arch_ops arch_dbt_ops;

/* @t becomes arch_self() of the calling thread. */
void arch_install(struct thread *t);

/* What the runtime remembers of the CPU, handed on through execve. */
void arch_save(struct rt_control *control);
void arch_load(const struct rt_control *control);

/* The bases of the segments that the guest's operands may have: of the calling thread. */
void arch_segments(const struct dbt_thread *t, u64 *fs_base, u64 *gs_base);

/* Answers a stop of dbt_run() that is neither a system call nor an interruption. */
void arch_stop(struct thread *t, enum dbt_stop stop);

/*
 * Whether this CPU has all features that the run is to show (enum meter_cpu). True in a run that is
 * not deterministic.
 */
bool deterministic_supported(void);
/*
 * Changes *@value, which the auxiliary vector has as @type, to what a deterministic run shows;
 * false: it shows nothing of that type.
 */
bool deterministic_hwcap(u64 type, u64 *value);

/* AT_MINSIGSTKSZ of a run that is shown a level of features; 0: the machine's. */
u64 deterministic_frame(void);
/*
 * Of such a run, what /proc/cpuinfo says of @cpu, one of @cpus: the length, cut to @size. 0: it is
 * the machine's.
 */
size_t deterministic_cpuinfo(char *text, size_t size, u32 cpu, u32 cpus);

/* Signals: the kernel's context of a handler. */
u64 uc_pc(const struct ucontext *uc);
/* @uc is at the beginning of a handler: the context that this one was given. */
struct ucontext *uc_of_handler(const struct ucontext *uc);
void uc_set_pc(struct ucontext *uc, u64 pc);
void uc_set_mask(struct ucontext *uc, u64 mask);
struct cpu_fault uc_fault(const struct ucontext *uc);
/* The fault is a write to a page. */
bool uc_is_write(const struct ucontext *uc);
/* The registers of @t's guest take the place of ours. */
void uc_show_guest(const struct thread *t, struct ucontext *uc);

/* @fault happened at @addr, an address of the guest's that the kernel does not know. */
void cpu_fault_at(struct cpu_fault *fault, u64 addr);

/*
 * The handler has interrupted a guest call of @t (sys/guest-call.h): makes @uc go on where the call
 * is begun again, unless it is complete. Elsewhere nothing is done.
 */
void guest_call_settle(struct thread *t, struct ucontext *uc);
/*
 * @uc is a fault of a guest call's own instruction, a way into the kernel that this one does not
 * have: makes @uc go on as if the call had not been begun. What is made of it is for who tried
 * (struct thread, call_refused).
 */
bool guest_call_refused(struct thread *t, struct ucontext *uc);
/*
 * Whether the handler has come right after a guest call, where nothing can fault: the kernel has
 * raised the signal in the call, as a CPU does.
 */
bool guest_call_raised(const struct ucontext *uc);
/* Whether the handler has come right after a guest call that returned EINTR. */
bool guest_call_was_interrupted(const struct ucontext *uc);

/*
 * Builds the frame for @act on the guest's stack from t->regs and @kuc, the frame that the kernel
 * has made for us, and makes t->regs enter the handler. @mask is what sigreturn is to restore.
 * -EFAULT: the stack cannot take it.
 */
int sigframe_build(struct thread *t, const struct sys_sigaction *act, const struct pending *p,
		   const struct ucontext *kuc, u64 mask);

/* The vector state in the kernel's frame becomes what a handler starts with. */
void sigframe_init_vectors(struct ucontext *kuc);

/*
 * The way back: sets t->regs from the frame at the guest's stack pointer, restores the vector
 * state, and sets *@mask. Returns -EFAULT if there is no such frame, and 1 if the frame has what
 * programs cannot run with; then *@fault is what the CPU says of that.
 */
int sigframe_restore(struct thread *t, u64 *mask, struct cpu_fault *fault);

/* Whether an alternate signal stack of @size bytes is large enough for the kernel. */
bool altstack_size_valid(const struct thread *t, u64 size);

long guest_arch_prctl(struct thread *t);

#endif
