/* What execve does to a task's events: enable_on_exec first, then remove_on_exec. */
#include "core/core-priv.h"

static void enable_on_exec(struct ctx *ctx)
{
	struct event *event;
	u32 type = 0;

	ctx_time_update(ctx);
	list_for_each_entry (event, &ctx->events, ctx_link) {
		if (!event->attr.enable_on_exec)
			continue;
		event->attr.enable_on_exec = 0; /* once */
		if (event->state >= EVENT_INACTIVE)
			continue;
		event_set_state(event, EVENT_INACTIVE);
		type |= event_sched_type(event);
	}
	if (type && ctx->cpu)
		cpu_resched(ctx->cpu, ctx->task, NULL, type);
}

static void remove_on_exec(struct ctx *ctx)
{
	struct event *event, *tmp;

	list_for_each_entry_safe (event, tmp, &ctx->events, ctx_link) {
		if (!event->attr.remove_on_exec)
			continue;
		event_disown(event);
		event_exit(event);
	}
}

void task_exec(struct task *task)
{
	core_refusal_clear(task->core);
	if (task->ctx) {
		enable_on_exec(task->ctx);
		remove_on_exec(task->ctx);
	}
	core_settle(task->core);
}
