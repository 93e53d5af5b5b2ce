/*
 * PURPOSE: the signal frame of x86-64 Linux, byte for byte as the kernel lays it out on the stack of
 * the program (arch/x86/kernel/signal_64.c), and the way back from it.
 */
#ifndef RT_ARCH_X86_64_SIGFRAME_H
#define RT_ARCH_X86_64_SIGFRAME_H

#include <linux/signal.h>

#include <asm/sigcontext.h>
#include <asm/ucontext.h> /* which needs the two above */

#include "rt/task/thread.h"

struct sigframe {
	u64 restorer;
	struct ucontext uc;
	siginfo_t info;
};

/*
 * Builds the frame for @act on the guest's stack from t->regs and @kuc, the frame that the kernel has
 * made for us, and makes t->regs enter the handler. @mask is what sigreturn is to restore.
 * -EFAULT: the stack cannot take it.
 */
int sigframe_build(struct thread *t, const struct sys_sigaction *act, const struct pending *p,
		   const struct ucontext *kuc, u64 mask);

/* The vector state in the kernel's frame becomes what a handler starts with. */
void sigframe_init_xstate(struct ucontext *kuc);

/*
 * The way back: sets t->regs from the frame at the guest's rsp, restores the vector state, and sets
 * *@mask. *@selector: one of the frame's for CS or SS that is not what programs run with, or 0.
 * -EFAULT: there is no such frame.
 */
int sigframe_restore(struct thread *t, u64 *mask, u16 *selector);

/* As the kernel's sas_ss_flags(): 0, SS_ONSTACK or SS_DISABLE, for a stack pointer @sp. */
u32 altstack_flags(const struct thread *t, u64 sp);
bool altstack_on(const struct thread *t, u64 sp);
/* sigaltstack(2) by a program whose stack pointer is @sp: 0, -EPERM, -EINVAL or -ENOMEM. */
int altstack_set(struct thread *t, const stack_t *ss, u64 sp);

#endif
