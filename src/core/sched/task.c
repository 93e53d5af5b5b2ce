/* Tasks: coming and going. What happens to their events is in inherit.c, exec.c and sched.c. */
#include "core/core-priv.h"

#include <stdlib.h>

static bool alloc_data(struct task *task)
{
	struct core *core = task->core;
	struct pmu *pmu;

	task->nr_data = core->nr_pmus;
	task->data = calloc(core->nr_pmus + 1, sizeof(*task->data));
	if (!task->data)
		return false;
	list_for_each_entry (pmu, &core->pmus, link) {
		if (!pmu->task_size)
			continue;
		task->data[pmu->slot] = calloc(1, pmu->task_size);
		if (!task->data[pmu->slot])
			return false;
	}
	return true;
}

static void free_task(struct task *task)
{
	for (u32 i = 0; task->data && i < task->nr_data; i++)
		free(task->data[i]);
	free(task->data);
	free(task);
}

struct task *task_new(struct core *core, int tid, int tgid, void *host)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->core = core;
	task->refs = 1;
	task->tid = tid;
	task->tgid = tgid;
	task->host = host;
	list_init(&task->cpu_link);
	list_init(&task->owned);
	if (!alloc_data(task)) {
		free_task(task);
		return NULL;
	}
	list_add_tail(&task->link, &core->tasks);
	standins_of_task(task);
	return task;
}

struct task *task_get(struct task *task)
{
	task->refs++;
	return task;
}

void task_put(struct task *task)
{
	CHECK(task->refs);
	if (--task->refs)
		return;
	CHECK(task->dead && list_empty(&task->owned));
	free_task(task);
}

static void end_events(struct task *task, bool exits)
{
	task_sched_out(task);
	/* No sample comes after EXIT; READ may. */
	if (exits && task->ctx)
		sideband_exit(task);
	ctx_exit(task);
	if (exits)
		sideband_exit(task);
}

void task_uncount(struct task *task)
{
	struct cpu *cpu = task->cpu;

	end_events(task, false);
	if (cpu)
		task_sched_in(task, cpu->nr);
}

void task_exit(struct task *task)
{
	struct core *core = task->core;
	struct event *event;

	CHECK(!task->dead);
	end_events(task, true);
	while ((event = list_first(&task->owned, struct event, owner_link)))
		event_disown(event);
	task->dead = true;
	if (task->forker)
		task_put(task->forker);
	task->forker = NULL;
	/* Events may keep the task; the host's object goes now. */
	task->host = NULL;
	list_del(&task->link);
	task_put(task);
	core_settle(core);
}

void task_set_ids(struct task *task, int tid, int tgid)
{
	task->tid = tid;
	task->tgid = tgid;
	sideband_fork(task);
}

int task_tid(const struct task *task)
{
	return task->tid;
}

int task_tgid(const struct task *task)
{
	return task->tgid;
}

void *task_host(const struct task *task)
{
	return task->host;
}

struct core *task_core(const struct task *task)
{
	return task->core;
}

int task_cpu(const struct task *task)
{
	return task->cpu ? (int)task->cpu->nr : -1;
}

u32 task_events(const struct task *task)
{
	return task->ctx ? task->ctx->nr_events : 0;
}

struct task *cpu_next_task(struct cpu *cpu, struct task *prev)
{
	struct list *next = prev ? prev->cpu_link.next : cpu->tasks.next;

	return next == &cpu->tasks ? NULL : list_entry(next, struct task, cpu_link);
}

u32 cpu_number(const struct cpu *cpu)
{
	return cpu->nr;
}

struct cpu *cpu_by_number(struct core *core, u32 nr)
{
	CHECK(nr < core->nr_cpus);
	return &core->cpus[nr];
}
