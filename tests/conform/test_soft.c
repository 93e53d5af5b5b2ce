/*
 * What the software events count, and the sysctls that describe perf [SW-*, FILE-01..07, SCAL,
 * READ-10].
 */
#include "conform/conform.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static int sw(u64 config)
{
	long fd = ev_self(sw_attr(config));

	NEED(fd >= 0);
	return (int)fd;
}

/* What an event counts over fn. */
static u64 over(u64 config, void (*fn)(void))
{
	int fd = sw(config);
	u64 n;

	/*
	 * What is there from the third time on: nothing of how the program comes to lie in memory,
	 * or to be translated, which the second time may be once more.
	 */
	for (int turn = 0; turn < 3; turn++) {
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		fn();
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	}
	n = ev_count(fd);
	close(fd);
	return n;
}

static void spin_20(void)
{
	spin_ms(20);
}

static void sleep_50(void)
{
	sleep_ms(50);
}

static void touch_100(void)
{
	touch_pages(100);
}

static void nothing(void)
{
}

CONFORM(clocks)
{
	u64 n;

	n = over(PERF_COUNT_SW_TASK_CLOCK, spin_20);
	CHECK_ROW("SW-01", n >= 19000000, "task-clock: 20 ms of work", "%lu ns", n);
	n = over(PERF_COUNT_SW_TASK_CLOCK, sleep_50);
	CHECK_ROW("SW-01", n < 25000000, "task-clock: a sleep of 50 ms adds little", "%lu ns", n);
	n = over(PERF_COUNT_SW_CPU_CLOCK, spin_20);
	CHECK_ROW("SW-00", n >= 19000000, "cpu-clock of a task: 20 ms of work", "%lu ns", n);
	n = over(PERF_COUNT_SW_CPU_CLOCK, sleep_50);
	CHECK_ROW("SW-00", n < 25000000, "cpu-clock of a task: a sleep of 50 ms adds little",
		  "%lu ns", n);
}

CONFORM(clock_is_time)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	u64 v[3];
	long fd, diff;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = ev_self(attr);
	NEED(fd >= 0);
	ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	spin_ms(20);
	ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(ev_read((int)fd, v, sizeof(v)) == 24);
	diff = labs((long)(v[0] - v[2]));
	CHECK_ROW("SW-01", diff < 2000000, "task-clock is its own running time",
		  "value %lu, running %lu", v[0], v[2]);
}

CONFORM(faults)
{
	check_val("SW-02", "page-faults: 100 fresh pages",
		  (long long)over(PERF_COUNT_SW_PAGE_FAULTS, touch_100), 100);
	check_val("SW-05", "minor faults: 100 fresh pages",
		  (long long)over(PERF_COUNT_SW_PAGE_FAULTS_MIN, touch_100), 100);
	check_val("SW-06", "major faults: none",
		  (long long)over(PERF_COUNT_SW_PAGE_FAULTS_MAJ, touch_100), 0);
	check_val("SW-02", "page-faults: nothing done",
		  (long long)over(PERF_COUNT_SW_PAGE_FAULTS, nothing), 0);
}

CONFORM(none)
{
	check_val("SW-09", "dummy counts nothing", (long long)over(PERF_COUNT_SW_DUMMY, touch_100),
		  0);
	check_val("SW-07", "alignment faults: none on x86",
		  (long long)over(PERF_COUNT_SW_ALIGNMENT_FAULTS, touch_100), 0);
	check_val("SW-08", "emulation faults: none on x86",
		  (long long)over(PERF_COUNT_SW_EMULATION_FAULTS, touch_100), 0);
	check_val("SW-10", "bpf-output counts nothing by itself",
		  (long long)over(PERF_COUNT_SW_BPF_OUTPUT, touch_100), 0);
}

/* Both happen in kernel mode, which an event of user mode does not see. */
CONFORM(switches_user)
{
	u64 n = over(PERF_COUNT_SW_CONTEXT_SWITCHES, sleep_50);

	CHECK_ROW("SW-03", n == 0, "context-switches with exclude_kernel are 0", "%lu", n);
	/* The virtual PMU may tell those that happened. */
	if (virtual_world())
		return;
	n = over(PERF_COUNT_SW_CPU_MIGRATIONS, sleep_50);
	CHECK_ROW("SW-04", n == 0, "cpu-migrations with exclude_kernel are 0", "%lu", n);
}

static void sleep_20_times(void)
{
	for (int i = 0; i < 20; i++)
		sleep_ms(1);
}

static void migrate(void)
{
	cpu_set_t set;

	for (int i = 0; i < 4; i++) {
		CPU_ZERO(&set);
		CPU_SET(i % 2, &set);
		NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
	}
}

CONFORM(switches_kernel)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct rusage before, after;
	long fd, moves;
	u64 n, seen;

	attr.exclude_kernel = 0;
	fd = ev_self(attr);
	if (fd == -EACCES) {
		skip_row("SW-03", "context-switches in kernel mode",
			 "needs privilege or paranoid 1");
		return;
	}
	NEED(fd >= 0 && getrusage(RUSAGE_THREAD, &before) == 0);
	ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	sleep_20_times();
	ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(getrusage(RUSAGE_THREAD, &after) == 0);
	n = ev_count((int)fd);
	seen = (u64)(after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw);
	CHECK_ROW("SW-03", n >= 20, "context-switches: 20 sleeps", "%lu", n);
	CHECK_ROW("SW-03", n <= seen, "context-switches: not more than getrusage saw", "%lu of %lu",
		  n, seen);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 ||
	    sched_getaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){0}) < 0) {
		skip_row("SW-04", "cpu-migrations", "one CPU only");
		return;
	}
	attr.config = PERF_COUNT_SW_CPU_MIGRATIONS;
	moves = ev_self(attr);
	NEED(moves >= 0);
	migrate();
	ev_ioctl((int)moves, PERF_EVENT_IOC_ENABLE, 0);
	migrate();
	ev_ioctl((int)moves, PERF_EVENT_IOC_DISABLE, 0);
	n = ev_count((int)moves);
	check_val("SW-04", "cpu-migrations: 4 moves to the other CPU", (long long)n, 4);
}

CONFORM(excluded)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.exclude_user = 1;
	fd = ev_self(attr);
	NEED(fd >= 0);
	touch_pages(8);
	ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(100);
	ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	check_val("ATTR-11", "exclude_user: faults taken in user mode do not count",
		  (long long)ev_count((int)fd), 0);
}

static long sysctl_value(const char *name)
{
	char path[128], buf[64] = "";
	long value = -1000;
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	fd = open(path, O_RDONLY);
	if (fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 1)
		value = strtol(buf, NULL, 10);
	if (fd >= 0)
		close(fd);
	return value;
}

CONFORM(sysctls)
{
	long p = sysctl_value("perf_event_paranoid");

	CHECK_ROW("FILE-01", p >= -1 && p <= 4, "perf_event_paranoid", "%ld", p);
	/* [NOTE-02] */
	check_val("FILE-01", "perf_event_paranoid exists",
		  access("/proc/sys/kernel/perf_event_paranoid", F_OK), 0);
	p = sysctl_value("perf_event_max_sample_rate");
	CHECK_ROW("FILE-03", p >= 1, "perf_event_max_sample_rate", "%ld", p);
	p = sysctl_value("perf_event_max_stack");
	CHECK_ROW("FILE-05", p >= 1, "perf_event_max_stack", "%ld", p);
	p = sysctl_value("perf_event_max_contexts_per_stack");
	CHECK_ROW("FILE-06", p >= 1, "perf_event_max_contexts_per_stack", "%ld", p);
	p = sysctl_value("perf_event_mlock_kb");
	CHECK_ROW("FILE-07", p >= 1, "perf_event_mlock_kb", "%ld", p);
}

static long first_number(const char *path)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	return n > 1 && buf[n - 1] == '\n' ? strtol(buf, NULL, 10) : -1;
}

CONFORM(devices)
{
	check_val("FILE-09", "software/type",
		  first_number("/sys/bus/event_source/devices/software/type"), 1);
	check_val("FILE-09", "breakpoint/type",
		  first_number("/sys/bus/event_source/devices/breakpoint/type"), 5);
}

/* What a read costs is nobody's switch, however it is answered; a sleep is one. */
CONFORM(switches_of_reads)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_CONTEXT_SWITCHES);
	u64 v[2], before;
	int fd;

	/* Counted in all modes; so asked for by who may. */
	if (!capable() && paranoid() > 1 && !virtual_world()) {
		skip_row("SW-03", "reads among context switches", "needs kernel mode");
		return;
	}
	attr.exclude_kernel = virtual_world();
	attr.read_format = PERF_FORMAT_GROUP;
	attr.disabled = 0;
	fd = (int)ev_self(attr);
	NEED(fd >= 0 && ev_read(fd, v, 16) == 16);
	before = v[1];
	for (int i = 0; i < 400; i++)
		NEED(ev_read(fd, v, 16) == 16);
	CHECK_ROW("SW-03", v[1] - before < 200, "400 reads are not 400 switches", "%lu",
		  v[1] - before);
	before = v[1];
	for (int i = 0; i < 40; i++) {
		sleep_ms(1);
		NEED(ev_read(fd, v, 16) == 16);
	}
	CHECK_ROW("SW-03", v[1] - before >= 40 && v[1] - before < 80,
		  "40 sleeps with reads between them are 40 switches", "%lu", v[1] - before);
}

static pthread_barrier_t barrier;
static pid_t thread_tid;

static void *thread_works(void *unused)
{
	(void)unused;
	thread_tid = (pid_t)syscall(SYS_gettid);
	touch_pages(8);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	touch_pages(1077);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Events are the thread's, not the process's. */
CONFORM(threads)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	pthread_t thread;
	u64 mine;
	long fd, own;

	attr.disabled = 0;
	NEED(pthread_barrier_init(&barrier, NULL, 2) == 0);
	NEED(pthread_create(&thread, NULL, thread_works, NULL) == 0);
	pthread_barrier_wait(&barrier);
	fd = ev_open(&attr, thread_tid, -1, -1, 0);
	own = ev_self(attr);
	NEED(fd >= 0 && own >= 0);
	mine = ev_count((int)own);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	check_faults("CALL-04", "another thread's faults, by its tid", (long long)ev_count((int)fd),
		     1077);
	CHECK_ROW("CALL-02", ev_count((int)own) - mine < 500, "are not the opener's", "%lu",
		  ev_count((int)own) - mine);
	pthread_barrier_wait(&barrier);
	NEED(pthread_join(thread, NULL) == 0);
}
