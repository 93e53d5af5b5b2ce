/*
 * The metadata page of counting events, and mapping it [PAGE-*, RING-01, RING-02, RING-17, INH-07].
 */
#include "conform/conform.h"

#include <sched.h>
#include <time.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define PAGE  4096

static int faults(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.read_format = TIMES;
	fd = ev_self(attr);
	NEED(fd >= 0);
	return (int)fd;
}

static long map(int fd, size_t len, int prot, int flags, off_t at, void **out)
{
	void *p = mmap(NULL, len, prot, flags, fd, at);

	if (p == MAP_FAILED)
		return -errno;
	if (out)
		*out = p;
	else
		munmap(p, len);
	return 0;
}

static volatile struct perf_event_mmap_page *page_of(int fd)
{
	void *p = NULL;

	NEED(map(fd, PAGE, PROT_READ, MAP_SHARED, 0, &p) == 0);
	return p;
}

CONFORM(fields)
{
	int fd = faults();
	volatile struct perf_event_mmap_page *pg = page_of(fd);
	u64 sum = 0;

	check_val("PAGE-01", "version", pg->version, 0);
	check_val("PAGE-01", "compat_version", pg->compat_version, 0);
	check_val("PAGE-03", "index of a software event", pg->index, 0);
	check_val("PAGE-06", "cap_bit0", pg->cap_bit0, 0);
	check_val("PAGE-07", "cap_bit0_is_deprecated", pg->cap_bit0_is_deprecated, 1);
	check_val("PAGE-08", "cap_user_rdpmc of a software event", pg->cap_user_rdpmc, 0);
	check_val("PAGE-15", "size", pg->size, 96);
	for (size_t i = 96; i < 1024; i += sizeof(u64))
		sum |= *(volatile u64 *)((volatile char *)pg + i);
	check_val("PAGE-16", "what is reserved", (long long)sum, 0);
	check_val("PAGE-19", "data_offset", (long long)pg->data_offset, PAGE);
	check_val("PAGE-19", "data_size of a page alone", (long long)pg->data_size, 0);
	check_val("PAGE-17", "data_head", (long long)pg->data_head, 0);
	check_val("PAGE-18", "data_tail", (long long)pg->data_tail, 0);
	check_val("PAGE-20", "aux words",
		  (long long)(pg->aux_head | pg->aux_tail | pg->aux_offset | pg->aux_size), 0);
	check_val("PAGE-02", "lock is even", pg->lock & 1, 0);
}

/*
 * A software event's page is brought up to date when the event is put on and by RESET, not when it
 * is taken off: what DISABLE leaves there may be old [PAGE-04]. A hardware counter's page is
 * brought up to date by stopping and reading it as well. So the page is looked at after the next
 * ENABLE.
 */
static void count_10(int fd)
{
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	touch_pages(10);
	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

CONFORM(value)
{
	int fd = faults();
	volatile struct perf_event_mmap_page *pg = page_of(fd);
	u64 v[3], time;
	u32 lock;

	touch_pages(8);
	lock = pg->lock;
	count_10(fd);
	check_faults("PAGE-04", "index 0: offset is the count", (long long)pg->offset, 10);
	time = pg->time_enabled;
	NEED(ev_read(fd, v, sizeof(v)) == 24);
	CHECK_ROW("PAGE-05", time > 0 && time <= v[1], "time_enabled is that of the last update",
		  "%lu, read %lu", time, v[1]);
	CHECK_ROW("PAGE-05", pg->time_running == pg->time_enabled, "time_running is time_enabled",
		  "%lu and %lu", (u64)pg->time_running, (u64)pg->time_enabled);
	CHECK_ROW("PAGE-02", pg->lock > lock && !(pg->lock & 1), "lock moved on, and is even",
		  "%u then %u", lock, pg->lock);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(ev_read(fd, v, sizeof(v)) == 24);
	check_val("PAGE-04", "after RESET: offset", (long long)pg->offset, 0);
	CHECK_ROW("PAGE-05", pg->time_enabled == v[1] && pg->time_running == v[2],
		  "after RESET while disabled: the times are read(2)'s", "%lu, read %lu",
		  (u64)pg->time_enabled, v[1]);
}

/* What children have had is in the page as it is in what read gives. */
CONFORM(of_children)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	volatile struct perf_event_mmap_page *pg;
	u64 own[3], all[3];
	cpu_set_t set;
	pid_t child;
	int fd;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
	/* One that is not inherited: no kernel swaps the contexts of parent and child then. */
	NEED(ev_self(attr) >= 0);
	attr.inherit = 1;
	attr.read_format = TIMES;
	fd = (int)ev_open(&attr, 0, 0, -1, 0);
	NEED(fd >= 0);
	pg = page_of(fd);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(ev_read(fd, own, sizeof(own)) == 24);
	child = fork();
	if (!child) {
		spin_ms(20);
		touch_pages(500);
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, NULL, 0) == child);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read(fd, all, sizeof(all)) == 24);
	CHECK_ROW("PAGE-04", pg->offset >= 500 && (u64)pg->offset <= all[0],
		  "offset has what a child has counted", "%ld, read %lu", (long)pg->offset, all[0]);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(ev_read(fd, all, sizeof(all)) == 24);
	CHECK_ROW("PAGE-05", all[1] > own[1] && pg->time_enabled == all[1],
		  "time_enabled has a child's", "%lu, read %lu", (u64)pg->time_enabled, all[1]);
	CHECK_ROW("PAGE-05", all[2] > own[2] && pg->time_running == all[2], "and so time_running",
		  "%lu, read %lu", (u64)pg->time_running, all[2]);
}

#ifdef __x86_64__
/* The perf clock's time of @cycles, as the page's words have it. */
static u64 page_time(volatile struct perf_event_mmap_page *pg, u64 cycles)
{
	u64 quot = cycles >> pg->time_shift, rem = cycles & ((1ull << pg->time_shift) - 1);

	return pg->time_zero + quot * pg->time_mult + ((rem * pg->time_mult) >> pg->time_shift);
}

static u64 page_now(volatile struct perf_event_mmap_page *pg)
{
	u32 lo, hi;

	asm volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return page_time(pg, (u64)hi << 32 | lo);
}

/* Where the clock can be read in user mode time_zero makes it the perf clock. */
CONFORM(time_zero)
{
	volatile struct perf_event_mmap_page *pg = page_of(faults());
	u64 a, b, begun, ended;
	struct timespec ts;

	if (!pg->cap_user_time_zero) {
		check_val("PAGE-10", "without cap_user_time_zero the clock's words are 0",
			  pg->time_zero == 0 && !pg->cap_user_time && pg->time_mult == 0, 1);
		return;
	}
	check_val("PAGE-10", "with cap_user_time_zero there is cap_user_time", pg->cap_user_time,
		  1);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	begun = (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
	a = page_now(pg);
	sleep_ms(20);
	b = page_now(pg);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ended = (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
	CHECK_ROW("PAGE-14", b - a >= 19900000 && b - a <= (ended - begun) / 100 * 101,
		  "time_zero and the cycles give a clock in ns", "%lu of %lu", b - a,
		  ended - begun);
}
#endif

CONFORM(late_map)
{
	int fd = faults();
	volatile struct perf_event_mmap_page *pg;

	touch_pages(8);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(10);
	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	pg = page_of(fd);
	check_faults("PAGE-04", "mapped after it counted: offset", (long long)pg->offset, 10);
	CHECK_ROW("PAGE-05", pg->time_enabled > 0, "mapped after it counted: time_enabled", "%lu",
		  (u64)pg->time_enabled);
}

CONFORM(sizes)
{
	int fd = faults();

	check_err("RING-01", "one page", map(fd, PAGE, PROT_READ, MAP_SHARED, 0, NULL), 0);
	check_err("RING-01", "1 + 1 pages", map(fd, 2 * PAGE, PROT_READ, MAP_SHARED, 0, NULL), 0);
	check_err("RING-01", "1 + 3 pages", map(fd, 4 * PAGE, PROT_READ, MAP_SHARED, 0, NULL),
		  EINVAL);
	check_err("RING-01", "1 + 5 pages", map(fd, 6 * PAGE, PROT_READ, MAP_SHARED, 0, NULL),
		  EINVAL);
	if (kernel_at_least(6, 16))
		check_err("RING-01", "executable",
			  map(fd, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, 0, NULL), EPERM);
	check_err("RING-01", "private", map(fd, PAGE, PROT_READ, MAP_PRIVATE, 0, NULL), EINVAL);
	check_err("RING-01", "100 bytes are a page", map(fd, 100, PROT_READ, MAP_SHARED, 0, NULL),
		  0);
	check_err("RING-01", "3 pages and a byte are 1 + 3",
		  map(fd, 3 * PAGE + 1, PROT_READ, MAP_SHARED, 0, NULL), EINVAL);
	check_err("RING-01", "length 0", map(fd, 0, PROT_READ, MAP_SHARED, 0, NULL), EINVAL);
	check_err("RING-01", "offset that is no page",
		  syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_SHARED, fd, 1) < 0 ? -errno : 0,
		  EINVAL);
	check_err("AUX-01", "offset of a page without a buffer",
		  map(fd, PAGE, PROT_READ, MAP_SHARED, PAGE, NULL), EINVAL);
}

/* One page mapped twice is one page. */
/* The words of the page that say where an AUX area is to be are looked at before the PMU. */
CONFORM(aux)
{
	struct perf_event_mmap_page *pg;
	int fd = faults();
	void *page = NULL;

	NEED(map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &page) == 0);
	pg = page;
	check_err("AUX-01", "nothing is said", map(fd, PAGE, PROT_READ, MAP_SHARED, PAGE, NULL),
		  EINVAL);
	pg->aux_offset = pg->aux_size = PAGE;
	check_err("AUX-02", "a PMU without AUX areas",
		  map(fd, PAGE, PROT_READ, MAP_SHARED, PAGE, NULL), EOPNOTSUPP);
	check_err("AUX-01", "another offset", map(fd, PAGE, PROT_READ, MAP_SHARED, 2 * PAGE, NULL),
		  EINVAL);
	check_err("AUX-01", "another size", map(fd, 2 * PAGE, PROT_READ, MAP_SHARED, PAGE, NULL),
		  EINVAL);
	pg->aux_offset = 8 * PAGE;
	pg->aux_size = 3 * PAGE;
	check_err("AUX-01", "a size that is no power of two",
		  map(fd, 3 * PAGE, PROT_READ, MAP_SHARED, 8 * PAGE, NULL), EINVAL);
	pg->aux_size = 4 * PAGE;
	check_err("AUX-01", "four pages somewhere behind the data",
		  map(fd, 4 * PAGE, PROT_READ, MAP_SHARED, 8 * PAGE, NULL), EOPNOTSUPP);
	pg->aux_offset = 8 * PAGE + 8;
	check_err("AUX-01", "an offset in the page that is none of a page",
		  map(fd, 4 * PAGE, PROT_READ, MAP_SHARED, 8 * PAGE, NULL), EINVAL);
	check_err("AUX-01", "private", map(fd, 4 * PAGE, PROT_READ, MAP_PRIVATE, 8 * PAGE, NULL),
		  EINVAL);
}

CONFORM(aux_behind_data)
{
	struct perf_event_mmap_page *pg;
	int fd = faults();
	void *page = NULL;

	NEED(map(fd, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &page) == 0);
	pg = page;
	pg->aux_size = PAGE;
	pg->aux_offset = 4 * PAGE;
	check_err("AUX-01", "on the last page of the data",
		  map(fd, PAGE, PROT_READ, MAP_SHARED, 4 * PAGE, NULL), EINVAL);
	pg->aux_offset = 5 * PAGE;
	check_err("AUX-02", "right behind the data",
		  map(fd, PAGE, PROT_READ, MAP_SHARED, 5 * PAGE, NULL), EOPNOTSUPP);
}

/* What else one may ask of the mapping. */
CONFORM(advice)
{
	int fd = faults();
	void *page = NULL;

	NEED(map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &page) == 0);
	close(fd);
	check_err("RING-14", "msync", msync(page, PAGE, MS_SYNC) ? -errno : 0, EINVAL);
	check_err("RING-14", "msync that does not wait", msync(page, PAGE, MS_ASYNC) ? -errno : 0,
		  0);
	check_err("RING-14", "mprotect to read only", mprotect(page, PAGE, PROT_READ) ? -errno : 0,
		  0);
	/* Older kernels have another kind of mapping. */
	if (!kernel_at_least(6, 16))
		return;
	check_err("RING-14", "mprotect to execute",
		  mprotect(page, PAGE, PROT_READ | PROT_EXEC) ? -errno : 0, EACCES);
	check_err("RING-14", "MADV_DOFORK", madvise(page, PAGE, MADV_DOFORK) ? -errno : 0, EINVAL);
	check_err("RING-14", "MADV_DODUMP", madvise(page, PAGE, MADV_DODUMP) ? -errno : 0, EINVAL);
}

CONFORM(twice)
{
	int fd = faults();
	void *a = NULL, *b = NULL;

	NEED(map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &a) == 0);
	check_err("RING-02", "a second map of the page",
		  map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &b), 0);
	((struct perf_event_mmap_page *)a)->data_tail = 77;
	check_val("RING-02", "is the same memory",
		  (long long)((struct perf_event_mmap_page *)b)->data_tail, 77);
	munmap(a, PAGE);
	check_val("RING-02", "which outlives the first",
		  (long long)((struct perf_event_mmap_page *)b)->data_tail, 77);
}

CONFORM(inherit)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long any, one;

	attr.inherit = 1;
	any = ev_self(attr);
	one = ev_open(&attr, 0, 0, -1, 0);
	NEED(any >= 0 && one >= 0);
	check_err("INH-07", "mapping an inheriting event of any CPU",
		  map((int)any, PAGE, PROT_READ, MAP_SHARED, 0, NULL), EINVAL);
	check_err("INH-07", "mapping an inheriting event of one CPU",
		  map((int)one, PAGE, PROT_READ, MAP_SHARED, 0, NULL), 0);
}

CONFORM(outlives)
{
	int fd = faults();
	volatile struct perf_event_mmap_page *pg = page_of(fd);

	touch_pages(8);
	count_10(fd);
	close(fd);
	check_faults("PAGE-04", "the page outlives the descriptor", (long long)pg->offset, 10);
	munmap((void *)pg, PAGE);
}

static void *parents_page;

/* The mapping is not inherited: the child's access faults. */
CONFORM(not_inherited)
{
	int status;
	pid_t pid;

	parents_page = (void *)page_of(faults());
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)parents_page == 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	check_val("RING-14", "a child that touches the parent's page dies of",
		  WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGSEGV);
	check_err("RING-14", "mremap to more pages",
		  mremap(parents_page, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -errno : 0,
		  EFAULT);
}

CONFORM(read_only)
{
	int fd = faults(), status;
	volatile struct perf_event_mmap_page *pg = page_of(fd);
	pid_t pid;

	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		pg = page_of(fd);
		((volatile struct perf_event_mmap_page *)pg)->data_tail = 1;
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	check_val("PAGE-18", "a write to a page mapped read-only dies of",
		  WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGSEGV);
}

CONFORM(group_pages)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long lead = ev_self(attr), member;
	volatile struct perf_event_mmap_page *a, *b;
	long long offset[2];

	attr.disabled = 0;
	member = ev_open(&attr, 0, -1, (int)lead, 0);
	NEED(lead >= 0 && member >= 0);
	a = page_of((int)lead);
	b = page_of((int)member);
	touch_pages(8);
	count_10((int)lead);
	/*
	 * Both before anything is printed: that may fault, and a context switch would bring it
	 * here.
	 */
	offset[0] = a->offset;
	offset[1] = b->offset;
	check_faults("PAGE-04", "a leader's page", offset[0], 10);
	check_faults("PAGE-04", "a member's page", offset[1], 10);
}

/* What debuggers and collectors see of a mapping. */
CONFORM(in_maps)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int fd = (int)ev_self(attr);
	char line[512], at[32] = "";
	bool named = false;
	void *page;
	FILE *f;

	NEED(fd >= 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	snprintf(at, sizeof(at), "%lx-", (unsigned long)page);
	f = fopen("/proc/self/maps", "r");
	NEED(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, at, strlen(at)) == 0)
			named = strstr(line, " rw-s ") &&
				strstr(line, " anon_inode:[perf_event]\n");
	fclose(f);
	check_val("PAGE-01", "its line in /proc/self/maps is anon_inode:[perf_event]", named, 1);
}
