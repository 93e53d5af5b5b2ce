/*
 * Samples of a whole CPU, and what its tasks alone can tell. A kernel's counter interrupts whoever
 * runs there. Ours are the tasks' own, so such an event of a CPU has a stand-in in each task: an
 * event of that task on that CPU, with the original's attr, which overflows and writes into the
 * original's buffer. The original counts as always; what a stand-in counts is its periods' alone
 * and is added to nothing, unless the driver does so.
 *
 * Where one of a group has them all of it have, and those of a task are a group as well. So a
 * sample that says what was counted (PERF_SAMPLE_READ) has the sums of what tasks have told with
 * their samples up to then: these never go back, whatever the order in which tasks are asked, and
 * what one has done since its last sample is in its own next one.
 */
#include "core/core-priv.h"

static bool group_wants_standins(const struct event *leader)
{
	const struct event *sibling;

	if (leader->hw.by_tasks)
		return true;
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		if (sibling->hw.by_tasks)
			return true;
	return false;
}

static bool wants_standins(const struct event *event)
{
	return !event->target && !event->parent && group_wants_standins(event->leader);
}

/* Of @original in @task; NULL: there is none. */
static struct event *standin_in(const struct event *original, const struct task *task)
{
	struct event *event;

	list_for_each_entry (event, &original->standins, child_link)
		if (event->target == task)
			return event;
	return NULL;
}

/* Without memory the task is not sampled: it counts as a sample that was lost. */
static void standin_new(struct event *original, struct task *task)
{
	struct core *core = original->core;
	struct pe_attr attr = original->attr;
	struct alloc_args args = {.target = task, .cpu = original->cpu, .parent = original};
	struct event *leader = NULL;
	struct event *event;
	struct ctx_pmu *epc;

	attr.inherit = attr.inherit_thread = attr.inherit_stat = 0;
	attr.enable_on_exec = attr.remove_on_exec = 0;
	attr.disabled = original->state < EVENT_INACTIVE;
	if (original->leader != original)
		leader = standin_in(original->leader, task);
	args.leader = leader;
	if (!task->ctx)
		task->ctx = ctx_new(core, task, NULL);
	if (!task->ctx || event_alloc(core, &attr, &args, &event)) {
		original->lost_samples++;
		return;
	}
	epc = ctx_pmu_get(task->ctx, original->epc->pmu);
	if (!epc) {
		event_free(event);
		original->lost_samples++;
		return;
	}
	event->standin = true;
	event->ctx = task->ctx;
	event->ctx->refs++;
	event->epc = epc;
	event->clockid = original->clockid;
	if (attr.freq) {
		event->hw.sample_period = original->hw.sample_period;
		event->hw.last_period = original->hw.sample_period;
		event->hw.period_left = (s64)original->hw.sample_period;
	}
	list_add_tail(&event->child_link, &original->standins);
	ctx_install(event->ctx, event);
}

static void make(struct event *original)
{
	struct task *task;

	list_for_each_entry (task, &original->core->tasks, link)
		standin_new(original, task);
}

/* A leader that has moved to another PMU begins anew there, and its group with it. */
static void begin_anew(struct event *leader)
{
	struct event *sibling;

	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		standins_close(sibling);
	standins_close(leader);
}

void standins_of_event(struct event *original, bool moved)
{
	struct event *leader = original->leader, *sibling;

	if (!wants_standins(original))
		return;
	if (moved)
		begin_anew(leader);
	if (list_empty(&leader->standins))
		make(leader);
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		if (list_empty(&sibling->standins))
			make(sibling);
}

void standins_of_task(struct task *task)
{
	const struct core *core = task->core;
	struct event *event, *sibling;

	for (u32 i = 0; i < core->nr_cpus; i++)
		list_for_each_entry (event, &core->cpus[i].ctx->events, ctx_link) {
			if (!event_is_leader(event) || !wants_standins(event))
				continue;
			standin_new(event, task);
			list_for_each_entry (sibling, &event->siblings, sibling_link)
				standin_new(sibling, task);
		}
}

u64 standin_told(struct event *event)
{
	struct event *original = event->parent;

	original->told = (s64)((u64)original->told + (u64)event->count - (u64)event->told);
	event->told = event->count;
	return (u64)original->told;
}
