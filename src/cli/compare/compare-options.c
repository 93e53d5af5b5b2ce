#include "cli/compare/compare-options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/modeled-events.h"

#define AT(field) .offset = offsetof(struct compare_opts, field)

static void add_text(struct compare_list *list, const char *text)
{
	list->at = realloc(list->at, (list->n + 1) * sizeof(*list->at));
	CHECK(list->at);
	list->at[list->n++] = text;
}

static int add_events(void *into, const char *arg, char *why, size_t size)
{
	struct compare_opts *opts = into;
	size_t old = opts->events ? strlen(opts->events) : 0;

	if (!*arg) {
		snprintf(why, size, "the list of events is empty");
		return -EINVAL;
	}
	opts->events = realloc(opts->events, old + strlen(arg) + 2);
	CHECK(opts->events);
	sprintf(opts->events + old, "%s%s", old ? "," : "", arg);
	return 0;
}

bool compare_seconds(const char *text, double *seconds)
{
	static const struct {
		const char *name;
		double of;
	} units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"m", 60}};
	char *end;
	double v;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	v = strtod(text, &end);
	for (u32 i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		*seconds = v * units[i].of;
		return true;
	}
	return false;
}

static int add_env(void *into, const char *arg, char *why, size_t size)
{
	struct compare_opts *opts = into;

	if (!*arg || *arg == '=') {
		snprintf(why, size, "it wants NAME or NAME=VALUE");
		return -EINVAL;
	}
	add_text(&opts->env, arg);
	return 0;
}

static int add_name(void *into, const char *arg, char *why, size_t size)
{
	struct compare_opts *opts = into;

	if (!*arg || strlen(arg) > COMPARE_NAME_MAX) {
		snprintf(why, size, "a name has 1 to %d bytes", COMPARE_NAME_MAX);
		return -EINVAL;
	}
	for (const char *c = arg; *c; c++) {
		if ((u8)*c >= ' ' && *c != 0x7f)
			continue;
		snprintf(why, size, "a name has no line ends and no other control characters");
		return -EINVAL;
	}
	add_text(&opts->names, arg);
	return 0;
}

static int add_gate(void *into, const char *arg, char *why, size_t size)
{
	struct compare_opts *opts = into;

	opts->gates = realloc(opts->gates, (opts->nr_gates + 1) * sizeof(*opts->gates));
	CHECK(opts->gates);
	return gate_parse(&opts->gates[opts->nr_gates], arg, why, size) ? (opts->nr_gates++, 0)
									: -EINVAL;
}

static int set_for(void *into, const char *arg, char *why, size_t size)
{
	struct compare_opts *opts = into;

	if (!compare_seconds(arg, &opts->spend) || opts->spend <= 0 || opts->spend > 86400) {
		snprintf(why, size, "'%.40s' is no time like 30s or 500ms, of a day at most", arg);
		return -EINVAL;
	}
	return 0;
}

static const char *const pmus[] = {"virtual", "kernel", NULL};
static const char *const parts[] = {"symbol", NULL};
static const char *const formats[] = {"text", "markdown", "json", "csv", "github", NULL};

/* clang-format off */
const struct option compare_option_table[] = {
	{OPTION_GROUP, .help = "What to compare"},
	{OPTION_CALL, 0, "name", "NAME", .call = add_name,
	 .help = "call the first command NAME in the output; once more, the second",
	 .more = "Without it they are A, B, C ..."},
	{OPTION_CALL, 'e', "event", "EVENTS", .call = add_events, .complete = COMPLETE_EVENT,
	 .help = "count these events (default: instructions and branches)",
	 .more = "Names of `anyperf list`, separated by commas, as of `anyperf stat`. May be given several "
		 "times."},
	{OPTION_STR, 0, "pmu", "virtual|kernel", AT(pmu), .words = pmus,
	 .help = "who counts: the virtual PMU in a deterministic run (default), or the kernel's",
	 .more = "The kernel's counts vary between runs, even of a program that does the same. Five runs of "
		 "each command show how much."},

	MACHINE_OPTION(struct compare_opts, machine, "Without the option there is none.",
		       "count with the model of this machine what depends on one"),
	{OPTION_STR, 0, "by", "symbol", AT(by), .words = parts,
	 .help = "show which functions have changed, from one more run",
	 .more = "Instructions are counted in all functions, to the last one, and with --save they are kept. If "
		 "another event comes first it is samples at exact distances; what is shown is beyond what they may "
		 "be off by."},
	{OPTION_STR, 0, "from", "PLACE", AT(from),
	 .help = "count only from PLACE on, a function or a mark of the program",
	 .more = "From when its first instruction is reached until that of --to is, each time, in each thread of "
		 "the command. <anyperf/mark.h> has macros for marks, which cost a nop: ANYPERF_BEGIN(x) is "
		 "the place x.begin. No times are taken."},
	{OPTION_STR, 0, "to", "PLACE", AT(to), .help = "with --from: count until PLACE is reached"},

	{OPTION_GROUP, .help = "What the commands find"},
	{OPTION_CALL, 0, "env", "NAME[=VALUE]", .call = add_env,
	 .help = "let NAME of the environment through, or set it; '*' lets all through",
	 .more = "The environment is a program's input: its size moves the stack, and many a variable changes "
		 "with the shell, the user or the run of a CI job. So of all variables the commands get PATH, "
		 "LD_LIBRARY_PATH, TZ and TMPDIR only. In the C locale, and without HOME, a few do something "
		 "else than on your terminal: `--env HOME --env LANG`."},
	{OPTION_STR, 0, "input", "FILE", AT(input), .complete = COMPLETE_FILE,
	 .help = "standard input of each run (default: /dev/null)"},
	{OPTION_FLAG, 0, "show-output", AT(show_output),
	 .help = "let the commands print; by default their output goes to /dev/null",
	 .more = "A program may do something else where it prints to a terminal."},
	{OPTION_INT, 0, "seed", "N", .offset = offsetof(struct compare_opts, deterministic.seed),
	 .min = 0, .max = 0x7fffffffffffffff,
	 .help = "what the random numbers that programs draw are made from (default 0)"},
	{OPTION_INT, 0, "cpus", "N", .offset = offsetof(struct compare_opts, deterministic.cpus),
	 .min = 1, .max = 64, .help = "how many CPUs programs see when they are counted"},
	{OPTION_STR, 0, "cpu-features", "host|x86-64-v2|x86-64-v3",
	 .offset = offsetof(struct compare_opts, deterministic.cpu), .words = deterministic_cpu_words,
	 .help = "the CPU that CPUID shows when programs are counted",
	 .more = "A level, instead of the default, host, is one CPU with its features and with caches of a fixed "
		 "size, the same on every machine that has them, of Intel's or AMD's. So the C library makes the same "
		 "choices."},

	{OPTION_GROUP, .help = "How to run them"},
	{OPTION_FLAG, 0, "counts-only", AT(counts_only), .help = "count, and take no times"},
	{OPTION_FLAG, 0, "time-only", AT(time_only), .help = "take times, and do not count"},
	{OPTION_INT, 0, "runs", "N", AT(runs), .min = 1, .max = 10000,
	 .help = "take the times of N runs of each command",
	 .more = "Below 6 no interval of 95 % can be told."},
	{OPTION_CALL, 0, "for", "TIME", .call = set_for,
	 .help = "take times for so long, as in 30s or 500ms (default 5s), of 10 to 200 runs"},
	{OPTION_INT, 0, "warmup", "N", AT(warmup), .min = 0, .max = 1000,
	 .help = "run each command N times before (default 1)"},
	{OPTION_STR, 0, "pre", "COMMAND", AT(pre), .complete = COMPLETE_COMMAND,
	 .help = "run COMMAND with the shell before each run; it is not measured"},
	{OPTION_STR, 0, "post", "COMMAND", AT(post), .complete = COMPLETE_COMMAND,
	 .help = "run COMMAND with the shell after each run"},
	{OPTION_INT, 0, "timeout", "MS", AT(timeout_ms), .min = 1, .max = 86400000,
	 .help = "end a run after MS milliseconds, and the comparison with it"},
	{OPTION_FLAG, 0, "ignore-exit", AT(ignore_exit),
	 .help = "go on when a command fails (default: a failure ends the comparison)"},

	{OPTION_GROUP, .help = "What to fail for"},
	{OPTION_CALL, 0, "fail-if", "LIMIT", .call = add_gate,
	 .help = "exit with 1 if a command does more than LIMIT says, as in 'instructions>+0.1%'",
	 .more = "The name of an event that is counted, or one of time, cpu-time, peak-memory and faults; > or "
		 "<; and the change from the first command, in percent or as in +5000, +20ms, +1MB. It is broken "
		 "if all of the interval, or range, lies beyond. If only the median does, anyperf exits with 2. "
		 "May be given several times."},

	{OPTION_GROUP, .help = "Against what was counted before"},
	{OPTION_STR, 0, "save", "FILE", AT(save), .complete = COMPLETE_FILE,
	 .help = "count the one command and keep that in FILE, for --baseline"},
	{OPTION_STR, 0, "baseline", "FILE", AT(baseline), .complete = COMPLETE_FILE,
	 .help = "count the one command and compare that with FILE",
	 .more = "Counts are compared, and no times: those of another day say nothing. If the command line, the "
		 "environment, the CPU shown, the number of CPUs that the program asked for, the C library or "
		 "the seed are others, the comparison is refused with what it is. --cpu-features and --cpus show "
		 "the same on every machine."},
	{OPTION_FLAG, 0, "update", AT(update),
	 .help = "with --baseline: keep the new counts in FILE, whatever the comparison says",
	 .more = "FILE is made if it does not exist. Where nothing could be compared limits of --fail-if are "
		 "not tested, and anyperf exits with 2."},

	{OPTION_GROUP, .help = "How to print"},
	{OPTION_STR, 0, "format", "FORMAT", AT(format), .words = formats,
	 .help = "text (default), markdown, json, csv, or github",
	 .more = "github is text with `::error` lines, and a summary in Markdown where the runner wants it "
		 "(GITHUB_STEP_SUMMARY)."},
	{OPTION_STR, 'o', "output", "FILE", AT(output), .complete = COMPLETE_FILE,
	 .help = "print to FILE instead of standard output"},
	{OPTION_END},
};
/* clang-format on */

const struct section compare_sections[] = {
	{"EXIT STATUS",
	 "0 if everything was measured and no limit of --fail-if is broken, 1 if one is. 2 if that cannot "
	 "be told, or what was measured cannot be compared: a command failed or was ended by --timeout. 125 if anyperf failed, 126 if a command could not be run, 127 if there "
	 "is no such command."},
	{NULL, NULL},
};

static bool is_separator(const char *word)
{
	return !strcmp(word, cmd_compare.between);
}

/* Takes argv apart at each --vs. */
static int split_commands(struct compare_opts *opts, char **argv)
{
	char **first = argv;

	for (char **word = argv;; word++) {
		bool last = !*word;

		if (!last && !is_separator(*word))
			continue;
		if (word == first)
			return command_error(&cmd_compare, "there is no command %s --vs",
					     last ? "behind" : "in front of");
		opts->commands = realloc(opts->commands,
					 (opts->nr_commands + 1) * sizeof(*opts->commands));
		CHECK(opts->commands);
		opts->commands[opts->nr_commands++] = first;
		*word = NULL;
		first = word + 1;
		if (last)
			return 0;
	}
}

/* One command, and what was kept of it. */
static int check_one(const struct compare_opts *opts)
{
	const char *option = opts->save ? "--save" : "--baseline";

	if (opts->nr_commands > 1)
		return command_error(&cmd_compare, "%s is for one command", option);
	if (opts->names.n > 1)
		return command_error(&cmd_compare, "there are %u names for 1 command",
				     opts->names.n);
	if (opts->time_only)
		return command_error(&cmd_compare,
				     "%s keeps counts, and with --time-only there "
				     "are none",
				     option);
	if (opts->pmu && !strcmp(opts->pmu, "kernel"))
		return command_error(&cmd_compare,
				     "%s is for counts of the virtual PMU; the "
				     "kernel's are another number every day",
				     option);
	return deterministic_check(&cmd_compare, &opts->deterministic);
}

static int check(const struct compare_opts *opts)
{
	if (opts->save && opts->baseline)
		return command_error(&cmd_compare, "--save is for the first time; --baseline with "
						   "--update keeps the new counts");
	if (!opts->from != !opts->to)
		return command_error(&cmd_compare, "--from and --to are for each other");
	if (opts->from && (opts->time_only || (opts->pmu && !strcmp(opts->pmu, "kernel"))))
		return command_error(&cmd_compare,
				     "--from and --to are for counts of the virtual PMU");
	if (opts->by &&
	    (opts->time_only || opts->from || (opts->pmu && !strcmp(opts->pmu, "kernel"))))
		return command_error(&cmd_compare, "--by is for counts of whole commands by the "
						   "virtual PMU");
	if (opts->machine && (opts->time_only || (opts->pmu && !strcmp(opts->pmu, "kernel"))))
		return command_error(&cmd_compare, "--machine is for counts of the virtual PMU");
	if (modeled_check(&cmd_compare, opts->machine))
		return -1;
	if (opts->update && !opts->baseline)
		return command_error(&cmd_compare, "--update is for --baseline");
	if (opts->save || opts->baseline)
		return check_one(opts);
	if (opts->nr_commands < 2)
		return command_error(
			&cmd_compare,
			"one command is nothing to compare; `anyperf compare -- ./old --vs ./new`, "
			"for instance");
	if (opts->nr_commands > COMPARE_SIDES_MAX)
		return command_error(&cmd_compare, "at most %d commands can be compared at once",
				     COMPARE_SIDES_MAX);
	if (opts->counts_only && opts->time_only)
		return command_error(&cmd_compare, "--counts-only and --time-only leave nothing");
	if (opts->names.n > opts->nr_commands)
		return command_error(&cmd_compare, "there are %u names for %u commands",
				     opts->names.n, opts->nr_commands);
	if (opts->pmu && !strcmp(opts->pmu, "kernel") &&
	    (opts->deterministic.cpu || opts->deterministic.cpus || opts->deterministic.seed))
		return command_error(&cmd_compare,
				     "--seed, --cpus and --cpu-features are for the virtual PMU");
	return deterministic_check(&cmd_compare, &opts->deterministic);
}

int compare_opts_parse(struct compare_opts *opts, int argc, char **argv)
{
	int first;

	*opts = (struct compare_opts){.deterministic.on = true, .spend = 5, .warmup = 1};
	first = options_parse(&cmd_compare, opts, argc, argv);
	if (first >= 0 && first == argc)
		first = command_error(&cmd_compare, "no command given; `anyperf compare -- ./old "
						    "--vs ./new`, for instance");
	if (first >= 0 && (split_commands(opts, argv + first) || check(opts)))
		first = -1;
	opts->counts_only |= opts->save || opts->baseline || opts->from;
	if (first < 0)
		compare_opts_release(opts);
	return first < 0 ? first : 0;
}

void compare_opts_release(struct compare_opts *opts)
{
	free(opts->events);
	free(opts->env.at);
	free(opts->gates);
	free(opts->names.at);
	free(opts->commands);
}
