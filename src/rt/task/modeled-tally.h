/*
 * PURPOSE: where the threads of an exact profile of modeled events count them
 * (abi/modeled-profile.h): memory of the counter segment, which outlives them. A thread gets its
 * own when it first tells the model something.
 *
 * Where what is executed is handed out (path-stream.h), so is what is counted, in a list.
 *
 * Locking: that of simulate.c.
 */
#ifndef RT_TASK_MODELED_TALLY_H
#define RT_TASK_MODELED_TALLY_H

#include "model/feed-watch.h"
#include "rt/task/thread.h"

/* Whether the run wants it. Constant once there is a segment. */
bool modeled_tally_wanted(void);

/*
 * @t is about to tell @core: with what it is to be watched. @sampled is what it watches for samples
 * (NULL: nothing), as what is returned may be.
 */
struct feed_watching *modeled_tally_watch(struct thread *t, struct feed_watching *sampled,
					  const struct model_core *core);

/* What is listed and has not been handed out, until the thread tells the model more: how many. */
u32 modeled_tally_take(struct thread *t, const struct path_event **list);

/* @t ends, or is all that a fork has left of its process. */
void modeled_tally_leave(struct thread *t);

#endif
