/*
 * PURPOSE: from an errno of perf_event_open(2) to what was refused, why, and the remedy
 * [ERR-01..18]. explain() is pure: it looks at what was asked and at a description of the machine's
 * state, so it can be tested for machines that are not at hand. state_gather() describes this
 * machine; it reads files and opens a probe event, and is called only after something was refused.
 */
#ifndef LIB_REFUSAL_EXPLAIN_H
#define LIB_REFUSAL_EXPLAIN_H

#include <anyperf/error.h>
#include <sys/types.h>

#include "abi/perf.h"

struct ap__advice;
struct ap_machine;

/* One perf_event_open(2). */
struct ap__ask {
	const struct pe_attr *attr;
	const char *name; /* how sentences call the event */
	pid_t tid;        /* 0 self, -1 none */
	int cpu;          /* -1 any */
	bool has_leader;
	bool cgroup;    /* flag PID_CGROUP */
	int cgroup_fd;  /* of that */
	u32 known_size; /* after E2BIG: the size of attr that the kernel knows */
};

#define AP__UNKNOWN (-1000)

struct ap__state {
	int paranoid; /* kernel.perf_event_paranoid, AP__UNKNOWN if it cannot be read */
	bool perfmon, sys_admin, ipc_lock; /* effective capabilities */
	bool user_ns; /* not in the initial user namespace: they do not count */
	uid_t euid;
	/* answer to a call with an invalid flag: EINVAL if nothing filters the call */
	int flags_errno;
	int self_errno;         /* answer to counting one's own user mode, 0 if it worked */
	int seccomp;            /* mode from /proc/self/status: 0 none, 2 filter */
	bool core_pmu;          /* the kernel has a CPU PMU */
	bool hypervisor;        /* the CPU says that it is virtual */
	bool lockdown;          /* the kernel's lockdown is on */
	char lsm[96];           /* active security modules, "" if not known */
	int ptrace_scope;       /* yama, AP__UNKNOWN without it */
	long long max_rate;     /* perf_event_max_sample_rate, or AP__UNKNOWN */
	long long max_stack;    /* perf_event_max_stack, or AP__UNKNOWN */
	long long mlock_kb;     /* perf_event_mlock_kb, or AP__UNKNOWN */
	u64 memlock;            /* RLIMIT_MEMLOCK, bytes */
	u64 nofile, nofile_max; /* RLIMIT_NOFILE, soft and hard */
	bool files_full;        /* the system-wide table is full */
	int cgroup_errno;       /* answer to counting in the ask's cgroup, 0 if it worked */
	bool task_exists;       /* the task of the ask */
	bool task_zombie;
	uid_t task_uid;     /* owner of its /proc directory: 0 if it is not dumpable */
	int ncpus;          /* highest possible CPU number + 1 */
	bool cpu_online;    /* the CPU of the ask */
	char pmu[64];       /* name of the PMU of attr.type, "" if no PMU has that type */
	char pmu_cpus[128]; /* its cpus or cpumask file, "" if there is none */
	bool user_access;   /* its config1 has arm64's long and rdpmc */
	char release[65];   /* uname -r */
	const struct ap__advice *advice; /* of the machine; NULL: none */
};

/* Fills in @st for @ask. */
void ap__state_gather(struct ap__state *st, struct ap_machine *m, const struct ap__ask *ask);

/* Fills in @err for -@e. Returns -@e. */
int ap__explain(const struct ap__ask *ask, const struct ap__state *st, int e, struct ap_error *err);

/* Both, unless the backend knows the reason itself. Returns -@e. */
int ap__explain_open(struct ap_machine *m, const struct ap__ask *ask, int e, struct ap_error *err);

#endif
