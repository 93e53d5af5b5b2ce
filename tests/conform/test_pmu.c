/* The cpu PMU: what opens, groups, inheritance [TYPE-*, HW-*, GRP-*, INH-*]. */
#include "conform/region.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Group of instructions (leader) and branches: both from one region, in one read. */
CONFORM(group)
{
	struct pe_attr attr;
	u64 v[8] = {0}, alone_i, alone_b;
	int lead, member;

	if (no_branches("GRP-01", "a group of instructions and branches"))
		return;
	lead = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	member = pmu_open(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, -1);
	alone_i = REGION_COUNT(lead, LOOP(100));
	alone_b = REGION_COUNT(member, LOOP(100));
	attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	attr.read_format = PERF_FORMAT_GROUP | TIMES;
	lead = (int)ev_self(attr);
	NEED(lead >= 0);
	pmu_open(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, lead);
	REGION(lead, LOOP(100));
	NEED(ev_read(lead, v, sizeof(v)) == 5 * 8);
	check_val("GRP-01", "nr", (long long)v[0], 2);
	check_exact("GRP-01", "instructions in a group", v[3], REGION_REST + 201);
	CHECK_ROW("GRP-01", !virtual_world() || v[3] == alone_i, "equal to those counted alone",
		  "%lu and %lu", v[3], alone_i);
	CHECK_ROW("GRP-01", !virtual_world() || v[4] == alone_b,
		  "branches equal to those counted alone", "%lu and %lu", v[4], alone_b);
	CHECK_ROW("GRP-13", v[1] > 0 && v[1] == v[2], "not multiplexed: running is enabled",
		  "%lu %lu", v[1], v[2]);
}

static volatile bool spinning, stop_spinning;
static pid_t spinner_tid;

/* Two instructions a turn, one of them a branch, and nothing else. */
static void *spinner(void *unused)
{
	spinner_tid = (pid_t)syscall(SYS_gettid);
	spinning = true;
	while (!stop_spinning)
		asm volatile(LOOP(16777216)::: LOOP_CLOBBERS);
	return unused;
}

/* The members of a group are of one moment, also of a thread that goes on running. */
CONFORM(members_of_a_running_thread)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	long least = 0, most = 0;
	pthread_t thread;
	u64 v[3];
	int lead;

	if (no_branches("GRP-01", "a group of a running thread"))
		return;
	NEED(pthread_create(&thread, NULL, spinner, NULL) == 0);
	while (!spinning)
		sleep_ms(1);
	sleep_ms(20);
	attr.read_format = PERF_FORMAT_GROUP;
	lead = (int)ev_open(&attr, spinner_tid, -1, -1, 0);
	attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	attr.disabled = 0;
	NEED(lead >= 0 && ev_open(&attr, spinner_tid, -1, lead, 0) >= 0);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 2000; i++) {
		long apart;

		NEED(ev_read(lead, v, sizeof(v)) == sizeof(v));
		apart = (long)(v[1] - 2 * v[2]);
		least = i && least < apart ? least : apart;
		most = i && most > apart ? most : apart;
	}
	stop_spinning = true;
	NEED(pthread_join(thread, NULL) == 0);
	/* The spinner's outer loop is a handful of instructions for each 33 million. */
	CHECK_ROW("GRP-01", most - least < 100000, "instructions and branches of one moment",
		  "%ld to %ld", least, most);
	CHECK_ROW("GRP-01", !virtual_world() || most - least < 200, "to the turn of a loop",
		  "%ld to %ld", least, most);
}

CONFORM(twice)
{
	int a, b, sw;

	if (no_pmu("GRP-01", "two events of one kind"))
		return;
	a = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	b = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, a);
	sw = (int)ev_open(&(struct pe_attr){.type = PERF_TYPE_SOFTWARE,
					    .size = 128,
					    .config = PERF_COUNT_SW_PAGE_FAULTS,
					    .exclude_kernel = 1},
			  0, -1, a, 0);
	check_err("GRP-05", "a software event joins a hardware group", sw, 0);
	REGION(a, LOOP(100));
	check_exact("GRP-01", "two events of one kind: the leader", ev_count(a), REGION_REST + 201);
	check_exact("GRP-01", "two events of one kind: the member", ev_count(b), REGION_REST + 201);
}

CONFORM(into_software)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	long lead;
	int member;

	if (no_pmu("GRP-05", "a hardware event joins a software group"))
		return;
	lead = ev_self(attr);
	NEED(lead >= 0);
	member = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, (int)lead);
	REGION(lead, LOOP(100));
	check_exact("GRP-05", "a hardware event joins a software group", ev_count(member),
		    REGION_REST + 201);
	CHECK_ROW("GRP-05", ev_count((int)lead) > 0, "whose leader still counts", "%lu",
		  ev_count((int)lead));
}

CONFORM(member_off)
{
	int lead, member;

	if (no_branches("GRP-03", "a hardware member that is off"))
		return;
	lead = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	member = pmu_open(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, lead);
	NEED(ev_ioctl(member, PERF_EVENT_IOC_DISABLE, 0) == 0);
	REGION(lead, LOOP(100));
	check_exact("GRP-03", "a hardware member that is off: its leader counts", ev_count(lead),
		    REGION_REST + 201);
	check_val("GRP-03", "a hardware member that is off", (long long)ev_count(member), 0);
	close(lead);
	NEED(ev_ioctl(member, PERF_EVENT_IOC_RESET, 0) == 0);
	check_exact("GRP-04", "leader closed: the member counts alone",
		    REGION_COUNT(member, LOOP(100)) >= 100 ? 1 : 0, 1);
}

CONFORM(ids)
{
	static const struct {
		const char *row, *text;
		u32 type;
		u64 config;
		int want;
	} cases[] = {
		{"TYPE-01", "generic id 10", PERF_TYPE_HARDWARE, 10, EINVAL},
		{"TYPE-01", "generic id 255", PERF_TYPE_HARDWARE, 255, EINVAL},
		{"TYPE-04", "cache id 7", PERF_TYPE_HW_CACHE, 7, EINVAL},
		{"TYPE-04", "cache op 3", PERF_TYPE_HW_CACHE, 3 << 8, EINVAL},
		{"TYPE-04", "cache result 2", PERF_TYPE_HW_CACHE, 2 << 16, EINVAL},
	};
	struct pe_attr attr;

	if (no_pmu("TYPE-01", "ids of the cpu PMU"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_err(cases[i].row, cases[i].text,
			  try_self(ev_attr(cases[i].type, cases[i].config)), cases[i].want);
	check_err("HW-01", "instructions", try_self(ev_attr(0, 1)), 0);
	if (!no_branches("HW-04", "branches"))
		check_err("HW-04", "branches", try_self(ev_attr(0, 4)), 0);
	attr = ev_attr(0, 1);
#ifdef __x86_64__ /* arm64 does not look at it */
	attr.precise_ip = 2;
	check_err("ATTR-22", "precise_ip on a counting event", try_self(attr), EINVAL);
	attr.precise_ip = 0;
#endif
	attr.pinned = 1;
	check_err("ATTR-09", "pinned", try_self(attr), 0);
	attr.pinned = 0;
	attr.exclusive = 1;
	check_err("ATTR-10", "exclusive", try_self(attr), 0);
}

/* What a file of the device says, or "". A hybrid machine and arm64 have no such device. */
static const char *cpu_file(const char *name)
{
	return device_file("cpu", name);
}

static bool no_cpu_device(const char *row, const char *text)
{
	if (no_pmu(row, text))
		return true;
	if (access("/sys/bus/event_source/devices/cpu", F_OK) == 0)
		return false;
	skip_row(row, text, "it has another name here");
	return true;
}

/* The generic id, the raw code of the vendor, and the sysfs name are one event. */
CONFORM(raw)
{
	long fd;

	if (no_pmu("TYPE-05", "the vendor's raw code of instructions"))
		return;
	fd = ev_self(ev_attr(PERF_TYPE_RAW, RAW_INSTRUCTIONS));
	check_err("TYPE-05", "the vendor's raw code of instructions", fd, 0);
	NEED(fd >= 0);
	check_exact("TYPE-05", "which counts instructions", REGION_COUNT((int)fd, LOOP(100)),
		    REGION_REST + 201);
}

CONFORM(raw_in_sysfs)
{
	if (no_cpu_device("FILE-09", "the cpu device has a type"))
		return;
	CHECK_ROW("FILE-09", cpu_file("type")[0], "the cpu device has a type", "no type");
	check_val("TYPE-05", "cpu/type", atoi(cpu_file("type")), 4);
	check_val("FILE-12", "events/instructions",
		  strcmp(cpu_file("events/instructions"), "event=0xc0\n") == 0, 1);
	check_val("FILE-11", "format/event",
		  strncmp(cpu_file("format/event"), "config:0-7", 10) == 0, 1);
	check_val("FILE-17", "rdpmc in /sys/devices/cpu",
		  access("/sys/devices/cpu/rdpmc", R_OK) == 0, 1);
}

/* Kernel mode cannot be counted: by default that is refused, to everyone. */
CONFORM(kernel_mode)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	bool ignores = getenv("CONFORM_KERNEL_MODE") != NULL;

	if (!virtual_world()) {
		skip_row("ERR-02", "kernel mode on the virtual PMU", "needs the virtual PMU");
		return;
	}
	attr.exclude_kernel = 0;
	check_val("ERR-02", "a request that includes kernel mode", try_self(attr),
		  ignores ? 0 : -EACCES);
	attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	check_err("HW-00", "cycles, which nothing can count without a model of a machine",
		  try_self(attr), cpu_file("caps/machine")[0] ? 0 : ENOENT);
	CHECK_ROW("FILE-01", ignores || paranoid() >= 2, "perf_event_paranoid reads 2 or more",
		  "%d", paranoid());
}

/* Tasks of a family: the inherited sum is exactly that of the parts. */
#define PARTS 4

static void *thread_part(void *fds)
{
	char c;

	if (read(*(int *)fds, &c, 1) != 1)
		return NULL;
	for (volatile int i = 0; i < 20000; i++)
		;
	return fds;
}

static void child_part(int from, int threads)
{
	pthread_t thread;
	char c;

	if (read(from, &c, 1) != 1)
		_exit(1);
	for (volatile int i = 0; i < 10000; i++)
		;
	for (int i = 0; i < threads; i++) {
		/* Its event is inherited by what it starts now: part of this part. */
		if (pthread_create(&thread, NULL, thread_part, &from) || pthread_join(thread, NULL))
			_exit(1);
	}
	_exit(0);
}

static void wait_asleep(pid_t tid)
{
	char path[64], buf[256], *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	for (int i = 0; i < 1000; i++) {
		memset(buf, 0, sizeof(buf));
		fd = open(path, O_RDONLY);
		NEED(fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0);
		close(fd);
		state = strrchr(buf, ')');
		if (state && state[2] == 'S')
			return;
		sleep_ms(2);
	}
	NEED(!"the task sleeps");
}

static volatile pid_t thread_tid;

static void *own_thread(void *fds)
{
	thread_tid = (pid_t)syscall(SYS_gettid);
	return thread_part(fds);
}

/*
 * All events are switched on by one prctl while every task but the caller sleeps in the kernel, and
 * off by one when the others are gone: each instruction is in the family's sum and in one part.
 */
CONFORM(family)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int go[2], status, parts[PARTS + 2], n = 0;
	pthread_t thread;
	pid_t pids[PARTS];
	u64 sum = 0, all;
	char c[64] = {0};
	long family;

	if (no_pmu("INH-03", "the sum of a family"))
		return;
	NEED(pipe(go) == 0);
	attr.inherit = 1;
	family = ev_self(attr);
	NEED(family >= 0);
	for (int i = 0; i < PARTS; i++) {
		pids[i] = fork();
		NEED(pids[i] >= 0);
		if (pids[i] == 0)
			child_part(go[0], i);
	}
	NEED(pthread_create(&thread, NULL, own_thread, &go[0]) == 0);
	for (int i = 0; i < PARTS; i++) {
		wait_asleep(pids[i]);
		parts[n] = (int)ev_open(&attr, pids[i], -1, -1, 0);
		NEED(parts[n++] >= 0);
	}
	while (!thread_tid)
		sleep_ms(1);
	wait_asleep(thread_tid);
	attr.inherit = 0;
	parts[n] = (int)ev_open(&attr, thread_tid, -1, -1, 0);
	NEED(parts[n++] >= 0);
	parts[n] = (int)ev_self(attr);
	NEED(parts[n++] >= 0);
	NEED(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) == 0);
	NEED(write(go[1], c, PARTS + 1 + PARTS * (PARTS - 1) / 2) > 0);
	for (int i = 0; i < PARTS; i++)
		NEED(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	pthread_join(thread, NULL);
	NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
	all = ev_count((int)family);
	for (int i = 0; i < n; i++)
		sum += ev_count(parts[i]);
	CHECK_ROW("INH-03", all > PARTS * 30000, "a family of 4 processes and 7 threads counts",
		  "%lu", all);
	CHECK_ROW("INH-03", virtual_world() ? all == sum : all > sum / 2 && all < sum * 2,
		  "the family's sum is exactly that of its parts", "%lu, parts %lu", all, sum);
}

static int rounds;

static void fixed_work(void)
{
	for (int i = 0; i < rounds; i++)
		asm volatile(LOOP(1000)::: LOOP_CLOBBERS);
}

/* Another task, seen from outside: each round of the same work adds the same. */
CONFORM(remote)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	u64 v[6];
	struct worker w;
	long fd;

	if (no_pmu("CALL-04", "another task's instructions"))
		return;
	rounds = 10;
	worker_start(&w, fixed_work);
	worker_work(&w);
	attr.disabled = 0;
	fd = ev_open(&attr, w.pid, -1, -1, 0);
	NEED(fd >= 0);
	for (int i = 0; i < 5; i++) {
		worker_work(&w);
		wait_asleep(w.pid);
		v[i] = ev_count((int)fd);
	}
	sleep_ms(5);
	v[5] = ev_count((int)fd);
	CHECK_ROW("CALL-04", v[1] - v[0] > 20000, "another task's instructions", "%lu",
		  v[1] - v[0]);
	CHECK_ROW("CALL-04",
		  !virtual_world() || (v[2] - v[1] == v[1] - v[0] && v[3] - v[2] == v[1] - v[0] &&
				       v[4] - v[3] == v[1] - v[0]),
		  "the same work adds the same number each time", "%lu %lu %lu %lu", v[1] - v[0],
		  v[2] - v[1], v[3] - v[2], v[4] - v[3]);
	check_val("CALL-04", "a task asleep adds nothing", (long long)(v[5] - v[4]), 0);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	worker_work(&w);
	wait_asleep(w.pid);
	check_val("IOC-02", "disabled from outside: it adds nothing",
		  (long long)(ev_count((int)fd) - v[5]), 0);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	worker_work(&w);
	wait_asleep(w.pid);
	CHECK_ROW("IOC-01", !virtual_world() || ev_count((int)fd) == v[1] - v[0],
		  "reset and enabled from outside: one round's number", "%lu, before %lu",
		  ev_count((int)fd), v[1] - v[0]);
	worker_end(&w);
}

/* One round more in a child is exactly its loop more in the family's count. */
static u64 family_count(int n)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int status;
	pid_t pid;
	long fd;
	u64 count;

	attr.inherit = 1;
	attr.disabled = 0;
	fd = ev_self(attr);
	NEED(fd >= 0);
	rounds = n;
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		fixed_work();
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	count = ev_count((int)fd);
	close((int)fd);
	return count;
}

CONFORM(child_exact)
{
	u64 warm, few, many;

	if (no_pmu("INH-03", "a child's loop"))
		return;
	warm = family_count(1);
	few = family_count(10);
	many = family_count(30);
	NEED(warm > 0);
	/* 1,000 turns of two, one load of its register, and the loop around of 2 to 4. */
	CHECK_ROW("INH-03",
		  many - few >= 20 * 2003 && many - few <= (virtual_world() ? 20 * 2006 : 45000),
		  "20 loops more in a child are 20 loops more in the count", "%lu", many - few);
}

static long number_in(const char *name)
{
	char path[80], text[32] = "";
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/cpu/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 1 && text[n - 1] == '\n' ? strtol(text, NULL, 10) : -EINVAL;
}

/* How a PMU presents itself. */
CONFORM(device)
{
	struct stat bus, dev;

	if (no_cpu_device("FILE-10", "the files of the cpu PMU"))
		return;
	check_val("TYPE-09", "cpu/type", number_in("type"), PERF_TYPE_RAW);
	CHECK_ROW("FILE-10", number_in("rdpmc") >= 0 && number_in("rdpmc") <= 2, "cpu/rdpmc", "%ld",
		  number_in("rdpmc"));
	CHECK_ROW("FILE-16", number_in("perf_event_mux_interval_ms") >= 1,
		  "cpu/perf_event_mux_interval_ms", "%ld", number_in("perf_event_mux_interval_ms"));
	check_val("FILE-15", "cpu/caps is there",
		  access("/sys/bus/event_source/devices/cpu/caps", F_OK), 0);
	NEED(stat("/sys/bus/event_source/devices/cpu/rdpmc", &bus) == 0);
	check_val("FILE-17", "rdpmc by either path", stat("/sys/devices/cpu/rdpmc", &dev), 0);
	check_val("FILE-17", "rdpmc by either path: the same file", bus.st_ino == dev.st_ino, 1);
}

/* An event on another CPU's share only, and per-CPU parts that add up. */
CONFORM(prctl_region)
{
	int fd;

	if (no_pmu("PRC-01", "prctl around a region"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	PRCTL_REGION(".rept 100; nop; .endr");
	check_exact("PRC-01", "prctl ENABLE and DISABLE around 100 nops", ev_count(fd), 103);
}

CONFORM(counting_exec)
{
	u64 v[3];
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int status;
	long fd;
	pid_t pid;
	int go[2];
	char c = 0;

	if (no_pmu("ATTR-19", "instructions over exec"))
		return;
	NEED(pipe(go) == 0);
	for (int i = 0; i < 2; i++) {
		pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			if (read(go[0], &c, 1) == 1)
				exec_self("loop", 1000);
			_exit(1);
		}
		attr.enable_on_exec = 1;
		fd = ev_open(&attr, pid, -1, -1, 0);
		NEED(fd >= 0 && write(go[1], &c, 1) == 1);
		NEED(waitpid(pid, &status, 0) == pid && status == 0);
		v[i] = ev_count((int)fd);
	}
	CHECK_ROW("ATTR-19", v[0] > 2001000, "a program counted from its exec on", "%lu", v[0]);
}

CONFORM_EXEC(loop)
{
	rounds = arg;
	fixed_work();
	return 0;
}
