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
#define LONG_LOOK_NS  1000000ull
/* Threads that have done nothing since the session met them: while somebody waits, and later. */
#define PLACES_AT_ONCE 32u
#define PLACES_LATER   256u
#define PLACES_NEXT_NS 4000000ull
/* Of those that have done nothing since, so many are asked whether they were given one CPU. */
#define BOUND_AT_ONCE 64u

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
static int last_cpu(const struct guest_thread *th)
{
	char text[1024];

	return pid_task_text(th->process->pid, th->tid, "stat", text, sizeof(text))
		       ? proc_stat_cpu(text)
		       : -1;
}

bool wide_wants_places(const struct session *s)
{
	return s->wide.on || s->wide.bound || s->wide.cgroups;
}

/* Read once in an instant, in which it is wanted for the events as well. */
static u64 executed(struct guest_thread *th)
{
	return guest_thread_sum(th, METER_INSTRUCTIONS);
}

static bool has_moved(struct guest_thread *th)
{
	return th->place.executed != executed(th);
}

/*
 * Who has executed nothing since it was asked for is where it was: what is asked anyway is whether
 * it was given one CPU, and its cgroup, since those may be changed while it sleeps.
 */
static int cpu_since(struct guest_thread *th)
{
	u64 now = executed(th);
	int only = only_cpu(th);

	if (only < 0 && th->place.state == PLACE_ASKED && th->place.executed == now)
		return -1;
	th->place = (struct thread_place){.state = PLACE_ASKED, .executed = now};
	return only >= 0 ? only : last_cpu(th);
}

static void place_at(struct guest_thread *th, int cpu)
{
	struct session *s = th->process->s;

	if (cpu >= 0 && (u32)cpu < s->nr_cpus && task_cpu(th->task) != cpu)
		task_sched_in(th->task, (u32)cpu);
	if (s->wide.on || s->wide.cgroups)
		cgroup_place(th);
}

void wide_place(struct guest_thread *th)
{
	struct session *s = th->process->s;

	if (s->wide.looking || !wide_wants_places(s) || !th->task || th->tid <= 0)
		return;
	th->place.state = PLACE_MET;
	place_at(th, s->instant.caller == th ? -1 : cpu_since(th));
}

/* A look at all threads, process by process. */
struct places {
	u32 left;      /* so many of those that have been met may be asked for yet */
	u32 nr, turns; /* threads seen; one in so many is asked whether it has one CPU */
	bool all;      /* or each is, and on which it was last: they may have moved */
	enum {
		BOUND_UNKNOWN,
		BOUND_NO, /* those of the process are where they may all be */
		BOUND_PERHAPS,
	} bound;
};

/*
 * May threads of @p have been given one CPU each before somebody counted CPUs? A thread has its
 * CPUs from the one that made it, and so from the first, unless a guest said something else.
 */
static bool starts_bound(struct guest_process *p, struct places *look)
{
	const struct guest_thread *first = guest_thread_by_tid(p, (s32)p->pid);

	/* After WIRE_VIEW_PLACES is set; mate: perf_on_setaffinity() in rt/perf/perf-call.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (look->bound == BOUND_UNKNOWN)
		look->bound = __atomic_load_n(&p->s->meters.segment->bound, __ATOMIC_RELAXED) ||
					      !first || only_cpu(first) >= 0
				      ? BOUND_PERHAPS
				      : BOUND_NO;
	return look->bound == BOUND_PERHAPS;
}

/* Is @th, which sleeps, asked whether it has one CPU? Somebody outside may have given it one. */
static bool asks_sleeper(struct guest_thread *th, struct places *look)
{
	struct session *s = th->process->s;

	return look->all || look->nr % look->turns == s->wide.turn % look->turns ||
	       (th->place.state == PLACE_NEW && starts_bound(th->process, look));
}

/*
 * The same for one of all. To ask for the CPU of each takes longer than a caller should wait where
 * there are thousands. Most of so many sleep, and are on none: their turn comes a moment later, or
 * when they have done something.
 */
static void place_of_all(struct guest_thread *th, struct places *look)
{
	struct session *s = th->process->s;
	bool asked;

	if (th->tid <= 0)
		return;
	if (s->instant.caller == th) {
		place_at(th, -1);
		return;
	}
	look->nr++;
	if (look->all && th->place.state == PLACE_ASKED)
		th->place.executed = executed(th) - 1;
	asked = asks_sleeper(th, look);
	if (th->place.state == PLACE_NEW)
		th->place = (struct thread_place){.state = PLACE_MET, .executed = executed(th)};
	if (th->place.state == PLACE_MET && !look->left && !has_moved(th)) {
		int only = asked ? only_cpu(th) : -1;

		s->wide.unplaced |= only < 0;
		place_at(th, only);
		return;
	}
	look->left -= look->left && th->place.state == PLACE_MET;
	place_at(th, th->place.state == PLACE_MET || asked || has_moved(th) ? cpu_since(th) : -1);
}

static void arm(struct session *s, u64 ns)
{
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	timerfd_settime(s->wide.timer, 0, &when, NULL);
}

/* @rest: only those whose turn had not come. @moved: they may all be elsewhere. */
static void place_all(struct session *s, bool rest, bool moved)
{
	struct guest_process *p;
	struct guest_thread *th;
	struct places at = {.left = rest ? PLACES_LATER : PLACES_AT_ONCE,
			    .turns = s->guests.by_tid.n / BOUND_AT_ONCE + 1,
			    .all = moved};

	s->wide.unplaced = false;
	s->wide.looking = true;
	s->wide.turn++;
	list_for_each_entry (p, &s->guests.processes, link) {
		if (!p->pid)
			continue;
		at.bound = BOUND_UNKNOWN;
		list_for_each_entry (th, &p->threads, link) {
			if (rest && (!at.left || !th->task || th->place.state != PLACE_MET)) {
				s->wide.unplaced |= th->task && th->place.state == PLACE_MET;
				continue;
			}
			if (th->task || (s->wide.on && th->tid > 0 && !guest_thread_need_task(th)))
				place_of_all(th, &at);
		}
	}
	s->wide.looking = false;
}

static void look(struct session *s)
{
	u64 begun = session_now(), took;
	bool moved = s->wide.moved && begun >= s->wide.rest_until;

	instant_check(s);
	s->wide.looked = begun;
	if (s->wide.on)
		guests_meet(s);
	place_all(s, false, moved);
	if (!moved)
		return;
	s->wide.moved = false;
	took = session_now() - begun;
	if (took > LONG_LOOK_NS)
		s->wide.rest_until = begun + 2 * took;
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

void wide_moved_task(struct session *s, s32 tid)
{
	struct guest_thread *th = wide_wants_places(s) ? guest_find(s, tid) : NULL;

	if (th && (th->task || (s->wide.on && !guest_thread_need_task(th))))
		wide_place(th);
}

void wide_moved(struct session *s)
{
	u64 now = session_now();

	if (!wide_wants_places(s))
		return;
	s->wide.moved = true;
	if (now >= s->wide.rest_until) {
		look(s);
		return;
	}
	if (s->instant.caller)
		wide_place(s->instant.caller);
	arm(s, s->wide.rest_until - now);
}

static void tick(struct session *s, void *arg)
{
	u64 begun, next, now;

	(void)arg;
	if (!s->wide.events)
		s->wide.on = false;
	if (!s->wide.events && !s->wide.cgroups)
		s->shown.view->flags &= ~(u32)WIRE_VIEW_CGROUPS;
	if (!s->wide.events && !s->wide.bound)
		s->shown.view->flags &= ~(u32)WIRE_VIEW_PLACES;
	if (!is_looked_for(s))
		return;
	/* Of no interest until somebody asks for places again, who looks then. */
	if (!wide_wants_places(s))
		s->wide.moved = s->wide.unplaced = false;
	begun = session_now();
	if (wide_wants_places(s) && s->wide.unplaced)
		place_all(s, true, false);
	else if (wide_wants_places(s))
		look(s);
	now = session_now();
	next = now - begun;
	if (s->wide.moved)
		arm(s, max_u64(s->wide.rest_until, now + 1) - now);
	else if (s->wide.unplaced)
		arm(s, max_u64(next, PLACES_NEXT_NS));
	else
		arm(s, max_u64(next * LOOK_SHARE, LOOK_EVERY_NS));
}

void wide_tick(struct session *s)
{
	u64 times;

	if (read(s->wide.timer, &times, sizeof(times)) == sizeof(times))
		instant_run(s, tick, NULL);
}
