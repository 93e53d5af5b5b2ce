/*
 * exec and exit: enable_on_exec, remove_on_exec, what descriptors survive [ATTR-19, ATTR-40,
 * FLAG-04].
 */
#include "conform/conform.h"

#include <pthread.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Touches pages in the new program. */
CONFORM_EXEC(touch)
{
	touch_pages(arg);
	return 0;
}

/* Execs itself ARG times, then touches 100 pages. */
CONFORM_EXEC(chain)
{
	if (arg > 0)
		exec_self("chain", arg - 1);
	touch_pages(100);
	return 0;
}

/* Does the descriptor answer? */
CONFORM_EXEC(reads)
{
	u64 v[8];

	return ev_read(arg, v, sizeof(v)) >= 8 ? 10 : errno == EBADF ? 11 : 12;
}

/* Disables the event it has inherited the descriptor of, having enabled it. */
CONFORM_EXEC(drives)
{
	touch_pages(8);
	if (ev_ioctl(arg, PERF_EVENT_IOC_RESET, 0) || ev_ioctl(arg, PERF_EVENT_IOC_ENABLE, 0))
		return 12;
	touch_pages(33);
	return ev_ioctl(arg, PERF_EVENT_IOC_DISABLE, 0) ? 12 : 10;
}

/* An event that is inherited over fork and then exec, seen from the new program's children. */
CONFORM_EXEC(forks)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		touch_pages(arg);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? 0 : 12;
}

struct start {
	pid_t pid;
	int go;
};

/* A child that waits for start_go(), then execs. */
static struct start start_child(const char *name, int arg)
{
	struct start s;
	int fds[2];
	char c;

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	s.pid = fork();
	NEED(s.pid >= 0);
	if (s.pid == 0) {
		close(fds[1]);
		if (read(fds[0], &c, 1) == 1)
			exec_self(name, arg);
		_exit(124);
	}
	close(fds[0]);
	s.go = fds[1];
	return s;
}

static int start_go(struct start *s)
{
	char c = 0;
	int status;

	NEED(write(s->go, &c, 1) == 1);
	close(s->go);
	NEED(waitpid(s->pid, &status, 0) == s->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct pe_attr on_exec(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.enable_on_exec = 1;
	attr.read_format = TIMES;
	return attr;
}

CONFORM(enable)
{
	struct pe_attr attr = on_exec();
	struct start s = start_child("touch", 500);
	u64 v[3];
	long fd = ev_open(&attr, s.pid, -1, -1, 0);

	NEED(fd >= 0 && ev_read((int)fd, v, sizeof(v)) == 24);
	check_val("ATTR-19", "before exec: off", (long long)(v[0] + v[1]), 0);
	check_val("ATTR-19", "the program's status", start_go(&s), 0);
	NEED(ev_read((int)fd, v, sizeof(v)) == 24);
	CHECK_ROW("ATTR-19", v[0] >= 500 && v[1] > 0 && v[1] == v[2], "exec enables", "%lu %lu %lu",
		  v[0], v[1], v[2]);
}

CONFORM(enable_group)
{
	struct pe_attr attr = on_exec(), off = attr;
	struct start s = start_child("touch", 500);
	u64 v[3];
	long lead = ev_open(&attr, s.pid, -1, -1, 0), on, stays;

	attr.enable_on_exec = attr.disabled = 0;
	on = ev_open(&attr, s.pid, -1, (int)lead, 0);
	off.enable_on_exec = 0;
	stays = ev_open(&off, s.pid, -1, (int)lead, 0);
	NEED(lead >= 0 && on >= 0 && stays >= 0 && start_go(&s) == 0);
	NEED(ev_read((int)on, v, sizeof(v)) == 24);
	CHECK_ROW("ATTR-19", v[0] >= 500, "members follow their leader's exec", "%lu", v[0]);
	check_val("ATTR-19", "a disabled member stays off", (long long)ev_count((int)stays), 0);
}

/* The flag is used up: switched off again, the next exec leaves it off. */
CONFORM(enable_once)
{
	struct pe_attr attr = on_exec();
	struct start s = start_child("chain", 5);
	long fd = ev_open(&attr, s.pid, -1, -1, 0);
	u64 v[3];

	NEED(fd >= 0);
	check_val("ATTR-19", "a chain of execs ends", start_go(&s), 0);
	NEED(ev_read((int)fd, v, sizeof(v)) == 24);
	CHECK_ROW("ATTR-19", v[0] >= 100 && v[1] == v[2], "events survive a chain of execs",
		  "%lu %lu %lu", v[0], v[1], v[2]);
}

CONFORM_EXEC(used_up_again)
{
	u64 before = ev_count(arg);

	touch_pages(50);
	return ev_count(arg) == before ? 10 : 11;
}

CONFORM_EXEC(used_up)
{
	u64 before = ev_count(arg);

	touch_pages(50);
	if (ev_count(arg) - before < 50 || ev_ioctl(arg, PERF_EVENT_IOC_DISABLE, 0))
		return 12;
	exec_self("used_up_again", arg);
}

CONFORM(enable_once_alone)
{
	int status;
	pid_t pid = fork();
	long fd;

	NEED(pid >= 0);
	if (pid == 0) {
		fd = ev_self(on_exec());
		NEED(fd >= 0);
		exec_self("used_up", (int)fd);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	check_val("ATTR-19", "the bit is used up: off when switched off before the next exec (10)",
		  WIFEXITED(status) ? WEXITSTATUS(status) : -1, 10);
}

CONFORM(enabled_before)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct start s = start_child("touch", 500);
	long fd;

	attr.disabled = 0;
	fd = ev_open(&attr, s.pid, -1, -1, 0);
	NEED(fd >= 0 && start_go(&s) == 0);
	CHECK_ROW("ATTR-19", ev_count((int)fd) >= 500, "an enabled event goes on over exec", "%lu",
		  ev_count((int)fd));
}

CONFORM(disabled_stays)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct start s = start_child("touch", 500);
	long fd = ev_open(&attr, s.pid, -1, -1, 0);

	NEED(fd >= 0 && start_go(&s) == 0);
	check_val("ATTR-19", "a disabled event without the bit stays off",
		  (long long)ev_count((int)fd), 0);
}

CONFORM(remove)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct start s = start_child("touch", 500);
	u64 v[3], again[3];
	long fd;

	attr.disabled = 0;
	attr.remove_on_exec = 1;
	attr.read_format = TIMES;
	fd = ev_open(&attr, s.pid, -1, -1, 0);
	NEED(fd >= 0 && start_go(&s) == 0);
	check_val("ATTR-40", "remove_on_exec: still readable", ev_read((int)fd, v, sizeof(v)), 24);
	CHECK_ROW("ATTR-40", v[0] < 400, "remove_on_exec: the new program does not count", "%lu",
		  v[0]);
	check_err("ATTR-40", "remove_on_exec: ENABLE afterwards",
		  ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	NEED(ev_read((int)fd, again, sizeof(again)) == 24);
	check_val("ATTR-40", "remove_on_exec: the values stay", memcmp(v, again, 24), 0);
}

CONFORM(descriptors)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long plain = ev_self(attr), closing = ev_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct start s;

	NEED(plain >= 0 && closing >= 0);
	s = start_child("reads", (int)plain);
	check_val("FLAG-04", "a descriptor survives exec and reads (10)", start_go(&s), 10);
	s = start_child("reads", (int)closing);
	check_val("FLAG-04", "with FD_CLOEXEC it is closed (11)", start_go(&s), 11);
	NEED(fcntl((int)closing, F_SETFD, 0) == 0);
	s = start_child("reads", (int)closing);
	check_val("FLAG-04", "F_SETFD takes the flag away (10)", start_go(&s), 10);
}

/* The event is on the parent; the program that a child becomes drives it through the descriptor. */
CONFORM(drives)
{
	long fd = ev_self(sw_attr(PERF_COUNT_SW_PAGE_FAULTS));
	struct start s;
	u64 value;

	NEED(fd >= 0);
	s = start_child("drives", (int)fd);
	check_val("CALL-15", "a new program switches its parent's event (10)", start_go(&s), 10);
	value = ev_count((int)fd);
	touch_pages(10);
	check_val("CALL-15", "and leaves it off", (long long)(ev_count((int)fd) - value), 0);
}

/* An event on itself, kept over exec: the new program counts on. */
CONFORM_EXEC(drives_own)
{
	u64 v[8];

	touch_pages(8);
	if (ev_read(arg, v, sizeof(v)) < 8 || v[0] < 50)
		return 12;
	if (ev_ioctl(arg, PERF_EVENT_IOC_RESET, 0))
		return 13;
	touch_pages(21);
	if (ev_ioctl(arg, PERF_EVENT_IOC_DISABLE, 0) || ev_read(arg, v, sizeof(v)) < 8)
		return 14;
	return (long long)v[0] == 21 ? 10 : 15;
}

static void becomes(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.disabled = 0;
	fd = ev_self(attr);
	NEED(fd >= 0);
	touch_pages(50);
	exec_self("drives_own", (int)fd);
}

CONFORM(own_over_exec)
{
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0)
		becomes();
	NEED(waitpid(pid, &status, 0) == pid);
	check_val("ATTR-19", "an own event over exec: old count, RESET, exact count (10)",
		  WIFEXITED(status) ? WEXITSTATUS(status) : -1, 10);
}

CONFORM(inherit)
{
	struct pe_attr attr = on_exec();
	struct start s = start_child("forks", 700);
	long fd;

	attr.inherit = 1;
	fd = ev_open(&attr, s.pid, -1, -1, 0);
	NEED(fd >= 0);
	check_val("INH-01", "the new program forks", start_go(&s), 0);
	CHECK_ROW("INH-01", ev_count((int)fd) >= 700, "children of the new program count", "%lu",
		  ev_count((int)fd));
}

/* perf stat's way: the parent opens with enable_on_exec and inherit before its child execs. */
static int parent_event;

CONFORM(fork_after_open)
{
	struct pe_attr attr = on_exec();
	struct start s;

	attr.inherit = 1;
	parent_event = (int)ev_self(attr);
	NEED(parent_event >= 0);
	s = start_child("touch", 500);
	NEED(start_go(&s) == 0);
	CHECK_ROW("ATTR-19", ev_count(parent_event) >= 500,
		  "an inherited copy keeps enable_on_exec: its exec enables it", "%lu",
		  ev_count(parent_event));
}

static void *waits(void *fd)
{
	char c;

	return read(*(int *)fd, &c, 1) == 1 ? fd : NULL;
}

static void *execs(void *unused)
{
	(void)unused;
	exec_self("touch", 400);
}

/* exec by a thread that is not the leader: the siblings die, the pid goes on. */
static void thread_execs(void)
{
	int fds[2];
	pthread_t sleeper, thread;

	NEED(pipe(fds) == 0);
	NEED(pthread_create(&sleeper, NULL, waits, &fds[0]) == 0);
	NEED(pthread_create(&thread, NULL, execs, NULL) == 0);
	pthread_join(thread, NULL);
	_exit(99);
}

CONFORM(exec_by_thread)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int fds[2], status;
	pid_t pid;
	long fd;
	char c = 0;

	attr.disabled = 0;
	attr.inherit = 1;
	NEED(pipe(fds) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		if (read(fds[0], &c, 1) == 1)
			thread_execs();
		_exit(98);
	}
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0 && write(fds[1], &c, 1) == 1 && waitpid(pid, &status, 0) == pid);
	check_val("INH-03", "exec by a thread: the program ends well",
		  WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
	CHECK_ROW("INH-03", ev_count((int)fd) >= 400, "exec by a thread: its faults count", "%lu",
		  ev_count((int)fd));
}

CONFORM(failed_exec)
{
	struct pe_attr attr = on_exec();
	long fd = ev_self(attr);

	NEED(fd >= 0);
	execl("/nonexistent/program", "x", (char *)NULL);
	touch_pages(10);
	check_val("ATTR-19", "an exec that fails enables nothing", (long long)ev_count((int)fd), 0);
}

CONFORM(killed)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int fds[2], status;
	long fd;
	u64 v[3], again[3];
	pid_t pid;
	char c = 0;

	attr.disabled = 0;
	attr.read_format = TIMES;
	NEED(pipe(fds) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		sleep_ms(30);
		touch_pages(100);
		if (write(fds[1], &c, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0 && read(fds[0], &c, 1) == 1);
	NEED(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	check_val("READ-15", "a task killed by SIGKILL: readable", ev_read((int)fd, v, sizeof(v)),
		  24);
	CHECK_ROW("READ-15", v[0] >= 100 && v[1] > 0,
		  "a task killed by SIGKILL: its count is complete", "%lu %lu", v[0], v[1]);
	sleep_ms(10);
	NEED(ev_read((int)fd, again, sizeof(again)) == 24);
	check_val("READ-15", "a task killed by SIGKILL: its count is final", memcmp(v, again, 24),
		  0);
	check_err("CALL-09", "a task killed by SIGKILL: it cannot be opened any more",
		  try_open(&attr, pid, -1, -1, 0), ESRCH);
}
