/*
 * PURPOSE: the commands that count in one counter segment (meter.h): that of the `anyperf run`
 * which made it and those of the ones that joined its session. Each has a number; every process
 * that descends from the command inherits it from runtime to runtime, whoever of its ancestors is
 * dead, and writes it into its pages. Shapes only.
 *
 * A run whose number stands in the table is *open*: somebody will want its totals. A page that it
 * has used is taken over by its own threads only, so its total is the sum over the pages with its
 * number of what they have counted since they got it (meter.run_base). When a run is closed its
 * pages are anybody's.
 *
 * Whoever opens a run holds a POSIX record lock on the byte of the segment with its entry's index
 * for as long as it is open. So the entry of one that was killed is free, though its number still
 * stands in it.
 */
#ifndef ABI_RUNS_H
#define ABI_RUNS_H

#include "abi/meter.h"

/*
 * A bit of the number: pages of exited threads stay their own while the run is open, for a report
 * per thread.
 */
#define METER_RUN_KEEP 0x80000000u

#define METER_RUNS 256u /* open at a time */
#define METER_RUNS_IN \
	4096u /* offset in the segment: behind struct counter_segment and struct wire_view */

struct meter_run {
	u32 number;    /* 0: none yet, or closed */
	u32 uncounted; /* atomic: programs that ran natively */
	u32 refused;   /* atomic: calls that the session has refused; refusal-list.h */
	s32 error;     /* the command could not be started: -errno */
};

struct meter_runs {
	u32 last;       /* atomic: the number given last */
	u32 text_of;    /* the run whose `error` the text explains */
	char text[256]; /* a sentence where the errno says too little */
	struct meter_run run[METER_RUNS];
};

_Static_assert(METER_RUNS_IN + sizeof(struct meter_runs) <= METER_SIZE,
	       "the header has the place of a meter");

static inline struct meter_runs *meter_runs(struct counter_segment *segment)
{
	return (struct meter_runs *)((u8 *)segment + METER_RUNS_IN);
}

/* The entry of @number; NULL: it is not open. */
static inline struct meter_run *meter_run_open(struct counter_segment *segment, u32 number)
{
	struct meter_runs *runs = meter_runs(segment);

	for (u32 i = 0; number && i < METER_RUNS; i++)
		if (__atomic_load_n(&runs->run[i].number, __ATOMIC_ACQUIRE) == number)
			return &runs->run[i];
	return NULL;
}

/* Whether the page of an exited thread of run @number is kept for the report. */
static inline bool meter_run_keeps(struct counter_segment *segment, u32 number)
{
	return number & METER_RUN_KEEP && meter_run_open(segment, number);
}

/*
 * A page that may be taken over, in a word of counter_segment.freed: so that one run's need not be
 * looked at by another's threads. 0: none.
 */
static inline u64 meter_freed(u32 run, u32 index)
{
	return (u64)run << 32 | (index + 1);
}

/*
 * Notes that page @index, last used by @run, is METER_FREE. Where there is no room it takes the
 * place of another run's; it is found by its state then.
 */
static inline void meter_note_freed(struct counter_segment *segment, u32 run, u32 index)
{
	for (u32 i = 0; i < SEGMENT_FREED; i++) {
		u64 none = 0;

		if (__atomic_compare_exchange_n(&segment->freed[i], &none, meter_freed(run, index),
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
	for (u32 i = 0; i < SEGMENT_FREED; i++) {
		u64 word = __atomic_load_n(&segment->freed[i], __ATOMIC_RELAXED);

		if (word >> 32 != run &&
		    __atomic_compare_exchange_n(&segment->freed[i], &word, meter_freed(run, index),
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
}

#endif
