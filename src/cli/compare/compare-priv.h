/*
 * PURPOSE: one `anyperf compare` at work, as its parts hand it around: compare-run.c runs a command
 * once, compare-counts.c counts, compare-times.c takes times, cmd-compare.c puts the output
 * together with the printers.
 */
#ifndef CLI_COMPARE_COMPARE_PRIV_H
#define CLI_COMPARE_COMPARE_PRIV_H

#include <stdio.h>
#include <sys/resource.h>

#include <anyperf/anyperf.h>

#include "cli/child.h"
#include "cli/compare/compare-gate.h"
#include "cli/compare/compare-options.h"
#include "cli/compare/statistics.h"
#include "cli/number.h"
#include "cli/signals.h"

#define COUNT_RUNS_MIN 2 /* as many as there must be to say that they are equal */
#define COUNT_RUNS_MAX 5 /* to show how far they are apart if they are not */

/* What was counted of one event in one command. */
struct side_count {
	char *name; /* as shown; owned */
	u64 run[COUNT_RUNS_MAX];
	u32 runs;            /* that counted it */
	bool refused;        /* it could not be opened, or a baseline does not have it */
	struct ap_error why; /* valid if refused */
};

/* What is taken of a native run. */
enum timed_quantity {
	TIMED_ELAPSED, /* seconds */
	TIMED_CPU,     /* user and system, seconds */
	TIMED_MEMORY,  /* the most that was resident at once, bytes */
	TIMED_FAULTS,  /* page faults */
	TIMED_QUANTITIES,
};

/* One of the commands that are compared. */
struct compare_side {
	char *const *argv;
	const char *name;           /* what it is called in the output */
	char *title;                /* its command line; owned */
	struct ap_machine *machine; /* that counts it; NULL: not yet */
	struct ap_specs *specs;
	struct side_count *counts; /* owned; one per event */
	u32 nr_counts;
	u32 from_places; /* --from: how many of the groups of events are at its places */
	u32 count_runs;
	bool stored;                     /* it is a baseline: nothing of it is run */
	bool profiled_twice;             /* by --by, since its runs are not the same */
	double *timed[TIMED_QUANTITIES]; /* a number for each round; owned */
	u32 nondet; /* what the runs have used that varies; cli/determinism.h */
};

/* What a gate says of a command. */
struct compare_judged {
	const struct gate *gate;
	const struct compare_side *side;
	enum gate_result result;
	bool known; /* the change is; else why says why not */
	struct gate_change change;
	char why[256];
};

struct baseline;
struct symbol_row;

/* Functions, with what was counted in them: compare-symbols.h. */
struct symbol_table {
	struct symbol_row *rows; /* owned */
	u32 *slots;              /* numbers of rows from 1, by their names' hashes; owned */
	u32 nr, nr_slots;
	u64 period;   /* what a count of 1 stands for; 0: there are none */
	bool exact;   /* they are counts, and no samples */
	u64 left_out; /* a function that the baseline does not have had at most so many */
};

struct compare_job {
	struct compare_opts opts;
	struct compare_side *sides; /* owned */
	u32 nr_sides;
	u32 rounds;                /* of the time pass that are complete */
	char **environment;        /* of the commands; owned, its strings too */
	struct ap_machine *native; /* that runs are timed on; NULL: not yet */
	struct signals signals;
	int no_output; /* descriptors that the commands get */
	int input;
	char input_hash[17]; /* of what --input has; "": there is none */
	bool progress;       /* somebody looks at standard error */
	const char
		*elsewhere; /* what a baseline was made with that some programs look at; or NULL */
	struct baseline *stored;       /* what sides[0] is of; owned; NULL: there is none */
	struct symbol_table symbols;   /* of --by */
	struct compare_judged *judged; /* owned; a gate and a command each */
	u32 nr_judged;
	int status; /* to exit with, if the comparison came to an end before its time; else 0 */
	FILE *out;
};

/* How one run of a command ended. */
struct compare_end {
	struct ap_command_end end;
	u64 elapsed_ns;
	struct rusage usage;
	bool timed_out;
};

/* A command's environment, by the options. */
void compare_environment(struct compare_job *job);
void compare_environment_free(struct compare_job *job);

/* A new process for @side's command, which waits on @m. 0, or -1 after saying why there is none. */
must_check int compare_new(struct compare_job *job, struct compare_side *side, struct ap_machine *m,
			   struct ap_command **command);

/*
 * Lets it go and waits for its end; frees @command in every case. 0; or -1, after a sentence, if
 * there is nothing to be had of the run: with job->status set.
 */
must_check int compare_run(struct compare_job *job, struct compare_side *side,
			   struct ap_command *command, struct compare_end *end);

/* Whether the user has asked for an end. */
bool compare_is_interrupted(const struct compare_job *job);

/* Waits until the wall clock shows another second than @second, or the user asks for an end. */
void compare_wait_for_second(struct compare_job *job, s64 second);

/* A line on standard error for who waits, in place of the last one; "" takes it away. */
void compare_progress(const struct compare_job *job, const char *fmt, ...) printf_like(2, 3);

/* A machine with the virtual or the kernel's PMU, by the options; for ap_machine_free(). */
struct ap_machine *compare_new_machine(const struct compare_job *job);

/* The machines that count, and the events. As below; once, before compare_count(). */
must_check int compare_prepare_counts(struct compare_job *job);

/* The counts pass. 0, or -1 with job->status set, after saying what ended it. */
must_check int compare_count(struct compare_job *job);

/* Native runs ahead of everything, for caches and files that a first run makes. As above. */
must_check int compare_warm_up(struct compare_job *job);

/* The time pass. 0, or -1 with job->status set, after saying what ended it. */
must_check int compare_time(struct compare_job *job);

/* What a quantity is called, in texts and gates. */
const char *timed_name(enum timed_quantity q);

/* The ratio of @side to the first command; false if there is none. */
bool timed_ratio(const struct compare_job *job, const struct compare_side *side,
		 enum timed_quantity q, struct ratio *r);

/* All runs counted the same. */
bool side_count_is_exact(const struct side_count *c);
u64 side_count_min(const struct side_count *c);
u64 side_count_max(const struct side_count *c);
/* The middle one of its runs. */
u64 side_count_median(const struct side_count *c);

/*
 * Makes sides[0] of the file of --baseline. 0, or -1 after saying what is wrong with it: with
 * job->status 2 if it cannot be compared with what is run here. With --update such a file is as
 * good as none, and the comparison is of one command.
 */
must_check int compare_baseline_load(struct compare_job *job);

/*
 * What could be told of the baseline only after the command has run. 0, or -1 after saying it, with
 * job->status 2.
 */
must_check int compare_baseline_check(struct compare_job *job);

/* The name of an environment's @entry, for as long as @name lives. */
const char *compare_variable(const char *entry, char *name, size_t size);

#define BASELINE_SCHEMA "anyperf-baseline-1"

/* Whether what --save or --update name can be written, before anything has run; as below. */
must_check int compare_baseline_try(const struct compare_job *job);

/* What the baseline has counted in functions. 0, or -1 after saying that it has nothing. */
must_check int compare_baseline_symbols(struct compare_job *job);

/* Writes what --save or --update want to keep. 0, or -1 after saying why not. */
must_check int compare_baseline_save(const struct compare_job *job);
void compare_baseline_free(struct compare_job *job);

/* Whether what gates are about is going to be measured: 0, or -1 after saying of which not. */
must_check int compare_check_gates(const struct compare_job *job);

/*
 * Judges what was measured; the status to exit with: 0, 1 a gate is broken, 2 one is not to tell.
 */
int compare_judge(struct compare_job *job);

/*
 * @text, on one line and without what a terminal obeys: commands and functions are called whatever
 * somebody calls them, and a log reads lines.
 */
char *compare_line(char *text);

/* Whether the virtual PMU counts. */
bool compare_is_virtual(const struct compare_job *job);

void compare_print_text(const struct compare_job *job);
void compare_print_json(const struct compare_job *job);
void compare_print_markdown(const struct compare_job *job, FILE *out);
void compare_print_csv(const struct compare_job *job);

/*
 * The text, with a line for each gate that is not held as the log of a GitHub workflow takes it;
 * and Markdown in the file that the runner names. 0, or -1 after saying that it cannot be written.
 */
must_check int compare_print_github(const struct compare_job *job);

#endif
