/*
 * PURPOSE: how long a thread has run, and what the kernel has counted for it: the clock of a task's
 * context, and the source of the software PMU.
 *
 * Ownership: a thread's clock has descriptors of kernel events, which clock_release() closes.
 * Order: what is read belongs to the open instant (task/instant.h). A thread's clock never goes
 * back.
 */
#ifndef SESSION_TASK_CLOCK_H
#define SESSION_TASK_CLOCK_H

#include "pmu/drivers.h"

struct guest_thread;
struct task;

struct thread_clock {
	u64 cpu_time; /* last known, ns; never back */
	int fd;       /* the kernel's own event on the thread, or -1 */
	u64 offset;   /* what to add to that event's time */
	u64 read_at;  /* instant.number when it was last asked */
	bool tried;   /* clock_attach() was here */

	int sw_fd[SW_WHAT_MAX]; /* by SW_WHAT(): kernel events for software counts, or -1 */
	u64 sw_last[SW_WHAT_MAX];
	bool faults;       /* the kernel's event counts its page faults: WIRE_WATCH_FAULTS */
	u64 sw_wanted;     /* bit per SW_WHAT() that somebody reads */
	u64 switches;      /* context switches of the program before its last call, as it says */
	u64 switches_base; /* those of the thread that the kernel's event has not counted */
};

void clock_init(struct thread_clock *clock);
void clock_release(struct thread_clock *clock);

/* Somebody else than the thread itself takes an interest, or it has inherited events. */
void clock_attach(struct guest_thread *th);
/* The thread has said its CPU time. */
void clock_told(struct guest_thread *th, u64 cpu_time);
/* CPU time of @th, ns. Who is in a call has just said it; of others it is asked once an instant. */
u64 clock_read(struct guest_thread *th);
/* For this instant, what is known of it will do. */
void clock_skip(struct guest_thread *th);

/*
 * Whether the kernel tells of a thread after its end; if not, clock_last() is to be called before.
 */
bool clock_outlives(void);
void clock_last(struct guest_thread *th);

/* For struct pmu_source: SW_WHAT() @what of the task, and which of them can be had. */
u64 software_read(void *ctx, struct task *task, u32 what);
u64 software_have(void);

/* WIRE_VIEW_PROC_*. */
u32 software_from_proc(void);

#endif
