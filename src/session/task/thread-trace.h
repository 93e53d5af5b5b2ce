/*
 * PURPOSE: samples of guests, on their way from a thread's trace (abi/trace.h) to the core: at
 * which counts a thread is to stop, and what it tells of each stop.
 *
 * Ownership: a thread has a struct thread_trace from the moment a sampling event is to count it; it
 * goes with the thread. Order: traces are drained at the beginning of each instant, and a thread's
 * before it ends, so whatever happens to an event then finds its samples written. Each sample is
 * worked on under a number of the instant of its own, in which the thread's counts and clock are
 * those that came with it.
 */
#ifndef SESSION_TASK_THREAD_TRACE_H
#define SESSION_TASK_THREAD_TRACE_H

#include "core/core.h"

struct event;
struct guest_process;
struct guest_thread;
struct probe;
struct session;
struct thread_trace;

/* Of struct pmu_source. */
void trace_arm(void *ctx, struct event *event, struct task *task, u32 what, u64 next, u64 period);
void trace_disarm(void *ctx, struct event *event, struct task *task);

/* The same of what the kernel stops threads for (task/kernel-stops.h). */
void trace_listen(void *ctx, struct event *event, struct task *task, bool forced);
void trace_unlisten(void *ctx, struct event *event, struct task *task);
void trace_forget(void *ctx, struct event *event, struct task *task);
/*
 * @th is about to execve, or that has failed. If it succeeds @th takes the number of its process's
 * first thread, and whatever is sent there meets a program that has no handler yet.
 */
void trace_execs(struct guest_thread *th, bool begins);
/* @th can be stopped by the kernel, or is to be left alone: it is about to exec. */
void trace_stops(struct guest_thread *th, bool on);

/* Of struct core_ops: an event with attr.sigtrap has overflowed on @task. */
void trace_sigtrap(void *ctx, struct event *event, struct task *task, u64 addr);

/* Of struct probe_host. */
int trace_probe_arm(void *ctx, struct probe *probe);
void trace_probe_disarm(void *ctx, struct probe *probe);

/* Somebody else may read @event's samples: its threads wait for the answer if they do. */
void trace_read_by(struct event *event);

/* The instant ends: what probes that went off, and did not go on again, wait for is told. */
void traces_settle(struct session *s);

/* What @p has mapped has changed. */
void trace_mapped(struct guest_process *p);
/* All that threads have told so far. */
void traces_drain(struct session *s);
void trace_drain(struct guest_thread *th);
/* Threads whose samples wait for room in a buffer wait too; those that have found it go on. */
void traces_hold(struct session *s);
/* @th has begun another program: the kernel has removed its events, and they are closed. */
void trace_execed(struct guest_thread *th);
/*
 * What @th is to do has changed. A thread that runs looks when it is told to; one that sleeps looks
 * before its program executes another instruction.
 */
void trace_poke(struct guest_thread *th);
/* It has been asked for something, in memory that its process can map: WIRE_OP_TRACE. */
bool trace_is_there(const struct guest_thread *th);
/* It is to tell something else, of what guest_thread_to_tell() says. */
void trace_watch(struct guest_thread *th);
/* @th counts in another meter. */
void trace_moved(struct guest_thread *th);
/* @th has ended, and tells nothing any more. */
void trace_free(struct guest_thread *th);

#endif
