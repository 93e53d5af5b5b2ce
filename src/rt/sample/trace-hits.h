/*
 * PURPOSE: occurrences of the guest that the session wants to be told of (abi/trace.h): its system
 * calls. A thread of which nobody wants any has a word to compare.
 */
#ifndef RT_SAMPLE_TRACE_HITS_H
#define RT_SAMPLE_TRACE_HITS_H

#include "rt/sample/sample.h"

/* Call @nr, of which the guest's registers have the arguments, is about to be made. */
void probe_call_enter(struct thread *t, u64 nr);
/*
 * The guest has its answer: @ret, or a CALL_ value of syscall.h. @restarts: the kernel had begun
 * it, and it is made again.
 */
void probe_call_exit(struct thread *t, u64 nr, long ret, bool restarts);

/* The same of a call by the numbers of another mode of the CPU, with its arguments. */
void probe_other_enter(struct thread *t, u64 nr, const u64 args[6]);
void probe_other_exit(struct thread *t, u64 nr, long ret, bool restarts);

/* Of struct dbt_ops. */
void place_hit(struct dbt_thread *t);
/*
 * Of @t's places those @nr at @held become the @n at @wanted: how many have found room, which stand
 * in @held then. Not those that its sampler has.
 */
u32 places_trade(struct thread *t, u64 *held, u32 nr, const u64 *wanted, u32 n);

/*
 * @addr is a place of this memory for good, of all threads and of children that are forked: what
 * @t executes there, and others, is told to alloc_sites_place(). False: there is no room.
 */
bool places_keep(struct thread *t, u64 addr);

/* The system call by which the thread or its program began has returned in it. */
void probe_begun(struct thread *t, u64 nr);

#endif
