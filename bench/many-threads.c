/*
 * What an event of a whole CPU costs beside many threads that sleep; driven by bench/many-threads.
 *
 *   many-threads THREADS EVENTS
 *
 * Prints three numbers, microseconds: the first event's open, the mean of EVENTS later ones, each
 * opened and closed, and the mean of as many reads. The kernel counts page faults, a session
 * instructions.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int event(int pid, int cpu)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_HARDWARE,
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .exclude_kernel = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);

	if (fd < 0) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_PAGE_FAULTS;
		fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
	}
	if (fd < 0) {
		perror("perf_event_open");
		exit(77);
	}
	return fd;
}

static void *sleeper(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	long threads = argc == 3 ? atol(argv[1]) : 0, events = argc == 3 ? atol(argv[2]) : 0;
	double start, first, later = 0, reads = 0;
	pthread_attr_t small;
	unsigned long count;
	pthread_t thread;
	int fd;

	if (threads < 1 || events < 1) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	/* A session is there, and not part of what the first one costs. */
	event(0, -1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread, &small, sleeper, NULL))
			return 77;
	sleep(1);
	start = now();
	fd = event(-1, 0);
	first = now() - start;
	for (long i = 0; i < events; i++) {
		/* What was looked at a moment ago would not be looked at again. */
		usleep(5000);
		start = now();
		close(event(-1, 0));
		later += now() - start;
		usleep(5000);
		start = now();
		if (read(fd, &count, sizeof(count)) != sizeof(count))
			return 1;
		reads += now() - start;
	}
	printf("%.1f %.1f %.1f\n", first, later / (double)events, reads / (double)events);
	return 0;
}
