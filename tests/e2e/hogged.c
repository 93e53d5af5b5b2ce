/*
 * A debugger outside takes all debug registers of each process that a guest forks, before that runs
 * [TYPE-06]. An event on data that the guest's children inherit counts nothing there, and its times
 * say so: it has not been on for as long as it was enabled.
 *
 *     hogged ANYPERF     the debugger, of `ANYPERF run -- hogged`
 *     hogged             the guest
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "breakpoints-fire.h"

#define SKIPPED 77

static volatile long watched;

/* Some milliseconds of work and a store, over and over. */
static void stores(int n)
{
	for (int i = 0; i < n; i++) {
		watched++;
		for (volatile int spin = 0; spin < 3000000; spin++)
			;
	}
}

static int guest(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .size = sizeof(attr),
				       .bp_type = HW_BREAKPOINT_W,
				       .bp_addr = (uintptr_t)&watched,
				       .bp_len = sizeof(watched),
				       .exclude_kernel = 1,
				       .inherit = 1,
				       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						      PERF_FORMAT_TOTAL_TIME_RUNNING};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t got[3];
	pid_t pid;

	if (fd < 0)
		return SKIPPED;
	stores(3);
	pid = fork();
	if (!pid) {
		stores(5);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid || read(fd, got, sizeof(got)) != sizeof(got))
		return 2;
	printf("%ju stores, enabled %ju ns, running %ju ns\n", got[0], got[1], got[2]);
	return got[0] != 3 || got[2] > got[1] * 3 / 4;
}

/* The command's name and the parent of @pid. */
static pid_t about(pid_t pid, char *name)
{
	char path[64], text[256] = "";
	const char *end;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f) || sscanf(text, "%*d (%15[^)]", name) != 1)
		*name = '\0';
	fclose(f);
	end = strrchr(text, ')');
	if (end)
		sscanf(end + 1, " %*c %d", &parent);
	return parent;
}

static bool is_forked_by_guest(pid_t pid)
{
	char name[16], parents[16];
	pid_t parent = about(pid, name);

	return parent && about(parent, parents) && !strcmp(name, "hogged") &&
	       !strcmp(parents, "hogged");
}

/* Four addresses that nobody stores to. */
static bool take_registers(pid_t pid)
{
	const size_t at = offsetof(struct user, u_debugreg);
	long err = 0;

	for (size_t i = 0; i < 4; i++)
		err |= ptrace(PTRACE_POKEUSER, pid, at + i * sizeof(long), 0x10000 + 8 * i);
	return !(err | ptrace(PTRACE_POKEUSER, pid, at + 7 * sizeof(long), 0x99990055));
}

static int debugger(const char *anyperf, const char *self)
{
	const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	pid_t root = fork(), pid;
	int status, verdict = 2;
	bool taken = false;

	if (!root) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
			_exit(SKIPPED);
		execl(anyperf, anyperf, "run", "--", self, (char *)NULL);
		_exit(3);
	}
	if (waitpid(root, &status, 0) != root || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, root, 0, options))
		return SKIPPED;
	ptrace(PTRACE_CONT, root, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (pid == root && WIFEXITED(status))
			verdict = WEXITSTATUS(status);
		if (!WIFSTOPPED(status))
			continue;
		/* A task that is made begins with one. */
		if (sig == SIGSTOP && is_forked_by_guest(pid))
			taken |= take_registers(pid);
		ptrace(PTRACE_CONT, pid, 0, status >> 16 || sig == SIGSTOP ? 0 : sig);
	}
	return verdict == 1 && !taken ? SKIPPED : verdict;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !breakpoints_fire(HW_BREAKPOINT_W)) {
		puts(BREAKPOINTS_NEVER_FIRE);
		return SKIPPED;
	}
	return argc > 1 ? debugger(argv[1], argv[0]) : guest();
}
