/*
 * PURPOSE: when guests' threads come to a CPU and leave it, for events that ask for SWITCH records
 * [REC-13, REC-14]. Only the kernel knows: while there are such events each thread has one of the
 * kernel's that counts nothing and records this, and what it has recorded is told to the core in
 * the order of time, before what the thread's trace tells of the same time.
 *
 * Ownership: a thread's struct thread_switches goes with it.
 */
#ifndef SESSION_TASK_THREAD_SWITCHES_H
#define SESSION_TASK_THREAD_SWITCHES_H

#include "base/types.h"

struct event;
struct guest_thread;
struct session;
struct thread_switches;

/* @event, of any kind, was opened. */
void switches_opened(struct session *s, const struct event *event);
/* @th has come to be, or has a task. Does nothing if nobody asks. */
void switches_watch(struct guest_thread *th);
/* Tells what @th has done up to @time, CLOCK_MONOTONIC ns. */
void switches_drain(struct guest_thread *th, u64 time);
void switches_drain_all(struct session *s);
void switches_free(struct guest_thread *th);

#endif
