/* Breakpoints [TYPE-06, ATTR-43..45, IOC-12]. */
#include "pmu/probes-priv.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

#include "core/core.h"
#include "core/event/event.h"

/* Of one thread. No registers are used up; this is what is told a thread at a time. */
#define BREAKPOINTS 64u

static int breakpoint_shape(const struct event *event, const struct pe_attr *attr)
{
	struct core *core = event->core;

	switch (attr->bp_type) {
	case HW_BREAKPOINT_X:
		if (attr->bp_len != sizeof(long))
			return core_refuse(core, -EINVAL, BREAKPOINT_EXEC,
					   .number = {attr->bp_len});
		break;
	case HW_BREAKPOINT_W:
	case HW_BREAKPOINT_RW:
		/* More than 8 bytes are a range, which some CPUs have: the host says so. */
		if (!attr->bp_len || attr->bp_len & (attr->bp_len - 1))
			return core_refuse(core, -EINVAL, BREAKPOINT_LENGTH,
					   .number = {attr->bp_len});
		break;
	default: return core_refuse(core, -EINVAL, BREAKPOINT_TYPE, .number = {attr->bp_type});
	}
	/* X breaks at any instruction; its length says nothing about alignment. */
	if (attr->bp_type != HW_BREAKPOINT_X && attr->bp_addr & (attr->bp_len - 1))
		return core_refuse(core, -EINVAL, BREAKPOINT_ALIGN,
				   .number = {attr->bp_addr, attr->bp_len});
	return 0;
}

static int check_room(const struct event *event)
{
	const struct probe *probe;
	u32 n = 0;

	list_for_each_entry (probe, &probes_of(event)->opened, link)
		n += probe->kind == PROBE_EXECUTED && probe->event->target == event->target;
	if (n < BREAKPOINTS)
		return 0;
	return core_refuse(event->core, -ENOSPC, VIRTUAL_BREAKPOINTS, .number = {n});
}

static enum probe_kind kind_of(const struct pe_attr *attr)
{
	return attr->bp_type == HW_BREAKPOINT_X ? PROBE_EXECUTED : PROBE_ACCESSED;
}

static int reserve(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);
	int err = host->reserve(host->ctx, probe_of(event));

	if (!err)
		return 0;
	if (err == -ENOSPC)
		return core_refuse(event->core, err, BREAKPOINT_REGISTERS);
	if (err == -ENOMEM)
		return core_refuse(event->core, err, NO_MEMORY, .name = {"a breakpoint"});
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_WATCHPOINT, .number = {(u64)-err});
}

int breakpoint_init(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	int err;

	if (attr->type != PERF_TYPE_BREAKPOINT)
		return -ENOENT;
	err = probe_no_branches(event);
	if (!err)
		err = breakpoint_shape(event, attr);
	if (err)
		return err;
	if (attr->bp_addr >> 63) {
		if (attr->exclude_kernel)
			return core_refuse(event->core, -EINVAL, BREAKPOINT_KERNEL);
		if (!event_capable(event, CORE_CAP_SYS_ADMIN))
			return core_refuse(event->core, -EPERM, CAP_BREAKPOINT);
	}
	if (!probe_host_of(event) || attr->bp_addr >> 63)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_BREAKPOINT);
	err = attr->bp_type == HW_BREAKPOINT_X ? check_room(event) : 0;
	if (!err)
		err = probe_opened(
			event,
			&(struct probe){.kind = kind_of(attr), .nr_at = 1, .at = {attr->bp_addr}});
	if (err || attr->bp_type == HW_BREAKPOINT_X)
		return err;
	err = reserve(event);
	if (err)
		probe_closed(event);
	return err;
}

/* Nothing else than where it is and what it waits for may change. */
static bool same_otherwise(const struct event *event, const struct pe_attr *attr)
{
	struct pe_attr now = event->attr;

	now.size = attr->size;
	now.bp_addr = attr->bp_addr;
	now.bp_type = attr->bp_type;
	now.bp_len = attr->bp_len;
	now.disabled = attr->disabled;
	return !memcmp(&now, attr, sizeof(now));
}

static int move(struct event *event, const struct pe_attr *attr)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe *probe = probe_of(event);

	event->attr.bp_addr = attr->bp_addr;
	event->attr.bp_type = attr->bp_type;
	event->attr.bp_len = attr->bp_len;
	probe->at[0] = attr->bp_addr;
	probe->kind = kind_of(attr);
	if (probe->watch)
		host->release(host->ctx, probe);
	return probe->kind == PROBE_ACCESSED ? reserve(event) : 0;
}

int breakpoint_modify(struct event *event, const struct pe_attr *attr)
{
	struct pe_attr was;
	int err = breakpoint_shape(event, attr);

	if (err)
		return err;
	if (attr->bp_addr >> 63 || !same_otherwise(event, attr))
		return core_refuse(event->core, -EINVAL, MODIFY_FIELDS);
	was = event->attr;
	err = move(event, attr);
	if (err) {
		(void)!move(event, &was);
		return err;
	}
	event->attr.disabled = attr->disabled;
	return 0;
}
