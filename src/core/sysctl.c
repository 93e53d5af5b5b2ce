/* /proc/sys/kernel/perf_* [FILE-01..07]: what a write may set. */
#include "core/core-priv.h"

const struct core_sysctl *core_sysctl(const struct core *core)
{
	return &core->sysctl;
}

int core_set_paranoid(struct core *core, int value)
{
	core_refusal_clear(core);
	core->sysctl.paranoid = value;
	return 0;
}

int core_set_max_sample_rate(struct core *core, int value)
{
	u32 percent = core->sysctl.cpu_time_max_percent;

	core_refusal_clear(core);
	/* 0 and 100 switched the limit off, so there is nothing to set. */
	if (percent == 0 || percent == 100)
		return core_refuse(core, -EINVAL, RATE_UNLIMITED, .number = {percent});
	if (value < 1)
		return core_refuse(core, -EINVAL, SETTING_LEAST, .number = {1},
				   .name = {"perf_event_max_sample_rate"});
	core->sysctl.max_sample_rate = (u32)value;
	return 0;
}

int core_set_cpu_time_max_percent(struct core *core, int value)
{
	core_refusal_clear(core);
	if (value < 0 || value > 100)
		return core_refuse(core, -EINVAL, SETTING_RANGE, .number = {0, 100},
				   .name = {"perf_cpu_time_max_percent"});
	core->sysctl.cpu_time_max_percent = (u32)value;
	return 0;
}

static int set_stack(struct core *core, int value, int max, u32 *field, const char *name)
{
	core_refusal_clear(core);
	if (value < 0 || value > max)
		return core_refuse(core, -EINVAL, SETTING_RANGE, .number = {0, max},
				   .name = {name});
	if (core->nr_callchain)
		return core_refuse(core, -EBUSY, SETTING_USED, .number = {core->nr_callchain},
				   .name = {name});
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
	core_refusal_clear(core);
	core->sysctl.mlock_kb = value;
	return 0;
}
