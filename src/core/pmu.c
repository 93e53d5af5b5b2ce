/* The PMUs of a core: registering, finding the one for an attr, what sysfs shows of them. */
#include "core/core-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DYNAMIC_TYPE 6

struct pmu *pmu_next(struct core *core, struct pmu *prev)
{
	struct list *next = prev ? prev->link.next : core->pmus.next;

	return next == &core->pmus ? NULL : list_entry(next, struct pmu, link);
}

struct pmu *pmu_by_type(struct core *core, u32 type)
{
	struct pmu *pmu;

	list_for_each_entry (pmu, &core->pmus, link)
		if ((u32)pmu->type == type)
			return pmu;
	return NULL;
}

struct pmu *pmu_by_name(struct core *core, const char *name)
{
	struct pmu *pmu;

	list_for_each_entry (pmu, &core->pmus, link)
		if (!strcmp(pmu->name, name))
			return pmu;
	return NULL;
}

static int alloc_cpu_data(struct core *core, struct pmu *pmu)
{
	if (!pmu->cpu_size)
		return 0;
	for (u32 i = 0; i < core->nr_cpus; i++) {
		void **data = &core->cpus[i].pmus[core->nr_pmus].data;

		free(*data);
		*data = calloc(1, pmu->cpu_size);
		if (!*data)
			return -ENOMEM;
	}
	return 0;
}

int pmu_register(struct core *core, struct pmu *pmu)
{
	int err;

	CHECK(pmu->event_init && pmu->add && pmu->del && pmu->start && pmu->stop && pmu->read);
	CHECK(!pmu->start_txn == !pmu->commit_txn && !pmu->start_txn == !pmu->cancel_txn);
	if (pmu_by_name(core, pmu->name) || (pmu->type >= 0 && pmu_by_type(core, (u32)pmu->type)))
		return core_refuse(core, -EEXIST, PMU_EXISTS, .name = {pmu->name});
	if (core->nr_pmus == CORE_MAX_PMUS)
		return core_refuse(core, -ENOSPC, PMU_TOO_MANY, .number = {CORE_MAX_PMUS});
	if (!list_empty(&core->tasks) && (pmu->task_size || pmu->sched_task))
		return core_refuse(core, -EBUSY, PMU_LATE, .name = {pmu->name});
	err = alloc_cpu_data(core, pmu);
	if (err)
		return core_refuse(core, err, NO_MEMORY, .name = {pmu->name});
	if (pmu->type < 0) {
		while (pmu_by_type(core, (u32)core->next_type))
			core->next_type++;
		pmu->type = core->next_type++;
	}
	pmu->core = core;
	pmu->slot = core->nr_pmus++;
	if (!pmu->mux_interval_ms)
		pmu->mux_interval_ms = core->hz >= 1000 ? 1 : 1000 / core->hz;
	list_add_tail(&pmu->link, &core->pmus);
	return 0;
}

int pmu_set_mux_interval(struct pmu *pmu, u32 ms)
{
	if (!ms)
		return core_refuse(pmu->core, -EINVAL, SETTING_LEAST, .number = {1},
				   .name = {"perf_event_mux_interval_ms"});
	pmu->mux_interval_ms = ms;
	return 0;
}

void pmu_files(struct pmu *pmu, void (*emit)(void *arg, const char *path, const char *text),
	       void *arg)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", pmu->type);
	emit(arg, "type", text);
	snprintf(text, sizeof(text), "%u\n", pmu->mux_interval_ms);
	emit(arg, "perf_event_mux_interval_ms", text);
	/* For hotplug, which has nothing to say of a PMU. */
	emit(arg, "uevent", "");
	for (const struct pmu_file *f = pmu->files; f && f->path; f++)
		emit(arg, f->path, f->text);
}

void *pmu_task(struct pmu *pmu, struct task *task)
{
	CHECK(pmu->slot < task->nr_data);
	return task->data[pmu->slot];
}

void *pmu_cpu(struct pmu *pmu, struct cpu *cpu)
{
	return cpu->pmus[pmu->slot].data;
}

/* What the core asks of a driver that said yes; its destroy() is due when it does not get it. */
static int check_accepted(struct event *event, struct pmu *pmu)
{
	const struct pe_attr *attr = &event->attr;
	/* The masks alone decide, whether or not sample_type asks for them (6.18). */
	u64 regs = attr->sample_regs_user | attr->sample_regs_intr;

	if (regs & event->core->arch->regs_extended && !(pmu->caps & PMU_CAP_EXTENDED_REGS))
		return core_refuse(event->core, -EOPNOTSUPP, NO_VECTOR_REGS, .name = {pmu->name});
	if (pmu->caps & PMU_CAP_NO_EXCLUDE &&
	    (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv || attr->exclude_idle ||
	     attr->exclude_host || attr->exclude_guest))
		return core_refuse(event->core, -EINVAL, NO_MODES, .name = {pmu->name});
	return 0;
}

static int try_init(struct event *event, struct pmu *pmu)
{
	int err;

	event->pmu = pmu;
	err = pmu->event_init(event);
	if (err)
		return err;
	err = check_accepted(event, pmu);
	if (err && pmu->destroy)
		pmu->destroy(event);
	return err;
}

/* The PMU of that number decides; if there is none, everyone is asked. */
static int search(struct event *event, u32 type, bool extended)
{
	struct core *core = event->core;
	struct pmu *named = pmu_by_type(core, type), *pmu;
	int err = -ENOENT;

	if (named) {
		if (extended && !(named->caps & PMU_CAP_EXTENDED_HW_TYPE))
			return core_refuse(core, -ENOENT, PMU_EXTENDED, .name = {named->name});
		return try_init(event, named);
	}
	list_for_each_entry (pmu, &core->pmus, link) {
		err = try_init(event, pmu);
		if (err != -ENOENT)
			break;
	}
	return err;
}

/* Step 19 of an open, first half: who counts it? */
int pmu_init_event(struct event *event)
{
	struct pe_attr *attr = &event->attr;
	struct core *core = event->core;
	bool extended = false;
	u32 type = attr->type;
	int err;

	if (event->parent && !try_init(event, event->parent->pmu))
		return 0;
	if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE) {
		type = (u32)(attr->config >> 32);
		extended = type != 0;
		if (extended)
			attr->config &= 0xffffffff;
		else
			type = PERF_TYPE_RAW;
	}
	err = search(event, type, extended);
	/*
	 * Generic ids are tried as raw ones' first; a PMU of their own type, or anyone, may have
	 * them.
	 */
	if (err == -ENOENT && !extended && type != attr->type)
		err = search(event, attr->type, false);
	if (!err) {
		/* What others said who were asked first is no reason for what comes. */
		core_refusal_clear(core);
		return 0;
	}
	event->pmu = NULL;
	return core_refuse_default(core, err, PMU_CONFIG, .number = {attr->type, attr->config});
}

void pmu_start_txn(struct pmu *pmu)
{
	if (pmu->start_txn)
		pmu->start_txn(pmu);
}

int pmu_commit_txn(struct pmu *pmu)
{
	return pmu->commit_txn ? pmu->commit_txn(pmu) : 0;
}

void pmu_cancel_txn(struct pmu *pmu)
{
	if (pmu->cancel_txn)
		pmu->cancel_txn(pmu);
}
