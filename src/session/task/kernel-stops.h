/*
 * PURPOSE: events of the kernel's that stop a guest's thread: each guest's event that samples what
 * only the kernel sees (time, page faults, context switches) has one of the kernel's on its thread,
 * which sends the thread a SIGTRAP and leaves a record here. Periods, frequencies and throttling
 * are the kernel's. What a record lacks is where the program was: that the thread tells
 * (abi/trace.h).
 *
 * Ownership: all events of a thread write into one buffer, which is made with the first of them.
 * The kernel lets go of a thread that execs (attr.remove_on_exec), so its events are closed and
 * opened again then.
 */
#ifndef SESSION_TASK_KERNEL_STOPS_H
#define SESSION_TASK_KERNEL_STOPS_H

#include <sys/types.h>

#include "abi/perf.h"
#include "base/types.h"

struct kernel_stops {
	void *pages; /* of the buffer; NULL: there is none */
	size_t size; /* of its records */
	int fd;      /* the event that it belongs to, which counts nothing; -1 without */
	u64 tail;
};

/* What the kernel has recorded. */
struct kernel_note {
	u32 type; /* PERF_RECORD_SAMPLE, THROTTLE, UNTHROTTLE, LOST or SWITCH */
	u32 cpu;  /* of SWITCH */
	u16 misc; /* of SWITCH and SAMPLE */
	u64 id;   /* of the kernel's event */
	u64 time; /* CLOCK_MONOTONIC, ns; of LOST 0 */
	u64 ip, addr, lost;
	u64 period; /* 0: of an event that does not sample it */
};

/* Bit per software event that can stop threads here. */
u64 kernel_stops_have(void);
/* The kernel refuses perf events: threads set themselves timers, for what is time. */
bool kernel_stops_by_timer(void);

void kernel_stops_init(struct kernel_stops *ks);
void kernel_stops_release(struct kernel_stops *ks);

/*
 * Opens the kernel's event for a guest's with @attr on the thread @tid, off. Its descriptor, and
 * *@id; or -errno.
 */
int kernel_stop_open(struct kernel_stops *ks, s32 tid, const struct pe_attr *attr, u64 *id);

/*
 * Opens an event of the kernel's that stops the thread @tid at each access that @attr's breakpoint
 * waits for, off. Its descriptor, and *@id; or -errno. ENOSPC: the thread's CPUs have no debug
 * register left. The access has been made when the thread stops.
 */
int kernel_watch_open(struct kernel_stops *ks, s32 tid, const struct pe_attr *attr, u64 *id);
/*
 * The same of the calling thread, on @cpu or, -1, any: it is never turned on, and holds a register.
 */
int kernel_watch_hold(const struct pe_attr *attr, int cpu);

/* An event of the kernel's that records when @tid is switched, and nothing else. 0 or -errno. */
int kernel_switches_open(struct kernel_stops *ks, s32 tid);

/* The next record up to @time; false: there is none. */
bool kernel_stops_next(struct kernel_stops *ks, u64 time, struct kernel_note *note);

#endif
