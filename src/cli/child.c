#include "cli/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void restore(void *signals)
{
	signals_restore(signals);
}

struct ap_command_opts child_opts(const struct signals *signals)
{
	return AP_OPTS(ap_command_opts, .in_child = restore, .data = (void *)signals);
}

pid_t child_pid(const struct child *c)
{
	return c->command ? ap_command_pid(c->command) : 0;
}

int child_reap(struct child *c, struct ap_error *err)
{
	return ap_command_wait(c->command, AP_COMMAND_NOHANG, &c->end, err);
}

static bool is_stopped(pid_t pid, int flags)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | flags) && info.si_pid &&
	       info.si_code == CLD_STOPPED;
}

/* Our parent gave us a process group of our own, as shells do with a job: it will let us go on. */
static bool is_job(void)
{
	pid_t parent = getppid();

	return getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

void child_follow_stop(const struct child *c)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	pid_t pid = child_pid(c);

	if (!pid || !is_stopped(pid, WNOWAIT) || !is_job())
		return;
	/* A shell lets all of a job go on, one after the other: it may be the child's turn now. */
	nanosleep(&moment, NULL);
	if (!is_stopped(pid, 0))
		return;
	raise(SIGSTOP);
	kill(pid, SIGCONT);
}

void child_cpu_time(const struct child *c, u64 *user, u64 *system)
{
	unsigned long own_user, own_system;
	long others_user, others_system;
	u64 tick = 1000000000ull / (u64)sysconf(_SC_CLK_TCK);
	char path[32], line[512], *fields;
	FILE *f;

	*user = c->end.user_ns;
	*system = c->end.system_ns;
	if (!child_pid(c))
		return;
	*user = *system = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child_pid(c));
	f = fopen(path, "re");
	/* The name, in parentheses, may hold anything. */
	fields = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (fields &&
	    sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
		   &own_user, &own_system, &others_user, &others_system) == 4) {
		*user = (own_user + (u64)others_user) * tick;
		*system = (own_system + (u64)others_system) * tick;
	}
	if (f)
		fclose(f);
}

int child_signal(const struct child *c)
{
	return WIFSIGNALED(c->end.status) ? WTERMSIG(c->end.status) : 0;
}

int child_exit_status(const struct child *c)
{
	if (child_signal(c))
		return 128 + child_signal(c);
	return WEXITSTATUS(c->end.status);
}

int child_shell(const struct command *cmd, const struct signals *signals, const char *text,
		const char *option)
{
	sigset_t watched;
	int status;

	if (!text)
		return 0;
	/* The shell is a program like any other: it gets what we were given. */
	sigprocmask(SIG_BLOCK, NULL, &watched);
	signals_restore(signals);
	status = system(text);
	sigprocmask(SIG_SETMASK, &watched, NULL);
	if (status)
		return command_error(cmd, "%s: '%s' failed with status %d", option, text,
				     WIFEXITED(status) ? WEXITSTATUS(status)
						       : 128 + WTERMSIG(status));
	return 0;
}

int child_failure_status(const struct command *cmd, const struct ap_error *err)
{
	if (err->cause != AP_CAUSE_FILE && err->cause != AP_CAUSE_UNSUPPORTED)
		return cmd->failure;
	return err->code == -ENOENT ? 127 : 126;
}
