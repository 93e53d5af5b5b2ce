/*
 * Events of whole CPUs [CALL-06] and of a cgroup [FLAG-03]: its tasks on all CPUs, as they come and
 * go. Needs a cgroup that we may make: root, and a hierarchy that can be written to.
 */
#include "conform/cgroup-hierarchy.h"
#include "conform/region.h"

#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define MANY 1000 /* faults that cannot be a runtime's own */

static char hierarchy[300], top[350];

static void write_to(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	NEED(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void enter(const char *dir)
{
	write_to(dir, "cgroup.procs", "0");
}

static bool no_cgroup(const char *text)
{
	if (cgroup_hierarchy(hierarchy, sizeof(hierarchy))) {
		snprintf(top, sizeof(top), "%s/conform-%d", hierarchy, (int)getpid());
		if (capable() && mkdir(top, 0755) == 0)
			return false;
	}
	skip_row("FLAG-03", text, "no cgroup can be made here");
	return true;
}

static void leave_and_remove(const char *below)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", top, below ? below : "");
	for (int tries = 0; below && rmdir(path) && tries < 100; tries++)
		sleep_ms(10);
	for (int tries = 0; rmdir(top) && tries < 100; tries++)
		sleep_ms(10);
}

/* One event a CPU. */
struct wide {
	int n, fds[256];
};

static void wide_open(struct wide *w, struct pe_attr attr, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	NEED(fd >= 0);
	attr.disabled = 0;
	w->n = (int)sysconf(_SC_NPROCESSORS_ONLN);
	NEED(w->n <= (int)(sizeof(w->fds) / sizeof(w->fds[0])));
	for (int i = 0; i < w->n; i++) {
		w->fds[i] = (int)ev_open(&attr, fd, i, -1, PERF_FLAG_PID_CGROUP);
		NEED(w->fds[i] >= 0);
	}
	close(fd);
}

static u64 wide_count(const struct wide *w)
{
	u64 sum = 0;

	for (int i = 0; i < w->n; i++)
		sum += ev_count(w->fds[i]);
	return sum;
}

static void touch_many(void)
{
	touch_pages(MANY);
}

static void check_moved(const char *text, u64 got, u64 want)
{
	CHECK_ROW("FLAG-03", got >= want && got < want + MANY / 2, text, "%lu for %lu", got, want);
}

/* What a child does in the cgroup counts, and what it does before and afterwards does not. */
CONFORM(moves)
{
	struct wide w;
	u64 before;
	pid_t pid;
	int status;

	if (no_cgroup("a task that moves"))
		return;
	touch_many();
	wide_open(&w, sw_attr(PERF_COUNT_SW_PAGE_FAULTS), top);
	touch_many();
	check_moved("what others do", wide_count(&w), 0);
	pid = fork();
	if (!pid) {
		touch_many();
		enter(top);
		touch_many();
		pid = fork();
		if (!pid) {
			touch_many();
			_exit(0);
		}
		NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
		enter(hierarchy);
		touch_many();
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	check_moved("a task that comes, makes a child, and leaves", wide_count(&w), 2 * MANY);
	before = wide_count(&w);
	touch_many();
	check_moved("nobody is there any more", wide_count(&w) - before, 0);
	leave_and_remove(NULL);
}

static long tracepoint(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	NEED(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtol(text, NULL, 10);
}

static void rename_and_call(int n)
{
	for (int i = 0; i < n; i++) {
		prctl(PR_SET_NAME, "renamed");
		syscall(SYS_getppid);
	}
}

static u64 ring_samples(const struct wide *w, struct perf_event_mmap_page *const *pages)
{
	const struct perf_event_header *h;
	u64 n = 0;

	for (int i = 0; i < w->n; i++) {
		for (u64 at = 0; at < pages[i]->data_head; at += h->size) {
			h = (const void *)((u8 *)pages[i] + 4096 + at);
			n += h->type == PERF_RECORD_SAMPLE;
		}
	}
	return n;
}

/* Occurrences are counted and sampled of its tasks alone, while others are on the same CPUs. */
CONFORM(occurrences)
{
	static const char *const names[] = {"task/task_rename", "syscalls/sys_enter_getppid"};
	static struct perf_event_mmap_page *pages[2][256];
	struct wide w[2];
	int status;
	pid_t pid;

	if (tracepoint(names[1]) < 0) {
		skip_row("FLAG-03", "tracepoints of a cgroup", "tracefs is not there");
		return;
	}
	if (no_cgroup("tracepoints of a cgroup"))
		return;
	for (int i = 0; i < 2; i++) {
		struct pe_attr attr = ev_attr(PERF_TYPE_TRACEPOINT, (u64)tracepoint(names[i]));

		attr.exclude_kernel = 0;
		attr.sample_period = 1;
		attr.sample_type = PERF_SAMPLE_TID;
		wide_open(&w[i], attr, top);
		for (int cpu = 0; cpu < w[i].n; cpu++) {
			pages[i][cpu] = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
					     w[i].fds[cpu], 0);
			NEED(pages[i][cpu] != MAP_FAILED);
		}
	}
	rename_and_call(10);
	pid = fork();
	if (!pid) {
		rename_and_call(10);
		enter(top);
		rename_and_call(20);
		pid = fork();
		if (!pid) {
			rename_and_call(30);
			_exit(0);
		}
		NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
		enter(hierarchy);
		rename_and_call(10);
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	rename_and_call(10);
	check_val("FLAG-03", "the kernel's tracepoint in a cgroup", (long)wide_count(&w[0]), 50);
	check_val("FLAG-03", "its samples", (long)ring_samples(&w[0], pages[0]), 50);
	check_val("FLAG-03", "a system call's in a cgroup", (long)wide_count(&w[1]), 50);
	check_val("FLAG-03", "its samples, too", (long)ring_samples(&w[1], pages[1]), 50);
	leave_and_remove(NULL);
}

/* Somebody else moves a task that has never said a word. */
CONFORM(moved)
{
	char number[16];
	struct worker w;
	struct wide events;
	u64 before;

	if (no_cgroup("a task that is moved"))
		return;
	worker_start(&w, touch_many);
	worker_work(&w);
	wide_open(&events, sw_attr(PERF_COUNT_SW_PAGE_FAULTS), top);
	worker_work(&w);
	check_moved("before", wide_count(&events), 0);
	snprintf(number, sizeof(number), "%d", (int)w.pid);
	write_to(top, "cgroup.procs", number);
	before = wide_count(&events);
	worker_work(&w);
	check_moved("moved by another task", wide_count(&events) - before, MANY);
	write_to(hierarchy, "cgroup.procs", number);
	before = wide_count(&events);
	worker_work(&w);
	check_moved("and back", wide_count(&events) - before, 0);
	worker_end(&w);
	leave_and_remove(NULL);
}

static u64 now(void)
{
	struct timespec ts;

	NEED(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

/* The times of all of @w: enabled, running. */
static void wide_times(const struct wide *w, u64 times[2])
{
	u64 v[3];

	times[0] = times[1] = 0;
	for (int i = 0; i < w->n; i++) {
		NEED(ev_read(w->fds[i], v, sizeof(v)) == sizeof(v));
		times[0] += v[1];
		times[1] += v[2];
	}
}

/* Its time goes by while a task of it is on a CPU, and stands still while nobody is there. */
CONFORM(times)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	u64 begin, end, before[2], after[2];
	struct wide w;

	if (no_cgroup("the time of a cgroup"))
		return;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	wide_open(&w, attr, top);
	sleep_ms(5);
	wide_times(&w, after);
	check_val("FLAG-03", "nobody has been there: no time", (long long)(after[0] + after[1]), 0);
	for (int visit = 0; visit < 2; visit++) {
		memcpy(before, after, sizeof(before));
		begin = now();
		enter(top);
		spin_ms(5);
		enter(hierarchy);
		end = now();
		wide_times(&w, after);
		CHECK_ROW("FLAG-03", after[0] > before[0] && after[0] - before[0] <= end - begin,
			  visit ? "a second visit: its time" : "a visit: its time", "%lu in %lu",
			  after[0] - before[0], end - begin);
		check_val("FLAG-03",
			  visit ? "a second visit: it was on" : "a visit: it was on all the time",
			  after[0] == after[1], 1);
		memcpy(before, after, sizeof(before));
		sleep_ms(50);
		wide_times(&w, after);
		check_val("FLAG-03",
			  visit ? "and after it no time" : "between visits no time goes by",
			  (long long)(after[0] - before[0] + after[1] - before[1]), 0);
	}
	for (int i = 0; i < w.n; i++)
		close(w.fds[i]);
	leave_and_remove(NULL);
}

/* A CPU's time, too, is counted from when an event was opened, and whatever was before. */
CONFORM(a_cpus_time)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	u64 begin, v[3];
	long fd;

	if (!capable()) {
		skip_row("READ-10", "the time of a CPU's event", "it needs CAP_PERFMON");
		return;
	}
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (int i = 0; i < 2; i++) {
		begin = now();
		fd = ev_open(&attr, -1, 0, -1, 0);
		NEED(fd >= 0);
		sleep_ms(2);
		NEED(ev_read((int)fd, v, sizeof(v)) == sizeof(v));
		CHECK_ROW("READ-10", v[1] > 0 && v[1] == v[2] && v[1] <= now() - begin,
			  i ? "the next event of a CPU: its time" : "an event of a CPU: its time",
			  "%lu and %lu", v[1], v[2]);
		close((int)fd);
		sleep_ms(50);
	}
}

static void *thread_touches(void *unused)
{
	touch_many();
	return unused;
}

/* The cgroup's descendants are part of it, threads and programs stay where they are. */
CONFORM(below)
{
	char inner[400];
	struct wide outer_events, inner_events;
	pthread_t thread;
	pid_t pid;
	int status;

	if (no_cgroup("a cgroup in a cgroup"))
		return;
	snprintf(inner, sizeof(inner), "%s/inner", top);
	NEED(mkdir(inner, 0755) == 0);
	wide_open(&outer_events, sw_attr(PERF_COUNT_SW_PAGE_FAULTS), top);
	wide_open(&inner_events, sw_attr(PERF_COUNT_SW_PAGE_FAULTS), inner);
	touch_many();
	pid = fork();
	if (!pid) {
		enter(inner);
		touch_many();
		NEED(pthread_create(&thread, NULL, thread_touches, NULL) == 0);
		NEED(pthread_join(thread, NULL) == 0);
		enter(top);
		touch_many();
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	check_moved("the inner one: a task and its thread", wide_count(&inner_events), 2 * MANY);
	check_moved("the outer one has those of the inner", wide_count(&outer_events), 3 * MANY);
	leave_and_remove("inner");
}

/* Whole CPUs have everybody's, also of a task that has never said a word, or is gone. */
CONFORM(whole_cpus)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct worker w;
	struct wide all = {.n = (int)sysconf(_SC_NPROCESSORS_ONLN)};
	u64 before;
	int status;
	pid_t pid;

	if (!capable()) {
		skip_row("CALL-06", "events of whole CPUs", "they need CAP_PERFMON");
		return;
	}
	worker_start(&w, touch_many);
	worker_work(&w);
	attr.disabled = 0;
	for (int i = 0; i < all.n; i++) {
		all.fds[i] = (int)ev_open(&attr, -1, i, -1, 0);
		NEED(all.fds[i] >= 0);
	}
	worker_work(&w);
	CHECK_ROW("CALL-06", wide_count(&all) >= MANY, "tasks that run when it is opened", "%lu",
		  wide_count(&all));
	before = wide_count(&all);
	pid = fork();
	if (!pid) {
		touch_many();
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_ROW("CALL-06", wide_count(&all) - before >= MANY, "and a task that has ended since",
		  "%lu", wide_count(&all) - before);
	worker_end(&w);
}

CONFORM(wrong)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	char path[400];
	long lead;
	int dir, file;

	if (no_cgroup("descriptors that are no cgroup's"))
		return;
	snprintf(path, sizeof(path), "%s/cgroup.procs", top);
	file = open(path, O_RDONLY);
	dir = open(top, O_RDONLY);
	NEED(file >= 0 && dir >= 0);
	check_err("FLAG-03", "a file of a cgroup",
		  try_open(&attr, file, 0, -1, PERF_FLAG_PID_CGROUP), EBADF);
	lead = ev_open(&attr, dir, 0, -1, PERF_FLAG_PID_CGROUP);
	NEED(lead >= 0);
	check_err("FLAG-03", "a member of another cgroup",
		  try_open(&attr, open(hierarchy, O_RDONLY), 0, (int)lead, PERF_FLAG_PID_CGROUP),
		  EINVAL);
	check_err("FLAG-03", "a member of the same cgroup",
		  try_open(&attr, dir, 0, (int)lead, PERF_FLAG_PID_CGROUP), 0);
	close((int)lead);
	leave_and_remove(NULL);
	check_err("FLAG-03", "a cgroup that has been removed",
		  try_open(&attr, dir, 0, -1, PERF_FLAG_PID_CGROUP), ENOENT);
}

/* Its events have the counters while a task of it is there. With CONFORM_COUNTERS=N alone. */
CONFORM(counters)
{
	static const char text[] =
		"events of a cgroup that nobody is in any more leave the counters";
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	const char *counters = getenv("CONFORM_COUNTERS");
	int n = counters ? atoi(counters) : 0, all = 0, status;
	static struct wide w[16];
	u64 v[3];
	long own[16];
	pid_t pid;

	/* Who compares says it to both worlds; then it is true of the virtual one. */
	if ((getenv("CONFORM_WORLD") && !virtual_world()) || n < 1 || n > 16) {
		skip_row("FLAG-03", text, "the number of counters is not known here");
		return;
	}
	if (no_pmu("FLAG-03", text) || no_cgroup(text))
		return;
	for (int i = 0; i < n; i++)
		wide_open(&w[i], attr, top);
	pid = fork();
	if (!pid) {
		enter(top);
		spin_ms(5);
		enter(hierarchy);
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	CHECK_ROW("FLAG-03", wide_count(&w[n - 1]) > 0, "as many events of a cgroup as counters",
		  "%lu", wide_count(&w[n - 1]));
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (int i = 0; i < n; i++) {
		own[i] = ev_self(attr);
		NEED(own[i] >= 0);
	}
	spin_ms(5);
	for (int i = 0; i < n; i++) {
		NEED(ev_read((int)own[i], v, sizeof(v)) == sizeof(v));
		all += v[0] > 0 && v[1] == v[2];
	}
	check_val("FLAG-03", text, all == n, 1);
	for (int i = 0; i < n; i++)
		for (int cpu = 0; cpu < w[i].n; cpu++)
			close(w[i].fds[cpu]);
	leave_and_remove(NULL);
}

/* Instructions: those of the part in the cgroup, and no more, to the instruction. */
CONFORM(exact)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct wide w;
	u64 before, mine;
	int own, status;
	pid_t pid;

	if (no_pmu("FLAG-03", "instructions of a cgroup") || no_cgroup("instructions of a cgroup"))
		return;
	own = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	attr.inherit = 0;
	wide_open(&w, attr, top);
	pid = fork();
	if (!pid) {
		/* Both see the same tasks, and the reading thread stands still. */
		enter(top);
		close(own);
		own = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
		before = wide_count(&w);
		REGION(own, LOOP(1048576));
		mine = ev_count(own);
		before = wide_count(&w) - before;
		CHECK_ROW("FLAG-03", mine == 2097153 + REGION_REST,
			  "the thread's own event beside the cgroup's", "%lu", mine);
		CHECK_ROW("FLAG-03", before >= mine && before < mine + 20000,
			  "instructions of the only task of a cgroup", "%lu, itself %lu", before,
			  mine);
		enter(hierarchy);
		mine = wide_count(&w);
		REGION(own, LOOP(1048576));
		CHECK_ROW("FLAG-03", wide_count(&w) == mine, "to the instruction", "%lu then %lu",
			  mine, wide_count(&w));
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	leave_and_remove(NULL);
}
