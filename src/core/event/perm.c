/*
 * Who may count what [CALL-06, CALL-10, CALL-17, FILE-01]. Rights are checked when an event is
 * opened and never again: a descriptor may be passed on.
 */
#include "core/core-priv.h"

static bool has(struct core *core, struct task *task, enum core_cap cap)
{
	return core->ops->capable(core->ctx, task, cap);
}

bool perm_capable(struct core *core, struct task *task)
{
	return has(core, task, CORE_CAP_PERFMON) || has(core, task, CORE_CAP_SYS_ADMIN);
}

bool perm_namespaces(struct core *core, struct task *task)
{
	return perm_capable(core, task) && has(core, task, CORE_CAP_INITIAL);
}

int perm_kernel(struct core *core, struct task *task, enum refusal_cause cause)
{
	struct refusal_args args = {.number = {(u64)core->sysctl.paranoid, 1}};

	if (core->sysctl.paranoid <= 1 || perm_capable(core, task))
		return 0;
	/* Of these the remedy is what to leave out; the limit is the other one. */
	if (cause == CAUSE_PARANOID_KERNEL || cause == CAUSE_PARANOID_BRANCHES)
		args.remedy[1] = REMEDY_PARANOID;
	return core_note_refusal(core, -EACCES, cause, &args);
}

int perm_cpu(struct core *core, struct task *task)
{
	if (core->sysctl.paranoid <= 0 || perm_capable(core, task))
		return 0;
	return core_refuse(core, -EACCES, PARANOID_CPU, .number = {core->sysctl.paranoid, 0});
}

int perm_open(struct core *core, struct task *task)
{
	if (!core->sysctl.paranoid_3_refuses || core->sysctl.paranoid <= 2 ||
	    has(core, task, CORE_CAP_SYS_ADMIN))
		return 0;
	return core_refuse(core, -EACCES, PARANOID_ALL, .number = {core->sysctl.paranoid, 2});
}

int perm_task(struct core *core, struct task *task, struct task *target, bool sigtrap)
{
	bool capable = perm_capable(core, task);

	if (sigtrap)
		capable = capable && has(core, task, CORE_CAP_KILL);
	if (capable || task == target || task->tgid == target->tgid)
		return 0;
	if (core->ops->may_access(core->ctx, task, target,
				  sigtrap ? CORE_ACCESS_ATTACH : CORE_ACCESS_READ))
		return 0;
	if (sigtrap)
		return core_refuse(core, -EACCES, TASK_SIGTRAP, .number = {target->tid});
	return core_refuse(core, -EACCES, TASK_FOREIGN, .number = {target->tid});
}

bool event_capable(const struct event *event, int core_cap)
{
	struct core *core = event->core;

	/* A copy is as good as its original was when that was opened. */
	if (event->parent)
		return true;
	return core->opener && has(core, core->opener, (enum core_cap)core_cap);
}

const char *event_path(const struct event *event)
{
	return event->core->opens_path;
}

struct task *event_opener(const struct event *event)
{
	return event->core->opener;
}

bool event_counts_opener(const struct event *event)
{
	const struct task *opener = event->core->opener;

	return opener && event->target && event->target->tgid == opener->tgid;
}
