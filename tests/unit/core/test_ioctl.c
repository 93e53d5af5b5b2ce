/* ioctl(2) and prctl(2) [IOC, PRC]. */
#include "unit/test.h"

#include "unit/core/fake.h"

static struct fake *f;

static int open_attr(struct pe_attr attr, int group)
{
	int fd = fake_open(f, &attr, 0, -1, group);

	EXPECT(fd >= 0);
	return fd;
}

static struct pe_attr disabled(void)
{
	struct pe_attr attr = fake_attr();

	attr.disabled = 1;
	return attr;
}

static struct pe_attr sampling(u64 period)
{
	struct pe_attr attr = disabled();

	attr.sample_period = period;
	return attr;
}

static enum event_state state(int fd)
{
	return fake_event(f, fd)->state;
}

TEST(enable_and_disable_are_idempotent)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(disabled(), -1);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		EXPECT_EQ(state(fd), EVENT_ACTIVE);
	}
	fake_advance(f, 10);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		EXPECT_EQ(state(fd), EVENT_OFF);
	}
	EXPECT_EQ(fake_count(f, fd), 10);
	fake_free(f);
}

/*
 * With bit 0 of the argument: leader and all members, also through a member; other bits do nothing.
 */
TEST(group_flag)
{
	int leader, a, b;

	f = fake_new(4);
	leader = open_attr(disabled(), -1);
	a = open_attr(disabled(), leader);
	b = open_attr(disabled(), leader);
	fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(state(a), EVENT_OFF);
	fake_ioctl(f, a, PERF_EVENT_IOC_ENABLE, 0xfffffffe);
	EXPECT_EQ(state(b), EVENT_OFF);
	fake_ioctl(f, b, PERF_EVENT_IOC_ENABLE, 1);
	EXPECT_EQ(state(leader), EVENT_ACTIVE);
	EXPECT_EQ(state(a), EVENT_ACTIVE);
	EXPECT_EQ(state(b), EVENT_ACTIVE);
	fake_advance(f, 10);
	fake_ioctl(f, a, PERF_EVENT_IOC_RESET, 1);
	fake_advance(f, 3);
	fake_ioctl(f, b, PERF_EVENT_IOC_DISABLE, 1);
	EXPECT_EQ(state(leader), EVENT_OFF);
	EXPECT_EQ(state(a), EVENT_OFF);
	EXPECT_EQ(fake_count(f, leader), 3);
	EXPECT_EQ(fake_count(f, a), 3);
	EXPECT_EQ(fake_count(f, b), 3);
	/* Without it RESET is the one event's. */
	fake_ioctl(f, a, PERF_EVENT_IOC_RESET, 2);
	EXPECT_EQ(fake_count(f, a), 0);
	EXPECT_EQ(fake_count(f, b), 3);
	fake_free(f);
}

TEST(reset_leaves_the_times)
{
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = open_attr(attr, -1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0), 0);
	fake_advance(f, 1);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 1);
	EXPECT_EQ(f->words[1], 11);
	EXPECT_EQ(f->words[2], 11);
	fake_free(f);
}

TEST(refresh_errors)
{
	struct pe_attr attr;
	int fd;

	f = fake_new(4);
	fd = open_attr(disabled(), -1);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 1), -EINVAL, NOT_SAMPLING);
	EXPECT_CONTAINS(fake_why(f), "only counts");
	attr = sampling(100);
	attr.inherit = 1;
	fd = open_attr(attr, -1);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 1), -EINVAL, REFRESH_INHERITED);
	EXPECT_CONTAINS(fake_why(f), "inherit");
	fake_free(f);
}

static bool overflow(int fd)
{
	bool stop = event_overflow(fake_event(f, fd), &f->facts, false);

	core_settle(f->core);
	return stop;
}

/* [OVF-08, DES-05] */
TEST(refresh_counts_down)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(sampling(100), -1);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 2), 0);
	EXPECT_EQ(state(fd), EVENT_ACTIVE);
	/* It adds: 2 + 2 [IOC-03]. */
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 2), 0);
	for (int i = 0; i < 3; i++) {
		EXPECT(!overflow(fd));
		EXPECT_EQ(state(fd), EVENT_ACTIVE);
	}
	EXPECT(overflow(fd));
	EXPECT_EQ(state(fd), EVENT_OFF);
	EXPECT_EQ(f->overflows, 4);
	EXPECT_EQ(f->lasts, 1);
	/* 0 enables and sets no limit. */
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 0), 0);
	for (int i = 0; i < 20; i++)
		EXPECT(!overflow(fd));
	EXPECT_EQ(state(fd), EVENT_ACTIVE);
	fake_free(f);
}

/* A leader that used up its limit takes its members along, as disabling it does. */
TEST(refresh_on_a_leader)
{
	int leader, member;

	f = fake_new(4);
	leader = open_attr(sampling(100), -1);
	member = open_attr(fake_attr(), leader);
	fake_ioctl(f, leader, PERF_EVENT_IOC_REFRESH, 1);
	EXPECT_EQ(state(member), EVENT_ACTIVE);
	EXPECT(overflow(leader));
	EXPECT_EQ(state(leader), EVENT_OFF);
	EXPECT_EQ(state(member), EVENT_INACTIVE);
	core_check(f->core);
	fake_free(f);
}

/* [OVF-01] */
TEST(a_counting_event_does_not_overflow)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(fake_attr(), -1);
	EXPECT(!overflow(fd));
	EXPECT_EQ(f->overflows, 0);
	fake_free(f);
}

TEST(period_rules)
{
	struct pe_attr attr;
	u64 value;
	int fd;

	f = fake_new(4);
	fd = open_attr(disabled(), -1);
	/* EFAULT before everything else [IOC-05]. */
	value = 5;
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, NULL, 0), -EFAULT,
		       PERIOD_FAULT);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 7), -EFAULT,
		       PERIOD_FAULT);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), -EINVAL,
		       NOT_SAMPLING);
	fd = open_attr(sampling(1000), -1);
	value = 0;
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), -EINVAL,
		       PERIOD_ZERO);
	value = BIT(63);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), -EINVAL,
		       PERIOD_HIGH);
	value = 13; /* the fake PMU's superstition */
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), -EINVAL,
		       PERIOD_PMU);
	EXPECT_CONTAINS(fake_why(f), "fake");
	value = BIT(63) - 1;
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), 0);
	EXPECT_EQ(fake_event(f, fd)->attr.sample_period, BIT(63) - 1);
	EXPECT_EQ(fake_event(f, fd)->hw.sample_period, BIT(63) - 1);
	/* What the exchange of last_period rests on: left is 0, the old period comes once more. */
	EXPECT_EQ(fake_event(f, fd)->hw.period_left, 0);
	EXPECT_EQ(fake_event(f, fd)->hw.last_period, 1000);
	attr = sampling(1000);
	attr.freq = 1;
	fd = open_attr(attr, -1);
	EXPECT_EQ(fake_event(f, fd)->hw.sample_period, 1);
	value = 100001;
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), -EINVAL,
		       SAMPLE_RATE);
	value = 100000;
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), 0);
	EXPECT_EQ(fake_event(f, fd)->attr.sample_freq, 100000);
	fake_free(f);
}

TEST(period_of_a_running_event_keeps_its_count)
{
	struct pe_attr attr = sampling(1000);
	u64 value = 5;
	int fd;

	f = fake_new(4);
	attr.disabled = 0;
	fd = open_attr(attr, -1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &value, 8), 0);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 20);
	fake_free(f);
}

TEST(id)
{
	struct ioctl_call call = {.cmd = PERF_EVENT_IOC_ID};
	u64 id;
	int fd;

	f = fake_new(4);
	open_attr(fake_attr(), -1);
	fd = open_attr(fake_attr(), -1);
	call.caller = fake_task(f, 100)->task;
	EXPECT_EQ(event_ioctl(fake_event(f, fd), &call), 0);
	EXPECT_EQ(call.out_len, 8);
	EXPECT_EQ(call.out_at, 0);
	memcpy(&id, call.out, 8);
	EXPECT_EQ(id, 2);
	fake_free(f);
}

TEST(set_output_rules)
{
	struct pe_attr attr = fake_attr();
	int a, b, c, cpu0, cpu0_other, cpu1;

	f = fake_new(4);
	fake_add_task(f, 200, 200);
	a = open_attr(attr, -1);
	b = open_attr(attr, -1);
	EXPECT_EQ(fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, ~0ull), 0);
	EXPECT_REFUSED(f, fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, 0xffffffff), -EBADF,
		       OUTPUT_FD);
	EXPECT_REFUSED(f, fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, 1999), -EBADF, OUTPUT_FD);
	EXPECT_REFUSED(f, fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, (u64)a), -EINVAL,
		       OUTPUT_SELF);
	EXPECT_REFUSED(f, fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, (u64)b), -EINVAL,
		       OUTPUT_UNMAPPED);
	EXPECT_EQ(fake_map(f, b, 1, true), 0);
	EXPECT_EQ(fake_ioctl(f, a, PERF_EVENT_IOC_SET_OUTPUT, (u64)b), 0);
	/* Through one that is redirected itself: into the same buffer. */
	c = open_attr(attr, -1);
	EXPECT_EQ(fake_ioctl(f, c, PERF_EVENT_IOC_SET_OUTPUT, (u64)a), 0);
	EXPECT(fake_event(f, c)->buffer == fake_event(f, b)->buffer);
	EXPECT_EQ(fake_ioctl(f, c, PERF_EVENT_IOC_SET_OUTPUT, ~0ull), 0);
	EXPECT(!fake_event(f, c)->buffer);
	/* Another task at cpu -1, another clock, another direction. */
	c = fake_open(f, &attr, 200, -1, -1);
	EXPECT_REFUSED(f, fake_ioctl(f, c, PERF_EVENT_IOC_SET_OUTPUT, (u64)b), -EINVAL,
		       OUTPUT_TASK);
	attr.use_clockid = 1;
	attr.clockid = 1;
	c = open_attr(attr, -1);
	EXPECT_REFUSED(f, fake_ioctl(f, c, PERF_EVENT_IOC_SET_OUTPUT, (u64)b), -EINVAL,
		       OUTPUT_CLOCK);
	attr = fake_attr();
	attr.write_backward = 1;
	c = open_attr(attr, -1);
	EXPECT_REFUSED(f, fake_ioctl(f, c, PERF_EVENT_IOC_SET_OUTPUT, (u64)b), -EINVAL,
		       OUTPUT_DIRECTION);
	/* One CPU and different tasks are fine. */
	attr = fake_attr();
	cpu0 = fake_open(f, &attr, 0, 0, -1);
	cpu0_other = fake_open(f, &attr, 200, 0, -1);
	cpu1 = fake_open(f, &attr, 0, 1, -1);
	EXPECT_EQ(fake_map(f, cpu0, 1, true), 0);
	EXPECT_EQ(fake_ioctl(f, cpu0_other, PERF_EVENT_IOC_SET_OUTPUT, (u64)cpu0), 0);
	EXPECT_REFUSED(f, fake_ioctl(f, cpu1, PERF_EVENT_IOC_SET_OUTPUT, (u64)cpu0), -EINVAL,
		       OUTPUT_CPU);
	/* FD_OUTPUT at open is the same. */
	EXPECT(fake_open_as(f, 100, &attr, 0, 0, cpu0, OPEN_FLAG_OUTPUT | OPEN_FLAG_NO_GROUP) >= 0);
	EXPECT_REFUSED(
		f, fake_open_as(f, 100, &attr, 0, 1, cpu0, OPEN_FLAG_OUTPUT | OPEN_FLAG_NO_GROUP),
		-EINVAL, OUTPUT_CPU);
	core_check(f->core);
	fake_free(f);
}

TEST(what_this_pmu_has_not)
{
	static const char long_text[4096] = {[0 ... 4095] = 'a'};
	struct perf_event_query_bpf query = {0};
	struct pe_attr attr = fake_attr();
	struct ioctl_call call;
	u32 store;
	int fd;

	f = fake_new(4);
	fd = open_attr(attr, -1);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_SET_FILTER, NULL, 0), -EFAULT,
		       FILTER_FAULT);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_SET_FILTER, "x", 2), -EINVAL,
		       FILTER_PMU);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_SET_FILTER, "x", 1), -EFAULT,
		       FILTER_FAULT);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_SET_FILTER, long_text, 4096), -EINVAL,
		       FILTER_LONG);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, ~0ull), -EBADF, BPF_FD);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 999), -EBADF, BPF_FD);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 78), -EINVAL, BPF_FD);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 77), -EOPNOTSUPP, VIRTUAL_BPF);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 0), -EOPNOTSUPP, VIRTUAL_BPF);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_QUERY_BPF, &query, sizeof(query)),
		       -EINVAL, BPF_TRACEPOINTS);
	f->perfmon = f->sys_admin = false;
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_QUERY_BPF, &query, sizeof(query)),
		       -EPERM, CAP_QUERY_BPF);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, NULL, 0), -EFAULT,
		       ATTR_FAULT);
	EXPECT_REFUSED(f,
		       fake_ioctl_in(f, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr, sizeof(attr)),
		       -EOPNOTSUPP, MODIFY_BREAKPOINTS);
	attr.type = 5;
	EXPECT_REFUSED(f,
		       fake_ioctl_in(f, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr, sizeof(attr)),
		       -EINVAL, MODIFY_TYPE);
	attr.size = 10;
	call = (struct ioctl_call){.caller = fake_task(f, 100)->task,
				   .cmd = PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
				   .in = &attr,
				   .in_len = sizeof(attr)};
	EXPECT_REFUSED(f, event_ioctl(fake_event(f, fd), &call), -E2BIG, ATTR_SIZE);
	EXPECT_EQ(call.out_len, 4);
	EXPECT_EQ(call.out_at, 4);
	memcpy(&store, call.out, 4);
	EXPECT_EQ(store, 136);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, 0x2430, 0), -ENOTTY, IOCTL_UNKNOWN);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, 0, 0), -ENOTTY, IOCTL_UNKNOWN);
	EXPECT_EQ(ioctl_reads(PERF_EVENT_IOC_PERIOD), 8);
	EXPECT_EQ(ioctl_reads(PERF_EVENT_IOC_ENABLE), 0);
	EXPECT_EQ(ioctl_reads(PERF_EVENT_IOC_SET_FILTER), 4096);
	fake_free(f);
}

/* What the caller opened, whatever it counts; leaders and members alike; never others' [PRC]. */
TEST(prctl_scope)
{
	struct pe_attr attr = fake_attr();
	int own, member, on_child, others;

	f = fake_new(8);
	fake_add_task(f, 200, 200);
	own = open_attr(attr, -1);
	member = open_attr(attr, own);
	on_child = fake_open(f, &attr, 200, -1, -1);
	others = fake_open_as(f, 200, &attr, 100, -1, -1, 0);
	EXPECT_EQ(perf_prctl(fake_task(f, 100)->task, false), 0);
	EXPECT_EQ(state(own), EVENT_OFF);
	EXPECT_EQ(state(member), EVENT_OFF);
	EXPECT_EQ(state(on_child), EVENT_OFF);
	EXPECT_EQ(state(others), EVENT_ACTIVE);
	/* The member was switched too: the leader alone does not bring it back. */
	fake_ioctl(f, own, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(state(member), EVENT_OFF);
	EXPECT_EQ(perf_prctl(fake_task(f, 100)->task, true), 0);
	EXPECT_EQ(state(member), EVENT_ACTIVE);
	EXPECT_EQ(state(on_child), EVENT_ACTIVE);
	/* The opener's end ends its ownership, not the event. */
	fake_exit(f, 200);
	EXPECT(!fake_event(f, others)->owner);
	EXPECT_EQ(state(others), EVENT_ACTIVE);
	core_check(f->core);
	fake_free(f);
}

TEST(prctl_reaches_inherited_children)
{
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(8);
	attr.inherit = 1;
	fd = open_attr(attr, -1);
	fake_fork(f, 100, 101, false);
	fake_advance(f, 10);
	perf_prctl(fake_task(f, 100)->task, false);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 20);
	/* A fork does not hand ownership down. */
	perf_prctl(fake_task(f, 101)->task, true);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 20);
	fake_free(f);
}
