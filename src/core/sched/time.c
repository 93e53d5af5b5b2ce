/*
 * Time, in the kernel's sense [READ-10]. Every change of an event's state goes through
 * event_set_state(), which first credits the time since the last change to what it was until then.
 *
 * A context's time runs only while CTX_TIME is set in is_active: a task's in its CPU time, a CPU's
 * in wall time. It is advanced by ctx_time_update() at the beginning of every operation, so that
 * all events of one operation see the same time.
 */
#include "core/core-priv.h"

static u64 ctx_clock(const struct ctx *ctx)
{
	const struct core *core = ctx->core;

	if (ctx->task)
		return core->ops->task_clock(core->ctx, ctx->task);
	return core_clock(core);
}

/* From now on; what went by while the context was off is not its time. */
void ctx_time_start(struct ctx *ctx)
{
	u64 now;

	if (ctx->is_active & CTX_TIME)
		return;
	now = ctx_clock(ctx);
	if (now > ctx->stamp)
		ctx->stamp = now;
	ctx->is_active |= CTX_TIME;
}

void ctx_time_update(struct ctx *ctx)
{
	u64 now;

	if (!ctx->task && ctx->cpu && !list_empty(&ctx->core->cgroups))
		cgroup_time_update(ctx->cpu);
	if (!(ctx->is_active & CTX_TIME))
		return;
	now = ctx_clock(ctx);
	/* A clock that went back is not followed, and its way forth again not counted twice. */
	if (now <= ctx->stamp)
		return;
	ctx->time += now - ctx->stamp;
	ctx->stamp = now;
}

u64 event_time(const struct event *event)
{
	if (!event->ctx)
		return 0;
	if (event->cgroup)
		return event->cgroup->cpus[event->cpu].time;
	return event->ctx->time;
}

/* A member is off as long as its leader is. */
enum event_state event_effective_state(const struct event *event)
{
	if (event->leader->state <= EVENT_OFF)
		return event->leader->state;
	return event->state;
}

void event_update_time(struct event *event)
{
	enum event_state state = event_effective_state(event);
	u64 now = event_time(event);
	u64 delta = now - event->tstamp;

	if (state >= EVENT_INACTIVE)
		event->time_enabled += delta;
	if (state >= EVENT_ACTIVE)
		event->time_running += delta;
	event->tstamp = now;
}

void event_update_sibling_time(struct event *leader)
{
	struct event *sibling;

	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		event_update_time(sibling);
}

void event_set_state(struct event *event, enum event_state state)
{
	if (event->state == state)
		return;
	event_update_time(event);
	/* A leader that crosses the line between off and on takes its members' time with it. */
	if ((event->state < EVENT_INACTIVE) != (state < EVENT_INACTIVE)) {
		struct event *sibling;

		event_update_sibling_time(event);
		list_for_each_entry (sibling, &event->siblings, sibling_link)
			event_changed(sibling);
	}
	event->state = state;
	event_changed(event);
}
