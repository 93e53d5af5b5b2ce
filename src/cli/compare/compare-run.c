/* A command, once: what it finds, and the wait for its end. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/compare/compare-priv.h"
#include "lib/command.h"

#define NS_PER_MS 1000000ull
#define PATIENCE  (2000 * NS_PER_MS) /* from SIGTERM, or the user's signal, to SIGKILL */
#define NEVER     UINT64_MAX

/* Of the caller's; others vary with the shell, the user and the day. */
static const char *const let_through[] = {"PATH", "LD_LIBRARY_PATH", "TZ", "TMPDIR"};

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static bool is_of(const char *entry, const char *name)
{
	size_t len = strcspn(name, "=");

	return !strncmp(entry, name, len) && entry[len] == '=';
}

/* Takes @entry, to be freed; one of the same name goes. */
static void set_variable(struct compare_job *job, char *entry)
{
	u32 n = 0;

	CHECK(entry);
	while (job->environment[n] && !is_of(job->environment[n], entry))
		n++;
	if (!job->environment[n]) {
		job->environment = realloc(job->environment, (n + 2) * sizeof(char *));
		CHECK(job->environment);
		job->environment[n + 1] = NULL;
	} else {
		free(job->environment[n]);
	}
	job->environment[n] = entry;
}

static void let(struct compare_job *job, const char *name)
{
	for (char **entry = environ; *entry; entry++)
		if (!strcmp(name, "*") || is_of(*entry, name))
			set_variable(job, strdup(*entry));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void compare_environment(struct compare_job *job)
{
	const struct compare_list *asked = &job->opts.env;
	u32 n = 0;

	job->environment = calloc(1, sizeof(char *));
	CHECK(job->environment);
	for (u32 i = 0; i < ARRAY_SIZE(let_through); i++)
		let(job, let_through[i]);
	for (u32 i = 0; i < asked->n; i++) {
		if (strchr(asked->at[i], '='))
			set_variable(job, strdup(asked->at[i]));
		else
			let(job, asked->at[i]);
	}
	/* Shells hand theirs on in different orders. */
	while (job->environment[n])
		n++;
	qsort(job->environment, n, sizeof(char *), by_name);
}

void compare_environment_free(struct compare_job *job)
{
	for (char **entry = job->environment; entry && *entry; entry++)
		free(*entry);
	free(job->environment);
}

bool compare_is_interrupted(const struct compare_job *job)
{
	return job->signals.ended_by != 0;
}

void compare_progress(const struct compare_job *job, const char *fmt, ...)
{
	struct winsize window;
	char text[200];
	va_list ap;

	if (!job->progress)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* What goes on in the next line stays when this one is taken away. */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col &&
	    strlen(text) >= window.ws_col)
		text[window.ws_col - 1] = 0;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
}

/*
 * No signal is blocked, and none is ignored, as many a runner and shell leaves it to commands: some
 * programs look. Whoever says nohup means it. The kernel is asked: posix_spawn(3) of glibc ignores
 * two signals of its own, of which its sigaction(3) knows nothing.
 */
static void reset_signals(void)
{
	const u64 by_default[4] = {0}; /* struct sigaction as the kernel has it */
	sigset_t none;

	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		u64 now[4];

		if (sig != SIGHUP && !syscall(SYS_rt_sigaction, sig, NULL, now, 8ul) &&
		    now[0] == (u64)SIG_IGN)
			(void)syscall(SYS_rt_sigaction, sig, by_default, NULL, 8ul);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the new process: system calls only. */
static void in_child(void *data)
{
	const struct compare_job *job = data;

	reset_signals();
	environ = job->environment;
	(void)lseek(job->input, 0, SEEK_SET);
	dup2(job->input, STDIN_FILENO);
	if (job->opts.show_output)
		return;
	dup2(job->no_output, STDOUT_FILENO);
	dup2(job->no_output, STDERR_FILENO);
}

static int say_no_start(struct compare_job *job, const struct ap_error *err)
{
	char text[1100];

	job->status = child_failure_status(&cmd_compare, err);
	compare_progress(job, "%s", "");
	return command_error(&cmd_compare, "%s", ap_error_text(err, text, sizeof(text)));
}

static int run_shell(struct compare_job *job, const char *text, const char *option)
{
	int r = child_shell(&cmd_compare, &job->signals, text, option);

	if (r)
		job->status = cmd_compare.failure;
	return r;
}

int compare_new(struct compare_job *job, struct compare_side *side, struct ap_machine *m,
		struct ap_command **command)
{
	struct ap_command_opts opts = AP_OPTS(ap_command_opts, .in_child = in_child, .data = job);
	struct ap_error err;

	if (run_shell(job, job->opts.pre, "--pre"))
		return -1;
	if (ap_command_new(command, m, side->argv, &opts, &err))
		return say_no_start(job, &err);
	if (!job->signals.blocked)
		signals_block(&job->signals);
	if (job->signals.fd < 0 && signals_open(&job->signals)) {
		job->status = cmd_compare.failure;
		command_error(&cmd_compare, "cannot open a signalfd: %s", strerror(errno));
		ap_command_free(*command);
		return -1;
	}
	return 0;
}

static void sleep_until(const struct compare_job *job, u64 at)
{
	struct pollfd fd = {.fd = job->signals.fd, .events = POLLIN};
	u64 now = now_ns(), ns = at > now ? at - now : 0;
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	(void)ppoll(&fd, 1, at == NEVER ? NULL : &left, NULL);
}

void compare_wait_for_second(struct compare_job *job, s64 second)
{
	struct timespec now;
	u64 until;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec != second)
		return;
	until = now_ns() + 1000 * NS_PER_MS - (u64)now.tv_nsec;
	while (now_ns() < until && !compare_is_interrupted(job)) {
		sleep_until(job, until);
		(void)signals_take(&job->signals, 0);
	}
}

/* 1 at its end, or -errno with the reason if it could not be executed. */
static int wait_for_end(struct compare_job *job, struct child *child, struct compare_end *end,
			struct ap_error *err)
{
	u64 start = now_ns(), kill_at = NEVER;
	u64 limit = job->opts.timeout_ms ? start + (u64)job->opts.timeout_ms * NS_PER_MS : NEVER;
	int r;

	ap_command_start(child->command);
	for (;;) {
		sleep_until(job, limit < kill_at ? limit : kill_at);
		/* The end first: what else there is to do takes time that is not the command's. */
		r = child_reap(child, err);
		end->elapsed_ns = now_ns() - start;
		(void)signals_take(&job->signals, child_pid(child));
		if (r)
			return r;
		child_follow_stop(child);
		if (job->signals.ended_by && kill_at == NEVER)
			kill_at = now_ns() + PATIENCE;
		if (now_ns() >= limit) {
			end->timed_out = true;
			kill(child_pid(child), SIGTERM);
			kill(child_pid(child), SIGCONT);
			kill_at = now_ns() + PATIENCE;
			limit = NEVER;
		}
		if (now_ns() >= kill_at)
			kill(child_pid(child), SIGKILL);
	}
}

/* What a run that is of no use was like. */
static int say_failed(struct compare_job *job, const struct compare_side *side,
		      const struct compare_end *end)
{
	int status = end->end.status;
	char how[80];

	job->status = 2;
	compare_progress(job, "%s", "");
	if (end->timed_out)
		return command_error(&cmd_compare, "%s, '%s', was ended by --timeout, after %ld ms",
				     side->name, side->argv[0], job->opts.timeout_ms);
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(how, sizeof(how), "failed with status %d", WEXITSTATUS(status));
	return command_error(
		&cmd_compare,
		"%s, '%s', %s; --show-output shows what it says, --env NAME lets more of the "
		"environment through, --ignore-exit goes on nevertheless",
		side->name, side->argv[0], how);
}

int compare_run(struct compare_job *job, struct compare_side *side, struct ap_command *command,
		struct compare_end *end)
{
	struct child child = {.command = command};
	struct ap_error err;
	int r;

	*end = (struct compare_end){0};
	r = wait_for_end(job, &child, end, &err);
	end->end = child.end;
	end->usage = *ap__command_usage(command);
	ap_command_free(command);
	if (r < 0)
		return say_no_start(job, &err);
	/* The user's signal may have reached it first. */
	(void)signals_take(&job->signals, 0);
	if (compare_is_interrupted(job))
		return -1;
	if (end->timed_out || (end->end.status && !job->opts.ignore_exit))
		return say_failed(job, side, end);
	return run_shell(job, job->opts.post, "--post");
}
