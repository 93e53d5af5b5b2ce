/* EINVAL, the errno that says least: the kernel's checks once more, in its order, in words. */
#include "lib/explain-priv.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>
#include <time.h>

#include "lib/fail.h"

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
 * Bits and combinations that no kernel takes: steps 4 to 7 of doc/matrix.md, "The order of the checks
 * at open".
 */
static bool bad_attr(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	const char *why = NULL;

	if (a->reserved_1 || a->reserved_2 || a->reserved_3)
		why = "a reserved bit of the attr is set; this kernel may be too old for it";
	else if (a->sample_type >> 25)
		why = "sample_type has a bit that this kernel does not know";
	else if (a->read_format >> 5)
		why = "read_format has a bit that this kernel does not know";
	else if ((a->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
		 !(a->branch_sample_type & ~(u64)PERF_SAMPLE_BRANCH_PLM_ALL))
		why = "branch_sample_type names no kind of branch, only privilege levels";
	else if ((a->sample_type & PERF_SAMPLE_REGS_USER) && !a->sample_regs_user)
		why = "registers of user mode are sampled, but sample_regs_user names none";
	else if ((a->sample_type & PERF_SAMPLE_STACK_USER) &&
		 (a->sample_stack_user >= 65535 || a->sample_stack_user % 8))
		why = "sample_stack_user must be a multiple of 8 below 65535";
	else if ((a->sample_type & PERF_SAMPLE_REGS_INTR) && !a->sample_regs_intr)
		why = "registers at the interrupt are sampled, but sample_regs_intr names none";
	else if ((a->sample_type & PERF_SAMPLE_WEIGHT) && (a->sample_type & SAMPLE_WEIGHT_STRUCT))
		why = "WEIGHT and WEIGHT_STRUCT exclude each other";
	else if (a->inherit_thread && !a->inherit)
		why = "inherit_thread needs inherit";
	else if (a->remove_on_exec && a->enable_on_exec)
		why = "remove_on_exec and enable_on_exec exclude each other";
	else if (a->sigtrap && !a->remove_on_exec)
		why = "sigtrap needs remove_on_exec";
	if (why) {
		ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "%s: %s", ask->name, why);
		return true;
	}
	if (a->freq && st->max_rate != AP__UNKNOWN && a->sample_freq > (u64)st->max_rate) {
		ap__fail(
			err, -EINVAL, AP_CAUSE_SAMPLE_RATE,
			"%s: a frequency of %llu Hz is asked for; kernel.perf_event_max_sample_rate is "
			"%lld",
			ask->name, (unsigned long long)a->sample_freq, st->max_rate);
		ap__remedy(err,
			   "ask for at most %lld, or as root: sysctl "
			   "kernel.perf_event_max_sample_rate=%llu",
			   st->max_rate, (unsigned long long)a->sample_freq);
		return true;
	}
	if (!a->freq && a->sample_period >> 63) {
		ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "%s: the period must be below 2^63",
			 ask->name);
		return true;
	}
	return false;
}

/* Where the event is to count. */
static bool bad_place(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	if (ask->cgroup && ask->cpu < 0) {
		ap__fail(err, -EINVAL, AP_CAUSE_CPU,
			 "%s: a cgroup is counted CPU by CPU, and no CPU is named", ask->name);
		return true;
	}
	if (ask->tid == -1 && ask->cpu == -1) {
		ap__fail(err, -EINVAL, AP_CAUSE_CPU, "%s: neither a task nor a CPU is named",
			 ask->name);
		return true;
	}
	if (ask->cpu < -1 || ask->cpu >= st->ncpus) {
		ap__fail(err, -EINVAL, AP_CAUSE_CPU,
			 "%s: there is no CPU %d; this machine can have %d, numbered from 0",
			 ask->name, ask->cpu, st->ncpus);
		return true;
	}
	if (ask->attr->sigtrap && ask->tid == -1) {
		ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "%s: sigtrap needs a task", ask->name);
		return true;
	}
	return false;
}

static bool bad_breakpoint(const struct ap__ask *ask, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	const char *why = NULL;

	/* First: the others below are x86's rules, and arm64 takes every address and 1 to 8 bytes. */
	if (a->bp_addr >> 63 && a->exclude_kernel)
		why = "the breakpoint is in the kernel, but kernel mode is excluded";
	else if (!a->bp_type || ((a->bp_type & HW_BREAKPOINT_X) && a->bp_type != HW_BREAKPOINT_X))
		why = "the breakpoint's access must be r, w, rw or x alone";
	else if (a->bp_type == HW_BREAKPOINT_X && a->bp_len != sizeof(long))
		why = "a breakpoint on execution has the length of a long";
	else if (a->bp_len != 1 && a->bp_len != 2 && a->bp_len != 4 && a->bp_len != 8)
		why = "a breakpoint is 1, 2, 4 or 8 bytes long";
	else if (a->bp_addr % a->bp_len)
		why = "the breakpoint's address is not a multiple of its length";
	else if (a->bp_type == HW_BREAKPOINT_R)
		why = "this CPU cannot break on reads alone (x86: use rw)";
	if (!why)
		return false;
	ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "%s: %s", ask->name, why);
	return true;
}

/* What depends on the event's type. */
static bool bad_type(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	const char *why = NULL;

	if (a->type == PERF_TYPE_BREAKPOINT)
		return bad_breakpoint(ask, err);
	if (a->inherit && (a->sample_type & PERF_SAMPLE_READ) &&
	    !(a->sample_type & PERF_SAMPLE_TID))
		why = "samples that carry counts cannot be inherited, unless they carry TID too (Linux "
		      "6.12)";
	else if (a->type == PERF_TYPE_TRACEPOINT)
		why = "the kernel has no tracepoint of that number, or (function tracepoints) it may "
		      "not be sampled with user call chains or stacks";
	else if (a->type == PERF_TYPE_HARDWARE && (a->config & UINT32_MAX) >= 10)
		why = "there are only ten generic hardware events";
	else if (st->pmu[0] && a->sample_period && !st->core_pmu && a->type > PERF_TYPE_MAX)
		why = "this PMU can count, but not sample";
	else if (a->precise_ip && !a->sample_period)
		why = "a precise event must be sampled, not counted";
	else if (a->use_clockid && a->clockid != CLOCK_MONOTONIC &&
		 a->clockid != CLOCK_MONOTONIC_RAW)
		why = "this clock is not one that samples can be stamped with on this PMU; "
		      "CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW are";
	else if ((strcmp(st->pmu, "uprobe") == 0 || strcmp(st->pmu, "kprobe") == 0))
		why = "the probe has no valid place: the file, the function or the offset is wrong";
	if (why) {
		ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "%s: %s", ask->name, why);
		return true;
	}
	if (st->pmu_cpus[0] && ask->tid != -1 && !st->core_pmu) {
		ap__fail(err, -EINVAL, AP_CAUSE_UNSUPPORTED,
			 "%s: the PMU %s counts whole CPUs, not tasks", ask->name, st->pmu);
		ap__remedy(err, "measure CPUs (-a or -C)");
		return true;
	}
	return false;
}

int ap__explain_einval(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (bad_attr(ask, st, err) || bad_place(ask, st, err) || bad_type(ask, st, err))
		return -EINVAL;
	if (ask->has_leader && (a->pinned || a->exclusive))
		return ap__fail(err, -EINVAL, AP_CAUSE_GROUP,
				"%s: only the leader of a group can be pinned or exclusive",
				ask->name);
	if (ask->has_leader) {
		ap__fail(
			err, -EINVAL, AP_CAUSE_GROUP,
			"%s: the group does not fit together: more hardware events than counters, or "
			"another task, CPU, cgroup, clock or inheritance than its leader's",
			ask->name);
		return ap__remedy(err, "use smaller groups, or :W to open the events singly then");
	}
	if (st->pmu_cpus[0] && ask->tid != -1) {
		ap__fail(err, -EINVAL, AP_CAUSE_UNSUPPORTED,
			 "%s: the PMU %s counts whole CPUs, not tasks", ask->name, st->pmu);
		return ap__remedy(err, "measure CPUs (-a or -C)");
	}
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle ||
	    a->exclude_host || a->exclude_guest) {
		ap__fail(
			err, -EINVAL, AP_CAUSE_UNSUPPORTED,
			"%s: the PMU%s%s does not accept this event; it may be unable to leave out "
			"modes (modifiers), or not know the config %#llx",
			ask->name, st->pmu[0] ? " " : "", st->pmu, (unsigned long long)a->config);
		return ap__remedy(err, "try it without modifiers");
	}
	return ap__fail(err, -EINVAL, AP_CAUSE_UNSUPPORTED,
			"%s: the PMU%s%s does not accept this event or config (%#llx)", ask->name,
			st->pmu[0] ? " " : "", st->pmu, (unsigned long long)a->config);
}
