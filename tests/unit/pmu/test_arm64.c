/* The arm64-shaped PMU on any machine: the ARM rows. */
#include "unit/test.h"

#include "pmu/arm64.h"
#include "pmu/drivers.h"
#include "unit/core/fake.h"

/* One row of the truth table: exclude bits as "ukhHG", and what must come out as "012ab". */
struct row {
	const char *exclude; /* u user, k kernel, v hv, h host, g guest */
	const char *counted; /* 0 1 2: el0 el1 el2; a b: guest el0, el1 */
};

static struct pe_attr excluding(const char *letters)
{
	return (struct pe_attr){
		.exclude_user = strchr(letters, 'u') != NULL,
		.exclude_kernel = strchr(letters, 'k') != NULL,
		.exclude_hv = strchr(letters, 'v') != NULL,
		.exclude_host = strchr(letters, 'h') != NULL,
		.exclude_guest = strchr(letters, 'g') != NULL,
	};
}

static const char *counted(const struct arm64_modes *m)
{
	static char word[8];
	int n = 0;

	if (m->el0)
		word[n++] = '0';
	if (m->el1)
		word[n++] = '1';
	if (m->el2)
		word[n++] = '2';
	if (m->guest_el0)
		word[n++] = 'a';
	if (m->guest_el1)
		word[n++] = 'b';
	word[n] = '\0';
	return word;
}

static void check_rows(const struct row *rows, size_t n, struct arm64_env env)
{
	for (size_t i = 0; i < n; i++) {
		struct pe_attr attr = excluding(rows[i].exclude);
		struct arm64_modes m = arm64_modes(&attr, &env);

		if (strcmp(counted(&m), rows[i].counted) != 0)
			TEST_FAIL("vhe %d guest %d exclude \"%s\": \"%s\", expected \"%s\"",
				  env.vhe, env.guest, rows[i].exclude, counted(&m),
				  rows[i].counted);
	}
}

TEST(host_with_vhe)
{
	static const struct row
		rows[] =
			{
				{"", "02ab"},  {"u", "2b"}, /* [ARM-01] */
				{"k", "0a"},                /* EL1 and EL2 [ARM-02] */
				{"v", "02ab"},              /* ignored [ARM-04] */
				{"kv", "0a"},  {"uk", ""},  {"uv", "2b"},
				{"h", "ab"}, /* neither EL0 nor EL2 [ARM-09] */
				{"g", "02"}, /* no EL1 [ARM-09] */
				{"hg", ""},    {"uh", "b"}, {"ug", "2"},
				{"kh", "a"},   {"kg", "0"}, {"vh", "ab"},
				{"vg", "02"},  {"ukv", ""}, {"kvh", "a"},
			};

	check_rows(rows, ARRAY_SIZE(rows), (struct arm64_env){.vhe = true});
}

TEST(host_without_vhe)
{
	static const struct row rows[] =
		{
			{"", "012ab"}, {"u", "12b"}, {"k", "02a"}, {"v", "01ab"}, /* [ARM-05] */
			{"kv", "0a"},  {"uk", "2"},  {"uv", "1b"}, {"ukv", ""},
			{"h", "ab"}, /* EL2 dropped [ARM-08] */
			{"g", "012"},  {"hg", ""},   {"kg", "02"}, {"vg", "01"},
			{"uh", "b"},   {"kh", "a"},  {"vh", "ab"}, {"kvg", "0"},
		};

	check_rows(rows, ARRAY_SIZE(rows), (struct arm64_env){0});
}

/* In a guest EL2 is never counted and exclude_hv means nothing [ARM-03, ARM-06, ARM-10]. */
TEST(guest)
{
	static const struct row rows[] = {
		{"", "01ab"}, {"u", "1b"}, {"k", "0a"}, {"v", "01ab"}, {"kv", "0a"},
		{"h", "ab"},  {"g", "01"}, {"uk", ""},  {"uv", "1b"},
	};

	check_rows(rows, ARRAY_SIZE(rows), (struct arm64_env){.guest = true});
	/* That a guest's processor has VHE changes nothing: its kernel is at EL1. */
	check_rows(rows, ARRAY_SIZE(rows), (struct arm64_env){.guest = true, .vhe = true});
}

/* All 32 x 3 combinations against the document's sentences, each taken by itself [ARM-07]. */
TEST(every_combination_keeps_to_the_sentences)
{
	static const char letters[] = "ukvhg";

	for (int env_nr = 0; env_nr < 3; env_nr++)
		for (int bits = 0; bits < 32; bits++) {
			struct arm64_env env = {.vhe = env_nr == 1, .guest = env_nr == 2};
			char exclude[6] = "", *end = exclude;
			struct arm64_modes m;
			struct pe_attr attr;

			for (int b = 0; b < 5; b++)
				if (bits & 1 << b)
					*end++ = letters[b];
			attr = excluding(exclude);
			m = arm64_modes(&attr, &env);
			if (attr.exclude_user)
				EXPECT(!m.el0 && !m.guest_el0);
			if (attr.exclude_kernel)
				EXPECT(!m.el1 && !m.guest_el1 && (!env.vhe || !m.el2));
			if (attr.exclude_hv && !env.vhe)
				EXPECT(!m.el2);
			if (attr.exclude_host)
				EXPECT(!m.el0 && !m.el1 && !m.el2);
			if (attr.exclude_guest)
				EXPECT(!m.guest_el0 && !m.guest_el1);
			if (env.guest)
				EXPECT(!m.el2);
			if (env.vhe)
				EXPECT(!m.el1 && !m.event_switched && !m.blackout);
			else
				EXPECT(!m.el0_switched);
			/* Nothing to switch where both sides count the same. */
			if (attr.exclude_host == attr.exclude_guest)
				EXPECT(!m.event_switched && !m.el0_switched);
		}
}

TEST(switching_and_blackout)
{
	struct arm64_env vhe = {.vhe = true}, plain = {0};
	struct pe_attr host = excluding("g"), all = excluding(""), no_hv = excluding("vg");

	/* [ARM-08, ARM-09] */
	EXPECT(arm64_modes(&host, &vhe).el0_switched);
	EXPECT(!arm64_modes(&host, &vhe).event_switched);
	EXPECT(arm64_modes(&host, &plain).event_switched);
	EXPECT(!arm64_modes(&all, &plain).event_switched);
	/* [ARM-11] */
	EXPECT(arm64_modes(&all, &plain).blackout);
	EXPECT(!arm64_modes(&no_hv, &plain).blackout);
	EXPECT(!arm64_modes(&all, &vhe).blackout);
}

/* [ARM-21, ARM-22, ARM-23] */
TEST(threshold_steps)
{
	/* Per cycle: 0, 1, 2, 3. By compare, with threshold 2. */
	static const u32 expected[4][4] = {
		[ARM64_NOT_EQUAL] = {0, 1, 0, 3},
		[ARM64_EQUAL] = {0, 0, 2, 0},
		[ARM64_AT_LEAST] = {0, 0, 2, 3},
		[ARM64_LESS] = {0, 1, 0, 0},
	};

	for (u32 compare = 0; compare < 4; compare++)
		for (u32 n = 0; n < 4; n++) {
			struct arm64_threshold t = {.value = 2,
						    .compare = (enum arm64_compare)compare};

			EXPECT_EQ(arm64_threshold_step(&t, n), expected[compare][n]);
			/* Counting cycles: 1 on each that meets the test, those with 0 included. */
			t.count = true;
			EXPECT_EQ(arm64_threshold_step(&t, n), compare == ARM64_NOT_EQUAL  ? n != 2
							       : compare == ARM64_EQUAL    ? n == 2
							       : compare == ARM64_AT_LEAST ? n >= 2
											   : n < 2);
			/* 0 switches it all off. */
			t.value = 0;
			EXPECT_EQ(arm64_threshold_step(&t, n), n);
		}
}

/* A machine: on cycle i, (i % 13) occurrences of any event but cycles, all of it at EL0. */
static u64 cycles_run;
static u64 start_at;

static u64 machine_value(void *ctx, struct task *task, u32 cpu, u32 code,
			 const struct arm64_modes *modes, const struct arm64_threshold *threshold)
{
	u64 sum = start_at;

	(void)ctx, (void)task, (void)cpu;
	if (!modes->el0)
		return 0;
	for (u64 i = 0; i < cycles_run; i++)
		sum += arm64_threshold_step(threshold,
					    code == ARM64_EVENT_CPU_CYCLES ? 1 : (u32)(i % 13));
	return sum;
}

static struct fake *f;
static struct pmu *pmu;
static struct arm64_pmu_config config;

static void setup(void)
{
	f = fake_new(1);
	fake_exit(f, 100);
	config.value = machine_value;
	if (!config.counters)
		config.counters = 6;
	EXPECT_EQ(arm64_pmu_new(f->core, &config, &pmu), 0);
	fake_add_task(f, 100, 100);
	cycles_run = 0;
	start_at = 0;
}

static void teardown(void)
{
	fake_free(f);
	arm64_pmu_free(pmu);
	config = (struct arm64_pmu_config){0};
}

static struct pe_attr arm_attr(u64 code, u64 config1)
{
	return (struct pe_attr){.type = (u32)pmu->type,
				.size = PE_ATTR_SIZE_VER8,
				.config = code,
				.config1 = config1,
				.exclude_kernel = 1,
				.exclude_hv = 1};
}

static int open_arm(u64 code, u64 config1, int group)
{
	struct pe_attr attr = arm_attr(code, config1);

	return fake_open(f, &attr, 0, -1, group);
}

static s32 idx(int fd)
{
	return fake_event(f, fd)->hw.idx;
}

TEST(generic_ids)
{
	struct pe_attr attr;

	setup();
	attr = arm_attr(0, 0);
	attr.type = PERF_TYPE_HARDWARE;
	/* Named by the upper half; ref-cycles is the one that is mapped to nothing. */
	for (u64 id = 0; id < 12; id++) {
		int fd;

		attr.config = (u64)pmu->type << 32 | id;
		fd = fake_open(f, &attr, 0, -1, -1);
		EXPECT_EQ(fd < 0 ? fd : 0, id > 9 ? -EINVAL : id == 9 ? -ENOENT : 0);
		EXPECT_EQ(core_refusal(f->core)->cause, id > 9    ? CAUSE_HARDWARE_ID
							: id == 9 ? CAUSE_ARM64_GENERIC
								  : CAUSE_NONE);
	}
	EXPECT_REFUSED(f, open_arm(ARM64_EVENT_CHAIN, 0, -1), -EINVAL, ARM64_CHAIN);
	teardown();
}

/* `long` on 32-bit counters takes a pair, whose number is the odd one's [ARM-17, ARM-19]. */
TEST(chaining)
{
	int a, b, c, d;

	setup();
	a = open_arm(0x08, 0, -1);
	EXPECT_EQ(idx(a), 0);
	b = open_arm(0x08, ARM64_LONG, -1);
	EXPECT_EQ(idx(b), 3);
	c = open_arm(0x08, ARM64_LONG, -1);
	EXPECT_EQ(idx(c), 5);
	/* 1 is free, but no pair is. */
	d = open_arm(0x08, ARM64_LONG, -1);
	EXPECT_EQ(fake_event(f, d)->state, EVENT_INACTIVE);
	fake_close(f, d);
	d = open_arm(0x08, 0, -1);
	EXPECT_EQ(idx(d), 1);
	core_check(f->core);
	teardown();
	config.long_events = true;
	setup();
	a = open_arm(0x08, ARM64_LONG, -1);
	b = open_arm(0x08, ARM64_LONG, -1);
	EXPECT_EQ(idx(a), 0);
	EXPECT_EQ(idx(b), 1);
	teardown();
}

TEST(groups_that_can_never_fit)
{
	int leader;

	setup();
	leader = open_arm(0x08, ARM64_LONG, -1);
	EXPECT(open_arm(0x08, ARM64_LONG, leader) >= 0);
	EXPECT(open_arm(0x08, ARM64_LONG, leader) >= 0);
	EXPECT_REFUSED(f, open_arm(0x08, ARM64_LONG, leader), -EINVAL, GROUP_ARM64);
	EXPECT_REFUSED(f, open_arm(0x08, 0, leader), -EINVAL, GROUP_ARM64);
	/* The cycle counter is one more. */
	EXPECT(open_arm(ARM64_EVENT_CPU_CYCLES, 0, leader) >= 0);
	EXPECT_REFUSED(f, open_arm(ARM64_EVENT_CPU_CYCLES, 0, leader), -EINVAL, GROUP_ARM64);
	teardown();
}

/* Whatever the counter's width, the count has 64 bits [DES-01]. */
TEST(widths)
{
	int narrow, chained, cycles;

	setup();
	start_at = 0xfffffffb;
	narrow = open_arm(0x08, 0, -1);
	chained = open_arm(0x08, ARM64_LONG, -1);
	cycles = open_arm(ARM64_EVENT_CPU_CYCLES, 0, -1);
	EXPECT_EQ(idx(cycles), ARM64_CYCLE_IDX);
	cycles_run = 13;
	EXPECT_EQ(fake_event(f, narrow)->hw.prev, 0xfffffffb);
	EXPECT_EQ(fake_count(f, narrow), 78);
	EXPECT_EQ(fake_event(f, narrow)->hw.prev, 73);
	EXPECT_EQ(fake_count(f, chained), 78);
	EXPECT_EQ(fake_event(f, chained)->hw.prev, 0x100000049ull);
	EXPECT_EQ(fake_count(f, cycles), 13);
	/* Every 32-bit wrap that was read in time is in the count. */
	for (int i = 0; i < 10; i++) {
		start_at += 0xf0000000;
		fake_count(f, narrow);
	}
	EXPECT_EQ(fake_count(f, narrow), 78 + 10 * 0xf0000000ull);
	teardown();
}

/* [FILE-08] */
TEST(user_access)
{
	struct perf_event_mmap_page *page;
	struct pe_attr attr;
	int fd;

	setup();
	/* The sysctl is off: opens, but the page shows no index [ARM-12, ARM-14]. */
	fd = open_arm(0x08, ARM64_RDPMC, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	page = fake_page(f, fd);
	EXPECT_EQ(page->index, 0);
	arm64_pmu_set_user_access(pmu, true);
	fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0);
	EXPECT_EQ(page->index, 1);
	EXPECT_EQ(page->cap_user_rdpmc, 1);
	EXPECT_EQ(page->pmc_width, 32); /* [ARM-20] */
	event_unmap(fake_event(f, fd));
	fd = open_arm(ARM64_EVENT_CPU_CYCLES, ARM64_RDPMC | ARM64_LONG, -1);
	EXPECT(fd >= 0); /* cycles excepted [ARM-18] */
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	page = fake_page(f, fd);
	EXPECT_EQ(page->index, 32);
	EXPECT_EQ(page->pmc_width, 64);
	event_unmap(fake_event(f, fd));
	/* A second one has no other counter to go to. */
	fd = open_arm(ARM64_EVENT_CPU_CYCLES, ARM64_RDPMC | ARM64_LONG, -1);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_INACTIVE);
	EXPECT_REFUSED(f, open_arm(0x08, ARM64_RDPMC | ARM64_LONG, -1), -EOPNOTSUPP,
		       ARM64_RDPMC_LONG);
	/* Not asked for: no index whatever the sysctl says. */
	fd = open_arm(0x08, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	page = fake_page(f, fd);
	EXPECT_EQ(page->index, 0);
	EXPECT_EQ(page->cap_user_rdpmc, 0);
	/* Tasks only [ARM-13]. */
	attr = arm_attr(0x08, ARM64_RDPMC);
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, -1), -EINVAL, ARM64_RDPMC_TASK);
	teardown();
	config.long_events = true;
	setup();
	EXPECT(open_arm(0x08, ARM64_RDPMC | ARM64_LONG, -1) >= 0);
	teardown();
}

/* Big and little cores [ARM-16]. */
TEST(heterogeneous)
{
	struct pe_attr attr;
	int fd;

	config.cpus = BIT(1);
	setup();
	attr = arm_attr(0x08, 0);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, 0, -1), -ENOENT, PMU_OTHER_CORE);
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, -1), -ENOENT, PMU_OTHER_CORE);
	EXPECT(fake_open(f, &attr, -1, 1, -1) >= 0);
	fd = fake_open(f, &attr, 0, -1, -1);
	fake_advance(f, 100);
	task_sched_in(fake_task(f, 100)->task, 1);
	fake_advance(f, 10);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 110);
	EXPECT_EQ(f->words[2], 10);
	/* Waiting for the right core is no lack of counters. */
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	attr.config1 = ARM64_RDPMC;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = (u64)pmu->type << 32 | PERF_COUNT_HW_INSTRUCTIONS;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, ARM64_RDPMC_TYPE);
	teardown();
}

TEST(thresholds)
{
	int slots, walks, plain;

	config.threshold_max = 0xff;
	setup();
	/* The document's example [ARM-25]. */
	slots = open_arm(0x3f, ARM64_THRESHOLD(2) | ARM64_TH_COMPARE(ARM64_AT_LEAST), -1);
	walks = open_arm(0x34, ARM64_THRESHOLD(10) | ARM64_TH_COMPARE(ARM64_LESS) | ARM64_TH_COUNT,
			 -1);
	/* Off: the other fields mean nothing. */
	plain = open_arm(0x3f, ARM64_TH_COMPARE(ARM64_LESS) | ARM64_TH_COUNT, -1);
	cycles_run = 13;
	EXPECT_EQ(fake_count(f, slots), 77);
	EXPECT_EQ(fake_count(f, walks), 10);
	EXPECT_EQ(fake_count(f, plain), 78);
	EXPECT(open_arm(0x3f, ARM64_THRESHOLD(255), -1) >= 0);
	EXPECT_REFUSED(f, open_arm(0x3f, ARM64_THRESHOLD(256), -1), -EINVAL, ARM64_THRESHOLD);
	EXPECT_CONTAINS(fake_why(f), "threshold_max");
	/* Cycles with a threshold are no matter for the cycle counter. */
	EXPECT_EQ(idx(open_arm(ARM64_EVENT_CPU_CYCLES, ARM64_THRESHOLD(1), -1)), 4);
	teardown();
}

/* [ARM-24] */
TEST(no_thresholds)
{
	setup();
	EXPECT_REFUSED(f, open_arm(0x3f, ARM64_THRESHOLD(1), -1), -EINVAL, ARM64_THRESHOLD);
	EXPECT(open_arm(0x3f, ARM64_TH_COUNT, -1) >= 0);
	teardown();
	config.threshold_max = 255;
	config.aarch32 = true;
	setup();
	EXPECT_REFUSED(f, open_arm(0x3f, ARM64_THRESHOLD(1), -1), -EINVAL, ARM64_THRESHOLD);
	teardown();
}

static u64 no_value(void *ctx, struct task *task, u32 what)
{
	(void)ctx, (void)task, (void)what;
	return 0;
}

/*
 * What the first PMU that was asked said is no reason for what the one that took the event lacks.
 */
TEST(the_reason_is_the_right_pmu_s)
{
	static const struct pmu_source source = {.read = no_value, .have = 3};
	struct cpu_pmu_config cpu_config = {.source = &source};
	struct pe_attr attr;
	struct pmu *cpu;

	f = fake_new(1);
	fake_exit(f, 100);
	EXPECT_EQ(cpu_pmu_new(f->core, &cpu_config, &cpu), 0);
	config.value = machine_value;
	config.counters = 6;
	EXPECT_EQ(arm64_pmu_new(f->core, &config, &pmu), 0);
	fake_add_task(f, 100, 100);
	attr = arm_attr(PERF_COUNT_HW_CPU_CYCLES, 0);
	attr.type = PERF_TYPE_HARDWARE;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	attr.sample_period = 1000;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_SAMPLING);
	EXPECT_CONTAINS(fake_why(f), "armv8_pmuv3 cannot sample");
	fake_free(f);
	arm64_pmu_free(pmu);
	cpu_pmu_free(cpu);
	config = (struct arm64_pmu_config){0};
}

static void collect(void *arg, const char *path, const char *text)
{
	char *all = arg;

	strcat(strcat(strcat(all, path), "="), text);
}

TEST(files)
{
	char all[2048] = "";

	config.threshold_max = 0xff;
	setup();
	pmu_files(pmu, collect, all);
	EXPECT_CONTAINS(all, "caps/threshold_max=0x000000ff\n"); /* [ARM-24] */
	EXPECT_CONTAINS(all, "format/long=config1:0\n");
	EXPECT_CONTAINS(all, "format/rdpmc=config1:1\n");
	EXPECT_CONTAINS(all, "format/threshold_count=config1:2\n");
	EXPECT_CONTAINS(all, "format/threshold_compare=config1:3-4\n");
	EXPECT_CONTAINS(all, "format/threshold=config1:5-16\n");
	teardown();
}

TEST(other_refusals)
{
	struct pe_attr attr;
	int fd;

	setup();
	attr = arm_attr(0x08, 0);
	attr.exclude_idle = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_IDLE);
	attr = arm_attr(0x08, 0);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, NO_BRANCHES);
	attr = arm_attr(0x08, 0);
	attr.exclude_user = 1;
	fd = fake_open(f, &attr, 0, -1, -1);
	cycles_run = 100;
	EXPECT_EQ(fake_count(f, fd), 0);
	teardown();
}
