#include "session/task/thread-switches.h"

#include <stdlib.h>

#include "session/session-priv.h"

struct thread_switches {
	struct kernel_stops kernel;
};

void switches_watch(struct guest_thread *th)
{
	struct thread_switches *sw;

	if (!(th->process->s->track_switches && th->task && th->tid) || th->switches)
		return;
	sw = calloc(1, sizeof(*sw));
	if (!sw)
		return;
	kernel_stops_init(&sw->kernel);
	if (kernel_switches_open(&sw->kernel, th->tid))
		free(sw);
	else
		th->switches = sw;
}

void switches_opened(struct session *s, const struct event *event)
{
	struct guest_process *p;
	struct guest_thread *th;

	if (!event_attr(event)->context_switch || s->track_switches)
		return;
	s->track_switches = true;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			switches_watch(th);
}

static void tell(struct guest_thread *th, const struct kernel_note *note)
{
	struct instant *instant = &th->process->s->instant;

	instant->number++;
	instant->wall_number = instant->number;
	instant->wall_time = note->time;
	if (!(note->misc & PERF_RECORD_MISC_SWITCH_OUT) && note->cpu < th->process->s->nr_cpus &&
	    task_cpu(th->task) != (int)note->cpu)
		task_sched_in(th->task, note->cpu);
	task_switched(th->task, NULL, note->misc & PERF_RECORD_MISC_SWITCH_OUT,
		      note->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

void switches_drain(struct guest_thread *th, u64 time)
{
	struct kernel_note note;

	if (!th->switches || !th->task)
		return;
	while (kernel_stops_next(&th->switches->kernel, time, &note))
		if (note.type == PERF_RECORD_SWITCH)
			tell(th, &note);
	th->process->s->instant.number++;
}

void switches_drain_all(struct session *s)
{
	struct guest_process *p;
	struct guest_thread *th;

	if (!s->track_switches)
		return;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			switches_drain(th, session_now());
}

void switches_free(struct guest_thread *th)
{
	if (!th->switches)
		return;
	kernel_stops_release(&th->switches->kernel);
	free(th->switches);
	th->switches = NULL;
}
