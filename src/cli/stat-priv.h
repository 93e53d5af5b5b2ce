/*
 * PURPOSE: one `anyperf stat` at work, as its parts hand it around: stat-open.c says what is opened
 * and reads it, stat-run.c lets the time pass, cmd-stat.c puts the output together.
 */
#ifndef CLI_STAT_PRIV_H
#define CLI_STAT_PRIV_H

#include <anyperf/anyperf.h>

#include "cli/child.h"
#include "cli/signals.h"
#include "cli/stat-control.h"
#include "cli/stat-report.h"
#include "cli/virtual.h"

struct stat_job {
	struct stat_opts opts;
	struct ap_machine *machine;
	struct ap_specs *specs; /* NULL with --null */
	struct stat_event *events;
	u32 nr_events;
	pid_t *pids; /* of -p or -t; owned */
	u32 nr_pids;

	/* Of the run that goes on. */
	struct ap_counters *counters; /* NULL if nothing could be opened */
	struct stat_unit *places;     /* what each place of the counters is; owned */
	struct ap_value *last;        /* [spec * places + place] at the last interval; owned */
	struct child child;
	struct signals signals;
	struct control control;
	u64 start_ns; /* CLOCK_MONOTONIC, when the command was let go */
	bool enabled; /* the counters count, or will from the command's execve on */

	struct virtual_pmu virtual; /* session NULL: the kernel counts */
	char pmu_why[400];          /* why this PMU, a sentence; "" if nobody could wonder */
	char *target;               /* behind "stats for "; owned */
	struct stat_style style;
};

/* Makes the machine, the events and the target from the options. 0, or -1 after saying why not. */
must_check int stat_prepare(struct stat_job *st);

/* Opens the events on the target (the child, if that is the target). 0, or -1 after saying why. */
must_check int stat_open(struct stat_job *st);

/*
 * Reads all counts and adds them as one run to @r: since the start, or with @since_last since the
 * read before this one of that kind.
 */
void stat_read(struct stat_job *st, struct stat_report *r, bool since_last);

void stat_close(struct stat_job *st);
void stat_release(struct stat_job *st);

/* Runs the command, or waits for the end, once. Adds to @sum, and prints intervals. Returns 0; or -1
 * after saying what went wrong, with the exit status in *@failure. */
must_check int stat_run(struct stat_job *st, struct stat_report *sum, int *failure);

/* Prints a report in the form that was asked for. */
void stat_print(struct stat_job *st, const struct stat_report *r);

u64 now_ns(void);

#endif
