/*
 * PURPOSE: the model of a machine (model/model.h) that simulates the process, fed with the traces
 * of its threads by the threads themselves. It exists when the session wants a part of it
 * (abi/modeled.h). Each thread counts on a core of its own, as far as there are cores, and shows
 * what it has counted in its meter whenever it hands a trace over.
 *
 * What shares memory shares the model. The child of a fork goes on with a copy of it, as warm as
 * its parent's; a new program begins with a cold one. Locking: simulate-priv.h.
 *
 * Where a second core is free another thread simulates, and the program goes on (beside.h). Before
 * somebody can look at what was counted, all of it is.
 */
#ifndef RT_TASK_SIMULATE_H
#define RT_TASK_SIMULATE_H

#include "abi/modeled.h"
#include "rt/task/beside.h"
#include "rt/task/meter-page.h"
#include "rt/task/thread.h"

/* What the session wanted when this process last looked; SIMULATE_ANEW: it has to look again. */
extern u32 simulate_wanted;
#define SIMULATE_ANEW (~0u)

/* What it wants now, as segment_model_parts() says it. */
static inline u32 simulate_asked(void)
{
	return __atomic_load_n(segment_model_parts(counter_segment()), __ATOMIC_ACQUIRE);
}

/* Whether that is something else. */
static inline bool simulate_is_stale(void)
{
	return unlikely(simulate_asked() != __atomic_load_n(&simulate_wanted, __ATOMIC_ACQUIRE));
}

/* At the start of a program, before the translator's. */
void simulate_start(void);
/* Later, by a thread that is not in the translator. */
void simulate_take_over(struct thread *t);

/* Before the guest runs on. */
static inline void simulate_look(struct thread *t)
{
	if (simulate_is_stale())
		simulate_take_over(t);
}

/* All that has been handed over is simulated, and in the meters. */
static inline void simulate_finish(struct thread *t)
{
	if (unlikely(beside_on))
		beside_finish(t, NULL);
}

/* Before @t makes the program's call. */
static inline void simulate_before_call(struct thread *t)
{
	if (unlikely(beside_on))
		beside_before_call(t, guest_nr(t));
}

/* What @t has counted with the model, as in its meter; false: nothing. */
bool simulate_counts(struct thread *t, u64 *counts);
/* What it has found has been told: its meter says what it has counted. */
void simulate_told(struct thread *t);

/* Around a fork: nobody feeds the model. */
void simulate_locks_take(struct thread *t);
void simulate_locks_give(struct thread *t);
/* Nobody takes over what the session wants meanwhile. Before all other locks. */
void simulate_take_over_lock(struct thread *t);
void simulate_take_over_unlock(struct thread *t);
bool simulate_locks_held_by(u32 id);
/* @t is all that a fork has left of its process. */
void simulate_forked(struct thread *t);
/*
 * Around the fork, with those locks: a child of which nothing is seen at first, by its @place, does
 * not get the model, whose pages both would copy one by one.
 */
void simulate_fork(const struct model_place *place);
void simulate_fork_done(void);
/* @t ends, and leaves its core. */
void simulate_end(struct thread *t);

#endif
