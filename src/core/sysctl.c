/* /proc/sys/kernel/perf_* [FILE-01..07]: what a write may set. */
#include "core/core-priv.h"

const struct core_sysctl *core_sysctl(const struct core *core)
{
	return &core->sysctl;
}

int core_set_paranoid(struct core *core, int value)
{
	reason_clear(core);
	core->sysctl.paranoid = value;
	return 0;
}

int core_set_max_sample_rate(struct core *core, int value)
{
	u32 percent = core->sysctl.cpu_time_max_percent;

	reason_clear(core);
	/* 0 and 100 switched the limit off, so there is nothing to set. */
	if (percent == 0 || percent == 100)
		return core_refuse(
			core, -EINVAL,
			"perf_cpu_time_max_percent is %u, which switches the limit off; set it "
			"to between 1 and 99 first",
			percent);
	if (value < 1)
		return core_refuse(core, -EINVAL, "perf_event_max_sample_rate must be at least 1");
	core->sysctl.max_sample_rate = (u32)value;
	return 0;
}

int core_set_cpu_time_max_percent(struct core *core, int value)
{
	reason_clear(core);
	if (value < 0 || value > 100)
		return core_refuse(core, -EINVAL, "perf_cpu_time_max_percent is from 0 to 100");
	core->sysctl.cpu_time_max_percent = (u32)value;
	return 0;
}

static int set_stack(struct core *core, int value, int max, u32 *field, const char *name)
{
	reason_clear(core);
	if (value < 0 || value > max)
		return core_refuse(core, -EINVAL, "%s is from 0 to %d", name, max);
	if (core->nr_callchain)
		return core_refuse(
			core, -EBUSY,
			"%s cannot change while %u events sample call chains; close them", name,
			core->nr_callchain);
	*field = (u32)value;
	return 0;
}

int core_set_max_stack(struct core *core, int value)
{
	return set_stack(core, value, 640 * 1024, &core->sysctl.max_stack, "perf_event_max_stack");
}

int core_set_max_contexts_per_stack(struct core *core, int value)
{
	return set_stack(core, value, 1000, &core->sysctl.max_contexts_per_stack,
			 "perf_event_max_contexts_per_stack");
}

int core_set_mlock_kb(struct core *core, int value)
{
	reason_clear(core);
	core->sysctl.mlock_kb = value;
	return 0;
}
