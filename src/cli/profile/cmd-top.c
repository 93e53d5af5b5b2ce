/*
 * What runs now. A recorder of our own, in a process of its own, writes a stream into a pipe; here
 * it is read as any other recording, added up, and shown every few seconds. The recorder ends a
 * round at least once a second, so there is something to read also when nothing is sampled.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/profile/profile.h"

#define MAX_ARGS 32

struct top_opts {
	const char *events, *freq, *count;
	const char *pids, *tids, *cpus, *cgroup;
	bool all_cpus;
	bool call_graph;
	long delay;
	long iterations;
	long rows;
};

struct top_job {
	struct top_opts opts;
	struct reading reading;
	struct profile profile;
	pid_t recorder;
	u64 due; /* when it is shown next, ns */
	long shown;
	bool tty;
};

#define AT(field) .offset = offsetof(struct top_opts, field)

/* clang-format off */
static const struct option table[] = {
	{OPTION_GROUP, .help = "What to sample"},
	{OPTION_STR, 'e', "event", "EVENTS", AT(events), .complete = COMPLETE_EVENT,
	 .help = "sample these events, as for `anyperf record`"},
	{OPTION_STR, 'F', "freq", "N|max", AT(freq),
	 .help = "take about N samples a second of each event"},
	{OPTION_STR, 'c', "count", "N", AT(count), .help = "take a sample after every N occurrences"},
	{OPTION_FLAG, 'g', NULL, AT(call_graph),
	 .help = "sample call chains, and show functions with what they called"},

	{OPTION_GROUP, .help = "What to watch, if not the whole machine"},
	{OPTION_STR, 'p', "pid", "PIDS", AT(pids), .complete = COMPLETE_PID,
	 .help = "these processes with all their threads, separated by commas"},
	{OPTION_STR, 't', "tid", "TIDS", AT(tids), .complete = COMPLETE_PID,
	 .help = "these threads, separated by commas"},
	{OPTION_FLAG, 'a', "all-cpus", AT(all_cpus), .help = "everything on all CPUs"},
	{OPTION_STR, 'C', "cpu", "CPUS", AT(cpus), .help = "everything on these CPUs, as in 0-3,8"},
	{OPTION_STR, 'G', "cgroup", "CGROUPS", AT(cgroup), .help = "only what runs in this cgroup"},

	{OPTION_GROUP, .help = "How it is shown"},
	{OPTION_INT, 'd', "delay", "SECONDS", AT(delay), .min = 1, .max = 3600,
	 .help = "show what was sampled every SECONDS; 2 if nothing else is said"},
	{OPTION_INT, 'n', "iterations", "N", AT(iterations), .min = 1, .max = 1000000,
	 .help = "end after N times"},
	{OPTION_INT, 'E', "entries", "N", AT(rows), .min = 1, .max = 100000,
	 .help = "show N rows; as many as the terminal has if nothing else is said, or 20"},
	{0},
};
/* clang-format on */

static u64 now_in_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static void add_pair(char **argv, int *argc, const char *option, const char *value)
{
	if (!value)
		return;
	argv[(*argc)++] = (char *)option;
	argv[(*argc)++] = (char *)value;
}

/* In the new process: the recorder, with what was chosen. */
static int record(const struct top_opts *o)
{
	bool chosen = o->pids || o->tids || o->cpus || o->cgroup;
	char *argv[MAX_ARGS];
	int argc = 0;

	argv[argc++] = (char *)"record";
	add_pair(argv, &argc, "-o", "-");
	add_pair(argv, &argc, "-e", o->events);
	add_pair(argv, &argc, "-F", o->freq);
	add_pair(argv, &argc, "-c", o->count);
	add_pair(argv, &argc, "-p", o->pids);
	add_pair(argv, &argc, "-t", o->tids);
	add_pair(argv, &argc, "-C", o->cpus);
	add_pair(argv, &argc, "-G", o->cgroup);
	if (o->call_graph)
		argv[argc++] = (char *)"-g";
	if (o->all_cpus || !chosen)
		argv[argc++] = (char *)"-a";
	argv[argc++] = (char *)"-q";
	argv[argc] = NULL;
	return cmd_record.run(argc, argv);
}

static int start_recorder(struct top_job *job, int *from)
{
	int ends[2];

	if (pipe(ends))
		return command_error(&cmd_top, "cannot make a pipe: %s", strerror(errno));
	fflush(stdout);
	job->recorder = fork();
	if (job->recorder < 0)
		return command_error(&cmd_top, "cannot fork: %s", strerror(errno));
	if (!job->recorder) {
		close(ends[0]);
		if (dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(cmd_top.failure);
		close(ends[1]);
		_exit(record(&job->opts));
	}
	close(ends[1]);
	*from = ends[0];
	/* The terminal's ^C ends the recorder, whose end ends us. */
	signal(SIGINT, SIG_IGN);
	return 0;
}

static u32 rows_of(const struct top_job *job)
{
	struct winsize size;

	if (job->opts.rows)
		return (u32)job->opts.rows;
	if (job->tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row > 6)
		return size.ws_row - 5u;
	return 20;
}

static void show(struct top_job *job)
{
	struct profile *p = &job->profile;
	struct profile next = {.keys = p->keys, .children = p->children};

	profile_sort(p);
	if (job->tty)
		fputs("\033[H\033[2J", stdout);
	if (!p->samples)
		printf("# no samples\n\n");
	for (u32 e = 0; e < p->events; e++)
		if (p->counts[e])
			profile_print(p, &job->reading, (int)e, rows_of(job), stdout);
	fflush(stdout);
	job->shown++;
	profile_release(p);
	*p = next;
}

static bool is_enough(const struct top_job *job)
{
	return ferror(stdout) || (job->opts.iterations && job->shown >= job->opts.iterations);
}

/* The recorder has emptied all buffers once more. */
static void on_round(struct top_job *job)
{
	if (is_enough(job) || now_in_ns() < job->due)
		return;
	job->due += (u64)job->opts.delay * 1000000000;
	show(job);
	if (is_enough(job))
		kill(job->recorder, SIGTERM);
}

/* Whether the recorder writes anything; if not it has said itself why. */
static bool begins(int from)
{
	struct pollfd p = {.fd = from, .events = POLLIN};

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	return p.revents & POLLIN;
}

static int end_of_recorder(const struct top_job *job)
{
	int status = 0;

	while (waitpid(job->recorder, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) ? cmd_top.failure : 0;
}

/*
 * As the records come, not in the order of time, which would be seconds behind: a sample may be
 * read before the mapping that it needs if that was told on another CPU.
 */
static void watch(struct top_job *job)
{
	const struct reading_filter filter = {.input = "-"};
	struct data_item item;

	if (!reading_open(&job->reading, &cmd_top, &filter, false)) {
		while (reading_next(&job->reading, &item)) {
			if (item.record.type == DATA_FINISHED_ROUND)
				on_round(job);
			else if (item.record.type == PERF_RECORD_SAMPLE && item.decoded &&
				 !is_enough(job))
				profile_add(&job->profile, &job->reading, &item);
		}
		if (!is_enough(job) && job->profile.samples)
			show(job);
	}
	reading_close(&job->reading);
}

static int run(int argc, char **argv)
{
	struct top_job job = {.opts = {.delay = 2}};
	int first = options_parse(&cmd_top, &job.opts, argc, argv), from = -1, status;

	if (first < 0)
		return command_leave_status(&cmd_top, first);
	if (first < argc)
		return command_error(&cmd_top,
				     "takes no argument, not '%s'; `anyperf record` runs programs",
				     argv[first]),
		       cmd_top.failure;
	job.tty = isatty(STDOUT_FILENO);
	job.profile.keys = PROFILE_COMM | PROFILE_OBJECT | PROFILE_SYMBOL;
	job.profile.children = job.opts.call_graph;
	if (start_recorder(&job, &from))
		return cmd_top.failure;
	job.due = now_in_ns() + (u64)job.opts.delay * 1000000000;
	if (begins(from) && dup2(from, STDIN_FILENO) >= 0)
		watch(&job);
	close(from);
	status = end_of_recorder(&job);
	profile_release(&job.profile);
	return status;
}

const struct command cmd_top = {
	.name = "top",
	.summary = "show what the machine is doing now",
	.synopsis = "[options]",
	.description =
		"Samples all CPUs, or what is chosen, and shows every two seconds where the samples of the "
		"last two seconds were taken, the largest share first. On a terminal the table stays in "
		"its place; else one follows the other. ^C ends it.",
	.options = table,
	.see_also = "anyperf-record(1), anyperf-report(1), perf-top(1)",
	.failure = 2,
	.run = run,
};
