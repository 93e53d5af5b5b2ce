/*
 * The virtual cpu PMU: what a same-ISA translator can count exactly, in user mode, under the names
 * that a CPU's own PMU has (type 4, generic hardware ids, the vendor's raw codes). Beside it the
 * PMU of the translator, which has names of its own for all that is counted.
 *
 * Every thread carries its own free-running 64-bit counters, so there is a counter for every event,
 * and --counters only pretends otherwise: then the events of a CPU and of each task on it share
 * that many.
 *
 * What depends on a machine is counted by the model of one, if there is one: its counters run free
 * as well.
 */
#include "pmu/drivers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/modeled.h"
#include "base/check.h"
#include "core/event/event.h"
#include "pmu/counters.h"
#include "pmu/cpu-sums.h"
#include "pmu/raw-codes.h"

struct cpu_pmu_data {
	struct source_pmu base;
	struct cpu_pmu_config config;
	struct cpu_sums sums;
	struct pmu_file files[48];
	char name_text[64], rdpmc_text[8], machine_text[64], windows_text[40];
};

/* What the core keeps for us; source.h wants its part first. */
struct on_cpu {
	struct source_cpu source;
	struct counters counters;
};

struct on_task {
	struct counters counters;
};

static struct cpu_pmu_data *data(struct pmu *pmu)
{
	return container_of(pmu, struct cpu_pmu_data, base.pmu);
}

/*
 * Fields of a raw code that the kernel passes on; the others (user, os, enable...) it sets itself.
 */
#define RAW_SELECT    0x000000ffull
#define RAW_UMASK     0x0000ff00ull
#define RAW_MODIFIERS 0xff840000ull /* edge, inv, cmask */
#define RAW_AMD_HIGH  0xf00000000ull

/* In hw.config: what was so when the event was opened. */
#define RDPMC_ALLOWED BIT(0)
#define COUNTS_OPENER BIT(1) /* who may look between any two of its instructions */

#define WITH_ACCESS (PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)

static const char *const hardware_names[PERF_COUNT_HW_MAX] = {
	"cpu-cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branch-instructions",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static int refuse_samples(struct event *event)
{
	return core_refuse(event->core, -ENOENT, MODEL_SAMPLES, .number = {event->attr.config},
			   .name = {data(event->pmu)->config.machine});
}

/* The counter exists. */
static int init_modeled(struct event *event, u32 counter)
{
	if (event_is_sampling(event) && !data(event->pmu)->config.machine_samples)
		return refuse_samples(event);
	event->hw.what = CPU_MODELED + counter;
	return 0;
}

static int init_hardware(struct event *event)
{
	u64 id = event->attr.config;

	if (id >= ARRAY_SIZE(hardware_names))
		return core_refuse(event->core, -EINVAL, HARDWARE_ID, .number = {id});
	if (id == PERF_COUNT_HW_INSTRUCTIONS) {
		event->hw.what = CPU_INSTRUCTIONS;
		return 0;
	}
	if (id == PERF_COUNT_HW_BRANCH_INSTRUCTIONS) {
		event->hw.what = CPU_BRANCHES;
		return 0;
	}
	if (data(event->pmu)->config.machine)
		return init_modeled(event, MODEL_CPU_CYCLES + (u32)id);
	return core_refuse(event->core, -ENOENT, VIRTUAL_MACHINE, .name = {hardware_names[id]});
}

_Static_assert(MODEL_REF_CYCLES - MODEL_CPU_CYCLES == PERF_COUNT_HW_REF_CPU_CYCLES &&
		       MODEL_HW_CACHE - MODEL_CPU_CYCLES == PERF_COUNT_HW_MAX,
	       "the generic ids in their order");

static int init_cache(struct event *event)
{
	const char *machine = data(event->pmu)->config.machine;
	u64 config = event->attr.config;
	u32 id = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;
	u32 counter;

	if (id >= PERF_COUNT_HW_CACHE_MAX || op >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    result >= PERF_COUNT_HW_CACHE_RESULT_MAX)
		return core_refuse(event->core, -EINVAL, CACHE_ID, .number = {config});
	if (!machine)
		return core_refuse(event->core, -ENOENT, VIRTUAL_CACHE);
	counter = model_cache_counter(id, op, result == PERF_COUNT_HW_CACHE_RESULT_MISS);
	if (!model_parts_of(counter))
		return core_refuse(event->core, -ENOENT, MODEL_CELL, .number = {config},
				   .name = {machine});
	return init_modeled(event, counter);
}

/* A code that stands for something with a model. */
static int init_modeled_code(struct event *event, const struct cpu_sum *sum)
{
	struct cpu_pmu_data *cpu = data(event->pmu);
	u32 what;

	if (cpu_sum_is_nothing(sum)) {
		event->hw.what = SOURCE_NOTHING;
		return 0;
	}
	if (event_is_sampling(event) && !cpu->config.machine_samples)
		return refuse_samples(event);
	what = cpu_sum_take(&cpu->sums, sum);
	if (event_is_sampling(event) && what >= CPU_SUMS) {
		cpu_sum_drop(&cpu->sums, what);
		return refuse_samples(event);
	}
	event->hw.what = what;
	return 0;
}

static bool is_loads_aux(const struct event *event)
{
	return event->attr.type == PERF_TYPE_RAW &&
	       (event->attr.config & (RAW_SELECT | RAW_UMASK)) == LOADS_AUX;
}

/* As the driver for Intel's CPUs does. */
static int check_loads(struct event *event)
{
	const struct event *sibling;

	if (event->attr.config1 & ~0xffffull)
		return core_refuse(event->core, -EINVAL, CONFIG_UNKNOWN,
				   .number = {event->attr.config1}, .name = {event->pmu->name});
	if (!loads_need_aux(&data(event->pmu)->config) ||
	    !(event->attr.sample_type & PERF_SAMPLE_DATA_SRC) || is_loads_aux(event->leader))
		return 0;
	list_for_each_entry (sibling, &event->leader->siblings, sibling_link)
		if (is_loads_aux(sibling))
			return 0;
	return core_refuse(event->core, -ENODATA, LOADS_ALONE);
}

/*
 * Loads that take as many cycles as config1 says, or more. Hardware knows none below 3, and that is
 * all of them.
 */
static int init_loads(struct event *event)
{
	struct cpu_pmu_data *cpu = data(event->pmu);
	u32 latency = event->attr.config1 > 3 ? (u32)event->attr.config1 : 0;
	u32 counter = model_loads_from(cpu->config.modeled, latency);
	int err = check_loads(event);

	if (err)
		return err;
	if (counter < MODEL_COUNTERS)
		return init_modeled(event, counter);
	event->hw.what = SOURCE_NOTHING;
	return 0;
}

static int init_raw(struct event *event)
{
	bool amd = data(event->pmu)->config.vendor == CPU_VENDOR_AMD;
	enum cpu_what what;
	struct cpu_sum sum;
	u64 config = event->attr.config;
	u64 code = config & (RAW_SELECT | RAW_UMASK);

	if (amd)
		code |= (config & RAW_AMD_HIGH) >> 16;
	if (config & RAW_MODIFIERS)
		return core_refuse(event->core, -ENOENT, VIRTUAL_RAW_FIELDS, .number = {config});
	if (raw_code_find(&data(event->pmu)->config, code, &what)) {
		event->hw.what = what;
		return 0;
	}
	if (data(event->pmu)->config.modeled && loads_code(&data(event->pmu)->config, code))
		return init_loads(event);
	if (data(event->pmu)->config.machine &&
	    modeled_code_find(&data(event->pmu)->config, code, &sum))
		return init_modeled_code(event, &sum);
	return core_refuse(event->core, -ENOENT, VIRTUAL_RAW, .number = {config},
			   .name = {amd ? "AMD" : "Intel", amd ? "0xc2" : "0xc4"});
}

static int init_translator(struct event *event)
{
	u64 what = event->attr.config;

	if (what >= CPU_WHAT_MAX)
		return core_refuse(event->core, -EINVAL, CONFIG_UNKNOWN, .number = {what},
				   .name = {event->pmu->name});
	event->hw.what = what;
	return 0;
}

/* What the event is of does not happen in here. */
static void count_nothing(struct event *event)
{
	cpu_sum_drop(&data(event->pmu)->sums, (u32)event->hw.what);
	event->hw.what = SOURCE_NOTHING;
}

static int check_modes(struct event *event)
{
	const struct pe_attr *attr = &event->attr;

	if (attr->exclude_host) /* no virtual machine runs in here */
		count_nothing(event);
	if (attr->exclude_kernel) {
		if (attr->exclude_user)
			count_nothing(event);
		return 0;
	}
	if (data(event->pmu)->config.kernel_mode == CPU_KERNEL_REFUSE && attr->exclude_user)
		return core_refuse(event->core, -EACCES, VIRTUAL_KERNEL_ONLY);
	if (data(event->pmu)->config.kernel_mode == CPU_KERNEL_REFUSE)
		return core_refuse(event->core, -EACCES, VIRTUAL_KERNEL);
	if (attr->exclude_user)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_KERNEL_ONLY);
	return 0;
}

/* As the driver for Intel's CPUs does. */
static int check_branches(const struct event *event)
{
	const u64 kinds = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_ANY_CALL |
			  PERF_SAMPLE_BRANCH_ANY_RETURN | PERF_SAMPLE_BRANCH_IND_CALL |
			  PERF_SAMPLE_BRANCH_ABORT_TX | PERF_SAMPLE_BRANCH_IN_TX |
			  PERF_SAMPLE_BRANCH_NO_TX | PERF_SAMPLE_BRANCH_COND;
	u64 mask = event->attr.branch_sample_type;

	if (mask & PE_SAMPLE_BRANCH_COUNTERS)
		return core_refuse(event->core, -EINVAL, VIRTUAL_BRANCH_COUNTERS);
	if (mask & PERF_SAMPLE_BRANCH_CALL_STACK && mask & kinds)
		return core_refuse(event->core, -EINVAL, CALL_STACK_ALONE);
	return 0;
}

static int check_features(struct event *event)
{
	const struct pe_attr *attr = &event->attr;
	bool can_sample = data(event->pmu)->config.source->arm;

	if (attr->precise_ip && !event_is_sampling(event))
		return core_refuse(event->core, -EINVAL, PRECISE_COUNT);
	if (attr->precise_ip && !can_sample)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_PRECISE);
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && !can_sample)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_BRANCHES);
	return attr->sample_type & PERF_SAMPLE_BRANCH_STACK ? check_branches(event) : 0;
}

/* With this one, could the group ever be on together? Not: as far as others leave counters. */
static int check_group(struct event *event)
{
	u32 limit = data(event->pmu)->config.counters;
	const struct event *sibling;
	u32 n = 1;

	if (!limit || event_is_leader(event))
		return 0;
	n += event->leader->pmu == event->pmu;
	list_for_each_entry (sibling, &event->leader->siblings, sibling_link)
		n += sibling->pmu == event->pmu;
	if (n <= limit)
		return 0;
	return core_refuse(event->core, -EINVAL, GROUP_COUNTERS, .number = {n, limit});
}

/*
 * A frequency asks for samples here and there, of which those in windows will do; of what happens
 * often, as windows say little of the rest, nor of what an access has found. Who asks for the stack
 * wants call chains: perf asks for accesses then without being told to.
 */
static bool samples_in_windows(const struct event *event)
{
	u64 what = event->hw.what - CPU_MODELED, type = event->attr.sample_type;

	return event->attr.freq &&
	       (type & PERF_SAMPLE_STACK_USER || !(type & (WITH_ACCESS | PERF_SAMPLE_ADDR))) &&
	       (what == MODEL_CPU_CYCLES || what == MODEL_REF_CYCLES ||
		what == MODEL_BRANCH_MISSES);
}

/*
 * What the model counts may be estimated, unless it has to see all for this event. A copy is as its
 * original. Of one that samples it is asked how the program gets on.
 */
static void measure(struct event *event)
{
	const struct cpu_sums *sums = &data(event->pmu)->sums;
	u32 what = (u32)event->hw.what;

	if (!cpu_sum_is_modeled(sums, what))
		return;
	if (!event_is_sampling(event) &&
	    (!sums->source->estimated || event->hw.config & COUNTS_OPENER ||
	     (event->parent && !event->parent->hw.measure.covered) ||
	     cpu_sum_parts(sums, what) & MODEL_FLOATS))
		return;
	event->hw.measure = CPU_MEASURE;
	event->hw.in_windows = sums->source->estimated && event_is_sampling(event) &&
			       samples_in_windows(event);
}

/* Tells the source what of the model is needed now that @event comes or goes. */
static void want_parts(struct event *event, bool open)
{
	struct cpu_pmu_data *cpu = data(event->pmu);
	u32 parts;

	parts = cpu_sum_parts(&cpu->sums, (u32)event->hw.what);
	if (!parts || !cpu->config.source->want)
		return;
	if (event_is_sampling(event))
		parts |= MODEL_EACH;
	if (event->hw.config & COUNTS_OPENER ||
	    (event_is_sampling(event) && !samples_in_windows(event)))
		parts |= MODEL_WHOLE;
	/* What is said of accesses is of both. */
	if (parts & (MODEL_CACHES | MODEL_TLBS) && parts & MODEL_EACH &&
	    event->attr.sample_type & WITH_ACCESS)
		parts |= MODEL_CACHES | MODEL_TLBS;
	cpu->config.source->want(cpu->config.source->ctx, event->parent ? NULL : event->target,
				 parts, open);
}

static void cpu_destroy(struct event *event)
{
	source_destroy(event);
	want_parts(event, false);
	cpu_sum_drop(&data(event->pmu)->sums, (u32)event->hw.what);
}

static u64 cpu_value(struct pmu *pmu, struct task *task, u32 what)
{
	return cpu_sums_read(&data(pmu)->sums, task, what);
}

static bool cpu_estimates(struct pmu *pmu)
{
	const struct pmu_source *source = data(pmu)->config.source;

	return source->estimated(source->ctx);
}

static int cpu_init(struct event *event)
{
	int err;

	/* The cpu PMU has said why not. */
	if (event->pmu->type == PE_TYPE_ANYPERF && event->attr.type != PE_TYPE_ANYPERF)
		return -ENOENT;
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE: err = init_hardware(event); break;
	case PERF_TYPE_HW_CACHE: err = init_cache(event); break;
	case PERF_TYPE_RAW: err = init_raw(event); break;
	case PE_TYPE_ANYPERF: err = init_translator(event); break;
	default: return -ENOENT;
	}
	if (!err)
		err = check_features(event);
	if (!err)
		err = check_modes(event);
	if (!err)
		err = check_group(event);
	if (err) {
		cpu_sum_drop(&data(event->pmu)->sums, (u32)event->hw.what);
		return err;
	}
	/* As of now; what the file says later is for events of later. */
	event->hw.config = data(event->pmu)->config.rdpmc != CPU_RDPMC_NEVER ? RDPMC_ALLOWED : 0;
	if (event_counts_opener(event))
		event->hw.config |= COUNTS_OPENER;
	measure(event);
	source_sampling(event);
	source_opened(event);
	want_parts(event, true);
	return 0;
}

static struct counters *counters_of(struct event *event)
{
	struct task *task = event_on_task(event);

	if (task)
		return &((struct on_task *)pmu_task(event->pmu, task))->counters;
	return &((struct on_cpu *)pmu_cpu(event->pmu, event_on_cpu(event)))->counters;
}

/* What @event must leave alone: reserved ones, and those of the other side of its CPU. */
static u64 taken_by_others(struct event *event)
{
	const struct cpu_pmu_config *config = &data(event->pmu)->config;
	struct cpu *cpu = event_on_cpu(event);
	u64 taken = 0;

	if (config->reserved)
		taken = ~0ull << (config->counters - config->reserved);
	if (event_on_task(event))
		return taken |
		       counters_used(&((struct on_cpu *)pmu_cpu(event->pmu, cpu))->counters);
	for (struct task *t = cpu_next_task(cpu, NULL); t; t = cpu_next_task(cpu, t))
		taken |= counters_used(&((struct on_task *)pmu_task(event->pmu, t))->counters);
	return taken;
}

static void counter_moved(struct event *event, u32 counter)
{
	event->hw.idx = (s32)counter;
}

static int cpu_add(struct event *event, u32 flags)
{
	u32 limit = data(event->pmu)->config.counters;
	int err;

	event->hw.idx = 0;
	/* The counter is the original's. */
	if (limit && !event->standin) {
		err = counters_add(counters_of(event), event, ~0ull >> (COUNTERS_MAX - limit),
				   taken_by_others(event), counter_moved);
		if (err)
			return err;
	}
	return source_add(event, flags);
}

static void cpu_del(struct event *event, u32 flags)
{
	source_stop(event, flags);
	if (data(event->pmu)->config.counters && !event->standin)
		counters_del(counters_of(event), event);
	event->hw.idx = -1;
}

/* Only a task's own counters can be read by rdpmc, whatever counter number --counters pretends. */
static bool user_readable(const struct event *event)
{
	return event->hw.config & RDPMC_ALLOWED && event->target && event->hw.what < CPU_WHAT_MAX;
}

static u32 cpu_event_idx(struct event *event)
{
	return user_readable(event) ? (u32)event->hw.what + 1 : 0;
}

static u16 cpu_event_width(struct event *event)
{
	return user_readable(event) ? 64 : 0;
}

/*
 * Formats are those that the kernel shows of the newest models, so that any table's events parse:
 * what cannot be counted is then not supported, not a mistake. Of events these list what can be
 * counted, as the kernel hides those of its usual ones that the CPU lacks.
 */
static const struct pmu_file intel_files[] = {
	{"format/event", "config:0-7\n"},
	{"format/umask", "config:8-15\n"},
	{"format/edge", "config:18\n"},
	{"format/pc", "config:19\n"},
	{"format/any", "config:21\n"},
	{"format/inv", "config:23\n"},
	{"format/cmask", "config:24-31\n"},
	{"format/in_tx", "config:32\n"},
	{"format/in_tx_cp", "config:33\n"},
	{"format/offcore_rsp", "config1:0-63\n"},
	{"format/ldlat", "config1:0-15\n"},
	{"format/frontend", "config1:0-23\n"},
	{"events/instructions", "event=0xc0\n"},
	{"events/branch-instructions", "event=0xc4\n"},
	{0},
};

static const struct pmu_file amd_files[] = {
	{"format/event", "config:0-7,32-35\n"},
	{"format/umask", "config:8-15\n"},
	{"format/edge", "config:18\n"},
	{"format/inv", "config:23\n"},
	{"format/cmask", "config:24-31\n"},
	{"events/instructions", "event=0xc0\n"},
	{"events/branch-instructions", "event=0xc2\n"},
	{0},
};

static void fill_files(struct cpu_pmu_data *cpu)
{
	const struct pmu_file *from = cpu->config.vendor == CPU_VENDOR_AMD ? amd_files
									   : intel_files;
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(intel_files) + 5 < ARRAY_SIZE(cpu->files), "room for files");
	while (from[n].path) {
		cpu->files[n] = from[n];
		n++;
	}
	snprintf(cpu->rdpmc_text, sizeof(cpu->rdpmc_text), "%d\n", cpu->config.rdpmc);
	cpu->files[n++] = (struct pmu_file){"rdpmc", cpu->rdpmc_text};
	/* Exact is what every sample is. */
	cpu->files[n++] = (struct pmu_file){"caps/max_precise",
					    cpu->config.source->arm ? "3\n" : "0\n"};
	if (cpu->config.machine) {
		snprintf(cpu->machine_text, sizeof(cpu->machine_text), "%s\n", cpu->config.machine);
		cpu->files[n++] = (struct pmu_file){"caps/machine", cpu->machine_text};
	}
	if (cpu->config.machine && cpu->config.windows) {
		snprintf(cpu->windows_text, sizeof(cpu->windows_text), "%s\n", cpu->config.windows);
		cpu->files[n++] = (struct pmu_file){"caps/machine_windows", cpu->windows_text};
	}
	cpu->config.windows = NULL; /* the caller's */
	if (!cpu->config.pmu_name)
		return;
	snprintf(cpu->name_text, sizeof(cpu->name_text), "%s\n", cpu->config.pmu_name);
	cpu->files[n++] = (struct pmu_file){"caps/pmu_name", cpu->name_text};
}

/* The other events that have a raw code of the model's. */
static void add_code_files(struct cpu_pmu_data *cpu)
{
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(intel_files) + 4 + RAW_CODE_FILES + MODELED_CODE_FILES <
			       ARRAY_SIZE(cpu->files),
		       "room for files");
	while (cpu->files[n].path)
		n++;
	raw_code_files(&cpu->config, cpu->files + n);
	while (cpu->files[n].path)
		n++;
	if (cpu->config.machine)
		modeled_code_files(&cpu->config, cpu->files + n);
}

static const struct pmu_file translator_files[] = {
	{"format/event", "config:0-7\n"},
	{"events/instructions", "event=0x0\n"},
	{"events/branches", "event=0x1\n"},
	{"events/conditional", "event=0x2\n"},
	{"events/taken", "event=0x3\n"},
	{"events/calls", "event=0x4\n"},
	{"events/returns", "event=0x5\n"},
	{"events/indirect", "event=0x6\n"},
	{0},
};

static const struct pmu driver = {
	.class = PMU_HARDWARE,
	.event_init = cpu_init,
	.add = cpu_add,
	.del = cpu_del,
	SOURCE_PMU_OPS,
	.destroy = cpu_destroy,
	.estimates = cpu_estimates,
	.cpu_size = sizeof(struct on_cpu),
};

static struct cpu_pmu_data *new_pmu(const struct cpu_pmu_config *config, const char *name, u32 type)
{
	struct cpu_pmu_data *cpu = calloc(1, sizeof(*cpu));

	if (!cpu)
		return NULL;
	cpu->config = *config;
	cpu->base.source = cpu->sums.source = config->source;
	cpu->base.read = cpu_value;
	cpu->base.pmu = driver;
	cpu->base.pmu.name = name;
	cpu->base.pmu.type = type;
	return cpu;
}

static int register_pmu(struct core *core, struct cpu_pmu_data *cpu, struct pmu **pmu)
{
	int err = pmu_register(core, &cpu->base.pmu);

	if (err)
		free(cpu);
	else
		*pmu = &cpu->base.pmu;
	return err;
}

int cpu_pmu_new(struct core *core, const struct cpu_pmu_config *config, struct pmu **pmu)
{
	struct cpu_pmu_data *cpu = new_pmu(config, "cpu", PERF_TYPE_RAW);

	CHECK(config->counters <= COUNTERS_MAX && config->reserved <= config->counters);
	if (!cpu)
		return -ENOMEM;
	fill_files(cpu);
	add_code_files(cpu);
	cpu->base.pmu.caps |= PMU_CAP_EXTENDED_HW_TYPE;
	cpu->base.pmu.event_idx = cpu_event_idx;
	cpu->base.pmu.event_width = cpu_event_width;
	cpu->base.pmu.files = cpu->files;
	/* There may be thousands of tasks, and without a limit nobody shares counters. */
	if (config->counters)
		cpu->base.pmu.task_size = sizeof(struct on_task);
	return register_pmu(core, cpu, pmu);
}

int translator_pmu_new(struct core *core, const struct cpu_pmu_config *config, struct pmu **pmu)
{
	struct cpu_pmu_data *cpu = new_pmu(config, "anyperf", PE_TYPE_ANYPERF);

	if (!cpu)
		return -ENOMEM;
	cpu->config.counters = cpu->config.reserved = 0;
	cpu->config.machine = NULL;
	cpu->base.pmu.files = translator_files;
	return register_pmu(core, cpu, pmu);
}

int cpu_pmu_set_rdpmc(struct pmu *pmu, int value)
{
	if (value < CPU_RDPMC_NEVER || value > CPU_RDPMC_ALWAYS)
		return core_refuse(pmu->core, -EINVAL, SETTING_RANGE,
				   .number = {CPU_RDPMC_NEVER, CPU_RDPMC_ALWAYS},
				   .name = {"rdpmc"});
	data(pmu)->config.rdpmc = (enum cpu_rdpmc)value;
	snprintf(data(pmu)->rdpmc_text, sizeof(data(pmu)->rdpmc_text), "%d\n", value);
	return 0;
}

enum cpu_rdpmc cpu_pmu_rdpmc(struct pmu *pmu)
{
	return data(pmu)->config.rdpmc;
}

void cpu_pmu_free(struct pmu *pmu)
{
	if (pmu)
		free(data(pmu));
}
