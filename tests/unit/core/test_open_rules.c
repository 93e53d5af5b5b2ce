/*
 * perf_event_open, rule by rule: attr bits and masks, clocks, targets, permissions, groups,
 * cgroups, PMUs [CALL, FLAG, ATTR, GRP, ERR, FILE]. The order of the checks is in test_open.c.
 */
#include "unit/test.h"

#include "core/core-priv.h"
#include "unit/core/fake.h"

static int open_attr(struct fake *f, struct pe_attr attr)
{
	int fd = fake_open(f, &attr, 0, -1, -1);

	if (fd >= 0) {
		fake_close(f, fd);
		return 0;
	}
	return fd;
}

/* Root of a container has the capability there, and not in the machine [REC-15]. */
TEST(namespaces_are_told_in_the_first)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = {.type = PERF_TYPE_SOFTWARE,
			       .size = sizeof(attr),
			       .config = PERF_COUNT_SW_DUMMY,
			       .exclude_kernel = 1,
			       .namespaces = 1};

	f->perfmon = true;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	f->in_namespace = true;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EACCES, CAP_NAMESPACES);
	attr.namespaces = 0;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	fake_free(f);
}

TEST(attr_bits_and_masks)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr;

	for (int bit = 0; bit < 64; bit++) {
		attr = fake_attr();
		attr.flags |= BIT(bit);
		if (bit >= 38)
			EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, ATTR_FLAGS);
		attr = fake_attr();
		attr.sample_type = BIT(bit);
		if (bit >= 25)
			EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, ATTR_BITS);
		attr = fake_attr();
		attr.read_format = BIT(bit);
		EXPECT_EQ(open_attr(f, attr), bit >= 5 ? -EINVAL : 0);
		attr = fake_attr();
		attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = BIT(bit);
		EXPECT_EQ(open_attr(f, attr), bit < 3 || bit >= 20 ? -EINVAL : 0);
		attr = fake_attr();
		attr.sample_type = PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = BIT(bit);
		EXPECT_EQ(open_attr(f, attr), (bit >= 12 && bit < 16) || (bit >= 24 && bit < 32)
						      ? -EINVAL
					      : bit >= 32 ? -EOPNOTSUPP
							  : 0);
	}
	for (int bit = 0; bit < 32; bit++) {
		attr = fake_attr();
		attr.reserved_3 = 1u << bit;
		EXPECT_EQ(open_attr(f, attr), bit ? -EINVAL : -EOPNOTSUPP);
	}
	fake_free(f);
}

TEST(attr_edges)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	attr.sample_period = BIT(63);
	EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, PERIOD_HIGH);
	attr.sample_period = BIT(63) - 1;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr.freq = 1;
	attr.sample_freq = 100000;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr.sample_freq = 100001;
	EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, SAMPLE_RATE);
	attr.sample_freq = 0; /* a counting event */
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr.sample_stack_user = 65528;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr.sample_stack_user = 65536;
	EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, STACK_SIZE);
	attr = fake_attr();
	attr.sample_max_stack = 500; /* without CALLCHAIN nobody looks [ATTR-52] */
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	attr.inherit_stat = 1;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	attr.inherit = 1;
	attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr.inherit_thread = 1;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	attr.sigtrap = attr.remove_on_exec = 1;
	EXPECT_EQ(open_attr(f, attr), 0);
	fake_free(f);
}

/* [ATTR-48, ERR-12] */
TEST(an_architecture_that_cannot_dump_stacks)
{
	static const struct core_arch plain = {.regs_valid = 1};
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	f->core->arch = &plain;
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	EXPECT_EQ(open_attr(f, attr), -ENOSYS);
	attr.sample_stack_user = 1; /* before its size is looked at */
	EXPECT_REFUSED(f, open_attr(f, attr), -ENOSYS, STACK_DUMP);
	attr.sample_type = 0;
	EXPECT_EQ(open_attr(f, attr), 0);
	fake_free(f);
}

TEST(clocks)
{
	static const int always[] = {1, 4}, soft[] = {0, 7, 11}, never[] = {2, 3, 5, 6, 8, -1};
	struct fake *f = fake_new(4);
	struct pe_attr hw = fake_attr(), sw = fake_sw_attr(PERF_COUNT_SW_DUMMY);

	hw.use_clockid = sw.use_clockid = 1;
	for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
		hw.clockid = sw.clockid = always[i];
		EXPECT_EQ(open_attr(f, hw), 0);
		EXPECT_EQ(open_attr(f, sw), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(soft); i++) {
		hw.clockid = sw.clockid = soft[i];
		EXPECT_REFUSED(f, open_attr(f, hw), -EINVAL, CLOCK_NMI);
		EXPECT_EQ(open_attr(f, sw), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		sw.clockid = never[i];
		EXPECT_REFUSED(f, open_attr(f, sw), -EINVAL, CLOCK_UNKNOWN);
	}
	sw.use_clockid = 0;
	EXPECT_EQ(open_attr(f, sw), 0);
	fake_free(f);
}

TEST(pid_and_cpu)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	EXPECT(fake_open(f, &attr, 0, 1, -1) >= 0);
	EXPECT(fake_open(f, &attr, 100, -1, -1) >= 0);
	EXPECT(fake_open(f, &attr, -1, 1, -1) >= 0);
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, -1, -1), -EINVAL, NO_PLACE);
	EXPECT_REFUSED(f, fake_open(f, &attr, -2, -1, -1), -ESRCH, TASK_NONE);
	EXPECT_REFUSED(f, fake_open(f, &attr, -2, 0, -1), -ESRCH, TASK_NONE);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -2, -1), -EINVAL, CPU_RANGE);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, 2, -1), -EINVAL, CPU_RANGE);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -2), -EBADF, GROUP_FD);
	/* Offline [CALL-11, ERR-08]. */
	core_cpu_online(f->core, 1, false);
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 1, -1), -ENODEV, CPU_OFFLINE);
	EXPECT(fake_open(f, &attr, 0, 1, -1) >= 0);
	core_cpu_online(f->core, 1, true);
	fake_free(f);
}

TEST(ids_count_from_one_and_are_never_reused)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();
	int a = fake_open(f, &attr, 0, -1, -1), b;

	EXPECT_EQ(event_id(fake_event(f, a)), 1);
	fake_close(f, a);
	b = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(event_id(fake_event(f, b)), 2);
	fake_free(f);
}

TEST(paranoid_levels)
{
	struct fake *f = fake_new(4);
	struct pe_attr user = fake_attr(), kernel = fake_attr(), phys = fake_attr();

	kernel.exclude_kernel = 0;
	phys.sample_type = PERF_SAMPLE_PHYS_ADDR;
	f->perfmon = f->sys_admin = f->kill = false;
	for (int level = -1; level <= 4; level++) {
		EXPECT_EQ(core_set_paranoid(f->core, level), 0);
		EXPECT_EQ(open_attr(f, user), 0);
		EXPECT_EQ(open_attr(f, kernel), level > 1 ? -EACCES : 0);
		EXPECT_EQ(open_attr(f, phys), level > 1 ? -EACCES : 0);
		int fd = fake_open(f, &user, -1, 0, -1);

		EXPECT_EQ(fd < 0 ? fd : 0, level > 0 ? -EACCES : 0);
	}
	/* Either capability opens all of it [NOTE-01]. */
	f->perfmon = true;
	EXPECT_EQ(open_attr(f, kernel), 0);
	f->perfmon = false;
	f->sys_admin = true;
	EXPECT_EQ(open_attr(f, kernel), 0);
	fake_free(f);
}

TEST(other_tasks)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	fake_add_task(f, 200, 200);
	fake_add_task(f, 101, 100);
	f->perfmon = f->sys_admin = f->access = f->kill = false;
	EXPECT_REFUSED(f, fake_open(f, &attr, 200, -1, -1), -EACCES, TASK_FOREIGN);
	/* A thread of the same process is never refused. */
	EXPECT(fake_open(f, &attr, 101, -1, -1) >= 0);
	f->access = true;
	EXPECT(fake_open(f, &attr, 200, -1, -1) >= 0);
	f->access = false;
	f->perfmon = true;
	EXPECT(fake_open(f, &attr, 200, -1, -1) >= 0);
	/* sigtrap sends signals: CAP_PERFMON alone does not do. */
	attr.sigtrap = attr.remove_on_exec = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 200, -1, -1), -EACCES, TASK_SIGTRAP);
	f->kill = true;
	EXPECT(fake_open(f, &attr, 200, -1, -1) >= 0);
	fake_free(f);
}

TEST(group_rules)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();
	int leader = fake_open(f, &attr, 0, -1, -1), member, cpu_leader;

	fake_add_task(f, 200, 200);
	member = fake_open(f, &attr, 0, -1, leader);
	EXPECT(member >= 0);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, member), -EINVAL, GROUP_MEMBER);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, 0, leader), -EINVAL, GROUP_CPU);
	EXPECT_REFUSED(f, fake_open(f, &attr, 200, -1, leader), -EINVAL, GROUP_TARGET);
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, leader), -EINVAL, GROUP_CPU);
	attr.pinned = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_LEADERS_ONLY);
	attr.pinned = 0;
	attr.exclusive = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_LEADERS_ONLY);
	attr.exclusive = 0;
	attr.inherit = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_INHERIT);
	/* Of cpu-wide events inherit is nobody's concern [INH-08]. */
	attr.inherit = 0;
	cpu_leader = fake_open(f, &attr, -1, 0, -1);
	attr.inherit = 1;
	EXPECT(fake_open(f, &attr, -1, 0, cpu_leader) >= 0);
	attr.inherit = 0;
	attr.use_clockid = 1;
	attr.clockid = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_CLOCK);
	/* NO_GROUP forgets the leader, and with it its rules. */
	EXPECT(fake_open_as(f, 100, &attr, 0, -1, leader, OPEN_FLAG_NO_GROUP) >= 0);
	EXPECT(fake_open_as(f, 100, &attr, 0, -1, -1, OPEN_FLAG_NO_GROUP | OPEN_FLAG_OUTPUT) >= 0);
	fake_free(f);
}

TEST(group_read_size_is_limited)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_DUMMY), plain;
	int leader, n = 1;

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	leader = fake_open(f, &attr, 0, -1, -1);
	while (fake_open(f, &attr, 0, -1, leader) >= 0)
		n++;
	EXPECT_EQ(n, 1023);
	EXPECT_EQ(fake_read(f, leader), 8 + 1023 * 16);
	/* A member that reads only itself is still one more for those that read the group. */
	plain = fake_sw_attr(PERF_COUNT_SW_DUMMY);
	EXPECT_REFUSED(f, fake_open(f, &plain, 0, -1, leader), -E2BIG, GROUP_LARGE);
	fake_free(f);
}

TEST(cgroup_arguments)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();
	struct cgroup *root = cgroup_new(f->core, NULL, 1);
	int leader;

	f->cgroup_fds[0] = root;
	f->cgroup_fds[1] = cgroup_new(f->core, root, 2);
	EXPECT(cgroup_by_id(f->core, 2) == f->cgroup_fds[1]);
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, 3000, -1, -1, OPEN_FLAG_PID_CGROUP), -EINVAL,
		       CGROUP_PLACE);
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, -1, 0, -1, OPEN_FLAG_PID_CGROUP), -EINVAL,
		       CGROUP_PLACE);
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, 5, 0, -1, OPEN_FLAG_PID_CGROUP), -EBADF,
		       CGROUP_FD);
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, -5, 0, -1, OPEN_FLAG_PID_CGROUP), -EBADF,
		       CGROUP_FD);
	leader = fake_open_as(f, 100, &attr, 3001, 0, -1, OPEN_FLAG_PID_CGROUP);
	EXPECT(leader >= 0);
	EXPECT(fake_open_as(f, 100, &attr, 3001, 0, leader, OPEN_FLAG_PID_CGROUP) >= 0);
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, 3000, 0, leader, OPEN_FLAG_PID_CGROUP),
		       -EINVAL, CGROUP_OF_GROUP);
	attr.type = 99;
	EXPECT_REFUSED(f, fake_open_as(f, 100, &attr, 5, 0, -1, OPEN_FLAG_PID_CGROUP), -ENOENT,
		       PMU_CONFIG);
	fake_free(f);
}

TEST(refusals_of_a_pmu_are_final)
{
	static const int errs[] = {-EINVAL, -EOPNOTSUPP, -EACCES, -EPERM, -ENOSPC, -ENODEV, -EBUSY};
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		f->hw.init_err = errs[i];
		EXPECT_EQ(fake_open(f, &attr, 0, -1, -1), errs[i]);
	}
	f->hw.init_err = -ENOENT;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOENT, PMU_CONFIG);
	f->hw.init_err = 0;
	EXPECT_EQ(open_attr(f, attr), 0);
	fake_free(f);
}

TEST(pmu_capabilities)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();
	int a;

	f->hw.pmu.caps = PMU_CAP_NO_EXCLUDE;
	EXPECT_REFUSED(f, open_attr(f, attr), -EINVAL, NO_MODES);
	attr.exclude_kernel = 0;
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	f->hw.pmu.caps = PMU_CAP_EXTENDED_REGS;
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = BIT(40);
	EXPECT_EQ(open_attr(f, attr), 0);
	attr = fake_attr();
	/* [ERR-04] */
	f->hw.pmu.caps = PMU_CAP_EXCLUSIVE;
	a = fake_open(f, &attr, 0, 0, -1);
	EXPECT(a >= 0);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, 0, -1), -EBUSY, EXCLUSIVE_HERE);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EBUSY, EXCLUSIVE_HERE);
	EXPECT(fake_open(f, &attr, 0, 1, -1) >= 0);
	/* Nor are task and CPU events of it to be had at once. */
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, -1), -EBUSY, EXCLUSIVE_OTHER);
	fake_free(f);

	f = fake_new(4);
	f->hw.pmu.class = PMU_CPU_ONLY;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EINVAL, PMU_CPU_ONLY);
	EXPECT(fake_open(f, &attr, -1, 0, -1) >= 0);
	fake_free(f);
}

TEST(generic_ids_name_a_pmu)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();

	/* No raw PMU here: ENOENT, as without a CPU PMU [TYPE-01]. */
	attr.type = PERF_TYPE_HARDWARE;
	EXPECT_REFUSED(f, open_attr(f, attr), -ENOENT, PMU_CONFIG);
	attr.type = PERF_TYPE_HW_CACHE;
	EXPECT_REFUSED(f, open_attr(f, attr), -ENOENT, PMU_CONFIG);
	/* Bits 32-63 name one; it must know what to do with generic ids. */
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = 6ull << 32 | 1;
	EXPECT_REFUSED(f, open_attr(f, attr), -ENOENT, PMU_EXTENDED);
	EXPECT_CONTAINS(fake_why(f), "fake");
	fake_free(f);
}

TEST(stack_depth_sysctl)
{
	struct fake *f = fake_new(4);
	struct pe_attr attr = fake_attr();
	int fd;

	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	EXPECT_EQ(core_set_max_stack(f->core, 64), 0);
	attr.sample_max_stack = 65;
	EXPECT_REFUSED(f, open_attr(f, attr), -EOVERFLOW, MAX_STACK);
	attr.sample_max_stack = 0;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_event(f, fd)->attr.sample_max_stack, 64);
	EXPECT_REFUSED(f, core_set_max_stack(f->core, 127), -EBUSY, SETTING_USED);
	EXPECT_REFUSED(f, core_set_max_contexts_per_stack(f->core, 9), -EBUSY, SETTING_USED);
	fake_close(f, fd);
	EXPECT_EQ(core_set_max_stack(f->core, 127), 0);
	EXPECT_REFUSED(f, core_set_max_stack(f->core, -1), -EINVAL, SETTING_RANGE);
	EXPECT_REFUSED(f, core_set_max_stack(f->core, 655361), -EINVAL, SETTING_RANGE);
	EXPECT_REFUSED(f, core_set_max_contexts_per_stack(f->core, 1001), -EINVAL, SETTING_RANGE);
	EXPECT_REFUSED(f, core_set_max_sample_rate(f->core, 0), -EINVAL, SETTING_LEAST);
	EXPECT_REFUSED(f, core_set_cpu_time_max_percent(f->core, 101), -EINVAL, SETTING_RANGE);
	EXPECT_EQ(core_set_cpu_time_max_percent(f->core, 100), 0);
	EXPECT_REFUSED(f, core_set_max_sample_rate(f->core, 1000), -EINVAL, RATE_UNLIMITED);
	EXPECT_EQ(core_set_cpu_time_max_percent(f->core, 25), 0);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 1000), 0);
	EXPECT_EQ(core_sysctl(f->core)->max_sample_rate, 1000);
	EXPECT_EQ(core_set_mlock_kb(f->core, -1), 0);
	fake_free(f);
}
