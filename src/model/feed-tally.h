/*
 * PURPOSE: attributes everything that some counters of the model count to the instruction that has
 * caused it (abi/modeled-profile.h). Who does that feeds as for samples, with a struct
 * feed_watching (feed-watch.h) that has a tally: at each step what has been counted since the last
 * one is that step's. So the sum is what the counters say.
 *
 * What a path costs by itself is kept by path, and is all of its instructions'.
 *
 * Instead of counts by place there can be a list of what was counted, in order, for who reads what
 * the thread executes in order as well (abi/path-trace.h). What has been told so far is counted
 * then: an event is of a path by that number.
 */
#ifndef MODEL_FEED_TALLY_H
#define MODEL_FEED_TALLY_H

#include "abi/modeled-profile.h"
#include "abi/path-trace.h"
#include "model/model.h"

/* Of one thread; the caller's. */
struct feed_tally {
	struct modeled_profile *to; /* NULL: the list, if there is one */
	struct path_event *list;    /* NULL: none */
	u32 nr_list, list_room;
	void (*full)(struct feed_tally *t); /* makes room in the list */
	u32 told;  /* paths, parts and instructions since whoever takes the list has set it to 0 */
	u8 branch; /* PATH_EVENT_BRANCH: what comes next is that; else 0 */
	u32 nr;    /* of counter[] */
	bool data; /* by address as well */
	/* With that: where the block of an address was asked for; 0: it is in none. May be NULL. */
	u64 (*site_of)(u64 addr);
	u8 counter[PROFILED_EVENTS];
	u64 last[PROFILED_EVENTS]; /* what the core had counted */
};

/* What @core counts from now on is the thread's. */
void feed_tally_begin(struct feed_tally *t, const struct model_core *core);

/* What it has counted since happened at @at, with the data at @addr (0: none). */
void feed_tally_add(struct feed_tally *t, const struct model_core *core, u64 at, u64 addr);

#endif
