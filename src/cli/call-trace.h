/*
 * PURPOSE: call graphs (calls/calls.h) of the programs that run below a machine whose guests hand
 * their traces out (ap__pmu_traced()): the streams of threads are read while they run, and each
 * program has a graph. A thread whose stream is full waits, so who has begun reads to the end.
 *
 * Lifetime: a struct call_trace whose upper half is filled in and whose rest is zero;
 * call_trace_end() when nobody runs any more, call_trace_release() at last.
 */
#ifndef CLI_CALL_TRACE_H
#define CLI_CALL_TRACE_H

#include <anyperf/anyperf.h>

#include "abi/path-trace.h"
#include "backend/guest-segment.h"
#include "calls/callgrind-file.h"
#include "cli/code-view.h"

#define TRACED_PARTS 1024u

/* A part of a path that was executed by itself. */
struct traced_part {
	u64 first, last;
	u64 accesses; /* a hash of what it accesses */
	u32 n;
	struct calls_span *span; /* NULL: none */
};

/* A thread of one, from its start on. */
struct traced_thread {
	u32 tid;
	u64 start; /* as in struct path_stream */
	u64 stack; /* likewise, when it has ended */
};

/* A program that a process has run; with by_thread, a thread of it. */
struct traced_program {
	struct call_trace *trace;
	u32 space, pid; /* which one it is */
	u32 number;     /* with by_thread, of the thread, from 1 on; else 0 */
	/* Its command line, as files of callgrind's have it; owned; NULL: what was started. */
	char *command;
	struct calls_graph *graph;
	struct calls_span **span; /* by number of path, PATH_WORDS of them; NULL: none; owned */
	struct event_simulation *simulation; /* NULL: none; owned */
	struct traced_part part[TRACED_PARTS];
	bool instrumented;
	struct traced_thread *thread; /* those that have begun; owned */
	u32 nr_threads;
	/* The user's: parts that were written, and all that was in them. */
	u32 parts;
	struct callgrind_totals total;
	struct traced_program *next;
};

struct trace_reader; /* call-trace.c */

struct call_trace {
	struct ap_machine *machine;
	struct code_view *code; /* what there is in the processes; `take_records` adds to it */
	bool instrument;        /* from the start on */
	bool collect;           /* likewise */
	u32 recursions;         /* as in struct calls_opts */
	bool no_calls, tree;
	bool modeled; /* with `tree`: modeled events are attributed as well */
	/* Each thread has a graph. */
	bool by_thread;
	const struct simulation_opts *simulates; /* NULL: nothing */
	/* Brings the view of code up to date. */
	void (*take_records)(void *data);
	/* A function that is new: sets what options ask of it. */
	void (*describe)(void *data, struct calls_fn *fn, bool plt);
	/* Somebody asks for a part; NULL: that is nothing. */
	void (*dump)(struct traced_program *p, const char *trigger);
	/* What a client request prints, a line, a part of one or several; NULL: nothing. */
	void (*print)(struct traced_program *p, const char *text, bool marked);
	void *data;

	struct traced_program *programs; /* the newest first; owned */
	struct trace_reader *reader;
	u64 bad;     /* entries that made no sense, at the end */
	u32 lost;    /* threads or programs that found no room, at the end */
	u64 unknown; /* instructions of which nobody knows where they are */
};

#define TRACE_PAUSE_LEAST 20000u
#define TRACE_PAUSE_MOST  1000000u

/*
 * How long the next pause between two looks is, ns, if the last one was @pause and a stream had
 * @most words behind it: so that it stays less than half full, as its thread waits else, and not
 * much shorter, as to look costs, too. The longest suffices for who has nothing to tell.
 */
static inline u64 call_trace_pause(u64 pause, u32 most)
{
	if (most > PATH_STREAM_WORDS / 2)
		return max_u64(pause / 2, TRACE_PAUSE_LEAST);
	return most < PATH_STREAM_WORDS / 8 ? min_u64(pause * 2, TRACE_PAUSE_MOST) : pause;
}

/* Reads what was executed since the last time. In how many ns it is to be called again. */
u64 call_trace_read(struct call_trace *trace);
/* All that is left, when nobody runs any more. */
void call_trace_end(struct call_trace *trace);
void call_trace_release(struct call_trace *trace);

#endif
