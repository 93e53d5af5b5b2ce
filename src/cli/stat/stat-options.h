/* PURPOSE: what `anyperf stat` was asked for; filled by the option table in stat-options.c. */
#ifndef CLI_STAT_STAT_OPTIONS_H
#define CLI_STAT_STAT_OPTIONS_H

#include "cli/cmd.h"
#include "cli/determinism.h"
#include "cli/report/report.h"

/* --filter, for the events of the -e before it. */
struct stat_filter {
	const char *text;
	size_t from, to; /* where those stand in the text of all events */
};

/* Strings are borrowed from argv unless said otherwise. */
struct stat_opts {
	char *events;      /* all -e joined with commas; allocated; NULL: the default set */
	size_t last_event; /* where the last -e begins in it */
	struct stat_filter *filters; /* allocated */
	u32 nr_filters;
	int detailed; /* how many -d */
	bool null_run;
	bool all_user, all_kernel;
	const char *pmu;       /* auto, kernel, virtual; NULL: auto */
	const char *session;   /* count guests of this session */
	const char *cpu_model; /* that the virtual PMU shows; NULL: auto */
	const char *machine;   /* whose model counts; NULL: host */
	const char *model_beside, *model_windows;
	const char *translations;
	long counters; /* of the virtual PMU; 0: as many as wanted */
	struct deterministic_opts deterministic;
	bool no_inherit;

	const char *pids, *tids, *cpus, *cgroup;
	bool all_cpus;
	const char *each_cgroup; /* of --for-each-cgroup; `cgroup` is the same then */
	bool quiet;
	bool metric_only;
	bool as_is;       /* of options that change nothing */
	bool implied_all; /* all_cpus because nothing was named */
	enum report_aggr aggr;

	long repeat; /* 0: for ever */
	bool table;
	long delay_ms; /* -1: wait for `enable` on the control descriptor */
	long interval_ms, interval_count, timeout_ms;
	bool interval_clear;
	bool summary;
	const char *control;
	const char *pre, *post;
	bool sync;

	const char *separator; /* -x: NULL is text for people */
	bool json;
	bool big_num;
	bool scale;
	bool csv_summary;
	const char *output;
	bool append;
	long log_fd; /* -1: not given */
	int verbose;

	char **command; /* argv of the program, NULL-ended; NULL: none */
};

/*
 * Parses argv and holds the options against each other. Returns 0; or what options_parse() returns
 * for an error or --help. After 0 the caller frees with stat_opts_release().
 */
must_check int stat_opts_parse(struct stat_opts *opts, int argc, char **argv);

void stat_opts_release(struct stat_opts *opts);

/* Whether something else than the command (or a single thread of it) is measured. */
bool stat_opts_has_target(const struct stat_opts *opts);

extern const struct option stat_option_table[];
extern const struct absent_option stat_absent_options[];
extern const struct section stat_sections[];

#endif
