/*
 * perf_event_open: the order of its checks with two faults at once (doc/matrix.md, "The order of
 * the checks at open"), and sizes of attrs.
 */
#include "unit/test.h"

#include "unit/core/fake.h"

/* A call that would succeed, for a fault or two to spoil. */
struct attempt {
	struct fake *f;
	u8 attr[256];
	size_t attr_len;
	struct open_call call;
	int leader, member, dead;
};

static struct pe_attr *attr_of(struct attempt *a)
{
	return (struct pe_attr *)(void *)a->attr;
}

/* What a fault needs for itself: two that need the same cannot be had at once. */
enum {
	USES_FLAGS = 1,
	USES_SIZE = 2,
	USES_TYPE = 4,
	USES_PID = 8,
	USES_CPU = 16,
	USES_GROUP = 32,
	USES_CAPS = 64,
	USES_BRANCH = 128,
	USES_EXEC = 256,
	USES_INHERIT = 512,
	USES_PERIOD = 1024,
	USES_REGS = 2048,
	USES_TAIL = 4096,
};

struct fault {
	const char *name;
	void (*spoil)(struct attempt *a);
	u32 uses;
	int err;
	enum refusal_cause cause;
};

static void bad_flag(struct attempt *a)
{
	a->call.flags |= 16;
}

static void unreadable(struct attempt *a)
{
	a->call.attr_len = 7;
}

static void size_small(struct attempt *a)
{
	attr_of(a)->size = 63;
}

static void tail_set(struct attempt *a)
{
	attr_of(a)->size = 200;
	a->call.attr_len = 200;
	a->attr[199] = 1;
}

static void reserved_bit(struct attempt *a)
{
	attr_of(a)->flags |= BIT(38);
}

static void reserved_word(struct attempt *a)
{
	attr_of(a)->reserved_2 = 1;
}

static void bad_sample_type(struct attempt *a)
{
	attr_of(a)->sample_type |= BIT(25);
}

static void bad_read_format(struct attempt *a)
{
	attr_of(a)->read_format |= BIT(5);
}

static void branch_undefined(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr_of(a)->branch_sample_type = BIT(20) | 8;
}

static void branch_kernel(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = false;
	attr_of(a)->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr_of(a)->branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL;
}

static void regs_zero(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_REGS_USER;
	attr_of(a)->sample_regs_user = 0;
}

static void stack_odd(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_STACK_USER;
	attr_of(a)->sample_stack_user = 12;
}

static void regs_intr_bad(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_REGS_INTR;
	attr_of(a)->sample_regs_intr = BIT(12);
}

static void weights(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
}

static void thread_alone(struct attempt *a)
{
	attr_of(a)->inherit = 0;
	attr_of(a)->inherit_thread = 1;
}

static void exec_both(struct attempt *a)
{
	attr_of(a)->remove_on_exec = attr_of(a)->enable_on_exec = 1;
}

static void sigtrap_alone(struct attempt *a)
{
	attr_of(a)->sigtrap = 1;
	attr_of(a)->remove_on_exec = 0;
}

static void kernel_mode(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = false;
	attr_of(a)->exclude_kernel = 0;
}

static void namespaces(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = false;
	attr_of(a)->namespaces = 1;
}

static void freq_high(struct attempt *a)
{
	attr_of(a)->freq = 1;
	attr_of(a)->sample_freq = 100001;
}

static void phys_addr(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = false;
	attr_of(a)->sample_type |= PERF_SAMPLE_PHYS_ADDR;
}

static void cgroup_all(struct attempt *a)
{
	a->call.flags |= OPEN_FLAG_PID_CGROUP;
	a->call.pid = -1;
	a->call.cpu = 0;
}

static void no_fd(struct attempt *a)
{
	a->f->fd_err = -EMFILE;
}

static void bad_group(struct attempt *a)
{
	a->call.group_fd = 1999;
}

static void dead_group(struct attempt *a)
{
	a->call.group_fd = a->dead;
}

static void bad_pid(struct attempt *a)
{
	a->call.pid = 4711;
}

static void inherit_differs(struct attempt *a)
{
	a->call.group_fd = a->leader;
	attr_of(a)->inherit = 1;
}

static void bad_cpu(struct attempt *a)
{
	a->call.cpu = 2;
}

static void inherit_read(struct attempt *a)
{
	attr_of(a)->inherit = 1;
	attr_of(a)->sample_type |= PERF_SAMPLE_READ;
}

static void bad_type(struct attempt *a)
{
	attr_of(a)->type = 99;
}

static void vector_regs(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_REGS_USER;
	attr_of(a)->sample_regs_user = BIT(40);
}

static void aux_output(struct attempt *a)
{
	attr_of(a)->aux_output = 1;
}

static void aux_paused(struct attempt *a)
{
	attr_of(a)->reserved_3 = 1;
}

static void deep_stack(struct attempt *a)
{
	attr_of(a)->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr_of(a)->sample_max_stack = 128;
}

static void no_interrupt(struct attempt *a)
{
	attr_of(a)->type = PERF_TYPE_SOFTWARE;
	attr_of(a)->config = PERF_COUNT_SW_TASK_CLOCK;
	attr_of(a)->sample_period = 1;
}

static void bad_clock(struct attempt *a)
{
	attr_of(a)->use_clockid = 1;
	attr_of(a)->clockid = 2;
}

static void foreign(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = a->f->access = false;
	a->call.pid = 200;
}

static void cpu_wide(struct attempt *a)
{
	a->f->perfmon = a->f->sys_admin = false;
	a->call.pid = -1;
	a->call.cpu = 1;
}

static void member_leads(struct attempt *a)
{
	a->call.group_fd = a->member;
}

static void pinned_member(struct attempt *a)
{
	a->call.group_fd = a->leader;
	attr_of(a)->pinned = 1;
}

static void no_output(struct attempt *a)
{
	a->call.flags |= OPEN_FLAG_OUTPUT;
	a->call.group_fd = a->leader;
}

static const struct fault faults[] = {
	{"flags", bad_flag, USES_FLAGS, -EINVAL, CAUSE_OPEN_FLAGS},
	{"unreadable", unreadable, USES_TAIL, -EFAULT, CAUSE_ATTR_FAULT},
	{"size", size_small, USES_SIZE, -E2BIG, CAUSE_ATTR_SIZE},
	{"tail", tail_set, USES_SIZE | USES_TAIL, -E2BIG, CAUSE_ATTR_NEWER},
	{"bit", reserved_bit, 0, -EINVAL, CAUSE_ATTR_FLAGS},
	{"word", reserved_word, 0, -EINVAL, CAUSE_ATTR_RESERVED},
	{"sample_type", bad_sample_type, 0, -EINVAL, CAUSE_ATTR_BITS},
	{"read_format", bad_read_format, 0, -EINVAL, CAUSE_ATTR_BITS},
	{"branch", branch_undefined, USES_BRANCH, -EINVAL, CAUSE_ATTR_BITS},
	{"branch kernel", branch_kernel, USES_BRANCH | USES_CAPS, -EACCES, CAUSE_PARANOID_BRANCHES},
	{"regs", regs_zero, USES_REGS, -EINVAL, CAUSE_REGS_NONE},
	{"stack", stack_odd, 0, -EINVAL, CAUSE_STACK_SIZE},
	{"regs_intr", regs_intr_bad, 0, -EINVAL, CAUSE_REGS_UNKNOWN},
	{"weights", weights, 0, -EINVAL, CAUSE_WEIGHT_TWICE},
	{"thread", thread_alone, USES_INHERIT, -EINVAL, CAUSE_INHERIT_THREAD},
	{"exec", exec_both, USES_EXEC, -EINVAL, CAUSE_EXEC_TWICE},
	{"sigtrap", sigtrap_alone, USES_EXEC, -EINVAL, CAUSE_SIGTRAP_EXEC},
	{"kernel", kernel_mode, USES_CAPS, -EACCES, CAUSE_PARANOID_KERNEL},
	{"namespaces", namespaces, USES_CAPS, -EACCES, CAUSE_CAP_NAMESPACES},
	{"freq", freq_high, USES_PERIOD, -EINVAL, CAUSE_SAMPLE_RATE},
	{"phys", phys_addr, USES_CAPS, -EACCES, CAUSE_PARANOID_PHYS_ADDR},
	{"cgroup", cgroup_all, USES_FLAGS | USES_PID | USES_CPU, -EINVAL, CAUSE_CGROUP_PLACE},
	{"fd", no_fd, 0, -EMFILE, CAUSE_FD_NONE},
	{"group", bad_group, USES_GROUP, -EBADF, CAUSE_GROUP_FD},
	{"dead group", dead_group, USES_GROUP, -ENODEV, CAUSE_GROUP_GONE},
	{"pid", bad_pid, USES_PID, -ESRCH, CAUSE_TASK_NONE},
	{"inherit", inherit_differs, USES_GROUP | USES_INHERIT | USES_PID, -EINVAL,
	 CAUSE_GROUP_INHERIT},
	{"cpu", bad_cpu, USES_CPU, -EINVAL, CAUSE_CPU_RANGE},
	{"inherit read", inherit_read, USES_INHERIT | USES_GROUP, -EINVAL, CAUSE_INHERIT_READ},
	{"type", bad_type, USES_TYPE, -ENOENT, CAUSE_PMU_CONFIG},
	{"vector", vector_regs, USES_REGS, -EOPNOTSUPP, CAUSE_NO_VECTOR_REGS},
	{"aux_output", aux_output, 0, -EOPNOTSUPP, CAUSE_NO_AUX_OUTPUT},
	{"aux_paused", aux_paused, 0, -EOPNOTSUPP, CAUSE_NO_AUX_PAUSE},
	{"deep stack", deep_stack, 0, -EOVERFLOW, CAUSE_MAX_STACK},
	{"no interrupt", no_interrupt, USES_TYPE | USES_PERIOD, -EOPNOTSUPP, CAUSE_NO_SAMPLING},
	{"clock", bad_clock, 0, -EINVAL, CAUSE_CLOCK_UNKNOWN},
	{"foreign", foreign, USES_PID | USES_CAPS, -EACCES, CAUSE_TASK_FOREIGN},
	{"cpu wide", cpu_wide, USES_PID | USES_CPU | USES_CAPS, -EACCES, CAUSE_PARANOID_CPU},
	{"member", member_leads, USES_GROUP, -EINVAL, CAUSE_GROUP_MEMBER},
	{"pinned", pinned_member, USES_GROUP, -EINVAL, CAUSE_GROUP_LEADERS_ONLY},
	{"output", no_output, USES_FLAGS | USES_GROUP, -EINVAL, CAUSE_OUTPUT_UNMAPPED},
};

static void attempt_init(struct attempt *a)
{
	struct pe_attr attr = fake_attr();

	memset(a, 0, sizeof(*a));
	a->f = fake_new(4);
	fake_add_task(a->f, 200, 200);
	fake_add_task(a->f, 300, 300);
	a->leader = fake_open(a->f, &attr, 0, -1, -1);
	a->member = fake_open(a->f, &attr, 0, -1, a->leader);
	a->dead = fake_open(a->f, &attr, 300, -1, -1);
	fake_exit(a->f, 300);
	memcpy(a->attr, &attr, sizeof(attr));
	a->call = (struct open_call){.caller = fake_task(a->f, 100)->task,
				     .attr = a->attr,
				     .attr_len = sizeof(struct pe_attr),
				     .cpu = -1,
				     .group_fd = -1};
}

static void expect_first(const struct fault *first, const struct fault *second)
{
	struct attempt a;
	enum refusal_cause cause;
	int err;

	attempt_init(&a);
	if (second)
		second->spoil(&a);
	first->spoil(&a);
	err = perf_open(a.f->core, &a.call);
	cause = (enum refusal_cause)core_refusal(a.f->core)->cause;
	if (err != first->err || cause != first->cause)
		TEST_FAIL("%s + %s: %d cause %d \"%s\", expected %d cause %d", first->name,
			  second ? second->name : "nothing", err, cause, fake_why(a.f), first->err,
			  first->cause);
	if (!err)
		event_put(a.call.event);
	EXPECT_EQ(a.call.store_size, err == -E2BIG ? PE_ATTR_SIZE_VER8 : 0);
	fake_free(a.f);
}

TEST(each_fault_alone)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		expect_first(&faults[i], NULL);
}

/* Not only neighbours: every two that can be had at once, so the order is the whole list's. */
TEST(of_two_faults_the_first_in_order_is_told)
{
	u32 pairs = 0;

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		for (size_t j = i + 1; j < ARRAY_SIZE(faults); j++) {
			if (faults[i].uses & faults[j].uses)
				continue;
			expect_first(&faults[i], &faults[j]);
			pairs++;
		}
	EXPECT(pairs > 500);
}

TEST(what_nothing_spoils_opens)
{
	struct attempt a;

	attempt_init(&a);
	EXPECT_EQ(perf_open(a.f->core, &a.call), 0);
	EXPECT_EQ(core_refusal(a.f->core)->cause, CAUSE_NONE);
	event_put(a.call.event);
	fake_free(a.f);
}

static int open_size(struct attempt *a, u32 size, size_t readable)
{
	int err;

	attr_of(a)->size = size;
	a->call.attr_len = readable;
	err = perf_open(a->f->core, &a->call);
	if (!err)
		event_put(a->call.event);
	return err;
}

/* [ATTR-02, SIZE-08..12] */
TEST(attr_sizes)
{
	static u8 page[4097];
	struct attempt a;

	attempt_init(&a);
	EXPECT_EQ(open_size(&a, 0, 64), 0);
	for (u32 size = 64; size <= 136; size++)
		EXPECT_EQ(open_size(&a, size, size), 0);
	for (u32 size = 1; size < 64; size++) {
		EXPECT_REFUSED(a.f, open_size(&a, size, 144), -E2BIG, ATTR_SIZE);
		EXPECT_EQ(a.call.store_size, 136);
	}
	EXPECT_EQ(open_size(&a, 200, 200), 0);
	EXPECT_EQ(open_size(&a, 4097, 200), -E2BIG);
	EXPECT_EQ(a.call.store_size, 136);
	EXPECT_EQ(open_size(&a, 0xffffffff, 200), -E2BIG);
	/* Exactly a page, its tail zero. */
	memcpy(page, a.attr, 136);
	a.call.attr = page;
	((struct pe_attr *)(void *)page)->size = 4096;
	a.call.attr_len = 4096;
	EXPECT_EQ(perf_open(a.f->core, &a.call), 0);
	event_put(a.call.event);
	page[4095] = 1;
	EXPECT_REFUSED(a.f, perf_open(a.f->core, &a.call), -E2BIG, ATTR_NEWER);
	a.call.attr_len = 4095;
	EXPECT_REFUSED(a.f, perf_open(a.f->core, &a.call), -EFAULT, ATTR_SHORT);
	/* A byte that is set before the one that faults decides, as on 6.18. */
	page[140] = 1;
	EXPECT_REFUSED(a.f, perf_open(a.f->core, &a.call), -E2BIG, ATTR_NEWER);
	fake_free(a.f);
}

/* [SIZE-14, ERR-05] */
TEST(attr_that_cannot_be_read)
{
	struct attempt a;

	attempt_init(&a);
	for (size_t readable = 0; readable < 64; readable++)
		EXPECT_EQ(open_size(&a, 64, readable), -EFAULT);
	for (size_t readable = 64; readable < 136; readable++)
		EXPECT_REFUSED(a.f, open_size(&a, 136, readable), -EFAULT, ATTR_SHORT);
	/* The size can be read and is wrong: that comes first [SIZE-13]. */
	EXPECT_REFUSED(a.f, open_size(&a, 10, 8), -E2BIG, ATTR_SIZE);
	EXPECT_REFUSED(a.f, open_size(&a, 10, 7), -EFAULT, ATTR_FAULT);
	fake_free(a.f);
}

/* A short attr's missing tail is zero, whatever lies behind it [SIZE-12]. */
TEST(bytes_beyond_the_size_do_not_count)
{
	struct attempt a;

	attempt_init(&a);
	attr_of(&a)->reserved_2 = 1;
	EXPECT_EQ(open_size(&a, 104, sizeof(struct pe_attr)), 0);
	EXPECT_EQ(open_size(&a, 112, sizeof(struct pe_attr)), -EINVAL);
	fake_free(a.f);
}
