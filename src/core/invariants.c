/* core_check(): everything that doc/core.md calls an invariant, CHECK()ed over all objects. */
#include "core/core-priv.h"

static u32 list_length(const struct list *head)
{
	const struct list *pos;
	u32 n = 0;

	list_for_each (pos, head)
		n++;
	return n;
}

static bool in_list(const struct list *link, const struct list *head)
{
	const struct list *pos;

	list_for_each (pos, head)
		if (pos == link)
			return true;
	return false;
}

static void check_group(struct event *leader)
{
	struct event *sibling;
	bool pure = event_is_software(leader);

	CHECK(leader->nr_siblings == list_length(&leader->siblings));
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		CHECK(sibling->leader == leader && sibling != leader);
		CHECK(sibling->cpu == leader->cpu && sibling->target == leader->target);
		CHECK(sibling->ctx == leader->ctx && sibling->epc == leader->epc);
		CHECK(list_empty(&sibling->siblings) && list_empty(&sibling->group_link));
		/* A member is on only while its leader is. */
		CHECK(sibling->state < EVENT_ACTIVE || leader->state == EVENT_ACTIVE);
		pure = pure && event_is_software(sibling);
	}
	/* A member that was promoted keeps what its group was, so this goes one way only. */
	CHECK(pure || !leader->group_pure_sw);
}

static void check_active(struct event *event)
{
	struct ctx *ctx = event->ctx;

	CHECK(event->in_ctx && ctx->cpu && event_filter_match(event));
	CHECK(ctx->is_active & (event->leader->attr.pinned ? CTX_PINNED : CTX_FLEXIBLE));
	CHECK(ctx->is_active & CTX_TIME);
	if (event_is_leader(event))
		CHECK(in_list(&event->active_link, event_active_list(event)));
}

static void check_event(struct event *event)
{
	struct event *child;

	CHECK(event->ctx && event->epc && event->epc->ctx == event->ctx);
	CHECK(event->state > EVENT_DEAD);
	CHECK(event->in_ctx == !list_empty(&event->ctx_link));
	CHECK(event->in_ctx || event->state <= EVENT_EXIT);
	CHECK(event->time_running <= event->time_enabled);
	CHECK(event->child_time_running <= event->child_time_enabled);
	CHECK(event->tstamp <= event_time(event));
	if (!event->hw.measure.covered)
		CHECK(!event->coverage.executed && !event->coverage.covered &&
		      !event->child_coverage.executed && !event->child_coverage.covered);
	if (event->parent) {
		CHECK(!event->refs && !event->owner && event->in_ctx && event->target);
		CHECK(!event->parent->parent &&
		      in_list(&event->child_link, event->standin ? &event->parent->standins
								 : &event->parent->children));
		CHECK(list_empty(&event->children) && event->id != event->parent->id);
	} else {
		CHECK(event->refs);
	}
	list_for_each_entry (child, &event->children, child_link)
		CHECK(child->parent == event && event->attr.inherit && !child->standin);
	list_for_each_entry (child, &event->standins, child_link)
		CHECK(child->parent == event && !event->target && child->cpu == event->cpu);
	if (event_is_leader(event)) {
		check_group(event);
		CHECK(event->in_ctx == in_list(&event->group_link, ctx_groups(event->ctx, event)));
	} else {
		CHECK(in_list(&event->sibling_link, &event->leader->siblings));
	}
	if (event->state == EVENT_ACTIVE)
		check_active(event);
	else
		CHECK(list_empty(&event->active_link));
	CHECK(!event->maps || (event->buffer && event->buffer->owner == event));
	CHECK(!event->buffer || in_list(&event->buffer->backlog_link, &event->core->backlogs) ==
					buffer_has_backlog(event->buffer));
	CHECK(event->owner == NULL || in_list(&event->owner_link, &event->owner->owned));
}

static void check_order(const struct list *groups)
{
	const struct event *leader;
	u64 next = 0;

	list_for_each_entry (leader, groups, group_link) {
		CHECK(leader->group_index >= next);
		next = leader->group_index + 1;
	}
}

static void check_ctx(const struct ctx *ctx)
{
	const struct ctx_pmu *epc;
	const struct event *event;
	u32 nr_cgroup = 0;

	CHECK(ctx->nr_events == list_length(&ctx->events));
	CHECK(ctx->nr_events || !ctx->is_active);
	check_order(&ctx->pinned);
	check_order(&ctx->flexible);
	list_for_each_entry (event, &ctx->events, ctx_link)
		nr_cgroup += event->cgroup != NULL;
	CHECK(nr_cgroup == ctx->nr_cgroup);
	list_for_each_entry (epc, &ctx->pmus, link) {
		u32 active = 0, exclusive = 0;

		list_for_each_entry (event, &ctx->events, ctx_link) {
			if (event->epc != epc || event->state != EVENT_ACTIVE)
				continue;
			active += !event_is_software(event);
			exclusive += event->attr.exclusive;
		}
		CHECK(active == epc->nr_active);
		CHECK(!epc->exclusive || exclusive);
		/* Nobody waits for a turn without a timer that brings it. */
		if (epc->rotate_necessary && ctx->cpu)
			CHECK(ctx->cpu->pmus[epc->pmu->slot].mux_armed);
	}
}

static void check_task(const struct task *task)
{
	CHECK(!task->dead && task->refs);
	CHECK(!task->cpu || in_list(&task->cpu_link, &task->cpu->tasks));
	if (!task->ctx)
		return;
	CHECK(task->ctx->task == task && task->ctx->cpu == task->cpu);
	CHECK(task->cpu || !task->ctx->is_active);
	check_ctx(task->ctx);
}

void core_check(struct core *core)
{
	struct event *event;
	struct task *task;
	u32 armed = 0;

	list_for_each_entry (event, &core->events, link)
		check_event(event);
	list_for_each_entry (task, &core->tasks, link)
		check_task(task);
	for (u32 i = 0; i < core->nr_cpus; i++) {
		check_ctx(core->cpus[i].ctx);
		for (u32 slot = 0; slot < core->nr_pmus; slot++)
			armed += core->cpus[i].pmus[slot].mux_armed;
	}
	CHECK(armed == core->nr_mux_armed);
}
