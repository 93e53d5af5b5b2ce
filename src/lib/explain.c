/*
 * The rules follow the order in which the kernel checks (doc/matrix.md, "The order of the checks at
 * open"), so that the first thing found wrong is the one that the kernel tripped over.
 */
#include "lib/explain.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/explain-priv.h"
#include "lib/fail.h"
#include "lib/machine-priv.h"

#define PARANOID_REMEDY                                                                           \
	"as root: sysctl kernel.perf_event_paranoid=%d; or give the program CAP_PERFMON (setcap " \
	"cap_perfmon=ep FILE), or run as root"

static bool privileged(const struct ap__state *st)
{
	return st->perfmon || st->sys_admin;
}

/* With the name of the user namespace trap: root there is nobody to perf. */
static const char *no_cap(const struct ap__state *st)
{
	return st->user_ns
		       ? "without CAP_PERFMON in the initial user namespace (root of a container "
			 "does not have it)"
		       : "without CAP_PERFMON";
}

static int forbid(const struct ap__ask *ask, const struct ap__state *st, int e, int level,
		  const char *what, struct ap_error *err)
{
	ap__fail(err, -e, AP_CAUSE_PARANOID,
		 "%s: %s, which kernel.perf_event_paranoid=%d forbids %s", ask->name, what,
		 st->paranoid, no_cap(st));
	return ap__remedy(err, PARANOID_REMEDY, level);
}

/* The call does not reach the kernel's perf, or the kernel has none. True if that explains it. */
static bool filtered(const struct ap__ask *ask, const struct ap__state *st, int e,
		     struct ap_error *err)
{
	if (st->flags_errno == EINVAL || st->flags_errno == 0)
		return false;
	if (st->seccomp) {
		ap__fail(err, -e, AP_CAUSE_SECCOMP,
			 "%s: a seccomp filter on this process refuses perf_event_open (%s)",
			 ask->name, strerror(st->flags_errno));
		ap__remedy(
			err,
			"in a container: docker run --cap-add PERFMON, or a seccomp profile that "
			"allows perf_event_open; under systemd: SystemCallFilter");
		return true;
	}
	if (st->flags_errno == ENOSYS) {
		ap__fail(err, -e, AP_CAUSE_NO_PERF, "%s: this kernel (%s) has no perf_event_open",
			 ask->name, st->release);
		ap__remedy(err, "it must be built with CONFIG_PERF_EVENTS");
		return true;
	}
	ap__fail(
		err, -e, AP_CAUSE_LSM,
		"%s: something refuses perf_event_open before the kernel's perf sees it (%s): a sandbox "
		"or a security module",
		ask->name, strerror(st->flags_errno));
	return true;
}

static int other_task(const struct ap__ask *ask, const struct ap__state *st, int e,
		      struct ap_error *err)
{
	if (ask->attr->sigtrap)
		ap__fail(err, -e, AP_CAUSE_PTRACE,
			 "%s: sending SIGTRAP to task %d needs the right to trace it%s", ask->name,
			 (int)ask->tid,
			 st->ptrace_scope > 0 ? " (yama's kernel.yama.ptrace_scope limits that)"
					      : "");
	else if (st->task_uid != st->euid && st->task_uid != 0)
		ap__fail(err, -e, AP_CAUSE_PTRACE,
			 "%s: task %d belongs to another user (uid %u, you are %u)", ask->name,
			 (int)ask->tid, (unsigned int)st->task_uid, (unsigned int)st->euid);
	else
		ap__fail(
			err, -e, AP_CAUSE_PTRACE,
			"%s: task %d may not be traced by you: it is root's, or runs a program that "
			"changed its user or is not readable",
			ask->name, (int)ask->tid);
	return ap__remedy(err, "run as that user or as root, or give the program CAP_PERFMON");
}

static int explain_eacces(const struct ap__ask *ask, const struct ap__state *st, int e,
			  struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	bool limited = !privileged(st);

	if (st->self_errno == EACCES && st->paranoid > 2)
		return forbid(ask, st, e, 2,
			      "nobody but the administrator may use perf events on this kernel "
			      "(Debian's and Ubuntu's level 3 and above)",
			      err);
	if (limited && st->paranoid > 1) {
		if (!a->exclude_kernel) {
			ap__fail(
				err, -e, AP_CAUSE_PARANOID,
				"%s: counts the kernel%s, which kernel.perf_event_paranoid=%d forbids "
				"%s",
				ask->name, a->exclude_user ? " only" : " too", st->paranoid,
				no_cap(st));
			return ap__remedy(
				err, "%s" PARANOID_REMEDY,
				a->exclude_user ? "" : "count user mode only (modifier :u); or ",
				1);
		}
		if ((a->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
		    (a->branch_sample_type & (PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)))
			return forbid(ask, st, e, 1, "samples branches of the kernel", err);
		if (a->sample_type & PERF_SAMPLE_PHYS_ADDR)
			return forbid(ask, st, e, 1, "samples physical addresses", err);
	}
	if (limited && a->namespaces) {
		ap__fail(err, -e, AP_CAUSE_CAPABILITY,
			 "%s: records of namespaces are given only to CAP_PERFMON", ask->name);
		return ap__remedy(err, "leave them out, or run as root");
	}
	if (!st->sys_admin && strcmp(st->pmu, "uprobe") == 0) {
		ap__fail(err, -e, AP_CAUSE_CAPABILITY, "%s: a uprobe needs CAP_SYS_ADMIN",
			 ask->name);
		return ap__remedy(err, "run as root");
	}
	if (limited && strcmp(st->pmu, "kprobe") == 0) {
		ap__fail(err, -e, AP_CAUSE_CAPABILITY, "%s: a kprobe needs CAP_PERFMON", ask->name);
		return ap__remedy(err, "run as root");
	}
	if (limited && (ask->tid == -1 || ask->cgroup) && st->paranoid > 0)
		return forbid(ask, st, e, 0,
			      ask->cgroup ? "counts a cgroup, that is everybody's tasks on a CPU"
					  : "counts everything that runs on a CPU",
			      err);
	if (limited && ask->tid > 0)
		return other_task(ask, st, e, err);
	ap__fail(err, -e, AP_CAUSE_LSM, "%s: a security module refuses it%s%s%s", ask->name,
		 st->lsm[0] ? " (active: " : "", st->lsm, st->lsm[0] ? ")" : "");
	return ap__remedy(err, "look for a denial in the audit log (SELinux: class perf_event)");
}

static int explain_eperm(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (a->type == PERF_TYPE_TRACEPOINT && st->paranoid > -1 && !privileged(st))
		return forbid(ask, st, e, -1,
			      a->sample_type & PERF_SAMPLE_RAW
				      ? "reads the raw data of a tracepoint"
				      : "is a tracepoint on the kernel's functions",
			      err);
	if (a->type == PERF_TYPE_BREAKPOINT && !st->sys_admin) {
		ap__fail(err, -e, AP_CAUSE_CAPABILITY,
			 "%s: a breakpoint at a kernel address needs CAP_SYS_ADMIN", ask->name);
		return ap__remedy(err, "run as root, or give an address of the program");
	}
	if ((a->sample_type & PERF_SAMPLE_REGS_INTR) && st->lockdown) {
		ap__fail(err, -e, AP_CAUSE_LSM,
			 "%s: kernel lockdown forbids sampling the kernel's registers", ask->name);
		return ap__remedy(err, "leave out PERF_SAMPLE_REGS_INTR, or boot without lockdown");
	}
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle)
		return ap__fail(
			err, -e, AP_CAUSE_UNSUPPORTED,
			"%s: this CPU's PMU cannot leave out one of user mode, kernel mode, "
			"hypervisor or idle; try other modifiers",
			ask->name);
	return ap__fail(err, -e, AP_CAUSE_LSM,
			"%s: not permitted by a security module or the kernel's lockdown",
			ask->name);
}

static int explain_enoent(const struct ap__ask *ask, const struct ap__state *st, int e,
			  struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;
	bool cpu_type = a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE ||
			a->type == PERF_TYPE_RAW;

	if (cpu_type && !st->core_pmu) {
		ap__fail(err, -e, AP_CAUSE_NO_PMU, "%s: the kernel has no CPU PMU here%s",
			 ask->name,
			 st->hypervisor
				 ? ": this is a virtual machine whose hypervisor does not offer "
				   "one"
				 : "");
		return ap__remedy(
			err, "%s%s",
			st->hypervisor ? "give the machine a virtual PMU (KVM: -cpu host,pmu=on; "
					 "clouds: a metal or larger instance); or "
				       : "",
			a->exclude_user ? "count user mode, which anyperf can do without one"
					: "let anyperf count in user space: anyperf run");
	}
	if (a->type == PERF_TYPE_SOFTWARE)
		return ap__fail(err, -e, AP_CAUSE_KERNEL_OLD,
				"%s: this kernel (%s) has no software event number %llu", ask->name,
				st->release, (unsigned long long)a->config);
	if (cpu_type || st->pmu[0]) {
		if (st->pmu_cpus[0] && ask->cpu >= 0)
			return ap__fail(err, -e, AP_CAUSE_CPU,
					"%s: the PMU %s does not count on CPU %d, only on %s",
					ask->name, st->pmu, ask->cpu, st->pmu_cpus);
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
				"%s: the CPU's PMU has no such event", ask->name);
	}
	ap__fail(err, -e, AP_CAUSE_UNKNOWN_EVENT, "%s: no PMU has the type %u", ask->name, a->type);
	return ap__remedy(err, "`anyperf list` shows the PMUs of this machine");
}

static int explain_eopnotsupp(const struct ap__ask *ask, const struct ap__state *st, int e,
			      struct ap_error *err)
{
	const struct pe_attr *a = ask->attr;

	if (a->sample_type & PERF_SAMPLE_BRANCH_STACK) {
		ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
			 "%s: this event's PMU cannot record branches", ask->name);
		return ap__remedy(err,
				  "sample without branch stacks, or use a hardware event on a CPU "
				  "that records branches");
	}
	if (a->precise_ip) {
		ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
			 "%s: this event cannot be sampled with precision %d", ask->name,
			 (int)a->precise_ip);
		return ap__remedy(err,
				  "use fewer p modifiers, or P for the most precise that works");
	}
	if (a->aux_output)
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
				"%s: its PMU cannot write into the AUX stream", ask->name);
	if (a->sample_period) {
		ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
			 "%s: its PMU has no interrupt, so it can count but not sample", ask->name);
		return ap__remedy(err, "count it, or sample cpu-clock instead");
	}
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle ||
	    a->exclude_host || a->exclude_guest)
		return ap__fail(
			err, -e, AP_CAUSE_UNSUPPORTED,
			"%s: the PMU cannot leave out one of the modes that the modifiers exclude",
			ask->name);
	if (a->config1 & 3)
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
				"%s: the PMU has no 64-bit counter to offer to user space (arm64: "
				"long=1 with rdpmc=1)",
				ask->name);
	return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED, "%s: its PMU does not support this (%s)",
			ask->name, st->pmu[0] ? st->pmu : "unknown");
}

/* ENOSPC, EBUSY, EMFILE and other limits that are counted. */
static int explain_limit(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	switch (e) {
	case EMFILE:
		ap__fail(
			err, -e, AP_CAUSE_FD_LIMIT,
			"%s: the process has no file descriptor left: the limit is %llu, the hard limit "
			"%llu; every event takes one per CPU and thread",
			ask->name, (unsigned long long)st->nofile,
			(unsigned long long)st->nofile_max);
		return ap__remedy(
			err, "raise the hard limit (ulimit -Hn, limits.conf, LimitNOFILE=), or "
			     "measure fewer events, CPUs or threads");
	case ENFILE:
		ap__fail(err, -e, AP_CAUSE_FD_LIMIT, "%s: the system has no file descriptor left",
			 ask->name);
		return ap__remedy(err, "as root: raise sysctl fs.file-max");
	case ENOSPC:
		ap__fail(err, -e, AP_CAUSE_BUSY,
			 ask->attr->type == PERF_TYPE_BREAKPOINT
				 ? "%s: all breakpoint registers of the CPU are in use (x86 has 4)"
				 : "%s: the PMU has no counter left",
			 ask->name);
		return ap__remedy(err, "measure fewer of them at a time; a debugger may hold some");
	case EBUSY:
		ap__fail(
			err, -e, AP_CAUSE_BUSY,
			"%s: another user has the %s PMU for himself, or a group that is exclusive is "
			"on it",
			ask->name, st->pmu[0] ? st->pmu : "CPU's");
		return ap__remedy(err, "end the other measurement first");
	case EOVERFLOW:
		ap__fail(
			err, -e, AP_CAUSE_MAX_STACK,
			"%s: a call chain of %u frames is asked for; kernel.perf_event_max_stack is %lld",
			ask->name, ask->attr->sample_max_stack, st->max_stack);
		return ap__remedy(err,
				  "ask for at most %lld, or as root: sysctl "
				  "kernel.perf_event_max_stack=%u",
				  st->max_stack, ask->attr->sample_max_stack);
	default:
		return ap__fail(err, -e, AP_CAUSE_MEMORY, "%s: the kernel is out of memory",
				ask->name);
	}
}

static int explain_rest(const struct ap__ask *ask, const struct ap__state *st, int e,
			struct ap_error *err)
{
	switch (e) {
	case ESRCH:
		if (ask->tid < -1)
			return ap__fail(err, -e, AP_CAUSE_NO_TASK,
					"%s: %d is not a process or thread id", ask->name,
					(int)ask->tid);
		return ap__fail(err, -e, AP_CAUSE_NO_TASK, "%s: %s %d%s", ask->name,
				st->task_zombie || st->task_exists
					? "process or thread"
					: "there is no process or thread",
				(int)ask->tid,
				st->task_zombie   ? " has already ended (it is a zombie)"
				: st->task_exists ? " is just ending"
						  : "");
	case ENODEV:
		if (!st->cpu_online) {
			ap__fail(err, -e, AP_CAUSE_CPU, "%s: CPU %d is offline", ask->name,
				 ask->cpu);
			return ap__remedy(err,
					  "as root: echo 1 > /sys/devices/system/cpu/cpu%d/online",
					  ask->cpu);
		}
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
				"%s: the CPU lacks the feature that this needs", ask->name);
	case ENOSYS:
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED,
				ask->attr->sample_type & PERF_SAMPLE_STACK_USER
					? "%s: this architecture cannot sample the user stack"
					: "%s: this kernel does not support it",
				ask->name);
	case EBADF:
		return ap__fail(err, -e, ask->cgroup ? AP_CAUSE_CGROUP : AP_CAUSE_GROUP,
				ask->cgroup
					? "%s: the directory is not a cgroup that perf can use (it "
					  "takes a version 2 or perf_event cgroup)"
					: "%s: the leader's descriptor is not an open perf event",
				ask->name);
	case EINTR:
		return ap__fail(
			err, -e, AP_CAUSE_BUSY,
			"%s: a signal came while the target was in execve, or ftrace and perf "
			"want the same uprobe; try again",
			ask->name);
	case EFAULT:
		return ap__fail(err, -e, AP_CAUSE_BAD_VALUE,
				"%s: a pointer in the attr is not readable", ask->name);
	case ECHILD:
		return ap__fail(err, -e, AP_CAUSE_GROUP, "%s: the groups of its children differ",
				ask->name);
	default: return ap__fail(err, -e, AP_CAUSE_OTHER, "%s: %s", ask->name, strerror(e));
	}
}

static int explain_e2big(const struct ap__ask *ask, const struct ap__state *st, int e,
			 struct ap_error *err)
{
	const char *field;

	if (ask->known_size && ask->known_size < ask->attr->size) {
		field = ap__attr_field_beyond(ask->attr, ask->known_size);
		ap__fail(
			err, -e, AP_CAUSE_KERNEL_OLD,
			"%s: this kernel (%s) does not know the attr's field %s; it knows %u of %u bytes",
			ask->name, st->release, field, ask->known_size, ask->attr->size);
		return ap__remedy(err, "leave that setting out, or use a newer kernel");
	}
	if (strcmp(st->pmu, "uprobe") == 0 || strcmp(st->pmu, "kprobe") == 0)
		return ap__fail(err, -e, AP_CAUSE_BAD_VALUE,
				"%s: the probe's name or path is too long", ask->name);
	ap__fail(err, -e, AP_CAUSE_GROUP,
		 "%s: the group is too large: one read would give more than 16384 bytes",
		 ask->name);
	return ap__remedy(err, "split it into smaller groups");
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
