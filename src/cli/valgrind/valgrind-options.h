/*
 * PURPOSE: the command lines of Valgrind, as far as they are callgrind's and cachegrind's.
 */
#ifndef CLI_VALGRIND_VALGRIND_OPTIONS_H
#define CLI_VALGRIND_VALGRIND_OPTIONS_H

#include "cli/cmd.h"

enum valgrind_tool { TOOL_CALLGRIND, TOOL_CACHEGRIND };

/* Functions that an option names, with wildcards. */
struct valgrind_functions {
	const char **pattern; /* owned; the texts are borrowed */
	u32 nr;
};

struct valgrind_opts {
	const char *tool_name;
	enum valgrind_tool tool;
	const char *log_file, *callgrind_out, *cachegrind_out;
	long log_fd; /* -1: not given */
	bool quiet, version;
	int verbose;
	bool trace_children, separate_threads;
	bool collect, collect_given, instrument;
	bool dump_instr, dump_line, compress_strings, compress_pos, combine_dumps;
	bool cache_sim, cache_sim_given, branch_sim, skip_plt;
	long recursions;
	const char *geometry[3]; /* I1, D1, LL; NULL: this machine's */
	struct valgrind_functions toggle, dump_before, dump_after, zero_before, skip;
	char *const *command;
	char *env; /* a copy of $VALGRIND_OPTS, whose words options may be; owned */
};

extern const struct option valgrind_option_table[];
extern const struct section valgrind_sections[];

/* As options_parse(), with --version served as --help is; what is not taken was said. */
must_check int valgrind_opts_parse(struct valgrind_opts *opts, int argc, char **argv);
void valgrind_opts_release(struct valgrind_opts *opts);

/* Whether a pattern of callgrind's, with * and ?, fits all of @name. */
bool valgrind_fits(const char *pattern, const char *name);
bool valgrind_names(const struct valgrind_functions *f, const char *name);

#endif
