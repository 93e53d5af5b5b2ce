/*
 * PURPOSE: what a core file shows of the threads that do not die of the signal themselves: where
 * the program is in them, instead of the runtime.
 */
#ifndef RT_TASK_CORE_THREADS_H
#define RT_TASK_CORE_THREADS_H

#include "rt/task/thread.h"

/*
 * @t is about to die of a signal that dumps a core, all signals blocked: stops the other threads of
 * its process for ever, with the guest's registers. Those that cannot be stopped so run on.
 */
void core_threads_stop(struct thread *t);

/* From what the kernel tells of the stopped @tid to what the program is; false: it is no guest. */
bool tracee_as_guest(u32 tid, u64 *user);
/*
 * Whether a guest of which the kernel tells @user has faulted at @addr since its trace is full, and
 * whether it is stepped for its translator: dbt_foreign_trace_full() and its like.
 */
bool tracee_trace_is_full(u32 tid, const u64 *user, u64 addr);
bool tracee_is_stepped(u32 tid, const u64 *user);

#endif
