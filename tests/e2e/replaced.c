/*
 * A thread that is not the first one of its process calls execve, and becomes the first, while
 * somebody keeps switching an event of the first thread on and off. The new program has to begin
 * and to end well. Argument: how often.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *self;

static void *becomes(void *arg)
{
	(void)arg;
	usleep(500);
	/* One that fails has everything go on. */
	execl("/nonexistent", "none", (char *)NULL);
	execl(self, self, "new", (char *)NULL);
	_exit(9);
}

static void child(int go)
{
	volatile unsigned long turns = 0;
	pthread_t thread;
	char c;

	if (read(go, &c, 1) != 1 || pthread_create(&thread, NULL, becomes, NULL))
		_exit(8);
	for (;;)
		turns++;
}

static int one(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .sample_period = 1000000,
				       .sample_type = PERF_SAMPLE_IP,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int go[2], fd, status;
	pid_t pid;

	if (pipe(go))
		return -1;
	pid = fork();
	if (!pid)
		child(go[0]);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
	if (pid < 0 || fd < 0 || write(go[1], "", 1) != 1)
		return -1;
	while (!waitpid(pid, &status, WNOHANG)) {
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	close(fd);
	close(go[0]);
	close(go[1]);
	return status;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 0;

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "new"))
		return 0;
	for (int i = 0; i < times; i++) {
		int status = one();

		if (!status)
			continue;
		fprintf(stderr, "turn %d: status %#x\n", i, (unsigned int)status);
		return 1;
	}
	return 0;
}
