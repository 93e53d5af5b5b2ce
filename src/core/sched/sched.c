/*
 * Who is on a counter [GRP-01..13]; doc/core.md, "Scheduling". The order is always: CPU pinned,
 * task pinned, CPU flexible, task flexible. Within one pass over a context's groups the first
 * hardware group that finds no room bars all later ones (no back-filling with smaller groups); each
 * pass starts afresh.
 *
 * Every function here wants the time of the contexts it touches to be up to date, and keeps it so.
 */
#include "core/core-priv.h"

bool event_filter_match(const struct event *event)
{
	const struct cpu *cpu = event->ctx->cpu;

	if (!cpu || (event->cpu != -1 && (u32)event->cpu != cpu->nr))
		return false;
	if (event->epc->pmu->on_cpu && !event->epc->pmu->on_cpu(event->epc->pmu, cpu->nr))
		return false;
	/* Of a cgroup's event of a CPU only its own tasks tell. */
	if (event->standin && event->parent->cgroup &&
	    !task_in_cgroup(event->ctx->task, event->parent->cgroup))
		return false;
	return !event->cgroup || cgroup_active(event->cgroup, cpu);
}

/* Of a group it is the leader that is pinned or not. */
u32 event_sched_type(const struct event *event)
{
	u32 type = event->leader->attr.pinned ? CTX_PINNED : CTX_FLEXIBLE;

	return event->ctx->task ? type : type | CTX_CPU;
}

void event_sched_out(struct event *event)
{
	struct ctx_pmu *epc = event->epc;
	enum event_state state = EVENT_INACTIVE;

	if (event->state != EVENT_ACTIVE)
		return;
	list_del(&event->active_link);
	event->pmu->del(event, PMU_EF_UPDATE);
	if (event->pending_disable) {
		event->pending_disable = false;
		state = EVENT_OFF;
	}
	event_set_state(event, state);
	if (!event_is_software(event))
		epc->nr_active--;
	if (event->attr.exclusive || !epc->nr_active)
		epc->exclusive = false;
	event_page_update(event);
}

void group_sched_out(struct event *leader)
{
	struct event *sibling;

	if (leader->state != EVENT_ACTIVE)
		return;
	event_sched_out(leader);
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		event_sched_out(sibling);
}

static int event_sched_in(struct event *event)
{
	struct ctx_pmu *epc = event->epc;

	if (event->state <= EVENT_OFF)
		return 0;
	event_set_state(event, EVENT_ACTIVE);
	period_sched_in(event);
	itrace_start(event);
	if (event->pmu->add(event, PMU_EF_START)) {
		event_set_state(event, EVENT_INACTIVE);
		return -EAGAIN;
	}
	if (!event_is_software(event))
		epc->nr_active++;
	if (event->attr.exclusive)
		epc->exclusive = true;
	event_page_update(event);
	return 0;
}

static int group_sched_in(struct event *leader)
{
	struct pmu *pmu = leader->epc->pmu;
	struct event *sibling, *failed = NULL;

	pmu_start_txn(pmu);
	if (event_sched_in(leader))
		goto cancel;
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		if (event_sched_in(sibling)) {
			failed = sibling;
			goto undo;
		}
	}
	if (!pmu_commit_txn(pmu))
		return 0;
undo:
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		if (sibling == failed)
			break;
		event_sched_out(sibling);
	}
	event_sched_out(leader);
cancel:
	pmu_cancel_txn(pmu);
	return -EAGAIN;
}

/* Is an exclusive group on, where @epc's groups would want to go? */
static bool barred(const struct ctx_pmu *epc)
{
	const struct ctx *ctx = epc->ctx;
	const struct ctx_pmu *other;
	const struct task *task;

	if (epc->exclusive)
		return true;
	if (ctx->task) {
		other = ctx_pmu_find(ctx->cpu->ctx, epc->pmu);
		return other && other->exclusive;
	}
	list_for_each_entry (task, &ctx->cpu->tasks, cpu_link) {
		other = task->ctx ? ctx_pmu_find(task->ctx, epc->pmu) : NULL;
		if (other && other->exclusive)
			return true;
	}
	return false;
}

static bool group_can_go_on(struct event *leader, bool can_add_hw)
{
	if (leader->group_pure_sw)
		return true;
	if (barred(leader->epc))
		return false;
	if (leader->attr.exclusive && !list_empty(event_active_list(leader)))
		return false;
	return can_add_hw;
}

static void group_failed(struct event *leader)
{
	struct ctx_pmu *epc = leader->epc;

	if (leader->attr.pinned) {
		event_set_state(leader, EVENT_ERROR);
		event_wake(leader);
		return;
	}
	epc->rotate_necessary = true;
	mux_start(epc->ctx->cpu, epc->pmu);
	event_page_update(leader);
}

/* One pass over one class of groups of one PMU. */
static void groups_sched_in(struct ctx_pmu *epc, struct list *groups)
{
	struct event *leader;
	bool can_add_hw = true;

	list_for_each_entry (leader, groups, group_link) {
		if (leader->epc != epc || leader->state <= EVENT_OFF || !event_filter_match(leader))
			continue;
		if (leader->state == EVENT_ACTIVE)
			continue;
		if (group_can_go_on(leader, can_add_hw) && !group_sched_in(leader))
			list_add_tail(&leader->active_link, event_active_list(leader));
		if (leader->state == EVENT_INACTIVE) {
			can_add_hw = false;
			group_failed(leader);
		}
	}
}

void ctx_pmu_sched_in(struct ctx_pmu *epc, u32 what)
{
	if (what & CTX_PINNED)
		groups_sched_in(epc, &epc->ctx->pinned);
	if (what & CTX_FLEXIBLE)
		groups_sched_in(epc, &epc->ctx->flexible);
}

void ctx_pmu_sched_out(struct ctx_pmu *epc, u32 what)
{
	struct event *leader, *tmp;

	if (what & CTX_PINNED)
		list_for_each_entry_safe (leader, tmp, &epc->pinned_active, active_link)
			group_sched_out(leader);
	if (what & CTX_FLEXIBLE) {
		list_for_each_entry_safe (leader, tmp, &epc->flexible_active, active_link)
			group_sched_out(leader);
		/* Whoever has no room when they come back says so again. */
		epc->rotate_necessary = false;
	}
}

void ctx_sched_out(struct ctx *ctx, struct pmu *pmu, u32 what)
{
	struct ctx_pmu *epc;

	ctx_time_update(ctx);
	what &= ctx->is_active & CTX_ALL;
	/* With @pmu the others stay on, so what the context as a whole is does not change. */
	if (!pmu)
		ctx->is_active &= ~what;
	list_for_each_entry (epc, &ctx->pmus, link)
		if (!pmu || epc->pmu == pmu)
			ctx_pmu_sched_out(epc, what);
}

static void ctx_sched_in(struct ctx *ctx, struct pmu *pmu, u32 what)
{
	struct ctx_pmu *epc;

	if (!ctx->nr_events)
		return;
	ctx_time_start(ctx);
	ctx->is_active |= what & CTX_ALL;
	list_for_each_entry (epc, &ctx->pmus, link)
		if (!pmu || epc->pmu == pmu)
			ctx_pmu_sched_in(epc, what);
}

/* @only, or NULL: every task on @cpu. */
static void tasks_sched_out(struct cpu *cpu, struct task *only, struct pmu *pmu, u32 what)
{
	struct task *task;

	if (only) {
		ctx_sched_out(only->ctx, pmu, what);
		return;
	}
	list_for_each_entry (task, &cpu->tasks, cpu_link)
		if (task->ctx)
			ctx_sched_out(task->ctx, pmu, what);
}

static void tasks_sched_in(struct cpu *cpu, struct task *only, struct pmu *pmu, u32 what)
{
	struct task *task;

	if (only) {
		ctx_sched_in(only->ctx, pmu, what);
		return;
	}
	list_for_each_entry (task, &cpu->tasks, cpu_link)
		if (task->ctx)
			ctx_sched_in(task->ctx, pmu, what);
}

void cpu_resched(struct cpu *cpu, struct task *task, struct pmu *pmu, u32 what)
{
	u32 cpu_out = 0;

	/* Pinned groups come first, so the flexible ones make room. */
	if (what & CTX_PINNED)
		what |= CTX_FLEXIBLE;
	if (what & CTX_CPU)
		cpu_out = what & CTX_ALL;
	else if (what & CTX_PINNED)
		cpu_out = CTX_FLEXIBLE;
	tasks_sched_out(cpu, task, pmu, what & CTX_ALL);
	ctx_sched_out(cpu->ctx, pmu, cpu_out);
	/*
	 * A part that was not taken off has nothing that could newly go on, except when it is new.
	 */
	if (cpu_out & CTX_PINNED || !(cpu->ctx->is_active & CTX_PINNED))
		ctx_sched_in(cpu->ctx, pmu, CTX_PINNED);
	tasks_sched_in(cpu, task, pmu, CTX_PINNED);
	if (cpu_out & CTX_FLEXIBLE || !(cpu->ctx->is_active & CTX_FLEXIBLE))
		ctx_sched_in(cpu->ctx, pmu, CTX_FLEXIBLE);
	tasks_sched_in(cpu, task, pmu, CTX_FLEXIBLE);
}

/*
 * Where nobody waits for a counter and the new group finds one as well, everybody is on, whatever
 * the order. So the others are left alone then: to take all off and put them back costs the more
 * the more there are.
 */
static bool goes_on_beside(struct event *leader)
{
	struct ctx_pmu *epc = leader->epc, *of_cpu;
	struct ctx *ctx = epc->ctx;

	/* A CPU's event takes turns with those of every task that is there: not for this. */
	if (!ctx->task || !event_is_leader(leader) || leader->state != EVENT_INACTIVE ||
	    leader->attr.exclusive ||
	    !(ctx->is_active & (leader->attr.pinned ? CTX_PINNED : CTX_FLEXIBLE)) ||
	    !event_filter_match(leader))
		return false;
	of_cpu = ctx_pmu_find(ctx->cpu->ctx, epc->pmu);
	if (epc->rotate_necessary || (of_cpu && of_cpu->rotate_necessary) || barred(epc))
		return false;
	if (group_sched_in(leader))
		return false;
	list_add_tail(&leader->active_link, event_active_list(leader));
	return true;
}

void event_resched(struct event *event)
{
	const struct ctx *ctx = event->ctx;

	if (!goes_on_beside(event))
		cpu_resched(ctx->cpu, ctx->task, event->epc->pmu, event_sched_type(event));
}

/* @task comes to its CPU: the order is that of every pass. */
static void task_events_in(struct task *task)
{
	struct cpu *cpu = task->cpu;
	bool flip = !list_empty(&task->ctx->pinned);

	task->ctx->cpu = cpu;
	if (flip)
		ctx_sched_out(cpu->ctx, NULL, CTX_FLEXIBLE);
	ctx_sched_in(task->ctx, NULL, CTX_PINNED);
	if (flip)
		ctx_sched_in(cpu->ctx, NULL, CTX_FLEXIBLE);
	ctx_sched_in(task->ctx, NULL, CTX_FLEXIBLE);
}

static void pmus_sched_task(struct task *task, struct cpu *cpu, bool in)
{
	struct pmu *pmu;

	list_for_each_entry (pmu, &task->core->pmus, link)
		if (pmu->sched_task)
			pmu->sched_task(pmu, task, cpu, in);
}

/* A cgroup's first task came, or its last one left: its events go on or off with all the CPU's. */
static void cgroup_switch(struct task *task, struct cpu *cpu, bool in)
{
	struct ctx *ctx = cpu->ctx;
	bool resched = ctx->nr_cgroup && task->cgroup;

	if (resched)
		ctx_sched_out(ctx, NULL, CTX_ALL);
	if (in)
		cgroup_enter(task->cgroup, cpu);
	else
		cgroup_leave(task->cgroup, cpu);
	if (resched) {
		ctx_sched_in(ctx, NULL, CTX_PINNED);
		ctx_sched_in(ctx, NULL, CTX_FLEXIBLE);
	}
}

void task_sched_in(struct task *task, u32 nr)
{
	struct core *core = task->core;
	struct cpu *cpu;

	CHECK(nr < core->nr_cpus && !task->dead);
	cpu = &core->cpus[nr];
	if (task->cpu == cpu)
		return;
	task_sched_out(task);
	ctx_time_update(cpu->ctx);
	task->cpu = cpu;
	task->last_cpu = nr;
	list_add_tail(&task->cpu_link, &cpu->tasks);
	pmus_sched_task(task, cpu, true);
	cgroup_switch(task, cpu, true);
	if (task->ctx)
		task_events_in(task);
	core_settle(core);
}

void task_sched_out(struct task *task)
{
	struct cpu *cpu = task->cpu;

	if (!cpu)
		return;
	ctx_time_update(cpu->ctx);
	if (task->ctx) {
		ctx_sched_out(task->ctx, NULL, CTX_ALL);
		task->ctx->is_active = 0;
		task->ctx->cpu = NULL;
	}
	cgroup_switch(task, cpu, false);
	pmus_sched_task(task, cpu, false);
	list_del(&task->cpu_link);
	task->cpu = NULL;
	core_settle(task->core);
}
