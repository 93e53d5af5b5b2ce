/*
 * More threads than a process has slots for calls to its session (abi/wire.h) ask for an event's
 * count until that fails, as it does when the session has been killed. The argument is for whoever
 * looks for the session.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 100

static int event;

static void *ask(void *arg)
{
	uint64_t count;

	while (read(event, &count, sizeof(count)) == sizeof(count))
		;
	return errno == ENODEV ? NULL : arg;
}

int main(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1};
	pthread_t threads[THREADS];
	int failed = 0;
	void *ret;

	event = (int)syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return 2;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask, threads))
			return 3;
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < THREADS; i++)
		failed |= pthread_join(threads[i], &ret) || ret;
	return failed ? 1 : 42;
}
