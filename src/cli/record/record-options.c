#include "cli/record/record-options.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/modeled-events.h"

#define AT(field) .offset = offsetof(struct record_opts, field)

static int add_events(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	size_t old = o->events ? strlen(o->events) : 0;
	char *all;

	if (!*arg) {
		snprintf(why, size, "the list of events is empty");
		return -EINVAL;
	}
	all = realloc(o->events, old + strlen(arg) + 2);
	if (!all) {
		snprintf(why, size, "out of memory");
		return -EINVAL;
	}
	sprintf(all + old, "%s%s", old ? "," : "", arg);
	o->events = all;
	o->last_event = old;
	return 0;
}

static int add_filter(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	struct record_filter *more;

	if (!o->events) {
		snprintf(why, size,
			 "it is for the tracepoints of the -e before it, and there is none");
		return -EINVAL;
	}
	more = realloc(o->filters, (o->nr_filters + 1) * sizeof(*more));
	if (!more) {
		snprintf(why, size, "out of memory");
		return -EINVAL;
	}
	o->filters = more;
	more[o->nr_filters++] = (struct record_filter){arg, o->last_event, strlen(o->events)};
	return 0;
}

static int set_freq(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	char *end;

	o->freq_max = !strcmp(arg, "max");
	if (o->freq_max)
		return 0;
	errno = 0;
	o->freq = strtol(arg, &end, 10);
	if (end != arg && !*end && !errno && o->freq > 0 && o->freq <= 1000000000)
		return 0;
	snprintf(why, size, "'%.40s' is neither a number of samples a second nor `max`", arg);
	return -EINVAL;
}

static int set_dump_size(struct record_opts *o, const char *text, char *why, size_t size)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n < 8 || n > 65528) {
		snprintf(why, size, "'%.40s' is no size of a piece of stack (8 to 65528)", text);
		return -EINVAL;
	}
	o->dump_size = (u32)ALIGN_UP(n, 8);
	return 0;
}

static int set_graph(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;

	o->dump_size = 8192;
	if (!arg || !strcmp(arg, "fp"))
		o->graph = GRAPH_FP;
	else if (!strcmp(arg, "lbr"))
		o->graph = GRAPH_LBR;
	else if (!strncmp(arg, "dwarf", 5) && (!arg[5] || arg[5] == ','))
		o->graph = GRAPH_DWARF;
	else {
		snprintf(why, size, "'%.40s' is none of fp, dwarf, dwarf,SIZE, lbr", arg);
		return -EINVAL;
	}
	return o->graph == GRAPH_DWARF && arg[5] ? set_dump_size(o, arg + 6, why, size) : 0;
}

static int set_branch_any(void *into, const char *arg, char *why, size_t size)
{
	(void)arg;
	(void)why;
	(void)size;
	((struct record_opts *)into)->branch_type |= PERF_SAMPLE_BRANCH_ANY;
	return 0;
}

static const struct {
	const char *name;
	u64 bit;
} branch_kinds[] = {
	{"any", PERF_SAMPLE_BRANCH_ANY},
	{"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
	{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
	{"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
	{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
	{"call", PERF_SAMPLE_BRANCH_CALL},
	{"cond", PERF_SAMPLE_BRANCH_COND},
	{"u", PERF_SAMPLE_BRANCH_USER},
	{"k", PERF_SAMPLE_BRANCH_KERNEL},
	{"hv", PERF_SAMPLE_BRANCH_HV},
	{"stack", PERF_SAMPLE_BRANCH_CALL_STACK},
	{"save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE},
	{"hw_index", PERF_SAMPLE_BRANCH_HW_INDEX},
	{"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
	{"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
	{"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX},
};

static int add_branches(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	u64 levels = PERF_SAMPLE_BRANCH_PLM_ALL;

	while (*arg) {
		size_t len = strcspn(arg, ","), i = 0;

		while (i < ARRAY_SIZE(branch_kinds) &&
		       (strlen(branch_kinds[i].name) != len ||
			strncmp(branch_kinds[i].name, arg, len) != 0))
			i++;
		if (i == ARRAY_SIZE(branch_kinds)) {
			snprintf(why, size,
				 "'%.*s' is none of any, any_call, any_ret, ind_call, ind_jmp, "
				 "call, cond, u, k, hv, stack, save_type, hw_index, in_tx, no_tx, "
				 "abort_tx",
				 (int)(len < 40 ? len : 40), arg);
			return -EINVAL;
		}
		o->branch_type |= branch_kinds[i].bit;
		arg += len + (arg[len] == ',');
	}
	/* As perf: levels alone are of any branch. */
	if (!(o->branch_type & ~levels))
		o->branch_type |= PERF_SAMPLE_BRANCH_ANY;
	return 0;
}

static int set_level(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	char *end;
	long n = 1;

	if (arg) {
		n = strtol(arg, &end, 10);
		if (end == arg || *end || n < 1 || n > 22) {
			snprintf(why, size, "'%.40s' is not a level between 1 and 22", arg);
			return -EINVAL;
		}
	}
	o->level = (int)n;
	return 0;
}

/* A number with a unit out of @units, where the n-th stands for @steps[n]. */
static bool take_unit(const char *text, const char *units, const u64 *steps, u64 *value)
{
	char *end, *unit;
	double n = strtod(text, &end);

	if (end == text || n <= 0 || n > 1e12 || !*end || end[1])
		return false;
	unit = strchr(units, *end);
	if (!unit)
		return false;
	*value = (u64)(n * (double)steps[unit - units]);
	return *value;
}

static int set_switch(void *into, const char *arg, char *why, size_t size)
{
	static const u64 bytes[] = {1, 1 << 10, 1 << 20, 1 << 30};
	static const u64 times[] = {1000000000ull, 60000000000ull, 3600000000000ull,
				    86400000000000ull};
	struct record_opts *o = into;

	if (!arg || !strcmp(arg, "signal"))
		o->switch_when = SWITCH_SIGNAL;
	else if (take_unit(arg, "BKMG", bytes, &o->switch_limit))
		o->switch_when = SWITCH_SIZE;
	else if (take_unit(arg, "smhd", times, &o->switch_limit))
		o->switch_when = SWITCH_TIME;
	else {
		snprintf(why, size,
			 "'%.40s' is neither `signal`, nor a size like 100M, nor a time like 30s",
			 arg);
		return -EINVAL;
	}
	return 0;
}

static int set_duration(void *into, const char *arg, char *why, size_t size)
{
	struct record_opts *o = into;
	char *end;
	double seconds = strtod(arg, &end);

	if (end == arg || *end || !(seconds > 0) || seconds > 1e9) {
		snprintf(why, size, "'%.40s' is not a number of seconds", arg);
		return -EINVAL;
	}
	o->duration_ms = (u64)(seconds * 1000);
	return 0;
}

static int set_pages(void *into, const char *arg, char *why, size_t size)
{
	static const u64 bytes[] = {1, 1 << 10, 1 << 20, 1 << 30};
	struct record_opts *o = into;
	char *end;
	u64 n;

	if (take_unit(arg, "BKMG", bytes, &n))
		n = (n + 4095) / 4096;
	else {
		n = strtoul(arg, &end, 10);
		if (end == arg || *end)
			n = 0;
	}
	if (!n || n > 1 << 20) {
		snprintf(why, size, "'%.40s' is neither a number of pages nor a size like 512K",
			 arg);
		return -EINVAL;
	}
	/* As perf: the next power of two. */
	for (o->pages = 1; (u64)o->pages < n; o->pages *= 2)
		;
	return 0;
}

static const char *const pmus[] = {"auto", "kernel", "virtual", NULL};

/* clang-format off */
const struct option record_option_table[] = {
	{OPTION_GROUP, .help = "What to sample"},
	{OPTION_CALL, 'e', "event", "EVENTS", .call = add_events, .complete = COMPLETE_EVENT,
	 .help = "sample these events: names of `anyperf list`, separated by commas",
	 .more = "Written as for `anyperf stat`. May be given several times. Without -e it is cycles "
		 "where the CPU has a PMU. Elsewhere the virtual PMU samples a command that is "
		 "started here: instructions:u, or what -e says, as many samples as the count "
		 "has periods. With -p, -t, -a, -C, -G, -b and --call-graph lbr it is cpu-clock. A line "
		 "says so."},
	{OPTION_CALL, 0, "filter", "FILTER", .call = add_filter,
	 .help = "sample the tracepoints of the -e before it only where FILTER holds"},
	{OPTION_CALL, 'F', "freq", "N|max", .call = set_freq,
	 .help = "take about N samples a second of each event; 999 if nothing else is said"},
	{OPTION_INT, 'c', "count", "N", AT(period), .min = 1, .max = INT64_MAX,
	 .help = "take a sample after every N occurrences",
	 .more = "If neither -c nor -F is given each occurrence of a tracepoint, probe or breakpoint "
		 "is a sample."},
	{OPTION_CALL, 'g', NULL, .optional = "fp|dwarf|lbr", .call = set_graph,
	 .help = "sample call chains too, by frame pointers if nothing else is said",
	 .more = "With `dwarf` the top of the user stack (8 KB, or as in `dwarf,SIZE`) and the registers "
		 "are recorded, to be unwound when they are read; with `lbr` the CPU's own record of calls."},
	{OPTION_CALL, 0, "call-graph", "fp|dwarf|lbr", .call = set_graph,
	 .help = "the same, as perf has it"},
	{OPTION_CALL, 'b', "branch-any", .call = set_branch_any,
	 .help = "sample the last branches that were taken, of any kind"},
	{OPTION_CALL, 'j', "branch-filter", "KINDS", .call = add_branches,
	 .help = "sample the last branches of these kinds: any_call,any_ret,cond,u ..."},
	{OPTION_FLAG, 'd', "data", AT(addresses), .help = "sample the addresses of data too"},
	{OPTION_STR, 0, "user-regs", "REGS", AT(user_regs),
	 .help = "sample these registers of user mode, separated by commas; `all`: each"},
	{OPTION_STR, 0, "pmu", "auto|kernel|virtual", AT(pmu), .words = pmus,
	 .help = "who samples; by default the kernel where it can, else the virtual PMU"},
	MACHINE_OPTION(struct record_opts, machine, "Without the option it is that of this machine.",
		       "sample with the virtual PMU, and with the model of this machine"),
	MODEL_WINDOWS_OPTION(struct record_opts, model_windows,
			     " Samples of cycles and branch misses at a frequency are taken in windows. "
			     "With -c or -d, and for other events, the model sees all."),
	{OPTION_FLAG, 0, "exact", AT(exact),
	 .help = "count how often each instruction of COMMAND is executed, instead of sampling",
	 .more = "The virtual PMU runs COMMAND and all that it starts, and counts every instruction of "
		 "user mode in every thread. At the end each instruction has one sample, whose period is "
		 "how often it was executed: the sum is what `anyperf stat` counts, and `anyperf report`, "
		 "`anyperf script` and perf show the profile as any other. It costs little more "
		 "than counting. With -g each way to a function is told apart, as call chains, which takes "
		 "several times as long: a sample is then of instructions one after the other. With "
		 "--machine, or -e, what a model of a machine counts is attributed to instructions "
		 "as well: by default cycles, branch-misses, L1-dcache-load-misses, LLC-load-misses "
		 "and dTLB-load-misses; with -g, by the way to a function. With -d that is told apart by "
		 "what was accessed."},
	{OPTION_FLAG, 0, "alloc-sites", AT(alloc_sites),
	 .help = "with --exact and -d: by where memory was allocated, not as one heap",
	 .more = "What a program has got from malloc, calloc, realloc, operator new and the like, of "
		 "the C library or of another allocator, is told apart by who has called them: "
		 "`anyperf report -s data` names the function and the line. Wrappers that many programs "
		 "have, as strdup, xmalloc and g_malloc, are taken for part of the allocator. They are known "
		 "by their names: a static program must not be stripped. Each call of such a function takes "
		 "some microseconds longer."},
	{OPTION_STR, 0, "toggle", "FUNCTION", AT(toggle),
	 .help = "with --exact: only while FUNCTION runs, with all that it calls; may have * and ?",
	 .more = "Functions of C++ are named with their parameters or without."},
	{OPTION_FLAG, 'i', "no-inherit", AT(no_inherit),
	 .help = "do not sample the children of what is recorded"},

	{OPTION_GROUP, .help = "What to record, if not only COMMAND"},
	{OPTION_STR, 'p', "pid", "PIDS", AT(pids), .complete = COMPLETE_PID,
	 .help = "these processes with all their threads, separated by commas"},
	{OPTION_STR, 't', "tid", "TIDS", AT(tids), .complete = COMPLETE_PID,
	 .help = "these threads, separated by commas"},
	{OPTION_FLAG, 'a', "all-cpus", AT(all_cpus), .help = "everything on all CPUs"},
	{OPTION_STR, 'C', "cpu", "CPUS", AT(cpus),
	 .help = "everything on these CPUs, as in 0-3,8; all must be online"},
	{OPTION_STR, 'G', "cgroup", "CGROUPS", AT(cgroup),
	 .help = "only what runs in this cgroup (or list of them), on the CPUs given by -a or -C"},

	{OPTION_GROUP, .help = "Where to"},
	{OPTION_STR, 'o', "output", "FILE", AT(output), .complete = COMPLETE_FILE,
	 .help = "write to FILE instead of perf.data; `-`: to stdout, as a stream",
	 .more = "A perf.data that exists is renamed to perf.data.old. Without -o, and with a pipe as "
		 "stdout, the recording goes there, as with perf. A FIFO gets a stream, too."},
	{OPTION_CALL, 'z', "compression-level", .optional = "N", .call = set_level,
	 .help = "compress with zstd, at level N (1 to 22; 1)"},
	{OPTION_CALL, 'm', "mmap-pages", "PAGES|SIZE", .call = set_pages,
	 .help = "the size of each CPU's buffer; 128 pages if nothing else is said",
	 .more = "With more than 4,000 samples a second it is up to 4096 pages. Over the limit for locked memory a smaller size is taken, and a line says so."},
	{OPTION_FLAG, 0, "overwrite", AT(overwrite),
	 .help = "let the newest samples overwrite the oldest; write them at the end"},
	{OPTION_CALL, 0, "switch-output", .optional = "signal|SIZE|TIME", .call = set_switch,
	 .help = "begin a new file at each SIGUSR2, or every SIZE (100M) or TIME (30s)",
	 .more = "Each file is complete, and called by the time at which it ended: perf.data.2026013112300512."},

	{OPTION_GROUP, .help = "When and how long"},
	{OPTION_INT, 'D', "delay", "MS", AT(delay_ms), .min = -1, .max = 86400000,
	 .help = "start sampling MS milliseconds after COMMAND starts; -1: when --control says so"},
	{OPTION_CALL, 0, "duration", "SECONDS", .call = set_duration,
	 .help = "end after SECONDS; COMMAND is sent SIGTERM"},
	{OPTION_STR, 0, "control", "fd:CTL[,ACK] | fifo:CTL[,ACK]", AT(control),
	 .help = "take `enable`, `disable`, `ping`, `evlist`, `stop` from a descriptor or fifo"},

	{OPTION_GROUP, .help = "What to say"},
	{OPTION_FLAG, 'q', "quiet", AT(quiet), .help = "say nothing but what went wrong"},
	{OPTION_COUNT, 'v', "verbose", AT(verbose), .help = "say more of what is done"},
	{0},
};
/* clang-format on */

const struct absent_option record_absent_options[] = {
	{'n', "no-samples", "records without samples are those of -e dummy"},
	{'N', "no-buildid-cache",
	 "files are not copied into a cache; their build ids are recorded, which costs little"},
	{'B', "no-buildid", "build ids cost little, and without them files are mixed up"},
	{0, "intr-regs",
	 "registers of the kernel are not sampled yet; --user-regs has those of user mode"},
	{0, "per-thread", "threads have buffers of their own with -i and -t or -p"},
	{'s', "stat", "counts are those of `anyperf stat`"},
	{0},
};

const struct section record_sections[] = {
	{"Recordings",
	 "A recording is perf's: `anyperf report`, `anyperf script`, perf and what reads its files can "
	 "read it. Whoever records can be killed at any moment; what was written is read up to there. If "
	 "the disk is full, what has been written stays and can be read."},
	{"Losses",
	 "What finds no room in a buffer is lost. How much that was is said at the end: -m with more "
	 "pages, or fewer samples, help."},
	{"Exit status",
	 "That of COMMAND; 128 + N if signal N ended it. 127 if the command was not found, 126 if it "
	 "could not be started, 125 if anyperf itself failed. Without a command 0."},
	{"Examples", "Where a program spends its time, with call chains:\n\n"
		     "  anyperf record -g -- make\n\n"
		     "The whole machine for ten seconds:\n\n"
		     "  anyperf record -a --duration 10\n\n"
		     "Each page fault of a process, read as it comes:\n\n"
		     "  anyperf record -e page-faults -c 1 -p 1234 -o - | anyperf script -i -"},
	{0},
};

bool record_opts_has_target(const struct record_opts *o)
{
	return o->pids || o->tids || o->all_cpus || o->cpus || o->cgroup;
}

bool record_opts_pmu(const struct record_opts *o, const char *pmu)
{
	return !strcmp(o->pmu ? o->pmu : "auto", pmu);
}

bool record_opts_data_maps(const struct record_opts *o)
{
	return o->addresses || o->graph == GRAPH_DWARF;
}

/* What an exact profile has no use for. */
static const char *not_exact(const struct record_opts *o)
{
	return o->filters                            ? "--filter"
	       : o->freq || o->freq_max || o->period ? "-F and -c"
	       : o->graph > GRAPH_FP                 ? "-g dwarf and -g lbr"
	       : o->branch_type                      ? "-b and -j"
	       : o->user_regs                        ? "--user-regs"
	       : o->no_inherit                       ? "-i"
	       : record_opts_has_target(o)           ? "-p, -t, -a, -C and -G"
	       : o->overwrite                        ? "--overwrite"
	       : o->switch_when                      ? "--switch-output"
	       : o->delay_ms                         ? "-D"
	       : o->control                          ? "--control"
	       : record_opts_pmu(o, "kernel")        ? "--pmu=kernel"
						     : NULL;
}

static int check(const struct record_opts *o)
{
	if (!o->command && !record_opts_has_target(o))
		return command_error(&cmd_record,
				     "nothing to record: give a COMMAND, or -p, -t, -a, -C or -G");
	if (o->toggle && !o->exact)
		return command_error(&cmd_record, "--toggle limits what --exact counts");
	if (o->alloc_sites && !(o->exact && o->addresses))
		return command_error(&cmd_record,
				     "--alloc-sites says where data was allocated: it needs "
				     "--exact and -d");
	if (o->exact && not_exact(o))
		return command_error(
			&cmd_record,
			"--exact counts every instruction of COMMAND from its start to "
			"its end: not with %s",
			not_exact(o));
	if (o->period && (o->freq || o->freq_max))
		return command_error(&cmd_record, "-c and -F exclude each other");
	if (!!o->pids + !!o->tids + (o->all_cpus || o->cpus || o->cgroup) > 1)
		return command_error(&cmd_record,
				     "-p, -t and CPUs (-a, -C, -G) exclude each other");
	if (o->delay_ms == -1 && !o->control)
		return command_error(&cmd_record, "-D -1 waits for a word of --control");
	if (o->graph == GRAPH_LBR && o->branch_type)
		return command_error(
			&cmd_record,
			"-g=lbr takes the CPU's record of branches for itself: not with "
			"-b or -j");
	if (o->switch_when && o->output && !strcmp(o->output, "-"))
		return command_error(&cmd_record, "--switch-output needs files, not -o -");
	if (o->overwrite && (o->switch_when == SWITCH_SIZE || o->switch_when == SWITCH_TIME))
		return command_error(
			&cmd_record,
			"--overwrite writes when it is asked to: --switch-output=signal");
	return 0;
}

int record_opts_parse(struct record_opts *o, int argc, char **argv)
{
	int first = options_parse(&cmd_record, o, argc, argv);

	if (first < 0)
		return first;
	o->command = first < argc ? argv + first : NULL;
	return check(o) ? -1 : first;
}

void record_opts_release(struct record_opts *o)
{
	free(o->events);
	free(o->filters);
}
