/* ioctl(2) on an event [IOC]. */
#include "core/core-priv.h"

#include <string.h>

/* On the event and its copies; with the group flag on its leader and all members, copies included. */
static void for_each(struct event *event, u64 arg, void (*fn)(struct event *))
{
	struct event *sibling;

	if (!(arg & PERF_IOC_FLAG_GROUP)) {
		event_each_child(event, fn);
		return;
	}
	event_each_child(event->leader, fn);
	list_for_each_entry (sibling, &event->leader->siblings, sibling_link)
		event_each_child(sibling, fn);
}

static int need_sampling(const struct event *event, const char *cmd)
{
	if (event_is_sampling(event))
		return 0;
	return core_refuse(event->core, -EINVAL,
			   "%s is about samples, but this event only counts (sample_period is 0)",
			   cmd);
}

static int do_refresh(struct event *event, u64 arg)
{
	int err;

	if (event->attr.inherit)
		return core_refuse(event->core, -EINVAL,
				   "REFRESH cannot count the overflows of inherited events; clear "
				   "attr.inherit");
	err = need_sampling(event, "REFRESH");
	if (err)
		return err;
	event->event_limit = (s32)((u32)event->event_limit + (u32)arg);
	event_enable(event);
	return 0;
}

static void set_period(struct event *event, u64 value)
{
	bool active = event->state == EVENT_ACTIVE;

	if (event->attr.freq) {
		event->attr.sample_freq = value;
	} else {
		event->attr.sample_period = value;
		event->hw.sample_period = value;
	}
	if (active)
		event->pmu->stop(event, PMU_EF_UPDATE);
	event->hw.period_left = 0;
	if (active)
		event->pmu->start(event, PMU_EF_RELOAD);
}

static int do_period(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	u64 value;
	int err;

	if (call->in_len < sizeof(value))
		return core_refuse(core, -EFAULT, "the period's address cannot be read");
	memcpy(&value, call->in, sizeof(value));
	err = need_sampling(event, "PERIOD");
	if (err)
		return err;
	if (!value)
		return core_refuse(core, -EINVAL,
				   "the period must not be 0; DISABLE stops an event");
	if (event->attr.freq) {
		if (value > core->sysctl.max_sample_rate)
			return core_refuse(
				core, -EINVAL,
				"the frequency %llu is above perf_event_max_sample_rate, which "
				"is %u",
				(unsigned long long)value, core->sysctl.max_sample_rate);
	} else {
		if (event->pmu->check_period && event->pmu->check_period(event, value))
			return core_refuse_default(core, -EINVAL, "%s cannot have that period",
						   event->pmu->name);
		if (value >> 63)
			return core_refuse(core, -EINVAL, "the period must be below 2^63");
	}
	set_period(event, value);
	return 0;
}

static int do_set_output(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	struct event *target = NULL;

	/* All 64 bits: the (unsigned)-1 of a careless caller is a descriptor that is not open. */
	if (call->arg != ~0ull) {
		int fd = (int)(u32)call->arg;

		if (fd >= 0)
			target = core->ops->fd_event(core->ctx, call->caller, fd);
		if (!target)
			return core_refuse(core, -EBADF,
					   "SET_OUTPUT: %d is no descriptor of a perf event", fd);
	}
	return buffer_set_output(event, target);
}

static int do_set_filter(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	const char *end;

	end = call->in_len ? memchr(call->in, 0, call->in_len) : NULL;
	if (!end) {
		if (call->in_len >= core->page_size)
			return core_refuse(core, -EINVAL,
					   "SET_FILTER's text is longer than a page");
		return core_refuse(core, -EFAULT, "SET_FILTER's text cannot be read");
	}
	if (!event->pmu->set_filter)
		return core_refuse(
			core, -EINVAL,
			"SET_FILTER is for tracepoints and address filters; %s has neither",
			event->pmu->name);
	return event->pmu->set_filter(event, call->in);
}

static int do_set_bpf(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	int fd = (int)(u32)call->arg, err = -EBADF;

	if (fd >= 0 && core->ops->fd_bpf)
		err = core->ops->fd_bpf(core->ctx, call->caller, fd);
	if (err)
		return core_refuse_default(core, err,
					   "SET_BPF: %d is no descriptor of a BPF program", fd);
	return core_refuse(
		core, -EOPNOTSUPP,
		"SET_BPF: events of this PMU happen outside the kernel, where no BPF program "
		"can see them");
}

static int do_query_bpf(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;

	if (!perm_capable(core, call->caller))
		return core_refuse(core, -EPERM, "QUERY_BPF needs CAP_PERFMON");
	return core_refuse(core, -EINVAL, "QUERY_BPF is for tracepoints, this event is %s's",
			   event->pmu->name);
}

static int do_modify(struct event *event, struct ioctl_call *call)
{
	struct core *core = event->core;
	struct pe_attr attr;
	u32 store;
	int err = attr_copy(core, call->caller, call->in, call->in_len, &attr, &store);

	if (store) {
		memcpy(call->out, &store, sizeof(store));
		call->out_len = sizeof(store);
		call->out_at = offsetof(struct pe_attr, size);
	}
	if (err)
		return err;
	if (attr.type != event->attr.type)
		return core_refuse(core, -EINVAL,
				   "MODIFY_ATTRIBUTES cannot change attr.type, which is %u",
				   event->attr.type);
	return core_refuse(core, -EOPNOTSUPP,
			   "MODIFY_ATTRIBUTES moves breakpoints only; open a new event instead");
}

size_t ioctl_reads(u32 cmd)
{
	switch (cmd) {
	case PERF_EVENT_IOC_PERIOD: return sizeof(u64);
	case PERF_EVENT_IOC_SET_FILTER:
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES: return 4096;
	case PERF_EVENT_IOC_QUERY_BPF: return sizeof(struct perf_event_query_bpf);
	default: return 0;
	}
}

static int dispatch(struct event *event, struct ioctl_call *call)
{
	u64 id;

	switch (call->cmd) {
	case PERF_EVENT_IOC_ENABLE: for_each(event, call->arg, event_enable); return 0;
	case PERF_EVENT_IOC_DISABLE: for_each(event, call->arg, event_disable); return 0;
	case PERF_EVENT_IOC_RESET: for_each(event, call->arg, event_reset); return 0;
	case PERF_EVENT_IOC_REFRESH: return do_refresh(event, call->arg);
	case PERF_EVENT_IOC_PERIOD: return do_period(event, call);
	case PERF_EVENT_IOC_ID:
		id = event_primary_id(event);
		memcpy(call->out, &id, sizeof(id));
		call->out_len = sizeof(id);
		return 0;
	case PERF_EVENT_IOC_SET_OUTPUT: return do_set_output(event, call);
	case PERF_EVENT_IOC_SET_FILTER: return do_set_filter(event, call);
	case PERF_EVENT_IOC_SET_BPF: return do_set_bpf(event, call);
	case PERF_EVENT_IOC_PAUSE_OUTPUT: return buffer_pause(event, call->arg != 0);
	case PERF_EVENT_IOC_QUERY_BPF: return do_query_bpf(event, call);
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES: return do_modify(event, call);
	default: return core_refuse(event->core, -ENOTTY, "ioctl %#x is none of perf's", call->cmd);
	}
}

int event_ioctl(struct event *event, struct ioctl_call *call)
{
	int err;

	reason_clear(event->core);
	call->out_len = 0;
	call->out_at = 0;
	err = dispatch(event, call);
	core_settle(event->core);
	return err;
}
