/* EINVAL, the errno that says least: the kernel's checks once more, in its order, in words. */
#include "lib/refusal/explain-priv.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>
#include <time.h>

#define SAMPLE_WEIGHT_STRUCT BIT(24) /* Linux 5.12; older headers lack it */

const char *ap__attr_field_beyond(const struct pe_attr *attr, u32 size)
{
	static const struct {
		u32 at, len;
		const char *name;
	} fields[] = {
#define FIELD(f) {offsetof(struct pe_attr, f), sizeof(((struct pe_attr *)0)->f), #f}
		FIELD(config2), /* bp_len, the first after VER0 */
		FIELD(branch_sample_type),
		FIELD(sample_regs_user),
		FIELD(sample_stack_user),
		FIELD(clockid),
		FIELD(sample_regs_intr),
		FIELD(aux_watermark),
		FIELD(sample_max_stack),
		FIELD(aux_sample_size),
		FIELD(sig_data),
		FIELD(config3),
		FIELD(config4),
#undef FIELD
	};
	const u8 *bytes = (const u8 *)attr;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		for (u32 b = fields[i].at; b < fields[i].at + fields[i].len; b++)
			if (b >= size && bytes[b])
				return fields[i].name;
	return "that is newer than this library";
}

/*
 * Bits that no kernel takes, and further down combinations: steps 4 to 7 of doc/matrix.md, "The
 * order of the checks at open".
 */
static int bad_bits(const struct ap__ask *ask, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (a->reserved_1 || a->reserved_2 || a->reserved_3)
		return refuse(ask, EINVAL, err, RESERVED_BIT);
	if (a->sample_type >> 25)
		return refuse(ask, EINVAL, err, UNKNOWN_BIT, .name = {"sample_type"});
	if (a->read_format >> 5)
		return refuse(ask, EINVAL, err, UNKNOWN_BIT, .name = {"read_format"});
	if ((a->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
	    !(a->branch_sample_type & ~(u64)PERF_SAMPLE_BRANCH_PLM_ALL))
		return refuse(ask, EINVAL, err, BRANCH_KIND);
	if ((a->sample_type & PERF_SAMPLE_REGS_USER) && !a->sample_regs_user)
		return refuse(ask, EINVAL, err, REGS_NONE, .name = {"sample_regs_user"});
	if ((a->sample_type & PERF_SAMPLE_STACK_USER) &&
	    (a->sample_stack_user >= 65535 || a->sample_stack_user % 8))
		return refuse(ask, EINVAL, err, STACK_SIZE, .number = {a->sample_stack_user});
	if ((a->sample_type & PERF_SAMPLE_REGS_INTR) && !a->sample_regs_intr)
		return refuse(ask, EINVAL, err, REGS_NONE, .name = {"sample_regs_intr"});
	return 0;
}

/* Combinations, and what the sysctls limit. */
static int bad_attr(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if ((a->sample_type & PERF_SAMPLE_WEIGHT) && (a->sample_type & SAMPLE_WEIGHT_STRUCT))
		return refuse(ask, EINVAL, err, WEIGHT_TWICE);
	if (a->inherit_thread && !a->inherit)
		return refuse(ask, EINVAL, err, INHERIT_THREAD);
	if (a->remove_on_exec && a->enable_on_exec)
		return refuse(ask, EINVAL, err, EXEC_TWICE);
	if (a->sigtrap && !a->remove_on_exec)
		return refuse(ask, EINVAL, err, SIGTRAP_EXEC);
	if (a->freq && st->max_rate != AP__UNKNOWN && a->sample_freq > (u64)st->max_rate)
		return refuse(ask, EINVAL, err, SAMPLE_RATE,
			      .number = {a->sample_freq, (u64)st->max_rate});
	if (!a->freq && a->sample_period >> 63)
		return refuse(ask, EINVAL, err, PERIOD_HIGH);
	return 0;
}

/* Where the event is to count. */
static int bad_place(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	if (ask->cgroup && ask->cpu < 0)
		return refuse(ask, EINVAL, err, CGROUP_NO_CPU);
	if (ask->tid == -1 && ask->cpu == -1)
		return refuse(ask, EINVAL, err, NO_PLACE, .remedy = {REMEDY_NAME_PLACE});
	if (ask->cpu < -1 || ask->cpu >= st->ncpus)
		return refuse(ask, EINVAL, err, CPU_RANGE, .number = {ask->cpu, st->ncpus});
	if (ask->attr->sigtrap && ask->tid == -1)
		return refuse(ask, EINVAL, err, SIGTRAP_TASK);
	if (st->user_access && (ask->attr->config1 & 2) && ask->tid == -1)
		return refuse(ask, EINVAL, err, ARM64_RDPMC_TASK);
	return 0;
}

static int bad_breakpoint(const struct ap__ask *ask, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	/*
	 * First: the others below are x86's rules, and arm64 takes every address and 1 to 8 bytes.
	 */
	if (a->bp_addr >> 63 && a->exclude_kernel)
		return refuse(ask, EINVAL, err, BREAKPOINT_KERNEL);
	if (!a->bp_type || ((a->bp_type & HW_BREAKPOINT_X) && a->bp_type != HW_BREAKPOINT_X))
		return refuse(ask, EINVAL, err, BREAKPOINT_ACCESS);
	if (a->bp_type == HW_BREAKPOINT_X && a->bp_len != sizeof(long))
		return refuse(ask, EINVAL, err, BREAKPOINT_EXEC, .number = {a->bp_len});
	if (a->bp_len != 1 && a->bp_len != 2 && a->bp_len != 4 && a->bp_len != 8)
		return refuse(ask, EINVAL, err, BREAKPOINT_LENGTH, .number = {a->bp_len});
	if (a->bp_addr % a->bp_len)
		return refuse(ask, EINVAL, err, BREAKPOINT_ALIGN,
			      .number = {a->bp_addr, a->bp_len});
	if (a->bp_type == HW_BREAKPOINT_R)
		return refuse(ask, EINVAL, err, BREAKPOINT_READ);
	return 0;
}

/* What depends on the event's type. */
static int bad_type(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (a->type == PERF_TYPE_BREAKPOINT)
		return bad_breakpoint(ask, err);
	if (a->inherit && (a->sample_type & PERF_SAMPLE_READ) &&
	    !(a->sample_type & PERF_SAMPLE_TID))
		return refuse(ask, EINVAL, err, INHERIT_READ);
	if (a->type == PERF_TYPE_TRACEPOINT)
		return refuse(ask, EINVAL, err, TRACEPOINT_ID);
	if (a->type == PERF_TYPE_HARDWARE && (a->config & UINT32_MAX) >= 10)
		return refuse(ask, EINVAL, err, HARDWARE_ID, .number = {a->config & UINT32_MAX});
	if (st->pmu[0] && a->sample_period && !st->core_pmu && a->type > PERF_TYPE_MAX)
		return refuse(ask, EINVAL, err, NO_SAMPLING, .name = {st->pmu},
			      .remedy = {REMEDY_COUNT_ONLY});
	if (a->precise_ip && !a->sample_period)
		return refuse(ask, EINVAL, err, PRECISE_COUNT);
	if (a->use_clockid && a->clockid != CLOCK_MONOTONIC && a->clockid != CLOCK_MONOTONIC_RAW)
		return refuse(ask, EINVAL, err, CLOCK_OF_PMU);
	if (strcmp(st->pmu, "uprobe") == 0 || strcmp(st->pmu, "kprobe") == 0)
		return refuse(ask, EINVAL, err, PROBE_PLACE);
	if (st->pmu_cpus[0] && ask->tid != -1 && !st->core_pmu)
		return refuse(ask, EINVAL, err, PMU_CPU_ONLY, .name = {st->pmu});
	return 0;
}

int ap__explain_einval(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	const char *pmu = st->pmu[0] ? st->pmu : "of this type";

	if (bad_bits(ask, err) || bad_attr(ask, st, err) || bad_place(ask, st, err) ||
	    bad_type(ask, st, err))
		return -EINVAL;
	if (ask->has_leader && (a->pinned || a->exclusive))
		return refuse(ask, EINVAL, err, GROUP_PINNED);
	if (ask->has_leader)
		return refuse(ask, EINVAL, err, GROUP_MISFIT);
	if (st->pmu_cpus[0] && ask->tid != -1)
		return refuse(ask, EINVAL, err, PMU_CPU_ONLY, .name = {st->pmu});
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle ||
	    a->exclude_host || a->exclude_guest)
		return refuse(ask, EINVAL, err, PMU_REFUSES_MODES, .number = {a->config},
			      .name = {pmu});
	return refuse(ask, EINVAL, err, PMU_REFUSES, .number = {a->config}, .name = {pmu});
}
