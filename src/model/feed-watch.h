/*
 * PURPOSE: finds the very access, branch or instruction at which a counter of the model reaches a
 * number, for samples. Who has something to watch feeds with a struct feed_watching; each number
 * that is reached is a hit in it, and the next number is a period further.
 *
 * What happens to a thread is told op by op then, so its feed keeps paths as `each` (feed.h).
 */
#ifndef MODEL_FEED_WATCH_H
#define MODEL_FEED_WATCH_H

#include "model/model.h"

#define FEED_WATCHES 64u
#define FEED_HITS    512u

struct feed;
struct feed_path;
struct feed_tally;

struct feed_watch {
	u32 counter; /* enum model_counter */
	u32 name;    /* the caller's */
	u64 at;      /* what the core counts where it is reached; behind: with what counts next */
	u64 period;  /* not 0 */
	u64 begin;   /* what the core counted before the piece of a trace that is told */
};

enum feed_hit_kind {
	FEED_HIT_WORK, /* what the instruction costs by itself */
	FEED_HIT_FETCH,
	FEED_HIT_BRANCH,
	FEED_HIT_LOAD,
	FEED_HIT_STORE,
	FEED_HIT_PREFETCH,
};

struct feed_hit {
	u32 name;
	u32 kind;    /* enum feed_hit_kind */
	u64 count;   /* of the counter, behind it */
	u64 periods; /* that are over: 1, but for what counts much at once */
	u64 ip;      /* of the instruction; 0: it is not known */
	u64 addr;    /* that was accessed */
	struct model_access access;
	bool locked; /* the instruction is atomic */
};

/* Of one thread; the caller's, who takes the hits out. */
struct feed_watching {
	u32 nr, nr_hits;
	u32 weight;               /* of the piece, as model_window() has it */
	bool found;               /* a number was reached in it */
	struct feed_tally *tally; /* NULL: nothing is attributed; borrowed */
	/* While a path is told. */
	const struct feed *feed;
	const struct feed_path *path;
	struct feed_watch watch[FEED_WATCHES];
	struct feed_hit
		hit[FEED_HITS]; /* without room the last ones of their names stand for more */
};

/* A piece comes next, that counts @weight times. */
void feed_watch_begin(struct feed_watching *w, const struct model_core *core, u32 weight);

/* Something has been told to @core. @what has all of it but for what is worked out here. */
void feed_watch_look(struct feed_watching *w, const struct model_core *core,
		     const struct feed_hit *what);

#endif
