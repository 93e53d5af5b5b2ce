/* Free-running counters of a CPU out of those of its tasks. */
#include "pmu/source.h"

#include "base/check.h"
#include "core/core.h"
#include "core/event/event.h"

static struct source_pmu *source_pmu(struct pmu *pmu)
{
	return container_of(pmu, struct source_pmu, pmu);
}

static u64 value(struct pmu *pmu, struct task *task, u32 what)
{
	const struct source_pmu *p = source_pmu(pmu);

	return p->read ? p->read(pmu, task, what) : p->source->read(p->source->ctx, task, what);
}

static u64 cpu_sum(struct pmu *pmu, struct cpu *cpu, struct cgroup *cgroup, u32 what)
{
	const struct source_cpu *here = cgroup ? pmu_cgroup(pmu, cgroup, cpu)
					       : (struct source_cpu *)pmu_cpu(pmu, cpu);
	u64 sum = here->folded[what];
	struct task *task;

	for (task = cpu_next_task(cpu, NULL); task; task = cpu_next_task(cpu, task))
		if (!cgroup || task_in_cgroup(task, cgroup))
			sum += value(pmu, task, what);
	return sum;
}

/* What @event, which is on, counts from: its task's counter, or its CPU's (and cgroup's) sum. */
static u64 raw(struct event *event, u32 what)
{
	struct task *task = event_on_task(event);

	if (what == SOURCE_CLOCK)
		return event_time(event);
	if (what == SOURCE_NOTHING)
		return 0;
	CHECK(what < SOURCE_MAX);
	if (task)
		return value(event->pmu, task, what);
	return cpu_sum(event->pmu, event_on_cpu(event), event->cgroup, what);
}

static u64 counter(struct event *event)
{
	return raw(event, (u32)event->hw.what);
}

static struct coverage measured(struct event *event)
{
	const struct coverage *what = &event->hw.measure;

	if (!what->covered)
		return (struct coverage){0};
	return (struct coverage){.executed = raw(event, (u32)what->executed),
				 .covered = raw(event, (u32)what->covered)};
}

/* @task comes to @cpu, or leaves it. */
static void fold(struct pmu *pmu, struct task *task, struct cpu *cpu, u32 what, bool in)
{
	u64 has = value(pmu, task, what), add = in ? 0 - has : has;
	struct source_cpu *here = pmu_cpu(pmu, cpu);

	here->folded[what] += add;
	for (struct cgroup *c = task_cgroup(task); c; c = cgroup_parent(c)) {
		here = pmu_cgroup(pmu, c, cpu);
		if (here)
			here->folded[what] += add;
	}
}

void source_sched_task(struct pmu *pmu, struct task *task, struct cpu *cpu, bool in)
{
	const struct source_pmu *p = source_pmu(pmu);

	if (!p->watchers)
		return;
	for (u32 what = 0; what < SOURCE_MAX; what++)
		if (p->watched[what])
			fold(pmu, task, cpu, what, in);
}

static void watch(struct event *event, s32 by)
{
	struct source_pmu *p = source_pmu(event->pmu);

	if (event->target || event->hw.what >= SOURCE_MAX)
		return;
	p->watchers += (u32)by;
	p->watched[event->hw.what] += (u32)by;
	if (!event->hw.measure.covered)
		return;
	p->watched[event->hw.measure.executed] += (u32)by;
	p->watched[event->hw.measure.covered] += (u32)by;
}

void source_opened(struct event *event)
{
	watch(event, 1);
}

void source_destroy(struct event *event)
{
	struct source_pmu *p = source_pmu(event->pmu);

	if (event->hw.host_periods && event_on_task(event))
		p->source->forget(p->source->ctx, event, event_on_task(event));
	watch(event, -1);
}

#define LATE_MAX 1000u /* periods */

/* In hw.priv: the count at which the task stops next, and how much further each time. */
enum { ARMED_NEXT, ARMED_PERIOD };

static bool samples(struct event *event)
{
	return event_is_sampling(event) && !event->hw.no_interrupt && !event->hw.host_periods &&
	       !event->hw.by_tasks && source_pmu(event->pmu)->source->arm &&
	       event->hw.what < SOURCE_MAX;
}

static u64 next_stop(const struct event *event)
{
	return event->hw.prev + (u64)event->hw.period_left;
}

static void arm(struct event *event)
{
	const struct pmu_source *source = source_pmu(event->pmu)->source;
	struct hw_event *hw = &event->hw;

	hw->priv[ARMED_NEXT] = next_stop(event);
	hw->priv[ARMED_PERIOD] = hw->sample_period;
	source->arm(source->ctx, event, event_on_task(event), (u32)hw->what, hw->priv[ARMED_NEXT],
		    hw->sample_period);
}

void source_sampling(struct event *event)
{
	event->hw.no_interrupt = event->hw.what != SOURCE_NOTHING &&
				 (event->hw.what >= SOURCE_MAX ||
				  !source_pmu(event->pmu)->source->arm);
	event->hw.by_tasks = event_is_sampling(event) && !event->target &&
			     event->hw.what != SOURCE_NOTHING && !event->hw.no_interrupt;
}

void source_stopped(struct event *event, const struct sample_facts *facts)
{
	if (event->hw.state & HW_STOPPED)
		return;
	source_read(event);
	(void)event_overflow(event, facts, false);
}

/*
 * What is due, once for each period: a task that takes notice late may be several behind, and says
 * so. Who is behind by more than that begins anew.
 */
static bool take_periods(struct event *event, const struct sample_facts *facts, bool may_throttle)
{
	u64 most = min_u64(facts->periods ? facts->periods : 1, LATE_MAX);
	struct hw_event *hw = &event->hw;

	for (u64 i = 0; i < most; i++) {
		s64 period = (s64)hw->sample_period, left;

		source_read(event);
		left = hw->period_left;
		if (!event_period_reached(event, facts, may_throttle))
			return i > 0;
		/* It may have been stopped, or begun anew, on the way. */
		if (left > -period || hw->state & HW_STOPPED || event->attr.freq ||
		    (s64)hw->sample_period != period)
			return true;
		if (i + 1 < most)
			hw->period_left = left + period;
	}
	return true;
}

bool source_period_reached(struct event *event, const struct sample_facts *facts, bool may_throttle)
{
	struct hw_event *hw = &event->hw;
	u64 next, armed;

	if (!take_periods(event, facts, may_throttle))
		return false;
	/* It may have been stopped, or armed anew on the way. */
	if (hw->state & HW_STOPPED)
		return true;
	next = next_stop(event);
	armed = hw->priv[ARMED_NEXT];
	if (hw->sample_period == hw->priv[ARMED_PERIOD] &&
	    (next - armed) % hw->sample_period == 0 && next - armed < LATE_MAX * hw->sample_period)
		hw->priv[ARMED_NEXT] = next;
	else
		arm(event);
	return true;
}

void source_read(struct event *event)
{
	u64 now;

	if (event->hw.state & HW_STOPPED)
		return;
	now = counter(event);
	event_counted(event, now - event->hw.prev);
	event->hw.prev = now;
	event_covered(event, measured(event));
}

void source_start(struct event *event, u32 flags)
{
	const struct pmu_source *source = source_pmu(event->pmu)->source;

	event->hw.state = 0;
	event->hw.prev = counter(event);
	event->hw.measured = measured(event);
	if (event->hw.host_periods)
		source->listen(source->ctx, event, event_on_task(event), flags & PMU_EF_RELOAD);
	if (!samples(event))
		return;
	/* What is overdue is told at once. */
	if (!event->hw.overdue)
		(void)event_set_period(event);
	event->hw.overdue = false;
	arm(event);
}

void source_stop(struct event *event, u32 flags)
{
	const struct pmu_source *source = source_pmu(event->pmu)->source;

	(void)flags;
	if (event->hw.state & HW_STOPPED) {
		event->hw.state = HW_STOPPED | HW_UPTODATE;
		return;
	}
	if (event->hw.host_periods)
		source->unlisten(source->ctx, event, event_on_task(event));
	if (samples(event))
		source->disarm(source->ctx, event, event_on_task(event));
	source_read(event);
	/* A task that runs may just have come to where it was to stop. */
	event->hw.overdue = samples(event) && event->hw.period_left <= 0;
	event->hw.state = HW_STOPPED | HW_UPTODATE;
}

int source_add(struct event *event, u32 flags)
{
	event->hw.state = HW_STOPPED;
	if (flags & PMU_EF_START)
		source_start(event, 0);
	return 0;
}
