/*
 * PURPOSE: breakpoints on data: each has one of the kernel's on its thread (task/kernel-stops.h),
 * and so one of the CPU's debug registers, from when it is opened. Which of the accesses that the
 * kernel has recorded were the program's is found out here.
 *
 * Ownership: a struct data_watch belongs to its thread's trace while a probe is on it; the probe's
 * `watch` leads to it. Events of one task that are on a CPU each share one, since the thread is on
 * one CPU at a time.
 *
 * It stays on when its probes go off, which they do at each change of the thread's CPU: what it
 * tells then is nobody's, and has it turned off.
 */
#ifndef SESSION_TASK_DATA_WATCHES_H
#define SESSION_TASK_DATA_WATCHES_H

#include "abi/trace.h"
#include "session/task/kernel-stops.h"

struct probe;
struct sample_facts;
struct thread_trace;

struct data_watch;

/*
 * Of struct probe_host. The probe's breakpoint is the kernel's from here on, if its thread is there
 * already. 0; -ENOSPC: no register is free; or what else the kernel says.
 */
int data_watch_reserve(void *ctx, struct probe *probe);
void data_watch_release(void *ctx, struct probe *probe);

/* @probe, whose thread has @tt, is about to be on: its breakpoint is where its attr says. 0 or
 * -errno.
 */
int data_watch_ready(struct thread_trace *tt, struct probe *probe);
/* It is to tell from now on. */
void data_watch_on(struct probe *probe);

/*
 * What the thread is to tell at each. It is so whether their probes are on or off, since the thread
 * stops all the same.
 */
void data_watches_tell(const struct thread_trace *tt, struct trace_watch *watch);

/* The kernel's events are there; false: not one that is to be on. Or they are gone. */
bool must_check data_watches_open(struct thread_trace *tt);
void data_watches_close(struct thread_trace *tt);
/* The thread has ended; its probes have none any more. */
void data_watches_free(struct thread_trace *tt);

/* Whose the kernel's event @id is; NULL: it is none of these. */
struct data_watch *data_watch_find(const struct thread_trace *tt, u64 id);
/* What the kernel has recorded of @watch before the thread's stop @s, of which @facts tell. */
void data_watch_noted(struct thread_trace *tt, struct data_watch *watch,
		      const struct kernel_note *note, const struct trace_sample *s,
		      const struct sample_facts *facts);

#endif
