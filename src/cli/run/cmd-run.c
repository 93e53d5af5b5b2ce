/* `anyperf run`: a program under the translator, with exact counts of what it has retired. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/child.h"
#include "cli/cmd.h"
#include "cli/determinism.h"
#include "cli/json.h"
#include "cli/modeled-events.h"
#include "cli/translations-option.h"
#include "cli/report/refused.h"
#include "cli/report/uncounted.h"
#include "cli/run/run-counts.h"
#include "cli/run/run-threads.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "lib/command.h"

struct run_opts {
	bool count;
	int verbose;
	bool json;
	const char *output;
	bool verify;
	long cache_mb;
	const char *translations;
	bool strict;
	long counters;
	const char *cpu_model;
	const char *machine;
	const char *model_beside, *model_windows;
	bool paranoid_given;
	int paranoid;
	const char *kernel_mode;
	const char *session;
	struct deterministic_opts deterministic;
};

#define AT(field) .offset = offsetof(struct run_opts, field)

static const char *const kernel_modes[] = {"refuse", "ignore", NULL};

static int set_paranoid(void *into, const char *arg, char *why, size_t size)
{
	struct run_opts *opts = into;
	char *end;
	long v = strtol(arg, &end, 10);

	if (end == arg || *end || v < -1 || v > 3) {
		snprintf(why, size, "'%.40s' is not a whole number between -1 and 3", arg);
		return -EINVAL;
	}
	opts->paranoid_given = true;
	opts->paranoid = (int)v;
	return 0;
}

static int set_session(void *into, const char *arg, char *why, size_t size)
{
	struct run_opts *opts = into;

	if (!*arg) {
		snprintf(why, size, "it wants a name; the one given is empty");
		return -EINVAL;
	}
	opts->session = arg;
	return 0;
}

static const struct option options[] = {
	{OPTION_FLAG, 0, "count", AT(count),
	 .help = "print how many instructions and branches were retired",
	 .more = "User mode only, exact, and the same in every run of a program that does the same. "
		 "`anyperf stat` counts the same: from COMMAND's first instruction to its end, with all "
		 "that it starts. Times are those of the translated run, typically 1.1 to 3 times as "
		 "long as natively."},
	{OPTION_COUNT, 'v', "verbose", AT(verbose),
	 .help = "print the counts, per process and thread as well, and what was refused",
	 .more = "Programs that ask for perf events get an errno where an event is refused, as from a "
		 "kernel. At the end each different refusal is named once, with the program, the event, "
		 "the reason and a remedy. Without -v a line says how many there were if COMMAND "
		 "failed."},
	{OPTION_FLAG, 'j', "json", AT(json), .help = "print the counts as one line of JSON"},
	{OPTION_STR, 'o', "output", "FILE", AT(output), .complete = COMPLETE_FILE,
	 .help = "print the counts to FILE instead of standard error"},
	DETERMINISTIC_OPTIONS(struct run_opts, deterministic),
	{OPTION_GROUP, .help = "The virtual PMU that COMMAND finds"},
	{OPTION_INT, 0, "counters", "N", AT(counters), .min = 1, .max = 64,
	 .help = "how many counters it has (default: as many as wanted)",
	 .more = "With a limit, events that do not fit take turns and are scaled, as on hardware."},
	{OPTION_STR, 0, "cpu-model", "auto|host|MODEL", AT(cpu_model),
	 .help = "the CPU that CPUID shows, by which PAPI and libpfm4 choose their tables",
	 .more = "auto, the default, is the machine's own if they have tables for it, else one that is like "
		 "it: skylake-x, or zen3 of AMD. Others are haswell-x, broadwell-x, icelake-x, sapphirerapids "
		 "on Intel's CPUs, and zen2, zen4 on AMD's. What the CPU can do is shown as it is."},
	MACHINE_OPTION(struct run_opts, machine, "Without the option it is that of this machine.",
		       "the machine whose model counts what depends on one"),
	MODEL_BESIDE_OPTION(struct run_opts, model_beside),
	MODEL_WINDOWS_OPTION(struct run_opts, model_windows, ""),
	{OPTION_CALL, 0, "paranoid", "N", .call = set_paranoid,
	 .help = "show and enforce this perf_event_paranoid, -1 to 3",
	 .more = "The default is that of the machine, but at least 2 unless kernel mode is "
		 "ignored. A value below 2 implies --kernel-mode=ignore."},
	{OPTION_STR, 0, "kernel-mode", "refuse|ignore", AT(kernel_mode), .words = kernel_modes,
	 .help = "events that include kernel mode are refused, or count user mode only",
	 .more = "The virtual PMU sees user mode. Refused with EACCES (the default), perf tries "
		 "again with :u by itself."},
	{OPTION_CALL, 0, "session", "NAME", .call = set_session,
	 .help = "run in the session NAME, which is started if there is none",
	 .more = "Programs of one session can count each other, and `anyperf stat --session NAME -p PID` "
		 "counts them from outside. What --count reports is each COMMAND's own."},
	{OPTION_GROUP, .help = "The translator"},
	{OPTION_INT, 0, "cache-size", "MB", AT(cache_mb), .min = 1, .max = 1024,
	 .help = "most translated code per process (default 64, or 192 with a model)"},
	TRANSLATIONS_OPTION(struct run_opts, translations),
	{OPTION_FLAG, 0, "strict", AT(strict),
	 .help = "refuse programs that cannot run under the translator",
	 .more = "Setuid, 32-bit and unreadable programs that COMMAND starts run natively and "
		 "uncounted, and are named. With --strict their execve(2) fails with EPERM."},
	{OPTION_FLAG, 0, "verify", AT(verify),
	 .help = "have the translator and the session verify their invariants; slow"},
	{OPTION_FLAG, 0, "check", AT(verify), .hidden = true},
	{OPTION_END},
};

static const struct section sections[] = {
	{"EXIT STATUS",
	 "That of COMMAND; if a signal ended it, `anyperf run` ends by the same one. 125 if anyperf "
	 "failed, 126 if COMMAND could not be run, 127 if there is no such command."},
	{"ENVIRONMENT", "ANYPERF_RUNTIME names the runtime, anyperf-rt, to be used instead of the "
			"installed one."},
	{NULL, NULL},
};

struct job {
	struct run_opts opts;
	struct ap_machine *machine;
	const struct guest_segment *segment; /* of the machine's guests; borrowed */
	struct run_counts counts;            /* all zeros: nobody wants any */
	struct child child;
	FILE *out;
	char *const *argv;
	char *target; /* the same as one text; owned */
};

static void print_json(const struct job *job, const struct report *r)
{
	struct json j;

	json_begin(&j, job->out);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-run-1");
	json_str(&j, "times", "translated");
	json_double(&j, "elapsed_s", r->elapsed.mean, 9);
	json_double(&j, "user_s", r->user, 6);
	json_double(&j, "sys_s", r->sys, 6);
	json_object(&j, "total");
	for (u32 q = 0; q < RUN_EVENTS; q++)
		if (report_at(r, q, 0)->status == AP_STATUS_OK)
			json_u64(&j, run_count_name(q), report_at(r, q, 0)->value);
	json_end(&j);
	if (r->deterministic)
		deterministic_json(&j, r->seed, r->nondet);
	run_threads_json(&j, job->segment);
	uncounted_json(&j, job->machine);
	refused_json(&j, job->machine);
	json_end(&j);
	json_finish(&j);
}

static void print_text(const struct job *job, const struct report *r)
{
	struct terminal terminal = terminal_of(job->out);
	struct report_style style = {
		.out = job->out,
		.colour = terminal.colour,
		.width = terminal.width,
		.pmu = "virtual",
		.pmu_why = "",
	};

	number_style_init(&style.numbers);
	report_print_text(r, &style);
	if (job->opts.verbose)
		run_threads_text(job->segment, &style.numbers, job->out);
}

static bool wants_report(const struct run_opts *opts)
{
	return opts->count || opts->json || opts->verbose || opts->output;
}

/* What is said of the programs beside the counts. JSON on stderr stands there alone. */
static void report_programs(const struct job *job)
{
	const struct guest_segment *segment = job->segment;

	if (job->opts.json && !job->opts.output)
		return;
	/* Who counts nothing sees what the program prints and no more. */
	if (wants_report(&job->opts) || __atomic_load_n(&segment->head->measured, __ATOMIC_RELAXED))
		uncounted_text(&cmd_run, job->machine, stderr, "");
	if (job->opts.verbose)
		refused_text(&cmd_run, job->machine, stderr, "");
	else if (child_exit_status(&job->child) != 0)
		refused_hint(&cmd_run, job->machine, stderr);
}

static FILE *open_output(const struct job *job)
{
	return job->opts.output ? fopen(job->opts.output, "we") : stderr;
}

static int print_counts(struct job *job, const struct report *r)
{
	static char buffer[16384]; /* stderr is unbuffered otherwise: a system call per number */
	int err;

	job->out = open_output(job);
	if (!job->out)
		return command_error(&cmd_run, "cannot write to '%s': %s", job->opts.output,
				     strerror(errno));
	setvbuf(job->out, buffer, _IOFBF, sizeof(buffer));
	errno = 0;
	if (job->opts.json)
		print_json(job, r);
	else
		print_text(job, r);
	fflush(job->out);
	err = ferror(job->out) ? errno : 0;
	if (job->out != stderr && fclose(job->out) && !err)
		err = errno;
	if (err)
		return command_error(&cmd_run, "cannot write to '%s': %s",
				     job->opts.output ? job->opts.output : "standard error",
				     strerror(err));
	return 0;
}

static int report(struct job *job)
{
	struct report r;
	int err;

	report_programs(job);
	if (!wants_report(&job->opts))
		return 0;
	err = run_counts_report(&job->counts, &r);
	if (err)
		command_error(&cmd_run, "the counts of '%s' are lost: %s", job->argv[0],
			      err == -ENODEV ? "their session was killed" : strerror(-err));
	r.target = job->target = report_command(job->argv);
	r.command = job->argv;
	r.guests = job->machine;
	r.has_usage = true;
	r.translated = true;
	r.user = (double)job->child.end.user_ns / 1e9;
	r.sys = (double)job->child.end.system_ns / 1e9;
	r.deterministic = job->opts.deterministic.on;
	r.seed = (u64)job->opts.deterministic.seed;
	r.nondet = r.deterministic ? deterministic_sources(job->machine, job->child.end.status) : 0;
	err = print_counts(job, &r);
	report_release(&r);
	return err;
}

/* Somebody has asked for a session, or may yet: without one he gets ENODEV. */
static void say_no_session(const struct job *job, const char *why)
{
	command_error(&cmd_run, "there is no virtual PMU for '%s': %s", job->argv[0], why);
}

/* 0, or -errno with the reason if COMMAND could not be executed. */
static int wait_for_child(struct job *job, struct signals *signals, struct ap_error *err)
{
	struct virtual_pmu *v = ap__machine_virtual(job->machine);
	struct pollfd p[] = {
		{.fd = signals->fd, .events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
	char why[300];
	int r;

	while (!(r = child_reap(&job->child, err))) {
		p[1].fd = ap__virtual_fd(v);
		p[2].fd = ap__virtual_keeper_fd(v);
		p[1].revents = p[2].revents = 0;
		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		signals_take(signals, child_pid(&job->child));
		child_follow_stop(&job->child);
		if (p[1].revents && ap__virtual_answer(v, why, sizeof(why)))
			say_no_session(job, why);
		if (p[2].revents)
			ap__virtual_keep(v);
	}
	return r < 0 ? r : 0;
}

/* What COMMAND has left behind in the background finds a virtual PMU too. */
static void leave_session(struct job *job)
{
	char why[300];

	if (ap__virtual_leave(ap__machine_virtual(job->machine), why, sizeof(why)))
		say_no_session(job, why);
}

/* Ends as the child did, without a second core. */
static int leave_like(const struct child *child)
{
	int status = child->end.status;

	if (WIFSIGNALED(status)) {
		struct rlimit none = {0, 0};
		int sig = WTERMSIG(status);
		sigset_t set;

		setrlimit(RLIMIT_CORE, &none);
		signal(sig, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, sig);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(sig);
	}
	return child_exit_status(child);
}

/* What of the options the library has no public ones for. */
static void set_virtual_opts(const struct run_opts *opts, struct virtual_opts *v)
{
	bool ignore_kernel = opts->paranoid_given && opts->paranoid < 2;

	if (opts->kernel_mode)
		ignore_kernel = strcmp(opts->kernel_mode, "ignore") == 0;
	if (ignore_kernel)
		v->session.flags |= SESSION_START_IGNORE_KERNEL;
	if (opts->verbose > 1)
		v->session.flags |= SESSION_START_VERBOSE;
	if (opts->paranoid_given)
		v->session.paranoid = opts->paranoid;
	v->kernel_mode_given = opts->kernel_mode;
	v->keep = opts->verbose || opts->json; /* what is told of each thread */
}

static int make_machine(struct job *job)
{
	const struct run_opts *o = &job->opts;
	struct ap_virtual_opts virtual_opts = AP_OPTS(
		ap_virtual_opts, .counters = (unsigned int)o->counters, .cpu_model = o->cpu_model,
		.machine = o->machine, .model_windows = o->model_windows, .session = o->session,
		.cache_mb = (unsigned int)o->cache_mb, .seed = (u64)o->deterministic.seed,
		.cpu_features = o->deterministic.cpu, .cpus = (unsigned int)o->deterministic.cpus,
		.flags = AP_VIRTUAL_MODEL_WINDOWS_AUTO |
			 (o->deterministic.on ? AP_VIRTUAL_DETERMINISTIC : 0u) |
			 (o->strict ? AP_VIRTUAL_STRICT : 0u) |
			 translations_flags(o->translations) | model_beside_flags(o->model_beside) |
			 (o->verify ? AP_VIRTUAL_VERIFY : 0u));
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_VIRTUAL,
					      .virtual_pmu = &virtual_opts);
	int r;

	if (deterministic_check_model(&cmd_run, &o->deterministic, o->cpu_model) ||
	    modeled_check(&cmd_run, o->machine) || model_windows_check(&cmd_run, o->model_windows))
		return -1;
	r = ap_machine_new(&job->machine, &opts);
	if (r)
		return command_error(&cmd_run,
				     r == -EINVAL ? "the session's name '%s' is too long"
						  : "out of memory",
				     o->session);
	set_virtual_opts(o, ap__virtual_opts(ap__machine_virtual(job->machine)));
	return 0;
}

static int say_no_start(const struct ap_error *err)
{
	char text[1100];

	command_error(&cmd_run, "%s", ap_error_text(err, text, sizeof(text)));
	return child_failure_status(&cmd_run, err);
}

/* The reason stands behind the name of an event, by its number. */
static int say_no_counts(const struct ap_error *err)
{
	char text[1100];

	command_error(&cmd_run, "cannot count: %s",
		      ap_error_text(err, text, sizeof(text)) + err->about);
	return cmd_run.failure;
}

/*
 * Starts COMMAND. Most commands need no session, and it is started when one of their processes asks
 * for it. Who counts has one, and opens events before the program is there. 0, or the status to end
 * with.
 */
static int start(struct job *job, const struct signals *signals)
{
	bool counts = wants_report(&job->opts);
	struct ap_command_opts opts = child_opts(signals);
	struct ap_error err;

	if (ap__command_new(&job->child.command, job->machine, job->argv, &opts,
			    AP__COMMAND_SERVED | (counts ? 0 : AP__COMMAND_AT_ONCE), &err))
		return say_no_start(&err);
	if (counts && run_counts_open(&job->counts, job->machine, job->child.command, &err))
		return say_no_counts(&err);
	if (counts)
		run_counts_start(&job->counts);
	ap_command_start(job->child.command);
	return 0;
}

static int run_command(struct job *job, struct signals *signals)
{
	struct ap_error err;
	int status;

	if (signals_open(signals)) {
		command_error(&cmd_run, "cannot open a signalfd: %s", strerror(errno));
		return cmd_run.failure;
	}
	status = start(job, signals);
	if (status)
		return status;
	if (wait_for_child(job, signals, &err))
		return say_no_start(&err);
	job->segment = ap__machine_segment(job->machine);
	status = report(job) ? cmd_run.failure : 0;
	leave_session(job);
	return status;
}

static int run(int argc, char **argv)
{
	struct job job = {0};
	struct signals signals;
	int first, status;

	first = options_parse(&cmd_run, &job.opts, argc, argv);
	if (first < 0)
		return command_leave_status(&cmd_run, first);
	if (first == argc) {
		command_error(&cmd_run, "no command given; `anyperf run -- ls`, for instance");
		return cmd_run.failure;
	}
	if (deterministic_check(&cmd_run, &job.opts.deterministic))
		return cmd_run.failure;
	job.argv = argv + first;
	if (make_machine(&job))
		return cmd_run.failure;
	signals_block(&signals);
	status = run_command(&job, &signals);
	run_counts_close(&job.counts);
	ap_command_free(job.child.command);
	free(job.target);
	ap_machine_free(job.machine);
	signals_release(&signals);
	return status ? status : leave_like(&job.child);
}

const struct command cmd_run = {
	.name = "run",
	.summary = "run a program under the translator, counting exactly",
	.synopsis = "[OPTIONS] [--] COMMAND [ARGUMENTS]",
	.description =
		"Runs COMMAND and everything that it starts under a translator that counts what they "
		"retire in user mode. Nothing that the programs or their users can see is changed; no "
		"PMU and no privilege is needed.",
	.options = options,
	.sections = sections,
	.see_also = "anyperf-stat(1)",
	.takes_command = true,
	.failure = 125,
	.run = run,
};
