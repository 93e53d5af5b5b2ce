/*
 * Reasons as a pure function: what was asked, the machine's state and the errno in, the sentence
 * out. Each row is a situation that the kernel at hand cannot produce, or not for every user.
 */
#include "unit/lib/fixture.h"

#include <errno.h>

#include "lib/machine/machine-priv.h"
#include "lib/refusal/explain.h"

/* A machine on which nothing is in the way. */
static const struct ap__state fine = {
	.paranoid = -1,
	.perfmon = true,
	.sys_admin = true,
	.euid = 1000,
	.flags_errno = EINVAL,
	.core_pmu = true,
	.ptrace_scope = AP__UNKNOWN,
	.max_rate = 100000,
	.max_stack = 127,
	.mlock_kb = 516,
	.nofile = 1024,
	.nofile_max = 4096,
	.task_exists = true,
	.task_uid = 1000,
	.ncpus = 8,
	.cpu_online = true,
	.release = "6.8.0",
};

static struct ap_error err;

static void explain(const struct ap__state *st, const struct pe_attr *attr, pid_t tid, int cpu,
		    int e)
{
	struct ap__ask ask = {.attr = attr, .name = "EVENT", .tid = tid, .cpu = cpu};

	memset(&err, 0, sizeof(err));
	EXPECT_EQ(ap__explain(&ask, st, e, &err), -e);
	EXPECT_EQ(err.code, -e);
	EXPECT(!strncmp(err.why, "EVENT: ", 7) && err.about == 7);
}

#define EXPECT_CAUSE(c, why_has, remedy_has)             \
	do {                                             \
		EXPECT_EQ(err.cause, c);                 \
		EXPECT_CONTAINS(err.why, why_has);       \
		EXPECT_CONTAINS(err.remedy, remedy_has); \
	} while (0)

TEST(paranoid_levels)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 0};

	st.perfmon = st.sys_admin = false;
	st.paranoid = 2;
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "counts the kernel too, which kernel.perf_event_paranoid=2",
		     ":u");
	a.exclude_user = 1;
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID,
		     "counts the kernel only, which kernel.perf_event_paranoid=2",
		     "as root: sysctl kernel.perf_event_paranoid=1");
	EXPECT(!strstr(err.remedy, ":u"));
	a.exclude_user = 0;
	a.exclude_kernel = 1;
	st.paranoid = 1;
	explain(&st, &a, -1, 0, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "everything that runs on a CPU", "perf_event_paranoid=0");
	/* Debian's level: not even one's own user mode. */
	st.paranoid = 3;
	st.self_errno = EACCES;
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "Debian's", "perf_event_paranoid=2");
	/* The same level on a kernel without the patch: something else was refused. */
	st.self_errno = 0;
	a.exclude_kernel = 0;
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "counts the kernel too", ":u");
	/* Raw tracepoint data [TYPE-03, ERR-15]. */
	st = fine;
	st.perfmon = st.sys_admin = false;
	st.paranoid = 0;
	a = (struct pe_attr){.type = PERF_TYPE_TRACEPOINT, .sample_type = PERF_SAMPLE_RAW};
	explain(&st, &a, 0, -1, EPERM);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "raw data of a tracepoint", "perf_event_paranoid=-1");
	st.paranoid = 2;
	a = (struct pe_attr){.type = 0,
			     .exclude_kernel = 1,
			     .sample_type = PERF_SAMPLE_BRANCH_STACK,
			     .branch_sample_type = PERF_SAMPLE_BRANCH_KERNEL |
						   PERF_SAMPLE_BRANCH_ANY};
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "branches of the kernel", "sysctl");
	a = (struct pe_attr){.type = 0, .exclude_kernel = 1, .sample_type = PERF_SAMPLE_PHYS_ADDR};
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "physical addresses", "sysctl");
	/* Root of a container is told why being root does not help. */
	st.user_ns = true;
	a = (struct pe_attr){.type = 0};
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PARANOID, "root of a container", ":u");
}

TEST(capabilities)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 8, .exclude_kernel = 1};

	st.perfmon = st.sys_admin = false;
	strcpy(st.pmu, "uprobe");
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_CAPABILITY, "uprobe needs CAP_SYS_ADMIN", "root");
	strcpy(st.pmu, "kprobe");
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_CAPABILITY, "kprobe needs CAP_PERFMON", "root");
	a = (struct pe_attr){.type = 1, .exclude_kernel = 1, .namespaces = 1};
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_CAPABILITY, "namespaces", "root");
	a = (struct pe_attr){.type = PERF_TYPE_BREAKPOINT, .bp_addr = 1ull << 63};
	explain(&st, &a, 0, -1, EPERM);
	EXPECT_CAUSE(AP_CAUSE_CAPABILITY, "kernel address", "root");
}

TEST(other_tasks)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 1, .exclude_kernel = 1};

	st.perfmon = st.sys_admin = false;
	st.task_uid = 33;
	explain(&st, &a, 77, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PTRACE, "task 77 belongs to another user (uid 33, you are 1000)",
		     "root");
	st.task_uid = 0;
	explain(&st, &a, 77, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PTRACE, "may not be traced by you", "root");
	a.sigtrap = 1;
	st.ptrace_scope = 1;
	explain(&st, &a, 77, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_PTRACE, "yama", "root");
	a.sigtrap = 0;
	st.task_exists = false;
	explain(&st, &a, 77, -1, ESRCH);
	EXPECT_CAUSE(AP_CAUSE_NO_TASK, "there is no process or thread 77", "");
	st.task_exists = st.task_zombie = true;
	explain(&st, &a, 77, -1, ESRCH);
	EXPECT_CAUSE(AP_CAUSE_NO_TASK, "zombie", "");
	explain(&st, &a, -2, -1, ESRCH);
	EXPECT_CAUSE(AP_CAUSE_NO_TASK, "-2 is not a process", "");
}

TEST(filters_and_modules)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 1};

	st.flags_errno = EPERM;
	st.seccomp = 2;
	explain(&st, &a, 0, -1, EPERM);
	EXPECT_CAUSE(AP_CAUSE_SECCOMP, "seccomp filter", "--cap-add PERFMON");
	st.flags_errno = ENOSYS;
	explain(&st, &a, 0, -1, ENOSYS);
	EXPECT_CAUSE(AP_CAUSE_SECCOMP, "seccomp filter", "docker");
	st.seccomp = 0;
	explain(&st, &a, 0, -1, ENOSYS);
	EXPECT_CAUSE(AP_CAUSE_NO_PERF, "has no perf_event_open", "CONFIG_PERF_EVENTS");
	st.flags_errno = EACCES;
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_LSM, "sandbox or a security module", "");
	st = fine;
	strcpy(st.lsm, "lockdown,selinux");
	explain(&st, &a, 0, -1, EACCES);
	EXPECT_CAUSE(AP_CAUSE_LSM, "lockdown,selinux", "audit");
	st.lockdown = true;
	a = (struct pe_attr){
		.type = 0, .sample_type = PERF_SAMPLE_REGS_INTR, .sample_regs_intr = 1};
	explain(&st, &a, 0, -1, EPERM);
	EXPECT_CAUSE(AP_CAUSE_LSM, "lockdown", "REGS_INTR");
}

TEST(missing_pmus_and_events)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 0};

	st.core_pmu = false;
	st.hypervisor = true;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "virtual machine whose hypervisor", "pmu=on");
	st.hypervisor = false;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "no CPU PMU", "anyperf run");
	/* What anyperf counts without a PMU is user mode. */
	a.exclude_user = 1;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "no CPU PMU", "count user mode");
	a.exclude_user = 0;
	st.core_pmu = true;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "no such event", "");
	a.type = 1;
	a.config = 99;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_KERNEL_OLD, "software event number 99", "");
	a.type = 77;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_UNKNOWN_EVENT, "no PMU has the type 77", "anyperf list");
	strcpy(st.pmu, "armv8_cortex_a53");
	strcpy(st.pmu_cpus, "0-3");
	explain(&st, &a, -1, 5, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_CPU, "does not count on CPU 5, only on 0-3", "");
	strcpy(st.pmu, "uncore_imc_0");
	strcpy(st.pmu_cpus, "0");
	explain(&st, &a, 0, -1, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "whole CPUs, not tasks", "-a or -C");
}

/* What can be done here, in place of what can be done on any machine. */
TEST(advice_stands_for_the_remedy)
{
	static const struct ap__advice advice = {REMEDY_NAME_SESSION, {"12,13", "p"}};
	struct ap__state st = fine;
	struct pe_attr a = {.type = 0};

	st.core_pmu = false;
	st.hypervisor = true;
	st.advice = &advice;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "virtual machine whose hypervisor", "; or name the session");
	EXPECT_CONTAINS(err.remedy, "for 12,13 is a guest");
	EXPECT_CONTAINS(err.remedy, "--session NAME -p 12,13`");
	EXPECT(!strstr(err.remedy, "anyperf can do without one"));
	/* It is about user mode. */
	a.exclude_user = 1;
	explain(&st, &a, 0, -1, ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "no CPU PMU", "count user mode");
}

/* A backend that refuses by itself says why; neither the errno nor the machine's state does. */
struct knows {
	struct refusal refusal;
	bool opens;
};

static int knows_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct knows *k = be;

	(void)attr, (void)pid, (void)cpu, (void)leader, (void)flags;
	if (k->opens)
		return 0;
	return refusal_set(&k->refusal, -EACCES, CAUSE_VIRTUAL_KERNEL,
			   &(struct refusal_args){.note = NOTE_NONE});
}

static int knows_close(void *be, int handle)
{
	(void)be, (void)handle;
	return 0;
}

static int knows_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	struct knows *k = be;

	(void)handle, (void)request, (void)arg;
	return refusal_set(&k->refusal, -EINVAL, CAUSE_SESSION_GONE,
			   &(struct refusal_args){.note = NOTE_NONE});
}

static const struct refusal *knows_refusal(void *be)
{
	return &((struct knows *)be)->refusal;
}

TEST(a_backend_that_knows_why)
{
	static const struct ap__backend_ops ops = {.name = "knows",
						   .open = knows_open,
						   .close = knows_close,
						   .ioctl = knows_ioctl,
						   .refusal = knows_refusal};
	struct ap_machine *m = machine_of(NULL);
	struct pe_attr a = {.type = 0, .size = sizeof(a), .config = 1};
	struct ap_event *e = NULL;
	struct knows k = {.opens = false};

	ap__machine_set_backend(m, &ops, &k);
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&a, NULL, &err), -EACCES);
	EXPECT_EQ(err.code, -EACCES);
	EXPECT_CAUSE(AP_CAUSE_KERNEL_MODE, "instructions: counts the kernel too",
		     "--kernel-mode=ignore");
	EXPECT_STREQ(ap_cause_name(err.cause), "kernel-mode");
	EXPECT_EQ(err.about, strlen("instructions: "));
	/* The errno is nobody's business either. */
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&a, NULL, NULL), -EACCES);
	k.opens = true;
	ASSERT(ap_event_open(&e, m, (struct perf_event_attr *)&a, NULL, &err) == 0);
	EXPECT_EQ(ap_event_refresh(e, 1, &err), -EINVAL);
	EXPECT_CAUSE(AP_CAUSE_SESSION, "instructions: the session of the virtual PMU has ended",
		     "");
	EXPECT_EQ(ap_event_set_period(e, 1, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_set_filter(e, "x", &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_set_output(e, NULL, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_pause_output(e, true, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_set_bpf(e, 3, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_modify(e, ap_event_attr(e), &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SESSION);
	EXPECT_EQ(ap_event_map_self(e, &err), -EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "cannot be mapped", "read it");
	ap_event_close(e);
	ap_machine_free(m);
}

TEST(what_a_pmu_cannot_do)
{
	struct pe_attr a = {.type = 0, .sample_period = 1, .precise_ip = 3};

	explain(&fine, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "precision 3", "fewer p");
	a.precise_ip = 0;
	explain(&fine, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "no interrupt", "cpu-clock");
	a.sample_type = PERF_SAMPLE_BRANCH_STACK;
	explain(&fine, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "record branches", "");
	a = (struct pe_attr){.type = 0, .aux_output = 1};
	explain(&fine, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "AUX", "");
	a = (struct pe_attr){.type = 0, .exclude_idle = 1};
	explain(&fine, &a, 0, -1, EPERM);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "cannot leave out", "");
	a = (struct pe_attr){.type = 0, .precise_ip = 1};
	explain(&fine, &a, 0, -1, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_BAD_VALUE, "must be sampled", "");
	a = (struct pe_attr){.type = 0, .sample_type = PERF_SAMPLE_STACK_USER};
	explain(&fine, &a, 0, -1, ENOSYS);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "user stack", "");
	a = (struct pe_attr){.type = 0};
	explain(&fine, &a, 0, -1, EBUSY);
	EXPECT_CAUSE(AP_CAUSE_BUSY, "for himself", "");
}

/* What no event of this cgroup can do is told from what this event cannot do. */
TEST(cgroups_without_state)
{
	struct pe_attr software = {.type = PERF_TYPE_SOFTWARE}, hardware = {.type = 0};
	struct ap__ask ask = {.name = "EVENT", .tid = -1, .cgroup = true};
	struct ap__state st = fine;

	st.cgroup_errno = ENOENT;
	for (int with_pmu = 0; with_pmu < 2; with_pmu++) {
		st.core_pmu = with_pmu;
		ask.attr = &software;
		EXPECT_EQ(ap__explain(&ask, &st, ENOENT, &err), -ENOENT);
		EXPECT_CAUSE(AP_CAUSE_CGROUP, "no state of perf", "cgroup.subtree_control");
		ask.attr = &hardware;
		EXPECT_EQ(ap__explain(&ask, &st, ENOENT, &err), -ENOENT);
		EXPECT_CAUSE(AP_CAUSE_CGROUP, "no state of perf", "cgroup.subtree_control");
	}
	st.cgroup_errno = 0;
	st.core_pmu = false;
	EXPECT_EQ(ap__explain(&ask, &st, ENOENT, &err), -ENOENT);
	EXPECT_CAUSE(AP_CAUSE_NO_PMU, "no CPU PMU", "anyperf run");
}

/* arm64's config1, beside the modes that a parsed event leaves out anyhow [ARM-13, ARM-18]. */
TEST(user_access)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 8, .config1 = 3, .exclude_guest = 1};

	explain(&st, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "modes", "");
	st.user_access = true;
	explain(&st, &a, 0, -1, EOPNOTSUPP);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "no 64-bit ones", "leave one");
	explain(&st, &a, -1, 0, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_BAD_VALUE, "a task reading itself", "leave rdpmc out");
	explain(&st, &a, 0, -1, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "does not accept", "");
	a.config1 = 1;
	explain(&st, &a, -1, 0, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_UNSUPPORTED, "does not accept", "");
}

TEST(limits)
{
	struct ap__state st = fine;
	struct pe_attr a = {.type = 1, .freq = 1, .sample_freq = 200000};

	explain(&fine, &a, 0, -1, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_SAMPLE_RATE, "perf_event_max_sample_rate is 100000",
		     "at most 100000");
	a = (struct pe_attr){.type = 1, .sample_max_stack = 500};
	explain(&fine, &a, 0, -1, EOVERFLOW);
	EXPECT_CAUSE(AP_CAUSE_MAX_STACK, "500 frames", "perf_event_max_stack=500");
	explain(&fine, &a, 0, -1, EMFILE);
	EXPECT_CAUSE(AP_CAUSE_FD_LIMIT, "the hard limit 4096", "LimitNOFILE");
	explain(&fine, &a, 0, -1, ENFILE);
	EXPECT_CAUSE(AP_CAUSE_FD_LIMIT, "system", "file-max");
	a = (struct pe_attr){.type = PERF_TYPE_BREAKPOINT};
	explain(&fine, &a, 0, -1, ENOSPC);
	EXPECT_CAUSE(AP_CAUSE_BUSY, "breakpoint registers", "debugger");
	st.cpu_online = false;
	explain(&st, &a, -1, 3, ENODEV);
	EXPECT_CAUSE(AP_CAUSE_CPU, "CPU 3 is offline", "cpu3/online");
	a = (struct pe_attr){.type = 1};
	explain(&fine, &a, -1, 8, EINVAL);
	EXPECT_CAUSE(AP_CAUSE_CPU, "there is no CPU 8", "");
	explain(&fine, &a, 0, -1, ENOMEM);
	EXPECT_CAUSE(AP_CAUSE_MEMORY, "out of memory", "");
}

TEST(every_errno_has_a_sentence)
{
	struct pe_attr a = {.type = 1, .exclude_kernel = 1};
	struct ap__ask ask = {.attr = &a, .name = "EVENT"};
	char text[1100];

	for (int e = 1; e < 134; e++) {
		memset(&err, 0, sizeof(err));
		EXPECT_EQ(ap__explain(&ask, &fine, e, &err), -e);
		EXPECT(strlen(err.why) > 10);
		EXPECT(err.why[strlen(err.why) - 1] != '.');
		EXPECT(strlen(ap_error_text(&err, text, sizeof(text))) >= strlen(err.why));
	}
}

TEST(a_question_ends_its_sentence)
{
	struct ap_error e = {.why = "no such event: did you mean cs?",
			     .remedy = "`list` shows all"};
	char text[200];

	EXPECT_STREQ(ap_error_text(&e, text, sizeof(text)),
		     "no such event: did you mean cs? `list` shows all");
	snprintf(e.why, sizeof(e.why), "no such event");
	EXPECT_STREQ(ap_error_text(&e, text, sizeof(text)), "no such event; `list` shows all");
}

TEST(causes_have_names)
{
	EXPECT_STREQ(ap_cause_name(AP_CAUSE_PARANOID), "paranoid");
	EXPECT_STREQ(ap_cause_name(AP_CAUSE_FILE), "file");
	EXPECT_STREQ(ap_cause_name(AP_CAUSE_SESSION), "session");
	for (int c = AP_CAUSE_OTHER + 1; c <= AP_CAUSE_SESSION; c++)
		EXPECT(strcmp(ap_cause_name(c), "other") != 0);
	EXPECT_STREQ(ap_cause_name(12345), "other");
	EXPECT_STREQ(ap_cause_name(-1), "other");
}
