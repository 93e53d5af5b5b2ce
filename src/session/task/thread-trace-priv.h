/*
 * PURPOSE: struct thread_trace, for the two sides of a trace: what the thread is told
 * (thread-trace.c), and what it tells (trace-entries.c).
 */
#ifndef SESSION_TASK_THREAD_TRACE_PRIV_H
#define SESSION_TASK_THREAD_TRACE_PRIV_H

#include "abi/trace.h"
#include "session/session-priv.h"
#include "session/task/thread-trace.h"

/* A deadline as the core wants it: in what the source reads, whatever meter the thread has. */
struct deadline {
	struct event *event; /* NULL: free */
	u64 next, period;
	u32 quantity; /* enum meter_quantity, TRACE_BY_KERNEL, or TRACE_MODELED and further */
	u32 generation;

	/* By the kernel: its event, which is there while the thread can be stopped; else -1. */
	int fd;
	u64 kernel_id;
	bool on;
};

struct thread_trace {
	struct list link; /* session.traces */
	struct guest_thread *thread;
	struct trace *trace; /* mapped; NULL: its thread has no meter yet */
	/* When the session has last looked there, and before: what comes now was not there then. */
	u64 looked, looked_before;
	u64 tail; /* as trace->tail, which the guest could write */
	/* While it is drained: where that ends, and its place among those that are. */
	u64 head;
	struct list pending;
	u32 seq; /* as trace->seq */
	u32 generation;
	struct deadline deadlines[TRACE_EVENTS];
	struct kernel_stops stops;
	bool left_alone; /* the kernel's events are closed */
	u32 traps;       /* as trace->traps */
	bool trapped;    /* within this drain */
	/* A tracepoint of the kernel's has fired, and the thread is to be told when it is back. */
	struct trace_trap fired;
	bool has_fired;
	bool held;           /* as trace->hold */
	bool untold;         /* probes that it waits for have gone off within the instant */
	struct list probes;  /* struct probe that are on */
	struct list watches; /* struct data_watch */
	bool sums_at_stops;  /* an access's samples have other events' counts */
	u64 stop;            /* the number of the last one that was drained */
};

/* @th's; NULL: there is no memory for one. */
struct thread_trace *trace_of_thread(struct guest_thread *th);

/* The thread, which waits for the answer to its entry, gets @trap, if it is the first. */
void trace_send(struct thread_trace *tt, const struct trace_trap *trap);

/* What the thread is to tell when it comes there: enum trace_wants. */
u32 deadline_wants(const struct deadline *d);

/* enum perf_branch_type of an enum trace_branch_type; 0: none. */
u32 branch_type(u64 type);

#endif
