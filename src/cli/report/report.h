/*
 * PURPOSE: the counts of a measurement, put together as the user asked. A command that counts fills
 * a report; a printer only reads it, and does not know who has counted.
 *
 * A report has a line per unit (the whole, a core, a thread ...) and event. Counts are added run by
 * run; means and deviations are over the runs.
 */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include <stdio.h>

#include <anyperf/counters.h>

#include "cli/number.h"

/* What a line is of. */
enum report_aggr {
	AGGR_GLOBAL = 0, /* everything in one line per event */
	AGGR_SOCKET,
	AGGR_DIE,
	AGGR_NODE,
	AGGR_CORE,
	AGGR_CPU, /* -A: no aggregation */
	AGGR_THREAD,
};

/* What derived values know an event as. */
enum report_kind {
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

struct report_event {
	s32 spec;          /* its number in the list of specs; -1: a tool event */
	const char *name;  /* as shown; allocated, owned by the report */
	const char *asked; /* as asked for, if only user mode could be counted; borrowed; or NULL */
	const char *cgroup; /* its own, "" for none of a list; NULL: no -G. Owned like the name */
	const char *unit;   /* "msec", "Joules", ""; borrowed from the spec */
	const char *filter; /* of a tracepoint; borrowed, NULL: none */
	double scale;       /* count x scale is in `unit` */
	enum report_kind kind;
	u64 modes;    /* the attr's exclude bits: only counts of the same modes are related */
	bool exact;   /* counted by the virtual PMU: a deviation of nothing is worth a word */
	bool modeled; /* by the model of a machine: style.machine */
	bool refused; /* could not be opened, at least somewhere */
	bool with_translator;  /* what the translator does itself is in the count */
	struct ap_error error; /* why; valid if refused */
};

/* One group of places. Fields that the aggregation does not use are -1 or empty. */
struct report_unit {
	int socket, die, node, core, cpu;
	u32 cpus; /* how many CPUs are in it */
	pid_t tid;
	char comm[16];
};

/* Mean and deviation, a sample at a time (Welford). */
struct series {
	u32 n;
	double mean, m2;
};

struct report_cell {
	bool present; /* there is such an event in this unit */
	enum ap_status status;
	u32 places, opened;   /* AP_STATUS_PARTIAL: it was opened in so many of its places */
	u64 enabled, running; /* ns, summed over places and runs */
	u64 value;            /* as read, summed over places and runs */
	u64 scaled;           /* of the last run: an integer, exactly as the arithmetic gives it */
	struct series count;  /* of scaled counts, one sample a run that counted */
	double *per_run;      /* the same samples; owned, NULL with one run */
};

enum report_part {
	PART_WHOLE = 0, /* the measurement */
	PART_INTERVAL,  /* what happened since the last one */
	PART_SUMMARY,   /* the sum of intervals */
};

struct report {
	enum report_aggr aggr;
	enum report_part part;
	u32 nr_events, nr_units;
	u32 room;                    /* units that there is memory for */
	struct report_event *events; /* borrowed from the run, which outlives its reports */
	struct report_unit *units;   /* owned */
	struct report_cell *cells;   /* owned; [unit * nr_events + event] */
	u32 runs;
	bool many;                 /* -r was given: show deviations */
	struct series elapsed;     /* seconds */
	double *run_elapsed;       /* each run's; owned; NULL with one run */
	double user, sys;          /* seconds, of the child */
	bool has_usage;            /* those two are known */
	double at;                 /* PART_INTERVAL: seconds since the start */
	u32 interval;              /* PART_INTERVAL: its number, from 1 */
	const char *target;        /* behind "Performance counter stats for "; borrowed */
	char *const *command;      /* borrowed; NULL: none */
	const char *places;        /* what they are: "CPUs", "threads"; static */
	const char *apart;         /* the option that shows each by itself; static; NULL: none */
	struct ap_machine *guests; /* on which the command is a guest; borrowed; NULL: it is not */
	bool translated;           /* times and software events are those of a translated run */
	bool deterministic;        /* --deterministic, with the two below */
	u64 seed;
	u32 nondet;      /* what the runs so far have used; cli/determinism.h */
	int exit_status; /* of the command; valid when part is not PART_INTERVAL */
	int signal;      /* that ended the command in its last run; 0: none */
	bool timed_out;  /* --timeout ended the command */
};

void series_add(struct series *s, double sample);

/* The standard deviation of the mean; 0 with fewer than two samples. */
double series_error(const struct series *s);

/* The same in percent of the mean, as behind "+-". */
double series_error_percent(const struct series *s);

/* What the event is to report/metric.c. */
enum report_kind report_kind_of(const struct perf_event_attr *attr);

/* "MODIFIED:u" for an event that the fallback to user mode changed. To be freed. */
char *report_event_name(const struct ap_spec *spec, bool user_only);

/* "'make -j2'": a command line as a report's target; the caller's to free. */
char *report_command(char *const *argv);

/* Allocates nothing; @events (of @nr) are borrowed. */
void report_init(struct report *r, enum report_aggr aggr, struct report_event *events, u32 nr);
void report_release(struct report *r);

/*
 * The unit that @unit is or belongs to, made if it is new. Comparing is by what the aggregation
 * looks at. Returns its index.
 */
u32 report_find_unit(struct report *r, const struct report_unit *unit);

struct report_cell *report_at(const struct report *r, u32 event, u32 unit);

/*
 * Adds one run's count of an event in a unit. @sum is over the places of the unit; @scale is
 * whether counts of multiplexed events are scaled up.
 */
void report_add(struct report *r, u32 event, u32 unit, enum ap_status status,
		const struct ap_value *sum, bool scale);

/* What stands in place of a count that is none: "<not counted>" and others. */
const char *report_no_count(const struct report_cell *cell);

/* "1 of 2 CPUs", of an event that is open in part only; "" for any other. Returns @buf. */
const char *report_part_text(const struct report *r, u32 event, u32 unit, char *buf, size_t size);

/* The mean count in the event's unit. */
double report_value(const struct report *r, u32 event, u32 unit);

/* How much of its time the event counted, in percent; 100 if it was never enabled, as perf says. */
double report_percent(const struct report_cell *cell);

/* How a printer should print. */
struct report_style {
	FILE *out;
	const char *separator; /* CSV */
	struct number_style numbers;
	bool colour;
	bool table;          /* each run's time */
	bool csv_summary;    /* mark the summary's lines */
	bool metric_only;    /* only what counts are in relation to each other */
	bool brief_head;     /* intervals: this one comes without the heading */
	int width;           /* columns to wrap notes at */
	const char *pmu;     /* "kernel" or "virtual": who counted */
	const char *pmu_why; /* and why, a sentence; "" says nothing of it in text */
	const char *machine; /* whose model has counted some events; NULL: none */
	const char *windows; /* in which it sees the command; NULL: it sees all, or no machine */
	bool estimated;      /* and has left out something between them */
	bool unmodeled;      /* there was no memory for a model of some process */
	const char *hint;    /* a sentence below everything; NULL: none */
};

void report_print_text(const struct report *r, const struct report_style *style);
void report_print_csv(const struct report *r, const struct report_style *style);
void report_print_json(const struct report *r, const struct report_style *style);

#endif
