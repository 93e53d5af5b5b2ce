/*
 * PMUs that every kernel has and this one has not: tracepoints, breakpoints, kprobes and uprobes.
 * They refuse what the kernel would refuse with its errno, so that a wrong attr is not told "not
 * supported", and the rest with EOPNOTSUPP.
 */
#include "pmu/drivers.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/core.h"
#include "core/event/event.h"

enum { TRACEPOINT, BREAKPOINT, KPROBE, UPROBE, ABSENT_MAX };

/* What else was asked for may be what only the virtual PMU counts, so one run cannot have both. */
#define ALONE \
	"count them in a run of their own, in which the kernel counts (anyperf stat --pmu=kernel)"

struct absent_pmus {
	struct pmu pmus[ABSENT_MAX];
};

static int no_branches(const struct event *event)
{
	if (!(event->attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	return core_refuse(event->core, -EOPNOTSUPP, NO_BRANCHES, .name = {event->pmu->name});
}

static int tracepoint_init(struct event *event)
{
	int err;

	if (event->attr.type != PERF_TYPE_TRACEPOINT)
		return -ENOENT;
	err = no_branches(event);
	if (err)
		return err;
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_TRACEPOINT);
}

static int breakpoint_shape(const struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	struct core *core = event->core;

	switch (attr->bp_type) {
	case HW_BREAKPOINT_X:
		if (attr->bp_len != sizeof(long))
			return core_refuse(core, -EINVAL, BREAKPOINT_EXEC,
					   .number = {attr->bp_len});
		break;
	case HW_BREAKPOINT_W:
	case HW_BREAKPOINT_RW:
		if (attr->bp_len != 1 && attr->bp_len != 2 && attr->bp_len != 4 &&
		    attr->bp_len != 8)
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

static int breakpoint_init(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	int err;

	if (attr->type != PERF_TYPE_BREAKPOINT)
		return -ENOENT;
	err = no_branches(event);
	if (!err)
		err = breakpoint_shape(event);
	if (err)
		return err;
	if (attr->bp_addr >> 63) {
		if (attr->exclude_kernel)
			return core_refuse(event->core, -EINVAL, BREAKPOINT_KERNEL);
		if (!event_capable(event, CORE_CAP_SYS_ADMIN))
			return core_refuse(event->core, -EPERM, CAP_BREAKPOINT);
	}
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_BREAKPOINT);
}

static int kprobe_init(struct event *event)
{
	if ((s32)event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!event_capable(event, CORE_CAP_PERFMON) && !event_capable(event, CORE_CAP_SYS_ADMIN))
		return core_refuse(event->core, -EACCES, CAP_KPROBE);
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_KPROBE);
}

static int uprobe_init(struct event *event)
{
	if ((s32)event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!event_capable(event, CORE_CAP_SYS_ADMIN))
		return core_refuse(event->core, -EACCES, CAP_UPROBE);
	if (!event->attr.uprobe_path)
		return core_refuse(event->core, -EINVAL, PROBE_PATH);
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_UPROBE);
}

static int never_add(struct event *event, u32 flags)
{
	(void)event, (void)flags;
	CHECK(!"an absent PMU has an event");
}

static void never_flags(struct event *event, u32 flags)
{
	(void)event, (void)flags;
	CHECK(!"an absent PMU has an event");
}

static void never(struct event *event)
{
	(void)event;
	CHECK(!"an absent PMU has an event");
}

static const struct pmu_file kprobe_files[] = {{"format/retprobe", "config:0\n"}, {0}};

static const struct pmu_file uprobe_files[] = {
	{"format/retprobe", "config:0\n"},
	{"format/ref_ctr_offset", "config:32-63\n"},
	{0},
};

int absent_pmus_new(struct core *core, s32 kprobe_type, s32 uprobe_type, struct absent_pmus **out)
{
	const struct pmu table[ABSENT_MAX] = {
		[TRACEPOINT] = {.name = "tracepoint",
				.type = PERF_TYPE_TRACEPOINT,
				.event_init = tracepoint_init},
		[BREAKPOINT] = {.name = "breakpoint",
				.type = PERF_TYPE_BREAKPOINT,
				.event_init = breakpoint_init},
		[KPROBE] = {.name = "kprobe",
			    .type = kprobe_type,
			    .files = kprobe_files,
			    .event_init = kprobe_init},
		[UPROBE] = {.name = "uprobe",
			    .type = uprobe_type,
			    .files = uprobe_files,
			    .event_init = uprobe_init},
	};
	struct absent_pmus *absent = calloc(1, sizeof(*absent));
	int err;

	if (!absent)
		return -ENOMEM;
	for (int i = 0; i < ABSENT_MAX; i++) {
		struct pmu *pmu = &absent->pmus[i];

		*pmu = table[i];
		if (pmu->type < 0)
			continue;
		pmu->class = PMU_SOFTWARE;
		pmu->add = never_add;
		pmu->del = pmu->start = pmu->stop = never_flags;
		pmu->read = never;
		err = pmu_register(core, pmu);
		if (err) {
			/* The core keeps those that are registered already; it ends before them. */
			*out = absent;
			return err;
		}
	}
	*out = absent;
	return 0;
}

void absent_pmus_free(struct absent_pmus *absent)
{
	free(absent);
}
