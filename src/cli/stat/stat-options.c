#include "cli/stat/stat-options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/modeled-events.h"
#include "cli/translations-option.h"

#define AT(field) .offset = offsetof(struct stat_opts, field)

static int add_events(void *into, const char *arg, char *why, size_t size)
{
	struct stat_opts *opts = into;
	size_t old = opts->events ? strlen(opts->events) : 0;
	char *all;

	if (!*arg) {
		snprintf(why, size, "the list of events is empty");
		return -EINVAL;
	}
	all = realloc(opts->events, old + strlen(arg) + 2);
	if (!all) {
		snprintf(why, size, "out of memory");
		return -EINVAL;
	}
	sprintf(all + old, "%s%s", old ? "," : "", arg);
	opts->events = all;
	opts->last_event = old;
	return 0;
}

static int add_filter(void *into, const char *arg, char *why, size_t size)
{
	struct stat_opts *opts = into;
	struct stat_filter *more;

	if (!opts->events) {
		snprintf(why, size,
			 "it is for the tracepoints of the -e before it, and there is none");
		return -EINVAL;
	}
	more = realloc(opts->filters, (opts->nr_filters + 1) * sizeof(*more));
	if (!more) {
		snprintf(why, size, "out of memory");
		return -EINVAL;
	}
	opts->filters = more;
	more[opts->nr_filters++] = (struct stat_filter){arg, opts->last_event,
							strlen(opts->events)};
	return 0;
}

static int set_separator(void *into, const char *arg, char *why, size_t size)
{
	struct stat_opts *opts = into;

	(void)why;
	(void)size;
	/* As perf does, so that `-x\\t` works from every shell. */
	opts->separator = strcmp(arg, "\\t") == 0 ? "\t" : arg;
	return 0;
}

static int set_aggr(struct stat_opts *opts, enum report_aggr aggr, char *why, size_t size)
{
	if (opts->aggr && opts->aggr != aggr) {
		snprintf(
			why, size,
			"counts can be put together in one way only; another one was chosen before");
		return -EINVAL;
	}
	opts->aggr = aggr;
	return 0;
}

#define AGGR_CALL(fn, aggr)                                                \
	static int fn(void *into, const char *arg, char *why, size_t size) \
	{                                                                  \
		(void)arg;                                                 \
		return set_aggr(into, aggr, why, size);                    \
	}

AGGR_CALL(per_socket, AGGR_SOCKET)
AGGR_CALL(per_die, AGGR_DIE)
AGGR_CALL(per_node, AGGR_NODE)
AGGR_CALL(per_core, AGGR_CORE)
AGGR_CALL(per_cpu, AGGR_CPU)
AGGR_CALL(per_thread, AGGR_THREAD)

static const char *const pmus[] = {"auto", "kernel", "virtual", NULL};

/* clang-format off */
const struct option stat_option_table[] = {
	{OPTION_GROUP, .help = "What to count"},
	{OPTION_CALL, 'e', "event", "EVENTS", .call = add_events, .complete = COMPLETE_EVENT,
	 .help = "count these events: names of `anyperf list`, separated by commas",
	 .more = "`{a,b}` puts events into a group, which is counted all at the same time or not at all. "
		 "A modifier follows a colon: `u` user mode only, `k` kernel only, and perf's others. "
		 "May be given several times. Beside what has a counter there are perf's tool events: "
		 "duration_time, user_time and system_time, in nanoseconds, the times that stand below the "
		 "counts."},
	{OPTION_CALL, 0, "filter", "FILTER", .call = add_filter,
	 .help = "count the tracepoints of the -e before it only where FILTER holds",
	 .more = "A condition on the tracepoint's fields, as in `--filter 'prev_prio < 100 && next_pid != 0'`; "
		 "/sys/kernel/tracing/events/SYSTEM/NAME/format names them."},
	{OPTION_COUNT, 'd', "detailed", AT(detailed),
	 .help = "count cache events too; -dd adds TLB and instruction cache, -ddd prefetches"},
	{OPTION_FLAG, 'n', "null", AT(null_run),
	 .help = "count nothing; only measure the time"},
	{OPTION_FLAG, 'i', "no-inherit", AT(no_inherit),
	 .help = "do not count the children of what is measured"},
	{OPTION_FLAG, 0, "all-user", AT(all_user), .help = "count user mode only, for all events"},
	{OPTION_FLAG, 0, "all-kernel", AT(all_kernel), .help = "count the kernel only, for all events"},

	{OPTION_STR, 0, "pmu", "auto|kernel|virtual", AT(pmu), .words = pmus,
	 .help = "who counts; by default the kernel where it can, else the virtual PMU",
	 .more = "The virtual PMU runs COMMAND under a translator that counts what it retires in "
		 "user mode, exactly. Below the heading, and in JSON, stands which was used, and why."},
	{OPTION_INT, 0, "counters", "N", AT(counters), .min = 1, .max = 64,
	 .help = "count with the virtual PMU, and give it only N counters",
	 .more = "Events that do not fit take turns and are scaled, as on hardware."},
	{OPTION_STR, 0, "cpu-model", "auto|host|MODEL", AT(cpu_model),
	 .help = "count with the virtual PMU, and have it show this CPU, as with `anyperf run`"},
	TRANSLATIONS_OPTION(struct stat_opts, translations),
	MACHINE_OPTION(struct stat_opts, machine, "Without the option it is that of this machine.",
		       "count with the virtual PMU, and with the model of this machine"),
	MODEL_BESIDE_OPTION(struct stat_opts, model_beside),
	MODEL_WINDOWS_OPTION(struct stat_opts, model_windows,
			     " With --control the default is `no`, as what is counted may be short."),
	DETERMINISTIC_OPTIONS(struct stat_opts, deterministic),
	{OPTION_STR, 0, "session", "NAME", AT(session),
	 .help = "with -p or -t: guests of the session that `anyperf run --session NAME` started"},
	{OPTION_GROUP, .help = "What to measure, if not only COMMAND"},
	{OPTION_STR, 'p', "pid", "PIDS", AT(pids), .complete = COMPLETE_PID,
	 .help = "these processes with all their threads, separated by commas"},
	{OPTION_STR, 't', "tid", "TIDS", AT(tids), .complete = COMPLETE_PID,
	 .help = "these threads, separated by commas; all must be there"},
	{OPTION_FLAG, 'a', "all-cpus", AT(all_cpus), .help = "everything on all CPUs"},
	{OPTION_STR, 'C', "cpu", "CPUS", AT(cpus),
	 .help = "everything on these CPUs, as in 0-3,8; all must be online"},
	{OPTION_STR, 'G', "cgroup", "CGROUPS", AT(cgroup),
	 .help = "only what runs in this cgroup (or list of them), on the CPUs given by -a or -C",
	 .more = "A path, or a name relative to where the cgroups are mounted (v1 perf_event or v2). "
		 "A list, as in a,b,,c, gives each event its own in the order of -e, and none where it is "
		 "empty or at its end; a single one holds for all. With -x the cgroup is a field behind the event."},
	{OPTION_STR, 0, "for-each-cgroup", "CGROUPS", AT(each_cgroup),
	 .help = "all events in each of these cgroups, separated by commas",
	 .more = "As if the events were written out for one cgroup after the other, each with its own in -G."},

	{OPTION_GROUP, .help = "How counts are put together"},
	{OPTION_CALL, 'A', "no-aggr", .call = per_cpu, .help = "a line for each CPU (with -a or -C)"},
	{OPTION_CALL, 0, "per-thread", .call = per_thread,
	 .help = "a line for each thread (with -p, -t or -a)"},
	{OPTION_CALL, 0, "per-core", .call = per_core, .help = "a line for each core (with -a or -C)"},
	{OPTION_CALL, 0, "per-die", .call = per_die, .help = "a line for each die (with -a or -C)"},
	{OPTION_CALL, 0, "per-socket", .call = per_socket,
	 .help = "a line for each socket (with -a or -C)"},
	{OPTION_CALL, 0, "per-node", .call = per_node,
	 .help = "a line for each NUMA node (with -a or -C)"},

	{OPTION_GROUP, .help = "When and how long"},
	{OPTION_INT, 'r', "repeat", "N", AT(repeat), .min = 0, .max = 1000000,
	 .help = "run COMMAND N times and show the mean and its deviation; 0: until interrupted",
	 .more = "The figure behind `+-` is the standard deviation of the mean, as perf shows it."},
	{OPTION_FLAG, 0, "table", AT(table), .help = "with -r: show how long each run took"},
	{OPTION_INT, 'I', "interval-print", "MS", AT(interval_ms), .min = 1, .max = 86400000,
	 .help = "print what was counted every MS milliseconds",
	 .more = "The times are multiples of MS after the start: a late print does not move the later ones."},
	{OPTION_INT, 0, "interval-count", "N", AT(interval_count), .min = 1, .max = 1000000000,
	 .help = "end after N intervals"},
	{OPTION_FLAG, 0, "interval-clear", AT(interval_clear),
	 .help = "clear the screen before each interval's lines"},
	{OPTION_FLAG, 0, "summary", AT(summary), .help = "with -I: also print the sums at the end"},
	{OPTION_INT, 0, "timeout", "MS", AT(timeout_ms), .min = 1, .max = 86400000,
	 .help = "end after MS milliseconds; COMMAND is sent SIGTERM"},
	{OPTION_INT, 'D', "delay", "MS", AT(delay_ms), .min = -1, .max = 86400000,
	 .help = "start counting MS milliseconds after COMMAND starts; -1: when --control says so",
	 .more = "The elapsed time, and what is related to it, begin then too; -I and --timeout begin with "
		 "COMMAND."},
	{OPTION_STR, 0, "control", "fd:CTL[,ACK] | fifo:CTL[,ACK]", AT(control),
	 .help = "take `enable`, `disable`, `ping`, `evlist`, `stop` from a descriptor or fifo",
	 .more = "One word a line. When it is done `ack` is written to ACK, if that is given. A fifo that "
		 "does not exist is an error; it is opened so that its writers may come and go. Hold ACK open while "
		 "you wait: what is in a fifo is lost when nobody has it open, and after `stop` we end."},
	{OPTION_STR, 0, "pre", "SHELL-COMMAND", AT(pre), .complete = COMPLETE_COMMAND,
	 .help = "run this before each run of COMMAND, uncounted"},
	{OPTION_STR, 0, "post", "SHELL-COMMAND", AT(post), .complete = COMPLETE_COMMAND,
	 .help = "run this after each run of COMMAND, uncounted"},
	{OPTION_FLAG, 'S', "sync", AT(sync), .help = "call sync(2) before each run"},

	{OPTION_GROUP, .help = "Output"},
	{OPTION_CALL, 'x', "field-separator", "SEP", .call = set_separator,
	 .help = "print fields separated by SEP, in perf's columns",
	 .more = "The event's name is the one asked for. That only user mode could be counted is told by the "
		 "other forms."},
	{OPTION_FLAG, 'j', "json", AT(json), .help = "print a JSON object a line (doc/json.md)"},
	{OPTION_FLAG, 0, "metric-only", AT(metric_only),
	 .help = "print only what counts are in relation to each other",
	 .more = "A line for the whole, a CPU, a core ..., and a column for each relation: instructions per "
		 "cycle, GHz, shares of misses. CPUs used and events per second are left out, as by perf."},
	{OPTION_STR, 'o', "output", "FILE", AT(output), .complete = COMPLETE_FILE,
	 .help = "write to FILE instead of stderr; -: to stderr"},
	{OPTION_FLAG, 0, "append", AT(append), .help = "with -o: add to FILE"},
	{OPTION_INT, 0, "log-fd", "FD", AT(log_fd), .min = 0, .max = 1 << 20,
	 .help = "write to this descriptor instead of stderr"},
	{OPTION_FLAG, 'B', "big-num", AT(big_num),
	 .help = "separate thousands as the locale says (the default)"},
	{OPTION_UNSET, 0, "scale", AT(scale),
	 .help = "show counts of multiplexed events as read, not scaled up",
	 .more = "Without this an event that had a counter for part of its time only is shown as "
		 "count x enabled / running, with the share of the time in parentheses."},
	{OPTION_UNSET, 0, "csv-summary", AT(csv_summary),
	 .help = "with -x, -I and --summary: leave out the word `summary`"},
	{OPTION_FLAG, 'q', "quiet", AT(quiet),
	 .help = "print no counts, and nothing about them; errors are said"},
	{OPTION_COUNT, 'v', "verbose", AT(verbose),
	 .help = "say what is done: -v steps, raw counts and what COMMAND was refused, -vv every open"},

	{OPTION_GROUP, .help = "Options of perf's that ask for what is so anyhow"},
	{OPTION_FLAG, 0, "no-merge", AT(as_is), .help = "events of several PMUs have lines of their own"},
	{OPTION_FLAG, 0, "hybrid-merge", AT(as_is), .help = "likewise; it has no effect"},
	{OPTION_FLAG, 0, "metric-no-group", AT(as_is), .help = "only braces make groups"},
	{OPTION_FLAG, 0, "metric-no-merge", AT(as_is), .help = "likewise"},
	{OPTION_FLAG, 0, "metric-no-threshold", AT(as_is), .help = "nothing is coloured by thresholds"},
	{0},
};
/* clang-format on */

#define NO_TABLES                                                                                         \
	"perf computes metrics out of tables of events for each CPU model, which anyperf does not have; " \
	"name the events with -e: what their counts are in relation to each other is printed beside them"
#define NO_BPF "anyperf opens events of its own and attaches to no BPF program"

const struct absent_option stat_absent_options[] = {
	{'M', "metrics", NO_TABLES},
	{0, "topdown", NO_TABLES},
	{0, "td-level", NO_TABLES},
	{'T', "transaction",
	 "the events of transactions are the CPU's own; where it has them: "
	 "-e '{cpu/tx-start/,cpu/tx-abort/,cpu/tx-commit/}'"},
	{0, "smi-cost",
	 "it changes a setting of all CPUs (freeze_on_smi); with that set by hand: "
	 "-a -e msr/smi/,msr/aperf/,cycles"},
	{0, "iostat", NO_TABLES},
	{'g', "group", "a group is written with braces: -e '{cycles,instructions}'"},
	{0, "cputype",
	 "the PMU is written with the event: -e cpu_core/instructions/,cpu_atom/instructions/"},
	{0, "percore-show-thread", "counts of each CPU are those of -A"},
	{0, "per-cache", "counts of each die or socket are those of --per-die and --per-socket"},
	{0, "per-cluster", "counts of each die or socket are those of --per-die and --per-socket"},
	{'b', "bpf-prog", NO_BPF},
	{0, "bpf-counters", NO_BPF},
	{0, "bpf-attr-map", NO_BPF},
	{0},
};

const struct section stat_sections[] = {
	{"Output",
	 "Counts go to stderr. Where there is something to relate a count to, the relation stands "
	 "behind `#`: CPUs used, instructions per cycle, GHz, shares of misses, events per second of "
	 "CPU time.\n\n"
	 "What the virtual PMU counts is exact, but for events that a model of a machine counts, which the "
	 "heading names; and the program runs under a translator: times and "
	 "software events are those of that run, typically 1.1 to 3 times as long as natively, and with "
	 "the model more. The heading says so, and there are no events per second. Page faults that can only be had with "
	 "the translator's own, since the kernel refuses perf events, are marked.\n\n"
	 "`<not counted>`: the event could be opened but never got to count, since what is measured "
	 "did not run or the counters were taken. `<not supported>`: it could not be opened; the "
	 "reason and the remedy stand below the table, once per cause. `<partial>`: it could be opened "
	 "on some of the CPUs or threads only, as many as stand behind `#`, so there is no count of "
	 "all; -A and --per-thread show that of each.\n\n"
	 "`not counted:` above the table names programs that the virtual PMU leaves to the kernel: setuid "
	 "programs of another user, 32-bit programs, those that may not be read. What they and their "
	 "children do is in no count.\n\n"
	 "A percentage in parentheses at the end of a line is the share of its time for which a "
	 "multiplexed event really counted; the count is scaled up from it."},
	{"Signals",
	 "Signals that ask for an end or mean something to the program (HUP, INT, QUIT, TERM, USR1, "
	 "USR2) are forwarded to it, unless the terminal has sent them to both already; the counts are "
	 "printed when it ends. Without a command they end the measurement."},
	{"What is said beside the counts",
	 "On stderr: that a signal or --timeout ended the command, which programs were not counted, with -x "
	 "or -I why a count is of a part only, and, on a "
	 "terminal, what is waited for if nothing was named to be measured. With -x such lines begin with `#`; JSON has "
	 "members for them instead."},
	{"Exit status",
	 "That of the command; 128 + N if signal N ended it. 127 if the command was not found, 126 if "
	 "it could not be started, 125 if anyperf itself failed: also to write the counts of a command that did not. Without a command "
	 "0.\n\n"
	 "Events without a count do not change it, as they do not with perf. If none can be opened for a "
	 "reason that is not the event's, as rights or too few descriptors, nothing is run: 125."},
	{"Examples", "Count the usual events of a program:\n\n"
		     "  anyperf stat -- make\n\n"
		     "Five runs with mean and deviation, two events of user mode in one group:\n\n"
		     "  anyperf stat -r 5 -e '{cycles,instructions}:u' ./prog\n\n"
		     "What a process does, every second, for a spreadsheet:\n\n"
		     "  anyperf stat -p 1234 -I 1000 -x, -o counts.csv"},
	{0},
};

bool stat_opts_has_target(const struct stat_opts *opts)
{
	return opts->pids || opts->tids || opts->all_cpus || opts->cpus || opts->cgroup;
}

static int conflict(const char *what)
{
	fprintf(stderr, "anyperf stat: %s\n", what);
	return -1;
}

/* What options mean only together. */
static int check_together(const struct stat_opts *o)
{
	bool tasks = o->pids || o->tids;
	bool cpus = o->all_cpus || o->cpus;
	const char *virtual = o->counters ? "--counters" : o->cpu_model ? "--cpu-model" : NULL;
	char text[300];

	if (o->session && !tasks)
		return conflict("--session measures guests by their numbers; -p or -t is missing");
	if (o->separator && o->json)
		return conflict("-x and --json are two forms of output; choose one");
	if (o->all_user && o->all_kernel)
		return conflict("--all-user and --all-kernel exclude each other");
	if (o->null_run && (o->events || o->detailed))
		return conflict("--null counts nothing, so -e and -d have no place beside it");
	if (tasks && o->all_cpus)
		return conflict(
			"-a measures everything, -p and -t one thing; choose one (-C restricts -p "
			"to CPUs)");
	if (o->each_cgroup && o->cgroup != o->each_cgroup)
		return conflict("-G and --for-each-cgroup both say which cgroups; choose one");
	if (o->each_cgroup && o->filters)
		return conflict("--filter and --for-each-cgroup do not go together");
	if (tasks && o->cgroup)
		return conflict(
			"-G and --for-each-cgroup select by cgroup, -p and -t by task; choose one");
	if (o->aggr == AGGR_THREAD && !tasks && !o->all_cpus)
		return conflict("--per-thread needs -p, -t or -a");
	if (o->aggr == AGGR_THREAD && o->cpus)
		return conflict("--per-thread and -C do not go together");
	if (o->aggr && o->aggr != AGGR_THREAD && !cpus && !o->cgroup)
		return conflict("counts by CPU, core, die, socket or node need -a or -C");
	if (o->repeat != 1 && !o->command)
		return conflict("-r repeats a command, but none is given");
	if (o->repeat != 1 && o->interval_ms)
		return conflict("-r and -I do not go together");
	if (o->metric_only && o->repeat != 1)
		return conflict("--metric-only shows no deviations, so -r has no place beside it");
	if (o->metric_only && o->aggr == AGGR_THREAD)
		return conflict("--metric-only and --per-thread do not go together");
	if (o->table && o->repeat == 1)
		return conflict("--table needs -r");
	if (!o->interval_ms && (o->interval_count || o->interval_clear || o->summary))
		return conflict("--interval-count, --interval-clear and --summary need -I");
	if (o->delay_ms < 0 && !o->control)
		return conflict("-D -1 waits for --control, which is not given");
	if (o->deterministic.on && (!o->command || stat_opts_has_target(o)))
		return conflict(
			"--deterministic is about a command that is started: give one, and none of "
			"-p, -t, -a, -C, -G");
	if (o->deterministic.on && o->pmu && !strcmp(o->pmu, "kernel"))
		return conflict("--deterministic needs the virtual PMU; --pmu=kernel excludes it");
	if (virtual && o->pmu && !strcmp(o->pmu, "kernel")) {
		snprintf(text, sizeof(text),
			 "%s is about the virtual PMU; --pmu=kernel excludes it", virtual);
		return conflict(text);
	}
	if (virtual && o->session) {
		snprintf(
			text, sizeof(text),
			"the first command of a session decides about %s; `anyperf run --session %s` "
			"takes it",
			virtual, o->session);
		return conflict(text);
	}
	if (virtual && (!o->command || stat_opts_has_target(o))) {
		snprintf(
			text, sizeof(text),
			"%s is about the virtual PMU, which counts what is started under it: give a "
			"command, and none of -p, -t, -a, -C, -G",
			virtual);
		return conflict(text);
	}
	if (o->session && o->pmu && !strcmp(o->pmu, "kernel"))
		return conflict("--session is about the virtual PMU; --pmu=kernel excludes it");
	if (deterministic_check(&cmd_stat, &o->deterministic))
		return -1;
	if (o->append && !o->output)
		return conflict("--append needs -o");
	if (o->quiet && (o->output || o->log_fd >= 0))
		return conflict(
			"--quiet prints nothing, so -o and --log-fd have no place beside it");
	if (o->output && o->log_fd >= 0)
		return conflict("-o and --log-fd are two places for the output; choose one");
	return 0;
}

int stat_opts_parse(struct stat_opts *opts, int argc, char **argv)
{
	int first;

	*opts = (struct stat_opts){
		.repeat = 1, .big_num = true, .scale = true, .csv_summary = true, .log_fd = -1};
	first = options_parse(&cmd_stat, opts, argc, argv);
	if (first >= 0 && first < argc)
		opts->command = argv + first;
	/* As perf: what would be the output without -o. */
	if (opts->output && !strcmp(opts->output, "-"))
		opts->output = NULL;
	/* As perf: nothing named at all is the whole machine, until interrupted. */
	if (first >= 0 && !opts->command && !stat_opts_has_target(opts))
		opts->all_cpus = opts->implied_all = true;
	if (!opts->cgroup)
		opts->cgroup = opts->each_cgroup;
	if (first >= 0 && opts->cgroup && !opts->cpus)
		opts->all_cpus = true;
	if (first >= 0 && check_together(opts)) {
		fprintf(stderr, "`anyperf help stat` says what each is for.\n");
		first = -1;
	}
	if (first < 0) {
		stat_opts_release(opts);
		return first;
	}
	return 0;
}

void stat_opts_release(struct stat_opts *opts)
{
	free(opts->events);
	free(opts->filters);
	opts->events = NULL;
	opts->filters = NULL;
}
