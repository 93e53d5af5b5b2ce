/*
 * Cgroups: a cpu-wide event of a cgroup counts while one of its tasks, or of its descendants', is
 * on that CPU, and its clock is that of the cgroup there [FLAG-03].
 */
#include "core/core-priv.h"

#include <stdlib.h>

struct cgroup *cgroup_new(struct core *core, struct cgroup *parent, u64 id)
{
	struct cgroup *cgroup = calloc(1, sizeof(*cgroup));

	if (!cgroup)
		return NULL;
	cgroup->cpus = calloc(core->nr_cpus, sizeof(*cgroup->cpus));
	if (!cgroup->cpus) {
		free(cgroup);
		return NULL;
	}
	cgroup->core = core;
	cgroup->parent = parent;
	cgroup->id = id;
	list_add_tail(&cgroup->link, &core->cgroups);
	return cgroup;
}

struct cgroup *cgroup_by_id(struct core *core, u64 id)
{
	struct cgroup *cgroup;

	list_for_each_entry (cgroup, &core->cgroups, link)
		if (cgroup->id == id)
			return cgroup;
	return NULL;
}

u64 cgroup_id(const struct cgroup *cgroup)
{
	return cgroup->id;
}

struct cgroup *cgroup_parent(const struct cgroup *cgroup)
{
	return cgroup->parent;
}

struct cgroup *task_cgroup(const struct task *task)
{
	return task->cgroup;
}

bool task_in_cgroup(const struct task *task, const struct cgroup *cgroup)
{
	for (const struct cgroup *c = task->cgroup; c; c = c->parent)
		if (c == cgroup)
			return true;
	return false;
}

bool cgroup_active(const struct cgroup *cgroup, const struct cpu *cpu)
{
	return cgroup->cpus[cpu->nr].nr_tasks != 0;
}

void cgroup_time_update(struct cpu *cpu)
{
	u64 now = core_clock(cpu->core);
	struct cgroup *cgroup;

	list_for_each_entry (cgroup, &cpu->core->cgroups, link) {
		struct cgroup_cpu *here = &cgroup->cpus[cpu->nr];

		if (!here->nr_tasks || now <= here->stamp)
			continue;
		here->time += now - here->stamp;
		here->stamp = now;
	}
}

void cgroup_enter(struct cgroup *cgroup, struct cpu *cpu)
{
	u64 now = core_clock(cpu->core);

	for (; cgroup; cgroup = cgroup->parent) {
		struct cgroup_cpu *here = &cgroup->cpus[cpu->nr];

		if (!here->nr_tasks++)
			here->stamp = now;
	}
}

void cgroup_leave(struct cgroup *cgroup, struct cpu *cpu)
{
	for (; cgroup; cgroup = cgroup->parent) {
		struct cgroup_cpu *here = &cgroup->cpus[cpu->nr];

		CHECK(here->nr_tasks);
		here->nr_tasks--;
	}
}

bool cgroup_alloc_data(struct cgroup *cgroup, struct pmu *pmu, u32 cpu)
{
	struct cgroup_cpu *here = &cgroup->cpus[cpu];

	if (!pmu->cpu_size)
		return true;
	if (!here->data)
		here->data = calloc(CORE_MAX_PMUS, sizeof(*here->data));
	if (!here->data)
		return false;
	if (!here->data[pmu->slot])
		here->data[pmu->slot] = calloc(1, pmu->cpu_size);
	return here->data[pmu->slot] != NULL;
}

void *pmu_cgroup(struct pmu *pmu, struct cgroup *cgroup, struct cpu *cpu)
{
	const struct cgroup_cpu *here = &cgroup->cpus[cpu->nr];

	return here->data ? here->data[pmu->slot] : NULL;
}

void task_set_cgroup(struct task *task, struct cgroup *cgroup)
{
	struct cpu *cpu = task->cpu;

	task_sched_out(task);
	task->cgroup = cgroup;
	if (cpu)
		task_sched_in(task, cpu->nr);
}

void cgroup_free_all(struct core *core)
{
	struct cgroup *cgroup, *tmp;

	list_for_each_entry_safe (cgroup, tmp, &core->cgroups, link) {
		for (u32 i = 0; i < core->nr_cpus; i++) {
			for (u32 slot = 0; cgroup->cpus[i].data && slot < CORE_MAX_PMUS; slot++)
				free(cgroup->cpus[i].data[slot]);
			free(cgroup->cpus[i].data);
		}
		free(cgroup->cpus);
		free(cgroup);
	}
}
