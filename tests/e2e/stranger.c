/*
 * One thread opens an event on itself, and another, made later by one that nobody watches, execs.
 * Exits with 0 if the new program finds that event's task gone: once mapped it polls POLLHUP
 * [OVF-04].
 */
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ready[2];
static char number[16], *self;

static void *opens(void *unused)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	snprintf(number, sizeof(number), "%ld", syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
	if (write(ready[1], "", 1) == 1)
		pause();
	return unused;
}

static void *execs(void *unused)
{
	execl(self, self, number, (char *)NULL);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t opener, thread;
	char c;

	self = argv[0];
	if (argc > 1) {
		struct pollfd p = {.fd = atoi(argv[1]), .events = POLLIN};

		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0) == MAP_FAILED)
			return 2;
		return poll(&p, 1, 0) == 1 && p.revents & POLLHUP ? 0 : 1;
	}
	if (pipe(ready) || pthread_create(&opener, NULL, opens, NULL) ||
	    read(ready[0], &c, 1) != 1 || pthread_create(&thread, NULL, execs, NULL))
		return 3;
	pthread_join(thread, NULL);
	return 4;
}
