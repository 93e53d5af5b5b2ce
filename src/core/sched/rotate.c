/*
 * Rotation [GRP-10..12]. A hardware PMU has a timer on each CPU that runs while some flexible
 * group found no room. When it fires, the group that has been on longest goes to the end of the
 * context's order and the flexible groups are scheduled anew from the start.
 *
 * Expiries of one timer stay on one grid of its interval, also over times in which it does not run.
 */
#include "core/core-priv.h"

#define NSEC_PER_MSEC 1000000ull

static u64 mux_interval(const struct pmu *pmu)
{
	return pmu->mux_interval_ms * NSEC_PER_MSEC;
}

/* To the first point of the grid that lies after @now. */
static void mux_forward(struct cpu_pmu *timer, const struct pmu *pmu, u64 now)
{
	u64 interval = mux_interval(pmu);

	if (now >= timer->mux_expires)
		timer->mux_expires += ((now - timer->mux_expires) / interval + 1) * interval;
}

void mux_start(struct cpu *cpu, struct pmu *pmu)
{
	struct cpu_pmu *timer = &cpu->pmus[pmu->slot];

	if (timer->mux_armed || pmu->class == PMU_SOFTWARE)
		return;
	timer->mux_armed = true;
	cpu->core->nr_mux_armed++;
	mux_forward(timer, pmu, core_clock(cpu->core));
}

void timer_update(struct core *core)
{
	u64 next = min_u64(core->tick, core->backlog_look);

	/* Every call ends here, and on most machines nobody ever waits. */
	for (u32 i = 0; core->nr_mux_armed && i < core->nr_cpus; i++)
		for (u32 slot = 0; slot < core->nr_pmus; slot++) {
			const struct cpu_pmu *timer = &core->cpus[i].pmus[slot];

			if (timer->mux_armed && timer->mux_expires < next)
				next = timer->mux_expires;
		}
	if (next == core->timer)
		return;
	core->timer = next;
	core->ops->timer(core->ctx, next);
}

/* Whose turn it is to wait: the first that is on, or the first at all if none is. */
static struct event *event_to_rotate(struct ctx_pmu *epc)
{
	struct event *first = list_first(&epc->flexible_active, struct event, active_link);
	struct event *leader;

	if (first)
		return first;
	list_for_each_entry (leader, &epc->ctx->flexible, group_link)
		if (leader->epc == epc && event_filter_match(leader))
			return leader;
	return NULL;
}

/*
 * A context that has not run since its last rotation is not rotated again: its groups would take
 * turns in not counting. Its timer goes on, as it may run at any moment.
 */
static bool wants_rotation(struct ctx_pmu *epc)
{
	ctx_time_update(epc->ctx);
	return epc->rotate_necessary && epc->ctx->time != epc->rotated_at;
}

/* Moves one group to the end, after the flexible groups were taken off. */
static void rotate(struct ctx_pmu *epc, struct event *leader)
{
	epc->rotated_at = epc->ctx->time;
	if (leader)
		ctx_insert_group(epc->ctx, leader);
}

static void rotate_task(struct task *task, struct pmu *pmu, struct ctx_pmu *cpu_epc)
{
	struct ctx_pmu *epc = task->ctx ? ctx_pmu_find(task->ctx, pmu) : NULL;
	struct event *leader;

	if (!epc || !wants_rotation(epc))
		return;
	/* With the CPU's groups rotating all were taken off already, and come back behind them. */
	leader = event_to_rotate(epc);
	if (!cpu_epc)
		ctx_pmu_sched_out(epc, CTX_FLEXIBLE);
	rotate(epc, leader);
	if (!cpu_epc)
		ctx_pmu_sched_in(epc, CTX_FLEXIBLE);
}

static void rotate_all_tasks(struct cpu *cpu, struct pmu *pmu, bool in)
{
	struct task *task;
	struct ctx_pmu *epc;

	list_for_each_entry (task, &cpu->tasks, cpu_link) {
		epc = task->ctx ? ctx_pmu_find(task->ctx, pmu) : NULL;
		if (!epc)
			continue;
		ctx_time_update(task->ctx);
		if (in)
			ctx_pmu_sched_in(epc, CTX_FLEXIBLE);
		else
			ctx_pmu_sched_out(epc, CTX_FLEXIBLE);
	}
}

static bool cpu_needs_rotation(struct cpu *cpu, struct pmu *pmu)
{
	struct ctx_pmu *epc = ctx_pmu_find(cpu->ctx, pmu);
	struct task *task;

	if (epc && epc->rotate_necessary)
		return true;
	list_for_each_entry (task, &cpu->tasks, cpu_link) {
		epc = task->ctx ? ctx_pmu_find(task->ctx, pmu) : NULL;
		if (epc && epc->rotate_necessary)
			return true;
	}
	return false;
}

static void cpu_rotate(struct cpu *cpu, struct pmu *pmu)
{
	struct ctx_pmu *epc = ctx_pmu_find(cpu->ctx, pmu);
	struct event *leader;
	struct task *task;

	if (!epc || !wants_rotation(epc)) {
		list_for_each_entry (task, &cpu->tasks, cpu_link)
			rotate_task(task, pmu, NULL);
		return;
	}
	/* Who waits next is decided while everyone is still where he was. */
	leader = event_to_rotate(epc);
	list_for_each_entry (task, &cpu->tasks, cpu_link)
		rotate_task(task, pmu, epc);
	rotate_all_tasks(cpu, pmu, false);
	ctx_pmu_sched_out(epc, CTX_FLEXIBLE);
	rotate(epc, leader);
	ctx_pmu_sched_in(epc, CTX_FLEXIBLE);
	rotate_all_tasks(cpu, pmu, true);
}

static void timer_fire(struct cpu *cpu, struct pmu *pmu, u64 now)
{
	struct cpu_pmu *timer = &cpu->pmus[pmu->slot];

	if (!timer->mux_armed || timer->mux_expires > now)
		return;
	if (!cpu_needs_rotation(cpu, pmu)) {
		timer->mux_armed = false;
		cpu->core->nr_mux_armed--;
		return;
	}
	cpu_rotate(cpu, pmu);
	mux_forward(timer, pmu, now);
}

void core_timer_run(struct core *core)
{
	u64 now = core_clock(core);
	struct pmu *pmu;

	for (u32 i = 0; core->nr_mux_armed && i < core->nr_cpus; i++)
		list_for_each_entry (pmu, &core->pmus, link)
			timer_fire(&core->cpus[i], pmu, now);
	period_tick(core);
	core_backlogs_write(core);
}
