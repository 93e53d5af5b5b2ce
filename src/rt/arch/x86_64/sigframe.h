/*
 * PURPOSE: the signal frame of x86-64 Linux, byte for byte as the kernel lays it out on the stack
 * of the program (arch/x86/kernel/signal_64.c). What is done with it is in rt/arch.h.
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

/* The general registers and the pc, to and from the kernel's structure. */
void sigcontext_set(struct sigcontext *sc, const struct dbt_regs *r);
void sigcontext_get(const struct sigcontext *sc, struct dbt_regs *r);

#endif
