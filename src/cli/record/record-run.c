/*
 * Lets the time pass: from letting the command go until it, or the recording, ends. Everything that
 * can happen meanwhile (buffers, signals, the clock, control words) is waited for in one poll; a
 * wakeup of any buffer is worth one pass over all of them.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/record/record-exact.h"
#include "cli/record/record-priv.h"

#define NEVER      UINT64_MAX
#define NS_PER_MS  1000000ull
#define PASS_EVERY (1000 * NS_PER_MS) /* so that a file that grows slowly can be read as it grows */

struct record_wait {
	u64 enable, end, pass, tell; /* when they are due, in record_now()'s time */
	struct pollfd *fds;          /* signals, control, then buffers; owned */
	u32 nr, room;
	bool stopping;
	u64 pause; /* ns until traces are to be read; NEVER: none are */
};

u64 record_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static void set_enabled(struct record_job *job, bool on)
{
	if (on)
		(void)ap_sampler_enable(job->sampler);
	else
		(void)ap_sampler_disable(job->sampler);
	job->enabled = on;
}

struct ap_sampler *record_drained(const struct record_job *job, int i)
{
	if (!i)
		return job->opts.overwrite ? NULL : job->sampler;
	return job->tasks;
}

static void stop(struct record_job *job, struct record_wait *w)
{
	pid_t pid = child_pid(&job->child);

	if (pid && !w->stopping) {
		kill(pid, SIGTERM);
		kill(pid, SIGCONT); /* for a program that is stopped would not see the other */
	}
	w->stopping = true;
	w->end = NEVER;
}

static void obey(struct record_job *job, struct record_wait *w)
{
	for (;;) {
		switch (control_take(&job->control)) {
		case CONTROL_NONE: return;
		case CONTROL_ENABLE: set_enabled(job, true); break;
		case CONTROL_DISABLE: set_enabled(job, false); break;
		case CONTROL_PING: break;
		case CONTROL_EVLIST:
			for (u32 i = 0; i < job->nr_events; i++)
				fprintf(stderr, "%s\n", job->events[i].name);
			break;
		case CONTROL_STOP: stop(job, w); break;
		case CONTROL_UNKNOWN:
			command_error(
				&cmd_record,
				"--control: '%s' is none of enable, disable, ping, evlist, stop",
				job->control.line);
			continue;
		}
		control_ack(&job->control);
	}
}

static void add_buffers(struct record_wait *w, struct ap_sampler *s)
{
	u32 n = s ? ap_sampler_fds(s, NULL, 0) : 0;
	int *fds;

	if (!n)
		return;
	fds = calloc(n, sizeof(*fds));
	CHECK(fds);
	ap_sampler_fds(s, fds, n);
	if (w->nr + n > w->room) {
		w->room = w->nr + n;
		w->fds = realloc(w->fds, w->room * sizeof(*w->fds));
		CHECK(w->fds);
	}
	for (u32 i = 0; i < n; i++)
		w->fds[w->nr++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	free(fds);
}

enum { FD_SIGNALS = 0, FD_CONTROL, FD_FIRST_BUFFER };

/* Buffers whose threads have ended are left out by the sampler, so the list is made anew then. */
static void list_fds(struct record_job *job, struct record_wait *w)
{
	if (!w->fds) {
		w->room = 64;
		w->fds = calloc(w->room, sizeof(*w->fds));
		CHECK(w->fds);
	}
	w->fds[FD_SIGNALS] = (struct pollfd){.fd = job->signals.fd, .events = POLLIN};
	w->fds[FD_CONTROL] = (struct pollfd){.fd = job->opts.control ? job->control.fd : -1,
					     .events = POLLIN};
	w->nr = FD_FIRST_BUFFER;
	/* Those that overwrite are not waited for, but for their end. */
	for (int i = 0; i < 2; i++)
		add_buffers(w, record_drained(job, i));
}

/* Waits until something happens; whether a buffer wants to be emptied, or a thread has ended. */
static void wait_once(struct record_job *job, struct record_wait *w, bool *buffers, bool *ended)
{
	u64 at = w->enable < w->end ? w->enable : w->end, now = record_now();
	struct timespec left;
	u64 ns;

	at = at < w->pass ? at : w->pass;
	if (w->pause != NEVER && at > now + w->pause)
		at = now + w->pause;
	ns = at > now ? at - now : 0;
	left = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	w->fds[FD_CONTROL].fd = job->opts.control ? job->control.fd : -1;
	*buffers = *ended = false;
	if (ppoll(w->fds, w->nr, &left, NULL) < 0)
		return;
	for (u32 i = FD_FIRST_BUFFER; i < w->nr; i++) {
		*buffers = *buffers || w->fds[i].revents;
		*ended = *ended || (w->fds[i].revents & (POLLHUP | POLLERR));
	}
}

static void switch_file(struct record_job *job)
{
	record_output_progress_end(job);
	record_output_last_pass(job);
	record_output_snapshot(job);
	record_output_end(job, true);
	if (!job->broken && record_output_begin(job))
		job->broken = true;
}

static bool is_time_to_switch(struct record_job *job, bool asked)
{
	switch (job->opts.switch_when) {
	case SWITCH_SIGNAL: return asked;
	case SWITCH_SIZE:
		return data_writer_bytes(job->writer) >= job->opts.switch_limit + job->told_again;
	case SWITCH_TIME: return record_now() - job->file_start >= job->opts.switch_limit;
	case SWITCH_NEVER: break;
	}
	return false;
}

static void on_time(struct record_job *job, struct record_wait *w)
{
	u64 now = record_now();

	if (now >= w->enable) {
		set_enabled(job, true);
		w->enable = NEVER;
	}
	if (now >= w->end)
		stop(job, w);
}

/* Waits for the end. 0, or -errno with the reason if the command could not be executed. */
static int wait_for_end(struct record_job *job, struct record_wait *w, struct ap_error *err)
{
	struct ap_sampler *waited = job->tasks ? job->tasks : job->sampler;
	bool buffers, ended;

	list_fds(job, w);
	for (;;) {
		int reaped = 0;

		w->pause = job->exact && record_exact_reads(job) ? record_exact_read(job) : NEVER;
		wait_once(job, w, &buffers, &ended);
		if (signals_take(&job->signals, child_pid(&job->child)) && child_pid(&job->child))
			reaped = child_reap(&job->child, err);
		if (reaped)
			return reaped < 0 ? reaped : 0;
		if (job->opts.control)
			obey(job, w);
		on_time(job, w);
		if (buffers || record_now() >= w->pass) {
			record_output_pass(job);
			w->pass = record_now() + PASS_EVERY;
			if (record_now() >= w->tell) {
				record_output_progress(job);
				w->tell = w->pass;
			}
		}
		if (is_time_to_switch(job, job->signals.own_came))
			switch_file(job);
		job->signals.own_came = false;
		if (ended) {
			for (int i = 0; i < 2; i++)
				if (record_drained(job, i))
					(void)!ap_sampler_poll(record_drained(job, i), 0);
			list_fds(job, w);
		}
		if (job->broken && job->enabled)
			set_enabled(job, false);
		if (child_pid(&job->child))
			continue;
		if (w->stopping || job->signals.ended_by || job->broken || ap_sampler_ended(waited))
			return 0;
	}
}

static int say_no_start(const struct ap_error *err)
{
	record_say(err, NULL);
	return child_failure_status(&cmd_record, err);
}

/* All that is there, once nothing more comes. */
static void finish(struct record_job *job)
{
	set_enabled(job, false);
	if (job->tasks)
		(void)ap_sampler_disable(job->tasks);
	record_output_pass(job);
	record_output_snapshot(job);
	if (job->exact)
		record_exact_write(job);
	record_output_end(job, job->opts.switch_when && !job->pipe);
	record_output_summary(job);
}

/*
 * Events may take all descriptors that there are. So many are held back as are needed when they are
 * open: the file and one more, and two folders where processes are listed.
 */
static int open_events(struct record_job *job)
{
	int spare[4], n = record_opts_has_target(&job->opts) ? 4 : 2, r;

	for (int i = 0; i < n; i++)
		spare[i] = eventfd(0, EFD_CLOEXEC);
	r = record_open(job);
	for (int i = 0; i < n; i++)
		if (spare[i] >= 0)
			close(spare[i]);
	return r;
}

int record_run(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	const struct ap_command_opts opts = child_opts(&job->signals);
	struct record_wait w = {.enable = NEVER, .end = NEVER};
	struct ap_error err;
	int r;

	if (record_output_prepare(job))
		return cmd_record.failure;
	if (o->command &&
	    ap_command_new(&job->child.command, job->machine, o->command, &opts, &err))
		return say_no_start(&err);
	signals_block(&job->signals);
	if (o->switch_when == SWITCH_SIGNAL)
		job->signals.own = SIGUSR2;
	signal(SIGPIPE, SIG_IGN); /* the command has been made, and keeps what it had */
	if (open_events(job))
		return cmd_record.failure;
	/* What ran already is listed while what happens then is told. */
	if (job->tasks && !job->tasks_on_exec)
		(void)ap_sampler_enable(job->tasks);
	else if (!job->enabled && !o->delay_ms)
		set_enabled(job, true);
	if (record_output_begin(job))
		return cmd_record.failure;
	if (job->announced && !o->quiet)
		fprintf(stderr, "anyperf record: %s\n", job->announced);
	if (!job->enabled && !o->delay_ms)
		set_enabled(job, true);
	w.pass = w.tell = record_now() + PASS_EVERY;
	if (o->delay_ms > 0)
		w.enable = record_now() + (u64)o->delay_ms * NS_PER_MS;
	if (o->duration_ms)
		w.end = record_now() + o->duration_ms * NS_PER_MS;
	if (o->command)
		ap_command_start(job->child.command);
	if (signals_open(&job->signals))
		return command_error(&cmd_record, "cannot open a signalfd: %s", strerror(errno)),
		       cmd_record.failure;
	r = wait_for_end(job, &w, &err);
	free(w.fds);
	record_output_progress_end(job);
	if (r) {
		record_output_end(job, false);
		return say_no_start(&err);
	}
	finish(job);
	if (job->broken)
		return cmd_record.failure;
	return o->command ? child_exit_status(&job->child) : 0;
}
