/* PURPOSE: what a call graph is made of: call-graph.c holds it, call-stack.c runs it. */
#ifndef CALLS_CALLS_PRIV_H
#define CALLS_CALLS_PRIV_H

#include "abi/run-config.h"
#include "calls/calls-memory.h"
#include "calls/calls.h"

/* A function at one level of recursion: what costs are told of. */
struct calls_context {
	struct calls_fn *fn;
	u32 level;
	/* With opts.tree: who has called, the thread's own for the first; by which instruction. */
	struct calls_context *parent;
	u64 site;
	u32 tid;
	struct calls_context *next_made;
};

/* With opts.tree, by what they are of: a call from a context, a cell of a span. */
struct calls_place {
	const void *of, *what; /* NULL: free */
	u64 site;
	void *found; /* NULL: not made yet */
};

/* Modeled events of one kind, of one instruction of a cell. */
struct calls_modeled {
	const struct calls_cell *cell; /* NULL: free */
	u64 pc;                        /* 0: all of its instructions */
	u64 addr;                      /* of the data, or of what it is near to */
	u64 count;
	u32 event;
};

/* Open addressing. */
struct calls_modeled_counts {
	struct calls_modeled *at; /* owned */
	u32 n, room;
	u64 unplaced[PROFILED_EVENTS];
};

/* Likewise. */
struct calls_places {
	struct calls_place *place; /* owned */
	u32 n, room;
};

/* What a span asks for of the one before it, and what that says: the same, or somebody looks. */
#define CALLS_ENTERS (~0u)      /* anything: a function begins, or more than one span */
#define CALLS_LEAVES (~0u - 1u) /* the next one may be of anybody */

/*
 * Instructions up to one after which another function may come. What running one needs is in front,
 * in one line of the cache; what a change of function needs comes behind.
 */
struct calls_span {
	struct calls_cell *cell;       /* the one of the last time; NULL: there was none */
	struct calls_context *context; /* of that */
	u64 count;                     /* of that, in addition */
	u32 n;
	u32 in, out; /* the region, CALLS_ENTERS, CALLS_LEAVES; of spans that follow one another */
	u8 end;      /* enum path_insn of the last */
	bool entry;
	bool more;  /* there is a rest */
	u64 first;  /* the first instruction */
	u64 behind; /* the address behind the last one */
	/* The call by which it was entered last, if its function asks for nothing; else NULL. */
	struct calls_edge *called;
	struct calls_fn *fn;
	struct calls_span *rest;          /* what comes next in the same path; NULL: nothing */
	u64 last;                         /* the last instruction */
	struct simulated_code *simulated; /* NULL: nothing is; owned */
	struct calls_span *next_made;
	struct calls_code code;
	struct calls_cell *cells; /* those of all contexts */
	u64 pc[];
};

/* A span as it is executed in one context. */
struct calls_cell {
	struct calls_span *span;
	struct calls_context *context;
	struct calls_cell *next;  /* of the span */
	struct calls_edge *edges; /* calls from its last instruction */
	u64 count;
	u64 skipped; /* instructions of functions that are not told of, called from here */
	u64 *events; /* three for each place of the span's; NULL: none yet; owned */
	struct event_counts *skipped_events; /* of those functions; as above */
};

struct calls_edge {
	struct calls_cell *from;
	struct calls_context *to;
	u64 target;
	u64 count, cost;
	u32 level, number;           /* of `to`, and of its function */
	struct calls_edge *next;     /* of the cell */
	struct event_counts *events; /* NULL: nothing is simulated; owned */
};

/* All of them, by a hash of where they are from and where they go. */
struct calls_edges {
	struct calls_edge **place; /* owned */
	u64 mask, n;
};

/* An open call. */
struct calls_frame {
	const struct calls_span *site; /* what has called; the edge says who is said to have */
	struct calls_edge *edge;       /* NULL: it is not told of */
	u64 enter;                     /* the cost when it began */
	u64 ret;                       /* where it returns to; 0: nowhere, or it is emulated */
	u64 again;                     /* where the last setjmp that was called in it returns to */
	struct calls_context *context; /* who was executing */
	struct calls_cell *nonskipped;
	bool emulated; /* made by a jump: it ends when the one below ends */
};

/* An indirect branch, of which nobody knows yet where it goes. */
struct calls_branch {
	bool open;
	bool collect;
	u64 pc;
	u64 *counts; /* of its place; NULL: not collected, or it belongs to `skipped` */
	struct calls_cell *skipped;
};

/* What a handler of a signal interrupts. */
struct calls_interrupted {
	struct event_counts events;
	struct calls_branch branch;
	struct calls_cell *last, *nonskipped;
	struct calls_fn *fn;
	struct calls_context *context;
	u64 cost;
	u32 bottom;
	bool collect;
};

struct calls_thread {
	u32 tid;
	struct calls_context *root; /* with opts.tree */
	struct calls_graph *graph;
	struct calls_thread *next;
	/* Of what runs now. */
	struct calls_cell *last;       /* NULL: nothing yet */
	u32 out;                       /* what ran last says, or CALLS_LEAVES */
	struct calls_cell *nonskipped; /* the caller of what is not told of; NULL: nobody */
	struct calls_fn *fn;           /* NULL: the next span's */
	struct calls_context *context;
	u64 cost, dumped;
	u32 bottom; /* frames below are those of what a signal has interrupted */
	bool collect;
	struct calls_frame *frame; /* owned */
	u32 nr, room;
	u32 *active; /* open calls of each function; owned */
	u32 nr_active;
	struct calls_interrupted *interrupted; /* owned */
	u32 signals, signal_room;
	/* If something is simulated: as cost, dumped and the frames' enter. */
	struct event_counts events, events_dumped;
	struct event_counts *entered; /* by frame; owned */
	struct calls_branch branch;
	/* Of the last span, if it may be taken back. */
	struct event_counts last_sum;
	u64 *last_counts; /* owned */
	u32 last_room;
	bool last_kept;
};

/* call-runs.c: what several paths do one after the other. All zero: none is known. */
struct calls_runs {
	u64 *slot; /* open addressing; owned */
	u32 mask, n;
	u16 *seen;            /* of paths that may be worth a run; owned */
	u32 taken, looked_up; /* paths by runs; runs; since that was looked at */
	u32 met, missed;      /* likewise: runs that met something, and what they missed */
	size_t pause;         /* paths that are taken one by one */
	struct run_totals *made;
	struct calls_memory memory, totals;
	/* Bytes of these, and at most: then all are forgotten, and those still taken come again. */
	size_t size, most;
};

#define CALLS_BUCKETS 4096u

struct calls_graph {
	struct calls_opts opts;
	struct calls_thread *threads;
	struct calls_span *spans;
	struct calls_context **contexts; /* of each function opts.recursions; owned */
	struct calls_fn **fn;            /* owned, by number */
	u32 *fn_next;                    /* the next of the same hash, + 1 */
	u32 fn_hash[CALLS_BUCKETS];
	u32 nr_fns, fn_room;
	u64 zeroed;               /* of the summary */
	u64 unknown;              /* instructions of which nobody knows where they are */
	struct calls_span **gaps; /* by function, what such were executed behind; owned */
	u32 nr_gaps;
	struct calls_edges edges;
	struct calls_memory memory;
	struct calls_runs runs;
	struct calls_places places;
	struct calls_context *made; /* those of the tree; owned */
	struct calls_modeled_counts modeled;
};

/* A function that a call of asks for something else as well. */
static inline bool calls_fn_asks(const struct calls_fn *fn)
{
	return fn->twice || fn->toggle || fn->dump_before || fn->dump_after || fn->zero_before;
}

static inline bool calls_span_calls(const struct calls_span *s)
{
	return s->end == PATH_CALL || s->end == PATH_CALL_IND;
}

/* Where the call returns to; 0: nowhere. */
static inline u64 calls_frame_ret(const struct calls_frame *f)
{
	return !f->emulated && calls_span_calls(f->site) ? f->site->behind : 0;
}

struct calls_context *calls_context_new(struct calls_graph *g, struct calls_fn *fn, u32 level);

static inline struct calls_context *calls_context_of(struct calls_graph *g, struct calls_fn *fn,
						     u32 level)
{
	struct calls_context *c = g->contexts[fn->number * g->opts.recursions + level];

	return likely(c) ? c : calls_context_new(g, fn, level);
}
struct calls_cell *calls_cell_of(struct calls_graph *g, struct calls_span *s,
				 struct calls_context *c);

/* Room for how often each function that is known is active. */
void calls_grow_active(struct calls_thread *t, u32 number);

static inline void calls_count_active(struct calls_thread *t)
{
	if (unlikely(t->graph->nr_fns > t->nr_active))
		calls_grow_active(t, t->graph->nr_fns);
}

/* Adds to cells and edges what was counted by runs: before anybody reads them. */
void calls_runs_settle(struct calls_graph *g);
#define CALLS_RUNS_MOST (64ul << 20)

/* What was not settled is lost. */
void calls_runs_release(struct calls_runs *r);

/* calls-tree.c. The context of @fn, called from @parent by the instruction at @site - 1. */
struct calls_context *calls_tree_context(struct calls_graph *g, struct calls_context *parent,
					 struct calls_fn *fn, u64 site);
struct calls_context *calls_tree_root(struct calls_graph *g, u32 tid);
/* The place of a cell, whose `found` is NULL if there is none yet. */
struct calls_place *calls_tree_cell(struct calls_graph *g, struct calls_span *s,
				    struct calls_context *c);
void calls_tree_free(struct calls_graph *g);
/* Gives @piece with whose cell that is, and who has called. */
int calls_tree_give(const struct calls_cell *c, struct calls_piece *piece, calls_piece_fn *fn,
		    void *data);

/*
 * calls-modeled.c. Before the thread goes on: what it has caused that is told with what comes next;
 * @all: everything. Then, in each part of @path, what is of that.
 */
void calls_modeled_before(struct calls_thread *t, const struct path_event *event, u32 n, bool all);
void calls_modeled_part(struct calls_thread *t, const struct calls_span *path,
			const struct path_event *event, u32 n);

/* call-edges.c. The call from @from to @target, which is executed as @to; made if need be. */
struct calls_edge *calls_edge_of(struct calls_graph *g, struct calls_cell *from,
				 struct calls_context *to, u64 target);

/* calls-events.c: what is simulated. */
u64 *calls_events_of(struct calls_cell *c);
struct event_counts *calls_skipped_of(struct calls_cell *c);
void calls_simulate(struct calls_thread *t, struct calls_span *s, struct path_records *records,
		    bool keep);
/* Adds what the last span has met @times times, if that was kept. */
void calls_simulate_again(struct calls_thread *t, u64 times);
/* Of an instruction that has not retired. */
void calls_simulate_accesses(struct calls_thread *t, struct calls_span *s,
			     struct path_records *records);
/* The last instruction of @s, which is @own's, or NULL, is an indirect branch. */
void calls_open_branch(struct calls_thread *t, const struct calls_span *s, struct calls_cell *own);
void calls_close_branch(struct calls_thread *t, u64 target);

#endif
