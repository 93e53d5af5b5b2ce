/* ioctl(2) on an event [IOC]. */
#include "core/core-priv.h"

#include <string.h>

/* The kernel's BPF_TRACE_MAX_PROGS: of one tracepoint. */
#define BPF_PROGRAMS_MAX 64u

/*
 * On the event and its copies; with the group flag on its leader and all members, copies included.
 */
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
	return core_refuse(event->core, -EINVAL, NOT_SAMPLING, .name = {cmd});
}

static int do_refresh(struct event *event, u64 arg)
{
	int err;

	if (event->attr.inherit)
		return core_refuse(event->core, -EINVAL, REFRESH_INHERITED);
	err = need_sampling(event, "REFRESH");
	if (err)
		return err;
	event->event_limit = (s32)((u32)event->event_limit + (u32)arg);
	event_enable(event);
	return 0;
}

static int do_period(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	u64 value;
	int err;

	if (call->in_len < sizeof(value))
		return core_refuse(core, -EFAULT, PERIOD_FAULT);
	memcpy(&value, call->in, sizeof(value));
	err = need_sampling(event, "PERIOD");
	if (err)
		return err;
	if (!value)
		return core_refuse(core, -EINVAL, PERIOD_ZERO);
	if (event->attr.freq) {
		if (value > core->sysctl.max_sample_rate)
			return core_refuse(core, -EINVAL, SAMPLE_RATE,
					   .number = {value, core->sysctl.max_sample_rate});
	} else {
		if (event->pmu->check_period && event->pmu->check_period(event, value))
			return core_refuse_default(core, -EINVAL, PERIOD_PMU,
						   .name = {event->pmu->name});
		if (value >> 63)
			return core_refuse(core, -EINVAL, PERIOD_HIGH);
	}
	period_force(event, value);
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
			return core_refuse(core, -EBADF, OUTPUT_FD);
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
			return core_refuse(core, -EINVAL, FILTER_LONG);
		return core_refuse(core, -EFAULT, FILTER_FAULT);
	}
	if (!event->pmu->set_filter)
		return core_refuse(core, -EINVAL, FILTER_PMU, .name = {event->pmu->name});
	return event->pmu->set_filter(event, call->in);
}

static int do_set_bpf(struct event *event, const struct ioctl_call *call)
{
	struct core *core = event->core;
	int fd = (int)(u32)call->arg, err = -EBADF;

	if (fd >= 0 && core->ops->fd_bpf)
		err = core->ops->fd_bpf(core->ctx, call->caller, fd);
	if (err)
		return core_refuse_default(core, err, BPF_FD, .number = {fd});
	if (event->pmu->set_bpf)
		return event->pmu->set_bpf(event);
	return core_refuse(core, -EOPNOTSUPP, VIRTUAL_BPF);
}

/* Nobody can attach one. */
static int query_none(struct event *event, struct ioctl_call *call)
{
	struct perf_event_query_bpf query = {0};

	if (call->in_len < sizeof(query.ids_len))
		return core_refuse(event->core, -EFAULT, QUERY_FAULT);
	memcpy(&query.ids_len, call->in, sizeof(query.ids_len));
	if (query.ids_len > BPF_PROGRAMS_MAX)
		return core_refuse(event->core, -E2BIG, QUERY_ROOM, .number = {query.ids_len});
	memcpy(call->out, &query.prog_cnt, sizeof(query.prog_cnt));
	call->out_len = sizeof(query.prog_cnt);
	call->out_at = offsetof(struct perf_event_query_bpf, prog_cnt);
	return 0;
}

static int do_query_bpf(struct event *event, struct ioctl_call *call)
{
	struct core *core = event->core;

	if (!perm_capable(core, call->caller))
		return core_refuse(core, -EPERM, CAP_QUERY_BPF);
	if (event->attr.type == PERF_TYPE_TRACEPOINT)
		return query_none(event, call);
	return core_refuse(core, -EINVAL, BPF_TRACEPOINTS, .name = {event->pmu->name});
}

/* Afterwards it is on or off as its attr says, whatever it was before. */
static int modify_one(struct event *event, const struct pe_attr *attr)
{
	int err;

	event_disable(event);
	err = event->pmu->modify(event, attr);
	if (!event->attr.disabled)
		event_enable(event);
	return err;
}

static int modify_all(struct event *event, const struct pe_attr *attr)
{
	struct event *child;
	int err = modify_one(event, attr);

	list_for_each_entry (child, &event->children, child_link)
		if (!err)
			err = modify_one(child, attr);
	list_for_each_entry (child, &event->standins, child_link)
		if (!err)
			err = modify_one(child, attr);
	return err;
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
		return core_refuse(core, -EINVAL, MODIFY_TYPE, .number = {event->attr.type});
	if (!event->pmu->modify)
		return core_refuse(core, -EOPNOTSUPP, MODIFY_BREAKPOINTS);
	return modify_all(event, &attr);
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
	default: return core_refuse(event->core, -ENOTTY, IOCTL_UNKNOWN, .number = {call->cmd});
	}
}

int event_ioctl(struct event *event, struct ioctl_call *call)
{
	int err;

	core_refusal_clear(event->core);
	call->out_len = 0;
	call->out_at = 0;
	err = dispatch(event, call);
	core_settle(event->core);
	return err;
}
