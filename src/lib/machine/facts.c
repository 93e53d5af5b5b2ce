/* `anyperf doctor`: what perf can and cannot do here, each fact with its effect and remedy. */
#include <anyperf/machine.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <anyperf/pmu.h>

#include "backend/runtime.h"
#include "backend/translations.h"
#include "lib/refusal/explain.h"
#include "lib/machine/machine-priv.h"

struct findings {
	struct ap_machine *m;
	const struct ap__state *st;
	bool privileged;
	ap_fact_fn *fn;
	void *data;
	int stop; /* what ended it, 0 so far */
};

static void fact(struct findings *r, enum ap_fact_state state, const char *id, const char *title,
		 const char *value, const char *effect, const char *remedy)
{
	struct ap_fact f = {.id = id,
			    .title = title,
			    .value = value,
			    .effect = effect,
			    .remedy = remedy,
			    .state = state};

	if (!r->stop)
		r->stop = r->fn(&f, r->data);
}

struct pmu_names {
	char text[512];
};

static int add_pmu(const struct ap_pmu *pmu, void *data)
{
	struct pmu_names *names = data;
	size_t have = strlen(names->text);

	snprintf(names->text + have, sizeof(names->text) - have, "%s%s", have ? ", " : "",
		 pmu->name);
	return 0;
}

static void facts_call(struct findings *r)
{
	const struct ap__state *st = r->st;

	if (st->flags_errno != EINVAL && st->flags_errno != 0)
		fact(r, AP_FACT_BAD, "perf-event-open", "perf_event_open(2)",
		     strerror(st->flags_errno),
		     st->seccomp
			     ? "a seccomp filter refuses the call: the kernel counts nothing here"
		     : st->flags_errno == ENOSYS ? "the kernel is built without perf events"
						 : "a sandbox or security module refuses the call",
		     st->seccomp ? "docker run --cap-add PERFMON, or a profile that allows "
				   "perf_event_open"
				 : "");
	else if (st->self_errno)
		fact(r, AP_FACT_BAD, "perf-event-open", "perf_event_open(2)",
		     strerror(st->self_errno), "not even your own user mode may be counted",
		     "as root: sysctl kernel.perf_event_paranoid=2");
	else
		fact(r, AP_FACT_GOOD, "perf-event-open", "perf_event_open(2)", "works",
		     "software events of your own programs can be counted", "");
}

static void facts_pmu(struct findings *r)
{
	const struct ap__corepmu *core;
	unsigned int n = ap__core_pmus(r->m, &core);
	struct pmu_names names = {""};

	for (unsigned int i = 0; i < n; i++) {
		size_t have = strlen(names.text);

		snprintf(names.text + have, sizeof(names.text) - have, "%s%s", have ? ", " : "",
			 core[i].name);
	}
	if (n)
		fact(r, AP_FACT_GOOD, "cpu-pmu", "CPU PMU", names.text,
		     n > 1 ? "hardware events are counted on every kind of core; generic names become "
			     "one event per kind"
			   : "hardware events can be counted",
		     "");
	else
		fact(r, AP_FACT_BAD, "cpu-pmu", "CPU PMU", "none",
		     r->st->hypervisor
			     ? "the kernel counts no cycles, instructions or caches: the hypervisor "
			       "offers no PMU to this virtual machine"
			     : "the kernel counts no cycles, instructions or caches",
		     r->st->hypervisor
			     ? "give the machine a virtual PMU (KVM: -cpu host,pmu=on; clouds: metal or larger "
			       "instances); or let anyperf count in user space: anyperf run"
			     : "let anyperf count in user space: anyperf run");
	names.text[0] = '\0';
	if (ap_pmus_each(r->m, add_pmu, &names, NULL) == -ENOMEM && !r->stop)
		r->stop = -ENOMEM;
	fact(r, AP_FACT_INFO, "pmus", "PMUs", names.text[0] ? names.text : "none",
	     "anyperf list shows their events", "");
}

static void facts_paranoid(struct findings *r)
{
	char value[32];
	int p = r->st->paranoid;
	const char *effect;

	if (p == AP__UNKNOWN) {
		fact(r, AP_FACT_BAD, "paranoid", "kernel.perf_event_paranoid", "not readable",
		     "the kernel has no perf events, or /proc is hidden", "");
		return;
	}
	snprintf(value, sizeof(value), "%d", p);
	effect =
		p > 2 ? "only the administrator may use perf events on kernels with Debian's patch; on "
			"others as 2"
		: p == 2 ? "without CAP_PERFMON only user mode of your own programs"
		: p == 1 ? "without CAP_PERFMON only your own programs, user and kernel mode"
		: p == 0 ? "whole CPUs too; without CAP_PERFMON no raw tracepoint data"
			 : "everybody may measure everything";
	if (r->privileged)
		fact(r, AP_FACT_GOOD, "paranoid", "kernel.perf_event_paranoid", value,
		     "does not limit you: you have CAP_PERFMON or CAP_SYS_ADMIN", "");
	else
		fact(r,
		     p > 2   ? AP_FACT_BAD
		     : p > 0 ? AP_FACT_LIMITED
			     : AP_FACT_GOOD,
		     "paranoid", "kernel.perf_event_paranoid", value, effect,
		     p > 0 ? "as root: sysctl kernel.perf_event_paranoid=0 (or -1)" : "");
}

static void facts_caps(struct findings *r)
{
	const struct ap__state *st = r->st;
	char value[128];

	snprintf(value, sizeof(value), "%s%s%s%s", st->perfmon ? "CAP_PERFMON " : "",
		 st->sys_admin ? "CAP_SYS_ADMIN " : "", st->ipc_lock ? "CAP_IPC_LOCK " : "",
		 st->user_ns ? "(user namespace)" : "");
	fact(r, r->privileged ? AP_FACT_GOOD : AP_FACT_LIMITED, "capabilities", "capabilities",
	     value[0] ? value : "none",
	     r->privileged ? "other users' tasks, whole CPUs and the kernel can be measured"
	     : st->user_ns ? "you are in a user namespace, where even root has no rights over perf"
			   : "what you may measure is set by perf_event_paranoid",
	     r->privileged ? "" : "setcap cap_perfmon=ep on the program, or run as root");
}

static void facts_limits(struct findings *r)
{
	const struct ap__state *st = r->st;
	char value[96], effect[200];
	long long percent = 25;

	if (st->mlock_kb != AP__UNKNOWN) {
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);

		snprintf(value, sizeof(value), "%lld KiB", st->mlock_kb);
		snprintf(effect, sizeof(effect),
			 "ring buffers may take %lld KiB per user on %ld CPU%s%s",
			 st->mlock_kb * cpus, cpus, cpus == 1 ? "" : "s",
			 st->ipc_lock ? "; you have CAP_IPC_LOCK and are not limited"
				      : ", and RLIMIT_MEMLOCK beyond that");
		fact(r, AP_FACT_INFO, "mlock", "kernel.perf_event_mlock_kb", value, effect,
		     st->ipc_lock
			     ? ""
			     : "for larger buffers, as root: sysctl kernel.perf_event_mlock_kb=N");
	}
	if (st->max_rate != AP__UNKNOWN) {
		ap__slurp_number(r->m, &percent, "/proc/sys/kernel/perf_cpu_time_max_percent");
		snprintf(value, sizeof(value), "%lld Hz", st->max_rate);
		snprintf(
			effect, sizeof(effect),
			"the highest sampling frequency; the kernel lowers it when sampling takes more "
			"than %lld %% of the time",
			percent);
		fact(r, st->max_rate < 4000 ? AP_FACT_LIMITED : AP_FACT_GOOD, "sample-rate",
		     "kernel.perf_event_max_sample_rate", value, effect,
		     st->max_rate < 4000
			     ? "as root: sysctl kernel.perf_event_max_sample_rate=100000"
			     : "");
	}
	if (st->max_stack != AP__UNKNOWN) {
		snprintf(value, sizeof(value), "%lld frames", st->max_stack);
		fact(r, AP_FACT_INFO, "max-stack", "kernel.perf_event_max_stack", value,
		     "longer call chains are cut", "");
	}
	snprintf(value, sizeof(value), "%llu, at most %llu", (unsigned long long)st->nofile,
		 (unsigned long long)st->nofile_max);
	fact(r, st->nofile_max < 1024 ? AP_FACT_LIMITED : AP_FACT_GOOD, "fd-limit", "open files",
	     value,
	     "each event takes one descriptor per CPU and thread; anyperf raises the limit as far as it "
	     "may",
	     st->nofile_max < 1024 ? "raise the hard limit: limits.conf, LimitNOFILE=" : "");
}

static void facts_security(struct findings *r)
{
	const struct ap__state *st = r->st;
	long long v;
	char value[128];

	fact(r, st->seccomp == 2 ? AP_FACT_INFO : AP_FACT_GOOD, "seccomp", "seccomp",
	     st->seccomp == 2   ? "a filter is active"
	     : st->seccomp == 1 ? "strict"
				: "none",
	     st->seccomp && st->flags_errno != EINVAL ? "it refuses perf_event_open"
						      : "it does not hinder perf_event_open",
	     "");
	if (st->ptrace_scope != AP__UNKNOWN) {
		snprintf(value, sizeof(value), "%d", st->ptrace_scope);
		fact(r, AP_FACT_INFO, "yama", "kernel.yama.ptrace_scope", value,
		     "counting other tasks of yours is allowed whatever it says; only sigtrap events "
		     "need the right to attach",
		     "");
	} else {
		fact(r, AP_FACT_GOOD, "yama", "yama", "not active",
		     "your other tasks can be measured", "");
	}
	if (st->lsm[0])
		fact(r, AP_FACT_INFO, "lsm", "security modules", st->lsm,
		     "SELinux and others have rules of their own about perf events", "");
	if (st->lockdown)
		fact(r, AP_FACT_LIMITED, "lockdown", "kernel lockdown", "on",
		     "the kernel's registers cannot be sampled, nor kprobes set", "");
	if (ap__slurp_number(r->m, &v, "/proc/sys/kernel/kptr_restrict") == 0) {
		bool hidden = v == 2 || (v == 1 && st->euid != 0);

		snprintf(value, sizeof(value), "%lld", v);
		fact(r, hidden ? AP_FACT_LIMITED : AP_FACT_GOOD, "kptr-restrict",
		     "kernel.kptr_restrict", value,
		     hidden ? "kernel addresses read 0 in /proc/kallsyms: samples in the kernel have "
			      "no names"
			    : "root, and with perf_event_paranoid of at most 1 everybody, can name "
			      "kernel addresses",
		     hidden ? "as root: sysctl kernel.kptr_restrict=0" : "");
	}
}

static void facts_translations(struct findings *r)
{
	struct translations_kept kept;
	char value[1200];
	int dir = ap__translations_find(&kept);

	if (dir < 0) {
		fact(r, dir == -ENOENT ? AP_FACT_INFO : AP_FACT_LIMITED, "translations",
		     "kept translations", dir == -EPERM ? "the folder is not only yours" : "none",
		     "with --translations=user programs start several times faster when they run "
		     "again",
		     dir == -EPERM ? "chmod 700 anyperf/translations in ~/.cache, or remove it"
				   : "");
		return;
	}
	close(dir);
	snprintf(value, sizeof(value), "%zu files, %.1f of at most %llu MB, in %s", kept.files,
		 (double)kept.bytes / (1 << 20), (unsigned long long)(TRANSLATIONS_MOST >> 20),
		 kept.path);
	fact(r, AP_FACT_INFO, "translations", "kept translations", value,
	     "what was not used for longest goes first",
	     kept.files ? "to remove them: anyperf doctor --clear-translations" : "");
}

static void facts_trees(struct findings *r)
{
	char **names, text[128], mounts[12288];
	const char *events;
	bool v1, v2;
	int n = 0;

	events = ap__tracefs_events(r->m, &n);
	if (events)
		n = ap__names(r->m, &names, "%s", events);
	if (events && n >= 0) {
		snprintf(text, sizeof(text), "%s, %d subsystems", events, n);
		fact(r, AP_FACT_GOOD, "tracefs", "tracefs", text, "tracepoints can be named", "");
		ap__names_free(names);
	} else {
		fact(r, AP_FACT_LIMITED, "tracefs", "tracefs",
		     n == -EACCES ? "not readable" : "not mounted",
		     "tracepoints cannot be found by name",
		     n == -EACCES
			     ? "run as root, or as root: mount -o remount,mode=755 "
			       "/sys/kernel/tracing"
			     : "as root: mount -t tracefs tracefs /sys/kernel/tracing (a kernel "
			       "without CONFIG_TRACING has none)");
	}
	/* Of a table that does not fit, the first part will do: cgroups are mounted early. */
	mounts[0] = mounts[sizeof(mounts) - 1] = '\0';
	if (ap__slurp(r->m, mounts, sizeof(mounts), "/proc/self/mounts") == -E2BIG)
		mounts[sizeof(mounts) - 1] = '\0';
	v1 = strstr(mounts, "perf_event");
	v2 = strstr(mounts, " cgroup2 ");
	fact(r, v1 || v2 ? AP_FACT_GOOD : AP_FACT_LIMITED, "cgroups", "cgroups",
	     v1   ? "version 1, perf_event"
	     : v2 ? "version 2"
		  : "not mounted",
	     v1 || v2 ? "cgroups can be measured, with the right to measure whole CPUs"
		      : "no cgroup can be measured",
	     v1 || v2 ? "" : "as root: mount -t cgroup2 none /sys/fs/cgroup");
}

static void facts_counters(struct findings *r)
{
	const struct ap__corepmu *core;
	unsigned int n = ap__core_pmus(r->m, &core);
	long long v;
	char value[32];

	if (ap__slurp_number(r->m, &v, "/proc/sys/kernel/nmi_watchdog") == 0 && n)
		fact(r, v ? AP_FACT_LIMITED : AP_FACT_GOOD, "nmi-watchdog", "kernel.nmi_watchdog",
		     v ? "on" : "off",
		     v ? "it takes one hardware counter: a group of all counters never runs"
		       : "all hardware counters are free",
		     v ? "as root: sysctl kernel.nmi_watchdog=0" : "");
	for (unsigned int i = 0; i < n; i++)
		if (ap__slurp_number(r->m, &v, AP__DEVICES "/%s/rdpmc", core[i].name) == 0) {
			snprintf(value, sizeof(value), "%lld", v);
			fact(r, v ? AP_FACT_GOOD : AP_FACT_LIMITED, "rdpmc", "rdpmc", value,
			     v ? "programs can read their own counters without a system call"
			       : "programs read their counters by system call",
			     v ? "" : "as root: echo 1 > " AP__DEVICES "/cpu/rdpmc");
		}
	if (ap__slurp_number(r->m, &v, "/proc/sys/kernel/perf_user_access") == 0)
		fact(r, v ? AP_FACT_GOOD : AP_FACT_LIMITED, "perf-user-access",
		     "kernel.perf_user_access", v ? "1" : "0",
		     !v      ? "programs read their counters by system call"
		     : n > 1 ? "threads that stay on cores of one kind can read events of its PMU with "
			       "rdpmc=1 without a system call"
			     : "programs can read their own counters without a system call, of events "
			       "with rdpmc=1 or opened with AP_OPEN_SELF_READ",
		     v ? "" : "as root: sysctl kernel.perf_user_access=1");
}

/* Whether there is one is seen by making one. */
static void facts_virtual(struct findings *r)
{
	struct virtual_opts opts = {.session.paranoid = SESSION_PARANOID_HOST};
	struct virtual_pmu *v;
	char why[300];
	bool works;

	if (!ap__is_here(r->m))
		return;
	works = !ap__runtime_check(why, sizeof(why));
	if (works) {
		if (ap__virtual_new(&v, &opts)) {
			r->stop = r->stop ? r->stop : -ENOMEM;
			return;
		}
		works = !ap__virtual_make_session(v, why, sizeof(why));
		ap__virtual_free(v);
	}
	fact(r, works ? AP_FACT_GOOD : AP_FACT_LIMITED, "virtual-pmu", "virtual PMU",
	     works ? "works" : "none",
	     works ? "`anyperf stat` counts instructions and branches of a command, and `anyperf "
		     "run` gives it a PMU, where the CPU has none. A program that sandboxes itself "
		     "with seccomp filters is less protected under them: the translator answers for "
		     "the filters, not the kernel"
		   : why,
	     "");
}

int ap_machine_facts(struct ap_machine *m, ap_fact_fn *fn, void *data)
{
	struct findings r = {.m = m, .fn = fn, .data = data};
	struct ap__state st;

	ap__state_gather(&st, m, NULL);
	r.st = &st;
	r.privileged = st.perfmon || st.sys_admin;
	fact(&r, AP_FACT_INFO, "kernel", "kernel", st.release, "", "");
	facts_call(&r);
	facts_pmu(&r);
	facts_paranoid(&r);
	facts_caps(&r);
	facts_limits(&r);
	facts_translations(&r);
	facts_security(&r);
	facts_trees(&r);
	facts_counters(&r);
	facts_virtual(&r);
	return r.stop;
}
