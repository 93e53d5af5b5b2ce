/* PURPOSE: the options of `anyperf record`: their table, and what they mean once parsed. */
#ifndef CLI_RECORD_RECORD_OPTIONS_H
#define CLI_RECORD_RECORD_OPTIONS_H

#include "cli/cmd.h"

enum call_graph { GRAPH_NONE = 0, GRAPH_FP, GRAPH_DWARF, GRAPH_LBR };

enum switch_when { SWITCH_NEVER = 0, SWITCH_SIGNAL, SWITCH_SIZE, SWITCH_TIME };

/* For the tracepoints of one -e: those that stand in the text of all from one place to another. */
struct record_filter {
	const char *text;
	size_t from, to;
};

struct record_opts {
	char *events; /* all of -e; owned, NULL: none */
	size_t last_event;
	struct record_filter *filters; /* owned */
	u32 nr_filters;
	long freq; /* 0: not given */
	bool freq_max;
	long period; /* 0: not given */

	enum call_graph graph;
	u32 dump_size;   /* of the stack, with GRAPH_DWARF */
	u64 branch_type; /* 0: no branches */
	bool addresses;  /* -d */
	const char *user_regs;
	const char *pmu;     /* NULL: auto */
	const char *machine; /* whose model counts; NULL: host */
	const char *model_windows;
	bool no_inherit;
	bool exact; /* every instruction is counted, and nothing sampled */
	bool alloc_sites;
	const char *toggle;

	const char *pids, *tids, *cpus, *cgroup;
	bool all_cpus;

	const char *output; /* NULL: perf.data, or a pipe */
	int level;          /* of zstd; 0: not compressed */
	long pages;
	bool overwrite;
	enum switch_when switch_when;
	u64 switch_limit; /* bytes or ns */

	long delay_ms;
	u64 duration_ms;
	const char *control;
	bool quiet;
	int verbose;

	char **command; /* NULL: none */
};

extern const struct option record_option_table[];
extern const struct absent_option record_absent_options[];
extern const struct section record_sections[];

/* As options_parse(), and what the options say together. */
must_check int record_opts_parse(struct record_opts *o, int argc, char **argv);
void record_opts_release(struct record_opts *o);

/* Whether something else than the command is recorded. */
bool record_opts_has_target(const struct record_opts *o);

/* Whether --pmu is this. */
bool record_opts_pmu(const struct record_opts *o, const char *pmu);

/* Whether mappings matter that are not executable. */
bool record_opts_data_maps(const struct record_opts *o);

#endif
