/* Estimated counts: what is told of them is in proportion to what was executed. */
#include <string.h>

#include "unit/test.h"

#include "abi/modeled.h"
#include "pmu/drivers.h"
#include "unit/core/fake.h"

/* What a task has counted so far: instructions, those that the model stands for, and its misses. */
struct counts {
	u64 insns, covered, misses;
};

static struct fake *f;
static struct pmu *pmu;
static struct counts of[16]; /* by tid from 100 on */
static bool left_out;
static u32 reads, wanted;

static u64 given_read(void *ctx, struct task *task, u32 what)
{
	const struct counts *c = &of[((struct fake_task *)task_host(task))->tid - 100];

	(void)ctx;
	reads++;
	switch (what) {
	case CPU_INSTRUCTIONS: return c->insns;
	case CPU_MODELED + MODEL_INSTRUCTIONS: return c->covered;
	case CPU_MODELED + MODEL_BRANCH_MISSES: return c->misses;
	case CPU_MODELED + MODEL_CPU_CYCLES: return 2 * c->misses;
	case CPU_MODELED + MODEL_LL_FETCHES: return 4 * c->misses;
	default: return what >= CPU_MODELED ? 3 * c->misses : c->insns / 10;
	}
}

static bool given_estimated(void *ctx)
{
	(void)ctx;
	return left_out;
}

static void given_want(void *ctx, struct task *task, u32 parts, bool open)
{
	(void)ctx;
	(void)task;
	wanted = open ? parts : wanted & ~parts;
}

static void given_arm(void *ctx, struct event *event, struct task *task, u32 what, u64 next,
		      u64 period)
{
	(void)ctx, (void)event, (void)task, (void)what, (void)next, (void)period;
}

static void given_disarm(void *ctx, struct event *event, struct task *task)
{
	(void)ctx, (void)event, (void)task;
}

static const struct pmu_source windows = {.read = given_read,
					  .want = given_want,
					  .estimated = given_estimated,
					  .arm = given_arm,
					  .disarm = given_disarm},
			       whole = {.read = given_read, .want = given_want};

static void runs(int tid, u64 insns, u64 covered, u64 misses)
{
	struct counts *c = &of[tid - 100];

	c->insns += insns;
	c->covered += covered;
	c->misses += misses;
}

/* Task 100 counts 101, which is another process and has done something before. */
static void setup(const struct pmu_source *source)
{
	const struct cpu_pmu_config config = {.source = source,
					      .machine = "toy",
					      .vendor = CPU_VENDOR_AMD,
					      .is_zen = true,
					      .machine_samples = true};

	f = fake_new(2);
	f->perfmon = true;
	fake_exit(f, 100);
	EXPECT_EQ(cpu_pmu_new(f->core, &config, &pmu), 0);
	memset(of, 0, sizeof(of));
	fake_add_task(f, 100, 100);
	fake_add_task(f, 101, 101);
	runs(101, 7000, 5000, 300);
	left_out = true;
	wanted = 0;
}

static void teardown(void)
{
	fake_free(f);
	cpu_pmu_free(pmu);
}

static struct pe_attr attr_for(u32 type, u64 config)
{
	return (struct pe_attr){.type = type,
				.size = PE_ATTR_SIZE_VER8,
				.config = config,
				.exclude_kernel = 1,
				.inherit = 1};
}

static int open_id(u64 id, int pid, int leader)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, id);

	return fake_open(f, &attr, pid, -1, leader);
}

static u64 told(int fd)
{
	core_check(f->core);
	return fake_count(f, fd);
}

TEST(in_proportion)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	EXPECT_EQ(told(fd), 0);
	runs(101, 1000, 0, 4);
	/* As long as nothing is known of a part it is what it is. */
	EXPECT_EQ(told(fd), 4);
	runs(101, 3000, 2000, 6);
	EXPECT_EQ(told(fd), 20);
	/* What happens while it is off is of neither. */
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	runs(101, 100000, 10, 1000);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(told(fd), 20);
	runs(101, 4000, 2000, 10);
	EXPECT_EQ(told(fd), 40);
	/* Products need more than 64 bits. */
	runs(101, 1ull << 40, 1ull << 40, 1ull << 40);
	EXPECT(told(fd) >= 1ull << 40 && told(fd) < (1ull << 40) + 10000);
	teardown();
}

TEST(never_back)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	runs(101, 1000, 500, 10);
	EXPECT_EQ(told(fd), 20);
	/* A window that stands for more than there was. */
	runs(101, 0, 1500, 10);
	EXPECT_EQ(told(fd), 20);
	runs(101, 2000, 0, 0);
	EXPECT_EQ(told(fd), 30);
	teardown();
}

/* Next to nothing is known of what was executed. */
TEST(not_much_of_little)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	runs(101, 1000000, 10, 5);
	EXPECT_EQ(told(fd), 40);
	runs(101, 0, 149990, 70);
	EXPECT_EQ(told(fd), 500);
	teardown();
}

/* A difference may be less than nothing. */
TEST(differences)
{
	struct pe_attr attr = attr_for(PERF_TYPE_RAW, 0x0664); /* of which more are subtracted */
	int fd;

	setup(&windows);
	fd = fake_open(f, &attr, 101, -1, -1);
	runs(101, 750, 500, 10);
	EXPECT_EQ(told(fd), 0);
	teardown();
}

/* The last instructions may not be simulated yet. */
TEST(as_it_is_while_all_is_seen)
{
	int fd;

	setup(&windows);
	left_out = false;
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	runs(101, 1000, 500, 10);
	EXPECT_EQ(told(fd), 10);
	left_out = true;
	EXPECT_EQ(told(fd), 20);
	teardown();
	setup(&windows);
	left_out = false;
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	runs(101, 1000, 2000, 10);
	EXPECT_EQ(told(fd), 10);
	left_out = true;
	EXPECT_EQ(told(fd), 10);
	teardown();
}

/* All of a family is in one proportion, whoever of it is alive. */
TEST(children)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	fake_fork(f, 101, 102, false);
	fake_fork(f, 102, 103, false);
	runs(101, 1000, 1000, 1);
	runs(102, 6000, 0, 0);
	runs(103, 1000, 3000, 19);
	EXPECT_EQ(told(fd), 40);
	fake_exit(f, 103);
	EXPECT_EQ(told(fd), 40);
	fake_exit(f, 102);
	EXPECT_EQ(told(fd), 40);
	runs(101, 8000, 0, 0);
	EXPECT_EQ(told(fd), 80);
	fake_exit(f, 101);
	EXPECT_EQ(told(fd), 80);
	teardown();
}

/* Likewise; what is exact stays so. */
TEST(groups)
{
	const u64 formats[] = {0, PERF_FORMAT_ID,
			       PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID | PE_FORMAT_LOST,
			       PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
		const u64 *words;
		u32 entry;
		int fd;

		setup(&windows);
		attr.read_format = formats[i] | PERF_FORMAT_GROUP;
		fd = fake_open(f, &attr, 101, -1, -1);
		EXPECT(open_id(PERF_COUNT_HW_INSTRUCTIONS, 101, fd) >= 0);
		EXPECT(open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, fd) >= 0);
		fake_fork(f, 101, 102, false);
		fake_fork(f, 101, 103, false);
		fake_advance(f, 77);
		runs(101, 1000, 1000, 1);
		runs(102, 1000, 3000, 19);
		fake_exit(f, 102);
		runs(103, 6000, 0, 0);
		core_check(f->core);
		EXPECT(fake_read(f, fd) > 0);
		words = f->words + 1;
		if (formats[i] & PERF_FORMAT_TOTAL_TIME_ENABLED)
			EXPECT_EQ(*words++, 3 * 77);
		if (formats[i] & PERF_FORMAT_TOTAL_TIME_RUNNING)
			EXPECT_EQ(*words++, 3 * 77);
		entry = 1 + !!(formats[i] & PERF_FORMAT_ID) + !!(formats[i] & PE_FORMAT_LOST);
		EXPECT_EQ(words[0], 80);
		EXPECT_EQ(words[entry], 8000);
		EXPECT_EQ(words[2 * entry], 40);
		if (formats[i] & PERF_FORMAT_ID)
			EXPECT_EQ(words[2 * entry + 1], 3);
		/* Nor does a group go back. */
		runs(103, 0, 16000, 0);
		EXPECT(fake_read(f, fd) > 0);
		EXPECT_EQ(words[2 * entry], 40);
		teardown();
	}
}

/* What dead children have left behind stays, as of any count. */
TEST(reset)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	fake_fork(f, 101, 102, false);
	runs(101, 1000, 500, 10);
	runs(102, 1000, 500, 10);
	EXPECT_EQ(told(fd), 40);
	fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0);
	EXPECT_EQ(told(fd), 0);
	runs(101, 900, 300, 10);
	EXPECT_EQ(told(fd), 30);
	runs(102, 1100, 700, 10);
	EXPECT_EQ(told(fd), 40);
	fake_exit(f, 102);
	fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0);
	EXPECT_EQ(told(fd), 10 * 1100 / 700);
	runs(101, 1700, 700, 10);
	EXPECT_EQ(told(fd), 40);
	teardown();
}

/* Of a CPU likewise, whoever comes and goes, as long as somebody counts there. */
TEST(cpus)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
	int cpu0, cpu1;

	setup(&windows);
	attr.inherit = 0;
	cpu0 = fake_open(f, &attr, -1, 0, -1);
	cpu1 = fake_open(f, &attr, -1, 1, -1);
	runs(100, 1000, 0, 0);
	runs(101, 1000, 1000, 10);
	EXPECT_EQ(told(cpu0), 20);
	task_sched_in(fake_task(f, 101)->task, 1);
	runs(101, 3000, 1000, 10);
	EXPECT_EQ(told(cpu0), 20);
	EXPECT_EQ(told(cpu1), 30);
	task_sched_in(fake_task(f, 101)->task, 0);
	runs(101, 1000, 0, 0);
	EXPECT_EQ(told(cpu0), 30);
	EXPECT_EQ(told(cpu1), 30);
	fake_exit(f, 101);
	EXPECT_EQ(told(cpu0), 30);
	fake_close(f, cpu1);
	fake_close(f, cpu0);
	/* Who is left asks for one counter, where a task leaves and where it comes. */
	attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	EXPECT(fake_open(f, &attr, -1, 0, -1) >= 0);
	reads = 0;
	task_sched_in(fake_task(f, 100)->task, 1);
	EXPECT_EQ(reads, 2);
	teardown();
}

TEST(cgroups)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
	struct cgroup *root;
	int fd;

	setup(&windows);
	attr.inherit = 0;
	root = cgroup_new(f->core, NULL, 1);
	f->cgroup_fds[0] = cgroup_new(f->core, root, 2);
	task_set_cgroup(fake_task(f, 100)->task, root);
	task_set_cgroup(fake_task(f, 101)->task, f->cgroup_fds[0]);
	fd = fake_open_as(f, 100, &attr, 3000, 0, -1, OPEN_FLAG_PID_CGROUP);
	EXPECT(fd >= 0);
	runs(100, 50000, 10, 1000);
	runs(101, 1000, 500, 10);
	EXPECT_EQ(told(fd), 20);
	task_set_cgroup(fake_task(f, 101)->task, root);
	runs(101, 1000, 10, 1000);
	EXPECT_EQ(told(fd), 20);
	task_set_cgroup(fake_task(f, 101)->task, f->cgroup_fds[0]);
	runs(101, 1000, 500, 0);
	EXPECT_EQ(told(fd), 20);
	runs(101, 2000, 0, 0);
	EXPECT_EQ(told(fd), 40);
	teardown();
}

/* Sums of the model's are its; what else counts, and who sees all, tells what it has counted. */
TEST(what_is_exact)
{
	const struct {
		u32 type;
		u64 config;
		int pid;
		u64 period, told;
	} rows[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 101, 0, 20},
		{PERF_TYPE_RAW, 0xe860, 101, 0, 120},
		/* Instructions, those that calculate, who counts himself, who samples. */
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 101, 0, 1000},
		{PERF_TYPE_RAW, 0x00c4, 101, 0, 100},
		{PERF_TYPE_RAW, 0x0f03, 101, 0, 30},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 100, 0, 10},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 101, 1000000, 10},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pe_attr attr = attr_for(rows[i].type, rows[i].config);
		int fd;

		setup(&windows);
		attr.sample_period = rows[i].period;
		fd = fake_open(f, &attr, rows[i].pid, -1, -1);
		EXPECT(fd >= 0);
		/* A copy is none of its opener's, and yet is as the original. */
		fake_fork(f, rows[i].pid, 102, false);
		runs(rows[i].pid, 800, 100, 8);
		runs(102, 200, 400, 2);
		if (told(fd) != rows[i].told)
			TEST_FAIL("%#llx of %d is %lld and not %lld",
				  (unsigned long long)rows[i].config, rows[i].pid,
				  (long long)told(fd), (long long)rows[i].told);
		teardown();
	}
	/* Without windows nothing is to be known of anything. */
	setup(&whole);
	reads = 0;
	EXPECT_EQ(told(open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1)), 0);
	EXPECT_EQ(reads, 2);
	EXPECT_EQ(wanted, MODEL_BRANCHES);
	teardown();
}

/* The model counts instructions anyway. */
TEST(what_is_wanted)
{
	int fd;

	setup(&windows);
	fd = open_id(PERF_COUNT_HW_BRANCH_MISSES, 101, -1);
	EXPECT_EQ(wanted, MODEL_BRANCHES);
	fake_close(f, fd);
	EXPECT_EQ(wanted, 0);
	/* Not where all is seen; nor for the copies of that. */
	EXPECT(open_id(PERF_COUNT_HW_BRANCH_MISSES, 0, -1) >= 0);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES);
	fake_fork(f, 100, 102, false);
	EXPECT_EQ(wanted, MODEL_BRANCHES);
	teardown();
}
