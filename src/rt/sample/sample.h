/*
 * PURPOSE: samples of the guest: takes over the deadlines that the session has set for a thread
 * (abi/trace.h), has the translator stop the thread at them, and writes what is found there into
 * the thread's trace. A thread that nobody samples has none of this but a word to compare.
 *
 * Lifetime: what a thread has for this is made when the session first sets a deadline for it, and
 * goes with the thread. Locking: all of it belongs to the thread itself.
 */
#ifndef RT_SAMPLE_SAMPLE_H
#define RT_SAMPLE_SAMPLE_H

#include "rt/task/thread.h"

void sample_take_over(struct thread *t);

/* Whether the session has set other deadlines than those in force. */
static inline bool sample_is_stale(struct thread *t)
{
	return unlikely(__atomic_load_n(&dbt_meter(&t->dbt)->trace_seq, __ATOMIC_RELAXED) !=
			t->sampling.seq);
}

/* Before the guest runs on. */
static inline void sample_look(struct thread *t)
{
	if (sample_is_stale(t))
		sample_take_over(t);
}

/* Of struct dbt_ops. */
void sample_deadline(struct dbt_thread *t);

/* @t is all that a fork has left of its process, and has another meter. */
void sample_forked(struct thread *t);
/*
 * The calling thread is about to end with its process: whoever waits for that finds its samples,
 * even if he only looks at memory.
 */
void sample_flush(struct thread *t);
/* The calling thread ends: it tells nothing any more. */
void sample_end(struct thread *t);
/* Gives back what @t had for this; it does not run any more. */
void sample_unmap(struct thread *t);

#endif
