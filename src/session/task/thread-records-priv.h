/*
 * PURPOSE: struct thread_records, for what reads a thread's buffer (thread-records.c) and what has
 * the kernel write there for probes (kernel-probes.c).
 */
#ifndef SESSION_TASK_THREAD_RECORDS_PRIV_H
#define SESSION_TASK_THREAD_RECORDS_PRIV_H

#include "session/session-priv.h"
#include "session/task/thread-records.h"

/* What the events of a buffer have in common: the trailer of its records. */
#define RECORD_COMMON \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* One of the kernel's events on a thread, for a probe, or for those of one task on a CPU each. */
struct record_probe {
	struct list link; /* in thread_records.probes */
	struct list all;  /* in session.kernel_probes */
	struct list
		users; /* struct probe.watched; not empty, and no two of them can be on at once */
	struct guest_thread *thread;
	struct probe *active; /* which of them is on; NULL: none */
	bool enabled;         /* the kernel's is on, when the instant ends as `active` says */
	bool on_exec;         /* it goes on by itself at the next exec */
	int fd;               /* -1: the thread is still to be made, or the kernel gives none */
	struct pe_attr attr;  /* of the kernel's event */
	u64 id;
	u64 period;  /* as the kernel was told last */
	u64 passed;  /* records that the session has let pass; of what it filters itself */
	u64 counted; /* of what the kernel has counted, what was told to a user or is nobody's */
};

struct thread_records {
	struct kernel_stops kernel; /* the buffer, and an event that counts nothing */
	int switches, code;         /* events that record these alone; -1: none */
	struct list probes;         /* struct record_probe */
	/* Where the thread's system call was made, which is not over; `called` 0: not known. */
	struct trace_sample *call;
	u32 called, room; /* its size, and that of its memory */
};

/* @th's; NULL: there is no memory for one. */
struct thread_records *records_of_thread(struct guest_thread *th);
/* How each event begins that writes into a thread's buffer. */
struct pe_attr recorder_attr(void);
/* One of them, off if its attr says so; -1: the kernel gives none. */
int recorder_open(struct guest_thread *th, struct thread_records *r, const struct pe_attr *attr);

#endif
