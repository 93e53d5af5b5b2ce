/*
 * Two threads that count what they execute, while tracers look at them: says that it is there,
 * works, waits for a line, and says what the threads have counted.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long times;

__attribute__((noinline)) static void work(void)
{
	for (volatile unsigned long i = 0; i < times; i++)
		;
}

static void *works(void *count)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .exclude_kernel = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t before, after;

	if (fd < 0 || read(fd, &before, sizeof(before)) != sizeof(before))
		exit(5);
	work();
	if (read(fd, &after, sizeof(after)) != sizeof(after))
		exit(6);
	*(uint64_t *)count = after - before;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t count[2] = {0};
	pthread_t thread;
	char text[80], c;
	int len;

	times = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	if (write(1, "working\n", 8) != 8 || pthread_create(&thread, NULL, works, &count[0]))
		return 2;
	works(&count[1]);
	pthread_join(thread, NULL);
	if (write(1, "waiting\n", 8) != 8 || read(0, &c, 1) != 1)
		return 3;
	len = snprintf(text, sizeof(text), "%lu %lu\n", (unsigned long)count[0],
		       (unsigned long)count[1]);
	return write(1, text, (size_t)len) == len ? 7 : 4;
}
