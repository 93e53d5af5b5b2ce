/*
 * Inheritance: whose children count, folding, the family's ioctls, groups [INH-*, READ-12,
 * READ-13].
 */
#include "conform/conform.h"

#include <pthread.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/*
 * A forked child's own page faults (copied pages of stack and data) come on top of what it touches.
 */
#define SLACK 200

/*
 * When two tasks whose contexts are clones of each other follow one another on a CPU, the kernel
 * swaps the contexts instead of the events; in which of them an event is found, what RESET leaves
 * and whether a group can be joined then depends on the schedule. One event that is not inherited
 * keeps a child's context from being a clone.
 */
static void no_clones(void)
{
	static bool done;

	if (!done)
		NEED(ev_self(sw_attr(PERF_COUNT_SW_DUMMY)) >= 0);
	done = true;
}

static struct pe_attr inheriting(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);

	no_clones();
	attr.disabled = 0;
	attr.inherit = 1;
	attr.read_format = TIMES;
	return attr;
}

static int faults(void)
{
	long fd = ev_self(inheriting());

	NEED(fd >= 0);
	return (int)fd;
}

/* Runs fn in a child that is no part of the tally, and waits for it. */
static void child(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void touch_1000(void)
{
	touch_pages(1000);
}

static void grandchild(void)
{
	child(touch_1000);
}

static void great_grandchild(void)
{
	child(grandchild);
}

static bool about(u64 n, u64 want)
{
	return n >= want && n < want + SLACK;
}

CONFORM(scope)
{
	struct pe_attr attr = inheriting();
	int fd;
	u64 before;
	long alone;

	attr.inherit = 0;
	alone = ev_self(attr);
	fd = faults();
	NEED(alone >= 0);
	touch_pages(8);
	before = ev_count(fd);
	child(touch_1000);
	CHECK_ROW("INH-01", about(ev_count(fd) - before, 1000),
		  "a child made after the event counts", "%lu", ev_count(fd) - before);
	before = ev_count(fd);
	child(grandchild);
	CHECK_ROW("INH-02", about(ev_count(fd) - before, 1000), "a grandchild counts", "%lu",
		  ev_count(fd) - before);
	before = ev_count(fd);
	child(great_grandchild);
	CHECK_ROW("INH-02", about(ev_count(fd) - before, 1000), "a child three levels down counts",
		  "%lu", ev_count(fd) - before);
	CHECK_ROW("INH-01", ev_count((int)alone) < SLACK, "without inherit no child counts", "%lu",
		  ev_count((int)alone));
}

CONFORM(older_children)
{
	struct worker w;
	u64 before;
	int fd;

	worker_start(&w, grandchild);
	worker_work(&w);
	fd = faults();
	before = ev_count(fd);
	worker_work(&w);
	CHECK_ROW("INH-01", ev_count(fd) - before < 50,
		  "neither an older child nor its new children count", "%lu",
		  ev_count(fd) - before);
	worker_end(&w);
}

/* An event on another task is inherited by that task's children, not by the opener's. */
CONFORM(others_children)
{
	struct pe_attr attr = inheriting();
	struct worker w;
	u64 before;
	long fd;

	worker_start(&w, grandchild);
	worker_work(&w);
	fd = ev_open(&attr, w.pid, -1, -1, 0);
	NEED(fd >= 0);
	worker_work(&w);
	before = ev_count((int)fd);
	CHECK_ROW("INH-01", before >= 1000, "the target's new children count", "%lu", before);
	child(touch_1000);
	check_val("INH-01", "the opener's children do not", (long long)(ev_count((int)fd) - before),
		  0);
	worker_end(&w);
}

CONFORM(pinned)
{
	struct pe_attr attr = inheriting();
	u64 v[3];
	long fd;

	attr.pinned = 1;
	fd = ev_self(attr);
	NEED(fd >= 0);
	child(touch_1000);
	NEED(ev_read((int)fd, v, sizeof(v)) == 24);
	CHECK_ROW("INH-01", v[0] >= 1000 && v[1] > 0 && v[1] == v[2],
		  "a child has what is pinned as well", "%lu %lu %lu", v[0], v[1], v[2]);
}

CONFORM(live_and_dead)
{
	struct worker w;
	int fd = faults();
	u64 a[3], b[3], c[3];

	worker_start(&w, touch_1000);
	worker_work(&w);
	NEED(ev_read(fd, a, sizeof(a)) == 24);
	worker_work(&w);
	NEED(ev_read(fd, b, sizeof(b)) == 24);
	CHECK_ROW("READ-12", b[0] - a[0] >= 1000 && b[0] - a[0] < 1100,
		  "a living child's count is in the sum", "%lu", b[0] - a[0]);
	worker_end(&w);
	NEED(ev_read(fd, c, sizeof(c)) == 24);
	CHECK_ROW("INH-03", c[0] >= b[0], "a dead child's count stays in the sum", "%lu then %lu",
		  b[0], c[0]);
	CHECK_ROW("INH-03", c[1] > b[1], "and its time", "%lu then %lu", b[1], c[1]);
	CHECK_ROW("INH-03", c[1] == c[2], "running is enabled for the sum too", "%lu and %lu", c[1],
		  c[2]);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	a[0] = ev_count(fd);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	b[0] = ev_count(fd);
	CHECK_ROW("INH-04", b[0] >= 2000 && b[0] < a[0], "RESET does not clear what was folded",
		  "%lu before, %lu after", a[0], b[0]);
}

CONFORM(reset_live)
{
	struct worker w;
	int fd = faults();

	worker_start(&w, touch_1000);
	worker_work(&w);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_count(fd) >= 1000);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	check_val("INH-04", "RESET clears a living child's count", (long long)ev_count(fd), 0);
	worker_work(&w);
	check_val("INH-05", "DISABLE stops a living child", (long long)ev_count(fd), 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	worker_work(&w);
	CHECK_ROW("INH-05", ev_count(fd) >= 1000, "ENABLE starts a living child", "%lu",
		  ev_count(fd));
	worker_end(&w);
}

static int family_fd;

static void child_stops(void)
{
	if (ev_ioctl(family_fd, PERF_EVENT_IOC_DISABLE, 0) != 0)
		_exit(1);
}

CONFORM(child_disables)
{
	u64 before;

	family_fd = faults();
	touch_pages(8);
	child(child_stops);
	before = ev_count(family_fd);
	touch_pages(50);
	check_val("INH-05", "a child that disables the shared descriptor stops the parent",
		  (long long)(ev_count(family_fd) - before), 0);
}

/* What a child starts with is decided by its parent's event at fork, not by attr.disabled. */
CONFORM(childs_state)
{
	struct pe_attr attr = inheriting();
	long fd;
	u64 before;

	attr.disabled = 1;
	fd = ev_self(attr);
	NEED(fd >= 0);
	child(touch_1000);
	check_val("INH-06", "forked while the event was off: nothing", (long long)ev_count((int)fd),
		  0);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	before = ev_count((int)fd);
	child(touch_1000);
	CHECK_ROW("INH-06", about(ev_count((int)fd) - before, 1000),
		  "forked after ENABLE: counts although attr.disabled is set", "%lu",
		  ev_count((int)fd) - before);
}

CONFORM(groups)
{
	u64 format = PERF_FORMAT_GROUP | TIMES, v[8] = {0}, w[8] = {0};
	struct pe_attr attr = inheriting();
	struct worker work;
	long lead, member;

	attr.disabled = 1;
	attr.read_format = format;
	lead = ev_self(attr);
	attr.disabled = 0;
	member = ev_open(&attr, 0, -1, (int)lead, 0);
	check_err("READ-13", "inherit with GROUP opens", lead, 0);
	check_err("INH-08", "a member that inherits like its leader", member, 0);
	attr.inherit = 0;
	check_err("INH-08", "a member that does not inherit", try_open(&attr, 0, -1, (int)lead, 0),
		  EINVAL);
	NEED(ev_ioctl((int)lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	worker_start(&work, touch_1000);
	worker_work(&work);
	NEED(ev_read((int)lead, v, sizeof(v)) == 5 * 8);
	check_val("READ-13", "nr is the group's, children add no entries", (long long)v[0], 2);
	CHECK_ROW("READ-13", v[3] >= 1000 && v[4] >= 1000, "a living child is in both sums",
		  "%lu %lu", v[3], v[4]);
	check_val("READ-13", "leader and member saw the same", v[3] == v[4], 1);
	worker_end(&work);
	NEED(ev_ioctl((int)lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read((int)lead, w, sizeof(w)) == 5 * 8);
	CHECK_ROW("READ-13", w[3] >= v[3] && w[4] == w[3], "a dead child stays in both sums",
		  "%lu %lu", w[3], w[4]);
}

/* A child born between the openings of two members has a smaller group than its parent. */
CONFORM(group_shapes)
{
	struct pe_attr attr = inheriting();
	struct worker w;
	u64 v[8];
	long lead;

	attr.read_format = PERF_FORMAT_GROUP;
	lead = ev_self(attr);
	NEED(lead >= 0);
	worker_start(&w, touch_1000);
	worker_work(&w);
	NEED(ev_open(&attr, 0, -1, (int)lead, 0) >= 0);
	check_err("READ-13", "a living child's group has another shape",
		  ev_read((int)lead, v, sizeof(v)), ECHILD);
	worker_end(&w);
	check_err("READ-13", "once it is dead the group reads again",
		  ev_read((int)lead, v, sizeof(v)), 0);
}

static void *thread_touches(void *unused)
{
	(void)unused;
	touch_pages(1000);
	return NULL;
}

static void run_thread(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, thread_touches, NULL) == 0 &&
	     pthread_join(thread, NULL) == 0);
}

CONFORM(threads)
{
	struct pe_attr attr = inheriting();
	u64 before;
	long fd, none;

	attr.inherit_thread = 1;
	fd = ev_self(attr);
	attr.inherit_thread = attr.inherit = 0;
	none = ev_self(attr);
	NEED(fd >= 0 && none >= 0);
	run_thread();
	before = ev_count((int)fd);
	run_thread();
	CHECK_ROW("ATTR-40", about(ev_count((int)fd) - before, 1000),
		  "inherit_thread: a thread counts", "%lu", ev_count((int)fd) - before);
	before = ev_count((int)fd);
	child(touch_1000);
	CHECK_ROW("ATTR-40", ev_count((int)fd) - before < SLACK,
		  "inherit_thread: a process does not", "%lu", ev_count((int)fd) - before);
	before = ev_count((int)none);
	run_thread();
	CHECK_ROW("INH-01", ev_count((int)none) - before < SLACK,
		  "without inherit a thread does not count", "%lu", ev_count((int)none) - before);
}

CONFORM(thread_inherits)
{
	int fd = faults();
	u64 before;

	run_thread();
	before = ev_count(fd);
	run_thread();
	CHECK_ROW("INH-01", about(ev_count(fd) - before, 1000), "inherit: a thread counts", "%lu",
		  ev_count(fd) - before);
}

static pthread_barrier_t barrier;

static void *thread_forks(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	child(touch_1000);
	return NULL;
}

/* A thread that is older than the event is no child; what it forks does not count either. */
CONFORM(older_thread)
{
	pthread_t thread;
	u64 before;
	int fd;

	NEED(pthread_barrier_init(&barrier, NULL, 2) == 0);
	NEED(pthread_create(&thread, NULL, thread_forks, NULL) == 0);
	fd = faults();
	before = ev_count(fd);
	pthread_barrier_wait(&barrier);
	NEED(pthread_join(thread, NULL) == 0);
	CHECK_ROW("INH-01", ev_count(fd) - before < SLACK,
		  "an older thread's children do not count", "%lu", ev_count(fd) - before);
}

/* Ids are taken from one counter, inherited events included. */
CONFORM(ids)
{
	struct pe_attr attr = inheriting();
	u64 first = 0, second = 0;
	struct worker w;
	long a, b;

	a = ev_self(attr);
	NEED(a >= 0 && ev_ioctl((int)a, PERF_EVENT_IOC_ID, (unsigned long)&first) == 0);
	worker_start(&w, touch_1000);
	worker_work(&w);
	b = ev_self(attr);
	NEED(b >= 0 && ev_ioctl((int)b, PERF_EVENT_IOC_ID, (unsigned long)&second) == 0);
	CHECK_ROW("READ-09", second > first + 1, "an inherited event takes an id of its own",
		  "%lu then %lu", first, second);
	worker_end(&w);
}

CONFORM(close_original)
{
	struct worker w;
	int fd = faults(), copy;

	worker_start(&w, touch_1000);
	worker_work(&w);
	copy = dup(fd);
	close(fd);
	worker_work(&w);
	CHECK_ROW("INH-03", ev_count(copy) >= 2000, "one descriptor closed: children go on", "%lu",
		  ev_count(copy));
	close(copy);
	worker_work(&w);
	worker_end(&w);
	check_val("INH-03", "the event closed while a child counts: the child lives on", 1, 1);
}

CONFORM(cpu_wide)
{
	struct pe_attr attr = inheriting();
	long fd;

	if (!capable()) {
		skip_row("INH-10", "inherit on a cpu-wide event", "needs CAP_PERFMON");
		return;
	}
	attr.exclude_kernel = 0;
	fd = ev_open(&attr, -1, 0, -1, 0);
	check_err("INH-10", "inherit on a cpu-wide event", fd, 0);
}
