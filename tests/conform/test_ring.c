/*
 * Events with a period, and buffers of records: what a counting event has not. Opening, mapping,
 * locking memory, redirecting and the ioctls of sampling events [ATTR-04, RING-01, RING-02,
 * RING-13, FLAG-02, IOC-03, IOC-05, IOC-06, INH-09]; what samples write into a buffer is not looked
 * at here.
 */
#include "conform/conform.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#define PAGE 4096

static int dummy(u64 period)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long fd;

	attr.sample_period = period;
	fd = ev_self(attr);
	NEED(fd >= 0);
	return (int)fd;
}

static long map(int fd, size_t pages, int prot, void **out)
{
	void *p = mmap(NULL, pages * PAGE, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (out)
		*out = p;
	else
		munmap(p, pages * PAGE);
	return 0;
}

CONFORM(open_period)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	char buf[32] = "";
	int fd = open("/proc/sys/kernel/perf_event_max_sample_rate", O_RDONLY);

	attr.sample_period = 1;
	check_err("ATTR-04", "period 1", try_self(attr), 0);
	attr.sample_period = (1ULL << 63) - 1;
	check_err("ATTR-04", "period 2^63 - 1", try_self(attr), 0);
	attr.freq = 1;
	attr.sample_freq = 1;
	check_err("ATTR-04", "frequency 1", try_self(attr), 0);
	NEED(fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0);
	attr.sample_freq = strtoull(buf, NULL, 10);
	check_err("ATTR-04", "frequency of the maximum", try_self(attr), 0);
	attr.freq = 0;
	attr.sample_period++;
	check_err("ATTR-04", "a number above the maximum rate as a period", try_self(attr), 0);
}

CONFORM(sizes)
{
	int fd = dummy(0);

	check_err("RING-01", "1 + 1 pages", map(fd, 2, PROT_READ, NULL), 0);
	check_err("RING-01", "1 + 2 pages", map(fd, 3, PROT_READ, NULL), 0);
	check_err("RING-01", "1 + 4 pages", map(fd, 5, PROT_READ, NULL), 0);
	check_err("RING-01", "1 + 16 pages, writable", map(fd, 17, PROT_READ | PROT_WRITE, NULL),
		  0);
}

CONFORM(twice)
{
	int fd = dummy(0);
	void *a = NULL, *b = NULL;

	NEED(map(fd, 3, PROT_READ | PROT_WRITE, &a) == 0);
	check_val("PAGE-19", "data_size of 1 + 2 pages",
		  (long long)((struct perf_event_mmap_page *)a)->data_size, 2 * PAGE);
	check_err("RING-02", "a second map of another length", map(fd, 2, PROT_READ, NULL), EINVAL);
	check_err("RING-02", "a second map of one page", map(fd, 1, PROT_READ, NULL), EINVAL);
	check_err("RING-02", "a second map of the same length",
		  map(fd, 3, PROT_READ | PROT_WRITE, &b), 0);
	((struct perf_event_mmap_page *)a)->data_tail = 77;
	check_val("RING-02", "is the same memory",
		  (long long)((struct perf_event_mmap_page *)b)->data_tail, 77);
	munmap(a, 3 * PAGE);
	munmap(b, 3 * PAGE);
	check_err("RING-02", "after the last unmap another length is good",
		  map(fd, 2, PROT_READ, NULL), 0);
}

CONFORM(flag_output)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int lead = dummy(0);

	NEED(map(lead, 2, PROT_READ | PROT_WRITE, &(void *){0}) == 0);
	check_err("FLAG-02", "FD_OUTPUT to an event with a buffer",
		  try_open(&attr, 0, -1, lead, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP), 0);
	check_err("FLAG-02", "FD_OUTPUT to an event with a buffer, another CPU",
		  try_open(&attr, 0, 0, lead, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP), EINVAL);
}

CONFORM(set_output)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int fd = dummy(0), target = dummy(0);
	pid_t child;
	long on0;

	NEED(map(target, 2, PROT_READ | PROT_WRITE, &(void *){0}) == 0);
	check_err("IOC-06", "SET_OUTPUT to an event with a buffer",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), 0);
	check_err("IOC-06", "SET_OUTPUT of an event that is mapped",
		  ev_ioctl(target, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)fd), EINVAL);
	on0 = ev_open(&attr, 0, 0, -1, 0);
	NEED(on0 >= 0);
	check_err("IOC-06", "SET_OUTPUT to another CPU's",
		  ev_ioctl((int)on0, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), EINVAL);
	check_err("IOC-06", "SET_OUTPUT back to -1",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)-1), 0);
	child = fork();
	if (!child)
		pause();
	on0 = ev_open(&attr, child, -1, -1, 0);
	NEED(child > 0 && on0 >= 0);
	check_err("IOC-06", "SET_OUTPUT to another task's",
		  ev_ioctl((int)on0, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), EINVAL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	attr.write_backward = 1;
	fd = (int)ev_self(attr);
	check_err("IOC-06", "SET_OUTPUT of another direction",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), EINVAL);
	attr.write_backward = 0;
	attr.use_clockid = 1;
	attr.clockid = 1;
	fd = (int)ev_self(attr);
	check_err("IOC-06", "SET_OUTPUT of another clock",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), EINVAL);
}

CONFORM(refresh)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int sampling = dummy(1000000);
	long inherit;

	check_err("IOC-03", "REFRESH of a sampling event",
		  ev_ioctl(sampling, PERF_EVENT_IOC_REFRESH, 1), 0);
	check_err("IOC-03", "REFRESH by 0", ev_ioctl(sampling, PERF_EVENT_IOC_REFRESH, 0), 0);
	attr.sample_period = 1000000;
	attr.inherit = 1;
	inherit = ev_self(attr);
	NEED(inherit >= 0);
	check_err("INH-09", "REFRESH of an inheriting event",
		  ev_ioctl((int)inherit, PERF_EVENT_IOC_REFRESH, 1), EINVAL);
}

CONFORM(period)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int sampling = dummy(1000);
	u64 zero = 0, one = 1, huge = 1ULL << 63, most = huge - 1, fast = 1ULL << 40;
	long freq;

	check_err("IOC-05", "PERIOD of 1",
		  ev_ioctl(sampling, PERF_EVENT_IOC_PERIOD, (unsigned long)&one), 0);
	check_err("IOC-05", "PERIOD of 0",
		  ev_ioctl(sampling, PERF_EVENT_IOC_PERIOD, (unsigned long)&zero), EINVAL);
	check_err("IOC-05", "PERIOD of 2^63",
		  ev_ioctl(sampling, PERF_EVENT_IOC_PERIOD, (unsigned long)&huge), EINVAL);
	check_err("IOC-05", "PERIOD of 2^63 - 1",
		  ev_ioctl(sampling, PERF_EVENT_IOC_PERIOD, (unsigned long)&most), 0);
	check_err("IOC-05", "PERIOD from no address", ev_ioctl(sampling, PERF_EVENT_IOC_PERIOD, 0),
		  EFAULT);
	attr.freq = 1;
	attr.sample_freq = 10;
	freq = ev_self(attr);
	NEED(freq >= 0);
	check_err("IOC-05", "PERIOD of a frequency event: 1 Hz",
		  ev_ioctl((int)freq, PERF_EVENT_IOC_PERIOD, (unsigned long)&one), 0);
	check_err("IOC-05", "PERIOD of a frequency event: above the maximum",
		  ev_ioctl((int)freq, PERF_EVENT_IOC_PERIOD, (unsigned long)&fast), EINVAL);
}

/* An event that counts has no samples, but a buffer for what else there is to tell. */
CONFORM(counting)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_mmap_page *page;
	const struct perf_event_header *h;
	u64 before;
	void *p = NULL;
	int fd;

	attr.comm = 1;
	fd = (int)ev_self(attr);
	NEED(fd >= 0 && map(fd, 3, PROT_READ | PROT_WRITE, &p) == 0);
	page = p;
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	before = ev_count(fd);
	touch_pages(20);
	prctl(PR_SET_NAME, "counting");
	CHECK_ROW("RING-17", ev_count(fd) - before >= 20, "an event with a buffer counts", "%lu",
		  ev_count(fd) - before);
	h = (const void *)((const u8 *)p + PAGE);
	check_val("RING-17", "in its buffer is a change of name", h->type, PERF_RECORD_COMM);
	check_val("RING-17", "and nothing else", page->data_head == h->size, 1);
	check_val("RING-17", "in its page the count's place", page->data_offset == PAGE, 1);
}

/* A user whom nobody else on the machine is. */
#define SOMEBODY 54321

static long long mlock_pages(void)
{
	char text[32] = "";
	int fd = open("/proc/sys/kernel/perf_event_mlock_kb", O_RDONLY);

	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoll(text, NULL, 10) * 1024 / PAGE * sysconf(_SC_NPROCESSORS_ONLN);
}

static void limit_pages(rlim_t soft)
{
	struct rlimit limit = {soft * PAGE, 4 * PAGE};

	NEED(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

/* The largest buffers that there are room for, until the user has locked what he may. */
static void lock_all(void)
{
	long long left = mlock_pages();

	for (size_t pages = 512; pages; pages /= 2)
		for (; left > (long long)pages; left -= (long long)pages + 1)
			NEED(map(dummy(0), pages + 1, PROT_READ | PROT_WRITE, &(void *){0}) == 0);
	if (left)
		NEED(map(dummy(0), 1, PROT_READ, &(void *){0}) == 0);
}

static void locked(void)
{
	int fd, status;
	pid_t child;
	void *p = NULL;

	limit_pages(0);
	lock_all();
	check_err("RING-13", "a page more than the user may lock",
		  map(dummy(0), 1, PROT_READ, NULL), EPERM);
	check_err("RING-13", "a buffer more", map(dummy(0), 2, PROT_READ | PROT_WRITE, NULL),
		  EPERM);
	limit_pages(3);
	fd = dummy(0);
	check_err("RING-13", "a buffer that RLIMIT_MEMLOCK allows",
		  map(fd, 3, PROT_READ | PROT_WRITE, &p), 0);
	check_err("RING-13", "the same buffer once more", map(fd, 3, PROT_READ | PROT_WRITE, NULL),
		  0);
	check_err("RING-13", "another one, which it does not", map(dummy(0), 1, PROT_READ, NULL),
		  EPERM);
	child = fork();
	if (!child)
		_exit((int)-map(dummy(0), 3, PROT_READ | PROT_WRITE, NULL));
	NEED(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	check_err("RING-13", "another one in another process, which has a limit of its own",
		  -WEXITSTATUS(status), 0);
	munmap(p, 3 * PAGE);
	check_err("RING-13", "another one when the first is gone",
		  map(dummy(0), 3, PROT_READ | PROT_WRITE, NULL), 0);
}

static void locked_by_somebody(void)
{
	NEED(setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
	NEED(setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
	locked();
}

CONFORM(memory)
{
	if (geteuid() || paranoid() < 0) {
		skip_row("RING-13", "how much memory a user may lock",
			 "it takes a user of whom nobody else is, and a limit");
		return;
	}
	in_child(locked_by_somebody);
	limit_pages(0);
	lock_all();
	check_err("RING-13", "with CAP_IPC_LOCK there is no limit",
		  map(dummy(0), 9, PROT_READ | PROT_WRITE, NULL), 0);
}
