/* Events of the virtual cpu PMU that a model of a machine counts: which there are, and who asks. */
#include <stdio.h>
#include <string.h>

#include "unit/test.h"

#include "abi/modeled.h"
#include "pmu/drivers.h"
#include "unit/core/fake.h"

static struct fake *f;
static struct pmu *pmu;
static struct cpu_pmu_config config;
static u32 reads, wants, wanted;
static const struct task *wanted_for;
static u32 open_for[7]; /* events, by bit of MODEL_WANTS */
static const struct machine toy = {
	.memory = {.latency = 200, .snoop = 100},
	.cache = {[MACHINE_L1D] = {.latency = 2}, [MACHINE_LL] = {.latency = 40}}};

/* Each counter at a pace of its own. */
static u64 given_read(void *ctx, struct task *task, u32 what)
{
	u64 ns = ((struct fake_task *)task_host(task))->counter;

	(void)ctx;
	reads++;
	return 1000 + (what + 1) * ns;
}

static void given_want(void *ctx, struct task *task, u32 parts, bool open)
{
	u32 now = 0;

	(void)ctx;
	wanted_for = task;
	EXPECT(parts && !(parts & ~MODEL_WANTS));
	for (u32 i = 0; i < ARRAY_SIZE(open_for); i++) {
		if (parts & BIT(i))
			open_for[i] += open ? 1 : (u32)-1;
		now |= open_for[i] ? BIT(i) : 0;
	}
	wants += now != wanted;
	wanted = now;
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

static const struct pmu_source source = {
	.read = given_read, .want = given_want, .arm = given_arm, .disarm = given_disarm};

static void setup(const char *machine)
{
	f = fake_new(2);
	fake_exit(f, 100);
	config.source = &source;
	config.machine = machine;
	config.modeled = machine ? &toy : NULL;
	EXPECT_EQ(cpu_pmu_new(f->core, &config, &pmu), 0);
	fake_add_task(f, 100, 100);
	reads = wants = wanted = 0;
	memset(open_for, 0, sizeof(open_for));
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

static int open_config(u32 type, u64 what, int leader)
{
	struct pe_attr attr = attr_for(type, what);

	return fake_open(f, &attr, 0, -1, leader);
}

static int try_config(u32 type, u64 what)
{
	int fd = open_config(type, what, -1);

	if (fd < 0)
		return fd;
	fake_close(f, fd);
	return 0;
}

/* What @fd counts in a microsecond, in terms of given_read(), and closes it; or the errno it is. */
static s64 count_of(int fd)
{
	s64 count;

	if (fd < 0)
		return fd;
	fake_advance(f, 1000);
	count = (s64)fake_count(f, fd);
	fake_close(f, fd);
	return count / 1000;
}

/* What an event counts in 1000 ns; given_read() says which counter that is. */
static s64 count_config(u32 type, u64 what)
{
	s64 count = count_of(open_config(type, what, -1));

	return count < 0 ? count : count - 1;
}

/* All ids, of which two are counted and not modeled [HW-00..09]. */
TEST(generic_ids)
{
	setup("toy");
	for (u32 id = 0; id < 10; id++)
		EXPECT_EQ(count_config(PERF_TYPE_HARDWARE, id),
			  id == PERF_COUNT_HW_INSTRUCTIONS          ? CPU_INSTRUCTIONS
			  : id == PERF_COUNT_HW_BRANCH_INSTRUCTIONS ? CPU_BRANCHES
								    : (s64)(CPU_MODELED + id));
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HARDWARE, 10), -EINVAL, HARDWARE_ID);
	teardown();
}

/* Without a machine they are what they were: refused with a reason. */
TEST(no_machine)
{
	setup(NULL);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HARDWARE, 0), -ENOENT, VIRTUAL_MACHINE);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0), -ENOENT, VIRTUAL_CACHE);
	EXPECT_EQ(wants, 0);
	teardown();
}

/* Each cell that happens in a machine [CACHE-01..04]. */
TEST(cache_ids)
{
	/* Per id, of read, write, prefetch. */
	static const char cells[MODEL_CACHE_IDS][4] = {"rwp", "r-p", "rwp", "rw-",
						       "r--", "r--", "rw-"};

	setup("toy");
	for (u32 id = 0; id < MODEL_CACHE_IDS; id++)
		for (u32 op = 0; op < MODEL_OPS; op++)
			for (u32 miss = 0; miss < 2; miss++) {
				u64 cell = id | op << 8 | miss << 16;

				EXPECT_EQ(count_config(PERF_TYPE_HW_CACHE, cell),
					  cells[id][op] == '-'
						  ? -ENOENT
						  : (s64)(CPU_MODELED +
							  model_cache_counter(id, op, miss)));
			}
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x101), -ENOENT, MODEL_CELL);
	EXPECT_CONTAINS(fake_why(f), "toy");
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 7), -EINVAL, CACHE_ID);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x300), -EINVAL, CACHE_ID);
	EXPECT_REFUSED(f, try_config(PERF_TYPE_HW_CACHE, 0x20000), -EINVAL, CACHE_ID);
	teardown();
}

/* What @code counts, in terms of given_read(): factors of (what + 1), summed; or the errno. */
static s64 count_code(u64 code)
{
	return count_of(open_config(PERF_TYPE_RAW, code, -1));
}

#define PACE(what)       ((s64)(what) + 1)
#define MODEL(name)      PACE(CPU_MODELED + MODEL_##name)
#define OF(id, op, miss) PACE(CPU_MODELED + model_cache_counter(MODEL_##id, MODEL_##op, miss))

/* Codes as Intel's and AMD's tables have them. */
TEST(raw_codes)
{
	const struct {
		const char *pmu; /* NULL: Zen */
		u64 code;
		s64 count;
	} rows[] = {
		{"skylake", 0x3c, MODEL(CPU_CYCLES)},
		{"skylake", 0x53003c, MODEL(CPU_CYCLES)},
		{"of tomorrow", 0x300, MODEL(REF_CYCLES)},
		{"nehalem", 0x13c, MODEL(BUS_CYCLES)},
		{"nehalem", 0x4f2e, MODEL(CACHE_REFERENCES)},
		{"icelake", 0x412e, MODEL(CACHE_MISSES)},
		{"icelake", 0xc5, MODEL(BRANCH_MISSES)},
		{"icelake", 0x11c5, MODEL(CONDITIONAL_MISSES)},
		{"icelake", 0x01c5, -ENOENT},
		{"skylake", 0x01c5, MODEL(CONDITIONAL_MISSES)},
		{"skylake", 0x10c4, PACE(CPU_CONDITIONAL) - PACE(CPU_TAKEN)},
		{"skylake", 0x20c4, PACE(CPU_BRANCHES) - PACE(CPU_CONDITIONAL) + PACE(CPU_TAKEN)},
		{"skylake", 0x81d0, OF(L1D, READ, 0)},
		{"skylake", 0x02d1, OF(L1D, READ, 1) - OF(LL, READ, 0)},
		{"skylake", 0x0151, OF(L1D, READ, 1) + OF(L1D, WRITE, 1) + OF(L1D, PREFETCH, 1)},
		{"skylake", 0x2424, MODEL(LL_FETCHES)},
		{"skylake", 0x0e49, OF(DTLB, WRITE, 1)},
		{"skylake", 0x100003c, -ENOENT}, /* cycles in which something happened once */
		{"skylake", 0x1a6, -ENOENT},     /* ports */
		{"of tomorrow", 0x2424, -ENOENT},
		{NULL, 0x76, MODEL(CPU_CYCLES)},
		{NULL, 0xc3, MODEL(BRANCH_MISSES)},
		{NULL, 0xc4, PACE(CPU_BRANCHES) - PACE(CPU_CONDITIONAL) + PACE(CPU_TAKEN)},
		{NULL, 0xff60, MODEL(CACHE_REFERENCES)},
		{NULL, 0x0964, MODEL(CACHE_MISSES)},
		{NULL, 0xe860, OF(L1D, READ, 1) + OF(L1D, WRITE, 1)},
		{NULL, 0x0864, OF(LL, READ, 0) + OF(LL, WRITE, 0)},
		{NULL, 0x0664, OF(L1I, READ, 1) - MODEL(LL_FETCHES)},
		{NULL, 0xff45,
		 MODEL(TLB2_HITS) - MODEL(ITLB2_HITS) + OF(DTLB, READ, 1) + OF(DTLB, WRITE, 1)},
		{NULL, 0x0729, OF(L1D, READ, 0) + OF(L1D, WRITE, 0)},
		{NULL, 0x0084, MODEL(ITLB2_HITS)},
		{NULL, 0x0f85, OF(ITLB, READ, 1)},
		{NULL, 0x1041, -ENOENT}, /* a bit that nobody counts */
		{NULL, 0xf960, OF(L1D, READ, 1) + OF(L1D, WRITE, 1) + OF(L1I, READ, 1)},
		{NULL, 0xff70, 0},
		{NULL, 0xff71, OF(LL, PREFETCH, 0) - OF(LL, PREFETCH, 1)},
		{NULL, 0x10000188e, OF(L1I, READ, 1)},
		{NULL, 0x100001f8e, OF(L1I, READ, 0)},
		{NULL, 0x20000188e, -ENOENT},
		{NULL, 0x1000000c2, -ENOENT},
		{NULL, 0x60, -ENOENT},
		{NULL, 0x100000076, -ENOENT},
		/* Of floating-point numbers; what is counted alone samples. */
		{NULL, 0x0f03, MODEL(FLOPS_ALL)},
		{NULL, 0x0303, MODEL(FLOPS_OF) + PACE(CPU_MODELED + MODEL_FLOPS_OF + MODEL_MUL)},
		{NULL, 0x1003, MODEL(FLOPS_BF16)},
		{NULL, 0x0803, PACE(CPU_MODELED + MODEL_FLOPS_OF + MODEL_FUSED)},
		{NULL, 0x07cb, MODEL(INSNS_FLOAT)},
		{NULL, 0x05cb, MODEL(INSNS_X87) + MODEL(INSNS_SSE)},
		{NULL, 0x08cb, -ENOENT},
		{"skylake", 0x01c7, PACE(CPU_MODELED + model_float_insns_counter(0, true))},
		{"skylake", 0x80c7, PACE(CPU_MODELED + model_float_insns_counter(3, false))},
		{"icelake", 0x03c7, 2 * MODEL(FLOAT_INSNS) + 1},
		{"skylake", 0x05c7, -ENOENT}, /* a sum without a name */
		{"haswell", 0x01c7, -ENOENT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s64 is;

		config.pmu_name = rows[i].pmu;
		config.vendor = rows[i].pmu ? CPU_VENDOR_INTEL : CPU_VENDOR_AMD;
		config.is_zen = !rows[i].pmu;
		setup("toy");
		is = count_code(rows[i].code);
		if (is != rows[i].count)
			TEST_FAIL("%#llx of %s is %lld and not %lld",
				  (unsigned long long)rows[i].code,
				  rows[i].pmu ? rows[i].pmu : "Zen", (long long)is,
				  (long long)rows[i].count);
		teardown();
	}
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

/* Zen 1 has bits for each type. */
TEST(operations_of_zen1)
{
	config.vendor = CPU_VENDOR_AMD;
	config.is_zen = config.is_zen1 = true;
	setup("toy");
	EXPECT_EQ(count_code(0x0103), PACE(CPU_MODELED + model_flops_counter(MODEL_ADD, false)));
	EXPECT_EQ(count_code(0x8003), PACE(CPU_MODELED + model_flops_counter(MODEL_FUSED, true)));
	EXPECT_EQ(count_code(0x0f03),
		  PACE(CPU_MODELED + model_flops_counter(MODEL_ADD, false)) +
			  PACE(CPU_MODELED + model_flops_counter(MODEL_MUL, false)) +
			  PACE(CPU_MODELED + model_flops_counter(MODEL_DIV, false)) +
			  PACE(CPU_MODELED + model_flops_counter(MODEL_FUSED, false)));
	EXPECT_EQ(count_code(0xff03), MODEL(FLOPS_ALL));
	EXPECT_EQ(count_code(0x76), MODEL(CPU_CYCLES));
	teardown();
}

static int open_loads(u64 ldlat, u64 sample_type, int leader)
{
	struct pe_attr attr = attr_for(PERF_TYPE_RAW, 0x1cd);

	attr.config1 = ldlat;
	attr.sample_type = sample_type;
	attr.sample_period = sample_type ? 100 : 0;
	return fake_open(f, &attr, 0, -1, leader);
}

static s64 count_loads(u64 ldlat)
{
	return count_of(open_loads(ldlat, 0, -1));
}

/* Loads that take as many cycles as config1 says. */
TEST(loads_with_a_latency)
{
	config.pmu_name = "skylake";
	config.machine_samples = true;
	setup("toy");
	EXPECT_EQ(count_loads(0), OF(L1D, READ, 0));
	EXPECT_EQ(count_loads(3), OF(L1D, READ, 0));
	EXPECT_EQ(count_loads(4), MODEL(SLOW_LOADS));
	EXPECT_EQ(count_loads(40), MODEL(SLOW_LOADS));
	EXPECT_EQ(count_loads(41), MODEL(SLOW_LOADS) + 1);
	EXPECT_EQ(count_loads(200), MODEL(SLOW_LOADS) + 2);
	EXPECT_EQ(count_loads(201), 0);
	EXPECT_EQ(count_loads(65535), 0);
	EXPECT_REFUSED(f, open_loads(65536, 0, -1), -EINVAL, CONFIG_UNKNOWN);
	EXPECT_EQ(count_code(0x82d0), OF(L1D, WRITE, 0));
	EXPECT_EQ(count_code(0x02cd), -ENOENT);
	/* Where they are sampled caches and TLBs are simulated, one by one. */
	wanted = 0;
	fake_close(f, open_loads(30, PERF_SAMPLE_DATA_SRC, -1));
	EXPECT_EQ(wanted, 0);
	EXPECT(open_loads(30, PERF_SAMPLE_DATA_SRC, -1) >= 0);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_CACHES | MODEL_TLBS | MODEL_EACH);
	teardown();
	config.pmu_name = "skylake";
	setup(NULL);
	EXPECT_EQ(count_loads(3), -ENOENT);
	teardown();
	config.pmu_name = "nehalem";
	setup("toy");
	EXPECT_EQ(count_code(0x100b), OF(L1D, READ, 0));
	EXPECT_EQ(count_loads(3), -ENOENT);
	teardown();
}

/* From Sapphire Rapids on the kernel wants another event beside those that tell where data was. */
TEST(loads_beside_another)
{
	int aux;

	config.pmu_name = "sapphire_rapids";
	config.machine_samples = true;
	setup("toy");
	EXPECT_REFUSED(f, open_loads(30, PERF_SAMPLE_DATA_SRC, -1), -ENODATA, LOADS_ALONE);
	EXPECT(open_loads(30, PERF_SAMPLE_ADDR, -1) >= 0);
	aux = open_config(PERF_TYPE_RAW, 0x8203, -1);
	EXPECT(aux >= 0);
	EXPECT(open_loads(30, PERF_SAMPLE_DATA_SRC, aux) >= 0);
	EXPECT_EQ(count_code(0x8203), 0);
	EXPECT_EQ(count_code(0x02cd), OF(L1D, WRITE, 0));
	teardown();
}

/* With a machine the kernel's names are there, each with a code that can be opened. */
TEST(names_of_codes)
{
	u32 n = 0;

	config.pmu_name = "skylake";
	setup("toy");
	pmu_files(pmu, try_event, &n);
	EXPECT_EQ(n, 5 + 6 + 2);
	teardown();
	config.vendor = CPU_VENDOR_AMD;
	config.is_zen = true;
	setup("toy");
	n = 0;
	pmu_files(pmu, try_event, &n);
	EXPECT_EQ(n, 4 + 6);
	teardown();
}

/*
 * A sum has a number of its own while an event counts it, and there is one for each that there is.
 */
TEST(sums)
{
	static const char *const pmus[] = {"nehalem", "skylake", "icelake", NULL};
	static int fds[65536];

	for (size_t p = 0; p < ARRAY_SIZE(pmus); p++) {
		u32 n = 0;

		config.pmu_name = pmus[p];
		config.vendor = pmus[p] ? CPU_VENDOR_INTEL : CPU_VENDOR_AMD;
		config.is_zen = !pmus[p];
		setup("toy");
		for (u64 code = 0; code < 65536; code++) {
			fds[n] = open_config(PERF_TYPE_RAW, code, -1);
			n += fds[n] >= 0;
		}
		EXPECT(n > 5 && wanted);
		for (u32 i = 0; i < n; i++)
			fake_close(f, fds[i]);
		EXPECT_EQ(wanted, 0);
		EXPECT_EQ(try_config(PERF_TYPE_RAW, 0xc0), 0);
		teardown();
	}
}

/* Parts of the model are asked for while an event needs them, and only then. */
TEST(parts_that_are_wanted)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	int misses, caches, walks;

	setup("toy");
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS), 0);
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS), 0);
	EXPECT_EQ(wants, 0);
	misses = open_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES);
	caches = open_config(PERF_TYPE_HW_CACHE, 0x10000, misses);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES | MODEL_CACHES);
	EXPECT_EQ(wants, 2);
	/* Another of the same changes nothing. */
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES), 0);
	EXPECT_EQ(wants, 2);
	walks = open_config(PERF_TYPE_HW_CACHE, 0x10003, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES | MODEL_CACHES | MODEL_TLBS);
	EXPECT_EQ(try_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES), 0);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES | MODEL_CACHES | MODEL_TLBS);
	EXPECT_EQ(wants, 5);
	fake_close(f, caches);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES | MODEL_TLBS);
	fake_close(f, walks);
	fake_close(f, misses);
	EXPECT_EQ(wanted, 0);
	/* What counts nothing needs nothing. */
	wants = 0;
	attr.exclude_user = 1;
	fake_close(f, fake_open(f, &attr, 0, -1, -1));
	EXPECT_EQ(wants, 0);
	teardown();
}

/* Who counts himself, or a thread beside him, may look at any time; who counts another does not. */
TEST(who_counts_whom)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
	int self, other, wide;

	setup("toy");
	fake_add_task(f, 101, 100);
	fake_add_task(f, 200, 200);
	f->perfmon = true;
	other = fake_open(f, &attr, 200, -1, -1);
	EXPECT(other >= 0);
	EXPECT_EQ(wanted, MODEL_BRANCHES);
	EXPECT(wanted_for && task_host(wanted_for) == fake_task(f, 200));
	wide = fake_open(f, &attr, -1, 0, -1);
	EXPECT(wide >= 0);
	EXPECT(!wanted_for);
	EXPECT_EQ(wanted, MODEL_BRANCHES);
	for (int tid = 100; tid <= 101; tid++) {
		self = fake_open(f, &attr, tid, -1, -1);
		EXPECT(self >= 0);
		EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES);
		fake_close(f, self);
		EXPECT_EQ(wanted, MODEL_BRANCHES);
	}
	fake_close(f, other);
	fake_close(f, wide);
	EXPECT_EQ(wanted, 0);
	/* The copies of a child are nobody's wish. */
	attr.inherit = 1;
	self = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES);
	EXPECT(wanted_for);
	fake_fork(f, 100, 300, false);
	EXPECT(!wanted_for);
	fake_close(f, self);
	EXPECT_EQ(wanted, 0);
	teardown();
}

/* A group of both kinds is on and off as one [HW-00, HW-01, HW-05]. */
TEST(group_of_both_kinds)
{
	int leader, cycles, misses;

	setup("toy");
	leader = open_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, -1);
	cycles = open_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, leader);
	misses = open_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, leader);
	fake_advance(f, 100);
	fake_ioctl(f, leader, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 100);
	EXPECT_EQ(fake_count(f, leader), 100);
	EXPECT_EQ(fake_count(f, cycles), 100 * (CPU_MODELED + 1));
	EXPECT_EQ(fake_count(f, misses), 100 * (CPU_MODELED + PERF_COUNT_HW_BRANCH_MISSES + 1));
	core_check(f->core);
	teardown();
}

/* A CPU's sum is kept of what somebody counts there, and of nothing else. */
TEST(counts_of_a_cpu)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
	const u64 pace = CPU_MODELED + PERF_COUNT_HW_BRANCH_MISSES + 1;
	int cpu0, cpu1;

	setup("toy");
	fake_add_task(f, 200, 200);
	fake_advance(f, 70);
	cpu0 = fake_open(f, &attr, -1, 0, -1);
	cpu1 = fake_open(f, &attr, -1, 1, -1);
	fake_advance(f, 100);
	reads = 0;
	task_sched_in(fake_task(f, 200)->task, 1);
	EXPECT(reads <= 4);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, cpu0), 210 * pace);
	EXPECT_EQ(fake_count(f, cpu1), 10 * pace);
	fake_exit(f, 200);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, cpu0), 220 * pace);
	EXPECT_EQ(fake_count(f, cpu1), 10 * pace);
	fake_close(f, cpu0);
	fake_close(f, cpu1);
	/* Who comes later is not told what was before. */
	task_sched_in(fake_task(f, 100)->task, 1);
	fake_advance(f, 10);
	cpu1 = fake_open(f, &attr, -1, 1, -1);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, cpu1), 5 * pace);
	teardown();
}

/* perf takes ENOENT of cycles as the cue to sample by cpu-clock. */
TEST(sampling)
{
	struct pe_attr attr = attr_for(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	struct pmu *translator;
	int fd;

	attr.sample_period = 1000;
	setup("toy");
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOENT, MODEL_SAMPLES);
	teardown();
	/* Another PMU that is asked as well does not say something else. */
	f = fake_new(1);
	fake_exit(f, 100);
	config.source = &source;
	config.machine = "toy";
	EXPECT_EQ(cpu_pmu_new(f->core, &config, &pmu), 0);
	EXPECT_EQ(translator_pmu_new(f->core, &config, &translator), 0);
	fake_add_task(f, 100, 100);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOENT, MODEL_SAMPLES);
	teardown();
	cpu_pmu_free(translator);
	config.machine_samples = true;
	setup("toy");
	wanted = 0;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_TIMING | MODEL_EACH);
	fake_close(f, fd);
	EXPECT_EQ(wanted, 0);
	/* Samples here and there are those of windows, if it happens often. */
	attr.sample_type = PERF_SAMPLE_IP;
	fake_add_task(f, 101, 101);
	attr.freq = 1;
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(wanted, MODEL_TIMING | MODEL_EACH);
	fake_close(f, fd);
	attr.config = PERF_COUNT_HW_BRANCH_MISSES;
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(wanted, MODEL_BRANCHES | MODEL_EACH);
	fake_close(f, fd);
	attr.sample_type = PERF_SAMPLE_ADDR;
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_BRANCHES | MODEL_EACH);
	fake_close(f, fd);
	/* With --call-graph=dwarf perf asks for addresses always. */
	attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 8192;
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(wanted, MODEL_BRANCHES | MODEL_EACH);
	fake_close(f, fd);
	attr.sample_stack_user = 0;
	attr.sample_type = 0;
	attr.config = PERF_COUNT_HW_CACHE_MISSES;
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_CACHES | MODEL_EACH);
	fake_close(f, fd);
	attr.freq = 0;
	/* What an access was is said as a whole; a sum has no samples. */
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_CACHES | MODEL_EACH);
	attr.sample_type = PERF_SAMPLE_DATA_SRC;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	EXPECT_EQ(wanted, MODEL_WHOLE | MODEL_CACHES | MODEL_TLBS | MODEL_EACH);
	teardown();
	config.vendor = CPU_VENDOR_AMD;
	config.is_zen = true;
	setup("toy");
	attr.type = PERF_TYPE_RAW;
	attr.config = 0x0143;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOENT, MODEL_SAMPLES);
	teardown();
}

/* IBS needs all of an access, as long as somebody has it open. */
TEST(ibs)
{
	struct pe_attr attr = attr_for(PE_TYPE_IBS, 0);
	struct pmu *other;
	int fd;

	setup("toy");
	fake_exit(f, 100);
	EXPECT_EQ(ibs_pmu_new(f->core, &config, &other), 0);
	fake_add_task(f, 100, 100);
	attr.sample_period = 1000;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(wanted, MODEL_CACHES | MODEL_TLBS | MODEL_EACH | MODEL_WHOLE);
	fake_close(f, fd);
	EXPECT_EQ(wanted, 0);
	teardown();
	ibs_pmu_free(other);
}

/* Only what the translator counts can be read by rdpmc. */
TEST(no_index_for_rdpmc)
{
	struct perf_event_mmap_page *page;
	int fd;

	config.rdpmc = CPU_RDPMC_MAPPED;
	setup("toy");
	fd = open_config(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1);
	EXPECT_EQ(fake_map(f, fd, 1, false), 0);
	page = fake_page(f, fd);
	EXPECT_EQ(page->index, 0);
	EXPECT_EQ(page->cap_user_rdpmc, 0);
	teardown();
}
