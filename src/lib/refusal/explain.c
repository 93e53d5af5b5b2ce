/*
 * The rules follow the order in which the kernel checks (doc/matrix.md, "The order of the checks at
 * open"), so that the first thing found wrong is the one that the kernel tripped over.
 */
#include "lib/refusal/explain.h"

#include <errno.h>
#include <string.h>

#include "lib/refusal/explain-priv.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-priv.h"

static bool privileged(const struct ap__state *st)
{
	return st->perfmon || st->sys_admin;
}

/* Root of another user namespace is nobody to perf. */
static u16 no_cap(const struct ap__state *st)
{
	return st->user_ns ? NOTE_USER_NS : NOTE_NONE;
}

/* What kernel.perf_event_paranoid forbids; @level: the highest that allows it. */
#define forbid(ask, st, e, err, level, id, ...)                                             \
	refuse(ask, e, err, id, .note = no_cap(st), .number = {(u64)(st)->paranoid, level}, \
	       __VA_ARGS__)

/* The call does not reach the kernel's perf, or the kernel has none. True if that explains it. */
static bool filtered(const struct ap__ask *ask, const struct ap__state *st, int e,
		     struct ap_error *err)
{
	const char *told = strerror(st->flags_errno);

	if (st->flags_errno == EINVAL || st->flags_errno == 0)
		return false;
	if (st->seccomp)
		refuse(ask, e, err, SECCOMP, .name = {told});
	else if (st->flags_errno == ENOSYS)
		refuse(ask, e, err, NO_PERF, .name = {st->release});
	else
		refuse(ask, e, err, SANDBOX, .name = {told});
	return true;
}

static int other_task(const struct ap__ask *ask, const struct ap__state *st, int e,
		      struct ap_error *err)
{
	if (ask->attr->sigtrap)
		return refuse(ask, e, err, TASK_SIGTRAP, .number = {ask->tid},
			      .note = st->ptrace_scope > 0 ? NOTE_YAMA : NOTE_NONE);
	if (st->task_uid != st->euid && st->task_uid != 0)
		return refuse(ask, e, err, TASK_OF_USER,
			      .number = {ask->tid, st->task_uid, st->euid});
	return refuse(ask, e, err, TASK_UNTRACEABLE, .number = {ask->tid});
}

static int kernel_forbidden(const struct ap__ask *ask, const struct ap__state *st, int e,
			    struct ap_error *err)
{
	if (ask->attr->exclude_user)
		return forbid(ask, st, e, err, 1, PARANOID_KERNEL_ONLY);
	return forbid(ask, st, e, err, 1, PARANOID_KERNEL,
		      .remedy = {REMEDY_USER_MODE, REMEDY_PARANOID});
}

static int explain_eacces(const struct ap__ask *ask, const struct ap__state *st, int e,
			  struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	bool limited = !privileged(st);

	if (st->self_errno == EACCES && st->paranoid > 2)
		return forbid(ask, st, e, err, 2, PARANOID_ALL);
	if (limited && st->paranoid > 1) {
		if (!a->exclude_kernel)
			return kernel_forbidden(ask, st, e, err);
		if ((a->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
		    (a->branch_sample_type & (PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)))
			return forbid(ask, st, e, err, 1, PARANOID_BRANCHES,
				      .remedy = {REMEDY_USER_BRANCHES, REMEDY_PARANOID});
		if (a->sample_type & PERF_SAMPLE_PHYS_ADDR)
			return forbid(ask, st, e, err, 1, PARANOID_PHYS_ADDR);
	}
	if (limited && a->namespaces)
		return refuse(ask, e, err, CAP_NAMESPACES);
	if (!st->sys_admin && strcmp(st->pmu, "uprobe") == 0)
		return refuse(ask, e, err, CAP_UPROBE);
	if (limited && strcmp(st->pmu, "kprobe") == 0)
		return refuse(ask, e, err, CAP_KPROBE);
	if (limited && ask->cgroup && st->paranoid > 0)
		return forbid(ask, st, e, err, 0, PARANOID_CGROUP);
	if (limited && ask->tid == -1 && st->paranoid > 0)
		return forbid(ask, st, e, err, 0, PARANOID_CPU);
	if (limited && ask->tid > 0)
		return other_task(ask, st, e, err);
	return refuse(ask, e, err, SECURITY_MODULE, .name = {st->lsm},
		      .note = st->lsm[0] ? NOTE_LSM_ACTIVE : NOTE_NONE);
}

static int explain_eperm(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (a->type == PERF_TYPE_TRACEPOINT && st->paranoid > -1 && !privileged(st)) {
		if (a->sample_type & PERF_SAMPLE_RAW)
			return forbid(ask, st, e, err, (u64)-1, PARANOID_RAW);
		return forbid(ask, st, e, err, (u64)-1, PARANOID_FUNCTIONS);
	}
	if (a->type == PERF_TYPE_BREAKPOINT && !st->sys_admin)
		return refuse(ask, e, err, CAP_BREAKPOINT);
	if ((a->sample_type & PERF_SAMPLE_REGS_INTR) && st->lockdown)
		return refuse(ask, e, err, LOCKDOWN_REGS);
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle)
		return refuse(ask, e, err, NO_MODE_CPU);
	return refuse(ask, e, err, LSM_OR_LOCKDOWN);
}

/* What to do without a CPU PMU: get one, or count in user space. */
static int no_cpu_pmu(const struct ap__ask *ask, const struct ap__state *st, int e,
		      struct ap_error *err)
{
	const struct ap__advice *advice = st->advice;
	u16 count = REMEDY_USER_SPACE_RUN;
	const char *a = NULL, *b = NULL;

	if (ask->attr->exclude_user) {
		count = REMEDY_USER_SPACE;
	} else if (advice) {
		count = advice->remedy;
		a = advice->name[0];
		b = advice->name[1];
	}
	if (!st->hypervisor)
		return refuse(ask, e, err, NO_CPU_PMU, .remedy = {count}, .name = {a, b});
	return refuse(ask, e, err, NO_CPU_PMU, .note = NOTE_HYPERVISOR,
		      .remedy = {REMEDY_GIVE_PMU, count}, .name = {a, b});
}

static int explain_enoent(const struct ap__ask *ask, const struct ap__state *st, int e,
			  struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	bool cpu_type = a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE ||
			a->type == PERF_TYPE_RAW;

	if (ask->cgroup && st->cgroup_errno == ENOENT)
		return refuse(ask, e, err, CGROUP_STATELESS);
	if (cpu_type && !st->core_pmu)
		return no_cpu_pmu(ask, st, e, err);
	if (a->type == PERF_TYPE_SOFTWARE)
		return refuse(ask, e, err, SOFTWARE_NEWER, .number = {a->config},
			      .name = {st->release});
	if (cpu_type || st->pmu[0]) {
		if (st->pmu_cpus[0] && ask->cpu >= 0)
			return refuse(ask, e, err, PMU_OTHER_CPU, .number = {ask->cpu},
				      .name = {st->pmu, st->pmu_cpus});
		return refuse(ask, e, err, CPU_EVENT);
	}
	return refuse(ask, e, err, PMU_TYPE, .number = {a->type});
}

static int explain_eopnotsupp(const struct ap__ask *ask, const struct ap__state *st, int e,
			      struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	const char *pmu = st->pmu[0] ? st->pmu : "its PMU";

	if (a->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return refuse(ask, e, err, NO_BRANCHES, .name = {pmu});
	if (a->precise_ip)
		return refuse(ask, e, err, NO_PRECISION, .number = {a->precise_ip});
	if (a->aux_output)
		return refuse(ask, e, err, NO_AUX_OUTPUT, .name = {pmu});
	if (a->sample_period)
		return refuse(ask, e, err, NO_SAMPLING, .name = {pmu},
			      .remedy = {REMEDY_SAMPLE_CLOCK});
	if (st->user_access && (a->config1 & 3) == 3)
		return refuse(ask, e, err, ARM64_RDPMC_LONG);
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle ||
	    a->exclude_host || a->exclude_guest)
		return refuse(ask, e, err, NO_MODE);
	return refuse(ask, e, err, PMU_LACKS, .name = {st->pmu[0] ? st->pmu : "unknown"});
}

/* ENOSPC, EBUSY, EMFILE and other limits that are counted. */
static int explain_limit(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	switch (e) {
	case EMFILE: return refuse(ask, e, err, FD_PROCESS, .number = {st->nofile, st->nofile_max});
	case ENFILE: return refuse(ask, e, err, FD_SYSTEM);
	case ENOSPC:
		if (ask->attr->type == PERF_TYPE_BREAKPOINT)
			return refuse(ask, e, err, BREAKPOINT_REGISTERS);
		return refuse(ask, e, err, NO_COUNTER);
	case EBUSY: return refuse(ask, e, err, PMU_BUSY, .name = {st->pmu[0] ? st->pmu : "CPU's"});
	case EOVERFLOW:
		return refuse(ask, e, err, MAX_STACK,
			      .number = {ask->attr->sample_max_stack, (u64)st->max_stack});
	default: return refuse(ask, e, err, KERNEL_MEMORY);
	}
}

static int explain_esrch(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	if (ask->tid < -1)
		return refuse(ask, e, err, TASK_BAD_ID, .number = {ask->tid});
	if (st->task_zombie)
		return refuse(ask, e, err, TASK_ZOMBIE, .number = {ask->tid});
	if (st->task_exists)
		return refuse(ask, e, err, TASK_ENDING, .number = {ask->tid});
	return refuse(ask, e, err, TASK_NONE, .number = {ask->tid});
}

static int explain_rest(const struct ap__ask *ask, const struct ap__state *st, int e,
			struct ap_error *err)
{
	switch (e) {
	case ESRCH: return explain_esrch(ask, st, e, err);
	case ENODEV:
		if (st->cpu_online)
			return refuse(ask, e, err, CPU_FEATURE);
		return refuse(ask, e, err, CPU_OFFLINE, .number = {ask->cpu},
			      .remedy = {REMEDY_CPU_ONLINE});
	case ENOSYS:
		if (ask->attr->sample_type & PERF_SAMPLE_STACK_USER)
			return refuse(ask, e, err, STACK_DUMP);
		return refuse(ask, e, err, KERNEL_LACKS);
	case EBADF:
		if (ask->cgroup)
			return refuse(ask, e, err, CGROUP_UNUSABLE);
		return refuse(ask, e, err, GROUP_BAD_LEADER);
	case EINTR: return refuse(ask, e, err, SIGNAL_CAME);
	case EFAULT: return refuse(ask, e, err, POINTER_FAULT);
	case ECHILD: return refuse(ask, e, err, GROUP_CHILDREN);
	default: return refuse(ask, e, err, ERRNO, .name = {strerror(e)});
	}
}

static int explain_e2big(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	if (ask->known_size && ask->known_size < ask->attr->size)
		return refuse(
			ask, e, err, KERNEL_FIELD, .number = {ask->known_size, ask->attr->size},
			.name = {st->release, ap__attr_field_beyond(ask->attr, ask->known_size)});
	if (strcmp(st->pmu, "uprobe") == 0 || strcmp(st->pmu, "kprobe") == 0)
		return refuse(ask, e, err, PROBE_LONG);
	return refuse(ask, e, err, GROUP_LARGE, .number = {16384});
}

int ap__explain(const struct ap__ask *ask, const struct ap__state *st, int e, struct ap_error *err)
{
	if (filtered(ask, st, e, err))
		return -e;
	switch (e) {
	case EACCES: return explain_eacces(ask, st, e, err);
	case EPERM: return explain_eperm(ask, st, e, err);
	case ENOENT: return explain_enoent(ask, st, e, err);
	case EINVAL: return ap__explain_einval(ask, st, err);
	case EOPNOTSUPP: return explain_eopnotsupp(ask, st, e, err);
	case E2BIG: return explain_e2big(ask, st, e, err);
	case EMFILE:
	case ENFILE:
	case ENOSPC:
	case EBUSY:
	case EOVERFLOW:
	case ENOMEM: return explain_limit(ask, st, e, err);
	default: return explain_rest(ask, st, e, err);
	}
}

int ap__explain_open(struct ap_machine *m, const struct ap__ask *ask, int e, struct ap_error *err)
{
	struct ap__state st;

	if (!err)
		return -e;
	if (m->ops->refusal)
		return ap__tell(err, ask->name, m->ops->refusal(m->be));
	ap__state_gather(&st, m, ask);
	return ap__explain(ask, &st, e, err);
}
