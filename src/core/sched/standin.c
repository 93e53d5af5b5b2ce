/*
 * Samples of a whole CPU, and what its tasks alone can tell. A kernel's counter interrupts whoever
 * runs there. Ours are the tasks' own, so such an event of a CPU has a stand-in in each task: an
 * event of that task on that CPU, with the original's attr, which overflows and writes into the
 * original's buffer. The original counts as always; what a stand-in counts is its periods' alone
 * and is added to nothing, unless the driver does so.
 */
#include "core/core-priv.h"

static bool wants_standins(const struct event *event)
{
	return event->hw.by_tasks && !event->parent;
}

/* Without memory the task is not sampled: it counts as a sample that was lost. */
static void standin_new(struct event *original, struct task *task)
{
	struct core *core = original->core;
	struct pe_attr attr = original->attr;
	struct alloc_args args = {.target = task, .cpu = original->cpu, .parent = original};
	struct event *event;
	struct ctx_pmu *epc;

	attr.inherit = attr.inherit_thread = attr.inherit_stat = 0;
	attr.enable_on_exec = attr.remove_on_exec = 0;
	attr.disabled = original->state < EVENT_INACTIVE;
	if (!task->ctx)
		task->ctx = ctx_new(core, task, NULL);
	if (!task->ctx || event_alloc(core, &attr, &args, &event)) {
		original->lost_samples++;
		return;
	}
	epc = ctx_pmu_get(task->ctx, original->pmu);
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

void standins_of_event(struct event *original)
{
	struct task *task;

	if (!wants_standins(original))
		return;
	list_for_each_entry (task, &original->core->tasks, link)
		standin_new(original, task);
}

void standins_of_task(struct task *task)
{
	const struct core *core = task->core;
	struct event *event;

	for (u32 i = 0; i < core->nr_cpus; i++)
		list_for_each_entry (event, &core->cpus[i].ctx->events, ctx_link)
			if (wants_standins(event))
				standin_new(event, task);
}
