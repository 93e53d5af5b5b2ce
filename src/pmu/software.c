/* Software events: the core's clocks, and counters that the kernel keeps of a thread anyway. */
#include "pmu/drivers.h"

#include <errno.h>
#include <stdlib.h>

#include "core/event/event.h"

static bool has(const struct event *event, u32 what)
{
	return container_of(event->pmu, struct source_pmu, pmu)->source->have & BIT(what);
}

static bool stops(const struct event *event, u64 config)
{
	return container_of(event->pmu, struct source_pmu, pmu)->source->stops & BIT(config);
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
	enum sw_mode mode = SW_ALL;

	if (attr->exclude_user && attr->exclude_kernel) {
		event->hw.what = SOURCE_NOTHING;
		return 0;
	}
	if (attr->exclude_kernel)
		mode = SW_USER;
	else if (attr->exclude_user)
		mode = SW_KERNEL;
	if (!has(event, SW_WHAT(attr->config, mode))) {
		/* Most faults are of user mode: their sum would be far from the kernel's. */
		if (mode == SW_KERNEL && by_mode(attr->config))
			return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_FAULTS);
		mode = SW_ALL;
	}
	event->hw.what = SW_WHAT(attr->config, mode);
	if (has(event, (u32)event->hw.what))
		return 0;
	if (attr->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
	    attr->config == PERF_COUNT_SW_EMULATION_FAULTS) {
		event->hw.what = SOURCE_NOTHING;
		return 0;
	}
	return core_refuse(event->core, -ENOENT, VIRTUAL_SOFTWARE, .number = {attr->config});
}

static int software_init(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	bool told;
	int err;

	if (attr->type != PERF_TYPE_SOFTWARE)
		return -ENOENT;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return core_refuse(event->core, -EOPNOTSUPP, NO_BRANCHES,
				   .name = {event->pmu->name});
	switch (attr->config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK: event->hw.what = SOURCE_CLOCK; break;
	case PERF_COUNT_SW_DUMMY:
	case PERF_COUNT_SW_BPF_OUTPUT: event->hw.what = SOURCE_NOTHING; break;
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
	/* Of what never happens there are no samples; of the rest the host's kernel must tell. */
	told = event_is_sampling(event) && event->hw.what != SOURCE_NOTHING &&
	       stops(event, attr->config);
	event->hw.host_periods = told && event->target;
	event->hw.by_tasks = told && !event->target;
	event->hw.no_interrupt = event->hw.what != SOURCE_NOTHING && !told;
	source_opened(event);
	return 0;
}

int software_pmu_new(struct core *core, const struct pmu_source *source, struct pmu **pmu)
{
	struct source_pmu *sw = calloc(1, sizeof(*sw));
	int err;

	if (!sw)
		return -ENOMEM;
	sw->source = source;
	sw->pmu = (struct pmu){
		.name = "software",
		.type = PERF_TYPE_SOFTWARE,
		.class = PMU_SOFTWARE,
		.caps = PMU_CAP_NO_NMI,
		.event_init = software_init,
		.add = source_add,
		.del = source_stop,
		SOURCE_PMU_OPS,
		.destroy = source_destroy,
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
		free(container_of(pmu, struct source_pmu, pmu));
}
