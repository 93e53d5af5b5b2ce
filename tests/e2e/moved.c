/*
 * Opens an event on itself for each of two CPUs. For each line that it reads it runs for a while,
 * takes page faults, and only then asks what the two have counted since they were last asked. So
 * who moves it while it waits for a line has moved it without a call of its own.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FAULTS 1000

static void touch(void)
{
	char *pages = mmap(NULL, FAULTS * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (pages == MAP_FAILED)
		_exit(3);
	madvise(pages, FAULTS * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < FAULTS; i++)
		pages[i * 4096] = 1;
	munmap(pages, FAULTS * 4096);
}

/* Until whoever looks at intervals has looked. */
static void spin(int ms)
{
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < ms);
}

int main(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	unsigned long long before[2] = {0, 0}, after[2];
	char line[16];
	int fds[2];

	for (int cpu = 0; cpu < 2; cpu++) {
		fds[cpu] = (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, 0);
		if (fds[cpu] < 0)
			return 2;
	}
	printf("here\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		spin(400);
		touch();
		for (int cpu = 0; cpu < 2; cpu++)
			if (read(fds[cpu], &after[cpu], 8) != 8)
				return 4;
		printf("%llu %llu\n", after[0] - before[0], after[1] - before[1]);
		fflush(stdout);
		before[0] = after[0];
		before[1] = after[1];
	}
	return 0;
}
