/*
 * PURPOSE: what `anyperf run` counts of its command and of all that the command starts: one event
 * for each thing that the translator tells apart, opened on the command as `anyperf stat` opens
 * its own, from the command's first instruction to its end.
 *
 * They are events of the PMU `anyperf`, which has a counter for each. So they take none of those
 * that the programs find (--counters).
 *
 * Lifetime: run_counts_open() to run_counts_close(). Locking: none.
 */
#ifndef CLI_RUN_RUN_COUNTS_H
#define CLI_RUN_RUN_COUNTS_H

#include <anyperf/anyperf.h>

#include "abi/meter.h"
#include "cli/report/report.h"

#define RUN_EVENTS METER_SPARE

struct run_counts {
	struct ap_specs *specs;       /* owned */
	struct ap_counters *counters; /* owned; NULL: nothing is counted */
	struct report_event events[RUN_EVENTS];
	u64 start_ns; /* CLOCK_MONOTONIC, when the command was let go */
};

/* The name of a quantity in JSON. */
const char *run_count_name(enum meter_quantity q);

/* Opens the events on @command, which waits to be started. 0, or -errno with the reason. */
must_check int run_counts_open(struct run_counts *c, struct ap_machine *m,
			       struct ap_command *command, struct ap_error *err);

/* The command is let go now. */
void run_counts_start(struct run_counts *c);

/*
 * Makes @r the report of what was counted up to now: one unit, an event for each quantity. 0, or
 * -errno if that cannot be read, and the report says that nothing was counted; -ENODEV: the session
 * has gone.
 */
must_check int run_counts_report(struct run_counts *c, struct report *r);

/* What was opened may be all zeros. */
void run_counts_close(struct run_counts *c);

#endif
