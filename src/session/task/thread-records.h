/*
 * PURPOSE: what the host's kernel alone sees of guests' threads, and records for us: when they come
 * to a CPU and leave it [REC-13, REC-14], tracepoints of the kernel [TYPE-03], and what their
 * bpf(2) does to the kernel's code [REC-16, REC-17, REC-19]. While somebody asks each thread has
 * events of the kernel's that write into one buffer, and what that holds is told to the core in the
 * order of time, before what the thread's trace tells of the same time.
 *
 * Ownership: a thread's struct thread_records goes with it; probes' events are kernel-probes.h's.
 */
#ifndef SESSION_TASK_THREAD_RECORDS_H
#define SESSION_TASK_THREAD_RECORDS_H

#include "base/types.h"

struct event;
struct guest_thread;
struct session;
struct thread_records;
struct trace_sample;

/* @event, of any kind, was opened. */
void records_opened(struct session *s, const struct event *event);
/* @th has come to be, or has a task. Does nothing if nobody asks. */
void records_watch(struct guest_thread *th);
/* @th is about to call bpf(2), and somebody wants to know what comes of it. */
void records_bpf(struct guest_thread *th);
/*
 * @th has made a system call at @s, whose parts are not checked; NULL: it is over. What the kernel
 * has recorded since is of that call.
 */
void records_call(struct guest_thread *th, const struct trace_sample *s);
/* Tells what @th has done up to @time, CLOCK_MONOTONIC ns. */
void records_drain(struct guest_thread *th, u64 time);
void records_drain_all(struct session *s);
void records_free(struct guest_thread *th);
/* Whether something of @th's last moment is still to come. */
bool records_outlive(const struct guest_thread *th);

#endif
