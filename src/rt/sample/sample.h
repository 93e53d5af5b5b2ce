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

#include "rt/perf/perf-guest.h"
#include "rt/task/thread.h"

/*
 * A number that changes when the session asks something else of the thread. Its meter, to which
 * others can write, is believed only as long as the process and the session share nothing else.
 */
static inline u32 sample_asked(struct thread *t)
{
	const struct perf *p = t->proc->perf;
	const u32 *asked = t->sampling.asked;

	if (likely(!asked)) {
		const struct wire_proc *page = p ? __atomic_load_n(&p->wire.page, __ATOMIC_ACQUIRE)
						 : NULL;

		if (!p)
			return 0;
		asked = page ? &page->asked[t->meter % WIRE_ASKED] : &dbt_meter(&t->dbt)->asked;
	}
	return __atomic_load_n(asked, __ATOMIC_RELAXED);
}

void sample_take_over(struct thread *t);

/* The windows of @t are others: so are its deadlines. */
void sample_set_deadlines(struct thread *t);

/* paths_mask() is another one: code is translated anew. */
void sample_new_mask(struct thread *t);

/* Whether the session has set other deadlines than those in force. */
static inline bool sample_is_stale(struct thread *t)
{
	return unlikely(sample_asked(t) != t->sampling.seq);
}

/* Tells where the thread is, which events of the kernel's have stopped. */
void sample_stop(struct thread *t);
/* The same in the middle of a call, where all signals may be blocked. */
void sample_stop_in_call(struct thread *t);
/* Waits while its samples have to wait for their reader, who wants all of them. */
void sample_wait_room(struct thread *t);
/* What they have noted the runtime did, and not the program. */
void sample_stop_own(struct thread *t);

/* In a handler: an event of the kernel's has stopped the calling thread, @t. */
static inline void sample_stopped(struct thread *t)
{
	__atomic_store_n(&t->sampling.stopped, true, __ATOMIC_RELAXED);
}

/*
 * Likewise by any SIGTRAP, of which the kernel merges those that come together: perhaps at an
 * access to data that is watched, at @uc. True: it was the translation's, and was all.
 */
bool sample_trapped(struct thread *t, const void *uc);

/* The same of a timer; so many of its periods are over. */
void sample_timer_stopped(struct thread *t, u32 slot, u32 periods);

static inline bool sample_is_stopped(const struct thread *t)
{
	return unlikely(__atomic_load_n(&t->sampling.stopped, __ATOMIC_RELAXED));
}

/* Before the guest runs on. */
static inline void sample_look(struct thread *t)
{
	if (sample_is_stale(t))
		sample_take_over(t);
	if (!sample_is_stopped(t))
		return;
	sample_stop(t);
	sample_wait_room(t);
}

/* Around what the runtime does on its own account, as waiting for the session. */
static inline void sample_own_begin(struct thread *t)
{
	if (sample_is_stopped(t) && !t->sampling.telling)
		sample_stop_in_call(t);
}

static inline void sample_own_end(struct thread *t)
{
	if (sample_is_stopped(t) && !t->sampling.telling)
		sample_stop_own(t);
}

/*
 * Before an execve: the kernel's events leave the thread alone, since the new program has no
 * handler at first. If it fails they are to go on. The kernel is to execute the runtime for the
 * program @name, which @interp interprets, or it itself; NULL: what the program has said itself.
 */
void sample_exec_prepare(struct thread *t, const char *name, const char *interp);
void sample_exec_failed(struct thread *t);

/*
 * What being sampled makes of the mask of translations. The next program of the process, which
 * mostly is sampled likewise, begins with that: so it may take an image of such code.
 */
u64 sample_form(void);
/* The mask with which this program begins; @form: of the one before, or 0. */
u64 sample_first_mask(u64 form);
/* Who counts is known, and nothing has been executed: it may be that nobody samples. */
void sample_begin(struct thread *t);

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
/*
 * What @t has to tell because it is sampled (enum wire_watch): its meter says the same, but others
 * can write to that.
 */
u32 sample_watch(const struct thread *t);
/* Gives back what @t had for this; it does not run any more. */
void sample_unmap(struct thread *t);

#endif
