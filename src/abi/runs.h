/*
 * PURPOSE: the commands that count in one counter segment (meter.h): that of the `anyperf run`
 * which made it and those of the ones that joined its session. Each has a number; every process
 * that descends from the command inherits it from runtime to runtime, whoever of its ancestors is
 * dead, and writes it into its pages. By it each command is told what concerns its own programs:
 * which ran uncounted, what they were refused, and with METER_RUN_KEEP what each thread has
 * counted. Shapes only.
 *
 * A run whose number stands in the table is *open*: somebody will ask.
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

#endif
