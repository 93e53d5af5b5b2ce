/*
 * Lets the time pass: from letting the command go until it, or the measurement, ends. Everything
 * that can happen meanwhile (signals, the clock, control words, the end of measured processes) is
 * waited for in one poll.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/stat/stat-priv.h"

#define NEVER      UINT64_MAX
#define NS_PER_MS  1000000ull
#define LOOK_EVERY (100 * NS_PER_MS) /* how often tasks without a pidfd are looked after */

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

/* When things are due, in now_ns()'s time, and who is waited for. */
struct wait {
	u64 start;  /* of the time that options count from */
	u64 begin;  /* of what is counted: behind -D; NEVER: not yet */
	u64 enable; /* -D */
	u64 end;    /* --timeout */
	u64 interval, interval_ns, last_interval;
	u32 intervals;
	u64 look;
	struct pollfd *fds; /* signals, control, then pidfds; owned */
	u32 nr_fds;
	bool stopping;  /* the end has been asked for */
	bool timed_out; /* by --timeout */
};

enum { FD_SIGNALS = 0, FD_CONTROL, FD_FIRST_TASK };

static int task_fd(pid_t tid)
{
	long fd = syscall(SYS_pidfd_open, tid, 0);

	if (fd < 0)
		fd = syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
	return (int)fd;
}

/* Without a command the measurement ends with the last of the tasks that it measures. */
static void watch_tasks(struct stat_job *st, struct wait *w)
{
	bool watched = !st->opts.command && st->nr_pids && !st->opts.all_cpus;
	u32 n = watched ? st->nr_pids : 0;

	w->fds = calloc(FD_FIRST_TASK + n, sizeof(*w->fds));
	CHECK(w->fds);
	w->fds[FD_SIGNALS] = (struct pollfd){.fd = st->signals.fd, .events = POLLIN};
	w->nr_fds = FD_FIRST_TASK + n;
	w->look = NEVER;
	for (u32 i = 0; i < n; i++) {
		w->fds[FD_FIRST_TASK + i] = (struct pollfd){.fd = task_fd(st->pids[i]),
							    .events = POLLIN};
		if (w->fds[FD_FIRST_TASK + i].fd < 0)
			w->look = w->start + LOOK_EVERY;
	}
}

/* Whether tasks were watched and all of them have gone. */
static bool tasks_gone(struct stat_job *st, struct wait *w)
{
	bool any = false;

	for (u32 i = FD_FIRST_TASK; i < w->nr_fds; i++) {
		pid_t tid = st->pids[i - FD_FIRST_TASK];

		if (w->fds[i].fd >= 0 && w->fds[i].revents) {
			close(w->fds[i].fd);
			w->fds[i].fd = -1;
			st->pids[i - FD_FIRST_TASK] = 0;
		} else if (w->fds[i].fd >= 0 || (tid && (!kill(tid, 0) || errno == EPERM))) {
			any = true;
		}
	}
	return w->nr_fds > FD_FIRST_TASK && !any;
}

static void forget_tasks(struct wait *w)
{
	for (u32 i = FD_FIRST_TASK; i < w->nr_fds; i++)
		if (w->fds[i].fd >= 0)
			close(w->fds[i].fd);
	free(w->fds);
}

static void set_enabled(struct stat_job *st, bool on)
{
	if (st->counters && on)
		(void)ap_counters_enable(st->counters);
	else if (st->counters)
		(void)ap_counters_disable(st->counters);
	st->enabled = on;
}

/* What the tool events are at @now. */
static void take_times(struct stat_job *st, u64 now)
{
	struct stat_times *t = &st->times;
	u64 user, system;

	t->duration = now - st->start_ns;
	if (!st->opts.command || stat_opts_has_target(&st->opts))
		return;
	child_cpu_time(&st->child, &user, &system);
	/* Without /proc there is nothing before the end. */
	t->user = user > t->user ? user : t->user;
	t->system = system > t->system ? system : t->system;
}

static void print_interval(struct stat_job *st, struct wait *w, u64 now)
{
	struct report r;

	report_init(&r, st->opts.aggr, st->events, st->nr_events);
	r.part = PART_INTERVAL;
	r.runs = 1;
	r.target = st->target;
	r.command = st->opts.command;
	r.guests = st->opts.command && stat_is_virtual(st) ? st->machine : NULL;
	r.interval = ++w->intervals;
	r.at = (double)(now - w->start) / 1e9;
	series_add(&r.elapsed, (double)(now - w->last_interval) / 1e9);
	take_times(st, now);
	stat_read(st, &r, true);
	st->style.brief_head = w->intervals % 25 != 1 && !st->opts.interval_clear;
	if (st->opts.interval_clear)
		fputs("\033[H\033[2J", st->style.out);
	stat_print(st, &r);
	report_release(&r);
	w->last_interval = now;
}

static void stop(struct stat_job *st, struct wait *w)
{
	pid_t pid = child_pid(&st->child);

	if (pid && !w->stopping) {
		kill(pid, SIGTERM);
		kill(pid, SIGCONT); /* for a program that is stopped would not see the other */
	}
	w->stopping = true;
	w->end = w->interval = NEVER;
}

static void obey(struct stat_job *st, struct wait *w)
{
	for (;;) {
		enum control_word word = control_take(&st->control);

		switch (word) {
		case CONTROL_NONE: return;
		case CONTROL_ENABLE: set_enabled(st, true); break;
		case CONTROL_DISABLE: set_enabled(st, false); break;
		case CONTROL_PING: break;
		case CONTROL_EVLIST:
			for (u32 i = 0; i < st->nr_events; i++)
				fprintf(stderr, "%s\n", st->events[i].name);
			break;
		case CONTROL_STOP: stop(st, w); break;
		case CONTROL_UNKNOWN:
			command_error(
				&cmd_stat,
				"--control: '%s' is none of enable, disable, ping, evlist, stop",
				st->control.line);
			continue;
		}
		control_ack(&st->control);
	}
}

static u64 earliest(const struct wait *w)
{
	u64 at = w->enable;

	at = w->end < at ? w->end : at;
	at = w->interval < at ? w->interval : at;
	return w->look < at ? w->look : at;
}

static void sleep_until(struct wait *w, u64 at)
{
	struct timespec left = {0}, *timeout = NULL;

	if (at != NEVER) {
		u64 now = now_ns();
		u64 ns = at > now ? at - now : 0;

		left = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
		timeout = &left;
	}
	(void)ppoll(w->fds, w->nr_fds, timeout, NULL);
}

static void on_time(struct stat_job *st, struct wait *w)
{
	u64 now = now_ns();

	if (now >= w->enable) {
		set_enabled(st, true);
		w->enable = NEVER;
		/* As perf, whose times do not have the delay in them either. */
		w->begin = w->last_interval = st->start_ns = now;
	}
	if (w->interval_ns && now >= w->interval) {
		/* The next multiple of the interval that is still to come. */
		while (w->interval <= now)
			w->interval += w->interval_ns;
		print_interval(st, w, now);
		if (st->opts.interval_count && w->intervals == (u32)st->opts.interval_count)
			stop(st, w);
	}
	if (now >= w->end) {
		w->timed_out = true;
		stop(st, w);
	}
	if (now >= w->look)
		w->look = now + LOOK_EVERY;
}

/*
 * Waits until the command, the tasks or the time are at their end. 0, or -errno with the reason if
 * the command could not be executed.
 */
static int wait_for_end(struct stat_job *st, struct wait *w, struct ap_error *err)
{
	const struct stat_opts *o = &st->opts;

	w->interval_ns = (u64)o->interval_ms * NS_PER_MS;
	w->interval = o->interval_ms ? w->start + w->interval_ns : NEVER;
	w->end = o->timeout_ms ? w->start + (u64)o->timeout_ms * NS_PER_MS : NEVER;
	w->enable = o->delay_ms > 0 ? w->start + (u64)o->delay_ms * NS_PER_MS : NEVER;
	w->begin = o->delay_ms > 0 ? NEVER : w->start;
	w->last_interval = w->start;
	watch_tasks(st, w);
	for (;;) {
		int ended = 0;

		w->fds[FD_CONTROL] = (struct pollfd){.fd = o->control ? st->control.fd : -1,
						     .events = POLLIN};
		sleep_until(w, earliest(w));
		if (signals_take(&st->signals, child_pid(&st->child)) && child_pid(&st->child))
			ended = child_reap(&st->child, err);
		if (!ended)
			child_follow_stop(&st->child);
		if (ended) {
			forget_tasks(w);
			return ended < 0 ? ended : 0;
		}
		if (o->control)
			obey(st, w);
		on_time(st, w);
		if (!child_pid(&st->child) &&
		    (w->stopping || st->signals.ended_by || tasks_gone(st, w)))
			break;
	}
	forget_tasks(w);
	return 0;
}

static void add_time(struct report *sum, const struct stat_job *st, u64 ns)
{
	double seconds = (double)ns / 1e9;

	series_add(&sum->elapsed, seconds);
	sum->runs++;
	if (sum->many) {
		sum->run_elapsed = realloc(sum->run_elapsed, sum->runs * sizeof(*sum->run_elapsed));
		CHECK(sum->run_elapsed);
		sum->run_elapsed[sum->runs - 1] = seconds;
	}
	if (!st->opts.command)
		return;
	sum->exit_status = child_exit_status(&st->child);
	sum->signal = child_signal(&st->child);
	/* The command's own CPU time says nothing of another target's. */
	if (stat_opts_has_target(&st->opts) || sum->many)
		return;
	sum->has_usage = true;
	sum->user = (double)st->child.end.user_ns / 1e9;
	sum->sys = (double)st->child.end.system_ns / 1e9;
}

static void print_raw(const struct stat_job *st)
{
	u32 places = st->counters ? ap_counters_places(st->counters) : 0;

	for (u32 e = 0; e < st->nr_events; e++) {
		for (u32 p = 0; p < places && st->events[e].spec >= 0; p++) {
			const struct ap_value *v = ap_counters_value(st->counters,
								     (u32)st->events[e].spec, p);

			if (v)
				fprintf(stderr, "%s: %llu %llu %llu\n", st->events[e].name,
					(unsigned long long)v->value,
					(unsigned long long)v->enabled,
					(unsigned long long)v->running);
		}
	}
}

/*
 * A count up to an untimely end is another one than the program's: says of the first run that was
 * cut short what did it, unless whoever reads this did. JSON has members for it.
 */
static void say_end(struct stat_job *st, const struct report *sum, const struct wait *w)
{
	const struct stat_opts *o = &st->opts;
	int sig = sum->signal;
	const char *mark = stat_note_mark(st);
	char run[32] = "";

	if (st->said_end || !o->command || !mark || (!w->timed_out && !sig))
		return;
	/* --interval-count and `stop` are plain about it. */
	if (!w->timed_out && (w->stopping || sig == st->signals.ended_by))
		return;
	st->said_end = true;
	if (o->repeat != 1)
		snprintf(run, sizeof(run), " in run %u", sum->runs);
	if (w->timed_out)
		fprintf(stderr, "%sanyperf stat: '%s' was ended%s by --timeout, after %ld ms\n",
			mark, o->command[0], run, o->timeout_ms);
	else
		fprintf(stderr, "%sanyperf stat: '%s' was ended%s by signal %d (%s)\n", mark,
			o->command[0], run, sig, strsignal(sig));
}

/* Somebody who did not say what to measure may wait for a prompt. */
static void say_waiting(const struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	char until[64] = "";

	if (!o->implied_all || !isatty(STDERR_FILENO))
		return;
	if (o->timeout_ms)
		snprintf(until, sizeof(until), ", for %ld ms", o->timeout_ms);
	fprintf(stderr,
		"anyperf stat: counting what runs on all CPUs%s; Ctrl-C ends it. `anyperf stat -- "
		"COMMAND` counts a command.\n",
		until);
	fflush(stderr);
}

/* Says why the command could not be executed, with the status to exit with in *@failure. */
static int say_no_start(struct stat_job *st, const struct ap_error *err, int *failure)
{
	const struct stat_opts *o = &st->opts;
	const char *outer = err->code != -EBUSY   ? NULL
			    : o->deterministic.on ? "--deterministic"
			    : o->counters         ? "--counters"
			    : o->cpu_model        ? "--cpu-model"
			    : o->machine          ? "--machine"
						  : NULL;
	char text[1100];

	*failure = child_failure_status(&cmd_stat, err);
	ap_error_text(err, text, sizeof(text));
	if (err->code == -ENOENT &&
	    (!strcmp(o->command[0], "record") || !strcmp(o->command[0], "report")))
		return command_error(
			&cmd_stat,
			"%s; perf's `stat %s` is not here: `-j -o FILE` keeps the counts", text,
			o->command[0]);
	if (outer)
		return command_error(
			&cmd_stat,
			"%s; give the outer one what is asked for here: `anyperf run %s`", text,
			outer);
	return command_error(&cmd_stat, "%s", text);
}

static void drop_child(struct stat_job *st)
{
	ap_command_free(st->child.command);
	st->child.command = NULL;
}

int stat_run(struct stat_job *st, struct report *sum, int *failure)
{
	const struct stat_opts *o = &st->opts;
	const struct ap_command_opts opts = child_opts(&st->signals);
	struct ap_error err;
	struct wait w = {0};
	u64 end;

	*failure = cmd_stat.failure;
	if (child_shell(&cmd_stat, &st->signals, o->pre, "--pre"))
		return -1;
	if (o->sync)
		sync();
	st->child = (struct child){0};
	if (o->command && ap_command_new(&st->child.command, st->machine, o->command, &opts, &err))
		return say_no_start(st, &err, failure);
	if (!st->signals.blocked)
		signals_block(&st->signals);
	if (stat_open(st)) {
		drop_child(st);
		return -1;
	}
	say_waiting(st);
	if (!st->enabled && !o->delay_ms)
		set_enabled(st, true);
	w.start = st->start_ns = now_ns();
	st->times = st->last_times = (struct stat_times){0};
	if (o->command)
		ap_command_start(st->child.command);
	if (st->signals.fd < 0 && signals_open(&st->signals))
		return command_error(&cmd_stat, "cannot open a signalfd: %s", strerror(errno));
	if (wait_for_end(st, &w, &err)) {
		drop_child(st);
		return stat_kernel_would(st, &err) ? -1 : say_no_start(st, &err, failure);
	}
	end = now_ns();
	/*
	 * A command that has ended counts no more; what else was enabled by hand is stopped by
	 * hand.
	 */
	if (stat_opts_has_target(o))
		set_enabled(st, false);
	if (o->interval_ms && (!o->interval_count || w.intervals < (u32)o->interval_count))
		print_interval(st, &w, end);
	/* A command that has ended within the delay was not measured for a moment. */
	if (w.begin == NEVER)
		w.begin = st->start_ns = end;
	add_time(sum, st, end - w.begin);
	sum->timed_out |= w.timed_out && o->command;
	say_end(st, sum, &w);
	if (o->deterministic.on) {
		sum->deterministic = true;
		sum->seed = (u64)o->deterministic.seed;
		sum->nondet |= deterministic_sources(st->machine, st->child.end.status);
	}
	take_times(st, end);
	stat_read(st, sum, false);
	if (o->verbose)
		print_raw(st);
	stat_close(st);
	drop_child(st);
	return child_shell(&cmd_stat, &st->signals, o->post, "--post");
}
