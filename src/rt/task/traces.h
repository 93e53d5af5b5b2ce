/*
 * PURPOSE: the traces of the process's threads (abi/path-trace.h), and who uses them: each thread
 * hands what it has traced to every user, by itself, when its buffer is full and when it leaves the
 * translator. Users are told one thread's words in order; threads come in between each other.
 *
 * Lifetime: a thread has a buffer from its first traced path until it ends. A user stays for the
 * program's life. Locking: the list is written by trace_use() only, before anything is traced.
 */
#ifndef RT_TASK_TRACES_H
#define RT_TASK_TRACES_H

#include "rt/task/thread.h"

struct trace_user {
	/*
	 * The next words of @t, the calling thread; in a handler perhaps, with the translator's
	 * lock held by anybody. If memory is traced their slots lie from t->dbt.slots_start to
	 * before t->dbt.slots_at.
	 */
	void (*words)(struct thread *t, const u32 *words, u32 n);
	/* @t is out of the translator: what it has told has happened. */
	void (*settle)(struct thread *t);
};

#define TRACE_USERS 4u

/* From the next translation on @user is told, when code is translated with traces_mask(). */
void trace_use(const struct trace_user *user);
/* And that accesses of memory are traced as well. */
void trace_use_memory(void);
/* Of these those that the filter lets through, as dbt_filter() has it. */
void trace_use_filter(u32 shift, u32 sets, u32 plain);

bool traces_filtered(void);

/* What of the translator's mask is for traces. */
u64 traces_mask(void);
/*
 * Whether there is memory for what a thread traces with its accesses, and for what describes paths.
 * Who begins to trace cannot do without.
 */
bool traces_have_room(void);

/* Of struct dbt_ops. */
u64 traces_map(struct dbt_thread *t);
u64 traces_map_slots(struct dbt_thread *t);
void traces_words(struct dbt_thread *t, const u32 *words, u32 n);

void traces_hand_over(struct thread *t);

/* Out of the translator: users know all that @t has executed. */
static inline void traces_flush(struct thread *t)
{
	if (unlikely(t->dbt.trace_at))
		traces_hand_over(t);
}

/* Gives the buffer of @t back, which does not run any more or is about to end. */
void traces_unmap(struct thread *t);

#endif
