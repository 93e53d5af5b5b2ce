/*
 * PURPOSE: windows in which the model of a machine sees a thread's execution, while between them
 * the thread runs code that traces nothing (struct run_config). The first instructions of a thread
 * are all seen, of many processes those of some (windows-draw.h). Then come periods, each with a
 * window: in its first part what is simulated warms the model up and is not counted, in the second
 * it counts for the whole period.
 *
 * Where a window begins and ends is a number of instructions of the thread, and nothing else
 * decides it, so counts are the same each time. There are no windows, and all is seen, while
 * somebody wants each event of the model, counts himself with it, or counts floating-point
 * operations, or uses the trace otherwise. While nobody wants anything of it nothing is seen. The
 * child of a fork and a new program begin anew.
 *
 * Locking: a thread's windows are its own. Whether there are any is written under the locks of
 * simulate.c.
 */
#ifndef RT_TASK_WINDOWS_H
#define RT_TASK_WINDOWS_H

#include "rt/task/thread.h"

/* Before all others: where the process is among those that are seen. */
void windows_start(const struct model_place *place);
/* Of the child of a fork that is at @place nothing may be seen for long. */
bool windows_pass_over(const struct model_place *place);
/* @t is all that a fork has left of its process; whether with the model that there was. */
void windows_forked(struct thread *t, bool modeled);

extern u32 windows_turn; /* another one: threads have to begin anew */

/* Whether a model that is not told of each event may come to see windows. Constant. */
bool windows_possible(void);

/*
 * Parts of the model are wanted, and all that they tell of or not. @sampled: by somebody who wants
 * to see each process. True: windows_mask() is not what it was.
 */
must_check bool windows_decide(u32 parts, bool all, bool sampled);
/* No model is needed yet. */
bool windows_put_off(void);
/* There is another model: threads begin anew. */
void windows_anew(void);

/* What of the translator's mask is for windows. It stays once they were there. */
u64 windows_mask(void);

/*
 * The process is one of many, and somebody has opened an event of the model for it: he counts it
 * alone.
 */
static inline bool windows_are_of_one(const struct thread *t)
{
	const struct model_place *place = &t->proc->place;

	return unlikely(place->unseen || place->more) &&
	       __atomic_load_n(&dbt_meter((struct dbt_thread *)&t->dbt)->chosen, __ATOMIC_RELAXED);
}

static inline bool windows_is_stale(const struct thread *t)
{
	return unlikely(__atomic_load_n(&windows_turn, __ATOMIC_ACQUIRE) != t->windows.turn) ||
	       windows_are_of_one(t);
}

/* @t is out of the translator: its windows begin, or there are none any more. */
void windows_begin(struct thread *t);

/* In ops.deadline(): goes on to what comes next at this instruction, if something does. */
void windows_reached(struct thread *t);

/* The sum of instructions at which that is to be; DBT_NO_DEADLINE: nothing is. */
static inline u64 windows_next(const struct thread *t)
{
	return t->windows.phase ? t->windows.next : DBT_NO_DEADLINE;
}

/* For how much that which is traced now counts. */
static inline u32 windows_weight(const struct thread *t)
{
	return t->windows.phase ? t->windows.weight : 1;
}

/* And how often that is, as other processes are not seen. */
static inline u32 windows_times(const struct thread *t)
{
	return t->windows.phase ? t->windows.times : 1;
}

/* Whether only predictors are to see it. */
bool windows_early(const struct thread *t);

/* Of the next piece that @t hands over: whether it does not follow on the one before. */
static inline bool windows_apart(struct thread *t)
{
	bool apart = t->windows.apart;

	t->windows.apart = false;
	return apart;
}

#endif
