/*
 * Counts a program and all that it starts, as perf stat would, and says so in one line:
 *
 *   counted [-t] PROGRAM ARGS...
 *
 * prints `instructions N branches N status S` on standard error, S as a shell has it. With -t it
 * counts task-clock and page-faults instead, which every kernel has.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_on(pid_t pid, unsigned int type, unsigned long long config)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	int soft = argc > 1 && strcmp(argv[1], "-t") == 0, go[2], fds[2], status;
	unsigned long long v[2];
	pid_t pid;
	char c;

	argv += 1 + soft;
	if (!*argv || pipe2(go, O_CLOEXEC) < 0)
		return 125;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			execvp(*argv, argv);
		_exit(127);
	}
	fds[0] = soft ? open_on(pid, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)
		      : open_on(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	fds[1] = soft ? open_on(pid, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS)
		      : open_on(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
	if (pid < 0 || fds[0] < 0 || fds[1] < 0) {
		fprintf(stderr, "counted: %s\n", strerror(errno));
		return 125;
	}
	if (write(go[1], "", 1) != 1)
		return 125;
	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return 125;
	for (int i = 0; i < 2; i++)
		if (read(fds[i], &v[i], sizeof(v[i])) != sizeof(v[i]))
			return 125;
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	fprintf(stderr, "%s %llu %s %llu status %d\n", soft ? "task-clock" : "instructions", v[0],
		soft ? "page-faults" : "branches", v[1], status);
	return status;
}
