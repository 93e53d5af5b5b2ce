/*
 * PURPOSE: runs of paths. Programs take the same few paths one after the other again and again, so
 * what up to RUN_MOST of them do is worked out once, and done at once from then on: what is counted
 * is kept as how often the run was taken, and only calls that are open before or behind it are
 * looked at. call-paths.c has the loop that takes them.
 *
 * A run ends with a path whose number says so. So wherever one begins, the next ones are cut at the
 * same paths, and there are few.
 */
#ifndef CALLS_CALL_RUNS_H
#define CALLS_CALL_RUNS_H

#include "calls/calls-priv.h"

/* Paths. */
#define RUN_LEAST 4u  /* of fewer there is no run */
#define RUN_UNCUT 8u  /* so many are not cut, but in front of a loop */
#define RUN_MOST  16u /* which whoever compares them relies on */

/* A call within a run. Its edge is of this level, which follows from how many are open. */
struct run_call {
	u32 number; /* of its function */
	s16 more;   /* calls of that which are open then, beyond those before the run */
	u16 level;
};

/* A call that was open before the run, and is not behind it. */
struct run_close {
	u64 ret;
	struct calls_context *context;
	struct calls_cell *nonskipped;
	u32 cost;   /* of the run by then */
	u32 number; /* of its function */
	bool emulated, told;
};

/* The other way round. */
struct run_open {
	struct calls_frame frame; /* `enter`: the cost of the run by then */
	u32 number;               /* of its function; of one that is not told of nothing */
};

/* What is met in any case, if something is simulated: of enum simulated, but fetches. */
struct run_met {
	u32 n[SIMULATED_GROUPS];
};

/* What a run adds to each time: @times to a cell, or @skipped instructions that it is told of. */
struct run_count {
	struct calls_cell *cell;
	u32 times, skipped;
	struct run_met met; /* of the latter */
};

struct run_edge {
	struct calls_edge *edge;
	u32 times, cost; /* of those that the run closes */
	struct run_met met;
};

/*
 * What paths do one after the other. Behind it lie the calls, what it closes in their order, and
 * what it opens: few lines of the cache. What is only asked for in the end lies elsewhere.
 */
struct calls_run {
	u32 path[RUN_MOST]; /* @n of them */
	/* What has to be before it. */
	struct calls_context *context;
	struct calls_cell *nonskipped;
	struct calls_span *before; /* NULL: whatever says `in` */
	u32 in;
	u8 n, nr_calls, nr_closed, nr_opened;
	u32 depth; /* calls that are open, at least */
	/* What is behind it. */
	struct calls_run *follows[2]; /* what was, the last times, the newest first; NULL: no run */
	u64 times;                    /* that were not settled */
	u32 out;
	u32 cost;
	struct calls_context *after;
	struct calls_cell *nonskipped_after, *cell;
	struct calls_span *last;
	u64 hash;
	struct run_events *events; /* NULL: nothing is simulated */
};

/* What it is counted by, in the end. */
struct run_totals {
	struct calls_run *run;
	struct run_totals *next_made;
	u32 nr_counts, nr_edges;
	struct run_count *count;
	struct run_edge *edge;
};

static inline const struct run_call *run_calls(const struct calls_run *r)
{
	return (const struct run_call *)(r + 1);
}

static inline const struct run_close *run_closed(const struct calls_run *r)
{
	return (const struct run_close *)(run_calls(r) + r->nr_calls);
}

static inline const struct run_open *run_opened(const struct calls_run *r)
{
	return (const struct run_open *)(run_closed(r) + r->nr_closed);
}

/* Where a call begins or ends: in front of which part, and what was met by then. */
struct run_moment {
	struct run_met met;
	u32 part;
};

/* A part of a path: whose what it meets is. */
struct run_part {
	struct calls_cell *cell, *nonskipped;
};

/* A call that begins and ends within the run: in front of which parts. */
struct run_inner {
	struct calls_edge *edge;
	u32 from, upto;
};

/* What a run meets: run-events.c. */
struct run_events {
	struct simulated_code *code;
	u32 nr_inner;
	struct run_met met;
	struct run_moment *closed, *opened; /* as those of the run */
	struct run_part *part;
	struct run_inner *inner;
};

/* A run that is being worked out, while its paths are executed one by one. */
struct run_recording {
	u32 cost, depth; /* so far */
	bool failed;     /* it does more than there is room for */
	u32 nr_calls, nr_closed, nr_opened, nr_counts, nr_edges;
	struct run_call call[16];
	struct run_close closed[16];
	struct run_open opened[16];
	struct run_count count[48];
	struct run_edge edge[32];
	/* If something is simulated. */
	u32 word, nr_parts, nr_inner; /* `word`: which of its paths it is at */
	struct run_met met;
	struct run_moment closed_at[16], opened_at[16];
	struct run_part part[SIMULATED_PARTS];
	struct simulated_part code[SIMULATED_PARTS];
	struct run_inner inner[16];
};

/* Whether a loop begins: what it goes round in is best told by how often. */
static inline bool run_is_loop(const u32 *path)
{
	return path[0] == path[1] && path[1] == path[2];
}

/*
 * How many of @path are one run, and the hash of that for @context. Fewer than RUN_LEAST are none.
 * What is looked at are RUN_MOST, and two more.
 */
static inline u32 run_measure(const u32 *path, const struct calls_context *context, u64 *hash)
{
	u64 h = (u64)(uintptr_t)context, factor = 0x9e3779b97f4a7c15ull;
	u32 n = 0;

	do {
		h += path[n] * factor;
		factor += 0xd1b54a32d192ed04ull;
		n++;
	} while (!run_is_loop(path + n) && n < RUN_MOST &&
		 (n < RUN_UNCUT || path[n - 1] * 0x9e3779b1u >> 29));
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	*hash = h ^ h >> 32;
	return n;
}

/* A place of the table: a run, in the lower bits, and the upper ones of its hash. 0: free. */
#define RUN_TAG   (0xffffull << 48)
#define RUN_OF(x) ((struct calls_run *)(uintptr_t)((x) & ~RUN_TAG))

/*
 * What a run is followed by is what followed it before, or is to be looked up, which takes as long
 * as a few paths. True: that is too often, as with a compressor, whose ways are those of its data.
 */
#define RUN_PAUSE 300000u
#define RUN_LOOKS 4096u
#define RUN_WORTH 12u /* paths that runs have taken for each time */
/* The same of what is simulated: a run that is seldom taken is in no cache of ours. */
#define RUN_MEETS_PAUSE 1200000u
#define RUN_MEETS_WORTH 24u

static inline bool run_seldom_follow(struct calls_runs *r, u32 worth)
{
	bool seldom;

	if (likely(++r->looked_up < RUN_LOOKS))
		return false;
	seldom = r->taken / r->looked_up < worth;
	r->looked_up = r->taken = 0;
	return seldom;
}

/*
 * Each miss of a run is to be told of, and if a line of code is not there all are looked for one by
 * one. True: there are too many, as with a compiler, and paths alone are as quick and take less
 * memory.
 */
#define RUN_MEETS  2048u
#define RUN_MISSES 16u

static inline bool run_misses_often(struct calls_runs *r, u32 misses)
{
	bool often;

	r->missed += misses;
	if (likely(++r->met < RUN_MEETS))
		return false;
	often = r->missed > RUN_MEETS * RUN_MISSES;
	r->met = r->missed = 0;
	return often;
}

/*
 * Whether a run of these paths should be worked out: not at the first time, with a simulation not
 * at the first eight, and not if it cannot be.
 */
bool run_is_worth(struct calls_runs *r, u64 hash, bool simulated);
/* It could not, this time. */
void run_refuse(const struct calls_runs *r, u64 hash);

void run_record_count(struct run_recording *rec, const struct calls_span *s,
		      struct calls_cell *nonskipped);
void run_record_open(struct run_recording *rec, const struct calls_frame *f);
void run_record_close(struct run_recording *rec, const struct calls_frame *f);

/* Keeps @run, in which what is recorded is filled in. */
void run_keep(struct calls_graph *g, const struct calls_run *run, const struct run_recording *rec);

/* run-events.c. What a run of these meets; NULL: it is no run. */
struct run_events *run_events_new(struct calls_graph *g, const struct run_recording *rec);
/* About, in bytes. */
size_t run_events_size(const struct run_events *e, const struct calls_run *r);
/*
 * @r is taken, with @top as the calls that are open before. @records are behind it then.
 * Returns what its misses were worth, RUN_MISSES of which are too many.
 */
u32 run_meet(struct calls_thread *t, const struct calls_run *r, const struct calls_frame *top,
	     struct path_records *records);

static inline void run_met_add(struct run_met *to, const struct run_met *more)
{
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		to->n[i] += more->n[i];
}

static inline void event_counts_met(struct event_counts *to, const struct run_met *met, u64 times)
{
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		to->n[i][0] += met->n[i] * times;
}

#endif
