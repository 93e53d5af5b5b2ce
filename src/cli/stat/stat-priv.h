/*
 * PURPOSE: one `anyperf stat` at work, as its parts hand it around: stat-events.c says what is
 * counted, stat-open.c opens and reads it, stat-run.c lets the time pass, stat-output.c
 * prints, cmd-stat.c has the runs.
 */
#ifndef CLI_STAT_STAT_PRIV_H
#define CLI_STAT_STAT_PRIV_H

#include <anyperf/anyperf.h>

#include "cli/child.h"
#include "cli/control-words.h"
#include "cli/signals.h"
#include "cli/report/report.h"
#include "cli/stat/stat-options.h"
#include "backend/backend.h"

/* What stat knows without a counter, in ns since the start. */
struct stat_times {
	u64 duration;
	u64 user, system; /* CPU time of the command */
};

struct stat_job {
	struct stat_opts opts;
	struct ap_machine_opts machine_opts;
	struct ap_machine *machine;
	bool session_lost;      /* it has been said */
	struct ap_specs *specs; /* NULL if nothing needs a counter */
	struct report_event *events;
	u32 nr_events;
	pid_t *pids; /* of -p or -t; owned */
	u32 nr_pids;

	/* Of the run that goes on. */
	struct ap_counters *counters; /* NULL if nothing could be opened */
	struct report_unit *places;   /* what each place of the counters is; owned */
	struct ap_value *last;        /* [spec * places + place] at the last interval; owned */
	struct child child;
	struct signals signals;
	struct control control;
	struct stat_times times, last_times; /* at the last read, and at the last interval's */
	u64 start_ns;                        /* CLOCK_MONOTONIC, when the command was let go */
	bool said_end;                       /* that a run was cut short has been said */
	bool said_partial;                   /* what stat_print_partial() says */
	bool enabled; /* the counters count, or will from the command's execve on */

	struct ap__advice advice; /* of what the target hinders; remedy 0: nothing does */
	char advice_option[2];    /* a name of it: "p" or "t" */
	const char *turned;       /* why the kernel is given up after all; NULL: it is not */
	struct ap_error refused;  /* and what it has refused then */
	char *turned_back;        /* why the virtual PMU is, for good; owned; NULL: it is not */
	char *target;             /* behind "stats for "; owned */
	char *each_events;  /* --for-each-cgroup: the events, written out; owned; NULL: it is not */
	char *each_cgroups; /* and a cgroup for each; owned */
	struct report_style style;
	char machine_name[64]; /* style.machine */
	char windows_text[40]; /* style.windows */
};

/* The events of the options, in their order. 0, or -1 after saying what is wrong with them. */
must_check int stat_events_prepare(struct stat_job *st);

/* A sentence on what else the model of a machine could count, or how; NULL: none. After a run. */
const char *stat_hint(const struct stat_job *st);

/* The text of those that need a counter, to be freed; NULL if the text is wrong. */
char *stat_counted_text(const struct stat_job *st);

/* The cgroups of the events, as -G names them; NULL: none. */
const char *stat_cgroups(const struct stat_job *st);

/* The attr's modes as in struct report_event. */
u64 stat_modes_of(const struct perf_event_attr *attr);

/* A string that grows: @text (NULL: none yet) with @more behind it. Takes @text, to be freed. */
char *stat_joined(char *text, const char *more);

/* calloc() that does not fail, and gives memory for nothing too. */
void *must_alloc(size_t n, size_t size);

/* Says @err on stderr. */
void stat_say(const struct ap_error *err);

/* Gives an attr of the specs what all of stat's have, and the modes of the options. */
void stat_shape_attr(const struct stat_job *st, struct perf_event_attr *attr);

/* Whether it is the virtual PMU that counts. */
bool stat_is_virtual(const struct stat_job *st);
/* Whose PMU counts: "kernel" or "virtual", which it is, too, where a session plays the kernel. */
const char *stat_pmu_name(const struct stat_job *st);
/* Why it does; borrowed, valid as long as the machine. */
const char *stat_pmu_why(const struct stat_job *st);
/* Whose model has counted some of @r's events; NULL: none. Borrowed from @st. */
const char *stat_machine(struct stat_job *st, const struct report *r);
/* In which windows that sees programs, and whether they have had an effect, for @r in st->style. */
const char *stat_windows(struct stat_job *st, const struct report *r);

/*
 * Makes the machine of who counts; if the virtual PMU would be needed and cannot count the target,
 * with st->advice. 0, or -1 after saying why there is none. In stat-pmu.c.
 */
must_check int stat_choose_pmu(struct stat_job *st);

/*
 * Whether the virtual PMU could have counted what the kernel has refused as a whole with @err.
 * Unless the kernel was asked for, st->turned then says why, and the run is to be begun again after
 * stat_turn().
 */
bool stat_virtual_would(struct stat_job *st, const struct ap_error *err);

/*
 * Whether the command, which the virtual PMU has refused with @err, is one that the kernel can run,
 * and the virtual PMU was nobody's wish. st->turned_back then says why, and the run is to be begun
 * again after stat_turn().
 */
bool stat_kernel_would(struct stat_job *st, const struct ap_error *err);

/*
 * Prepares the events anew, for the other PMU, if st->turned or turned_back say so and it was not
 * done. 1: done; 0: there is nothing to turn to; -1 after saying why not.
 */
must_check int stat_turn(struct stat_job *st);

void stat_events_release(struct stat_job *st);

/* Makes the machine, the events and the target from the options. 0, or -1 after saying why not. */
must_check int stat_prepare(struct stat_job *st);

/* Opens the events on the target (the child, if that is the target). 0, or -1 after saying why. */
must_check int stat_open(struct stat_job *st);

/*
 * Reads all counts, with the tool events as st->times has them, and adds them as one run to @r:
 * since the start, or with @since_last since the read before this one of that kind.
 */
void stat_read(struct stat_job *st, struct report *r, bool since_last);

/* What the places of open counters are: "CPUs". *@apart: the option that shows each; NULL: none. */
const char *stat_places_name(const struct stat_job *st, const char **apart);

void stat_close(struct stat_job *st);
void stat_release(struct stat_job *st);

/*
 * Runs the command, or waits for the end, once. Adds to @sum, and prints intervals. Returns 0; or
 * -1 after saying what went wrong, with the exit status in *@failure. */
must_check int stat_run(struct stat_job *st, struct report *sum, int *failure);

/*
 * What a note on stderr begins with, so that who reads columns there passes over it; NULL: JSON
 * stands there, alone, or --quiet was given.
 */
const char *stat_note_mark(const struct stat_job *st);

/* Where the counts go. Returns 0 or, after saying what went wrong, an exit status. */
must_check int stat_output_open(struct stat_job *st);
/* As perf does at the top of a file, so that several measurements in it can be told apart. */
void stat_output_start(const struct stat_job *st);
/* Prints a report in the form that was asked for. */
void stat_print(struct stat_job *st, const struct report *r);
/* As comments, where the form has no other place for them: what reads columns passes over them. */
void stat_print_deterministic(const struct stat_job *st, const struct report *r);
void stat_print_modeled(const struct stat_job *st, const struct report *r);
/*
 * On stderr, why events could be opened in a part of their places only, where the form has no place
 * for it. Once for all runs.
 */
void stat_print_partial(struct stat_job *st);
/* On stderr, that a count is short by what is named first. JSON has a member for it. */
void stat_print_uncounted(const struct stat_job *st);

u64 now_ns(void);

#endif
