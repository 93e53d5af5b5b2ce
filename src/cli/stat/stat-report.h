/*
 * PURPOSE: what a printer gets to see: the counts of a measurement, put together as the user asked,
 * without a word about where they came from. Backends and the run loop fill it, printers only read.
 *
 * A report has a line per unit (the whole, a core, a thread ...) and event. Counts are added run by
 * run; means and deviations are over the runs.
 */
#ifndef CLI_STAT_STAT_REPORT_H
#define CLI_STAT_STAT_REPORT_H

#include <stdio.h>

#include <anyperf/counters.h>

#include "cli/number.h"
#include "cli/stat/stat-options.h"

/* What derived values know an event as. */
enum stat_kind {
	KIND_OTHER = 0,
	KIND_CPU_TIME, /* task-clock, cpu-clock: nanoseconds */
	KIND_CYCLES,
	KIND_INSTRUCTIONS,
	KIND_CACHE_REFS,
	KIND_CACHE_MISSES,
	KIND_BRANCHES,
	KIND_BRANCH_MISSES,
	KIND_STALLED_FRONT,
	KIND_STALLED_BACK,
	KIND_L1D_ALL,
	KIND_L1D_MISSES,
	KIND_L1I_ALL,
	KIND_L1I_MISSES,
	KIND_LL_ALL,
	KIND_LL_MISSES,
	KIND_DTLB_ALL,
	KIND_DTLB_MISSES,
	KIND_ITLB_ALL,
	KIND_ITLB_MISSES,
	KIND_DURATION, /* this and the next two are tool events: nanoseconds, without a counter */
	KIND_USER_TIME,
	KIND_SYSTEM_TIME,
};

/* perf's tool events: the names and what they are; a name of NULL ends the array. In stat-events.c. */
struct stat_tool {
	const char *name, *desc;
	enum stat_kind kind;
};

extern const struct stat_tool stat_tools[];

struct stat_event {
	s32 spec;           /* its number in the list of specs; -1: a tool event */
	const char *name;   /* as shown; allocated, owned by the report */
	const char *cgroup; /* its own, "" for none of a list; NULL: no -G. Owned like the name */
	const char *unit;   /* "msec", "Joules", ""; borrowed from the spec */
	const char *filter; /* of a tracepoint; borrowed, NULL: none */
	double scale;       /* count x scale is in `unit` */
	enum stat_kind kind;
	u64 modes;    /* the attr's exclude bits: only counts of the same modes are related */
	bool exact;   /* counted by the virtual PMU: a deviation of nothing is worth a word */
	bool refused; /* could not be opened, at least somewhere */
	struct ap_error error; /* why; valid if refused */
};

/* One group of places. Fields that the aggregation does not use are -1 or empty. */
struct stat_unit {
	int socket, die, node, core, cpu;
	u32 cpus; /* how many CPUs are in it */
	pid_t tid;
	char comm[16];
};

/* Mean and deviation, a sample at a time (Welford). */
struct stat_series {
	u32 n;
	double mean, m2;
};

struct stat_cell {
	bool present; /* there is such an event in this unit */
	enum ap_status status;
	u64 enabled, running; /* ns, summed over places and runs */
	u64 value;            /* as read, summed over places and runs */
	u64 scaled;           /* of the last run: an integer, exactly as the arithmetic gives it */
	struct stat_series count; /* of scaled counts, one sample a run that counted */
	double *per_run;          /* the same samples; owned, NULL with one run */
};

enum stat_part {
	PART_WHOLE = 0, /* the measurement */
	PART_INTERVAL,  /* what happened since the last one */
	PART_SUMMARY,   /* the sum of intervals */
};

struct stat_report {
	enum stat_aggr aggr;
	enum stat_part part;
	u32 nr_events, nr_units;
	u32 room;                  /* units that there is memory for */
	struct stat_event *events; /* borrowed from the run, which outlives its reports */
	struct stat_unit *units;   /* owned */
	struct stat_cell *cells;   /* owned; [unit * nr_events + event] */
	u32 runs;
	bool many;                  /* -r was given: show deviations */
	struct stat_series elapsed; /* seconds */
	double *run_elapsed;        /* each run's; owned; NULL with one run */
	double user, sys;           /* seconds, of the child */
	bool has_usage;             /* those two are known */
	double at;                  /* PART_INTERVAL: seconds since the start */
	u32 interval;               /* PART_INTERVAL: its number, from 1 */
	const char *target;         /* behind "Performance counter stats for "; borrowed */
	char *const *command;       /* borrowed; NULL: none */
	struct ap_machine *guests;  /* on which the command is a guest; borrowed; NULL: it is not */
	bool deterministic;         /* --deterministic, with the two below */
	u64 seed;
	u32 nondet;      /* what the runs so far have used; cli/run/deterministic.h */
	int exit_status; /* of the command; valid when part is not PART_INTERVAL */
};

void series_add(struct stat_series *s, double sample);

/* The standard deviation of the mean; 0 with fewer than two samples. */
double series_error(const struct stat_series *s);

/* The same in percent of the mean, as behind "+-". */
double series_error_percent(const struct stat_series *s);

/* What the event is to stat-metric.c. */
enum stat_kind stat_kind_of(const struct perf_event_attr *attr);

/* Allocates nothing; @events (of @nr) are borrowed. */
void report_init(struct stat_report *r, enum stat_aggr aggr, struct stat_event *events, u32 nr);
void report_release(struct stat_report *r);

/*
 * The unit that @unit is or belongs to, made if it is new. Comparing is by what the aggregation looks
 * at. Returns its index.
 */
u32 report_unit(struct stat_report *r, const struct stat_unit *unit);

struct stat_cell *report_cell(const struct stat_report *r, u32 event, u32 unit);

/*
 * Adds one run's count of an event in a unit. @sum is over the places of the unit; @scale is whether
 * counts of multiplexed events are scaled up.
 */
void report_add(struct stat_report *r, u32 event, u32 unit, enum ap_status status,
		const struct ap_value *sum, bool scale);

/* The mean count in the event's unit. */
double report_value(const struct stat_report *r, u32 event, u32 unit);

/* How much of its time the event counted, in percent; 100 if it was never enabled, as perf says. */
double report_percent(const struct stat_cell *cell);

/* How a printer should print. */
struct stat_style {
	FILE *out;
	const char *separator; /* CSV */
	struct number_style numbers;
	bool colour;
	bool table;          /* each run's time */
	bool csv_summary;    /* mark the summary's lines */
	bool brief_head;     /* intervals: this one comes without the heading */
	int width;           /* columns to wrap notes at */
	const char *pmu;     /* "kernel" or "virtual": who counted */
	const char *pmu_why; /* and why, a sentence; "" says nothing of it in text */
};

void stat_print_text(const struct stat_report *r, const struct stat_style *style);
void stat_print_csv(const struct stat_report *r, const struct stat_style *style);
void stat_print_json(const struct stat_report *r, const struct stat_style *style);

#endif
