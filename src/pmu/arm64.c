/* The driver; what the exclude bits and thresholds mean is in arm64-modes.c. */
#include "pmu/arm64.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/core.h"
#include "core/event/event.h"

struct arm64_pmu {
	struct pmu pmu;
	struct arm64_pmu_config config;
	struct pmu_file files[16];
	char threshold_text[16];
};

/* Counters in use, by number; a task's and its CPU's must not meet. */
struct place {
	u32 used;
};

/* hw.config */
#define CHAINED BIT(0) /* on two counters: hw.idx and the one before it */

/* Armv8's common events that the generic ids stand for. 0: unmapped, ENOENT. */
static const u16 generic_codes[PERF_COUNT_HW_MAX] = {
	[PERF_COUNT_HW_CPU_CYCLES] = ARM64_EVENT_CPU_CYCLES,
	[PERF_COUNT_HW_INSTRUCTIONS] = 0x08,
	[PERF_COUNT_HW_CACHE_REFERENCES] = 0x04,
	[PERF_COUNT_HW_CACHE_MISSES] = 0x03,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = 0x21,
	[PERF_COUNT_HW_BRANCH_MISSES] = 0x10,
	[PERF_COUNT_HW_BUS_CYCLES] = 0x1d,
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = 0x23,
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = 0x24,
};

static struct arm64_pmu *arm64(struct pmu *pmu)
{
	return container_of(pmu, struct arm64_pmu, pmu);
}

static bool is_long(const struct event *event)
{
	return event->attr.config1 & ARM64_LONG;
}

static bool wants_user(const struct event *event)
{
	return event->attr.config1 & ARM64_RDPMC;
}

static struct arm64_threshold threshold_of(const struct event *event)
{
	u64 config1 = event->attr.config1;

	return (struct arm64_threshold){
		.value = config1 >> 5 & 0xfff,
		.compare = (enum arm64_compare)(config1 >> 3 & 3),
		.count = config1 & ARM64_TH_COUNT,
	};
}

static u32 threshold_max(const struct arm64_pmu *arm)
{
	return arm->config.aarch32 ? 0 : arm->config.threshold_max;
}

static bool wants_cycle_counter(const struct event *event)
{
	return event->hw.what == ARM64_EVENT_CPU_CYCLES && !threshold_of(event).value;
}

static bool must_chain(const struct arm64_pmu *arm, const struct event *event)
{
	return is_long(event) && !arm->config.long_events && !wants_user(event);
}

static u32 bits_of(s32 idx, bool chained)
{
	return chained ? 3u << (idx - 1) : 1u << idx;
}

/* A counter for @event among those not in @used, or -EAGAIN. A pair's number is its odd half's. */
static s32 choose_counter(const struct arm64_pmu *arm, const struct event *event, u32 used,
			  bool *chained)
{
	s32 n = (s32)arm->config.counters;

	*chained = false;
	if (wants_cycle_counter(event)) {
		if (!(used & 1u << ARM64_CYCLE_IDX))
			return ARM64_CYCLE_IDX;
		/* 64 bits for a user to read, in one counter: there is no other. */
		if (is_long(event) && wants_user(event) && !arm->config.long_events)
			return -EAGAIN;
	}
	*chained = must_chain(arm, event);
	for (s32 i = *chained; i < n; i += *chained ? 2 : 1)
		if (!(used & bits_of(i, *chained)))
			return i;
	return -EAGAIN;
}

static int check_group(struct arm64_pmu *arm, struct event *event)
{
	const struct event *leader = event->leader, *sibling;
	bool chained;
	u32 used = 0;
	s32 idx;

	if (leader != event && leader->pmu == event->pmu) {
		idx = choose_counter(arm, leader, used, &chained);
		used |= idx < 0 ? 0 : bits_of(idx, chained);
	}
	if (leader != event)
		list_for_each_entry (sibling, &leader->siblings, sibling_link) {
			if (sibling->pmu != event->pmu)
				continue;
			idx = choose_counter(arm, sibling, used, &chained);
			used |= idx < 0 ? 0 : bits_of(idx, chained);
		}
	if (choose_counter(arm, event, used, &chained) >= 0)
		return 0;
	return core_refuse(event->core, -EINVAL, GROUP_ARM64, .number = {arm->config.counters},
			   .name = {event->pmu->name});
}

static int map_event(struct event *event)
{
	const struct pe_attr *attr = &event->attr;

	if (attr->type == PERF_TYPE_HARDWARE) {
		if (attr->config >= ARRAY_SIZE(generic_codes))
			return core_refuse(event->core, -EINVAL, HARDWARE_ID,
					   .number = {attr->config});
		event->hw.what = generic_codes[attr->config];
		if (!event->hw.what)
			return core_refuse(event->core, -ENOENT, ARM64_GENERIC,
					   .number = {attr->config});
	} else if (attr->type == (u32)event->pmu->type) {
		event->hw.what = attr->config & 0xffff;
	} else {
		return -ENOENT;
	}
	if (event->hw.what == ARM64_EVENT_CHAIN)
		return core_refuse(event->core, -EINVAL, ARM64_CHAIN);
	return 0;
}

static int check_user_access(struct arm64_pmu *arm, const struct event *event)
{
	if (!wants_user(event))
		return 0;
	if (!event->target)
		return core_refuse(event->core, -EINVAL, ARM64_RDPMC_TASK);
	if (arm->config.cpus && event->attr.type == PERF_TYPE_HARDWARE)
		return core_refuse(event->core, -EOPNOTSUPP, ARM64_RDPMC_TYPE,
				   .number = {event->pmu->type});
	if (is_long(event) && event->hw.what != ARM64_EVENT_CPU_CYCLES && !arm->config.long_events)
		return core_refuse(event->core, -EOPNOTSUPP, ARM64_RDPMC_LONG);
	return 0;
}

static int check_filters(struct arm64_pmu *arm, const struct event *event)
{
	u32 value = threshold_of(event).value;

	if (event->attr.exclude_idle)
		return core_refuse(event->core, -EOPNOTSUPP, NO_IDLE, .name = {event->pmu->name});
	if (value > threshold_max(arm))
		return core_refuse(event->core, -EINVAL, ARM64_THRESHOLD,
				   .number = {value, threshold_max(arm)});
	return 0;
}

static int arm64_init(struct event *event)
{
	struct arm64_pmu *arm = arm64(event->pmu);
	int err;

	if (event->attr.type != PERF_TYPE_HARDWARE && event->attr.type != (u32)event->pmu->type)
		return -ENOENT;
	if (event->cpu != -1 && arm->config.cpus && !(arm->config.cpus & BIT(event->cpu)))
		return core_refuse(event->core, -ENOENT, PMU_OTHER_CORE, .number = {event->cpu},
				   .name = {event->pmu->name});
	if (event->attr.sample_type & PERF_SAMPLE_BRANCH_STACK)
		return core_refuse(event->core, -EOPNOTSUPP, NO_BRANCHES,
				   .name = {event->pmu->name});
	err = map_event(event);
	if (!err)
		err = check_user_access(arm, event);
	if (!err)
		err = check_filters(arm, event);
	if (!err)
		err = check_group(arm, event);
	return err;
}

static struct place *place_of(struct event *event)
{
	struct task *task = event_on_task(event);

	return task ? pmu_task(event->pmu, task) : pmu_cpu(event->pmu, event_on_cpu(event));
}

static u32 used_by_others(struct event *event)
{
	struct cpu *cpu = event_on_cpu(event);
	u32 used = 0;

	if (event_on_task(event))
		return ((struct place *)pmu_cpu(event->pmu, cpu))->used;
	for (struct task *t = cpu_next_task(cpu, NULL); t; t = cpu_next_task(cpu, t))
		used |= ((struct place *)pmu_task(event->pmu, t))->used;
	return used;
}

/* How many bits this event's counter has; the cycle counter always has them all. */
static u32 width_of(const struct event *event)
{
	return is_long(event) || event->hw.idx == ARM64_CYCLE_IDX ? 64 : 32;
}

static u64 raw(struct event *event)
{
	struct arm64_pmu *arm = arm64(event->pmu);
	struct arm64_modes modes = arm64_modes(&event->attr, &arm->config.env);
	struct arm64_threshold threshold = threshold_of(event);
	u64 value = arm->config.value(arm->config.ctx, event_on_task(event),
				      cpu_number(event_on_cpu(event)), (u32)event->hw.what, &modes,
				      &threshold);

	return width_of(event) == 64 ? value : value & 0xffffffff;
}

/*
 * Virtual 64 bits out of what the counter has: the difference is taken modulo its width [DES-01].
 */
static void arm64_read(struct event *event)
{
	u64 now, delta;

	if (event->hw.state & HW_STOPPED)
		return;
	now = raw(event);
	delta = now - event->hw.prev;
	if (width_of(event) == 32)
		delta &= 0xffffffff;
	event->count += (s64)delta;
	event->hw.prev = now;
}

static void arm64_start(struct event *event, u32 flags)
{
	(void)flags;
	event->hw.state = 0;
	event->hw.prev = raw(event);
}

static void arm64_stop(struct event *event, u32 flags)
{
	(void)flags;
	arm64_read(event);
	event->hw.state = HW_STOPPED | HW_UPTODATE;
}

static int arm64_add(struct event *event, u32 flags)
{
	struct place *place = place_of(event);
	bool chained;
	s32 idx = choose_counter(arm64(event->pmu), event, place->used | used_by_others(event),
				 &chained);

	if (idx < 0)
		return idx;
	event->hw.idx = idx;
	event->hw.config = chained ? CHAINED : 0;
	place->used |= bits_of(idx, chained);
	event->hw.state = HW_STOPPED;
	if (flags & PMU_EF_START)
		arm64_start(event, 0);
	return 0;
}

static void arm64_del(struct event *event, u32 flags)
{
	arm64_stop(event, flags);
	place_of(event)->used &= ~bits_of(event->hw.idx, event->hw.config & CHAINED);
	event->hw.idx = -1;
}

static u32 arm64_event_idx(struct event *event)
{
	if (!arm64(event->pmu)->config.user_access || !wants_user(event))
		return 0;
	return (u32)event->hw.idx + 1;
}

static u16 arm64_event_width(struct event *event)
{
	if (!wants_user(event))
		return 0;
	return is_long(event) ? 64 : 32;
}

static bool arm64_on_cpu(struct pmu *pmu, u32 cpu)
{
	u64 cpus = arm64(pmu)->config.cpus;

	return !cpus || cpus & BIT(cpu);
}

static void fill_files(struct arm64_pmu *arm)
{
	static const struct pmu_file fixed[] = {
		{"format/event", "config:0-15\n"},
		{"format/long", "config1:0\n"},
		{"format/rdpmc", "config1:1\n"},
		{"format/threshold_count", "config1:2\n"},
		{"format/threshold_compare", "config1:3-4\n"},
		{"format/threshold", "config1:5-16\n"},
		{"events/cpu_cycles", "event=0x0011\n"},
		{"events/inst_retired", "event=0x0008\n"},
		{"events/br_retired", "event=0x0021\n"},
		{"events/dtlb_walk", "event=0x0034\n"},
		{"events/stall_slot", "event=0x003f\n"},
	};
	size_t n = ARRAY_SIZE(fixed);

	_Static_assert(ARRAY_SIZE(fixed) + 2 <= ARRAY_SIZE(arm->files), "room for files");
	for (size_t i = 0; i < n; i++)
		arm->files[i] = fixed[i];
	snprintf(arm->threshold_text, sizeof(arm->threshold_text), "0x%08x\n", threshold_max(arm));
	arm->files[n] = (struct pmu_file){"caps/threshold_max", arm->threshold_text};
}

int arm64_pmu_new(struct core *core, const struct arm64_pmu_config *config, struct pmu **pmu)
{
	struct arm64_pmu *arm = calloc(1, sizeof(*arm));
	int err;

	CHECK(config->counters <= ARM64_CYCLE_IDX && config->threshold_max <= 4095);
	if (!arm)
		return -ENOMEM;
	arm->config = *config;
	fill_files(arm);
	arm->pmu = (struct pmu){
		.name = "armv8_pmuv3",
		.type = -1,
		.class = PMU_HARDWARE,
		.caps = PMU_CAP_NO_INTERRUPT | PMU_CAP_EXTENDED_HW_TYPE,
		.event_init = arm64_init,
		.add = arm64_add,
		.del = arm64_del,
		.start = arm64_start,
		.stop = arm64_stop,
		.read = arm64_read,
		.event_idx = arm64_event_idx,
		.event_width = arm64_event_width,
		.on_cpu = arm64_on_cpu,
		.task_size = sizeof(struct place),
		.cpu_size = sizeof(struct place),
		.files = arm->files,
	};
	err = pmu_register(core, &arm->pmu);
	if (err) {
		free(arm);
		return err;
	}
	*pmu = &arm->pmu;
	return 0;
}

void arm64_pmu_free(struct pmu *pmu)
{
	if (pmu)
		free(arm64(pmu));
}

void arm64_pmu_set_user_access(struct pmu *pmu, bool on)
{
	arm64(pmu)->config.user_access = on;
}
