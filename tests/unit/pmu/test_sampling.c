/*
 * Events of free-running counters that sample: where a task is told to stop, and what comes of it.
 */
#include "unit/test.h"

#include "pmu/drivers.h"
#include "unit/core/fake.h"

static struct fake *f;
static struct pmu *pmu;

static struct armed {
	struct event *event; /* NULL: free */
	struct task *task;
	u32 what;
	u64 next, period;
} armed[8];
static u32 arms;

static u64 moment;  /* when somebody tells late: of which he tells; else 0 */
static u64 insn_ns; /* of a task that a model is told of */
static u64 burst;   /* how far apart its windows are; 0: it counts all the time */

/* One instruction a ns, a branch in ten; of a model a cycle a ns. */
static u64 given_read(void *ctx, struct task *task, u32 what)
{
	u64 ns = ((struct fake_task *)task_host(task))->counter;

	(void)ctx;
	if (what == CPU_MODELED + MODEL_INSTRUCTIONS)
		return ns / insn_ns;
	ns = burst ? ns - ns % burst : ns;
	if (what >= CPU_MODELED)
		return moment ? moment : ns;
	return what == CPU_INSTRUCTIONS ? 500 + ns : ns / 10;
}

static struct armed *armed_of(const struct event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(armed); i++)
		if (armed[i].event == event)
			return &armed[i];
	return NULL;
}

static void given_arm(void *ctx, struct event *event, struct task *task, u32 what, u64 next,
		      u64 period)
{
	struct armed *a = armed_of(event);

	(void)ctx;
	if (!a)
		a = armed_of(NULL);
	ASSERT(a);
	*a = (struct armed){event, task, what, next, period};
	arms++;
}

static void given_disarm(void *ctx, struct event *event, struct task *task)
{
	struct armed *a = armed_of(event);

	(void)ctx;
	ASSERT(a);
	EXPECT(a->task == task);
	*a = (struct armed){0};
}

static bool windows; /* the model sees no more */

static bool given_estimated(void *ctx)
{
	(void)ctx;
	return windows;
}

static const struct pmu_source source = {
	.read = given_read,
	.estimated = given_estimated,
	.have = BIT(CPU_WHAT_MAX) - 1,
	.arm = given_arm,
	.disarm = given_disarm,
};

static struct cpu_pmu_config config;

static void setup(void)
{
	memset(armed, 0, sizeof(armed));
	arms = 0;
	f = fake_new(1);
	fake_exit(f, 100);
	config.source = &source;
	EXPECT_EQ(cpu_pmu_new(f->core, &config, &pmu), 0);
	fake_add_task(f, 100, 100);
}

static void teardown(void)
{
	fake_free(f);
	cpu_pmu_free(pmu);
	for (size_t i = 0; i < ARRAY_SIZE(armed); i++)
		EXPECT(!armed[i].event);
}

static struct pe_attr sampling(u64 period)
{
	return (struct pe_attr){.type = PERF_TYPE_HARDWARE,
				.config = PERF_COUNT_HW_INSTRUCTIONS,
				.size = PE_ATTR_SIZE_VER8,
				.exclude_kernel = 1,
				.sample_period = period,
				.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD};
}

/* What a guest does: runs @ns, stops at each of its places, and goes on by itself. */
static void run(u64 ns)
{
	for (; ns; ns--) {
		fake_advance(f, 1);
		for (size_t i = 0; i < ARRAY_SIZE(armed); i++) {
			struct armed *a = &armed[i];
			struct sample_facts facts = {.task = a->task, .cpumode = 2};

			if (!a->event || given_read(NULL, a->task, a->what) != a->next)
				continue;
			facts.sample.ip = a->next;
			a->next += a->period;
			(void)!source_period_reached(a->event, &facts, f->throttle);
		}
		core_settle(f->core);
	}
}

static int samples(int fd)
{
	int n = 0;

	while (fake_take_type(f, fd, PERF_RECORD_SAMPLE))
		n++;
	return n;
}

static int open_mapped(const struct pe_attr *attr, int group)
{
	int fd = fake_open(f, attr, 0, -1, group);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 9, true), 0);
	return fd;
}

TEST(count_by_period)
{
	struct pe_attr attr = sampling(100);
	int fd;

	setup();
	fd = open_mapped(&attr, -1);
	EXPECT_EQ(armed_of(fake_event(f, fd))->next, 600);
	run(1000);
	for (u64 i = 1; i <= 10; i++) {
		const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);

		ASSERT(rec);
		EXPECT_EQ(rec->sample.ip, 500 + 100 * i);
		EXPECT_EQ(rec->sample.period, 100);
	}
	/* It went on by itself. */
	EXPECT_EQ(arms, 1);
	/* Off, and on again: what was left is still left. */
	run(30);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT(!armed_of(fake_event(f, fd)));
	run(500);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(armed_of(fake_event(f, fd))->next, 500 + 1530 + 70);
	run(70);
	EXPECT_EQ(samples(fd), 1);
	EXPECT_EQ(fake_count(f, fd), 1100);
	teardown();
}

/* Of a task that runs on while it is told that it is to stop elsewhere. */
TEST(told_late)
{
	struct sample_facts facts = {.cpumode = 2};
	struct pe_attr attr = sampling(100);
	struct event *event;
	int fd;

	setup();
	fd = open_mapped(&attr, -1);
	event = fake_event(f, fd);
	facts.task = fake_task(f, 100)->task;
	/* Off while it has not told yet, or is just there: it tells when it is on again. */
	for (u64 i = 0; i < 2; i++) {
		fake_advance(f, i ? 90 : 110);
		fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
		fake_advance(f, 1000);
		fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
		EXPECT_EQ(armed_of(event)->next, i ? 2700 : 1600);
		EXPECT(source_period_reached(event, &facts, false));
		EXPECT(!source_period_reached(event, &facts, false));
		EXPECT_EQ(samples(fd), 1);
	}
	EXPECT_EQ(armed_of(event)->next, 2700);
	/* Several at once. */
	fake_advance(f, 350);
	facts.periods = 3;
	EXPECT(source_period_reached(event, &facts, false));
	EXPECT_EQ(samples(fd), 3);
	run(60);
	EXPECT_EQ(samples(fd), 0);
	/* What is forced begins anew. */
	fake_advance(f, 50);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &attr.sample_period, 8), 0);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	run(99);
	EXPECT_EQ(samples(fd), 0);
	run(1);
	EXPECT_EQ(samples(fd), 1);
	teardown();
}

/* A look at the count in between changes nothing. */
TEST(read_in_between)
{
	struct pe_attr attr = sampling(100);
	int fd;

	setup();
	fd = open_mapped(&attr, -1);
	for (int i = 0; i < 50; i++) {
		run(7);
		EXPECT_EQ(fake_count(f, fd), 7 * (i + 1));
	}
	EXPECT_EQ(samples(fd), 3);
	EXPECT_EQ(arms, 1);
	teardown();
}

TEST(several)
{
	struct pe_attr attr = sampling(30);
	int a, b, c;

	setup();
	a = open_mapped(&attr, -1);
	attr.sample_period = 50;
	b = open_mapped(&attr, a);
	attr.sample_period = 5;
	attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	c = open_mapped(&attr, -1);
	run(600);
	EXPECT_EQ(samples(a), 20);
	EXPECT_EQ(samples(b), 12);
	EXPECT_EQ(samples(c), 12);
	core_check(f->core);
	teardown();
}

/* Copies are armed on their own tasks. */
TEST(inherited)
{
	struct pe_attr attr = sampling(100);
	struct event *child;
	int fd;

	setup();
	attr.inherit = 1;
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 9, true), 0);
	fake_fork(f, 100, 101, false);
	child = list_first(&fake_event(f, fd)->children, struct event, child_link);
	ASSERT(armed_of(child));
	EXPECT(armed_of(child)->task == fake_task(f, 101)->task);
	EXPECT_EQ(armed_of(child)->next, 600);
	run(250);
	fake_exit(f, 101);
	EXPECT(!armed_of(child));
	run(100);
	EXPECT_EQ(samples(fd), 2 + 3);
	teardown();
}

TEST(limits_and_frequencies)
{
	struct pe_attr attr = sampling(100);
	u64 period = 40;
	int fd, n;

	setup();
	attr.disabled = 1;
	fd = open_mapped(&attr, -1);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 2), 0);
	run(500);
	EXPECT_EQ(samples(fd), 2);
	EXPECT_EQ(fake_count(f, fd), 200);
	EXPECT(!armed_of(fake_event(f, fd)));
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 0), 0);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, 8), 0);
	run(400);
	EXPECT_EQ(samples(fd), 10);
	event_unmap(fake_event(f, fd));
	fake_close(f, fd);
	attr.disabled = 0;
	attr.freq = 1;
	attr.sample_freq = 100000;
	fd = open_mapped(&attr, -1);
	run(200000);
	n = samples(fd);
	EXPECT(n > 15 && n < 40);
	EXPECT(armed_of(fake_event(f, fd))->period > 9000);
	teardown();
}

/* Cycles of a model, @freq times in a second. */
static int open_cycles(u64 freq)
{
	static const struct machine toy = {.core = {.width = 1, .mhz = 1000}};
	struct pe_attr attr = sampling(freq);

	config.machine = "toy";
	config.modeled = &toy;
	config.machine_samples = true;
	setup();
	f->throttle = false;
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	attr.freq = 1;
	return open_mapped(&attr, -1);
}

static void close_cycles(void)
{
	teardown();
	config = (struct cpu_pmu_config){0};
	moment = 0;
}

/* What samples cost is no time of the program: else they would come the oftener. */
TEST(frequency_of_a_slow_program)
{
	int fd;

	insn_ns = 1;
	fd = open_cycles(100000);
	run(400000);
	EXPECT(armed_of(fake_event(f, fd))->period > 9000);
	EXPECT(armed_of(fake_event(f, fd))->period < 11000);
	close_cycles();
	insn_ns = 500;
	fd = open_cycles(100000);
	run(3000000);
	EXPECT(armed_of(fake_event(f, fd))->period > 90000);
	EXPECT(armed_of(fake_event(f, fd))->period < 110000);
	close_cycles();
}

/* Nor where it sees windows, by what it takes then. */
TEST(frequency_of_a_slow_program_in_windows)
{
	int fd;

	insn_ns = 50;
	windows = true;
	fd = open_cycles(100000);
	run(3000000);
	EXPECT(armed_of(fake_event(f, fd))->period > 90000);
	EXPECT(armed_of(fake_event(f, fd))->period < 110000);
	close_cycles();
	windows = false;
}

/* Those that have ended by now. */
static void tell_all(struct event *event, struct sample_facts *facts)
{
	struct armed *a = armed_of(event);
	u64 now = given_read(NULL, facts->task, CPU_MODELED + MODEL_CPU_CYCLES);

	while (a->next <= now) {
		moment = a->next;
		a->next += a->period;
		EXPECT(source_period_reached(event, facts, false));
	}
	moment = 0;
	core_settle(f->core);
}

/* Eight periods are told of at once, and come as often as if they were not. */
TEST(frequency_told_late)
{
	struct sample_facts facts = {.cpumode = 2};
	struct event *event;
	int fd;

	insn_ns = 1;
	fd = open_cycles(100000);
	event = fake_event(f, fd);
	facts.task = fake_task(f, 100)->task;
	for (u32 i = 0; i < 200; i++) {
		tell_all(event, &facts);
		fake_advance(f, 80000);
	}
	EXPECT(armed_of(event)->period > 8000);
	EXPECT(armed_of(event)->period < 12000);
	close_cycles();
}

/* It counts in windows, further apart than ticks, of which it tells in some pieces. */
TEST(frequency_in_windows)
{
	struct sample_facts facts = {.cpumode = 2};
	struct event *event;
	int fd;

	insn_ns = 1;
	burst = 9000000;
	fd = open_cycles(2000);
	event = fake_event(f, fd);
	facts.task = fake_task(f, 100)->task;
	for (u32 i = 0; i < 1000; i++) {
		tell_all(event, &facts);
		fake_advance(f, 1000000);
	}
	EXPECT(armed_of(event)->period > 400000);
	EXPECT(armed_of(event)->period < 600000);
	close_cycles();
	burst = 0;
}

/* What no counter of a task can tell the time of. */
TEST(who_cannot)
{
	struct pe_attr attr = sampling(100);

	setup();
	attr.precise_ip = 3;
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	/* Of what never happens there is no sample. */
	attr.exclude_user = 1;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	EXPECT_EQ(arms, 1);
	attr.exclude_user = 0;
	attr.sigtrap = attr.remove_on_exec = 1;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	attr.sigtrap = 0;
	attr.sample_period = 0;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EINVAL, PRECISE_COUNT);
	teardown();
}

/* Among records of other types. */
static int samples_among(int fd)
{
	const struct ap_record *rec;
	int n = 0;

	while ((rec = fake_take(f, fd)))
		n += rec->type == PERF_RECORD_SAMPLE;
	return n;
}

/* Each task that is there has periods of its own, and the CPU's event counts all of them. */
TEST(samples_of_a_cpu)
{
	struct pe_attr attr = sampling(100);
	struct task *elsewhere;
	u64 period = 50;
	int fd, counting;

	setup();
	attr.inherit = attr.comm = attr.disabled = 1;
	attr.sample_id_all = 1;
	fd = fake_open(f, &attr, -1, 0, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 9, true), 0);
	run(500);
	EXPECT_EQ(arms, 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	run(1050);
	EXPECT_EQ(samples_among(fd), 10);
	EXPECT_EQ(fake_count(f, fd), 1050);
	core_check(f->core);

	/* A child, a stranger, and one on another CPU. */
	EXPECT(fake_fork(f, 100, 101, false));
	fake_add_task(f, 102, 102);
	elsewhere = fake_add_task(f, 103, 103);
	task_sched_out(elsewhere);
	task_sched_in(elsewhere, 1);
	core_check(f->core);
	run(200);
	EXPECT_EQ(samples_among(fd), 6);
	EXPECT_EQ(fake_count(f, fd), 1050 + 600);
	task_sched_out(elsewhere);
	task_sched_in(elsewhere, 0);
	run(100);
	EXPECT_EQ(samples_among(fd), 4);
	/* Side-band is told once. */
	task_named(fake_task(f, 101)->task, "x", false);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_COMM));
	EXPECT(!fake_take(f, fd));

	/* An exec ends nothing, and the end of a task adds nothing to the count. */
	task_exec(fake_task(f, 101)->task);
	fake_exit(f, 102);
	fake_exit(f, 101);
	task_sched_out(elsewhere);
	EXPECT_EQ(fake_count(f, fd), 1050 + 600 + 400);
	EXPECT_EQ(samples_among(fd), 0);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, 8), 0);
	run(100);
	EXPECT_EQ(samples_among(fd), 2);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	run(100);
	EXPECT_EQ(samples_among(fd), 0);

	/* It takes no counter of a task's, so it counts itself beside all that are left. */
	attr.sample_period = 0;
	attr.disabled = 0;
	counting = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	run(100);
	EXPECT_EQ(fake_count(f, counting), 100);
	core_check(f->core);
	event_unmap(fake_event(f, fd));
	fake_close(f, fd);
	for (size_t i = 0; i < ARRAY_SIZE(armed); i++)
		EXPECT(!armed[i].event);
	teardown();
}

/* The next sample's number of events, and the counts of two. */
static bool next_counts(int fd, u64 *words)
{
	const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);

	if (!rec || rec->sample.read.len > 6 * 8)
		return false;
	memcpy(words, rec->sample.read.bytes, rec->sample.read.len);
	return true;
}

/* What samples of a CPU's group say was counted is what tasks have told [SAMP-08, SAMP-10]. */
TEST(counts_in_samples_of_a_cpu)
{
	struct pe_attr attr = sampling(100);
	u64 words[6];
	int fd, member, late, n = 0;

	setup();
	attr.sample_type |= PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	fd = fake_open(f, &attr, -1, 0, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 9, true), 0);
	attr.sample_period = 0;
	attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	attr.sample_type = 0;
	member = fake_open(f, &attr, -1, 0, fd);
	EXPECT(member >= 0);
	core_check(f->core);
	run(250);
	fake_add_task(f, 102, 102);
	core_check(f->core);
	run(200);
	while (next_counts(fd, words)) {
		n++;
		EXPECT_EQ(words[0], 2);
		EXPECT(words[1] >= (u64)n * 50 && words[1] <= 450);
		EXPECT_EQ(words[2], n * 100);
		EXPECT_EQ(words[3], event_id(fake_event(f, fd)));
		EXPECT(words[4] >= (u64)n * 10 - 1 && words[4] <= (u64)n * 10);
		EXPECT_EQ(words[5], event_id(fake_event(f, member)));
	}
	EXPECT_EQ(n, 6);
	EXPECT_EQ(fake_count(f, member), 65);

	/* What a task that ends has not told yet the next sample has. */
	fake_exit(f, 102);
	core_check(f->core);
	run(100);
	EXPECT(next_counts(fd, words));
	EXPECT_EQ(words[2], 700);
	/* A member more, of tasks that are there; and one that leads itself from here on. */
	late = fake_open(f, &attr, -1, 0, fd);
	EXPECT(late >= 0);
	core_check(f->core);
	run(100);
	EXPECT(next_counts(fd, words) == false);
	event_unmap(fake_event(f, fd));
	fake_close(f, fd);
	core_check(f->core);
	fake_close(f, late);
	fake_close(f, member);
	teardown();
}

/* Of a cgroup's event of a CPU those tasks have samples that are in the cgroup [FLAG-03]. */
TEST(samples_of_a_cgroup)
{
	struct pe_attr attr = sampling(100);
	struct cgroup *root, *inner;
	struct task *task;
	int fd;

	setup();
	root = cgroup_new(f->core, NULL, 1);
	inner = cgroup_new(f->core, root, 2);
	f->cgroup_fds[0] = inner;
	task = fake_task(f, 100)->task;
	task_set_cgroup(task, root);
	fd = fake_open_as(f, 100, &attr, 3000, 0, -1, OPEN_FLAG_PID_CGROUP);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 9, true), 0);
	run(500);
	EXPECT_EQ(samples_among(fd), 0);
	task_set_cgroup(task, inner);
	core_check(f->core);
	run(500);
	EXPECT_EQ(samples_among(fd), 5);
	EXPECT_EQ(fake_count(f, fd), 500);
	/* One beside it is there at the same time, and is not of it. */
	task_set_cgroup(fake_add_task(f, 102, 102), root);
	core_check(f->core);
	run(500);
	EXPECT_EQ(samples_among(fd), 5);
	EXPECT_EQ(fake_count(f, fd), 1000);
	task_set_cgroup(task, root);
	run(500);
	EXPECT_EQ(samples_among(fd), 0);
	EXPECT_EQ(fake_count(f, fd), 1000);
	teardown();
}

static void collect(void *arg, const char *path, const char *text)
{
	if (!strcmp(path, "caps/max_precise"))
		*(const char **)arg = text;
}

TEST(how_precise)
{
	const char *text = NULL;

	setup();
	pmu_files(pmu, collect, &text);
	EXPECT_STREQ(text, "3\n");
	teardown();
}

/* [BR-03, BR-04] */
TEST(branch_stacks_that_there_are_not)
{
	struct pe_attr attr = {.type = PERF_TYPE_HARDWARE,
			       .config = PERF_COUNT_HW_INSTRUCTIONS,
			       .size = sizeof(attr),
			       .sample_period = 1000,
			       .sample_type = PERF_SAMPLE_BRANCH_STACK,
			       .exclude_kernel = 1,
			       .exclude_hv = 1};
	int fd;

	setup();
	for (u32 bit = 0; bit < 20; bit++) {
		u64 kind = 1ull << bit;

		attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
					  kind;
		fd = fake_open(f, &attr, 0, -1, -1);
		if (kind == PE_SAMPLE_BRANCH_COUNTERS) {
			EXPECT_REFUSED(f, fd, -EINVAL, VIRTUAL_BRANCH_COUNTERS);
		} else if (bit >= PERF_SAMPLE_BRANCH_ANY_SHIFT &&
			   bit <= PERF_SAMPLE_BRANCH_COND_SHIFT) {
			EXPECT_REFUSED(f, fd, -EINVAL, CALL_STACK_ALONE);
		} else if (fd < 0) {
			TEST_FAIL("bit %u: %d", bit, fd);
		} else {
			fake_close(f, fd);
		}
	}
	teardown();
}
