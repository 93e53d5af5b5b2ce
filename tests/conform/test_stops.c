/*
 * Samples of what only a kernel sees: time, page faults, context switches. Under `anyperf run` the
 * host's kernel tells when, and the runtime where the program was.
 */
#include "conform/records.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

static struct pe_attr every(u64 config, u64 period, u64 sample_type)
{
	struct pe_attr attr = sw_attr(config);

	attr.sample_period = period;
	attr.sample_type = sample_type;
	return attr;
}

/* A store at a known place, for each of @n pages of which none is there yet. */
extern const char touch_store[];

static __attribute__((noinline)) u8 *touch(int n)
{
	u8 *at = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);

	NEED(at != MAP_FAILED);
	NEED(madvise(at, (size_t)n * PAGE, MADV_NOHUGEPAGE) == 0);
	for (int i = 0; i < n; i++)
		asm volatile(".globl touch_store\ntouch_store: movb $1, (%0)" ::"r"(at + i * PAGE)
			     : "memory");
	return at;
}

static bool is_in(u64 addr, const u8 *at, int n)
{
	return addr >= (u64)at && addr < (u64)at + (u64)n * PAGE;
}

/*
 * What follows is executed for the second time then: when code is executed for the first time after
 * a fork the runtime takes faults of its own, which the event counts.
 */
static void warm_up(struct pe_attr attr)
{
	for (int i = 0; i < 2; i++) {
		struct buffer b = map(ev_self(attr));

		NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch(50);
		NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		samples(&b);
		unmap(&b);
	}
}

static struct buffer map_warm(struct pe_attr attr)
{
	warm_up(attr);
	return map(ev_self(attr));
}

CONFORM(each_fault)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1,
				    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
					    PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
					    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER);
	u64 n = 0, in_order = 0, at_store = 0, ids = 0, later = 0, of_one = 0, chains = 0, regs = 0;
	u64 last = 0;
	struct buffer b;
	const u64 *p;
	u8 *at;

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.sample_regs_user = BIT(8); /* the instruction pointer */
	b = map_warm(attr);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	at = touch(100);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((p = next_sample(&b))) {
		const u64 *chain = p + 5, *after = chain + 1 + chain[0];

		if (!is_in(p[3], at, 100))
			continue;
		in_order += p[3] == (u64)at + n++ * PAGE;
		at_store += p[0] == (u64)touch_store;
		ids += p[1] == ((u64)gettid() << 32 | (u64)getpid());
		later += p[2] > last;
		last = p[2];
		of_one += p[4] == 1;
		chains += chain[0] >= 2 && chain[1] == (u64)PERF_CONTEXT_USER && chain[2] == p[0];
		regs += after[0] == PERF_SAMPLE_REGS_ABI_64 && after[1] == p[0];
	}
	check_val("SW-02", "a sample for each fault", (long long)n, 100);
	check_val("SAMP-05", "with its address, in order", (long long)in_order, 100);
	check_val("SAMP-02", "at the store", (long long)at_store, 100);
	check_val("SAMP-03", "in this thread", (long long)ids, 100);
	check_val("SAMP-04", "one after the other", (long long)later, 100);
	check_val("SAMP-09", "of period 1", (long long)of_one, 100);
	check_val("SAMP-11", "whose chain begins there", (long long)chains, 100);
	check_val("SAMP-14", "and so do the registers", (long long)regs, 100);
}

/* READ says the count at each, since the thread is there. */
CONFORM(each_third_fault)
{
	struct buffer b =
		map_warm(every(PERF_COUNT_SW_PAGE_FAULTS, 3, PERF_SAMPLE_TID | PERF_SAMPLE_READ));
	u64 n = 0, right = 0;
	const u64 *p;

	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(99);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((p = next_sample(&b)))
		right += p[1] == ++n * 3;
	CHECK_ROW("DES-02", n == ev_count(b.fd) / 3,
		  "as many samples as the count has periods of 3", "%lu of %lu", n, ev_count(b.fd));
	CHECK_ROW("SAMP-10", right == n, "each with its count", "%lu of %lu", right, n);
}

/* Each occurrence, if the period is sampled as well. */
CONFORM(period_of_faults)
{
	struct buffer b = map_warm(every(PERF_COUNT_SW_PAGE_FAULTS, 10, PERF_SAMPLE_PERIOD));
	u64 n = 0, ones = 0;
	const u64 *p;

	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(50);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (p = next_sample(&b)); n++)
		ones += p[0] == 1;
	CHECK_ROW("SAMP-09", n == ev_count(b.fd) && ones == n,
		  "with PERIOD each fault is a sample of period 1", "%lu of %lu", n,
		  ev_count(b.fd));
}

CONFORM(another_period)
{
	struct buffer b = map_warm(every(PERF_COUNT_SW_PAGE_FAULTS, 1000, PERF_SAMPLE_IP));
	u64 period = 2;

	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(7);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period) == 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(100);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	CHECK_ROW("IOC-05", samples(&b) == ev_count(b.fd) / 2, "each second fault from now on",
		  "%lu of %lu", samples(&b), ev_count(b.fd));
}

/* What it has begun of a period it goes on with. */
CONFORM(off_and_on)
{
	struct buffer b = map_warm(every(PERF_COUNT_SW_PAGE_FAULTS_MIN, 10, PERF_SAMPLE_IP));

	for (int i = 0; i < 20; i++) {
		NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch(5);
		NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	}
	CHECK_ROW("SW-05", samples(&b) == ev_count(b.fd) / 10,
		  "a period that is cut in two is one period", "%lu of %lu", samples(&b),
		  ev_count(b.fd));
}

static volatile u64 spun;

static __attribute__((noinline)) void spin(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do {
		for (int i = 0; i < 100000; i++)
			spun += (u64)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < 50000000);
}

static bool is_ours(u64 ip)
{
	return ip - (u64)spin < 1 << 20 || (u64)spin - ip < 1 << 20;
}

static void clock_samples(u64 config, const char *some, const char *here, const char *few)
{
	struct buffer b = map(ev_self(every(config, 200000, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD)));
	u64 n = 0, ours = 0, right = 0;
	const u64 *p;

	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	spin();
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (p = next_sample(&b)); n++) {
		ours += is_ours(p[0]);
		right += p[1] == 200000;
	}
	CHECK_ROW("SW-00", n >= 5 && right == n, some, "%lu, %lu", n, right);
	/* The rest is in the C library and in the vDSO. */
	CHECK_ROW("SAMP-02", ours * 2 > n, here, "%lu of %lu", ours, n);
	CHECK_ROW("OVF-01", n * 200000 <= ev_count(b.fd), few, "%lu", n);
	unmap(&b);
}

CONFORM(clocks)
{
	clock_samples(PERF_COUNT_SW_CPU_CLOCK, "cpu-clock has samples of its period",
		      "they are in the loop", "they are no more than there was time for");
	clock_samples(PERF_COUNT_SW_TASK_CLOCK, "task-clock has samples of its period",
		      "they are in the loop too", "nor are they more");
}

/* A frequency is a period there, and none is below 10 us. */
CONFORM(clock_rates)
{
	struct pe_attr attr = every(PERF_COUNT_SW_CPU_CLOCK, 2000,
				    PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
	u64 n = 0, right = 0;
	struct buffer b;
	const u64 *p;

	attr.freq = 1;
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	spin();
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (p = next_sample(&b)); n++)
		right += p[1] == 500000;
	CHECK_ROW("ATTR-17", n >= 3 && right == n, "2000 Hz of cpu-clock are a period of 500 us",
		  "%lu of %lu", right, n);
	unmap(&b);
	b = map(ev_self(every(PERF_COUNT_SW_CPU_CLOCK, 1, PERF_SAMPLE_IP)));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	spin();
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	CHECK_ROW("SW-00", samples(&b) >= 5 && samples(&b) <= ev_count(b.fd) / 10000,
		  "the shortest period is 10 us", "%lu", samples(&b));
}

/* Who is sampled as often as the clocks can gets on with its work nevertheless. */
CONFORM(shortest_period)
{
	static const u64 clocks[] = {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK};

	for (int i = 0; i < 2; i++) {
		struct buffer b = map(ev_self(every(clocks[i], 1, PERF_SAMPLE_IP)));
		u64 shorter = 5000;

		ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0);
		for (volatile int n = 0; n < 3000000; n++)
			;
		ioctl(b.fd, PERF_EVENT_IOC_PERIOD, &shorter);
		for (volatile int n = 0; n < 3000000; n++)
			;
		ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0);
		check_val("SW-00", "samples with a period of a nanosecond", samples(&b) > 0, 1);
		unmap(&b);
	}
}

CONFORM(refresh)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 5, PERF_SAMPLE_IP);
	struct buffer b;

	b = map_warm(attr);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_REFRESH, 2) == 0);
	touch(50);
	check_val("DES-05", "REFRESH 2 has two samples", (long long)samples(&b), 2);
	check_val("DES-05", "and the event is off at the second", (long long)ev_count(b.fd), 10);
}

static void *touch_many(void *n)
{
	touch((int)(long)n);
	return NULL;
}

/* Copies write into the one buffer, each with an id of its own. */
CONFORM(copies)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1,
				    PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID);
	u64 theirs = 0, threads = 0, id = 0, same = 0;
	struct buffer b;
	pthread_t thread;
	const u64 *p;
	pid_t child;
	int status, cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
	attr.inherit = 1;
	touch(4);
	b = map(ev_open(&attr, 0, cpu, -1, 0));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ID, (unsigned long)&id) == 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(!pthread_create(&thread, NULL, touch_many, (void *)40));
	NEED(!pthread_join(thread, NULL));
	child = fork();
	if (!child) {
		touch(30);
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	while ((p = next_sample(&b))) {
		u32 pid = (u32)p[0], tid = (u32)(p[0] >> 32);

		theirs += pid == (u32)child;
		threads += pid == (u32)getpid() && tid != pid;
		if (tid == (u32)getpid())
			continue;
		same += p[2] == id;
	}
	CHECK_ROW("INH-11", threads >= 40, "a thread's samples are in the buffer", "%lu", threads);
	CHECK_ROW("INH-11", theirs >= 30, "and so are a child's", "%lu", theirs);
	CHECK_ROW("INH-11", same == theirs + threads, "with the original's id", "%lu", same);
}

static int touch_and_end(int arg)
{
	touch(arg);
	return 0;
}

CONFORM_EXEC(after_exec)
{
	return touch_and_end(arg);
}

/* From the exec on, and through the next one. */
CONFORM(exec)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1,
				    PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);
	struct buffer b;
	int go[2], status;
	pid_t child;
	char byte;

	NEED(!pipe(go));
	attr.enable_on_exec = 1;
	child = fork();
	if (!child) {
		NEED(read(go[0], &byte, 1) == 1);
		touch(50);
		exec_self("after_exec", 200);
	}
	b = map(ev_open(&attr, child, -1, -1, 0));
	NEED(write(go[1], "x", 1) == 1 && waitpid(child, &status, 0) == child);
	check_val("ATTR-19", "a program that is sampled from its exec ends well", status, 0);
	CHECK_ROW("ATTR-19", samples(&b) >= 200 && samples(&b) < 2000,
		  "with a sample for each fault", "%lu", samples(&b));
}

/* In the kernel's mode, whose part of the address space is not to be had here. */
CONFORM(switches)
{
	struct pe_attr attr = every(PERF_COUNT_SW_CONTEXT_SWITCHES, 1, PERF_SAMPLE_TID);
	struct buffer b;

	attr.exclude_kernel = 0;
	if (try_self(attr)) {
		skip_row("SW-03", "a sample for each sleep", "the kernel may not be sampled");
		return;
	}
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 20; i++)
		usleep(1000);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	CHECK_ROW("SW-03", samples(&b) >= 20, "a sample for each sleep", "%lu", samples(&b));
}

/* One system call that brings many pages: each is a sample. */
CONFORM(faults_of_a_call)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_ADDR);
	u64 n = 0, in_order = 0;
	struct buffer b;
	const u64 *p;
	u8 *at;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	attr.exclude_kernel = 0;
	if (try_self(attr)) {
		skip_row("SAMP-05", "a sample for each page that a call has brought",
			 "the kernel may not be sampled");
		return;
	}
	at = mmap(NULL, 200 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(fd >= 0 && at != MAP_FAILED && !madvise(at, 200 * PAGE, MADV_NOHUGEPAGE));
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(read(fd, at, 200 * PAGE) == 200 * PAGE);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((p = next_sample(&b)))
		if (is_in(p[0], at, 200))
			in_order += p[0] == (u64)at + n++ * PAGE;
	check_val("SAMP-05", "a sample for each page that a call has brought", (long long)n, 200);
	check_val("SAMP-05", "each with its address", (long long)in_order, 200);
}

static u64 now_in(clockid_t clock)
{
	struct timespec t;

	NEED(!clock_gettime(clock, &t));
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

/* A sample's time is the moment, in the clock that was asked for. */
static void one_clock(clockid_t clock, const char *text)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_TIME);
	u64 from, to, n = 0, within = 0;
	struct buffer b;
	const u64 *p;

	attr.use_clockid = 1;
	attr.clockid = clock;
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	from = now_in(clock);
	touch(20);
	to = now_in(clock);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (p = next_sample(&b)); n++)
		/* A clock may be read a little apart from the one that it is told from. */
		within += p[0] + 1000000 >= from && p[0] <= to + 1000000;
	CHECK_ROW("ATTR-31", n >= 20 && within >= 20, text, "%lu of %lu", within, n);
	unmap(&b);
}

CONFORM(in_each_clock)
{
	one_clock(CLOCK_REALTIME, "times in CLOCK_REALTIME");
	one_clock(CLOCK_MONOTONIC, "in CLOCK_MONOTONIC");
	one_clock(CLOCK_MONOTONIC_RAW, "in CLOCK_MONOTONIC_RAW");
	one_clock(CLOCK_BOOTTIME, "in CLOCK_BOOTTIME");
	one_clock(CLOCK_TAI, "in CLOCK_TAI");
}

/* The first sample of @attr's at a store of touch(). */
static const u64 *at_store(struct buffer *b, struct pe_attr attr)
{
	const u64 *p;

	attr.sample_type |= PERF_SAMPLE_IP;
	*b = map(ev_self(attr));
	NEED(ev_ioctl(b->fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(3);
	NEED(ev_ioctl(b->fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((p = next_sample(b)) && p[0] != (u64)touch_store)
		;
	NEED(p);
	return p + 1;
}

CONFORM(what_samples_hold)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_CALLCHAIN);
	struct buffer b;
	const u64 *p;

	attr.sample_max_stack = 1;
	p = at_store(&b, attr);
	check_val("ATTR-52", "a chain of one address, with its mark", (long long)p[0], 2);
	unmap(&b);
	attr.exclude_callchain_kernel = 1;
	p = at_store(&b, attr);
	check_val("ATTR-27", "the same without the kernel's part", (long long)p[0], 2);
	unmap(&b);
	attr.exclude_callchain_user = 1;
	p = at_store(&b, attr);
	check_val("ATTR-28", "nothing without the user's", (long long)p[0], 0);
	unmap(&b);

	attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR);
	attr.sample_regs_user = BIT(7) | BIT(8); /* sp and ip */
	attr.sample_regs_intr = BIT(8);
	p = at_store(&b, attr);
	check_val("ATTR-47", "two of the user's registers", p[0] == 2 && p[2] == (u64)touch_store,
		  1);
	check_val("ATTR-47", "the stack pointer is near",
		  p[1] - (u64)__builtin_frame_address(0) + 65536 < 131072, 1);
	check_val("ATTR-50", "one of the interrupt's", p[3] == 2 && p[4] == (u64)touch_store, 1);
	unmap(&b);

	attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr.sample_regs_user = BIT(7);
	attr.sample_stack_user = 256;
	p = at_store(&b, attr);
	check_val("ATTR-48", "256 bytes of stack", (long long)p[2], 256);
	check_val("ATTR-48", "all of which count", (long long)p[3 + 32], 256);
	unmap(&b);
}

/* A buffer of one page has room for some. */
CONFORM(lost)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, PERF_SAMPLE_ADDR);
	u64 words[2], n = 0;
	struct buffer b;

	attr.read_format = PE_FORMAT_LOST;
	if (try_self(attr)) {
		skip_row("READ-04", "what found no room is lost", "FORMAT_LOST is of Linux 6.0");
		return;
	}
	b.fd = (int)ev_self(attr);
	NEED(b.fd >= 0);
	b.page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(1000);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read(b.fd, words, sizeof(words)) == sizeof(words));
	n = b.page->data_head / 16;
	CHECK_ROW("READ-04", n + words[1] >= 1000 && n <= 256 && words[1] >= 700,
		  "what found no room is lost", "%lu, %lu", n, words[1]);
}

struct counts_sample {
	struct perf_event_header header;
	u32 pid, tid;
	u64 nr, leader, leader_id, member, member_id;
};

/* Of a group on a whole CPU each sample says what both have counted by then. */
CONFORM(cpu_counts)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1,
				    PERF_SAMPLE_TID | PERF_SAMPLE_READ);
	u64 now[5], ids[2], last[2] = {0, 0};
	int mine = 0, back = 0, strange = 0, more = 0, member;
	struct buffer b;
	cpu_set_t set;

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	b.fd = (int)ev_open(&attr, -1, 0, -1, 0);
	if (b.fd < 0) {
		skip_row("SAMP-10", "samples of a CPU with counts", "no right to ask for them");
		return;
	}
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.disabled = 0;
	member = (int)ev_open(&attr, -1, 0, b.fd, 0);
	NEED(member >= 0);
	b.page = mmap(NULL, 513 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	NEED(!ioctl(b.fd, PERF_EVENT_IOC_ID, &ids[0]) &&
	     !ioctl(member, PERF_EVENT_IOC_ID, &ids[1]));
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	touch(10);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(50);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read(b.fd, now, sizeof(now)) == sizeof(now));
	for (u64 at = 0; at < b.page->data_head;) {
		const struct counts_sample *s =
			(const void *)((const u8 *)b.page + PAGE + at % (512 * PAGE));

		at += s->header.size;
		if (s->header.type != PERF_RECORD_SAMPLE)
			continue;
		mine += s->tid == (u32)getpid();
		back += s->leader < last[0] || s->member < last[1];
		strange += s->nr != 2 || s->leader_id != ids[0] || s->member_id != ids[1];
		more += s->leader > now[1] || s->member > now[3];
		last[0] = s->leader;
		last[1] = s->member;
	}
	CHECK_ROW("SAMP-10", mine >= 50, "a CPU's samples with counts", "%d", mine);
	check_val("SAMP-10", "of both members of the group", strange, 0);
	check_val("SAMP-10", "never go back", back, 0);
	check_val("SAMP-10", "and are no more than what is read then", more, 0);
	CHECK_ROW("SAMP-10", last[0] >= 50 && last[1] >= 40, "and have what was counted",
		  "%lu, %lu", last[0], last[1]);
}

/* What the last SIGTRAP said, and where the program was. */
static volatile int traps, trap_codes, trap_flags, traps_at_store, traps_in_order;
static volatile u64 trap_data, trap_type, trap_next;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	const struct perf_siginfo *perf = (const struct perf_siginfo *)si;
	const ucontext_t *uc = context;

	(void)sig;
	traps++;
	trap_codes += perf->code == TRAP_BY_PERF;
	trap_flags = (int)perf->flags;
	trap_data = perf->data;
	trap_type = perf->type;
#ifdef __x86_64__
	traps_at_store += (u64)uc->uc_mcontext.gregs[REG_RIP] == (u64)touch_store;
#else
	(void)uc;
#endif
	traps_in_order += perf->addr == trap_next + PAGE;
	trap_next = perf->addr;
}

static struct pe_attr trapping(void)
{
	struct pe_attr attr = every(PERF_COUNT_SW_PAGE_FAULTS, 1, 0);

	attr.sigtrap = attr.remove_on_exec = 1;
	attr.sig_data = 0x123456789abcdef0;
	return attr;
}

CONFORM(sigtrap)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	sigset_t set;
	int fd;

	NEED(!sigaction(SIGTRAP, &sa, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	/* Twice, so that all of this was executed before. */
	for (int i = 0; i < 2; i++) {
		fd = (int)ev_self(trapping());
		NEED(fd >= 0 && ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		traps = trap_codes = traps_at_store = traps_in_order = 0;
		trap_next = 0;
		touch(50);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		if (!i)
			NEED(!close(fd));
	}
	CHECK_ROW("OVF-11", traps_at_store == 50, "a SIGTRAP for each fault, at the store", "%d",
		  traps_at_store);
	CHECK_ROW("OVF-11", trap_codes == traps, "its code is TRAP_PERF", "%d", trap_codes);
	CHECK_ROW("OVF-11", traps_in_order >= 49, "its address is the fault's", "%d",
		  traps_in_order);
	check_val("OVF-11", "it has sig_data", trap_data == 0x123456789abcdef0, 1);
	check_val("OVF-11", "and the event's type", (long long)trap_type, PERF_TYPE_SOFTWARE);
	check_val("OVF-11", "and no flag", trap_flags, 0);

	/* While it is blocked there is one, which comes later and says so. */
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	traps = 0;
	touch(20);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	check_val("OVF-11", "none while it is blocked", traps, 0);
	NEED(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	check_val("OVF-11", "one when it is not any more", traps, 1);
	check_val("OVF-11", "which says that it is late", trap_flags, 1);

	/* Ignored it is nothing. */
	signal(SIGTRAP, SIG_IGN);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(20);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	check_val("OVF-11", "ignored it does nothing", traps, 1);
}

static void touch_with_a_trap(void)
{
	int fd = (int)ev_self(trapping());

	NEED(fd >= 0 && ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch(20);
}

/* With nobody to handle it, and for a program that does not know of it. */
CONFORM(sigtrap_ends)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	pid_t child = fork();
	int status;

	if (!child) {
		touch_with_a_trap();
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	check_val("OVF-11", "by default it ends the program",
		  WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP, 1);
	child = fork();
	if (!child) {
		NEED(!sigaction(SIGTRAP, &sa, NULL));
		touch_with_a_trap();
		exec_self("after_exec", 20);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	check_val("ATTR-40", "another program gets none", status, 0);
}
