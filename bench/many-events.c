/*
 * What an event costs among many; driven by bench/many-events.
 *
 *   many-events hw|sw on|off N PAIRS
 *
 * Opens N events of the calling thread, counting or not, makes PAIRS pairs of open and close beside
 * them, and closes all. Prints three numbers, ns: one of the N opens, a pair, one of the N closes.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int event(const char *kind, const char *state)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = strcmp(kind, "hw") == 0 ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = strcmp(kind, "hw") == 0 ? PERF_COUNT_HW_INSTRUCTIONS
						  : PERF_COUNT_SW_PAGE_FAULTS,
		.disabled = strcmp(state, "on") != 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	return fd;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Each event is a descriptor, and N may be more than a program may have by default. */
static void raise_limit(long n)
{
	struct rlimit limit;
	rlim_t want = (rlim_t)n + 64;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want;
	if (limit.rlim_max < want)
		limit.rlim_max = want;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		perror("RLIMIT_NOFILE");
		exit(77);
	}
}

int main(int argc, char **argv)
{
	long n = argc == 5 ? atol(argv[3]) : 0, pairs = argc == 5 ? atol(argv[4]) : 0;
	double start, opens, each, closes;
	int *fds;

	if (n < 1 || pairs < 1) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	raise_limit(n);
	fds = malloc((size_t)n * sizeof(*fds));
	if (!fds)
		return 1;
	/* The first event of a kind and the last make the kernel patch itself: keep one open. */
	event(argv[1], "off");
	start = now();
	for (long i = 0; i < n; i++)
		fds[i] = event(argv[1], argv[2]);
	opens = (now() - start) / (double)n;
	for (long i = 0; i < pairs / 10; i++)
		close(event(argv[1], argv[2]));
	start = now();
	for (long i = 0; i < pairs; i++)
		close(event(argv[1], argv[2]));
	each = (now() - start) / (double)pairs;
	start = now();
	for (long i = 0; i < n; i++)
		close(fds[i]);
	/* Closing is noticed by whoever has the next word. */
	close(event(argv[1], argv[2]));
	closes = (now() - start) / (double)n;
	printf("%.0f %.0f %.0f\n", opens, each, closes);
	return 0;
}
