/*
 * PURPOSE: samples of what a model counts (model/feed-watch.h). Where a thread's trace is worked
 * out, the model finds the very instruction and access; the thread learns of it when it hands its
 * trace over, and tells then, with the registers of that moment. The nearer an event is whose
 * samples have registers, the shorter is what the thread traces before it hands it over.
 *
 * Lifetime and locking: as sample.h.
 */
#ifndef RT_SAMPLE_MODELED_SAMPLES_H
#define RT_SAMPLE_MODELED_SAMPLES_H

#include "model/feed-watch.h"
#include "rt/task/thread.h"

/* What a thread watches; in numbers of its meter. */
struct modeled_watching {
	struct feed_watching feed;
	u64 near;                 /* a bit each: registers are wanted */
	u64 words;                /* of the trace, of late */
	u64 events[FEED_WATCHES]; /* in these */
	u64 counted[FEED_WATCHES];
};

/* Around a change of the table: how far the events are is kept in trace.armed[]. */
void modeled_leave(struct thread *t);
void modeled_take_over(struct thread *t);

/*
 * @n words have been worked out, of which the thread's @counts have @weight times as much: how many
 * are to be traced next, 0: all.
 */
u32 modeled_pace(struct modeled_watching *w, u32 n, const u64 *counts, u32 weight);
/* What is traced from here on has another weight. */
void modeled_pace_anew(struct thread *t);

/* Tells of the hits that there are. */
void modeled_tell(struct thread *t);

static inline void modeled_look(struct thread *t)
{
	if (unlikely(t->modeled.watching && t->modeled.watching->feed.nr_hits))
		modeled_tell(t);
}

#endif
