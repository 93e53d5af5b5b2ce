/* The virtual cpu PMU: which requests it takes, what it counts, --counters, files. */
#include "unit/test.h"

#include "pmu/drivers.h"
#include "unit/core/fake.h"

static struct fake *f;
static struct pmu *pmu;
static struct cpu_pmu_config config;
static u32 reads;

/* Two instructions a ns, one branch in five instructions. */
static u64 given_read(void *ctx, struct task *task, u32 what)
{
	u64 ns = ((struct fake_task *)task_host(task))->counter;

	(void)ctx;
	reads++;
	switch (what) {
	case CPU_INSTRUCTIONS: return 1000 + 2 * ns;
	case CPU_BRANCHES: return 50 + 2 * ns / 5;
	default: return 7 + (what - 1) * ns;
	}
}

static const struct pmu_source source = {
	.read = given_read,
	.have = BIT(CPU_WHAT_MAX) - 1,
};

/* Drivers come before tasks, so task 100 makes way for a moment. */
static void setup(void)
{
	int err;

	f = fake_new(1);
	fake_exit(f, 100);
	config.source = &source;
	err = cpu_pmu_new(f->core, &config, &pmu);
	EXPECT_EQ(err, 0);
	fake_add_task(f, 100, 100);
	reads = 0;
}

static void teardown(void)
{
	fake_free(f);
	cpu_pmu_free(pmu);
	config = (struct cpu_pmu_config){0};
}

static struct pe_attr attr_for(u32 type, u64 what)
{
	return (struct pe_attr){
		.type = type, .size = PE_ATTR_SIZE_VER8, .config = what, .exclude_kernel = 1};
}

static int try_attr(struct pe_attr attr)
{
	int fd = fake_open(f, &attr, 0, -1, -1);

	if (fd < 0)
		return fd;
	fake_close(f, fd);
	return 0;
}

static int try_config(u32 type, u64 what)
{
	return try_attr(attr_for(type, what));
}

/* What depends on how the machine executes code is refused [HW-00..09]. */
TEST(generic_ids)
{
	setup();
	for (u64 id = 0; id < 10; id++)
		EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, id),
			  id == PERF_COUNT_HW_INSTRUCTIONS ||
					  id == PERF_COUNT_HW_BRANCH_INSTRUCTIONS
				  ? 0
				  : -ENOENT);
	EXPECT_CONTAINS(fake_why(f), "--pmu=kernel");
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HARDWARE, 10), -EINVAL, HARDWARE_ID);
	/* By type in the upper half: the cpu PMU is 4, software cannot. */
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, 4ull << 32 | 1), 0);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HARDWARE, 1ull << 32 | 1), -ENOENT, PMU_EXTENDED);
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, 77ull << 32 | 1), 0);
	teardown();
}

/* In range or not, none is counted [CACHE-01..04]. */
TEST(cache_ids)
{
	setup();
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x10000), -ENOENT, VIRTUAL_CACHE);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x102), -ENOENT, VIRTUAL_CACHE);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 7), -EINVAL, CACHE_ID);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x300), -EINVAL, CACHE_ID);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x20000), -EINVAL, CACHE_ID);
	teardown();
}

TEST(raw_codes)
{
	setup();
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0xc0), 0);
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0x5300c0), 0); /* as libpfm4 writes it */
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0xc4), 0);
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0x100), 0);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_RAW, 0xc2), -ENOENT, VIRTUAL_RAW);
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0x1c4), -ENOENT); /* an Atom's would be another */
	EXPECT_REFUSED(f, try_config(PERF_TYPE_RAW, 0x10000c0), -ENOENT, VIRTUAL_RAW_FIELDS);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_RAW, 0x3c), -ENOENT, VIRTUAL_RAW);
	teardown();
	config.vendor = CPU_VENDOR_AMD;
	setup();
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0xc0), 0);
	EXPECT_EQ(try_config(PERF_TYPE_RAW, 0xc2), 0);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_RAW, 0xc4), -ENOENT, VIRTUAL_RAW);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_RAW, 0x1000000c0), -ENOENT, VIRTUAL_RAW);
	EXPECT_CONTAINS(fake_why(f), "AMD");
	teardown();
}

/* What @code counts in 1000 ns, as given_read() tells it; or the errno. */
static s64 count_code(u64 code)
{
	struct pe_attr attr = attr_for(PERF_TYPE_RAW, code);
	int fd = fake_open(f, &attr, 0, -1, -1);
	s64 count;

	if (fd < 0)
		return fd;
	fake_advance(f, 1000);
	count = (s64)fake_count(f, fd);
	fake_close(f, fd);
	return count;
}

/* A row is a code of a model's own tables, and which of the translator's counts it is. */
TEST(raw_codes_of_models)
{
	static const struct {
		const char *pmu; /* NULL: Zen */
		u64 code;
		s32 what; /* -1: there is no such code, or it cannot be told */
	} rows[] = {
		/* What rr asks for, with enable, interrupt, user and system bits. */
		{"skylake", 0x5301c4, CPU_CONDITIONAL},
		{"nehalem", 0x5301c4, CPU_CONDITIONAL},
		{"icelake", 0x5111c4, CPU_CONDITIONAL},
		{NULL, 0x5100d1, CPU_CONDITIONAL},
		{"westmere", 0x1c4, CPU_CONDITIONAL},
		{"westmere", 0x2c4, CPU_CALLS},
		{"westmere", 0x8c4, -1},
		{"sandybridge", 0x4c4, CPU_BRANCHES},
		{"haswell", 0x2c4, CPU_CALLS},
		{"broadwell", 0x8c4, CPU_RETURNS},
		{"skylake", 0x10c4, -1}, /* not taken */
		{"skylake", 0x11c4, -1},
		{"skylake", 0x80c4, -1},
		{"icelake", 0x1c4, CPU_TAKEN},
		{"sapphire_rapids", 0x1c4, CPU_TAKEN},
		{"sapphire_rapids", 0x2c4, CPU_CALLS},
		{"sapphire_rapids", 0x8c4, CPU_RETURNS},
		{"sapphire_rapids", 0x80c4, CPU_INDIRECT},
		{"sapphire_rapids", 0x4c4, -1},
		{"of tomorrow", 0x1c4, -1},
		{NULL, 0xc8, CPU_RETURNS},
		{NULL, 0xcc, -1},
		{NULL, 0xc4, -1}, /* all that were taken */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s64 expected = rows[i].what < 0               ? -ENOENT
			       : rows[i].what == CPU_BRANCHES ? 400
							      : (rows[i].what - 1) * 1000;

		config.pmu_name = rows[i].pmu;
		config.vendor = rows[i].pmu ? CPU_VENDOR_INTEL : CPU_VENDOR_AMD;
		config.is_zen = !rows[i].pmu;
		setup();
		if (count_code(rows[i].code) != expected)
			TEST_FAIL("%#llx of %s is not %lld", (unsigned long long)rows[i].code,
				  rows[i].pmu ? rows[i].pmu : "Zen", (long long)expected);
		teardown();
	}
	/* Before Zen 0xd1 was another event, and returns were the same. */
	config.vendor = CPU_VENDOR_AMD;
	setup();
	EXPECT_EQ(count_code(0xd1), -ENOENT);
	EXPECT_EQ(count_code(0xc8), (CPU_RETURNS - 1) * 1000);
	teardown();
}

static void try_event(void *arg, const char *path, const char *text)
{
	unsigned int event, umask = 0;
	u32 *n = arg;

	if (strncmp(path, "events/", 7) != 0)
		return;
	++*n;
	if (sscanf(text, "event=%x,umask=%x", &event, &umask) < 1 ||
	    try_config(PERF_TYPE_RAW, umask << 8 | event))
		TEST_FAIL("%s: %s", path, text);
}

/* Each name in sysfs has a code that can be opened. */
TEST(names_of_codes)
{
	static const struct {
		const char *pmu;
		u32 names;
	} models[] = {
		{"skylake", 5}, {"nehalem", 4}, {"icelake", 7}, {"of tomorrow", 2}, {NULL, 4}};

	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		u32 n = 0;

		config.pmu_name = models[i].pmu;
		config.vendor = models[i].pmu ? CPU_VENDOR_INTEL : CPU_VENDOR_AMD;
		config.is_zen = !models[i].pmu;
		setup();
		pmu_files(pmu, try_event, &n);
		EXPECT_EQ(n, models[i].names);
		teardown();
	}
}

TEST(counts_of_a_task)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int instructions, branches;

	setup();
	fake_advance(f, 123);
	instructions = fake_open(f, &attr, 0, -1, -1);
	attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	branches = fake_open(f, &attr, 0, -1, instructions);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_count(f, instructions), 2000);
	EXPECT_EQ(fake_count(f, branches), 400);
	fake_ioctl(f, instructions, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_count(f, instructions), 2000);
	teardown();
}

/* A CPU's count is the sum of its tasks' while they are there. */
TEST(counts_of_a_cpu)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cpu0, cpu1, own;

	setup();
	fake_add_task(f, 200, 200);
	/* Without a cpu-wide event a migration reads nothing. */
	task_sched_in(fake_task(f, 200)->task, 1);
	task_sched_in(fake_task(f, 200)->task, 0);
	EXPECT_EQ(reads, 0);
	fake_advance(f, 10);
	cpu0 = fake_open(f, &attr, -1, 0, -1);
	fake_advance(f, 50);
	/* A second one does not disturb the first. */
	cpu1 = fake_open(f, &attr, -1, 1, -1);
	fake_advance(f, 50);
	own = fake_open(f, &attr, 200, -1, -1);
	EXPECT_EQ(fake_count(f, cpu0), 400);
	EXPECT_EQ(fake_count(f, cpu1), 0);
	task_sched_in(fake_task(f, 200)->task, 1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, cpu0), 420);
	EXPECT_EQ(fake_count(f, cpu1), 20);
	fake_exit(f, 200);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, cpu0), 440);
	EXPECT_EQ(fake_count(f, cpu1), 20);
	EXPECT_EQ(fake_count(f, own), 20);
	/* The sum over CPUs is the sum over tasks. */
	EXPECT_EQ(fake_count(f, cpu0) + fake_count(f, cpu1), 240 + 220);
	fake_close(f, cpu0);
	fake_close(f, cpu1);
	reads = 0;
	task_sched_in(fake_task(f, 100)->task, 1);
	EXPECT_EQ(reads, 0);
	teardown();
}

TEST(counts_of_a_cgroup)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct cgroup *root, *inner;
	int of_root, of_inner, all;

	setup();
	root = cgroup_new(f->core, NULL, 1);
	inner = cgroup_new(f->core, root, 2);
	f->cgroup_fds[0] = root;
	f->cgroup_fds[1] = inner;
	fake_add_task(f, 200, 200);
	fake_add_task(f, 300, 300);
	task_set_cgroup(fake_task(f, 100)->task, root);
	task_set_cgroup(fake_task(f, 200)->task, inner);
	of_root = fake_open_as(f, 100, &attr, 3000, 0, -1, OPEN_FLAG_PID_CGROUP);
	of_inner = fake_open_as(f, 100, &attr, 3001, 0, -1, OPEN_FLAG_PID_CGROUP);
	all = fake_open(f, &attr, -1, 0, -1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, of_root), 40);
	EXPECT_EQ(fake_count(f, of_inner), 20);
	EXPECT_EQ(fake_count(f, all), 60);
	fake_exit(f, 200);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, of_inner), 20);
	EXPECT_EQ(fake_count(f, of_root), 60);
	EXPECT_EQ(fake_count(f, all), 100);
	task_set_cgroup(fake_task(f, 300)->task, inner);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, of_inner), 40);
	EXPECT_EQ(fake_count(f, of_root), 100);
	core_check(f->core);
	teardown();
}

TEST(kernel_mode)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	setup();
	attr.exclude_kernel = 0;
	EXPECT_REFUSED(f, try_attr(attr), -EACCES, VIRTUAL_KERNEL);
	EXPECT_CONTAINS(fake_why(f), "--kernel-mode=ignore");
	attr.exclude_user = 1;
	EXPECT_REFUSED(f, try_attr(attr), -EACCES, VIRTUAL_KERNEL_ONLY);
	/* ENOENT wins: what cannot be counted in user mode either is no matter of rights. */
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	EXPECT_REFUSED(f, try_attr(attr), -ENOENT, VIRTUAL_MACHINE);
	teardown();
	config.kernel_mode = CPU_KERNEL_IGNORE;
	setup();
	attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	attr.exclude_kernel = 0;
	EXPECT_EQ(try_attr(attr), 0);
	attr.exclude_user = 1;
	EXPECT_REFUSED(f, try_attr(attr), -EOPNOTSUPP, VIRTUAL_KERNEL_ONLY);
	teardown();
}

/* [DES-09] */
TEST(modes_in_which_nothing_happens)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int nothing, guests;

	setup();
	attr.exclude_user = 1;
	nothing = fake_open(f, &attr, 0, -1, -1);
	attr.exclude_user = 0;
	attr.exclude_host = 1;
	guests = fake_open(f, &attr, 0, -1, -1);
	fake_advance(f, 100);
	EXPECT_EQ(fake_count(f, nothing), 0);
	EXPECT_EQ(fake_count(f, guests), 0);
	teardown();
}

TEST(what_it_cannot_do)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	setup();
	attr.precise_ip = 1;
	EXPECT_REFUSED(f, try_attr(attr), -EINVAL, PRECISE_COUNT);
	attr.sample_period = 1000;
	EXPECT_REFUSED(f, try_attr(attr), -EOPNOTSUPP, VIRTUAL_PRECISE);
	attr.precise_ip = 0;
	EXPECT_REFUSED(f, try_attr(attr), -EOPNOTSUPP, NO_SAMPLING);
	EXPECT_CONTAINS(fake_why(f), "cannot sample");
	attr.sample_period = 0;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	EXPECT_REFUSED(f, try_attr(attr), -EOPNOTSUPP, VIRTUAL_BRANCHES);
	teardown();
}

/* There may be thousands of them. */
TEST(tasks_have_memory_where_they_share_counters)
{
	setup();
	EXPECT(!pmu_task(pmu, fake_task(f, 100)->task));
	teardown();
	config.counters = 6;
	setup();
	EXPECT(pmu_task(pmu, fake_task(f, 100)->task));
	teardown();
}

TEST(limited_counters)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fds[7], leader;

	config.counters = 6;
	setup();
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (int i = 0; i < 7; i++)
		fds[i] = fake_open(f, &attr, 0, -1, -1);
	fake_advance(f, 7 * 4000000);
	for (int i = 0; i < 7; i++) {
		fake_read(f, fds[i]);
		EXPECT_EQ(f->words[1], 28000000);
		EXPECT_EQ(f->words[2], 24000000);
		EXPECT_EQ(f->words[0], 48000000);
		fake_close(f, fds[i]);
	}
	/* A group that never fits is refused; software members need no counter. */
	leader = fake_open(f, &attr, 0, -1, -1);
	for (int i = 0; i < 5; i++)
		EXPECT(fake_open(f, &attr, 0, -1, leader) >= 0);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_COUNTERS);
	EXPECT_CONTAINS(fake_why(f), "7 counters");
	attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);
	EXPECT(fake_open(f, &attr, 0, -1, leader) >= 0);
	teardown();
}

TEST(reserved_counters)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int leader;

	config.counters = 4;
	config.reserved = 1;
	setup();
	leader = fake_open(f, &attr, 0, -1, -1);
	for (int i = 0; i < 2; i++)
		fake_open(f, &attr, 0, -1, leader);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_ACTIVE);
	/* Passes, as with the NMI watchdog, and never runs. */
	EXPECT(fake_open(f, &attr, 0, -1, leader) >= 0);
	fake_ioctl(f, leader, PERF_EVENT_IOC_DISABLE, 0);
	fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_INACTIVE);
	core_check(f->core);
	teardown();
}

TEST(user_page_for_rdpmc)
{
	struct perf_event_mmap_page *page;
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
	int fd, cpu;

	config.rdpmc = CPU_RDPMC_MAPPED;
	setup();
	fake_advance(f, 50);
	fd = fake_open(f, &attr, 0, -1, -1);
	fake_advance(f, 50);
	EXPECT_EQ(fake_map(f, fd, 1, false), 0);
	page = fake_page(f, fd);
	EXPECT_EQ(page->index, CPU_BRANCHES + 1);
	EXPECT_EQ(page->pmc_width, 64);
	EXPECT_EQ(page->cap_user_rdpmc, 1);
	/* What rdpmc(index - 1) would give is what the source reads. */
	EXPECT_EQ((u64)page->offset + given_read(NULL, fake_task(f, 100)->task, page->index - 1),
		  20);
	fake_advance(f, 50);
	EXPECT_EQ((u64)page->offset + given_read(NULL, fake_task(f, 100)->task, page->index - 1),
		  40);
	EXPECT_EQ(fake_count(f, fd), 40);
	event_unmap(fake_event(f, fd));
	cpu = fake_open(f, &attr, -1, 0, -1);
	EXPECT_EQ(fake_map(f, cpu, 1, false), 0);
	page = fake_page(f, cpu);
	EXPECT_EQ(page->index, 0);
	EXPECT_EQ(page->cap_user_rdpmc, 0);
	/* It says what is for events of from now on [FILE-10]. */
	EXPECT_EQ(cpu_pmu_set_rdpmc(pmu, 0), 0);
	EXPECT_EQ(fake_map(f, fd, 1, false), 0);
	EXPECT_EQ(fake_page(f, fd)->index, CPU_BRANCHES + 1);
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_map(f, fd, 1, false), 0);
	EXPECT_EQ(fake_page(f, fd)->index, 0);
	EXPECT_EQ(fake_page(f, fd)->cap_user_rdpmc, 0);
	EXPECT_EQ(cpu_pmu_set_rdpmc(pmu, 3), -EINVAL);
	EXPECT_EQ(cpu_pmu_set_rdpmc(pmu, -1), -EINVAL);
	EXPECT_EQ(cpu_pmu_rdpmc(pmu), CPU_RDPMC_NEVER);
	EXPECT_EQ(cpu_pmu_set_rdpmc(pmu, 2), 0);
	EXPECT_EQ(cpu_pmu_rdpmc(pmu), CPU_RDPMC_ALWAYS);
	teardown();
}

static void collect(void *arg, const char *path, const char *text)
{
	char *all = arg;

	EXPECT(!*text || text[strlen(text) - 1] == '\n');
	strcat(all, path);
	strcat(all, "=");
	strcat(all, text);
}

TEST(files)
{
	char all[4096] = "";

	config.pmu_name = "skylake";
	setup();
	pmu_files(pmu, collect, all);
	EXPECT_CONTAINS(all, "type=4\n");
	EXPECT_CONTAINS(all, "perf_event_mux_interval_ms=4\n");
	EXPECT_CONTAINS(all, "format/event=config:0-7\n");
	/* [FILE-11] */
	EXPECT_CONTAINS(all, "format/pc=config:19\n");
	EXPECT_CONTAINS(all, "format/any=config:21\n");
	EXPECT_CONTAINS(all, "format/in_tx=config:32\n");
	EXPECT_CONTAINS(all, "format/in_tx_cp=config:33\n");
	EXPECT_CONTAINS(all, "format/offcore_rsp=config1:0-63\n");
	EXPECT_CONTAINS(all, "format/ldlat=config1:0-15\n");
	EXPECT_CONTAINS(all, "format/frontend=config1:0-23\n");
	EXPECT_CONTAINS(all, "events/instructions=event=0xc0\n");
	EXPECT_CONTAINS(all, "events/branch-instructions=event=0xc4\n");
	EXPECT_CONTAINS(all, "events/conditional_retired=event=0xc4,umask=0x1\n");
	EXPECT_CONTAINS(all, "caps/pmu_name=skylake\n");
	EXPECT_CONTAINS(all, "rdpmc=0\n");
	EXPECT(pmu_by_type(f->core, 4) == pmu);
	EXPECT(pmu_by_name(f->core, "cpu") == pmu);
	EXPECT(!pmu_by_name(f->core, "no such"));
	all[0] = '\0';
	pmu_files(f->software, collect, all);
	EXPECT_STREQ(all, "type=1\nperf_event_mux_interval_ms=4\nuevent=");
	teardown();
}

/* The translator's own names, by number; --counters is not about them. */
TEST(translator)
{
	struct pe_attr attr = attr_for(PE_TYPE_ANYPERF, CPU_CALLS);
	struct pmu *translator;
	char all[1024] = "";
	int calls, more[3];

	config.counters = 1;
	setup();
	fake_exit(f, 100);
	EXPECT_EQ(translator_pmu_new(f->core, &config, &translator), 0);
	fake_add_task(f, 100, 100);
	for (u64 what = 0; what < CPU_WHAT_MAX; what++)
		EXPECT_EQ(try_config(PE_TYPE_ANYPERF, what), 0);
	EXPECT_REFUSED(f, try_config(PE_TYPE_ANYPERF, CPU_WHAT_MAX), -EINVAL, CONFIG_UNKNOWN);
	attr.exclude_kernel = 0;
	EXPECT_REFUSED(f, try_attr(attr), -EACCES, VIRTUAL_KERNEL);
	attr.exclude_kernel = 1;
	calls = fake_open(f, &attr, 0, -1, -1);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = fake_open(f, &attr, 0, -1, calls);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_count(f, calls), 3000);
	EXPECT_EQ(fake_count(f, more[2]), 3000);
	pmu_files(translator, collect, all);
	EXPECT_CONTAINS(all, "type=16720\n");
	EXPECT_CONTAINS(all, "events/calls=event=0x4\n");
	fake_free(f);
	cpu_pmu_free(pmu);
	cpu_pmu_free(translator);
	config = (struct cpu_pmu_config){0};
}

TEST(registering)
{
	struct pmu *second;
	u32 n = 0;

	setup();
	EXPECT_REFUSED(f, cpu_pmu_new(f->core, &config, &second), -EEXIST, PMU_EXISTS);
	for (struct pmu *p = pmu_next(f->core, NULL); p; p = pmu_next(f->core, p))
		n++;
	EXPECT_EQ(n, 3);
	teardown();
	f = fake_new(1);
	config.source = &source;
	/* There is a task already, of which nobody would have told the driver. */
	EXPECT_REFUSED(f, cpu_pmu_new(f->core, &config, &second), -EBUSY, PMU_LATE);
	fake_free(f);
}
