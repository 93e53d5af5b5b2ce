/*
 * PURPOSE: what threads have counted, out of the counter segment (abi/meter.h): the source of the
 * cpu PMU and of the translator's.
 *
 * Ownership: the session maps the segment for its whole life; guests write to it at any time, and
 * nothing of it is believed but as their own counts. Order: a sum belongs to the open instant
 * (task/instant.h), in which a thread is read once.
 */
#ifndef SESSION_TASK_METERS_H
#define SESSION_TASK_METERS_H

#include "abi/meter.h"
#include "pmu/drivers.h"

struct guest_thread;
struct task;

struct meters {
	int fd; /* memfd of the segment */
	struct counter_segment *segment;
	u32 slots; /* mapped ones; the header's number is only believed before there are guests */
	u32 there; /* those below it may be looked at */
	u32 asked; /* how many were said to be in use when the pages were last counted */
	u32 wanted[7]; /* how many open events need the bit of MODEL_WANTS */
};

/* What a model has counted, likewise; of a thread of which somebody has asked for it. */
struct modeled_counts {
	u64 before[MODEL_COUNTERS];
	u64 seen[MODEL_COUNTERS];
	u64 seen_at;
	u32 seen_meter;
};

/* A thread's part: what of its count is not in its meter, and what was read of it. */
struct thread_counts {
	u64 before[METER_QUANTITIES]; /* counted in other meters than this, if it ever changed */
	u64 seen[METER_QUANTITIES];   /* its meter's sums, the first `have` */
	u64 seen_at;                  /* instant.number of that */
	u64 seen_parked;              /* they are of this call of its, as in its meter; or 0 */
	u32 seen_meter;
	u32 have;
	struct modeled_counts *modeled; /* NULL: nobody has asked */
};

/*
 * The first meter at index *@at or behind it that somebody has written to, and *@at its index;
 * NULL: there is none. How many there are said to be is a guest's word: where that would make more
 * pages than there are, those that are not there are not looked at.
 */
struct meter *meters_next(struct meters *meters, u32 *at);

/* NULL: it has none. Written by its thread at any time. */
struct meter *guest_thread_meter(const struct guest_thread *th);
/*
 * Where @th counts from now on. Nothing may have been counted for it elsewhere since the session
 * last read: that is so before its first instruction, and at an exec that changes meters.
 */
void guest_thread_set_meter(struct guest_thread *th, u32 meter);
/* What @th has counted in the meter it has now. */
u64 guest_thread_sum(struct guest_thread *th, enum meter_quantity q);

/*
 * For the instant @th has counted @count with @counter of a model, in the meter it has now; of
 * others what stands there.
 */
void guest_thread_modeled_at(struct guest_thread *th, u32 counter, u64 count);

/* What an event of these counts. */
enum meter_quantity meters_quantity(enum cpu_what what);
/* For struct pmu_source: how much of CPU_* @what the task has done. */
u64 meters_read(void *ctx, struct task *task, u32 what);
/* Likewise: an event that guests are to model the machine for. */
void meters_want(void *ctx, struct task *task, u32 parts, bool open);
/* Likewise: has a guest left out what it was to estimate? */
bool meters_estimated(void *ctx);

#endif
