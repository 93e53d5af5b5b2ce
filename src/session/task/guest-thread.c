/* Threads of guests: knowing them, watching them, their tasks and their ends. */
#include <errno.h>
#include <stdlib.h>

#include "abi/runs.h"
#include "session/session-priv.h"

struct guest_thread *guest_thread_new(struct guest_process *p, s32 tid, u32 meter)
{
	struct guest_thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->process = p;
	th->meter = WIRE_NO_METER;
	list_init(&th->invalid_link);
	guest_thread_set_tid(th, tid);
	clock_init(&th->clock);
	guest_thread_set_meter(th, meter);
	list_add_tail(&th->link, &p->threads);
	return th;
}

struct guest_thread *guest_thread_by_tid(struct guest_process *p, s32 tid)
{
	struct hash_link *l = tid ? hash_find(&p->s->guests.by_tid, (u64)tid) : NULL;

	for (; l; l = hash_next(l)) {
		struct guest_thread *th = container_of(l, struct guest_thread, by_tid);

		if (th->process == p)
			return th;
	}
	return NULL;
}

struct guest_thread *guest_thread_by_meter(struct guest_process *p, u32 meter)
{
	struct hash_link *l = hash_find(&p->s->guests.by_meter, meter);

	for (; l; l = hash_next(l)) {
		struct guest_thread *th = container_of(l, struct guest_thread, by_meter);

		if (th->process == p)
			return th;
	}
	return NULL;
}

struct guest_thread *guest_thread_by_token(struct guest_process *p, u32 token)
{
	struct hash_link *l = token ? hash_find(&p->s->guests.by_token, token) : NULL;

	for (; l; l = hash_next(l)) {
		struct guest_thread *th = container_of(l, struct guest_thread, by_token);

		if (th->process == p)
			return th;
	}
	return NULL;
}

void guest_thread_set_token(struct guest_thread *th, u32 token)
{
	struct guests *g = &th->process->s->guests;

	hash_del(&g->by_token, &th->by_token);
	th->token = token;
	if (token)
		hash_add(&g->by_token, &th->by_token, token);
}

void guest_thread_set_tid(struct guest_thread *th, s32 tid)
{
	struct guests *g = &th->process->s->guests;

	if (th->tid != tid) {
		hash_del(&g->by_tid, &th->by_tid);
		th->tid = tid;
		if (tid)
			hash_add(&g->by_tid, &th->by_tid, (u64)tid);
	}
	if (th->task)
		task_set_ids(th->task, tid, th->process->pid);
	/* It is there, and so is its runtime. */
	trace_stops(th, tid != 0);
	records_watch(th);
}

void guest_thread_told_cpu(struct guest_thread *th, u32 cpu)
{
	if (cpu < th->process->s->nr_cpus && task_cpu(th->task) != (int)cpu)
		task_sched_in(th->task, cpu);
}

void guest_thread_learn_tid(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);
	s32 tid;

	if (th->tid || !m || !th->process->pid || th->process->same_ns == 0 ||
	    __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != METER_RUNNING)
		return;
	tid = (s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED);
	if ((pid_t)m->pid == th->process->pid && tid > 0 && pid_has_tid(th->process->pid, tid))
		guest_thread_set_tid(th, tid);
}

u32 guest_thread_to_tell(const struct guest_thread *th)
{
	return th->process->s->track_watch | WIRE_WATCH_TASKS | WIRE_WATCH_EXIT | WIRE_WATCH_EXEC |
	       (clock_outlives() ? 0 : WIRE_WATCH_END) | (th->clock.faults ? WIRE_WATCH_FAULTS : 0);
}

void guest_thread_watch(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);

	if (m)
		__atomic_store_n(&m->watch, guest_thread_to_tell(th), __ATOMIC_SEQ_CST);
	trace_watch(th);
}

/*
 * All threads of a process must tell of an exec, as it ends those that are watched. When the first
 * one is, the others are marked; of threads made later the runtime sees to it (perf_exec() in
 * rt/perf/perf-task.c). The scan goes by what guests wrote; a wrong pid costs its writer a message.
 */
static void watch_process(struct guest_process *p)
{
	struct session *s = p->s;
	struct meter *any = NULL;
	struct guest_thread *th;
	struct meter *m;
	u32 pid;

	if (p->watched)
		return;
	list_for_each_entry (th, &p->threads, link)
		if (!any)
			any = guest_thread_meter(th);
	if (!any)
		return;
	p->watched = true;
	pid = __atomic_load_n(&any->pid, __ATOMIC_RELAXED);
	for (u32 i = 0; (m = meters_next(&s->meters, &i)); i++)
		if (m->pid == pid && m->state == METER_RUNNING)
			__atomic_fetch_or(&m->watch, WIRE_WATCH_EXEC, __ATOMIC_RELAXED);
}

/*
 * The page of a watched thread is not free before its counts have been taken; its runtime leaves
 * that to the session, as it does when it is killed.
 */
static void release_meter(struct session *s, struct meter *m, u32 index)
{
	u32 exited = METER_EXITED;

	__atomic_store_n(&m->watch, 0, __ATOMIC_SEQ_CST);
	if (meter_run_keeps(s->meters.segment, m->run) ||
	    !__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	meter_note_freed(s->meters.segment, index);
}

/*
 * Was it too late to watch @th? Watch before state, mate: release() in rt/task/meter-page.c. A
 * thread whose call is being answered is there.
 */
static bool has_left(const struct guest_thread *th)
{
	const struct meter *m = guest_thread_meter(th);

	return m && th->process->s->instant.caller != th &&
	       (__atomic_load_n(&m->state, __ATOMIC_SEQ_CST) != METER_RUNNING ||
		(s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED) !=
			(th->guest_tid ? th->guest_tid : th->tid));
}

int guest_thread_need_task(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);

	instant_check(th->process->s);
	if (th->task)
		return 0;
	th->task = task_new(th->process->s->core, th->tid, th->process->pid, th);
	if (!th->task)
		return -ENOMEM;
	task_sched_in(th->task, 0);
	guest_thread_watch(th);
	if (has_left(th)) {
		task_exit(th->task);
		th->task = NULL;
		snapshots_thread_leaves(th);
		if (m->state == METER_EXITED)
			release_meter(th->process->s, m, th->meter);
		return -ESRCH;
	}
	watch_process(th->process);
	records_watch(th);
	if (th->process->s->wide.on || th->process->s->wide.cgroups)
		wide_place(th);
	return 0;
}

void guest_thread_end(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);
	struct guest_process *p = th->process;
	bool had_task;

	instant_check(p->s);
	if (p->s->instant.caller == th)
		p->s->instant.caller = NULL;
	trace_drain(th);
	records_drain(th, session_now());
	had_task = th->task;
	if (had_task)
		task_exit(th->task);
	th->task = NULL;
	snapshots_thread_leaves(th);
	/* Another thread may take it then. */
	if (had_task && m)
		release_meter(p->s, m, th->meter);
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		if (p->callers[i] == th)
			p->callers[i] = NULL;
	clock_release(&th->clock);
	trace_free(th);
	records_free(th);
	free(th->counts.modeled);
	hash_del(&p->s->guests.by_tid, &th->by_tid);
	hash_del(&p->s->guests.by_meter, &th->by_meter);
	hash_del(&p->s->guests.by_token, &th->by_token);
	list_del(&th->link);
	allowance_give_memory(&p->s->memory, &th->memory);
	free(th);
}
