/*
 * perf_event_open(2). The order of its checks is visible (two faults at once: the first one's
 * errno), and is that of Linux 6.18. The numbers beside the steps are those of doc/matrix.md, "The
 * order of the checks at open".
 */
#include "core/core-priv.h"

/* Steps 8 to 13: the attr and the arguments by themselves. */
static int check_arguments(struct core *core, const struct open_call *call,
			   const struct pe_attr *attr)
{
	struct task *caller = call->caller;
	int err = perm_open(core, caller);

	if (err)
		return err;
	if (!attr->exclude_kernel) {
		err = perm_kernel(core, caller,
				  attr->exclude_user ? CAUSE_PARANOID_KERNEL_ONLY
						     : CAUSE_PARANOID_KERNEL);
		if (err)
			return err;
	}
	if (attr->namespaces && !perm_namespaces(core, caller))
		return core_refuse(core, -EACCES, CAP_NAMESPACES);
	if (attr->freq) {
		if (attr->sample_freq > core->sysctl.max_sample_rate)
			return core_refuse(
				core, -EINVAL, SAMPLE_RATE,
				.number = {attr->sample_freq, core->sysctl.max_sample_rate});
	} else if (attr->sample_period >> 63) {
		return core_refuse(core, -EINVAL, PERIOD_HIGH);
	}
	if (attr->sample_type & PERF_SAMPLE_PHYS_ADDR) {
		err = perm_kernel(core, caller, CAUSE_PARANOID_PHYS_ADDR);
		if (err)
			return err;
	}
	if (call->flags & OPEN_FLAG_PID_CGROUP && (call->pid == -1 || call->cpu == -1))
		return core_refuse(core, -EINVAL, CGROUP_PLACE);
	return 0;
}

/* Steps 14 to 17: descriptor, group, task. */
static int find_objects(struct core *core, struct open_call *call, const struct pe_attr *attr,
			struct alloc_args *args, struct event **output)
{
	const struct core_ops *ops = core->ops;
	int err;

	err = ops->fd_reserve ? ops->fd_reserve(core->ctx, call) : 0;
	if (err)
		return core_refuse_default(core, err, FD_NONE);
	if (call->group_fd != -1) {
		struct event *group = NULL;

		if (call->group_fd >= 0)
			group = ops->fd_event(core->ctx, call->caller, call->group_fd);
		if (!group)
			return core_refuse(core, -EBADF, GROUP_FD);
		if (group->state <= EVENT_EXIT)
			return core_refuse(core, -ENODEV, GROUP_GONE);
		if (call->flags & OPEN_FLAG_OUTPUT)
			*output = group;
		if (!(call->flags & OPEN_FLAG_NO_GROUP))
			args->leader = group;
	}
	if (call->flags & OPEN_FLAG_PID_CGROUP) {
		args->cgroup_flag = true;
		args->cgroup_fd = call->pid;
	} else if (call->pid == 0) {
		args->target = call->caller;
	} else if (call->pid != -1) {
		err = call->pid < 0
			      ? -ESRCH
			      : ops->find_task(core->ctx, call->caller, call->pid, &args->target);
		if (err)
			return core_refuse_default(core, err, TASK_NONE, .number = {call->pid},
						   .remedy = {REMEDY_PID_MEANING});
		CHECK(args->target);
	}
	if (args->target && args->leader && args->leader->attr.inherit != attr->inherit)
		return core_refuse(core, -EINVAL, GROUP_INHERIT,
				   .number = {attr->inherit, args->leader->attr.inherit});
	return 0;
}

static int set_clock(struct event *event)
{
	const struct pe_attr *attr = &event->attr;

	event->clockid = -1;
	if (!attr->use_clockid)
		return 0;
	switch (attr->clockid) {
	case 1: /* CLOCK_MONOTONIC */
	case 4: /* CLOCK_MONOTONIC_RAW */ break;
	case 0:  /* CLOCK_REALTIME */
	case 7:  /* CLOCK_BOOTTIME */
	case 11: /* CLOCK_TAI */
		if (event->pmu->caps & PMU_CAP_NO_NMI)
			break;
		return core_refuse(event->core, -EINVAL, CLOCK_NMI, .number = {attr->clockid},
				   .name = {event->pmu->name});
	default: return core_refuse(event->core, -EINVAL, CLOCK_UNKNOWN, .number = {attr->clockid});
	}
	event->clockid = attr->clockid;
	return 0;
}

/* Step 22. Gives back the context that the event will live in, with a reference. */
static int find_context(struct event *event, struct task *caller, struct ctx **out)
{
	struct core *core = event->core;
	struct task *task = event->target;
	int err;

	if (!task) {
		err = perm_cpu(core, caller);
		if (err)
			return err;
		*out = core->cpus[event->cpu].ctx;
	} else {
		if (task->dead)
			return core_refuse(core, -ESRCH, TASK_ENDING, .number = {task->tid});
		if (!task->ctx)
			task->ctx = ctx_new(core, task, NULL);
		if (!task->ctx)
			return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a context"});
		*out = task->ctx;
	}
	(*out)->refs++;
	return 0;
}

/* An exclusive PMU takes one event per place [ERR-04]. */
static bool exclusive_conflict(const struct event *event, const struct ctx *ctx)
{
	const struct event *other;

	if (!(event->pmu->caps & PMU_CAP_EXCLUSIVE))
		return false;
	list_for_each_entry (other, &ctx->events, ctx_link)
		if (other->pmu == event->pmu &&
		    (other->cpu == event->cpu || other->cpu == -1 || event->cpu == -1))
			return true;
	return false;
}

/* Steps 22 (a CPU that is offline) to 25: does it fit where it is to go? Nothing is changed yet. */
static int check_place(struct event *event, struct ctx *ctx, struct event *output,
		       struct pmu **sched_pmu, bool *move)
{
	struct core *core = event->core;
	int err;

	if (!event->target && !core->cpus[event->cpu].online)
		return core_refuse(core, -ENODEV, CPU_OFFLINE, .number = {event->cpu});
	err = group_check(core, event, ctx, sched_pmu, move);
	if (err)
		return err;
	if (output) {
		err = buffer_set_output(event, output);
		if (err)
			return err;
	}
	if (!group_size_valid(event))
		return core_refuse(core, -E2BIG, GROUP_LARGE, .number = {EVENT_READ_MAX});
	if (event->attr.reserved_3 & (AUX_PAUSE | AUX_RESUME))
		return core_refuse(core, -EINVAL, AUX_PAUSE_GROUP);
	if (event->attr.aux_output)
		return core_refuse(core, -EINVAL, AUX_OUTPUT_GROUP);
	if (event->attr.aux_sample_size &&
	    (event_is_leader(event) || !event->leader->pmu->snapshot_aux))
		return core_refuse(core, -EINVAL, AUX_SAMPLE_GROUP);
	if (exclusive_conflict(event, ctx))
		return core_refuse(core, -EBUSY, EXCLUSIVE_HERE, .name = {event->pmu->name});
	return 0;
}

static void install(struct event *event, struct ctx *ctx, struct pmu *sched_pmu, bool move,
		    struct task *owner)
{
	if (move)
		ctx_move_group(event->leader, sched_pmu);
	event->ctx = ctx;
	event->epc = ctx_pmu_find(ctx, sched_pmu);
	event->refs = 1;
	event->owner = task_get(owner);
	list_add_tail(&event->owner_link, &owner->owned);
	ctx_install(ctx, event);
	standins_of_event(event, move);
}

int perf_open(struct core *core, struct open_call *call)
{
	struct alloc_args args = {
		.cpu = call->cpu, .cgroup_fd = -1, .opener = call->caller, .path = call->path};
	struct event *event = NULL, *output = NULL;
	struct pmu *sched_pmu = NULL;
	struct ctx *ctx = NULL;
	struct pe_attr attr;
	bool move = false;
	int err;

	core_refusal_clear(core);
	call->event = NULL;
	call->store_size = 0;
	/* 1 */
	if (call->flags &
	    ~(OPEN_FLAG_NO_GROUP | OPEN_FLAG_OUTPUT | OPEN_FLAG_PID_CGROUP | OPEN_FLAG_CLOEXEC))
		return core_refuse(core, -EINVAL, OPEN_FLAGS, .number = {call->flags});
	/* 2 to 7 */
	err = attr_copy(core, call->caller, call->attr, call->attr_len, &attr, &call->store_size);
	if (err)
		return err;
	/* 8 to 13 */
	err = check_arguments(core, call, &attr);
	if (err)
		return err;
	/* 14 to 17 */
	err = find_objects(core, call, &attr, &args, &output);
	if (err)
		return err;
	/* 18 and 19 */
	err = event_alloc(core, &attr, &args, &event);
	if (err)
		return err;
	CHECK(event);
	/* 20 */
	if (event_is_sampling(event) &&
	    (event->hw.no_interrupt || event->pmu->caps & PMU_CAP_NO_INTERRUPT)) {
		err = core_refuse_default(core, -EOPNOTSUPP, NO_SAMPLING,
					  .name = {event->pmu->name});
		goto out_free;
	}
	err = set_clock(event);
	if (err)
		goto out_free;
	/* 21 */
	if (event->target) {
		err = perm_task(core, call->caller, event->target, attr.sigtrap);
		if (err)
			goto out_free;
	}
	/* 22 to 25 */
	err = find_context(event, call->caller, &ctx);
	if (err)
		goto out_free;
	CHECK(ctx);
	err = check_place(event, ctx, output, &sched_pmu, &move);
	if (err)
		goto out_ctx;
	CHECK(sched_pmu);
	if (!ctx_pmu_get(ctx, sched_pmu)) {
		err = core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a context"});
		goto out_ctx;
	}
	/* 26 */
	install(event, ctx, sched_pmu, move, call->caller);
	call->event = event;
	core_refusal_clear(core);
	core_settle(core);
	return 0;

out_ctx:
	ctx_put(ctx);
out_free:
	event_free(event);
	return err;
}
