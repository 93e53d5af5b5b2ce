/*
 * What perf's calls cost; driven by bench/perf-calls.
 *
 *   perf-calls cycle hw|sw N   ns for open, ENABLE, read, close of an event
 *   perf-calls read hw|sw N    ns for a read of an own event that counts
 *   perf-calls page N          ns for a read of an own event through its user page
 *   perf-calls quiet N         N times write, mmap, munmap between two getpgid(MARK): for counting
 *                              system calls
 *   perf-calls work N          N million turns of a loop with calls and memory
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MARK 12345678 /* nobody's pid: marks a place in a trace */

static int event(const char *kind)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = strcmp(kind, "hw") == 0 ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = strcmp(kind, "hw") == 0 ? PERF_COUNT_HW_INSTRUCTIONS
						  : PERF_COUNT_SW_PAGE_FAULTS,
		.disabled = 1,
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

static void cycle(const char *kind)
{
	uint64_t value;
	int fd = event(kind);

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) || read(fd, &value, 8) != 8 || close(fd))
		exit(1);
}

static void page(long n)
{
	int fd = event("hw");
	volatile struct perf_event_mmap_page *pg = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t sum = 0;
	uint32_t seq, index;
	double start;

	if (pg == MAP_FAILED || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) || !pg->cap_user_rdpmc)
		exit(1);
	start = now();
	for (long i = 0; i < n; i++) {
		do {
			seq = pg->lock;
			index = pg->index;
			sum += (uint64_t)pg->offset;
			if (index)
				sum += __builtin_ia32_rdpmc((int)index - 1);
		} while (pg->lock != seq);
	}
	printf("%.1f\n", (now() - start) / (double)n);
	if (!sum)
		exit(1);
}

static void quiet(long n)
{
	int null = open("/dev/null", O_WRONLY);

	syscall(SYS_getpgid, MARK);
	for (long i = 0; i < n; i++) {
		void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED || write(null, p, 1) != 1 || munmap(p, 8192))
			exit(1);
	}
	syscall(SYS_getpgid, MARK);
}

static __attribute__((noinline)) uint64_t step(uint64_t *table, uint64_t x)
{
	return table[x & 1023]++ + (x ^ x >> 3);
}

static void work(long millions)
{
	static uint64_t table[1024];
	uint64_t x = 88172645463325252u;

	for (long i = 0; i < millions * 1000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (step(table, x) & 1)
			x++;
	}
	printf("%lu\n", (unsigned long)(x + table[7]));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	long n = atol(argv[argc - 1]);
	double start;

	if (strcmp(mode, "cycle") == 0) {
		/*
		 * The first event of a kind and the last make the kernel patch itself: keep one
		 * open.
		 */
		event(argv[2]);
		for (long i = 0; i < n / 10; i++)
			cycle(argv[2]);
		start = now();
		for (long i = 0; i < n; i++)
			cycle(argv[2]);
		printf("%.1f\n", (now() - start) / (double)n);
	} else if (strcmp(mode, "read") == 0) {
		int fd = event(argv[2]);
		uint64_t value;

		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return 1;
		start = now();
		for (long i = 0; i < n; i++)
			if (read(fd, &value, 8) != 8)
				return 1;
		printf("%.1f\n", (now() - start) / (double)n);
	} else if (strcmp(mode, "page") == 0) {
		page(n);
	} else if (strcmp(mode, "quiet") == 0) {
		quiet(n);
	} else if (strcmp(mode, "work") == 0) {
		work(n);
	} else {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	return 0;
}
