/* PR_TASK_PERF_EVENTS_DISABLE and ENABLE: every event that the calling thread opened [PRC-*]. */
#include "conform/conform.h"

#include <pthread.h>
#include <sys/prctl.h>

static int faults(pid_t pid, int group)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.disabled = 0;
	fd = ev_open(&attr, pid, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

static long long counts(int fd)
{
	u64 before = ev_count(fd);

	touch_pages(10);
	return (long long)(ev_count(fd) - before);
}

CONFORM(own)
{
	int lead = faults(0, -1), member = faults(0, lead), single = faults(0, -1);

	touch_pages(8);
	counts(lead);
	check_val("PRC-01", "numbers",
		  PR_TASK_PERF_EVENTS_DISABLE * 100 + PR_TASK_PERF_EVENTS_ENABLE, 3132);
	check_err("PRC-01", "DISABLE returns", prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0), 0);
	check_val("PRC-01", "DISABLE: a single event", counts(single), 0);
	check_val("PRC-01", "DISABLE: a leader", counts(lead), 0);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	check_val("PRC-02", "members were switched off too", counts(member), 0);
	check_err("PRC-01", "ENABLE returns", prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0), 0);
	check_faults("PRC-01", "ENABLE: a single event", counts(single), 10);
	check_faults("PRC-02", "ENABLE: a member", counts(member), 10);
	check_err("PRC-01", "other arguments are ignored",
		  prctl(PR_TASK_PERF_EVENTS_DISABLE, 1, 2, 3, 4), 0);
	check_val("PRC-01", "DISABLE with arguments", counts(single), 0);
}

CONFORM(opened_disabled)
{
	long fd = ev_self(sw_attr(PERF_COUNT_SW_PAGE_FAULTS));

	NEED(fd >= 0);
	touch_pages(8);
	counts((int)fd);
	NEED(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) == 0);
	check_faults("PRC-01", "ENABLE: an event that was opened disabled", counts((int)fd), 10);
}

static void touch_10(void)
{
	touch_pages(10);
}

static long long worker_counts(struct worker *w, int fd)
{
	u64 before = ev_count(fd);

	worker_work(w);
	return (long long)(ev_count(fd) - before);
}

CONFORM(any_target)
{
	struct worker w;
	int fd;

	worker_start(&w, touch_10);
	worker_work(&w);
	fd = faults(w.pid, -1);
	check_faults("PRC-01", "an event on a child", worker_counts(&w, fd), 10);
	NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
	check_val("PRC-01", "DISABLE by its opener stops an event on a child",
		  worker_counts(&w, fd), 0);
	NEED(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) == 0);
	check_faults("PRC-01", "ENABLE by its opener starts it", worker_counts(&w, fd), 10);
	worker_end(&w);
}

static bool worker_warm;

static void prctl_then_touch(void)
{
	if (worker_warm)
		NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
	worker_warm = true;
	touch_pages(10);
}

CONFORM(not_the_target)
{
	struct worker w;
	int fd;

	worker_start(&w, prctl_then_touch);
	worker_work(&w);
	fd = faults(w.pid, -1);
	worker_work(&w);
	check_faults("PRC-01", "DISABLE by the target does nothing to others' events",
		     worker_counts(&w, fd), 10);
	worker_end(&w);
}

static int thread_fd;

static void *thread_opens(void *unused)
{
	(void)unused;
	thread_fd = faults(0, -1);
	NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
	return NULL;
}

/* The list is the thread's, not the process's. */
CONFORM(per_thread)
{
	int fd = faults(0, -1);
	pthread_t thread;

	touch_pages(8);
	counts(fd);
	NEED(pthread_create(&thread, NULL, thread_opens, NULL) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	check_faults("PRC-01", "DISABLE by another thread leaves this one's events on", counts(fd),
		     10);
}

static int parents_fd;

static void child_disables(void)
{
	NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
}

CONFORM(not_in_child)
{
	parents_fd = faults(0, -1);
	touch_pages(8);
	counts(parents_fd);
	in_child(child_disables);
	counts(parents_fd);
	check_faults("PRC-01", "a forked child has no such events: its DISABLE stops nothing",
		     counts(parents_fd), 10);
}

static struct worker family;

static void family_work(void)
{
	touch_pages(10);
}

CONFORM(family_follows)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.disabled = 0;
	attr.inherit = 1;
	fd = ev_self(attr);
	NEED(fd >= 0);
	worker_start(&family, family_work);
	worker_work(&family);
	NEED(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) == 0);
	check_val("PRC-03", "DISABLE: inherited children follow", worker_counts(&family, (int)fd),
		  0);
	NEED(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) == 0);
	CHECK_ROW("PRC-03", worker_counts(&family, (int)fd) >= 10,
		  "ENABLE: inherited children follow", "fewer than %d", 10);
	worker_end(&family);
}
