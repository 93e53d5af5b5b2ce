/*
 * Free-running counters of a CPU out of those of its tasks: what left tasks added, and what each task
 * that is there added since it came.
 */
#include "pmu/source.h"

#include "base/check.h"
#include "core/core.h"
#include "core/event.h"

static u64 source_read(const struct pmu_source *source, struct task *task, u32 what)
{
	return source->read(source->ctx, task, what);
}

static u64 since(const struct pmu_source *source, struct pmu *pmu, struct task *task, u32 what)
{
	const struct source_task *mine = pmu_task(pmu, task);

	return source_read(source, task, what) - mine->base[what];
}

static u64 cpu_sum(const struct pmu_source *source, struct pmu *pmu, struct cpu *cpu,
		   struct cgroup *cgroup, u32 what)
{
	const struct source_cpu *here = cgroup ? pmu_cgroup(pmu, cgroup, cpu)
					       : (struct source_cpu *)pmu_cpu(pmu, cpu);
	u64 sum = here->folded[what];
	struct task *task;

	for (task = cpu_next_task(cpu, NULL); task; task = cpu_next_task(cpu, task))
		if (!cgroup || task_in_cgroup(task, cgroup))
			sum += since(source, pmu, task, what);
	return sum;
}

u64 source_raw(const struct pmu_source *source, struct pmu *pmu, struct event *event, u32 what)
{
	struct task *task = event_on_task(event);

	CHECK(what < SOURCE_MAX);
	if (task)
		return source_read(source, task, what);
	return cpu_sum(source, pmu, event_on_cpu(event), event->cgroup, what);
}

static void arrive(const struct pmu_source *source, struct pmu *pmu, struct task *task)
{
	struct source_task *mine = pmu_task(pmu, task);

	for (u32 what = 0; what < SOURCE_MAX; what++)
		if (source->have & BIT(what))
			mine->base[what] = source_read(source, task, what);
}

static void leave(const struct pmu_source *source, struct pmu *pmu, struct task *task,
		  struct cpu *cpu, u32 what)
{
	struct source_cpu *here = pmu_cpu(pmu, cpu);
	u64 delta = since(source, pmu, task, what);

	here->folded[what] += delta;
	for (struct cgroup *c = task_cgroup(task); c; c = cgroup_parent(c)) {
		here = pmu_cgroup(pmu, c, cpu);
		if (here)
			here->folded[what] += delta;
	}
}

void source_sched_task(const struct source_watch *watch, const struct pmu_source *source,
		       struct pmu *pmu, struct task *task, struct cpu *cpu, bool in)
{
	if (!watch->users)
		return;
	if (in) {
		arrive(source, pmu, task);
		return;
	}
	for (u32 what = 0; what < SOURCE_MAX; what++)
		if (source->have & BIT(what))
			leave(source, pmu, task, cpu, what);
}

void source_watch(struct source_watch *watch, const struct pmu_source *source, struct pmu *pmu)
{
	if (watch->users++)
		return;
	for (u32 i = 0; i < core_nr_cpus(pmu->core); i++) {
		struct cpu *cpu = cpu_by_number(pmu->core, i);

		for (struct task *t = cpu_next_task(cpu, NULL); t; t = cpu_next_task(cpu, t))
			arrive(source, pmu, t);
	}
}

void source_unwatch(struct source_watch *watch)
{
	CHECK(watch->users);
	watch->users--;
}

void source_event_read(struct event *event, u64 (*raw)(struct event *event))
{
	u64 now;

	if (event->hw.state & HW_STOPPED)
		return;
	now = raw(event);
	event->count += (s64)(now - event->hw.prev);
	event->hw.prev = now;
}

void source_event_start(struct event *event, u64 (*raw)(struct event *event))
{
	event->hw.state = 0;
	event->hw.prev = raw(event);
}

void source_event_stop(struct event *event, u64 (*raw)(struct event *event))
{
	source_event_read(event, raw);
	event->hw.state = HW_STOPPED | HW_UPTODATE;
}
