/*
 * PURPOSE: what the host's kernel alone sees of guests' threads, and records for us: when they come
 * to a CPU and leave it [REC-13, REC-14], tracepoints of the kernel [TYPE-03], and what their
 * bpf(2) does to the kernel's code [REC-16, REC-17, REC-19]. While somebody asks each thread has
 * events of the kernel's that write into one buffer, and what that holds is told to the core in the
 * order of time, before what the thread's trace tells of the same time.
 *
 * Ownership: a thread's struct thread_records goes with it. A probe of the kernel has an event of
 * the kernel's on each thread that its copies are on, and one on nobody (its anchor), which keeps
 * the filter and the BPF program, and the kernel's own preparations.
 */
#ifndef SESSION_TASK_THREAD_RECORDS_H
#define SESSION_TASK_THREAD_RECORDS_H

#include "base/types.h"

struct event;
struct guest_thread;
struct probe;
struct session;
struct thread_records;
struct trace_sample;

/* @event, of any kind, was opened. */
void records_opened(struct session *s, const struct event *event);
/* @th has come to be, or has a task. Does nothing if nobody asks. */
void records_watch(struct guest_thread *th);
/* @th runs another program, and its events are on or off as that leaves them. */
void records_exec(struct guest_thread *th);
/* @th is about to call bpf(2), and somebody wants to know what comes of it. */
void records_bpf(struct guest_thread *th);
/* Whether @probe's samples say where the program was: the thread is to tell its system calls. */
bool records_wants_calls(const struct probe *probe);
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

/* Of struct probe_host; @ctx is the session. */
int must_check records_probe_open(void *ctx, struct probe *probe);
void records_probe_close(void *ctx, struct probe *probe);
void records_probe_arm(struct probe *probe);
void records_probe_disarm(struct probe *probe);
bool records_probe_count(void *ctx, struct probe *probe, u64 *count);
int must_check records_probe_filter(void *ctx, struct probe *probe, const char *text);
int must_check records_probe_bpf(void *ctx, struct probe *probe);

#endif
