/*
 * What runs now. A recorder of our own, in a process of its own, writes a stream into a pipe; here
 * it is read as any other recording, added up, and shown every few seconds. The recorder ends a
 * round at least once a second, so there is something to read also when nothing is sampled.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/profile/profile.h"
#include "cli/profile/screen.h"

#define OWN_ARGS   32 /* of the recorder, beside the command */
#define FIXED_ROWS 4  /* of a table, above its rows */
#define MAX_SAID   (1 << 20)

struct top_opts {
	const char *events, *freq, *count;
	const char *pids, *tids, *cpus, *cgroup;
	bool all_cpus;
	bool call_graph;
	long delay;
	long iterations;
	long rows;
	char **command; /* NULL: none */
};

struct top_job {
	struct top_opts opts;
	struct reading reading;
	struct profile profile; /* of the samples since it was shown last */
	pid_t recorder;
	u64 due; /* when it is shown next, ns */
	long shown;
	bool tty;
	bool clears; /* the terminal, without a screen of ncurses */
	/* On a terminal. */
	struct screen *screen; /* owned; NULL: the table is printed */
	int keys;
	struct profile last; /* what is shown; empty before */
	u32 event;           /* of those that had samples the one that is shown */
	bool paused, help, over;
	int said; /* what the recorder and the command say meanwhile; -1: it goes to stderr */
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

	{OPTION_GROUP, .help = "What to watch, if neither the whole machine nor COMMAND"},
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
	int argc = 0, nr = 0;
	char **argv;

	while (o->command && o->command[nr])
		nr++;
	argv = calloc(OWN_ARGS + (size_t)nr + 1, sizeof(*argv));
	CHECK(argv);
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
	if (o->all_cpus || (!chosen && !nr))
		argv[argc++] = (char *)"-a";
	argv[argc++] = (char *)"-q";
	argv[argc++] = (char *)"--";
	for (int i = 0; i < nr; i++)
		argv[argc + i] = o->command[i];
	return cmd_record.run(argc + nr, argv);
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
		if (job->said >= 0)
			(void)dup2(job->said, STDERR_FILENO);
		command_speaks(&cmd_top);
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

static void print_tables(struct top_job *job, const struct profile *p, FILE *out)
{
	if (!p->samples)
		fprintf(out, "# no samples\n\n");
	for (u32 e = 0; e < p->events; e++)
		if (p->counts[e])
			profile_print(p, &job->reading, (int)e, rows_of(job), out);
	fflush(out);
}

/* The event to be shown of those that had samples; how many these are. */
static u32 choose_event(const struct top_job *job, u32 *event)
{
	const struct profile *p = &job->last;
	u32 n = 0, with = 0;

	for (u32 e = 0; e < p->events; e++)
		with += p->counts[e] != 0;
	for (u32 e = 0; e < p->events; e++)
		if (p->counts[e] && n++ == (with ? job->event % with : 0))
			*event = e;
	return with;
}

static const char help[] = "Keys\n\n\n\n"
			   "  up, down, k, j           a row up or down\n"
			   "  page up, page down       a screen up or down\n"
			   "  home, end                to the first and last row\n"
			   "  e, tab                   the next event\n"
			   "  p, blank                 hold the table as it is; go on\n"
			   "  h, ?                     this list, and back\n"
			   "  q, ^C                    end\n";

static void draw(struct top_job *job)
{
	u32 event = 0, with = choose_event(job, &event);
	char *text = NULL, status[160];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	CHECK(out);
	if (job->help)
		fputs(help, out);
	else if (with)
		profile_print(&job->last, &job->reading, (int)event,
			      job->opts.rows ? (u32)job->opts.rows : UINT32_MAX, out);
	else
		fputs("# no samples\n", out);
	fclose(out);
	snprintf(status, sizeof(status),
		 " every %ld s%s | q: end  p: hold  h: keys%s | lost: %" PRIu64, job->opts.delay,
		 job->paused ? ", held" : "", with > 1 ? "  e: next event" : "", job->reading.lost);
	screen_show(job->screen, text, FIXED_ROWS, status);
	free(text);
}

static void show(struct top_job *job)
{
	struct profile *p = &job->profile;
	struct profile next = {.keys = p->keys, .children = p->children};

	job->shown++;
	profile_sort(p);
	if (job->screen && job->paused) {
		profile_release(p);
	} else if (job->screen) {
		profile_release(&job->last);
		job->last = *p;
		draw(job);
	} else {
		if (job->clears)
			fputs("\033[H\033[2J", stdout);
		print_tables(job, p, stdout);
		profile_release(p);
	}
	*p = next;
}

static bool is_enough(const struct top_job *job)
{
	return job->over || ferror(stdout) ||
	       (job->opts.iterations && job->shown >= job->opts.iterations);
}

static void end_recorder(struct top_job *job)
{
	if (!job->over)
		kill(job->recorder, SIGTERM);
	job->over = true;
}

static void on_keys(struct top_job *job)
{
	enum screen_key key;

	while (!job->over && (key = screen_key(job->screen)) != SCREEN_NONE) {
		switch (key) {
		case SCREEN_QUIT: end_recorder(job); continue;
		case SCREEN_PAUSE: job->paused = !job->paused; break;
		case SCREEN_NEXT: job->event++; break;
		case SCREEN_HELP: job->help = !job->help; break;
		case SCREEN_MOVE:
		case SCREEN_NONE: continue;
		}
		draw(job);
	}
}

/* Until the recorder has written something. */
static void wait_for_records(void *data)
{
	struct top_job *job = data;
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};

	while (job->screen) {
		p[1].fd = job->over ? -1 : job->keys;
		/* Interrupted: the terminal has another size, which comes as a key. */
		if (poll(p, 2, -1) < 0 || p[1].revents)
			on_keys(job);
		else if (p[0].revents)
			return;
		if (p[1].revents & (POLLHUP | POLLERR))
			end_recorder(job);
	}
}

/* Where keys come from: stdin is the recording's. -1: nowhere. */
static int open_keys(void)
{
	if (isatty(STDIN_FILENO))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

/* What was said meanwhile would have torn the screen; no more of it is kept than somebody reads. */
static void open_said(struct top_job *job)
{
	job->said = memfd_create("anyperf-top", MFD_CLOEXEC);
	if (job->said >= 0)
		(void)fcntl(job->said, F_SETFL, O_APPEND);
}

static void limit_said(struct top_job *job)
{
	struct stat st;

	if (job->said >= 0 && !fstat(job->said, &st) && st.st_size > MAX_SAID)
		(void)!ftruncate(job->said, 0);
}

/* The recorder has emptied all buffers once more. */
static void on_round(struct top_job *job)
{
	if (is_enough(job) || now_in_ns() < job->due)
		return;
	job->due += (u64)job->opts.delay * 1000000000;
	show(job);
	limit_said(job);
	if (is_enough(job))
		end_recorder(job);
}

static void tell_said(struct top_job *job)
{
	char text[4096];
	ssize_t n;

	if (job->said < 0)
		return;
	for (off_t at = 0; (n = pread(job->said, text, sizeof(text), at)) > 0; at += n)
		fwrite(text, 1, (size_t)n, stderr);
	close(job->said);
}

/* The last table stays readable. */
static void close_screen(struct top_job *job)
{
	if (!job->screen)
		return;
	screen_close(job->screen);
	job->screen = NULL;
	print_tables(job, &job->last, stdout);
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
	if (job->over || !WIFEXITED(status))
		return 0;
	status = WEXITSTATUS(status);
	return !status || (job->opts.command && status != cmd_record.failure) ? status
									      : cmd_top.failure;
}

static void watch(struct top_job *job)
{
	const struct reading_filter filter = {.input = "-"};
	struct data_item item;

	if (!reading_open(&job->reading, &cmd_top, &filter, READING_LIVE)) {
		if (job->keys >= 0)
			job->screen = screen_open(job->keys);
		if (job->screen)
			data_reader_on_wait(job->reading.data, wait_for_records, job);
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
	close_screen(job);
	reading_close(&job->reading);
}

static int run(int argc, char **argv)
{
	struct top_job job = {.opts = {.delay = 2}, .keys = -1, .said = -1};
	int first = options_parse(&cmd_top, &job.opts, argc, argv), from = -1, status;
	const char *term;

	if (first < 0)
		return command_leave_status(&cmd_top, first);
	if (first < argc)
		job.opts.command = argv + first;
	job.tty = isatty(STDOUT_FILENO);
	term = getenv("TERM");
	job.clears = job.tty && term && strcmp(term, "dumb") != 0;
	if (job.tty) {
		job.keys = open_keys();
		open_said(&job);
	}
	job.profile.keys = PROFILE_COMM | PROFILE_OBJECT | PROFILE_SYMBOL;
	job.profile.children = job.opts.call_graph;
	if (start_recorder(&job, &from)) {
		tell_said(&job);
		return cmd_top.failure;
	}
	job.due = now_in_ns() + (u64)job.opts.delay * 1000000000;
	if (begins(from) && dup2(from, STDIN_FILENO) >= 0)
		watch(&job);
	close(from);
	status = end_of_recorder(&job);
	tell_said(&job);
	profile_release(&job.profile);
	profile_release(&job.last);
	return status;
}

const struct command cmd_top = {
	.name = "top",
	.summary = "show what the machine is doing now",
	.synopsis = "[options]\n"
		    "[options] [--] COMMAND [ARGUMENTS]",
	.description =
		"Samples all CPUs, or COMMAND, or what is chosen, and shows every two seconds where the "
		"samples of the last two seconds were taken, the largest share first. A COMMAND is "
		"sampled by the virtual PMU where the kernel has no PMU, as `anyperf record` does it; "
		"what it prints goes to stderr. On a terminal the table has the whole screen (with "
		"ncurses, if that is installed), and the keys that `h` lists; else one table follows "
		"the other. `q` or ^C ends it.",
	.takes_command = true,
	.options = table,
	.sections =
		(const struct section[]){
			{"Exit status",
			 "That of COMMAND, or 0 without one, and where top was ended. 126 if COMMAND could not "
			 "be run, 127 if there is no such command, 2 if anyperf failed."},
			{NULL, NULL},
		},
	.see_also = "anyperf-record(1), anyperf-report(1), perf-top(1)",
	.failure = 2,
	.run = run,
};
