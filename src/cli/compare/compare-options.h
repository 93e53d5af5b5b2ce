/*
 * PURPOSE: what `anyperf compare` was asked for; filled by the option table in compare-options.c.
 */
#ifndef CLI_COMPARE_COMPARE_OPTIONS_H
#define CLI_COMPARE_COMPARE_OPTIONS_H

#include "cli/cmd.h"
#include "cli/compare/compare-gate.h"
#include "cli/determinism.h"

#define COMPARE_NAME_MAX  40
#define COMPARE_SIDES_MAX 8

/* Texts that an option adds one by one. */
struct compare_list {
	const char **at; /* owned; its strings are borrowed from argv */
	u32 n;
};

/* Strings are borrowed from argv unless said otherwise. */
struct compare_opts {
	char *events; /* all -e joined with commas; owned; NULL: the default set */
	const char *pmu;
	const char *machine; /* whose model counts; NULL: host */
	struct deterministic_opts deterministic;
	struct compare_list env;
	struct compare_list names;
	bool show_output;
	const char *input;
	const char *pre, *post;
	long runs;    /* of the time pass; 0: by time */
	double spend; /* --for: seconds */
	long warmup;
	bool counts_only, time_only;
	const char *by;        /* "symbol"; NULL: as a whole */
	const char *from, *to; /* count only between these places; NULL: all */
	const char *save, *baseline;
	bool update;
	struct gate *gates; /* owned */
	u32 nr_gates;
	bool ignore_exit;
	long timeout_ms;

	const char *format;
	const char *output;

	char ***commands; /* an argv for each; owned, their strings are not */
	u32 nr_commands;
};

/*
 * Parses argv and holds the options against each other. Returns 0; or what options_parse() returns
 * for an error or --help. After 0 the caller frees with compare_opts_release().
 */
must_check int compare_opts_parse(struct compare_opts *opts, int argc, char **argv);

/* A time with its unit, "1.5s" or "20ms"; false if @text is none. */
must_check bool compare_seconds(const char *text, double *seconds);

void compare_opts_release(struct compare_opts *opts);

extern const struct option compare_option_table[];
extern const struct section compare_sections[];

#endif
