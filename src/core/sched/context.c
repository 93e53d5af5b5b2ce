/* Contexts: which events a task or a CPU has, in which order, and how one gets in and out. */
#include "core/core-priv.h"

#include <stdlib.h>

struct ctx *ctx_new(struct core *core, struct task *task, struct cpu *cpu)
{
	struct ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->core = core;
	ctx->refs = 1;
	ctx->task = task;
	ctx->cpu = task ? task->cpu : cpu;
	list_init(&ctx->pinned);
	list_init(&ctx->flexible);
	list_init(&ctx->events);
	list_init(&ctx->pmus);
	return ctx;
}

void ctx_put(struct ctx *ctx)
{
	struct ctx_pmu *epc, *tmp;

	CHECK(ctx->refs);
	if (--ctx->refs)
		return;
	CHECK(list_empty(&ctx->events));
	list_for_each_entry_safe (epc, tmp, &ctx->pmus, link) {
		list_del(&epc->link);
		free(epc);
	}
	free(ctx);
}

struct ctx_pmu *ctx_pmu_find(const struct ctx *ctx, const struct pmu *pmu)
{
	struct ctx_pmu *epc;

	list_for_each_entry (epc, &ctx->pmus, link)
		if (epc->pmu == pmu)
			return epc;
	return NULL;
}

struct ctx_pmu *ctx_pmu_get(struct ctx *ctx, struct pmu *pmu)
{
	struct ctx_pmu *epc = ctx_pmu_find(ctx, pmu);

	if (epc)
		return epc;
	epc = calloc(1, sizeof(*epc));
	if (!epc)
		return NULL;
	epc->ctx = ctx;
	epc->pmu = pmu;
	list_init(&epc->pinned_active);
	list_init(&epc->flexible_active);
	list_add_tail(&epc->link, &ctx->pmus);
	return epc;
}

struct list *ctx_groups(struct ctx *ctx, const struct event *leader)
{
	return leader->attr.pinned ? &ctx->pinned : &ctx->flexible;
}

struct list *event_active_list(struct event *leader)
{
	return leader->attr.pinned ? &leader->epc->pinned_active : &leader->epc->flexible_active;
}

void ctx_insert_group(struct ctx *ctx, struct event *leader)
{
	leader->group_index = ctx->next_index++;
	list_move_tail(&leader->group_link, ctx_groups(ctx, leader));
}

/* The context's time is up to date. */
void ctx_add_event(struct ctx *ctx, struct event *event)
{
	CHECK(event->ctx == ctx && !event->in_ctx && event->epc);
	event->in_ctx = true;
	event->tstamp = event_time(event);
	list_add_tail(&event->ctx_link, &ctx->events);
	ctx->nr_events++;
	event->epc->nr_events++;
	if (event->cgroup)
		ctx->nr_cgroup++;
	if (event_is_leader(event))
		ctx_insert_group(ctx, event);
	else
		group_attach(event);
}

void ctx_remove_event(struct event *event, enum event_state state, bool ungroup)
{
	struct ctx *ctx = event->ctx;

	CHECK(event->in_ctx);
	ctx_time_update(ctx);
	/* Members that stay behind are off with their leader, and held until it is closed. */
	if (event_is_leader(event) && !ungroup)
		group_sched_out(event);
	else
		event_sched_out(event);
	if (state < event->state)
		event_set_state(event, state);
	if (ungroup)
		group_detach(event);
	list_del(&event->group_link);
	list_del(&event->ctx_link);
	event->in_ctx = false;
	if (event->cgroup)
		ctx->nr_cgroup--;
	/* Nobody is left to wait for a turn. */
	if (!--event->epc->nr_events)
		event->epc->rotate_necessary = false;
	/* An empty context's time stands still; the next event starts it. */
	if (!--ctx->nr_events)
		ctx->is_active = 0;
}

void ctx_install(struct ctx *ctx, struct event *event)
{
	/*
	 * The first one starts the context's time. Others that are off wait for their ENABLE, as in
	 * the kernel.
	 */
	bool resched = !ctx->nr_events || event_effective_state(event) != EVENT_OFF ||
		       event->cgroup;

	ctx_time_update(ctx);
	ctx_add_event(ctx, event);
	if (ctx->cpu && resched)
		event_resched(event);
}

/* As if each member were opened anew, which is what the kernel makes of it. */
static void move_event(struct event *event, struct ctx_pmu *epc)
{
	event->epc = epc;
	event->state = event->attr.disabled ? EVENT_OFF : EVENT_INACTIVE;
	event_changed(event);
	ctx_add_event(epc->ctx, event);
}

void ctx_move_group(struct event *leader, struct pmu *pmu)
{
	struct ctx *ctx = leader->ctx;
	struct ctx_pmu *epc = ctx_pmu_find(ctx, pmu);
	struct event *sibling;

	ctx_time_update(ctx);
	ctx_remove_event(leader, EVENT_OFF, false);
	/* A member that an exec has removed stays out. */
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		if (sibling->state > EVENT_EXIT)
			ctx_remove_event(sibling, EVENT_OFF, false);
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		if (sibling->state > EVENT_EXIT)
			move_event(sibling, epc);
		else
			sibling->epc = epc;
	}
	move_event(leader, epc);
	if (ctx->cpu)
		cpu_resched(ctx->cpu, ctx->task, pmu, event_sched_type(leader));
}
