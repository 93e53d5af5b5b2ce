/* The life of an event object: making, references, closing; on, off, reset. */
#include "core/core-priv.h"

#include <stdlib.h>
#include <string.h>

static int check_target(struct core *core, const struct pe_attr *attr,
			const struct alloc_args *args)
{
	if ((u32)args->cpu >= core->nr_cpus && !(args->target && args->cpu == -1)) {
		if (args->cpu == -1)
			return core_refuse(core, -EINVAL, NO_PLACE);
		return core_refuse(core, -EINVAL, CPU_RANGE, .number = {args->cpu, core->nr_cpus});
	}
	if (attr->sigtrap && !args->target)
		return core_refuse(core, -EINVAL, SIGTRAP_TASK);
	if (attr->inherit && attr->sample_type & PERF_SAMPLE_READ &&
	    !(attr->sample_type & PERF_SAMPLE_TID))
		return core_refuse(core, -EINVAL, INHERIT_READ);
	return 0;
}

static int find_cgroup(struct event *event, const struct alloc_args *args)
{
	struct core *core = event->core;
	int err = -EBADF;

	if (core->ops->fd_cgroup && args->cgroup_fd >= 0)
		err = core->ops->fd_cgroup(core->ctx, args->opener, args->cgroup_fd,
					   &event->cgroup);
	if (err) {
		event->cgroup = NULL;
		return core_refuse_default(core, err, CGROUP_FD, .number = {args->cgroup_fd});
	}
	if (event->leader != event && event->leader->cgroup != event->cgroup)
		return core_refuse(core, -EINVAL, CGROUP_OF_GROUP);
	if (!cgroup_alloc_data(event->cgroup, event->pmu, (u32)event->cpu))
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a cgroup's counters"});
	return 0;
}

/* An exclusive PMU has events of tasks or of CPUs, never both [ERR-04]. */
static int exclusive_enter(const struct event *event)
{
	struct pmu *pmu = event->pmu;
	s32 kind = event->target ? 1 : -1;

	if (!(pmu->caps & PMU_CAP_EXCLUSIVE))
		return 0;
	if (pmu->exclusive_cnt * kind < 0)
		return core_refuse(event->core, -EBUSY, EXCLUSIVE_OTHER,
				   .name = {pmu->name, event->target ? "CPUs" : "tasks"});
	pmu->exclusive_cnt += kind;
	return 0;
}

static void exclusive_leave(const struct event *event)
{
	if (event->pmu->caps & PMU_CAP_EXCLUSIVE)
		event->pmu->exclusive_cnt -= event->target ? 1 : -1;
}

/* What the core itself asks of a PMU that accepted the event. */
static int check_pmu(struct event *event, const struct alloc_args *args)
{
	const struct pe_attr *attr = &event->attr;
	struct core *core = event->core;
	struct pmu *pmu = event->pmu;
	int err;

	if (pmu->class == PMU_CPU_ONLY && (event->target || args->cgroup_flag))
		return core_refuse(core, -EINVAL, PMU_CPU_ONLY, .name = {pmu->name});
	if (attr->aux_output && !(pmu->caps & PMU_CAP_AUX_OUTPUT))
		return core_refuse(core, -EOPNOTSUPP, NO_AUX_OUTPUT, .name = {pmu->name});
	if (attr->reserved_3 & AUX_START_PAUSED)
		return core_refuse(core, -EOPNOTSUPP, NO_AUX_PAUSE, .name = {pmu->name});
	if (args->cgroup_flag) {
		err = find_cgroup(event, args);
		if (err)
			return err;
	}
	err = exclusive_enter(event);
	if (err)
		return err;
	if (!event->parent && attr->sample_type & PERF_SAMPLE_CALLCHAIN) {
		if (attr->sample_max_stack > core->sysctl.max_stack) {
			exclusive_leave(event);
			return core_refuse(
				core, -EOVERFLOW, MAX_STACK,
				.number = {attr->sample_max_stack, core->sysctl.max_stack});
		}
		core->nr_callchain++;
	}
	return 0;
}

int event_alloc(struct core *core, const struct pe_attr *attr, const struct alloc_args *args,
		struct event **out)
{
	struct event *event;
	int err = check_target(core, attr, args);

	if (err)
		return err;
	event = calloc(1, sizeof(*event));
	if (!event)
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"an event"});
	event->core = core;
	event->attr = *attr;
	event->id = core->next_id++;
	event->cpu = args->cpu;
	event->clockid = -1;
	event->target = args->target ? task_get(args->target) : NULL;
	event->leader = args->leader ? args->leader : event;
	event->parent = args->parent;
	event->state = attr->disabled ? EVENT_OFF : EVENT_INACTIVE;
	event->hw.idx = -1;
	event->hw.sample_period = attr->sample_period;
	if (attr->freq && attr->sample_freq)
		event->hw.sample_period = 1;
	event->hw.last_period = event->hw.sample_period;
	event->hw.period_left = (s64)event->hw.sample_period;
	list_add_tail(&event->link, &core->events);
	list_init(&event->owner_link);
	list_init(&event->ctx_link);
	list_init(&event->group_link);
	list_init(&event->active_link);
	list_init(&event->siblings);
	list_init(&event->sibling_link);
	list_init(&event->children);
	list_init(&event->standins);
	list_init(&event->child_link);
	list_init(&event->buffer_link);

	core->opener = args->opener;
	core->opens_path = args->path;
	err = pmu_init_event(event);
	core->opener = NULL;
	core->opens_path = NULL;
	if (!err) {
		event->group_pure_sw = event_is_software(event);
		err = check_pmu(event, args);
		if (err && event->pmu->destroy)
			event->pmu->destroy(event);
	}
	if (err) {
		/* Nothing is attached yet, and event_free() would count a callchain down. */
		if (event->target)
			task_put(event->target);
		list_del(&event->link);
		free(event);
		return err;
	}
	*out = event;
	return 0;
}

void event_free(struct event *event)
{
	struct core *core = event->core;

	CHECK(!event->in_ctx && !event->owner);
	CHECK(list_empty(&event->children) && list_empty(&event->standins) &&
	      list_empty(&event->siblings));
	if (event->pmu->destroy)
		event->pmu->destroy(event);
	if (!event->parent && event->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		core->nr_callchain--;
	exclusive_leave(event);
	buffer_detach(event);
	if (core->ops->event_free)
		core->ops->event_free(core->ctx, event);
	if (event->ctx)
		ctx_put(event->ctx);
	if (event->target)
		task_put(event->target);
	list_del(&event->link);
	free(event);
}

struct event *event_get(struct event *event)
{
	CHECK(event->refs);
	event->refs++;
	return event;
}

/*
 * @event leaves its context, if it is in one, and its group. Members that it held back, being off,
 * can start now: nothing else may ever happen to them [GRP-04].
 */
static void leave(struct event *event)
{
	struct ctx *ctx = event->ctx;
	bool held = event->nr_siblings && event->state <= EVENT_OFF;

	if (event->in_ctx)
		ctx_remove_event(event, EVENT_DEAD, true);
	else
		group_detach(event);
	if (held && ctx->cpu)
		cpu_resched(ctx->cpu, ctx->task, NULL, CTX_ALL | (ctx->task ? 0 : CTX_CPU));
}

static void close_all(struct list *copies)
{
	struct event *child, *tmp;

	list_for_each_entry_safe (child, tmp, copies, child_link) {
		list_del(&child->child_link);
		leave(child);
		event_free(child);
	}
}

void standins_close(struct event *original)
{
	struct event *standin;

	list_for_each_entry (standin, &original->standins, child_link)
		(void)standin_told(standin);
	close_all(&original->standins);
}

/* Closing: no descriptor is left, so neither is a reason to count; children go as well. */
static void event_close(struct event *event)
{
	event_disown(event);
	leave(event);
	close_all(&event->children);
	standins_close(event);
	event->state = EVENT_DEAD;
	event_free(event);
}

void event_put(struct event *event)
{
	struct core *core;

	CHECK(event->refs && !event->parent);
	if (--event->refs)
		return;
	core = event->core;
	event_close(event);
	core_settle(core);
}

void event_disown(struct event *event)
{
	if (!event->owner)
		return;
	list_del(&event->owner_link);
	task_put(event->owner);
	event->owner = NULL;
}

void event_wake(struct event *event)
{
	const struct core *core = event->core;

	if (core->ops->wake)
		core->ops->wake(core->ctx, event);
}

void event_changed(struct event *event)
{
	const struct core *core = event->core;

	if (core->ops->event_changed)
		core->ops->event_changed(core->ctx, event);
}

void event_each_child(struct event *event, void (*fn)(struct event *))
{
	struct event *child;

	fn(event);
	list_for_each_entry (child, &event->children, child_link)
		fn(child);
	list_for_each_entry (child, &event->standins, child_link)
		fn(child);
}

void event_enable(struct event *event)
{
	struct ctx *ctx = event->ctx;

	if (event->state >= EVENT_INACTIVE || event->state < EVENT_ERROR || !event->in_ctx)
		return;
	ctx_time_update(ctx);
	/* ERROR is left here and by exec [GRP-08]; what follows may well lead back to it. */
	event_set_state(event, EVENT_INACTIVE);
	if (!(ctx->is_active & CTX_ALL) || !event_filter_match(event))
		return;
	if (!event_is_leader(event) && event->leader->state != EVENT_ACTIVE)
		return;
	event_resched(event);
}

void event_disable(struct event *event)
{
	if (event->state <= EVENT_OFF || !event->in_ctx)
		return;
	ctx_time_update(event->ctx);
	if (event_is_leader(event))
		group_sched_out(event);
	else
		event_sched_out(event);
	event_set_state(event, EVENT_OFF);
	event_page_update(event);
}

void event_refresh(struct event *event, bool group)
{
	struct event *sibling;

	if (!event->in_ctx)
		return;
	ctx_time_update(event->ctx);
	event_update_time(event);
	if (group)
		event_update_sibling_time(event);
	if (event->state != EVENT_ACTIVE)
		return;
	event->pmu->read(event);
	if (!group)
		return;
	list_for_each_entry (sibling, &event->siblings, sibling_link)
		if (sibling->state == EVENT_ACTIVE)
			sibling->pmu->read(sibling);
}

/* The count only: neither times nor what dead children left behind [INH-04]. */
void event_reset(struct event *event)
{
	event_refresh(event, false);
	event->count = event->told = event->told_most = 0;
	event->coverage = (struct coverage){0};
	event_changed(event);
	event_page_update(event);
}

/* Carries out what overflows asked for, which could not be done inside a driver's operation. */
static void pending_disable(struct core *core)
{
	struct event *event;

	core->pending_disable = false;
	list_for_each_entry (event, &core->events, link) {
		if (!event->pending_disable)
			continue;
		event->pending_disable = false;
		event_disable(event);
	}
}

void core_settle(struct core *core)
{
	if (core->pending_disable)
		pending_disable(core);
	timer_update(core);
}

bool event_is_waited_for(const struct event *event)
{
	const struct ctx_pmu *epc;

	if (!event->in_ctx)
		return false;
	list_for_each_entry (epc, &event->ctx->pmus, link)
		if (epc->rotate_necessary)
			return true;
	return false;
}

void event_counted(struct event *event, u64 n)
{
	/* A counter that lies may go anywhere, and wraps. */
	event->count = (s64)((u64)event->count + n);
	if (event_is_sampling(event))
		event->hw.period_left = (s64)((u64)event->hw.period_left - n);
}

u64 event_id(const struct event *event)
{
	return event_primary_id(event);
}

const struct pe_attr *event_attr(const struct event *event)
{
	return &event->attr;
}

void *event_host(const struct event *event)
{
	return event->host;
}

void event_set_host(struct event *event, void *host)
{
	event->host = host;
}

struct task *event_on_task(const struct event *event)
{
	return event->ctx ? event->ctx->task : NULL;
}

struct cpu *event_on_cpu(const struct event *event)
{
	return event->ctx ? event->ctx->cpu : NULL;
}
