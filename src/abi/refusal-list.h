/*
 * PURPOSE: what the session has refused to the programs of a counter segment (meter.h), for the
 * command that reports on them at its end: a list in the segment's header, behind struct
 * meter_runs. Shapes only.
 *
 * Refusals that differ only in what a reader would not see are one entry: the same run (runs.h),
 * program, event and cause. The session alone writes the list. It reads its own copy of it, since
 * guests can write to this memory; so a reader believes nothing of it either.
 */
#ifndef ABI_REFUSAL_LIST_H
#define ABI_REFUSAL_LIST_H

#include "abi/perf.h"
#include "abi/runs.h"
#include "base/refusal.h"

#define METER_REFUSALS    20u
#define METER_REFUSALS_IN 9216u /* offset in the segment */

struct meter_refusal {
	u32 run;       /* 0: nothing stands here; stored last, when an entry is complete */
	u32 pid;       /* of the process that was refused it first, as the session sees it */
	u32 count;     /* how often; grows */
	u32 has_event; /* 1: `attr` is of the event */
	char comm[16]; /* the process's name then */
	struct pe_attr attr;
	struct refusal refusal;
};

_Static_assert(METER_REFUSALS_IN >= METER_RUNS_IN + sizeof(struct meter_runs), "behind the runs");
_Static_assert(METER_REFUSALS_IN + METER_REFUSALS * sizeof(struct meter_refusal) <= METER_SIZE,
	       "the header has the place of a meter");

static inline struct meter_refusal *meter_refusals(struct counter_segment *segment)
{
	return (struct meter_refusal *)((u8 *)segment + METER_REFUSALS_IN);
}

#endif
