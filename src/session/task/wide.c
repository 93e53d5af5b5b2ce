/*
 * Events of whole CPUs and of cgroups concern every guest, also those that have never said a word.
 * While there are such events the session looks for guests by itself, asks where they run, and what
 * cgroups they are in: when an event is opened, read or changed, when a guest has written to a
 * cgroup's file or said where a task may run, and in between at intervals, since nobody tells of
 * migrations and of moves from outside. For events of a task on one CPU it looks where the tasks
 * are that it knows.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "session/session-priv.h"

#define LOOK_EVERY_NS 20000000ull
#define LOOK_SHARE    20u /* of its time the session looks at most one part in so many */
#define FRESH_NS      2000000ull

/* The only CPU that @th may be on, or -1. It may sleep, and be nowhere else when it wakes. */
static int only_cpu(const struct guest_thread *th)
{
	cpu_set_t set;
	int cpu = 0;

	if (sched_getaffinity(th->tid, sizeof(set), &set) || CPU_COUNT(&set) != 1)
		return -1;
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

/* The CPU that @th was last on, as the kernel says; -1: it does not. */
static int cpu_of(const struct guest_thread *th)
{
	char text[1024], *p;
	int only = only_cpu(th);

	if (only >= 0)
		return only;
	if (!pid_task_text(th->process->pid, th->tid, "stat", text, sizeof(text)))
		return -1;
	/* The name may hold anything; behind it the state is field 3 and the CPU field 39. */
	p = strrchr(text, ')');
	for (int field = 2; p && field < 39; field++)
		p = strchr(p + 1, ' ');
	return p ? atoi(p) : -1;
}

bool wide_wants_places(const struct session *s)
{
	return s->wide.on || s->wide.bound || s->wide.cgroups;
}

void wide_place(struct guest_thread *th)
{
	struct session *s = th->process->s;
	int cpu;

	if (!wide_wants_places(s) || !th->task || th->tid <= 0)
		return;
	cpu = s->instant.caller == th ? -1 : cpu_of(th);
	if (cpu >= 0 && (u32)cpu < s->nr_cpus && task_cpu(th->task) != cpu)
		task_sched_in(th->task, (u32)cpu);
	if (s->wide.on || s->wide.cgroups)
		cgroup_place(th);
}

static void arm(struct session *s, u64 ns)
{
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	timerfd_settime(s->wide.timer, 0, &when, NULL);
}

static void look(struct session *s)
{
	struct guest_process *p;
	struct guest_thread *th;

	instant_check(s);
	s->wide.looked = session_now();
	if (s->wide.on)
		guests_meet(s);
	list_for_each_entry (p, &s->guests.processes, link) {
		if (!p->pid)
			continue;
		list_for_each_entry (th, &p->threads, link) {
			if (th->task)
				wide_place(th);
			else if (s->wide.on && th->tid > 0 && guest_thread_need_task(th))
				continue; /* it has just ended */
		}
	}
}

static bool is_bound(const struct event *event)
{
	return event->target && event->cpu >= 0;
}

static bool samples_cgroups(const struct event *event)
{
	return event_is_sampling(event) && event_attr(event)->sample_type & PERF_SAMPLE_CGROUP;
}

/* The kernel tells of it when somebody looks. */
static bool is_recorded(const struct event *event)
{
	return event_attr(event)->context_switch || probe_is_kernel(event);
}

static bool is_looked_for(const struct session *s)
{
	return s->wide.events || s->wide.bound || s->wide.cgroups || s->wide.switching ||
	       s->wide.recording;
}

void wide_recording(struct session *s)
{
	if (!s->wide.recording && !is_looked_for(s))
		arm(s, LOOK_EVERY_NS);
	s->wide.recording = true;
	s->track_records = true;
}

void wide_opened(struct session *s, const struct event *event)
{
	bool switching = is_recorded(event), cgroups = samples_cgroups(event);

	if (event->target && event->cpu < 0 && !switching && !cgroups)
		return;
	if (!is_looked_for(s))
		arm(s, LOOK_EVERY_NS);
	s->wide.switching += switching;
	s->track_records |= switching;
	s->wide.cgroups += cgroups;
	if (cgroups) {
		s->shown.view->flags |= WIRE_VIEW_CGROUPS;
		look(s);
	}
	if (event->target && event->cpu < 0)
		return;
	s->shown.view->flags |= WIRE_VIEW_PLACES;
	if (is_bound(event)) {
		s->wide.bound++;
		wide_place(task_host(event->target));
		return;
	}
	s->wide.events++;
	s->wide.on = true;
	/* Who joins from now on says so before his first instruction. */
	s->shown.view->flags |= WIRE_VIEW_LAUNCH;
	if (event->cgroup)
		s->shown.view->flags |= WIRE_VIEW_CGROUPS;
	look(s);
}

void wide_closed(struct session *s, const struct event *event)
{
	s->wide.events -= !event->target;
	s->wide.bound -= is_bound(event);
	s->wide.switching -= is_recorded(event);
	s->wide.cgroups -= samples_cgroups(event);
}

void wide_look(struct session *s, const struct event *event)
{
	struct guest_thread *th = is_bound(event) ? task_host(event->target) : NULL;

	if (th && list_empty(&event->children))
		wide_place(th);
	else if ((!event->target || is_bound(event)) && session_now() - s->wide.looked > FRESH_NS)
		look(s);
}

void wide_moved(struct session *s)
{
	if (wide_wants_places(s))
		look(s);
}

static void tick(struct session *s, void *arg)
{
	u64 begun, next;

	(void)arg;
	if (!s->wide.events)
		s->wide.on = false;
	if (!s->wide.events && !s->wide.cgroups)
		s->shown.view->flags &= ~(u32)WIRE_VIEW_CGROUPS;
	if (!s->wide.events && !s->wide.bound)
		s->shown.view->flags &= ~(u32)WIRE_VIEW_PLACES;
	if (!is_looked_for(s))
		return;
	begun = session_now();
	if (wide_wants_places(s))
		look(s);
	next = (session_now() - begun) * LOOK_SHARE;
	arm(s, next > LOOK_EVERY_NS ? next : LOOK_EVERY_NS);
}

void wide_tick(struct session *s)
{
	u64 times;

	if (read(s->wide.timer, &times, sizeof(times)) == sizeof(times))
		instant_run(s, tick, NULL);
}
