/*
 * PURPOSE: which function called which, how often, and what each call has cost with all that it
 * called: from the paths that threads have taken, in order. The rules are callgrind's, so that its
 * users find the numbers that they know; doc/callgrind.md tells them.
 *
 * Code is handed in as spans: instructions that were executed one after the other. A span is made
 * once and then run as often as it was taken.
 *
 * A graph belongs to one program. Its threads have stacks of their own and share its counts.
 *
 * Lifetime: a graph owns its threads, spans and functions; calls_graph_free() frees all of it.
 */
#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

#include "calls/simulation.h"
#include "data/path-walk.h"

/* A function as the output names it: by object, file and name. */
struct calls_fn {
	u32 number;
	const char *object, *file, *name;
	u64 symbol;       /* address of the symbol; 0: it has none */
	bool skip;        /* what is executed in it is its caller's: slots of linkage tables */
	bool pop_on_jump; /* its jump to another function is a return and a call */
	bool unwinds;     /* it goes on in a caller of its caller, and never in that one */
	bool twice;       /* setjmp: whoever has called it may come back to there by a jump */
	bool catches;     /* it has called such a function */
	bool toggle;      /* entering and leaving it switches collecting on and off */
	bool dump_before, dump_after, zero_before;
};

/* What is known of the code at an address. */
struct calls_code {
	struct calls_fn *fn;
	u32 region;  /* number of its object and kind of section */
	bool entry;  /* a function begins here */
	u64 address; /* as the object has it */
};

struct calls_graph;
struct calls_thread;
struct calls_span;

struct calls_opts {
	u32 recursions; /* levels of recursion that are told apart, from 1 on */
	bool collect;   /* from the start on */
	bool no_calls;  /* counts alone: nobody asks for calls */
	/*
	 * Costs are told apart by who has called, up to the thread's first function, and not by
	 * level: calls_tree(). What calls itself is at the place of its first call.
	 */
	bool tree;
	struct event_simulation *simulation; /* NULL: none; the caller's */
	/* Fills in the function with calls_fn_of(), and the rest. */
	void (*find)(void *data, struct calls_graph *g, u64 pc, struct calls_code *code);
	/* A function that asks for a dump is entered or left; NULL: none does. */
	void (*dump)(void *data, struct calls_graph *g, const char *trigger);
	void *data;
};

struct calls_graph *calls_graph_new(const struct calls_opts *opts);
void calls_graph_free(struct calls_graph *g);

/* The function of these names, which are copied; made if need be, and *@made says so. */
struct calls_fn *calls_fn_of(struct calls_graph *g, const char *object, const char *file,
			     const char *name, bool *made);

/* @tid: what calls_tree() calls it. */
struct calls_thread *calls_thread_new(struct calls_graph *g, u32 tid);

/* A span of @n instructions; at least one. */
struct calls_span *calls_span_new(struct calls_graph *g, const struct path_step *steps, u32 n);

/* The thread has executed it. */
void calls_run(struct calls_thread *t, struct calls_span *s);

/*
 * It has executed @n instructions, and nobody knows which: they are those of a function "???". Who
 * was called by them, or has returned, is not known either. Not with opts.tree.
 */
void calls_run_unknown(struct calls_thread *t, u32 n);

/* The same, of a graph with a simulation. @keep: calls_uncount() may follow. */
void calls_run_simulated(struct calls_thread *t, struct calls_span *s, struct path_records *records,
			 bool keep);

/* Of one instruction, which has not retired: only what it has accessed so far counts. */
void calls_run_interrupted(struct calls_thread *t, struct calls_span *s,
			   struct path_records *records);

/*
 * The same of paths that have spans by their numbers, one after the other. Returns how many, from
 * the first on; the next one has none. @records: those of a simulation, which are at the word of
 * the next one then; NULL without one.
 */
size_t calls_run_paths(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
		       size_t n, struct path_records *records);

/*
 * The same, of which a model has counted @event, @n of them (abi/path-trace.h). @s NULL: nobody
 * knows what was executed, or nothing was. For calls_tree_modeled().
 */
void calls_run_modeled(struct calls_thread *t, struct calls_span *s, const struct path_event *event,
		       u32 n);

/*
 * Takes back what the span that was run last has cost, but not who called whom; and counts it after
 * all, if something is collected now. For who changes what is collected in between.
 */
void calls_uncount(struct calls_thread *t);
void calls_recount(struct calls_thread *t);

/* A signal's handler comes next; the handler is done. */
void calls_signal(struct calls_thread *t);
void calls_signal_return(struct calls_thread *t);

void calls_toggle_collect(struct calls_thread *t);
/* From here on nothing is known of what was called before; what is open ends. */
void calls_forget(struct calls_graph *g);
void calls_zero(struct calls_graph *g);

/* What is executed at an address, in which function. */
struct calls_cost {
	const struct calls_fn *fn;
	u32 level; /* of recursion, from 0 */
	u64 pc;    /* where the graph knows it by calls_code.address as well */
	u64 count;
	u32 events; /* as in struct calls_call */
};

struct calls_call {
	const struct calls_fn *from, *to;
	u32 from_level, to_level;
	u64 site, target; /* the calling instruction, and where it went */
	u64 count, cost;
	u32 events; /* index of those in calls_profile, + 1; 0: none */
};

/*
 * What was counted since the last dump. By function, level and pc; calls by function, level, site,
 * and function and level of the target.
 */
struct calls_profile {
	struct calls_cost *cost; /* owned */
	u32 nr_costs;
	struct calls_call *call; /* owned */
	u32 nr_calls;
	u64 summary;                 /* of all threads, without handlers of signals */
	struct event_counts *events; /* owned */
	u32 nr_events;
	struct event_counts summary_events;
};

/* Takes it, and begins anew. */
void calls_take(struct calls_graph *g, struct calls_profile *p);
void calls_profile_release(struct calls_profile *p);

/* Instructions of a thread that were executed @count times each, where it was called from. */
struct calls_piece {
	u32 tid;
	const u64 *pc;
	u32 n;
	u64 count;
	const u64 *callers; /* within the instruction by which each has called, the nearest first */
	u32 nr_callers;
	/* Of modeled events, of which @count happened at all of them together. */
	u32 event;
	u64 addr; /* of the data; 0: none, or not known */
};

/* Of a graph with opts.tree: gives all of it. Another value than 0 ends that, and is returned. */
typedef int calls_piece_fn(const struct calls_piece *piece, void *data);
int calls_tree(struct calls_graph *g, calls_piece_fn *fn, void *data);
/* The same of modeled events; of tid 0 and at 0 those of which nobody knows whose they are. */
int calls_tree_modeled(struct calls_graph *g, calls_piece_fn *fn, void *data);

/* Ends all that is open: what is taken next is the whole. */
void calls_finish(struct calls_graph *g);

#endif
