/* read(2): formats, buffer sizes, ids, times [READ-*]. */
#include "conform/conform.h"

#include <sys/uio.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

static int open_format(u64 format, int group)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.read_format = format;
	fd = ev_open(&attr, 0, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

/* Words that a single read gives, format by format. */
CONFORM(single_sizes)
{
	static const struct {
		u64 format;
		const char *text;
		int words;
	} cases[] = {
		{0, "format 0: value", 1},         {1, "ENABLED: 2 words", 2},
		{2, "RUNNING: 2 words", 2},        {4, "ID: 2 words", 2},
		{16, "LOST: 2 words", 2},          {3, "ENABLED and RUNNING: 3 words", 3},
		{5, "ENABLED and ID: 3 words", 3}, {7, "ENABLED, RUNNING, ID: 4 words", 4},
		{20, "ID and LOST: 3 words", 3},   {23, "all but GROUP: 5 words", 5},
	};
	u64 v[16];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = open_format(cases[i].format, -1);

		check_val("READ-02", cases[i].text, ev_read(fd, v, sizeof(v)), cases[i].words * 8);
		/* [ERR-10] */
		check_val("READ-05", cases[i].text, ev_read(fd, v, (size_t)cases[i].words * 8 - 1),
			  -ENOSPC);
		close(fd);
	}
}

CONFORM(single_fields)
{
	int fd = open_format(TIMES | PERF_FORMAT_ID | PERF_FORMAT_LOST, -1);
	u64 v[5] = {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL};

	NEED(ev_read(fd, v, sizeof(v)) == sizeof(v));
	check_val("READ-02", "before it was enabled: value", (long long)v[0], 0);
	check_val("READ-10", "before it was enabled: enabled", (long long)v[1], 0);
	check_val("READ-10", "before it was enabled: running", (long long)v[2], 0);
	touch_pages(4);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(20);
	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(ev_read(fd, v, sizeof(v)) == sizeof(v));
	check_faults("READ-02", "single: value first", (long long)v[0], 20);
	CHECK_ROW("READ-02", v[1] > 0 && v[1] == v[2], "single: enabled, then running", "%lu %lu",
		  v[1], v[2]);
	CHECK_ROW("READ-02", v[3] == ev_id(fd), "single: then the id of IOC_ID", "%lu", v[3]);
	check_val("READ-04", "single: lost last, nothing lost", (long long)v[4], 0);
}

CONFORM(group_fields)
{
	u64 format = PERF_FORMAT_GROUP | TIMES | PERF_FORMAT_ID | PERF_FORMAT_LOST, v[32] = {0};
	int lead = open_format(format, -1), m1 = open_format(format, lead),
	    m2 = open_format(format, lead);
	u64 ids[3] = {ev_id(lead), ev_id(m1), ev_id(m2)};

	touch_pages(4);
	ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	touch_pages(12);
	ev_ioctl(lead, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	check_val("READ-03", "group of 3 with all fields: 12 words", ev_read(lead, v, sizeof(v)),
		  12 * 8);
	check_val("READ-03", "nr first", (long long)v[0], 3);
	CHECK_ROW("READ-03", v[1] > 0 && v[1] == v[2], "then one pair of times", "%lu %lu", v[1],
		  v[2]);
	check_faults("READ-03", "the leader's value", (long long)v[3], 12);
	CHECK_ROW("READ-03", v[4] == ids[0], "the leader's id after its value", "%lu", v[4]);
	check_val("READ-03", "the leader's lost after its id", (long long)v[5], 0);
	check_faults("READ-03", "the first member's value", (long long)v[6], 12);
	CHECK_ROW("READ-03", v[7] == ids[1], "the first member is the one opened first", "%lu",
		  v[7]);
	CHECK_ROW("READ-03", v[10] == ids[2], "the second member is the one opened second", "%lu",
		  v[10]);
	CHECK_ROW("READ-09", ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2] && ids[0],
		  "ids are unique", "%lu %lu %lu", ids[0], ids[1], ids[2]);
	CHECK_ROW("READ-09", ids[0] < ids[1] && ids[1] < ids[2], "ids grow in opening order",
		  "%lu %lu %lu", ids[0], ids[1], ids[2]);
	check_val("READ-08", "GROUP read through a member: the whole group",
		  ev_read(m2, v, sizeof(v)), 12 * 8);
	CHECK_ROW("READ-08", v[4] == ids[0], "GROUP read through a member: the leader first", "%lu",
		  v[4]);
	check_val("READ-05", "group read, a byte short", ev_read(lead, v, 12 * 8 - 1), -ENOSPC);
}

CONFORM(own_format)
{
	int lead = open_format(PERF_FORMAT_GROUP, -1), single = open_format(PERF_FORMAT_ID, lead);
	u64 v[32] = {0};

	check_val("READ-08", "the leader's GROUP format", ev_read(lead, v, sizeof(v)), 3 * 8);
	check_val("READ-08", "its nr counts members of other formats", (long long)v[0], 2);
	check_val("READ-08", "the member's own single format", ev_read(single, v, sizeof(v)),
		  2 * 8);
	CHECK_ROW("READ-08", v[1] == ev_id(single), "the member's own id", "%lu", v[1]);
}

CONFORM(buffers)
{
	int fd = open_format(TIMES, -1), lead = open_format(PERF_FORMAT_GROUP, -1);
	char *big = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 v[8], again[8];
	struct iovec iov[2] = {{v, 16}, {again, 16}};
	off_t at = 0;

	NEED(big != MAP_FAILED);
	check_val("READ-05", "length 0", ev_read(fd, v, 0), -ENOSPC);
	check_val("READ-05", "length 8 of 24", ev_read(fd, v, 8), -ENOSPC);
	check_val("READ-05", "length 23 of 24", ev_read(fd, v, 23), -ENOSPC);
	check_val("READ-05", "group, length 0", ev_read(lead, v, 0), -ENOSPC);
	check_val("READ-06", "length 24 of 24", ev_read(fd, v, 24), 24);
	check_val("READ-06", "length 25", ev_read(fd, (char *)v + 1, 25), 24);
	check_val("READ-06", "length 1 MiB", ev_read(fd, big, 1 << 20), 24);
	check_val("READ-05", "reads are no stream: the second gives the same", ev_read(fd, v, 24),
		  24);
	check_val("READ-14", "no buffer", ev_read(fd, NULL, 24), -EFAULT);
	check_val("READ-14", "no buffer and too short", ev_read(fd, NULL, 8), -ENOSPC);
	check_val("READ-14", "a group read without a buffer", ev_read(lead, NULL, 64), -EFAULT);
	munmap(big, 1 << 20);
	check_val("READ-14", "a buffer that was unmapped", ev_read(fd, big, 24), -EFAULT);
	check_val("READ-05", "readv whose first part is too short",
		  readv(fd, iov, 2) < 0 ? -errno : 0, -ENOSPC);
	iov[0].iov_len = 24;
	check_val("READ-06", "readv of 24 and 16: the second part fails, the first was read",
		  readv(fd, iov, 2), 24);
	iov[1].iov_len = 24;
	check_val("READ-06", "readv of 24 and 24: read twice", readv(fd, iov, 2), 48);
	check_val("READ-06", "preadv2 at no position: read twice", preadv2(fd, iov, 2, -1, 0), 48);
	check_val("READ-06", "preadv2 at a position", preadv2(fd, iov, 2, 0, 0) < 0 ? -errno : 0,
		  -ESPIPE);
	check_val("READ-06", "preadv2 that must not wait",
		  preadv2(fd, iov, 2, -1, RWF_NOWAIT) < 0 ? -errno : 0, -EOPNOTSUPP);
	check_val("CALL-15", "pread", pread(fd, v, 24, 0) < 0 ? -errno : 0, -ESPIPE);
	check_val("CALL-15", "pread at an offset", pread(fd, v, 24, 8) < 0 ? -errno : 0, -ESPIPE);
	at = lseek(fd, 0, SEEK_CUR);
	check_val("CALL-15", "lseek", at < 0 ? -errno : at, -ESPIPE);
}

/* A page with more than 2^40 bytes of user space behind it. */
static char *map_low(void)
{
	void *at = mmap((void *)0x100000000, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	NEED(at != MAP_FAILED);
	return at;
}

static long err(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* What is said of the pieces before one is read, and which of them are. */
CONFORM(pieces)
{
	int fd = open_format(0, -1);
	char *v = map_low();
	struct iovec iov[3] = {{v, 0}, {v, 8}, {v, 8}};

	check_val("READ-05", "readv whose first piece is empty",
		  err(syscall(SYS_readv, fd, iov, 3)), -ENOSPC);
	iov[0].iov_len = 8;
	iov[1].iov_len = 0;
	check_val("READ-06", "an empty piece between two", err(syscall(SYS_readv, fd, iov, 3)), 16);
	iov[0].iov_len = 16;
	iov[1].iov_len = 8;
	check_val("READ-06", "a piece that is not filled ends it",
		  err(syscall(SYS_readv, fd, iov, 2)), 8);
	iov[0].iov_len = 0;
	iov[1].iov_len = 0;
	check_val("READ-05", "readv of empty pieces alone", err(syscall(SYS_readv, fd, iov, 2)), 0);
	check_val("READ-05", "readv of no pieces", err(syscall(SYS_readv, fd, iov, 0)), 0);
	iov[0].iov_len = 8;
	iov[1].iov_len = (size_t)-1;
	check_val("READ-14", "a piece of a negative length", err(syscall(SYS_readv, fd, iov, 2)),
		  -EINVAL);
	iov[1].iov_len = 1ul << 40;
	check_val("READ-14", "pieces of which one is 2^40 bytes",
		  err(syscall(SYS_readv, fd, iov, 2)), 16);
	iov[1].iov_len = 1ul << 47;
	check_val("READ-14", "pieces of which one goes beyond the last address",
		  err(syscall(SYS_readv, fd, iov, 2)), -EFAULT);
	check_val("READ-14", "that piece alone, which is cut",
		  err(syscall(SYS_readv, fd, iov + 1, 1)), 8);
	iov[1] = (struct iovec){(void *)8, 8};
	check_val("READ-14", "a second piece that is not there",
		  err(syscall(SYS_readv, fd, iov, 2)), 8);
	check_val("READ-14", "pieces that are not there", err(syscall(SYS_readv, fd, (void *)8, 1)),
		  -EFAULT);
	check_val("READ-14", "1025 pieces", err(syscall(SYS_readv, fd, iov, 1025)), -EINVAL);
	check_val("READ-14", "a read of 2^47 bytes", ev_read(fd, v, 1ul << 47), -EFAULT);
	check_val("READ-14", "a read of -1 bytes", ev_read(fd, v, (size_t)-1), -EFAULT);
	check_val("READ-05", "a read of 2^40 bytes that end in user space",
		  ev_read(fd, v, 1ul << 40), 8);
	check_val("READ-05", "a read of nothing", ev_read(fd, NULL, 0), -ENOSPC);
	check_val("READ-06", "preadv2 with RWF_HIPRI", err(preadv2(fd, iov, 1, -1, RWF_HIPRI)), 8);
}

/* Times of a task event are the task's: they stand still while it sleeps. */
CONFORM(times_of_several)
{
	int outer = open_format(TIMES, -1), inner = open_format(TIMES, -1);
	u64 a[3], b[3];

	ev_ioctl(outer, PERF_EVENT_IOC_ENABLE, 0);
	spin_ms(4);
	ev_ioctl(inner, PERF_EVENT_IOC_ENABLE, 0);
	spin_ms(2);
	ev_ioctl(inner, PERF_EVENT_IOC_DISABLE, 0);
	spin_ms(4);
	ev_ioctl(outer, PERF_EVENT_IOC_DISABLE, 0);
	spin_ms(4);
	NEED(ev_read(outer, a, sizeof(a)) == 24 && ev_read(inner, b, sizeof(b)) == 24);
	CHECK_ROW("STAT-06", a[1] >= 9900000 && b[1] >= 1950000,
		  "each event's enabled time holds what was between its ENABLE and DISABLE",
		  "%lu and %lu ns", a[1], b[1]);
	CHECK_ROW("STAT-06", a[1] >= b[1] + 7900000, "and nothing that was before or after",
		  "%lu and %lu ns", a[1], b[1]);
	ev_read(inner, a, sizeof(a));
	check_val("STAT-06", "it stands still from then on", a[1] == b[1], 1);
}

CONFORM(times)
{
	int fd = open_format(TIMES, -1);
	u64 a[3], b[3], c[3], d[3];

	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	NEED(ev_read(fd, a, sizeof(a)) == 24);
	spin_ms(20);
	NEED(ev_read(fd, b, sizeof(b)) == 24);
	CHECK_ROW("READ-10", b[1] - a[1] >= 19000000, "20 ms of work: enabled grows as much",
		  "%lu ns", b[1] - a[1]);
	CHECK_ROW("READ-10", b[1] - a[1] == b[2] - a[2], "running grows like enabled",
		  "%lu and %lu ns", b[1] - a[1], b[2] - a[2]);
	NEED(ev_read(fd, a, sizeof(a)) == 24);
	sleep_ms(100);
	NEED(ev_read(fd, b, sizeof(b)) == 24);
	CHECK_ROW("READ-10", b[1] - a[1] < 50000000, "100 ms of sleep: enabled hardly grows",
		  "%lu ns", b[1] - a[1]);
	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(ev_read(fd, c, sizeof(c)) == 24);
	spin_ms(10);
	NEED(ev_read(fd, d, sizeof(d)) == 24);
	CHECK_ROW("IOC-02", memcmp(c, d, sizeof(c)) == 0, "disabled: value and times are frozen",
		  "%lu %lu then %lu %lu", c[1], c[2], d[1], d[2]);
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	NEED(ev_read(fd, d, sizeof(d)) == 24);
	check_val("IOC-04", "RESET: the value is 0", (long long)d[0], 0);
	CHECK_ROW("IOC-04", c[1] == d[1] && c[2] == d[2], "RESET: the times stay",
		  "%lu %lu then %lu %lu", c[1], c[2], d[1], d[2]);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spin_ms(5);
	NEED(ev_read(fd, d, sizeof(d)) == 24);
	CHECK_ROW("READ-10", d[1] >= c[1] + 4900000, "enabled again: the times go on",
		  "%lu then %lu ns", c[1], d[1]);
}

static int shared_fd;

static void child_reads(void)
{
	u64 v[3];

	touch_pages(40);
	check_val("CALL-15", "a child reads the event it inherited the descriptor of",
		  ev_read(shared_fd, v, sizeof(v)), 24);
	check_faults("CALL-15", "the child's faults do not count (no inherit)", (long long)v[0], 7);
}

static void worker_touches(void)
{
	touch_pages(25);
}

CONFORM(targets)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct worker w;
	u64 v[3], again[3];
	long fd;

	shared_fd = open_format(TIMES, -1);
	touch_pages(4);
	ev_ioctl(shared_fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(7);
	ev_ioctl(shared_fd, PERF_EVENT_IOC_DISABLE, 0);
	in_child(child_reads);

	worker_start(&w, worker_touches);
	worker_work(&w);
	attr.disabled = 0;
	attr.read_format = TIMES;
	fd = ev_open(&attr, w.pid, -1, -1, 0);
	NEED(fd >= 0);
	worker_work(&w);
	NEED(ev_read((int)fd, v, sizeof(v)) == 24);
	check_faults("READ-11", "value of another task", (long long)v[0], 25);
	worker_end(&w);
	check_val("READ-15", "the target is dead: still readable", ev_read((int)fd, v, sizeof(v)),
		  24);
	CHECK_ROW("READ-15", v[0] >= 25 && v[1] > 0 && v[1] == v[2],
		  "the target is dead: its values stay", "%lu %lu %lu", v[0], v[1], v[2]);
	spin_ms(2);
	NEED(ev_read((int)fd, again, sizeof(again)) == 24);
	CHECK_ROW("READ-15", memcmp(v, again, sizeof(v)) == 0,
		  "the target is dead: its times stand still", "%lu then %lu", v[1], again[1]);
	check_err("IOC-01", "ENABLE on a dead target", ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0),
		  0);
	check_err("IOC-02", "DISABLE on a dead target",
		  ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	check_err("IOC-04", "RESET on a dead target", ev_ioctl((int)fd, PERF_EVENT_IOC_RESET, 0),
		  0);
	NEED(ev_read((int)fd, again, sizeof(again)) == 24);
	check_val("IOC-04", "RESET on a dead target: the value is 0", (long long)again[0], 0);
}

CONFORM(group_of_another_task)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct worker w;
	long lead, member;
	u64 v[3];

	worker_start(&w, worker_touches);
	worker_work(&w);
	attr.read_format = PERF_FORMAT_GROUP;
	lead = ev_open(&attr, w.pid, -1, -1, 0);
	attr.disabled = 0;
	member = ev_open(&attr, w.pid, -1, (int)lead, 0);
	NEED(lead >= 0 && member >= 0);
	NEED(ev_ioctl((int)lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	worker_work(&w);
	check_val("READ-16", "a group on another task", ev_read((int)lead, v, sizeof(v)), 24);
	check_val("READ-16", "a group on another task: its number", (long long)v[0], 2);
	check_faults("READ-16", "a group on another task: the leader", (long long)v[1], 25);
	check_faults("READ-16", "a group on another task: the member", (long long)v[2], 25);
	worker_end(&w);
}

/*
 * Two events are off and on again several times. Nothing else wants the counter, so they ran
 * whenever they were enabled, to the nanosecond.
 */
static void on_and_off(pid_t pid, int cpu, const char *text)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	int fds[2];
	u64 v[3] = {0};
	bool good = true;

	if (pid < 0)
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.read_format = TIMES;
	for (int i = 0; i < 2; i++) {
		if (i && have_pmu())
			attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
		attr.read_format = TIMES;
		fds[i] = (int)ev_open(&attr, pid, cpu, -1, 0);
		NEED(fds[i] >= 0);
	}
	/* On a busy machine it may take a while until the task has run at all. */
	for (int turn = 0; turn < 40 || (!v[1] && turn < 4000); turn++) {
		ev_ioctl(fds[turn & 1], turn & 2 ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE,
			 0);
		spin_ms(1);
		for (int i = 0; i < 2; i++) {
			NEED(ev_read(fds[i], v, sizeof(v)) == sizeof(v));
			good = good && v[1] == v[2];
		}
	}
	CHECK_ROW("READ-10", good && v[1], text, "enabled %lu, running %lu", v[1], v[2]);
	close(fds[0]);
	close(fds[1]);
}

CONFORM(whole_time)
{
	const char *text = "a CPU's events that nothing displaces run as long as they are enabled";
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		for (;;)
			getppid();
	}
	on_and_off(0, -1, "own events that nothing displaces run as long as they are enabled");
	on_and_off(child, -1,
		   "a busy task's events that nothing displaces run as long as they are enabled");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (capable() || paranoid() < 1)
		on_and_off(-1, 0, text);
	else
		skip_row("READ-10", text, "needs CAP_PERFMON");
}
