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
	u32 type; /* PERF_RECORD_SAMPLE, THROTTLE, UNTHROTTLE or LOST */
	u16 misc; /* of SAMPLE */
	u64 id;   /* of the kernel's event */
	u64 time; /* CLOCK_MONOTONIC, ns; of LOST 0 */
	u64 ip, addr, lost;
	u64 period;               /* 0: of an event that does not sample it */
	u64 phys_addr, page_size; /* of addr; likewise, and where the kernel does not say */
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
 * The period, or frequency, that a guest's event with @attr has of the kernel when its own is
 * @period: of a clock not a shorter one than a thread can be stopped in and still get on.
 */
u64 kernel_stop_period(const struct pe_attr *attr, u64 period);

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

/*
 * How each of the kernel's events begins: it counts nothing, in user mode. In its whole size, which
 * other kernels than ours may not know, nothing is set.
 */
struct pe_attr kernel_event_attr(u64 sample_type);
/* The kernel's event on @tid, of any CPU; 0 is the session itself. Its descriptor or -errno. */
int kernel_event_open(const struct pe_attr *attr, s32 tid);
/* A buffer with an event of @attr, if there is none yet. 0 or -errno. */
int kernel_buffer_open(struct kernel_stops *ks, const struct pe_attr *attr, s32 tid);
/* The same of a whole CPU. */
int kernel_cpu_buffer_open(struct kernel_stops *ks, const struct pe_attr *attr, int cpu);

#define KERNEL_RECORD_MAX 65536u

struct kernel_record {
	struct perf_event_header header;
	u8 *bytes; /* the caller's, KERNEL_RECORD_MAX: the whole record, with its header */
};

/*
 * The next record up to @time, whatever it is, of a buffer whose events all sample @common, TID,
 * TIME, CPU and IDENTIFIER, and IP if they have samples. False: there is none.
 */
bool kernel_record_next(struct kernel_stops *ks, u64 common, u64 time,
			struct kernel_record *record);

/* The next note up to @time; false: there is none. */
bool kernel_stops_next(struct kernel_stops *ks, u64 time, struct kernel_note *note);

#endif
