/* The arguments of perf_event_open: pid, cpu, group_fd, flags [CALL-*, FLAG-*]. */
#include "conform/conform.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(cpu >= 0 && sched_setaffinity(pid, sizeof(set), &set) == 0);
}

static int this_cpu_only(void)
{
	int cpu = sched_getcpu();

	pin(0, cpu);
	return cpu;
}

/* A CPU that this thread is not on, -1 when there is none. */
static int other_cpu(int cpu)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 2 ? -1 : cpu == 0 ? 1 : 0;
}

CONFORM(syscall)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long fd;

#ifdef __x86_64__
	check_val("CALL-01", "system call number on x86_64", SYS_perf_event_open, 298);
#endif
	fd = ev_open(&attr, 0, -1, -1, 0);
	CHECK_ROW("CALL-01", fd > 2, "a new descriptor is returned", "%ld", fd);
}

CONFORM(self_any_cpu)
{
	long fd = ev_self(sw_attr(PERF_COUNT_SW_PAGE_FAULTS));

	NEED(fd >= 0);
	for (int turn = 0; turn < 3; turn++) {
		ev_ioctl((int)fd, PERF_EVENT_IOC_RESET, 0);
		ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
		touch_pages(64);
		ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	check_val("CALL-02", "the calling thread on any CPU: faults of 64 fresh pages",
		  (long long)ev_count((int)fd), 64);
}

CONFORM(self_one_cpu)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int cpu = this_cpu_only(), other = other_cpu(cpu);
	u64 v[3];
	long fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = ev_open(&attr, 0, cpu, -1, 0);
	NEED(fd >= 0);
	/* Earlier turns run the code of the last one, which then takes no faults of its own. */
	for (int turn = 0; turn < 3; turn++) {
		ev_ioctl((int)fd, PERF_EVENT_IOC_RESET, 0);
		ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
		touch_pages(64);
		ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	NEED(ev_read((int)fd, v, sizeof(v)) == sizeof(v));
	check_val("CALL-03", "the calling thread on the CPU it is on: faults", (long long)v[0], 64);
	CHECK_ROW("CALL-03", v[1] > 0 && v[1] == v[2], "on its CPU: running is enabled",
		  "enabled %lu running %lu", v[1], v[2]);
	if (other < 0) {
		skip_row("CALL-03", "an event on another CPU than the thread's", "one CPU only");
		return;
	}
	fd = ev_open(&attr, 0, other, -1, 0);
	NEED(fd >= 0);
	ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(64);
	ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(ev_read((int)fd, v, sizeof(v)) == sizeof(v));
	check_val("CALL-03", "bound to another CPU: counts nothing", (long long)v[0], 0);
	CHECK_ROW("CALL-03", v[1] > 0, "bound to another CPU: enabled advances", "%lu", v[1]);
	check_val("CALL-03", "bound to another CPU: running stays", (long long)v[2], 0);
}

static void faults_32(void)
{
	touch_pages(32);
}

/* What is between two moves counts where it was, and what is asked of the event does not matter. */
CONFORM(self_moves)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int here = this_cpu_only(), there = other_cpu(here);
	u64 a[3], b[3], at_first[2];
	long fds[2];

	if (there < 0) {
		skip_row("CALL-03", "a thread that moves itself", "one CPU only");
		return;
	}
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.disabled = 0;
	fds[0] = ev_open(&attr, 0, here, -1, 0);
	fds[1] = ev_open(&attr, 0, there, -1, 0);
	NEED(fds[0] >= 0 && fds[1] >= 0);
	/* Earlier turns run the code of the last one, which then takes no faults of its own. */
	for (int turn = 0; turn < 3; turn++) {
		at_first[0] = ev_count((int)fds[0]);
		at_first[1] = ev_count((int)fds[1]);
		touch_pages(16);
		pin(0, there);
		touch_pages(64);
		pin(0, here);
		touch_pages(16);
		NEED(ev_read((int)fds[0], a, sizeof(a)) == sizeof(a) &&
		     ev_read((int)fds[1], b, sizeof(b)) == sizeof(b));
	}
	check_faults("CALL-03", "moved away and back: faults here", (long long)(a[0] - at_first[0]),
		     32);
	check_faults("CALL-03", "moved away and back: faults there",
		     (long long)(b[0] - at_first[1]), 64);
	CHECK_ROW("CALL-03", a[2] && b[2] && a[2] < a[1] && b[2] < b[1],
		  "each runs while the thread is there", "of %lu %lu here, of %lu %lu there", a[1],
		  a[2], b[1], b[2]);
}

CONFORM(other_task_moves)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int here = this_cpu_only(), there = other_cpu(here);
	u64 a[2], b[2], more_a[2], more_b[2];
	long fd_a, fd_b;
	struct worker w;

	if (there < 0) {
		skip_row("CALL-05", "a task that is moved", "one CPU only");
		return;
	}
	attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.disabled = 0;
	worker_start(&w, faults_32);
	/* On the other CPU from before there is an event. */
	pin(w.pid, there);
	worker_work(&w);
	fd_a = ev_open(&attr, w.pid, here, -1, 0);
	fd_b = ev_open(&attr, w.pid, there, -1, 0);
	NEED(fd_a >= 0 && fd_b >= 0);
	worker_work(&w);
	NEED(ev_read((int)fd_a, a, sizeof(a)) == sizeof(a) &&
	     ev_read((int)fd_b, b, sizeof(b)) == sizeof(b));
	check_val("CALL-05", "a task that is elsewhere: faults here", (long long)a[0], 0);
	check_val("CALL-05", "a task that is elsewhere: time here", (long long)a[1], 0);
	check_faults("CALL-05", "a task that is elsewhere: faults there", (long long)b[0], 32);
	pin(w.pid, here);
	worker_work(&w);
	NEED(ev_read((int)fd_a, more_a, sizeof(more_a)) == sizeof(more_a) &&
	     ev_read((int)fd_b, more_b, sizeof(more_b)) == sizeof(more_b));
	check_faults("CALL-05", "moved by another task: faults here", (long long)(more_a[0] - a[0]),
		     32);
	check_val("CALL-05", "moved by another task: faults there", (long long)(more_b[0] - b[0]),
		  0);
	CHECK_ROW("CALL-05", more_a[1] > a[1], "moved by another task: it runs here", "%lu %lu",
		  a[1], more_a[1]);
	worker_end(&w);
}

CONFORM(other_task)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct worker w;
	long fd, fd_cpu;
	u64 before;

	this_cpu_only(); /* inherited by the worker */
	worker_start(&w, faults_32);
	worker_work(&w);
	worker_work(&w);
	attr.disabled = 0;
	fd = ev_open(&attr, w.pid, -1, -1, 0);
	NEED(fd >= 0);
	check_val("CALL-04", "a stopped task adds nothing", (long long)ev_count((int)fd), 0);
	worker_work(&w);
	before = ev_count((int)fd);
	check_val("CALL-04", "another task's faults", (long long)before, 32);
	touch_pages(16);
	check_val("CALL-04", "the opener's own faults do not count",
		  (long long)(ev_count((int)fd) - before), 0);
	fd_cpu = ev_open(&attr, w.pid, sched_getcpu(), -1, 0);
	NEED(fd_cpu >= 0);
	worker_work(&w);
	check_val("CALL-05", "another task on one CPU: its faults",
		  (long long)ev_count((int)fd_cpu), 32);
	worker_end(&w);
}

/* Who has started this program: no guest of whoever may run it. */
static pid_t starter(void)
{
	char path[40], text[512] = "";
	const char *end;
	int pid = -1, fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
	fd = open(path, O_RDONLY);
	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	end = strrchr(text, ')');
	NEED(end && sscanf(end + 1, " %*c %d", &pid) == 1 && pid > 1);
	return pid;
}

/* Software events of a process that has nothing to do with this one. */
CONFORM(stranger)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	pid_t pid = starter();
	long lead, member, own;
	u64 v[8] = {0};

	attr.disabled = 0;
	attr.inherit = 1;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED;
	lead = ev_open(&attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (lead == -EACCES) {
		skip_row("CALL-04", "a process that is no relative", "we may not look at it");
		return;
	}
	check_err("CALL-04", "software event of a process that is no relative", lead, 0);
	member = ev_open(&attr, pid, -1, (int)lead, 0);
	check_err("CALL-04", "and a member beside it", member, 0);
	check_val("CALL-04", "read as a group", ev_read((int)lead, v, sizeof(v)), 32);
	check_val("CALL-04", "of two", (long long)v[0], 2);
	check_err("CALL-04", "DISABLE", ev_ioctl((int)lead, PERF_EVENT_IOC_DISABLE, 0), 0);
	check_val("CALL-04", "a page of it can be mapped",
		  mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)member, 0) != MAP_FAILED ||
			  errno == EINVAL,
		  1);
	attr.inherit = 0;
	own = ev_self(attr);
	NEED(own >= 0);
	check_err("CALL-14", "a member of another task than the leader, which is no relative",
		  ev_open(&attr, pid, -1, (int)own, 0), EINVAL);
	attr.inherit = 1;
	check_err("CALL-14", "a member on oneself of a leader on such a process",
		  ev_open(&attr, 0, -1, (int)lead, 0), EINVAL);
	attr.type = 999;
	check_err("CALL-10", "an unknown type on it", ev_open(&attr, pid, -1, -1, 0), ENOENT);
}

static void cpu_wide(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long err = try_open(&attr, -1, 0, -1, 0);
	bool may = capable() || paranoid() < 1;

	CHECK_ROW("CALL-06", err == (may ? 0 : -EACCES),
		  "cpu-wide without privilege: EACCES at paranoid 1 and above", "%ld", err);
}

CONFORM(cpu_wide)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	as_nobody(cpu_wide);
	if (capable())
		check_err("CALL-06", "cpu-wide with privilege", try_open(&attr, -1, 0, -1, 0), 0);
	else
		skip_row("CALL-06", "cpu-wide with privilege", "needs CAP_PERFMON");
	check_err("CALL-07", "any task on any CPU", try_open(&attr, -1, -1, -1, 0), EINVAL);
}

#define CROWD 100

static pthread_barrier_t crowd_bound, crowd_goes, crowd_done;

static void *crowd_thread(void *cpu)
{
	pin(0, *(int *)cpu);
	/* Earlier turns run the code of the last one, which then takes no faults of its own. */
	touch_pages(1);
	pthread_barrier_wait(&crowd_bound);
	pthread_barrier_wait(&crowd_goes);
	touch_pages(16);
	pthread_barrier_wait(&crowd_done);
	return NULL;
}

/* Threads that sleep when they are first counted, and were given a CPU before that. */
CONFORM(cpu_wide_crowd)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int there = other_cpu(0); /* this thread may be on any */
	pthread_t threads[CROWD];
	long fd;
	u64 n;

	if (there < 0 || !capable()) {
		skip_row("CALL-06", "threads bound to a CPU", "one CPU only, or no CAP_PERFMON");
		return;
	}
	pthread_barrier_init(&crowd_bound, NULL, CROWD + 1);
	pthread_barrier_init(&crowd_goes, NULL, CROWD + 1);
	pthread_barrier_init(&crowd_done, NULL, CROWD + 1);
	for (int i = 0; i < CROWD; i++)
		NEED(pthread_create(&threads[i], NULL, crowd_thread, &there) == 0);
	pthread_barrier_wait(&crowd_bound);
	/* They are asleep by then. */
	usleep(50000);
	attr.disabled = 0;
	fd = ev_open(&attr, -1, there, -1, 0);
	NEED(fd >= 0);
	pthread_barrier_wait(&crowd_goes);
	pthread_barrier_wait(&crowd_done);
	n = ev_count((int)fd);
	CHECK_ROW("CALL-06", n >= 16 * CROWD, "faults of threads bound to the CPU", "%lu", n);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
}

CONFORM(no_such_task)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	siginfo_t info;
	pid_t pid;

	check_err("CALL-08", "pid -2", try_open(&attr, -2, -1, -1, 0), ESRCH);
	check_err("CALL-08", "pid -2 on a CPU", try_open(&attr, -2, 0, -1, 0), ESRCH);
	check_err("CALL-08", "the smallest pid", try_open(&attr, -0x7fffffff - 1, -1, -1, 0),
		  ESRCH);
	check_err("CALL-09", "the largest pid", try_open(&attr, 0x7fffffff, -1, -1, 0), ESRCH);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(0);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	check_err("CALL-09", "a zombie", try_open(&attr, pid, -1, -1, 0), ESRCH);
	NEED(waitpid(pid, NULL, 0) == pid);
	check_err("CALL-09", "a task that was reaped", try_open(&attr, pid, -1, -1, 0), ESRCH);
}

static pid_t roots_task;

static void others_task(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	check_err("CALL-10", "another user's task", try_open(&attr, roots_task, -1, -1, 0), EACCES);
	attr.type = 4000;
	check_err("CALL-10", "another user's task, unknown type",
		  try_open(&attr, roots_task, -1, -1, 0), ENOENT);
}

CONFORM(permission)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	if (geteuid() == 0) {
		roots_task = getpid();
		as_nobody(others_task);
		check_err("CALL-10", "root's own parent", try_open(&attr, getppid(), -1, -1, 0), 0);
	} else {
		skip_row("CALL-10", "another user's task", "needs root to become somebody else");
	}
}

static void own_task(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	long err;

	check_err("CALL-17", "any user, own task, user mode", try_self(attr), 0);
	attr.exclude_kernel = 0;
	err = try_self(attr);
	CHECK_ROW("CALL-17", err == (paranoid() >= 2 && !capable() ? -EACCES : 0),
		  "any user, own task, kernel mode too: EACCES at paranoid 2", "%ld", err);
}

CONFORM(own_task)
{
	as_nobody(own_task);
}

CONFORM(cpu_range)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	check_err("CALL-11", "cpu -2", try_open(&attr, 0, -2, -1, 0), EINVAL);
	check_err("CALL-11", "cpu 100000", try_open(&attr, 0, 100000, -1, 0), EINVAL);
	check_err("CALL-11", "the largest cpu", try_open(&attr, 0, 0x7fffffff, -1, 0), EINVAL);
	check_err("CALL-11", "cpu-wide on cpu 100000", try_open(&attr, -1, 100000, -1, 0), EINVAL);
	check_err("CALL-11", "cpu-wide on cpu -2", try_open(&attr, -1, -2, -1, 0), EINVAL);
	check_err("CALL-11", "cpu 0", try_open(&attr, 0, 0, -1, 0), 0);
}

CONFORM(group_fd)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int null = open("/dev/null", O_RDONLY), pipes[2], path;
	u64 v[8];
	long fd;

	NEED(null >= 0 && pipe(pipes) == 0);
	attr.read_format = PERF_FORMAT_GROUP;
	fd = ev_self(attr);
	NEED(fd >= 0 && ev_read((int)fd, v, sizeof(v)) == 16);
	check_val("CALL-12", "group_fd -1: a group of one", (long long)v[0], 1);
	check_err("CALL-13", "joining a leader", try_open(&attr, 0, -1, (int)fd, 0), 0);
	check_err("CALL-13", "group_fd of /dev/null", try_open(&attr, 0, -1, null, 0), EBADF);
	check_err("CALL-13", "group_fd of a pipe", try_open(&attr, 0, -1, pipes[0], 0), EBADF);
	check_err("CALL-13", "group_fd -2", try_open(&attr, 0, -1, -2, 0), EBADF);
	check_err("CALL-13", "group_fd that is not open", try_open(&attr, 0, -1, 1000, 0), EBADF);
	path = open("/", O_PATH);
	NEED(path >= 0);
	check_err("CALL-13", "group_fd of an O_PATH descriptor", try_open(&attr, 0, -1, path, 0),
		  EBADF);
	close((int)fd);
	check_err("CALL-13", "group_fd of a closed event", try_open(&attr, 0, -1, (int)fd, 0),
		  EBADF);
}

static void nothing(void)
{
}

CONFORM(group_match)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY), member;
	struct worker w;
	long lead, fd, on0;

	lead = ev_self(attr);
	fd = ev_open(&attr, 0, -1, (int)lead, 0);
	on0 = ev_open(&attr, 0, 0, -1, 0);
	NEED(lead >= 0 && fd >= 0 && on0 >= 0);
	check_err("CALL-14", "joining a member", try_open(&attr, 0, -1, (int)fd, 0), EINVAL);
	worker_start(&w, nothing);
	check_err("CALL-14", "joining another task's group",
		  try_open(&attr, w.pid, -1, (int)lead, 0), EINVAL);
	worker_end(&w);
	check_err("CALL-14", "joining a group of any CPU on one CPU",
		  try_open(&attr, 0, 0, (int)lead, 0), EINVAL);
	check_err("CALL-14", "joining a group of one CPU on any CPU",
		  try_open(&attr, 0, -1, (int)on0, 0), EINVAL);
	check_err("CALL-14", "joining a group of the same CPU", try_open(&attr, 0, 0, (int)on0, 0),
		  0);
	member = attr;
	member.inherit = 1;
	check_err("CALL-14", "an inheriting member of a leader that is not",
		  try_open(&member, 0, -1, (int)lead, 0), EINVAL);
	member = attr;
	member.use_clockid = 1;
	member.clockid = 1;
	check_err("CALL-14", "a member with another clock", try_open(&member, 0, -1, (int)lead, 0),
		  EINVAL);
	lead = ev_self(member);
	NEED(lead >= 0);
	check_err("CALL-14", "a member with the same clock", try_open(&member, 0, -1, (int)lead, 0),
		  0);
	member.clockid = 4;
	check_err("CALL-14", "a member with a third clock", try_open(&member, 0, -1, (int)lead, 0),
		  EINVAL);
}

CONFORM(descriptors)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY), bad = attr;
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	limit.rlim_cur = 3;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	/* [ERR-07] */
	check_err("CALL-16", "no descriptor left", try_self(attr), EMFILE);
	check_err("CALL-16", "no descriptor left, bad group_fd", try_open(&attr, 0, -1, 999, 0),
		  EMFILE);
	check_err("CALL-16", "no descriptor left, no such task",
		  try_open(&attr, 0x7fffffff, -1, -1, 0), EMFILE);
	check_err("CALL-16", "no descriptor left, bad cpu", try_open(&attr, 0, 100000, -1, 0),
		  EMFILE);
	bad.type = 4000;
	check_err("CALL-16", "no descriptor left, unknown type", try_self(bad), EMFILE);
	bad = attr;
	bad.sample_period = 1ULL << 63;
	check_err("CALL-16", "no descriptor left, bad period wins", try_self(bad), EINVAL);
	bad = attr;
	bad.reserved_1 = 1;
	check_err("CALL-16", "no descriptor left, bad attr wins", try_self(bad), EINVAL);
}

CONFORM(no_group)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long lead, fd;
	u64 v[8];

	attr.read_format = PERF_FORMAT_GROUP;
	lead = ev_self(attr);
	fd = ev_open(&attr, 0, -1, (int)lead, PERF_FLAG_FD_NO_GROUP);
	NEED(lead >= 0);
	check_err("FLAG-01", "FD_NO_GROUP with a group_fd", fd, 0);
	NEED(ev_read((int)lead, v, sizeof(v)) >= 16);
	check_val("FLAG-01", "FD_NO_GROUP makes no member", (long long)v[0], 1);
	check_err("FLAG-01", "FD_NO_GROUP with group_fd -1",
		  try_open(&attr, 0, -1, -1, PERF_FLAG_FD_NO_GROUP), 0);
	check_err("FLAG-01", "FD_NO_GROUP with a bad group_fd",
		  try_open(&attr, 0, -1, 999, PERF_FLAG_FD_NO_GROUP), EBADF);
	check_err("FLAG-01", "FD_NO_GROUP with a leader on another CPU",
		  try_open(&attr, 0, 0, (int)lead, PERF_FLAG_FD_NO_GROUP), 0);
}

CONFORM(output)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long lead = ev_self(attr);

	NEED(lead >= 0);
	check_err("FLAG-02", "FD_OUTPUT with group_fd -1",
		  try_open(&attr, 0, -1, -1, PERF_FLAG_FD_OUTPUT), 0);
	check_err("FLAG-02", "FD_OUTPUT to an event without a buffer",
		  try_open(&attr, 0, -1, (int)lead, PERF_FLAG_FD_OUTPUT), EINVAL);
	check_err("FLAG-02", "FD_OUTPUT to a bad descriptor",
		  try_open(&attr, 0, -1, 999, PERF_FLAG_FD_OUTPUT), EBADF);
}

CONFORM(pid_cgroup)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int dir = open("/", O_RDONLY | O_DIRECTORY);

	NEED(dir >= 0);
	check_err("FLAG-03", "PID_CGROUP with pid -1",
		  try_open(&attr, -1, 0, -1, PERF_FLAG_PID_CGROUP), EINVAL);
	check_err("FLAG-03", "PID_CGROUP with cpu -1",
		  try_open(&attr, dir, -1, -1, PERF_FLAG_PID_CGROUP), EINVAL);
	check_err("FLAG-03", "PID_CGROUP with a directory that is no cgroup",
		  try_open(&attr, dir, 0, -1, PERF_FLAG_PID_CGROUP), EBADF);
	check_err("FLAG-03", "PID_CGROUP with a descriptor that is not open",
		  try_open(&attr, 999, 0, -1, PERF_FLAG_PID_CGROUP), EBADF);
	attr.type = 4000;
	check_err("FLAG-03", "PID_CGROUP with a bad descriptor and unknown type",
		  try_open(&attr, 999, 0, -1, PERF_FLAG_PID_CGROUP), ENOENT);
}

CONFORM(cloexec)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long fd = ev_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), plain = ev_self(attr);

	NEED(fd >= 0 && plain >= 0);
	check_val("FLAG-04", "F_GETFD with FD_CLOEXEC", fcntl((int)fd, F_GETFD), FD_CLOEXEC);
	check_val("FLAG-04", "F_GETFD by default", fcntl((int)plain, F_GETFD), 0);
}

CONFORM(other_flags)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	check_err("FLAG-05", "flags 16", try_open(&attr, 0, -1, -1, 16), EINVAL);
	check_err("FLAG-05", "flags bit 31", try_open(&attr, 0, -1, -1, 1UL << 31), EINVAL);
	check_err("FLAG-05", "flags bit 63", try_open(&attr, 0, -1, -1, 1UL << 63), EINVAL);
	check_err("FLAG-05", "a bad flag and no attr", try_open(NULL, 0, -1, -1, 16), EINVAL);
}
