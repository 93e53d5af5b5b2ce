/* Software events: the core's clocks, and counters that the kernel keeps of a thread anyway. */
#include "pmu/drivers.h"

#include <errno.h>
#include <stdlib.h>

#include "core/event.h"

struct software_pmu {
	struct pmu pmu;
	const struct pmu_source *source;
	struct source_watch watch;
};

/* hw.what of events that ask no source. */
enum { WHAT_CLOCK = SOURCE_MAX, WHAT_NOTHING };

static struct software_pmu *software(struct pmu *pmu)
{
	return container_of(pmu, struct software_pmu, pmu);
}

/* Happens in user mode too; what else there is to count happens in the kernel. */
static bool by_mode(u64 config)
{
	return config == PERF_COUNT_SW_PAGE_FAULTS || config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
}

static int choose_source(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	struct software_pmu *sw = software(event->pmu);
	enum sw_mode mode = SW_ALL;

	if (attr->exclude_user && attr->exclude_kernel) {
		event->hw.what = WHAT_NOTHING;
		return 0;
	}
	if (attr->exclude_kernel)
		mode = SW_USER;
	else if (attr->exclude_user)
		mode = SW_KERNEL;
	if (!(sw->source->have & BIT(SW_WHAT(attr->config, mode)))) {
		/* Most faults are of user mode: their sum would be far from the kernel's. */
		if (mode == SW_KERNEL && by_mode(attr->config))
			return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_FAULTS);
		mode = SW_ALL;
	}
	event->hw.what = SW_WHAT(attr->config, mode);
	if (sw->source->have & BIT(event->hw.what))
		return 0;
	if (attr->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
	    attr->config == PERF_COUNT_SW_EMULATION_FAULTS) {
		event->hw.what = WHAT_NOTHING;
		return 0;
	}
	return core_refuse(event->core, -ENOENT, VIRTUAL_SOFTWARE, .number = {attr->config});
}

static int software_init(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	struct software_pmu *sw = software(event->pmu);
	int err;

	if (attr->type != PERF_TYPE_SOFTWARE)
		return -ENOENT;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return core_refuse(event->core, -EOPNOTSUPP, NO_BRANCHES,
				   .name = {event->pmu->name});
	switch (attr->config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK: event->hw.what = WHAT_CLOCK; break;
	case PERF_COUNT_SW_DUMMY:
	case PERF_COUNT_SW_BPF_OUTPUT: event->hw.what = WHAT_NOTHING; break;
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
	case PERF_COUNT_SW_CPU_MIGRATIONS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
	case PERF_COUNT_SW_ALIGNMENT_FAULTS:
	case PERF_COUNT_SW_EMULATION_FAULTS:
	case PERF_COUNT_SW_CGROUP_SWITCHES:
		err = choose_source(event);
		if (err)
			return err;
		break;
	default: return core_refuse(event->core, -ENOENT, SOFTWARE_ID, .number = {attr->config});
	}
	if (!event->target)
		source_watch(&sw->watch, sw->source, &sw->pmu);
	return 0;
}

static void software_destroy(struct event *event)
{
	if (!event->target)
		source_unwatch(&software(event->pmu)->watch);
}

static u64 raw(struct event *event)
{
	if (event->hw.what == WHAT_CLOCK)
		return event_time(event);
	if (event->hw.what == WHAT_NOTHING)
		return 0;
	return source_raw(software(event->pmu)->source, event->pmu, event, (u32)event->hw.what);
}

static void software_read(struct event *event)
{
	source_event_read(event, raw);
}

static void software_start(struct event *event, u32 flags)
{
	(void)flags;
	source_event_start(event, raw);
}

static void software_stop(struct event *event, u32 flags)
{
	(void)flags;
	source_event_stop(event, raw);
}

static int software_add(struct event *event, u32 flags)
{
	event->hw.state = HW_STOPPED;
	if (flags & PMU_EF_START)
		software_start(event, 0);
	return 0;
}

static void software_sched_task(struct pmu *pmu, struct task *task, struct cpu *cpu, bool in)
{
	struct software_pmu *sw = software(pmu);

	source_sched_task(&sw->watch, sw->source, pmu, task, cpu, in);
}

int software_pmu_new(struct core *core, const struct pmu_source *source, struct pmu **pmu)
{
	struct software_pmu *sw = calloc(1, sizeof(*sw));
	int err;

	if (!sw)
		return -ENOMEM;
	sw->source = source;
	sw->pmu = (struct pmu){
		.name = "software",
		.type = PERF_TYPE_SOFTWARE,
		.class = PMU_SOFTWARE,
		.caps = PMU_CAP_NO_NMI | PMU_CAP_NO_INTERRUPT,
		.event_init = software_init,
		.destroy = software_destroy,
		.add = software_add,
		.del = software_stop,
		.start = software_start,
		.stop = software_stop,
		.read = software_read,
		.sched_task = software_sched_task,
		.task_size = sizeof(struct source_task),
		.cpu_size = sizeof(struct source_cpu),
	};
	err = pmu_register(core, &sw->pmu);
	if (err) {
		free(sw);
		return err;
	}
	*pmu = &sw->pmu;
	return 0;
}

void software_pmu_free(struct pmu *pmu)
{
	if (pmu)
		free(software(pmu));
}
