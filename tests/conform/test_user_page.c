/* Counters that are read in user mode, by the page of an event [PAGE-*, FILE-10]. */
#include "conform/region.h"

#include <pthread.h>

/* The loop of the man page. */
static bool self_read(volatile struct perf_event_mmap_page *pg, u64 *count)
{
	u32 seq, index;
	s64 pmc;
	u64 value;

	do {
		seq = pg->lock;
		asm volatile("" ::: "memory");
		index = pg->index;
		value = (u64)pg->offset;
		if (pg->cap_user_rdpmc && index) {
			pmc = (s64)counter_read(index);
			pmc <<= 64 - pg->pmc_width;
			pmc >>= 64 - pg->pmc_width;
			value += (u64)pmc;
		}
		asm volatile("" ::: "memory");
	} while (pg->lock != seq);
	*count = value;
	return index != 0;
}

/* Of 1,000 nops: the kernel may change a page while it is read, which is then read again. */
static u64 least_of_1000(void)
{
	return virtual_world() ? 990 : 900;
}

CONFORM(user_page)
{
	volatile struct perf_event_mmap_page *pg;
	u64 a, b, c, d, e;
	int fd;

	if (no_user_access("PAGE-21", "reading a counter in user mode"))
		return;
	fd = pmu_open_readable(PERF_COUNT_HW_INSTRUCTIONS);
	pg = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	NEED(pg != MAP_FAILED);
	check_val("PAGE-08", "cap_user_rdpmc", pg->cap_user_rdpmc, 1);
	check_val("PAGE-07", "cap_bit0_is_deprecated", pg->cap_bit0_is_deprecated, 1);
	check_val("PAGE-03", "index while off", pg->index, 0);
	CHECK_ROW("PAGE-12", pg->pmc_width >= 32 && pg->pmc_width <= 64, "pmc_width", "%u",
		  pg->pmc_width);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	CHECK_ROW("PAGE-03", pg->index > 0, "index while on", "%u", pg->index);
	for (int i = 0; i < 3; i++) {
		self_read(pg, &a);
		self_read(pg, &b);
		asm volatile(".rept 1000; nop; .endr" ::: "memory");
		self_read(pg, &c);
	}
	d = ev_count(fd);
	CHECK_ROW("PAGE-21",
		  c - b - (b - a) >= least_of_1000() &&
			  c - b - (b - a) <= (virtual_world() ? 1010 : 1600),
		  "1,000 nops between two reads in user mode", "%lu", c - b - (b - a));
	CHECK_ROW("PAGE-21", d > c && d - c < 3000, "read(2) comes right after", "%lu then %lu", c,
		  d);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	e = ev_count(fd);
	check_val("PAGE-21", "while off the page has no index", self_read(pg, &a), 0);
	check_val("PAGE-04", "while off the page's offset is the count", (long long)(a - e), 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	self_read(pg, &a);
	check_val("PAGE-04", "after RESET the page's offset is 0", (long long)a, 0);
	if (virtual_world())
		check_val("PAGE-09", "cap_user_time of a task event on the virtual PMU",
			  pg->cap_user_time, 0);
}

#ifdef __x86_64__
static __attribute__((noinline)) void returns(void)
{
	asm volatile("" ::: "memory");
}

/* A raw code may be counted in another counter than the generic ids. */
CONFORM(user_page_of_raw_code)
{
	/* ex_ret_near_ret; BR_INST_RETIRED.NEAR_RETURN */
	u64 code = __builtin_cpu_is("amd") ? 0x00c8 : 0x08c4, a, b;
	struct pe_attr attr = ev_attr(PERF_TYPE_RAW, code);
	volatile struct perf_event_mmap_page *pg;
	int fd;

	if (no_user_access("PAGE-21", "reading a raw event in user mode"))
		return;
	attr.disabled = 0;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	pg = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	NEED(pg != MAP_FAILED);
	CHECK_ROW("PAGE-03", pg->index > 0, "index of a raw event", "%u", pg->index);
	self_read(pg, &a);
	for (int i = 0; i < 100; i++)
		returns();
	self_read(pg, &b);
	CHECK_ROW("PAGE-21", b - a >= 100 && b - a < 200, "100 returns between two reads", "%lu",
		  b - a);
}
#endif

/* The page of another task's event has no index while that task is off its CPU [PAGE-03]. */
CONFORM(user_page_of_another)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	volatile struct perf_event_mmap_page *pg;
	int status, fd;
	u64 a, b;
	pid_t pid;

	if (no_pmu("PAGE-03", "the page of another task's event"))
		return;
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		raise(SIGSTOP);
		asm volatile(LOOP(1048576)::: LOOP_CLOBBERS);
		raise(SIGSTOP);
		_exit(0);
	}
	NEED(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	attr.disabled = 0;
	fd = (int)ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	pg = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	NEED(pg != MAP_FAILED);
	check_val("PAGE-03", "a stopped task that has not run yet: index", pg->index, 0);
	NEED(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
	     WIFSTOPPED(status));
	a = ev_count(fd);
	check_val("PAGE-03", "a stopped task that has run: index", pg->index, 0);
	b = ev_count(fd);
	CHECK_ROW("READ-10", a >= 2000000 && a == b,
		  "a stopped task that has run: it counts no more", "%lu then %lu", a, b);
	NEED(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	check_val("PAGE-03", "a dead task: index", pg->index, 0);
	check_val("READ-15", "a dead task: its count", ev_count(fd) == a, 1);
}

#ifdef __x86_64__
static void rdpmc_works(void)
{
	u32 lo, hi;

	asm volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(0));
	_exit(0);
}

static bool rdpmc_in_child(bool mapped, int *cap)
{
	int status, fd;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		volatile struct perf_event_mmap_page *pg;
		struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

		attr.disabled = 0;
		fd = (int)ev_self(attr);
		pg = mapped ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) : NULL;
		NEED(fd >= 0 && pg != MAP_FAILED);
		if (cap && pg)
			_exit(10 + pg->cap_user_rdpmc + 2 * (pg->index != 0));
		rdpmc_works();
	}
	NEED(waitpid(pid, &status, 0) == pid);
	if (cap)
		*cap = WEXITSTATUS(status) - 10;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void write_rdpmc(const char *text, long want)
{
	int fd = open("/sys/bus/event_source/devices/cpu/rdpmc", O_WRONLY);
	long n;

	NEED(fd >= 0);
	n = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	NEED(n == want);
}

/* Who may read counters in user mode [FILE-10]. On a kernel nothing is written. */
CONFORM(rdpmc_file)
{
	int cap = 0;

	if (no_user_access("PAGE-23", "who may execute rdpmc"))
		return;
	check_val("FILE-10", "rdpmc is 1 by default", atoi(device_file("cpu", "rdpmc")), 1);
	check_val("PAGE-23", "rdpmc with a counter mapped", rdpmc_in_child(true, NULL), 1);
	check_val("PAGE-23", "rdpmc without one faults", rdpmc_in_child(false, NULL), 0);
	if (!virtual_world() || geteuid()) {
		skip_row("FILE-10", "writing to rdpmc", "not here");
		return;
	}
	write_rdpmc("3", -EINVAL);
	write_rdpmc("-1", -EINVAL);
	write_rdpmc("no", -EINVAL);
	write_rdpmc("2\n", 0);
	check_val("FILE-10", "rdpmc shows what was written", atoi(device_file("cpu", "rdpmc")), 2);
	check_val("PAGE-23", "with 2 rdpmc works in all", rdpmc_in_child(false, NULL), 1);
	write_rdpmc("0", 0);
	check_val("FILE-10", "with 0 rdpmc faults, also with a counter mapped",
		  rdpmc_in_child(true, NULL), 0);
	rdpmc_in_child(true, &cap);
	check_val("FILE-10", "with 0 pages of new events have neither cap nor index", cap, 0);
	write_rdpmc("1", 0);
	rdpmc_in_child(true, &cap);
	check_val("FILE-10", "with 1 they have both", cap, 3);
}
#endif

/* What one thread reads of its own counter in user mode, while others do the same. */
static void *self_reader(void *result)
{
	volatile struct perf_event_mmap_page *pg;
	u64 a, b, c, *seen = result;
	int fd = pmu_open_readable(PERF_COUNT_HW_INSTRUCTIONS);

	pg = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	NEED(pg != MAP_FAILED);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 2000; i++) {
		if (!self_read(pg, &a) || !self_read(pg, &b))
			continue;
		asm volatile(".rept 1000; nop; .endr" ::: "memory");
		if (!self_read(pg, &c))
			continue;
		if (c - b - (b - a) < seen[0] || !seen[2])
			seen[0] = c - b - (b - a);
		if (c - b - (b - a) > seen[1])
			seen[1] = c - b - (b - a);
		seen[2]++;
	}
	munmap((void *)pg, 4096);
	close(fd);
	return NULL;
}

/* An event that is mapped lives until it is unmapped, with or without its descriptor. */
CONFORM(unmapped_after_close)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct pe_attr other = ev_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int many = 0, got = 0;
	void *page;
	long fd;
	u64 v;

	if (no_pmu("RING-14", "exclusive events that are unmapped after their close"))
		return;
	attr.disabled = 0;
	attr.pinned = attr.exclusive = 1;
	for (int turn = 0; turn < 3; turn++) {
		/* Many mappings, before the last turn. */
		for (; turn == 2 && many < 600; many++) {
			fd = ev_self(other);
			NEED(fd >= 0 &&
			     mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)fd, 0) != MAP_FAILED);
			if (many)
				close((int)fd);
		}
		fd = ev_self(attr);
		NEED(fd >= 0);
		got += ev_read((int)fd, &v, sizeof(v)) == sizeof(v);
		page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)fd, 0);
		NEED(page != MAP_FAILED);
		close((int)fd);
		NEED(munmap(page, 4096) == 0);
	}
	fd = ev_self(attr);
	NEED(fd >= 0);
	got += ev_read((int)fd, &v, sizeof(v)) == sizeof(v);
	check_val("RING-14", "four exclusive events, each closed and then unmapped, count", got, 4);
}

CONFORM(user_page_threads)
{
	u64 seen[4][3] = {{0}};
	pthread_t threads[4];
	bool good = true;

	if (no_user_access("PAGE-23", "counters of several threads in user mode"))
		return;
	for (int i = 0; i < 4; i++)
		NEED(pthread_create(&threads[i], NULL, self_reader, seen[i]) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		good = good && seen[i][2] > 0 && seen[i][0] >= least_of_1000();
		/* Nothing interrupts a virtual counter, so each time is like the first. */
		good = good && (!virtual_world() || (seen[i][1] <= 1010 && seen[i][2] == 2000));
	}
	CHECK_ROW("PAGE-23", good, "four threads read their own counters in user mode",
		  "%lu to %lu, %lu times", seen[0][0], seen[0][1], seen[0][2]);
}
