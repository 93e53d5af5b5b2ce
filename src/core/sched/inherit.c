/*
 * Inheritance [INH]. A new task gets a copy of every group of its parent's that inherits. A
 * copy hangs on the original event (never on another copy), counts for itself while its task lives,
 * and leaves its count and times to the original when the task ends.
 */
#include "core/core-priv.h"

static int inherit_event(struct event *from, struct task *child, struct event *leader,
			 struct event **out)
{
	struct event *original = from->parent ? from->parent : from;
	struct alloc_args args = {
		.target = child, .cpu = original->cpu, .leader = leader, .parent = original};
	struct core *core = original->core;
	struct ctx_pmu *epc;
	struct event *event;
	int err = event_alloc(core, &original->attr, &args, &event);

	if (err)
		return err;
	epc = ctx_pmu_get(child->ctx, from->epc->pmu);
	if (!epc) {
		event_free(event);
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a context"});
	}
	event->ctx = child->ctx;
	event->ctx->refs++;
	event->epc = epc;
	event->clockid = original->clockid;
	list_add_tail(&event->child_link, &original->children);
	event_changed(original);
	/* The parent's state decides, not attr.disabled [INH-06]. */
	event->state = from->state >= EVENT_INACTIVE ? EVENT_INACTIVE : EVENT_OFF;
	if (from->attr.freq) {
		event->hw.sample_period = from->hw.sample_period;
		event->hw.last_period = from->hw.sample_period;
		event->hw.period_left = (s64)from->hw.sample_period;
	}
	ctx_add_event(child->ctx, event);
	*out = event;
	return 0;
}

static int inherit_group(struct event *from, struct task *child)
{
	struct event *leader = NULL, *member, *sibling;
	int err = inherit_event(from, child, NULL, &leader);

	if (err)
		return err;
	CHECK(leader);
	list_for_each_entry (sibling, &from->siblings, sibling_link) {
		err = inherit_event(sibling, child, leader, &member);
		if (err)
			return err;
	}
	/* Same shape as the parent's: a group read compares the two [READ-13]. */
	leader->group_generation = from->group_generation;
	return 0;
}

static int inherit_groups(struct list *groups, struct task *child, bool thread, bool clear_sighand)
{
	struct event *leader;
	int err;

	list_for_each_entry (leader, groups, group_link) {
		if (!leader->attr.inherit || (leader->attr.inherit_thread && !thread) ||
		    (leader->attr.sigtrap && clear_sighand))
			continue;
		if (!child->ctx)
			child->ctx = ctx_new(child->core, child, NULL);
		if (!child->ctx)
			return core_refuse(child->core, -ENOMEM, NO_MEMORY, .name = {"a context"});
		err = inherit_group(leader, child);
		if (err)
			return err;
	}
	return 0;
}

/* A fork that failed: nothing of the child was ever counted. */
static void inherit_undo(struct task *child)
{
	struct event *event;

	while (child->ctx && (event = list_first(&child->ctx->events, struct event, ctx_link))) {
		ctx_remove_event(event, EVENT_DEAD, true);
		list_del(&event->child_link);
		event_changed(event->parent);
		event_free(event);
	}
}

int task_fork(struct task *parent, int tid, int tgid, bool thread, bool clear_sighand, void *host,
	      struct task **out)
{
	struct core *core = parent->core;
	struct task *child;
	int err = 0;

	core_refusal_clear(core);
	CHECK(!parent->dead);
	child = task_new(core, tid, tgid, host);
	if (!child)
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a task"});
	child->cgroup = parent->cgroup;
	child->last_cpu = parent->last_cpu;
	child->parent_tgid = thread ? parent->parent_tgid : parent->tgid;
	if (parent->ctx) {
		err = inherit_groups(&parent->ctx->pinned, child, thread, clear_sighand);
		if (!err)
			err = inherit_groups(&parent->ctx->flexible, child, thread, clear_sighand);
	}
	if (err) {
		inherit_undo(child);
		task_exit(child);
		return err;
	}
	*out = child;
	child->forker = task_get(parent);
	sideband_fork(child);
	return 0;
}

static void fold(struct event *child)
{
	struct event *original = child->parent;

	if (child->attr.inherit_stat)
		sideband_read(child, child->target);
	original->child_count = (s64)((u64)original->child_count + (u64)child->count);
	coverage_fold(child);
	original->child_time_enabled += child->time_enabled;
	original->child_time_running += child->time_running;
	list_del(&child->child_link);
	event_changed(original);
}

/*
 * @event's task ends, or execs and leaves it behind. Originals stay with their descriptors,
 * readable, and keep their group; copies go, after they were folded.
 */
void event_exit(struct event *event)
{
	struct event *original = event->parent;

	ctx_remove_event(event, EVENT_EXIT, original != NULL);
	if (event->standin) {
		(void)standin_told(event);
		list_del(&event->child_link);
		event_free(event);
		return;
	}
	if (!original) {
		event_wake(event);
		return;
	}
	fold(event);
	event_free(event);
	event_page_update(original);
	event_wake(original);
}

void ctx_exit(struct task *task)
{
	struct ctx *ctx = task->ctx;
	struct event *event;

	if (!ctx)
		return;
	while ((event = list_first(&ctx->events, struct event, ctx_link)))
		event_exit(event);
	ctx->dead = true;
	ctx->task = NULL;
	ctx->cpu = NULL;
	task->ctx = NULL;
	ctx_put(ctx);
}
