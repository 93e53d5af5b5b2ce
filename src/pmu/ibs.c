/*
 * AMD's Instruction Based Sampling, as far as a model of a machine has it, so that `perf mem` and
 * `perf c2c` find on AMD's CPUs what they look for. Hardware tags each so many operations, of any
 * kind; here loads and stores alone are counted, since they are what the samples are about.
 */
#include "pmu/drivers.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/modeled.h"
#include "core/event/event.h"

#define IBS_CNT_CTL BIT(19) /* operations are counted, not cycles: here it makes no difference */

struct ibs_pmu {
	struct source_pmu base;
	enum cpu_kernel_mode kernel_mode;
};

/* What an access was is said as a whole, and of each. */
static void want_parts(struct event *event, bool open)
{
	const struct pmu_source *source =
		container_of(event->pmu, struct ibs_pmu, base.pmu)->base.source;

	if (source->want)
		source->want(source->ctx, NULL,
			     MODEL_CACHES | MODEL_TLBS | MODEL_EACH | MODEL_WHOLE, open);
}

static void ibs_destroy(struct event *event)
{
	source_destroy(event);
	want_parts(event, false);
}

static int ibs_init(struct event *event)
{
	const struct ibs_pmu *ibs = container_of(event->pmu, struct ibs_pmu, base.pmu);
	const struct pe_attr *attr = &event->attr;

	if (attr->type != (u32)event->pmu->type)
		return -ENOENT;
	if (attr->config & ~IBS_CNT_CTL || attr->config1 || attr->config2)
		return core_refuse(event->core, -EINVAL, CONFIG_UNKNOWN, .number = {attr->config},
				   .name = {event->pmu->name});
	if (!attr->exclude_kernel && ibs->kernel_mode == CPU_KERNEL_REFUSE)
		return core_refuse(event->core, -EACCES, VIRTUAL_KERNEL);
	event->hw.what = attr->exclude_user || attr->exclude_host
				 ? SOURCE_NOTHING
				 : CPU_MODELED + MODEL_DATA_ACCESSES;
	if (event_is_sampling(event) && event->hw.what != SOURCE_NOTHING)
		event->hw.measure = CPU_MEASURE;
	source_sampling(event);
	source_opened(event);
	want_parts(event, true);
	return 0;
}

static const struct pmu_file ibs_files[] = {
	{"format/cnt_ctl", "config:19\n"},
	{0},
};

int ibs_pmu_new(struct core *core, const struct cpu_pmu_config *config, struct pmu **pmu)
{
	struct ibs_pmu *ibs = calloc(1, sizeof(*ibs));
	int err;

	if (!ibs)
		return -ENOMEM;
	ibs->kernel_mode = config->kernel_mode;
	ibs->base.source = config->source;
	ibs->base.pmu = (struct pmu){
		.name = "ibs_op",
		.type = PE_TYPE_IBS,
		.class = PMU_HARDWARE,
		.event_init = ibs_init,
		.add = source_add,
		.del = source_stop,
		SOURCE_PMU_OPS,
		.destroy = ibs_destroy,
		.cpu_size = sizeof(struct source_cpu),
		.files = ibs_files,
	};
	err = pmu_register(core, &ibs->base.pmu);
	if (err)
		free(ibs);
	else
		*pmu = &ibs->base.pmu;
	return err;
}

void ibs_pmu_free(struct pmu *pmu)
{
	if (pmu)
		free(container_of(pmu, struct ibs_pmu, base.pmu));
}
