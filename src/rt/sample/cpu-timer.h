/*
 * PURPOSE: a timer of the calling thread's CPU time, for hosts whose kernel refuses perf events: it
 * stops the thread as those would (abi/trace.h), though in steps of the kernel's tick.
 *
 * Lifetime: the kernel's timers belong to the process, and go with an execve. Locking: each is of
 * its thread, which alone makes and ends it.
 */
#ifndef RT_SAMPLE_CPU_TIMER_H
#define RT_SAMPLE_CPU_TIMER_H

#include <linux/signal.h>

#include "base/types.h"

struct cpu_timer {
	u64 period; /* ns; 0: there is none */
	s32 id;     /* the kernel's */
};

/* Each @period ns from now on the calling thread gets a signal that says @slot; 0: no more. */
void cpu_timer_set(struct cpu_timer *timer, u32 slot, u64 period);

/* Whether @info is of such a timer, *@slot of which, and how many periods are over. */
bool cpu_timer_is(const siginfo_t *info, u32 *slot, u32 *periods);

#endif
