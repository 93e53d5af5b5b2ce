/* What this machine allows: read only after a refusal, and by the doctor. */
#include "lib/refusal/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/spec/cpulist.h"
#include "lib/machine/machine-priv.h"

static long long sysctl_number(struct ap_machine *m, const char *name)
{
	long long v;

	return ap__slurp_number(m, &v, "/proc/sys/kernel/%s", name) ? AP__UNKNOWN : v;
}

/* The value behind "Name:\t" in a status file, or NULL. */
static const char *status_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : NULL;
}

static void read_status(struct ap__state *st, struct ap_machine *m)
{
	char status[8192], map[256];
	const char *v;

	if (ap__slurp(m, status, sizeof(status), "/proc/self/status") > 0) {
		v = status_field(status, "\nCapEff:");
		if (v) {
			u64 caps = strtoull(v, NULL, 16);

			st->perfmon = caps >> 38 & 1; /* CAP_PERFMON; older headers lack the name */
			st->sys_admin = caps >> 21 & 1;
			st->ipc_lock = caps >> 14 & 1;
		}
		v = status_field(status, "\nSeccomp:");
		st->seccomp = v ? atoi(v) : 0;
	}
	/*
	 * perf asks for capabilities of the initial namespace, whose map is the whole range; that
	 * of a new one is empty until somebody writes it.
	 */
	if (ap__slurp(m, map, sizeof(map), "/proc/self/uid_map") >= 0) {
		unsigned long inside, outside, n;

		st->user_ns = sscanf(map, "%lu %lu %lu", &inside, &outside, &n) != 3 || inside ||
			      outside || n != 4294967295ul;
	}
	if (st->user_ns)
		st->perfmon = st->sys_admin = st->ipc_lock = false;
}

static bool has_hypervisor_flag(struct ap_machine *m)
{
	char info[8192], *line;

	/*
	 * The first CPU's flags are within the first pages; a cut-off read is all that is needed.
	 */
	info[0] = '\0';
	if (ap__slurp(m, info, sizeof(info), "/proc/cpuinfo") == -E2BIG)
		info[sizeof(info) - 1] = '\0';
	line = strstr(info, "\nflags");
	return (line && strstr(line, " hypervisor")) || ap__exists(m, "/sys/hypervisor/type");
}

static void find_pmu(struct ap__state *st, struct ap_machine *m, u32 type)
{
	char **names;
	long long t;
	int n = ap__names(m, &names, AP__DEVICES);

	for (int i = 0; i < n && !st->pmu[0]; i++) {
		if (ap__slurp_number(m, &t, AP__DEVICES "/%s/type", names[i]) || t != type)
			continue;
		snprintf(st->pmu, sizeof(st->pmu), "%.63s", names[i]);
		if (ap__slurp(m, st->pmu_cpus, sizeof(st->pmu_cpus), AP__DEVICES "/%s/cpus",
			      names[i]) < 0 &&
		    ap__slurp(m, st->pmu_cpus, sizeof(st->pmu_cpus), AP__DEVICES "/%s/cpumask",
			      names[i]) < 0)
			st->pmu_cpus[0] = '\0';
	}
	if (n >= 0)
		ap__names_free(names);
}

static void look_at_task(struct ap__state *st, struct ap_machine *m, pid_t tid)
{
	char path[64], stat_line[512], *state;
	struct stat sb;

	snprintf(path, sizeof(path), "/proc/%d", (int)tid);
	st->task_exists = stat(path, &sb) == 0;
	st->task_uid = st->task_exists ? sb.st_uid : 0;
	if (ap__slurp(m, stat_line, sizeof(stat_line), "/proc/%d/stat", (int)tid) > 0 &&
	    (state = strrchr(stat_line, ')')) && state[1])
		st->task_zombie = state[2] == 'Z' || state[2] == 'X';
}

static void probe_call(struct ap__state *st, struct ap_machine *m, const struct ap__ask *ask)
{
	struct pe_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PE_ATTR_SIZE_VER0,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd;

	/*
	 * An unknown flag is the kernel's very first check, before the attr is even read [FLAG-05].
	 */
	fd = m->ops->open(m->be, &attr, 0, -1, -1, 1ull << 31);
	st->flags_errno = fd < 0 ? -fd : 0;
	if (fd >= 0)
		m->ops->close(m->be, fd);
	fd = m->ops->open(m->be, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	st->self_errno = fd < 0 ? -fd : 0;
	if (fd >= 0)
		m->ops->close(m->be, fd);
	if (!ask || !ask->cgroup)
		return;
	attr.exclude_kernel = attr.exclude_hv = 0;
	fd = m->ops->open(m->be, &attr, ask->cgroup_fd, ask->cpu, -1,
			  PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);
	st->cgroup_errno = fd < 0 ? -fd : 0;
	if (fd >= 0)
		m->ops->close(m->be, fd);
}

static void read_limits(struct ap__state *st, struct ap_machine *m)
{
	unsigned long long used, unused, max;
	struct rlimit rl;
	char text[128];

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		st->nofile = rl.rlim_cur;
		st->nofile_max = rl.rlim_max;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &rl) == 0)
		st->memlock = rl.rlim_cur;
	if (ap__slurp(m, text, sizeof(text), "/proc/sys/fs/file-nr") > 0 &&
	    sscanf(text, "%llu %llu %llu", &used, &unused, &max) == 3)
		st->files_full = used >= max;
	st->max_rate = sysctl_number(m, "perf_event_max_sample_rate");
	st->max_stack = sysctl_number(m, "perf_event_max_stack");
	st->mlock_kb = sysctl_number(m, "perf_event_mlock_kb");
}

void ap__state_gather(struct ap__state *st, struct ap_machine *m, const struct ap__ask *ask)
{
	const struct ap__corepmu *core;
	char text[4096];
	struct utsname un;

	memset(st, 0, sizeof(*st));
	st->advice = m->advice;
	st->paranoid = (int)sysctl_number(m, "perf_event_paranoid");
	st->ptrace_scope = (int)sysctl_number(m, "yama/ptrace_scope");
	st->euid = geteuid();
	read_status(st, m);
	read_limits(st, m);
	st->core_pmu = ap__core_pmus(m, &core) > 0;
	st->hypervisor = has_hypervisor_flag(m);
	if (ap__slurp(m, text, sizeof(text), "/sys/kernel/security/lockdown") > 0)
		st->lockdown = !strstr(text, "[none]");
	if (ap__slurp(m, text, sizeof(text), "/sys/kernel/security/lsm") > 0)
		snprintf(st->lsm, sizeof(st->lsm), "%.95s", text);
	if (uname(&un) == 0)
		snprintf(st->release, sizeof(st->release), "%s", un.release);
	st->ncpus = 1 << 20;
	if (ap__slurp(m, text, sizeof(text), "/sys/devices/system/cpu/possible") > 0)
		st->ncpus = ap__cpulist_last(text) + 1;
	st->cpu_online = true;
	if (ask && ask->cpu >= 0 &&
	    ap__slurp(m, text, sizeof(text), "/sys/devices/system/cpu/online") > 0)
		st->cpu_online = ap__cpulist_has(text, ask->cpu);
	if (ask && !ask->cgroup && ask->tid > 0)
		look_at_task(st, m, ask->tid);
	if (ask)
		find_pmu(st, m, ask->attr->type);
	if (st->core_pmu)
		st->user_access = ap__exists(m, AP__DEVICES "/%s/format/rdpmc",
					     st->pmu[0] ? st->pmu : core[0].name);
	probe_call(st, m, ask);
}
