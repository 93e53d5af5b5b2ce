/* Software events, and the PMUs that answer for what is not there. */
#include "unit/test.h"

#include "pmu/drivers.h"
#include "unit/core/fake.h"

static struct fake *f;
static struct pmu *pmu;

/* SW_WHAT() c counts c + 1 a ns. */
static u64 given_read(void *ctx, struct task *task, u32 what)
{
	(void)ctx;
	return ((struct fake_task *)task_host(task))->counter * (what + 1);
}

static struct pmu_source source = {.read = given_read};

/* In place of the fake's software PMU, which has no source. */
static void setup(u64 have)
{
	f = fake_new(1);
	fake_exit(f, 100);
	list_del(&f->software->link);
	source.have = have;
	EXPECT_EQ(software_pmu_new(f->core, &source, &pmu), 0);
	fake_add_task(f, 100, 100);
}

static void teardown(void)
{
	fake_free(f);
	software_pmu_free(pmu);
}

static int open_config(u64 config, u64 flags, int cpu)
{
	struct pe_attr attr = fake_sw_attr(config);

	attr.exclude_kernel = 0;
	attr.flags |= flags;
	return fake_open(f, &attr, cpu < 0 ? 0 : -1, cpu, -1);
}

static const u64 user_only = BIT(5), kernel_only = BIT(4);

TEST(clocks)
{
	int task, cpu, wide;

	setup(0);
	task = open_config(PERF_COUNT_SW_TASK_CLOCK, 0, -1);
	cpu = open_config(PERF_COUNT_SW_CPU_CLOCK, 0, -1);
	wide = open_config(PERF_COUNT_SW_CPU_CLOCK, 0, 1);
	fake_advance(f, 1000);
	fake_task(f, 100)->asleep = true;
	fake_advance(f, 50000);
	EXPECT_EQ(fake_count(f, task), 1000);
	EXPECT_EQ(fake_count(f, cpu), 1000);
	EXPECT_EQ(fake_count(f, wide), 51000);
	fake_ioctl(f, task, PERF_EVENT_IOC_DISABLE, 0);
	fake_task(f, 100)->asleep = false;
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, task), 1000);
	EXPECT_EQ(fake_count(f, cpu), 1010);
	teardown();
}

TEST(without_a_source)
{
	setup(0);
	EXPECT(open_config(PERF_COUNT_SW_DUMMY, 0, -1) >= 0);
	EXPECT(open_config(PERF_COUNT_SW_BPF_OUTPUT, 0, -1) >= 0);
	EXPECT(open_config(PERF_COUNT_SW_ALIGNMENT_FAULTS, 0, -1) >= 0);
	EXPECT(open_config(PERF_COUNT_SW_EMULATION_FAULTS, 0, -1) >= 0);
	EXPECT_REFUSED(f, open_config(PERF_COUNT_SW_PAGE_FAULTS, 0, -1), -ENOENT, VIRTUAL_SOFTWARE);
	EXPECT_CONTAINS(fake_why(f), "host does not tell");
	EXPECT_REFUSED(f, open_config(PERF_COUNT_SW_CGROUP_SWITCHES, 0, -1), -ENOENT,
		       VIRTUAL_SOFTWARE);
	EXPECT_REFUSED(f, open_config(12, 0, -1), -ENOENT, SOFTWARE_ID);
	EXPECT_REFUSED(f, open_config(~0ull, 0, -1), -ENOENT, SOFTWARE_ID);
	fake_advance(f, 100);
	teardown();
}

TEST(sources)
{
	static const u64 configs[] = {2, 3, 4, 5, 6, 7, 8, 11};
	int fds[ARRAY_SIZE(configs)];

	setup(0xfff);
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		fds[i] = open_config(configs[i], 0, -1);
		EXPECT(fds[i] >= 0);
	}
	fake_advance(f, 10);
	for (size_t i = 0; i < ARRAY_SIZE(configs); i++)
		EXPECT_EQ(fake_count(f, fds[i]), 10 * (configs[i] + 1));
	teardown();
}

/* In one mode where the host can tell, in all of them where it cannot. */
TEST(modes)
{
	int user, kernel, nothing, other;

	setup(0xfff | BIT(SW_WHAT(PERF_COUNT_SW_PAGE_FAULTS, SW_USER)) |
	      BIT(SW_WHAT(PERF_COUNT_SW_PAGE_FAULTS, SW_KERNEL)));
	user = open_config(PERF_COUNT_SW_PAGE_FAULTS, user_only, -1);
	kernel = open_config(PERF_COUNT_SW_PAGE_FAULTS, kernel_only, -1);
	nothing = open_config(PERF_COUNT_SW_PAGE_FAULTS, user_only | kernel_only, -1);
	other = open_config(PERF_COUNT_SW_CONTEXT_SWITCHES, user_only, -1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, user), 10 * (2 + 16 + 1));
	EXPECT_EQ(fake_count(f, kernel), 10 * (2 + 32 + 1));
	EXPECT_EQ(fake_count(f, nothing), 0);
	EXPECT_EQ(fake_count(f, other), 10 * (3 + 1));
	teardown();
	/* But for a sum that says nothing of the mode that is asked for. */
	setup(0xfff);
	EXPECT_REFUSED(f, open_config(PERF_COUNT_SW_PAGE_FAULTS, kernel_only, -1), -EOPNOTSUPP,
		       VIRTUAL_FAULTS);
	EXPECT_REFUSED(f, open_config(PERF_COUNT_SW_PAGE_FAULTS_MIN, kernel_only, -1), -EOPNOTSUPP,
		       VIRTUAL_FAULTS);
	user = open_config(PERF_COUNT_SW_PAGE_FAULTS, user_only, -1);
	kernel = open_config(PERF_COUNT_SW_CONTEXT_SWITCHES, kernel_only, -1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, user), 10 * (2 + 1));
	EXPECT_EQ(fake_count(f, kernel), 10 * (3 + 1));
	teardown();
}

TEST(cpu_wide)
{
	int fd;

	setup(0xfff);
	fake_add_task(f, 200, 200);
	fd = open_config(PERF_COUNT_SW_PAGE_FAULTS, 0, 0);
	fake_advance(f, 10);
	task_sched_in(fake_task(f, 200)->task, 1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 3 * (20 + 10));
	teardown();
}

TEST(no_samples_and_no_branches)
{
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_CPU_CLOCK);

	setup(0);
	attr.sample_period = 1000000;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_SAMPLING);
	attr.sample_period = 0;
	attr.precise_ip = 3; /* ignored [ATTR-22] */
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_BRANCHES);
	/* pinned is accepted and means nothing [ATTR-09]. */
	attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);
	attr.pinned = 1;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	teardown();
}

static struct probe_pmus *probes;

static void absent_setup(void)
{
	f = fake_new(1);
	EXPECT_EQ(probe_pmus_new(f->core, &(struct probe_pmu_config){8, 9, NULL}, &probes), 0);
}

static void absent_teardown(void)
{
	fake_free(f);
	probe_pmus_free(probes);
}

static int open_attr(struct pe_attr attr)
{
	return fake_open(f, &attr, 0, -1, -1);
}

TEST(breakpoints)
{
	struct pe_attr attr = {.type = PERF_TYPE_BREAKPOINT,
			       .size = PE_ATTR_SIZE_VER8,
			       .exclude_kernel = 1,
			       .bp_type = 3,
			       .bp_addr = 0x1000,
			       .bp_len = 4};
	static const u32 bad_types[] = {0, 1, 5, 6, 7, 8};

	absent_setup();
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_BREAKPOINT);
	for (size_t i = 0; i < ARRAY_SIZE(bad_types); i++) {
		attr.bp_type = bad_types[i];
		EXPECT_REFUSED(f, open_attr(attr), -EINVAL, BREAKPOINT_TYPE);
	}
	attr.bp_type = 4;
	EXPECT_REFUSED(f, open_attr(attr), -EINVAL, BREAKPOINT_EXEC);
	attr.bp_len = 8;
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_BREAKPOINT);
	attr.bp_type = 2;
	attr.bp_addr = 0x1004;
	EXPECT_REFUSED(f, open_attr(attr), -EINVAL, BREAKPOINT_ALIGN);
	attr.bp_len = 3;
	EXPECT_REFUSED(f, open_attr(attr), -EINVAL, BREAKPOINT_LENGTH);
	attr.bp_len = 4;
	attr.bp_addr = 0xffffffff81000000;
	EXPECT_REFUSED(f, open_attr(attr), -EINVAL, BREAKPOINT_KERNEL);
	attr.exclude_kernel = 0;
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_BREAKPOINT);
	EXPECT_EQ(core_set_paranoid(f->core, 1), 0);
	f->perfmon = f->sys_admin = false;
	EXPECT_REFUSED(f, open_attr(attr), -EPERM, CAP_BREAKPOINT);
	absent_teardown();
}

TEST(probes_and_tracepoints)
{
	struct pe_attr attr = {.type = 8, .size = PE_ATTR_SIZE_VER8, .exclude_kernel = 1};

	absent_setup();
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_KPROBE);
	attr.type = 9;
	EXPECT_REFUSED(f, open_attr(attr), -EINVAL, PROBE_PATH);
	attr.uprobe_path = 0x1000;
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_UPROBE);
	f->sys_admin = false;
	EXPECT_REFUSED(f, open_attr(attr), -EACCES, CAP_UPROBE);
	attr.type = 8;
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_KPROBE);
	f->perfmon = false;
	EXPECT_REFUSED(f, open_attr(attr), -EACCES, CAP_KPROBE);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = 1;
	EXPECT_REFUSED(f, open_attr(attr), -EOPNOTSUPP, VIRTUAL_TRACEPOINT);
	EXPECT_CONTAINS(fake_why(f), "--pmu=kernel");
	attr.type = 10;
	EXPECT_REFUSED(f, open_attr(attr), -ENOENT, PMU_CONFIG);
	absent_teardown();
}

TEST(a_host_without_probes)
{
	f = fake_new(1);
	EXPECT_EQ(probe_pmus_new(f->core, &(struct probe_pmu_config){-1, -1, NULL}, &probes), 0);
	EXPECT(pmu_by_name(f->core, "breakpoint"));
	EXPECT(!pmu_by_name(f->core, "uprobe"));
	absent_teardown();
}

/* perf opens a dummy that samples beside its events, for the records of what tasks do. */
TEST(sampling_what_never_happens)
{
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);
	int fd;

	setup(BIT(PERF_COUNT_SW_PAGE_FAULTS));
	attr.sample_period = 1;
	attr.comm = 1;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	fake_advance(f, 1000);
	task_named(fake_task(f, 100)->task, "x", false);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_COMM));
	EXPECT(!fake_take(f, fd));
	attr.freq = 1;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_SAMPLING);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_SAMPLING);
	teardown();
}

/* What the host listens for. */
static struct {
	u32 listens, unlistens, forgets, forced;
	struct event *event;
} heard;

static void given_listen(void *ctx, struct event *event, struct task *task, bool forced)
{
	(void)ctx;
	EXPECT(task == fake_task(f, 100)->task);
	heard.listens++;
	heard.forced += forced;
	heard.event = event;
}

static void given_unlisten(void *ctx, struct event *event, struct task *task)
{
	(void)ctx, (void)event, (void)task;
	heard.unlistens++;
}

static void given_forget(void *ctx, struct event *event, struct task *task)
{
	(void)ctx, (void)event, (void)task;
	heard.forgets++;
}

/* The host's kernel keeps the periods: each that it tells is a sample, and REFRESH counts them. */
TEST(the_host_tells_of_periods)
{
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	struct sample_facts facts = {.has = PERF_SAMPLE_PERIOD | PERF_SAMPLE_ADDR};
	u64 period = 5;
	int fd;

	source.listen = given_listen;
	source.unlisten = given_unlisten;
	source.forget = given_forget;
	source.stops = BIT(PERF_COUNT_SW_PAGE_FAULTS);
	setup(BIT(PERF_COUNT_SW_PAGE_FAULTS));
	attr.sample_freq = 1;
	attr.freq = 1;
	attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD;
	/* Of a CPU's event the host hears of the task's own. */
	fd = fake_open(f, &attr, -1, 0, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(heard.listens, 1);
	EXPECT(heard.event != fake_event(f, fd));
	fake_close(f, fd);
	EXPECT(heard.unlistens == 1 && heard.forgets == 1);
	memset(&heard, 0, sizeof(heard));
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(heard.listens, 1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	/* Far more than a frequency of 1 would let through. */
	for (u64 i = 0; i < 100; i++) {
		const struct ap_record *r;

		facts.task = fake_task(f, 100)->task;
		facts.sample.addr = i;
		facts.sample.period = 3 + i;
		fake_advance(f, 10);
		source_stopped(heard.event, &facts);
		r = fake_take_type(f, fd, PERF_RECORD_SAMPLE);
		EXPECT(r && r->sample.addr == i && r->sample.period == 3 + i);
	}
	EXPECT_EQ(heard.listens, 1);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(heard.unlistens, 1);
	source_stopped(heard.event, &facts);
	EXPECT(!fake_take(f, fd));
	fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 2);
	EXPECT_EQ(heard.listens, 2);
	for (int i = 0; i < 3; i++) {
		source_stopped(heard.event, &facts);
		core_settle(f->core);
	}
	EXPECT(fake_take_type(f, fd, PERF_RECORD_SAMPLE));
	EXPECT(fake_take_type(f, fd, PERF_RECORD_SAMPLE));
	EXPECT(!fake_take(f, fd));
	EXPECT_EQ(heard.forced, 0);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, sizeof(period));
	EXPECT_EQ(heard.forced, 1);
	/* As the kernel tells it. */
	event_throttled(heard.event, true);
	event_throttled(heard.event, false);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_THROTTLE));
	EXPECT(fake_take_type(f, fd, PERF_RECORD_UNTHROTTLE));
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(heard.forgets, 0);
	fake_close(f, fd);
	EXPECT_EQ(heard.forgets, 1);
	teardown();
	source.listen = NULL;
	source.stops = 0;
}
