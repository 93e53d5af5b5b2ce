/*
 * What old kernels did, or what was once promised, and no kernel of today does [PAGE-24, RING-12,
 * RING-16, RING-18, REC-22, DES-08, MISC-07, MISC-08].
 */
#include "conform/records.h"
#include "conform/region.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>

static struct pe_attr telling(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	attr.disabled = 0;
	attr.comm = attr.task = attr.mmap = attr.mmap2 = attr.mmap_data = 1;
	return attr;
}

static int ready_after_a_record(struct pe_attr attr)
{
	struct buffer b = map(ev_self(attr));
	struct pollfd p = {.fd = b.fd, .events = POLLIN};

	prctl(PR_SET_NAME, "name");
	NEED(b.page->data_head && poll(&p, 1, 0) >= 0);
	unmap(&b);
	return p.revents;
}

/* One word of the attr is a number of samples or of bytes. */
CONFORM(watermark)
{
	struct pe_attr attr = telling();

	attr.wakeup_events = 1;
	check_val("RING-12", "without watermark the word is a number of samples",
		  ready_after_a_record(attr), 0);
	attr.watermark = 1;
	check_val("RING-12", "with it a number of bytes, which any record has",
		  ready_after_a_record(attr), POLLIN);
}

static volatile int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

/* Samples that nobody can read are overflows all the same, and go round by the same periods. */
CONFORM(no_buffer)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int fd;

	attr.sample_period = 10;
	signal(SIGRTMIN, on_signal);
	/* Twice, so that all of this was executed before. */
	for (int i = 0; i < 2; i++) {
		fd = (int)ev_self(attr);
		NEED(fd >= 0);
		NEED(fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
		NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
		signals = 0;
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch_pages(200);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		if (!i)
			close(fd);
	}
	CHECK_ROW("RING-16", signals >= 20 && (u64)signals == ev_count(fd) / 10,
		  "an event samples without a buffer", "%d of %lu", signals, ev_count(fd));
}

/* Neither from a ring nor into one. */
CONFORM(splice)
{
	struct buffer b = map(ev_self(telling()));
	int p[2], null = open("/dev/null", O_WRONLY);
	char c;

	prctl(PR_SET_NAME, "name");
	NEED(b.page->data_head && pipe(p) == 0 && null >= 0);
	check_err("RING-18", "splice from a ring",
		  splice(b.fd, NULL, p[1], NULL, 64, SPLICE_F_NONBLOCK) < 0 ? -errno : 0, EINVAL);
	NEED(write(p[1], "x", 1) == 1);
	check_err("RING-18", "splice into a ring",
		  splice(p[0], NULL, b.fd, NULL, 1, SPLICE_F_NONBLOCK) < 0 ? -errno : 0, EINVAL);
	check_val("RING-18", "which takes nothing out of the pipe",
		  read(p[0], &c, 1) == 1 && c == 'x', 1);
	check_err("RING-18", "sendfile from a ring",
		  sendfile(null, b.fd, NULL, 64) < 0 ? -errno : 0, EINVAL);
}

/* The second number of the first design would be an unmapping's. */
CONFORM(unmapping)
{
	struct buffer b = map(ev_self(telling()));
	int fd = open("/proc/self/exe", O_RDONLY), others = 0, mapped = 0;
	const struct perf_event_header *h;
	void *p;

	NEED(fd >= 0);
	while (next(&b))
		;
	p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	NEED(p != MAP_FAILED && munmap(p, PAGE) == 0);
	while ((h = next(&b))) {
		mapped += h->type == PERF_RECORD_MMAP2;
		others += h->type != PERF_RECORD_MMAP2;
	}
	check_val("REC-22", "a mapping is told", mapped, 1);
	check_val("DES-08", "and its end is not", others, 0);
	check_val("REC-22", "the number of it is LOST's", PERF_RECORD_LOST, 2);
}

CONFORM_EXEC(nothing)
{
	return arg;
}

/* Of all that a program does there is no record with a bit that is not the kernel's to set. */
CONFORM(bits)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	u64 n = 0, reserved = 0, tools = 0, types = 0, whole = 0;
	const struct perf_event_header *h;
	struct buffer b;
	cpu_set_t set;
	pid_t pid;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.comm = attr.task = attr.mmap = attr.mmap2 = attr.mmap_data = attr.context_switch = 1;
	attr.inherit = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	pid = fork();
	if (!pid)
		exec_self("nothing", 0);
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	touch_pages(10);
	usleep(1000);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (h = next(&b)); n++) {
		reserved += !!(h->misc & PERF_RECORD_MISC_EXT_RESERVED);
		tools += !!(h->misc & PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT);
		whole += h->size % 8 == 0;
		if (h->type < 32)
			types |= BIT(h->type);
	}
	CHECK_ROW("RING-03", whole == n, "each record has whole words", "%lu of %lu", whole, n);
	check_val("RING-03", "and they follow one another to the head", b.at == b.page->data_head,
		  1);
	check_val("MISC-07", "there are names, ends, forks, samples, mappings, switches",
		  !(~types &
		    (BIT(PERF_RECORD_COMM) | BIT(PERF_RECORD_EXIT) | BIT(PERF_RECORD_FORK) |
		     BIT(PERF_RECORD_SAMPLE) | BIT(PERF_RECORD_MMAP2) | BIT(PERF_RECORD_SWITCH))),
		  1);
	check_val("MISC-07", "none of them has bit 15", (long long)reserved, 0);
	check_val("MISC-08", "none has the bit with which perf says that it gave up",
		  (long long)tools, 0);
}

/* 2.6.31 let user mode read counters on powerpc alone. */
CONFORM(user_mode)
{
	struct perf_event_mmap_page *page;
	u64 first, second;
	int fd;

	if (no_user_access("PAGE-24", "user mode reads a counter"))
		return;
	fd = pmu_open_readable(PERF_COUNT_HW_INSTRUCTIONS);
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED && ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	check_val("PAGE-24", "user mode may read a counter", page->cap_user_rdpmc && page->index,
		  1);
	NEED(page->index);
	first = counter_read(page->index);
	second = counter_read(page->index);
	check_val("PAGE-24", "which goes on between two looks", first != second, 1);
}
