/*
 * PURPOSE: occurrences that probes wait for (pmu/probes.h): which of them a thread is to tell, and
 * whose each one is that it has told. The list of a thread's probes, by their `armed`, is
 * thread-trace.c's.
 */
#ifndef SESSION_TASK_TRACE_PROBES_H
#define SESSION_TASK_TRACE_PROBES_H

#include "base/list.h"
#include "base/types.h"

struct event;
struct guest_process;
struct guest_thread;
struct probe_hit;
struct sample_facts;
struct thread_trace;
struct trace;
struct trace_hit;
struct trace_sample;
struct trace_watch;

/* Writes what @probes wait for, in @p, into the thread's tables. */
void probes_tell(struct guest_process *p, const struct list *probes, struct trace *trace);
/* Adds what @event, which waits for accesses to data, wants to be told of each. */
void probe_tell_watch(const struct event *event, struct trace_watch *watch);
/* Writes what is to be told of tracepoints of the kernel among @probes that send signals. */
void probes_tell_fired(const struct list *probes, struct trace_watch *fired);
/* Whether somebody waits for a sample of what the tables say, which are of @probes. */
bool probes_are_sampled(const struct list *probes, const struct trace *trace);
/* @h is checked as far as its size goes. */
void probes_hit(struct guest_thread *th, const struct list *probes, const struct trace_hit *h);
/* It has happened to @th; false: none of @probes has waited for it. Writes to @facts. */
bool probes_happened(struct guest_thread *th, const struct list *probes,
		     const struct probe_hit *hit, struct sample_facts *facts);

/* thread-trace.c: enum trace_wants of @event, as far as its attr says. */
u32 trace_parts(const struct event *event);
/*
 * trace-entries.c: what @s says, if it is as long as it says; then the thread's counts and clock
 * are those of its moment.
 */
bool trace_sample_facts(struct guest_thread *th, const struct trace_sample *s,
			struct sample_facts *facts);
/* The same of another moment's. */
bool trace_sample_parts(const struct trace_sample *s, struct sample_facts *facts);
/* Whether the thread was in the runtime's code. */
bool trace_is_runtime(const struct thread_trace *tt, u64 pc);

#endif
