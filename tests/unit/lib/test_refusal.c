/*
 * Provokes the kernel's refusals, as another user, with lowered limits, under a seccomp filter, and
 * holds each sentence to naming the cause. Each runs in a child, which may give up its rights. What
 * depends on the machine (paranoid level, PMU) is read from it, so that the test holds everywhere.
 */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/machine/machine-priv.h"

static struct ap_machine *m;
static struct ap_error err;
static int paranoid;

/* Runs @fn in a child; its failures are ours. */
static void in_child(void (*fn)(void))
{
	long long level = 2;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test_failures = 0;
		m = machine_of(NULL);
		if (ap__slurp_number(m, &level, "/proc/sys/kernel/perf_event_paranoid") == 0)
			paranoid = (int)level;
		fn();
		_exit(test_failures != 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		TEST_FAIL("the child failed (status %#x)", status);
}

static void become_nobody(void)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		TEST_FAIL("cannot become nobody: %s", strerror(errno));
}

/* Opens with this thread as the target unless told otherwise; 0 or the errno, @err filled in. */
static int try_attr(const struct pe_attr *attr, pid_t tid, int cpu)
{
	struct ap_place place = {.tid = tid, .cpu = cpu};
	struct ap_event_opts opts = {.size = sizeof(opts), .place = &place};
	struct ap_event *e = NULL;
	int r;

	memset(&err, 0, sizeof(err));
	r = ap_event_open(&e, m, (const struct perf_event_attr *)attr, &opts, &err);
	ap_event_close(e);
	return r;
}

static const struct pe_attr user_dummy = {.type = PERF_TYPE_SOFTWARE,
					  .size = sizeof(user_dummy),
					  .config = PERF_COUNT_SW_DUMMY,
					  .exclude_kernel = 1,
					  .exclude_hv = 1};
static const struct pe_attr kernel_dummy = {
	.type = PERF_TYPE_SOFTWARE, .size = sizeof(kernel_dummy), .config = PERF_COUNT_SW_DUMMY};

/* On Debian's level 3 nobody may do anything, whatever else would be wrong. True: that was it. */
static bool all_is_forbidden(void)
{
	if (paranoid <= 2 || try_attr(&user_dummy, 0, -1) != -EACCES)
		return false;
	EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
	EXPECT_CONTAINS(err.why, "Debian's");
	return true;
}

static void kernel_mode(void)
{
	become_nobody();
	if (all_is_forbidden())
		return;
	if (paranoid <= 1) {
		EXPECT_EQ(try_attr(&kernel_dummy, 0, -1), 0);
		return;
	}
	EXPECT_EQ(try_attr(&kernel_dummy, 0, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
	EXPECT_CONTAINS(err.why, "dummy: counts the kernel too");
	EXPECT_CONTAINS(err.why, "kernel.perf_event_paranoid=");
	EXPECT_CONTAINS(err.remedy, ":u");
	EXPECT_EQ(try_attr(&user_dummy, 0, -1), 0);
}

TEST(paranoid_forbids_the_kernel)
{
	in_child(kernel_mode);
}

static void whole_cpu(void)
{
	become_nobody();
	if (all_is_forbidden() || paranoid <= 0)
		return;
	EXPECT_EQ(try_attr(&user_dummy, -1, 0), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
	EXPECT_CONTAINS(err.why, "everything that runs on a CPU");
	EXPECT_CONTAINS(err.remedy, "perf_event_paranoid=0");
}

TEST(paranoid_forbids_whole_cpus)
{
	in_child(whole_cpu);
}

static void other_user(void)
{
	become_nobody();
	if (all_is_forbidden())
		return;
	EXPECT_EQ(try_attr(&user_dummy, 1, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_PTRACE);
	EXPECT_CONTAINS(err.why, "task 1 ");
	EXPECT_CONTAINS(err.remedy, "root");
}

TEST(other_users_tasks)
{
	in_child(other_user);
}

static void privileged_records(void)
{
	struct pe_attr attr = user_dummy;

	become_nobody();
	if (all_is_forbidden())
		return;
	attr.namespaces = 1;
	attr.sample_id_all = 1;
	/* Side-band records of namespaces are dropped for old kernels only on EINVAL. */
	EXPECT_EQ(try_attr(&attr, 0, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_CAPABILITY);
	EXPECT_CONTAINS(err.why, "namespaces");
	if (paranoid > 1) {
		attr = user_dummy;
		attr.sample_type = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_ADDR;
		attr.sample_period = 1;
		EXPECT_EQ(try_attr(&attr, 0, -1), -EACCES);
		EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
		EXPECT_CONTAINS(err.why, "physical addresses");
	}
}

TEST(records_for_the_privileged)
{
	in_child(privileged_records);
}

static void uprobe_as_nobody(void)
{
	struct ap_specs *s;

	if (!ap__exists(m, AP__DEVICES "/uprobe"))
		return;
	EXPECT_EQ(ap_specs_parse(&s, m, "uprobe:/proc/self/exe:0x1000:u", &err), 0);
	become_nobody();
	if (all_is_forbidden())
		return;
	EXPECT_EQ(try_attr((const struct pe_attr *)ap_specs_at(s, 0)->attr, 0, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_CAPABILITY);
	EXPECT_CONTAINS(err.why, "uprobe needs CAP_SYS_ADMIN");
}

TEST(uprobes_need_a_capability)
{
	in_child(uprobe_as_nobody);
}

static void in_user_namespace(void)
{
	become_nobody();
	/* Not every machine allows it. */
	if (all_is_forbidden() || paranoid <= 1 || unshare(CLONE_NEWUSER))
		return;
	EXPECT_EQ(try_attr(&kernel_dummy, 0, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
	EXPECT_CONTAINS(err.why, "root of a container does not have it");
}

TEST(root_of_a_user_namespace)
{
	in_child(in_user_namespace);
}

static void install_filter(u32 action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		TEST_FAIL("cannot install a filter: %s", strerror(errno));
}

static void filtered_eperm(void)
{
	install_filter(SECCOMP_RET_ERRNO | EPERM);
	EXPECT_EQ(try_attr(&user_dummy, 0, -1), -EPERM);
	EXPECT_EQ(err.cause, AP_CAUSE_SECCOMP);
	EXPECT_CONTAINS(err.why, "seccomp filter on this process refuses perf_event_open");
	EXPECT_CONTAINS(err.remedy, "docker run --cap-add PERFMON");
}

static void filtered_enosys(void)
{
	install_filter(SECCOMP_RET_ERRNO | ENOSYS);
	EXPECT_EQ(try_attr(&user_dummy, 0, -1), -ENOSYS);
	EXPECT_EQ(err.cause, AP_CAUSE_SECCOMP);
}

/* podman and docker answer like a paranoid kernel. */
static void filtered_eacces(void)
{
	install_filter(SECCOMP_RET_ERRNO | EACCES);
	EXPECT_EQ(try_attr(&kernel_dummy, 0, -1), -EACCES);
	EXPECT_EQ(err.cause, AP_CAUSE_SECCOMP);
}

TEST(seccomp_filters)
{
	in_child(filtered_eperm);
	in_child(filtered_enosys);
	in_child(filtered_eacces);
}

/* The filter must not be blamed for what the kernel refuses. */
static void innocent_filter(void)
{
	struct pe_attr attr = user_dummy;

	install_filter(SECCOMP_RET_ALLOW);
	attr.config = 999;
	EXPECT_EQ(try_attr(&attr, 0, -1), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_KERNEL_OLD);
}

TEST(a_filter_that_allows)
{
	in_child(innocent_filter);
}

static void no_descriptors(void)
{
	struct rlimit rl = {.rlim_cur = 16, .rlim_max = 16};
	struct ap_event *e[32];
	int n = 0, r = 0;

	if (setrlimit(RLIMIT_NOFILE, &rl))
		TEST_FAIL("setrlimit: %s", strerror(errno));
	while (n < 32 && !(r = ap_event_open(&e[n], m, (const struct perf_event_attr *)&user_dummy,
					     NULL, &err)))
		n++;
	EXPECT_EQ(r, -EMFILE);
	EXPECT_EQ(err.cause, AP_CAUSE_FD_LIMIT);
	EXPECT_CONTAINS(err.why, "the limit is 16, the hard limit 16");
	EXPECT_CONTAINS(err.remedy, "ulimit -Hn");
	while (n)
		ap_event_close(e[--n]);
}

TEST(the_hard_fd_limit)
{
	in_child(no_descriptors);
}

static void dead_tasks(void)
{
	pid_t pid;

	EXPECT_EQ(try_attr(&user_dummy, 0x3ffffffe, -1), -ESRCH);
	EXPECT_EQ(err.cause, AP_CAUSE_NO_TASK);
	EXPECT_CONTAINS(err.why, "there is no process or thread 1073741822");
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	EXPECT_EQ(try_attr(&user_dummy, pid, -1), -ESRCH);
	EXPECT_EQ(err.cause, AP_CAUSE_NO_TASK);
	EXPECT_CONTAINS(err.why, "zombie");
	waitpid(pid, NULL, 0);
	EXPECT_EQ(try_attr(&user_dummy, -5, -1), -ESRCH);
	EXPECT_CONTAINS(err.why, "-5 is not a process");
}

TEST(tasks_that_are_not_there)
{
	in_child(dead_tasks);
}

static void over_the_rate(void)
{
	struct pe_attr attr = user_dummy;
	char number[32];
	long long max;

	if (ap__slurp_number(m, &max, "/proc/sys/kernel/perf_event_max_sample_rate"))
		return;
	attr.freq = 1;
	attr.sample_freq = (u64)max + 1;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_SAMPLE_RATE);
	snprintf(number, sizeof(number), "%lld", max);
	EXPECT_CONTAINS(err.why, number);
	EXPECT_CONTAINS(err.why, "kernel.perf_event_max_sample_rate");
	EXPECT_CONTAINS(err.remedy, number);
}

static void over_the_stack(void)
{
	struct pe_attr attr = user_dummy;
	long long max;

	if (ap__slurp_number(m, &max, "/proc/sys/kernel/perf_event_max_stack") || max >= 65535)
		return;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = (u16)(max + 1);
	EXPECT_EQ(try_attr(&attr, 0, -1), -EOVERFLOW);
	EXPECT_EQ(err.cause, AP_CAUSE_MAX_STACK);
	EXPECT_CONTAINS(err.why, "kernel.perf_event_max_stack");
}

TEST(sysctl_limits)
{
	in_child(over_the_rate);
	in_child(over_the_stack);
}

static void locked_memory(void)
{
	struct rlimit rl = {0, 0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ap_event *e = NULL;
	struct ap_value v;

	setrlimit(RLIMIT_MEMLOCK, &rl);
	become_nobody();
	if (all_is_forbidden() || paranoid == -1)
		return;
	/* Takes all that the user may lock, in ever smaller buffers. */
	for (size_t pages = 1024, n = 0; n < 4096; n++) {
		void *p;

		if (ap_event_open(&e, m, (const struct perf_event_attr *)&user_dummy, NULL, &err)) {
			TEST_FAIL("%s", err.why);
			return;
		}
		p = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED,
			 ap_event_fd(e), 0);
		if (p != MAP_FAILED)
			continue; /* kept until the child ends */
		ap_event_close(e);
		if (!pages)
			break;
		pages /= 2;
	}
	EXPECT_EQ(ap_event_open(&e, m, (const struct perf_event_attr *)&user_dummy, NULL, &err), 0);
	EXPECT_EQ(ap_event_map_self(e, &err), -EPERM);
	EXPECT_EQ(err.cause, AP_CAUSE_MLOCK);
	EXPECT_CONTAINS(err.why, "kernel.perf_event_mlock_kb");
	/* Reading still works. */
	EXPECT_EQ(ap_event_read_self(e, &v), 0);
}

TEST(locked_memory_runs_out)
{
	in_child(locked_memory);
}

static void bad_places(void)
{
	struct pe_attr attr = user_dummy;
	struct ap_event_opts opts = {.size = sizeof(opts), .cgroup = "/proc"};
	struct ap_event *e = NULL;

	EXPECT_EQ(try_attr(&attr, 0, 1000000), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_CPU);
	EXPECT_CONTAINS(err.why, "there is no CPU 1000000");
	EXPECT_EQ(try_attr(&attr, 0, -2), -EINVAL);
	EXPECT_CONTAINS(err.why, "there is no CPU -2");
	EXPECT_EQ(try_attr(&attr, -1, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "neither a task nor a CPU");
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "CPU by CPU");
	opts.place = &(struct ap_place){.tid = -1, .cpu = 0};
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err), -EBADF);
	EXPECT_EQ(err.cause, AP_CAUSE_CGROUP);
	EXPECT_CONTAINS(err.why, "not a cgroup");
	opts.cgroup = "no-such-cgroup-here";
	EXPECT(ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err) < 0);
	EXPECT_EQ(err.cause, AP_CAUSE_CGROUP);
}

TEST(places_that_are_not_there)
{
	in_child(bad_places);
}

static void no_pmu(void)
{
	const struct ap__corepmu *core;
	struct pe_attr attr = {.type = PERF_TYPE_HARDWARE,
			       .size = sizeof(attr),
			       .config = PERF_COUNT_HW_INSTRUCTIONS,
			       .exclude_kernel = 1,
			       .exclude_hv = 1};

	if (ap__core_pmus(m, &core))
		return;
	EXPECT_EQ(try_attr(&attr, 0, -1), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_NO_PMU);
	EXPECT_CONTAINS(err.why, "instructions:u");
	EXPECT_CONTAINS(err.why, "no CPU PMU");
	attr.type = PERF_TYPE_RAW;
	EXPECT_EQ(try_attr(&attr, 0, -1), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_NO_PMU);
}

TEST(machines_without_a_pmu)
{
	in_child(no_pmu);
}

static void unsupported(void)
{
	struct pe_attr attr = user_dummy;
	struct ap_specs *s;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EOPNOTSUPP);
	EXPECT_EQ(err.cause, AP_CAUSE_UNSUPPORTED);
	EXPECT_CONTAINS(err.why, "cannot record branches");
	attr = user_dummy;
	attr.type = 0x7ffffff0;
	EXPECT_EQ(try_attr(&attr, 0, -1), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_UNKNOWN_EVENT);
	EXPECT_CONTAINS(err.why, "no PMU has the type 2147483632");
	attr = user_dummy;
	attr.sample_type = 1ull << 40;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "sample_type has a bit");
	attr = user_dummy;
	attr.reserved_2 = 1;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "reserved");
	attr = user_dummy;
	attr.use_clockid = 1;
	attr.clockid = 3;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "clock");
	if (geteuid() == 0 && ap_specs_parse(&s, m, "msr/tsc,period=1000/", &err) == 0) {
		EXPECT_EQ(try_attr((const struct pe_attr *)ap_specs_at(s, 0)->attr, 0, -1),
			  -EINVAL);
		EXPECT_CONTAINS(err.why, "cannot sample");
		ap_specs_free(s);
	}
}

TEST(what_nothing_supports)
{
	in_child(unsupported);
}

static void bad_groups(void)
{
	struct ap_event_opts opts = {.size = sizeof(opts)};
	struct pe_attr attr = user_dummy;
	struct ap_event *e = NULL;
	int n = 0, r = 0;

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	EXPECT_EQ(ap_event_open(&opts.leader, m, (struct perf_event_attr *)&attr, NULL, &err), 0);
	attr.pinned = 1;
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_GROUP);
	EXPECT_CONTAINS(err.why, "only the leader");
	attr.pinned = 0;
	attr.inherit = 1;
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_GROUP);
	EXPECT_CONTAINS(err.why, "inheritance");
	/* Larger than one read may be [GRP-16]. */
	attr.inherit = 0;
	while (n < 1100 &&
	       !(r = ap_event_open(&e, m, (struct perf_event_attr *)&attr, &opts, &err)))
		n++;
	if (r == -EMFILE)
		return;
	EXPECT_EQ(r, -E2BIG);
	EXPECT_EQ(n, 1022);
	EXPECT_EQ(err.cause, AP_CAUSE_GROUP);
	EXPECT_CONTAINS(err.why, "16384 bytes");
}

TEST(groups_that_do_not_go_together)
{
	in_child(bad_groups);
}

static void breakpoints(void)
{
	static u64 watched[64];
	struct pe_attr attr = {.type = PERF_TYPE_BREAKPOINT,
			       .size = sizeof(attr),
			       .bp_type = HW_BREAKPOINT_RW,
			       .bp_len = 8,
			       .exclude_kernel = 1,
			       .exclude_hv = 1};
	struct ap_event *e;
	int r = 0, n;

#ifdef __x86_64__ /* arm64 takes it */
	attr.bp_addr = (u64)(uintptr_t)&watched[0] + 1;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "not a multiple of its length");
#endif
	attr.bp_addr = 1ull << 63 | 1;
	EXPECT_EQ(try_attr(&attr, 0, -1), -EINVAL);
	EXPECT_CONTAINS(err.why, "kernel mode is excluded");
	for (n = 0; n < 64 && !r; n++) {
		attr.bp_addr = (u64)(uintptr_t)&watched[n];
		r = ap_event_open(&e, m, (struct perf_event_attr *)&attr, NULL, &err);
	}
	EXPECT_EQ(r, -ENOSPC);
	EXPECT_EQ(err.cause, AP_CAUSE_BUSY);
	EXPECT_CONTAINS(err.why, "breakpoint registers");
}

TEST(breakpoints_that_cannot_be)
{
	in_child(breakpoints);
}

static void bad_probe(void)
{
	struct ap_specs *s;

	if (geteuid() != 0 || ap_specs_parse(&s, m, "uprobe:/no/such/file:0x1000", &err))
		return;
	EXPECT(try_attr((const struct pe_attr *)ap_specs_at(s, 0)->attr, 0, -1) < 0);
	EXPECT(err.why[0]);
}

TEST(probes_that_cannot_be)
{
	in_child(bad_probe);
}
