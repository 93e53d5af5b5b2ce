/*
 * The options of Valgrind. Those that matter here are in the table; what would change the result
 * and is not here is refused by its name, as is what nobody knows; all that is left is taken with a
 * note.
 */
#include "cli/valgrind/valgrind-options.h"

#include <anyperf/api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define VALGRIND_LIKE "valgrind-3.19.0" /* which one results are compared with */

#define AT(field) .offset = offsetof(struct valgrind_opts, field)

static int set_bool(bool *into, const char *arg, char *why, size_t size)
{
	if (!strcmp(arg, "yes") || !strcmp(arg, "no")) {
		*into = arg[0] == 'y';
		return 0;
	}
	snprintf(why, size, "'%.40s' is neither yes nor no", arg);
	return -EINVAL;
}

#define BOOL_OPTION(field)                                                               \
	static int set_##field(void *into, const char *arg, char *why, size_t size)      \
	{                                                                                \
		return set_bool(&((struct valgrind_opts *)into)->field, arg, why, size); \
	}

BOOL_OPTION(trace_children)
BOOL_OPTION(separate_threads)
BOOL_OPTION(instrument)
BOOL_OPTION(dump_instr)
BOOL_OPTION(dump_line)
BOOL_OPTION(compress_strings)
BOOL_OPTION(compress_pos)
BOOL_OPTION(combine_dumps)
BOOL_OPTION(branch_sim)
BOOL_OPTION(skip_plt)

static int set_cache_sim(void *into, const char *arg, char *why, size_t size)
{
	struct valgrind_opts *o = into;

	o->cache_sim_given = true;
	return set_bool(&o->cache_sim, arg, why, size);
}

static int set_collect(void *into, const char *arg, char *why, size_t size)
{
	struct valgrind_opts *o = into;

	o->collect_given = true;
	return set_bool(&o->collect, arg, why, size);
}

static int add_function(struct valgrind_functions *f, const char *pattern, char *why, size_t size)
{
	if (!*pattern) {
		snprintf(why, size, "it wants the name of a function; the one given is empty");
		return -EINVAL;
	}
	f->pattern = realloc(f->pattern, (f->nr + 1) * sizeof(const char *));
	CHECK(f->pattern);
	f->pattern[f->nr++] = pattern;
	return 0;
}

#define FUNCTION_OPTION(field)                                                               \
	static int add_##field(void *into, const char *arg, char *why, size_t size)          \
	{                                                                                    \
		return add_function(&((struct valgrind_opts *)into)->field, arg, why, size); \
	}

FUNCTION_OPTION(dump_before)
FUNCTION_OPTION(dump_after)
FUNCTION_OPTION(zero_before)
FUNCTION_OPTION(skip)

static int add_toggle(void *into, const char *arg, char *why, size_t size)
{
	struct valgrind_opts *o = into;

	/* As with callgrind: collecting begins with the function. */
	o->collect = false;
	return add_function(&o->toggle, arg, why, size);
}

#define CALL(n, a, fn, h)                                   \
	{                                                   \
		OPTION_CALL, 0, n, a, .call = fn, .help = h \
	}

const struct option valgrind_option_table[] = {
	{OPTION_STR, 0, "tool", "callgrind|cachegrind", AT(tool_name),
	 .help = "whose profile it is"},
	{OPTION_STR, 0, "log-file", "FILE", AT(log_file), .complete = COMPLETE_FILE,
	 .help = "messages go to FILE instead of standard error; %p and %q{VAR} as below"},
	{OPTION_INT, 0, "log-fd", "FD", AT(log_fd), .min = 0, .max = 1 << 20,
	 .help = "messages go to this open descriptor"},
	{OPTION_FLAG, 'q', "quiet", AT(quiet), .help = "say nothing that is no mistake"},
	{OPTION_COUNT, 'v', "verbose", AT(verbose), .help = "say more"},
	{OPTION_FLAG, 0, "version", AT(version),
	 .help = "print which Valgrind's options and files these are, as it does, and end"},
	CALL("trace-children", "no|yes", set_trace_children,
	     "programs that COMMAND executes have profiles, too (default: no)"),
	{OPTION_GROUP, .help = "Files"},
	{OPTION_STR, 0, "callgrind-out-file", "FILE", AT(callgrind_out), .complete = COMPLETE_FILE,
	 .help = "where callgrind's profile goes (default: callgrind.out.%p)",
	 .more = "%p is the process id, %q{VAR} an environment variable, %% a percent sign. Further parts "
		 "of a profile have .1, .2 and so on behind it."},
	{OPTION_STR, 0, "cachegrind-out-file", "FILE", AT(cachegrind_out),
	 .complete = COMPLETE_FILE,
	 .help = "the same of cachegrind's (default: cachegrind.out.%p)"},
	CALL("dump-instr", "no|yes", set_dump_instr, "costs by instruction (default: no)"),
	CALL("dump-line", "no|yes", set_dump_line, "costs by source line (default: yes)"),
	CALL("compress-strings", "no|yes", set_compress_strings,
	     "names have numbers in the file (default: yes)"),
	CALL("compress-pos", "no|yes", set_compress_pos,
	     "positions are relative in the file (default: yes)"),
	CALL("combine-dumps", "no|yes", set_combine_dumps,
	     "all parts go into one file (default: no)"),
	{OPTION_GROUP, .help = "What is collected"},
	CALL("collect-atstart", "no|yes", set_collect, "collect from the start on (default: yes)"),
	CALL("instr-atstart", "no|yes", set_instrument,
	     "look at the program from its start on (default: yes)"),
	CALL("toggle-collect", "FUNCTION", add_toggle,
	     "collect while FUNCTION runs, with all that it calls; may have * and ?"),
	CALL("dump-before", "FUNCTION", add_dump_before, "write a part when FUNCTION is entered"),
	CALL("dump-after", "FUNCTION", add_dump_after, "write a part when FUNCTION is left"),
	CALL("zero-before", "FUNCTION", add_zero_before,
	     "forget what was collected when FUNCTION is entered"),
	{OPTION_INT, 0, "separate-recs", "N", AT(recursions), .min = 1, .max = 60,
	 .help = "levels of recursion that are told apart (default 2)"},
	CALL("skip-plt", "no|yes", set_skip_plt, "slots of .plt are their callers (default: yes)"),
	CALL("separate-threads", "no|yes", set_separate_threads,
	     "each thread has files of its own, with -01 and so on behind the name (default: no)"),
	CALL("fn-skip", "FUNCTION", add_skip, "FUNCTION is its callers"),
	{OPTION_GROUP, .help = "Simulation"},
	CALL("cache-sim", "no|yes", set_cache_sim,
	     "simulate caches (default: no of callgrind, yes of cachegrind)"),
	CALL("branch-sim", "no|yes", set_branch_sim,
	     "simulate the prediction of branches (default: no)"),
	CALL("simulate-cache", "no|yes", set_cache_sim, "the same as --cache-sim"),
	{OPTION_STR, 0, "I1", "SIZE,WAYS,LINE", AT(geometry[0]),
	 .help = "the first cache of instructions, in bytes (default: this machine's)"},
	{OPTION_STR, 0, "D1", "SIZE,WAYS,LINE", AT(geometry[1]), .help = "the first cache of data"},
	{OPTION_STR, 0, "LL", "SIZE,WAYS,LINE", AT(geometry[2]), .help = "the last level cache"},
	{OPTION_END},
};

const struct section valgrind_sections[] = {
	{"Other options of Valgrind",
	 "What would change what is written and is not here is refused by name, as is what Valgrind does not know. "
	 "All others are taken, and named with -v. $VALGRIND_OPTS is read before the command line."},
	{"What is counted",
	 "Ir, instructions, as with callgrind, but for what its own CPU or its own memory make "
	 "different: a REP string instruction is one and not one for each repetition; programs see "
	 "the CPU's own features and the kernel's vDSO. With --cache-sim=yes also Dr, Dw, I1mr, D1mr, D1mw, "
	 "ILmr, DLmr and DLmw, with --branch-sim=yes Bc, Bcm, Bi and Bim, of caches and predictors as "
	 "Valgrind simulates them. doc/callgrind.md lists the differences."},
	{"Exit status",
	 "That of COMMAND; if a signal ended it, `anyperf valgrind` ends by the same one. 125 if anyperf "
	 "failed, 126 if COMMAND could not be run, 127 if there is no such command."},
	{NULL, NULL},
};

/* Options that would change what is written, but with @fine as their value, if there is one. */
static const struct {
	const char *name, *fine;
} refused[] = {
	{"--collect-jumps", "no"},
	{"--trace-jump", "no"},
	{"--collect-systime", "no"},
	{"--collect-bus", "no"},
	{"--collect-alloc", "no"},
	{"--separate-callers", "0"},
	{"--separate-recs", NULL}, /* with a number, for a function */
	{"--skip-direct-rec", "no"},
	{"--dump-every-bb", "0"},
	{"--dump-bb", "no"},
	{"--dump-bbs", "no"},
	{"--mangle-names", "yes"},
	{"--pop-on-jump", NULL},
	{"--simulate-wb", "no"},
	{"--simulate-hwpref", "no"},
	{"--cacheuse", "no"},
	{"--demangle", "yes"},
	{"--show-below-main", "no"},
	{"--xml", "no"},
	{"--log-socket", NULL},
	{"--trace-children-skip", NULL},
	{"--trace-children-skip-by-arg", NULL},
	{"--fn-group", NULL},
	{"--extra-debuginfo-path", NULL},
	{"--soname-synonyms", NULL},
	{"--debuginfo-server", NULL},
};

/* Options that make no difference: those of Valgrind and its two tools that are left. */
static const char *const indifferent[] = {
	"--alignment",
	"--allow-mismatched-debuginfo",
	"--aspace-minaddr",
	"--avg-transtab-entry-size",
	"--child-silent-after-fork",
	"--command-line-only",
	"--core-redzone-size",
	"--ct-verbose",
	"--ct-vstart",
	"--debug-dump",
	"--default-suppressions",
	"--dsymutil",
	"--dump-error",
	"--enable-debuginfod",
	"--error-exitcode",
	"--error-limit",
	"--error-markers",
	"--exit-on-first-error",
	"--fair-sched",
	"--fullpath-after",
	"--gen-suppressions",
	"--input-fd",
	"--keep-debuginfo",
	"--kernel-variant",
	"--main-stacksize",
	"--max-stackframe",
	"--max-threads",
	"--merge-recursive-frames",
	"--modify-fds",
	"--num-callers",
	"--num-transtab-sectors",
	"--profile-flags",
	"--profile-heap",
	"--profile-interval",
	"--progress-interval",
	"--px-default",
	"--px-file-backed",
	"--read-inline-info",
	"--read-var-info",
	"--realloc-zero-bytes-frees",
	"--redzone-size",
	"--require-text-symbol",
	"--resync-filter",
	"--run-cxx-freeres",
	"--run-libc-freeres",
	"--sanity-level",
	"--scheduling-quantum",
	"--show-emwarns",
	"--show-error-list",
	"--sigill-diagnostics",
	"--sim-hints",
	"--smc-check",
	"--stats",
	"--suppressions",
	"--sym-offsets",
	"--time-stamp",
	"--trace-cfi",
	"--trace-flags",
	"--trace-malloc",
	"--trace-notabove",
	"--trace-notbelow",
	"--trace-redir",
	"--trace-sched",
	"--trace-signals",
	"--trace-symtab",
	"--trace-symtab-patt",
	"--trace-syscalls",
	"--track-fds",
	"--unw-stack-scan-frames",
	"--unw-stack-scan-thresh",
	"--valgrind-stacksize",
	"--vex-guest-chase",
	"--vex-guest-max-insns",
	"--vex-iropt-level",
	"--vex-iropt-register-updates",
	"--vex-iropt-unroll-thresh",
	"--vex-iropt-verbosity",
	"--vex-regalloc-version",
	"--vgdb",
	"--vgdb-error",
	"--vgdb-poll",
	"--vgdb-prefix",
	"--vgdb-shadow-registers",
	"--vgdb-stop-at",
	"--wait-for-gdb",
	"--xml-fd",
	"--xml-file",
	"--xml-socket",
	"--xml-user-comment",
	"--xtree-compress-strings",
	"--xtree-memory",
	"--xtree-memory-file",
};

static bool is_known(const char *arg, size_t n)
{
	/* Of a tool, --TOOL:OPTION, which need not be one of these two. */
	if (memchr(arg, ':', n))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(indifferent); i++)
		if (strlen(indifferent[i]) == n && !strncmp(indifferent[i], arg, n))
			return true;
	return false;
}

static bool is_help(const char *arg)
{
	return !strcmp(arg, "--help") || !strcmp(arg, "--help-debug") ||
	       !strcmp(arg, "--help-dyn-options");
}

static bool is_ours(const char *arg)
{
	if (arg[0] != '-' || arg[1] != '-')
		return true;
	for (const struct option *o = valgrind_option_table; o->kind != OPTION_END; o++)
		if (o->kind != OPTION_GROUP && o->name &&
		    !strncmp(arg + 2, o->name, strlen(o->name)) &&
		    strchr("=", arg[2 + strlen(o->name)]))
			return true;
	return is_help(arg) || !strcmp(arg, "--");
}

/* 1: to be parsed; 0: it makes no difference; -1: refused. */
static int judge(const char *arg)
{
	size_t n = strcspn(arg, "="), name = n;

	if (is_ours(arg))
		return 1;
	/* What is for a function has a number at its name: --separate-callers2=FUNCTION. */
	while (name && arg[name - 1] >= '0' && arg[name - 1] <= '9')
		name--;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (strlen(refused[i].name) != name || strncmp(arg, refused[i].name, name) != 0)
			continue;
		if (refused[i].fine && arg[n] && !strcmp(arg + n + 1, refused[i].fine))
			return 0;
		return command_error(&cmd_valgrind,
				     "%s: anyperf does not have this, and without it something "
				     "else would be written; leave it out if that will do",
				     arg);
	}
	if (!is_known(arg, n))
		return command_error(&cmd_valgrind, "unknown option: %s", arg);
	return 0;
}

/* $VALGRIND_OPTS, then the command line, without what makes no difference. */
static char **gather(int argc, char **argv, int *count, char **env, int *notes)
{
	static char help[] = "--help"; /* also for developers' help */
	const char *opts = getenv("VALGRIND_OPTS");
	size_t room = (size_t)argc + 2, n = 0;
	char **all, *save, *word;
	int i = 1;

	*env = strdup(opts ? opts : "");
	CHECK(*env);
	room += strlen(*env);
	all = calloc(room, sizeof(*all));
	CHECK(all);
	all[n++] = argv[0];
	for (word = strtok_r(*env, " \t\n", &save); word; word = strtok_r(NULL, " \t\n", &save)) {
		int r = judge(word);

		if (r < 0) {
			*notes = -1;
			return all;
		}
		if (r)
			all[n++] = is_help(word) ? help : word;
	}
	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
		int r = judge(argv[i]);

		if (r < 0) {
			*notes = -1;
			return all;
		}
		if (r)
			all[n++] = is_help(argv[i]) ? help : argv[i];
		else
			argv[++*notes] = argv[i]; /* behind what is read already */
	}
	for (; i < argc; i++)
		all[n++] = argv[i];
	*count = (int)n;
	return all;
}

static int check_tool(struct valgrind_opts *o)
{
	if (!o->tool_name)
		return command_error(
			&cmd_valgrind,
			"without --tool Valgrind runs memcheck, which anyperf does not "
			"have; --tool=callgrind and --tool=cachegrind are here");
	if (!strcmp(o->tool_name, "cachegrind"))
		o->tool = TOOL_CACHEGRIND;
	else if (strcmp(o->tool_name, "callgrind") != 0)
		return command_error(&cmd_valgrind,
				     "--tool=%s: anyperf does not have this tool; callgrind and "
				     "cachegrind are here",
				     o->tool_name);
	if (o->tool == TOOL_CACHEGRIND && !o->cache_sim_given)
		o->cache_sim = true;
	return 0;
}

int valgrind_opts_parse(struct valgrind_opts *o, int argc, char **argv)
{
	int count = 0, notes = 0, first;
	char **all;

	*o = (struct valgrind_opts){.collect = true,
				    .instrument = true,
				    .dump_line = true,
				    .compress_strings = true,
				    .compress_pos = true,
				    .skip_plt = true,
				    .recursions = 2,
				    .log_fd = -1};
	all = gather(argc, argv, &count, &o->env, &notes);
	if (notes < 0) {
		free(all);
		return -1;
	}
	first = options_parse(&cmd_valgrind, o, count, all);
	/* In front of what is wrong with the rest, as Valgrind has it. Harnesses parse the line. */
	if (first >= 0 && o->version) {
		printf("%s", VALGRIND_LIKE);
		if (o->verbose)
			printf("-anyperf-%s", ap_version());
		putchar('\n');
		first = -2;
	}
	if (first >= 0) {
		o->command = argv + argc - (count - first);
		if (first == count)
			first = command_error(&cmd_valgrind, "no command to run");
		else if (check_tool(o))
			first = -1;
	}
	if (first >= 0 && o->verbose)
		for (int i = 1; i <= notes; i++)
			fprintf(stderr, "anyperf valgrind: %s makes no difference here\n", argv[i]);
	if (!o->dump_instr && !o->dump_line)
		o->dump_line = true;
	free(all);
	return first;
}

void valgrind_opts_release(struct valgrind_opts *o)
{
	free(o->toggle.pattern);
	free(o->dump_before.pattern);
	free(o->dump_after.pattern);
	free(o->zero_before.pattern);
	free(o->skip.pattern);
	free(o->env);
}

bool valgrind_fits(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			from = name;
		} else if (*pattern == *name || *pattern == '?') {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool valgrind_names(const struct valgrind_functions *f, const char *name)
{
	for (u32 i = 0; i < f->nr; i++)
		if (valgrind_fits(f->pattern[i], name))
			return true;
	return false;
}
