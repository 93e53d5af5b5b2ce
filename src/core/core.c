/* Making and ending a core; its CPUs. */
#include "core/core-priv.h"

#include <stdlib.h>

static void defaults(struct core *core)
{
	struct core_sysctl *s = &core->sysctl;

	if (!core->hz)
		core->hz = 250;
	if (!core->page_size)
		core->page_size = 4096;
	if (!core->arch)
		core->arch = &core_arch_x86_64;
	if (!s->max_sample_rate)
		s->max_sample_rate = 100000;
	if (!s->cpu_time_max_percent)
		s->cpu_time_max_percent = 25;
	if (!s->max_stack)
		s->max_stack = 127;
	if (!s->max_contexts_per_stack)
		s->max_contexts_per_stack = 8;
	if (!s->mlock_kb)
		s->mlock_kb = 516;
}

static bool cpus_new(struct core *core)
{
	core->cpus = calloc(core->nr_cpus, sizeof(*core->cpus));
	if (!core->cpus)
		return false;
	for (u32 i = 0; i < core->nr_cpus; i++) {
		struct cpu *cpu = &core->cpus[i];

		cpu->core = core;
		cpu->nr = i;
		cpu->online = true;
		list_init(&cpu->tasks);
		cpu->pmus = calloc(CORE_MAX_PMUS, sizeof(*cpu->pmus));
		cpu->ctx = ctx_new(core, NULL, cpu);
		if (!cpu->pmus || !cpu->ctx)
			return false;
	}
	return true;
}

static void cpus_free(struct core *core)
{
	for (u32 i = 0; core->cpus && i < core->nr_cpus; i++) {
		struct cpu *cpu = &core->cpus[i];

		for (u32 slot = 0; cpu->pmus && slot < CORE_MAX_PMUS; slot++)
			free(cpu->pmus[slot].data);
		free(cpu->pmus);
		if (cpu->ctx)
			ctx_put(cpu->ctx);
	}
	free(core->cpus);
}

struct core *core_new(const struct core_config *config)
{
	struct core *core = calloc(1, sizeof(*core));

	CHECK(config->nr_cpus && config->ops->clock && config->ops->task_clock &&
	      config->ops->timer && config->ops->capable && config->ops->may_access &&
	      config->ops->fd_event && config->ops->find_task);
	if (!core)
		return NULL;
	core->ops = config->ops;
	core->ctx = config->ctx;
	core->arch = config->arch;
	core->nr_cpus = config->nr_cpus;
	core->hz = config->hz;
	core->page_size = config->page_size;
	core->sysctl = config->sysctl;
	defaults(core);
	core->record = calloc(1, RECORD_MAX);
	core->scratch = sample_scratch_new();
	core->tick = CORE_NO_TIMER;
	core->next_id = 1;
	core->next_type = 6;
	core->timer = CORE_NO_TIMER;
	core->backlog_look = CORE_NO_TIMER;
	list_init(&core->backlogs);
	list_init(&core->pmus);
	list_init(&core->tasks);
	list_init(&core->events);
	list_init(&core->cgroups);
	list_init(&core->mlock_accounts);
	if (!core->record || !core->scratch || !cpus_new(core)) {
		cpus_free(core);
		free(core->record);
		free(core->scratch);
		free(core);
		return NULL;
	}
	return core;
}

void core_free(struct core *core)
{
	struct task *task;
	struct event *event;

	if (!core)
		return;
	while ((task = list_first(&core->tasks, struct task, link)))
		task_exit(task);
	/* No copies are left. What is, the host forgot to close; a mapping goes with its event. */
	while ((event = list_first(&core->events, struct event, link))) {
		while (event->maps > 1)
			event_unmap(event);
		event->refs = event->maps ? 2 : 1;
		if (event->maps)
			event_unmap(event);
		event_put(event);
	}
	cpus_free(core);
	cgroup_free_all(core);
	CHECK(list_empty(&core->mlock_accounts));
	free(core->record);
	free(core->scratch);
	free(core);
}

u32 core_nr_cpus(const struct core *core)
{
	return core->nr_cpus;
}

void core_cpu_online(struct core *core, u32 cpu, bool online)
{
	CHECK(cpu < core->nr_cpus);
	core->cpus[cpu].online = online;
}
