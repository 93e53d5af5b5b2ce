/* Event descriptions on the machines of tests/fixtures/. */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <unistd.h>

#include "lib/spec/nearest.h"
#include "lib/spec/spec-priv.h"

static struct ap_machine *m;
static struct ap_specs *specs;
static struct ap_error err;

/* Parses @text on @machine; the number of events, or the errno. */
static int parse(const char *machine, const char *text)
{
	int r;

	ap_specs_free(specs);
	specs = NULL;
	ap_machine_free(m);
	m = machine_of(machine);
	memset(&err, 0, sizeof(err));
	r = ap_specs_parse(&specs, m, text, &err);
	if (r && err.code != r)
		TEST_FAIL("\"%s\" gave %d, but the error says %d", text, r, err.code);
	if (r && !err.why[0])
		TEST_FAIL("\"%s\" gave %d without a reason", text, r);
	return r ? r : (int)ap_specs_count(specs);
}

static const struct ap_spec *spec(unsigned int i)
{
	return ap_specs_at(specs, i);
}

struct expected {
	const char *text;
	u32 type;
	u64 config, config1, config2, config3;
};

static void expect_attrs(const char *machine, const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pe_attr *a;

		if (parse(machine, e[i].text) != 1) {
			TEST_FAIL("\"%s\" on %s: %s", e[i].text, machine ? machine : "this machine",
				  err.why);
			continue;
		}
		a = attr_of(spec(0));
		if (a->type != e[i].type || a->config != e[i].config ||
		    a->config1 != e[i].config1 || a->config2 != e[i].config2 ||
		    a->config3 != e[i].config3)
			TEST_FAIL(
				"\"%s\": type %u config %#llx,%#llx,%#llx,%#llx, expected type %u "
				"%#llx,%#llx,%#llx,%#llx",
				e[i].text, a->type, (unsigned long long)a->config,
				(unsigned long long)a->config1, (unsigned long long)a->config2,
				(unsigned long long)a->config3, e[i].type,
				(unsigned long long)e[i].config, (unsigned long long)e[i].config1,
				(unsigned long long)e[i].config2, (unsigned long long)e[i].config3);
	}
}

/* Which type and config a name is [ATTR-01, ATTR-03]. */
TEST(generic_names_and_aliases)
{
	static const struct expected e[] = {
		{"cpu-cycles", 0, 0, 0, 0, 0},
		{"cycles", 0, 0, 0, 0, 0},
		{"instructions", 0, 1, 0, 0, 0},
		{"cache-references", 0, 2, 0, 0, 0},
		{"cache-misses", 0, 3, 0, 0, 0},
		{"branch-instructions", 0, 4, 0, 0, 0},
		{"branches", 0, 4, 0, 0, 0},
		{"branch-misses", 0, 5, 0, 0, 0},
		{"bus-cycles", 0, 6, 0, 0, 0},
		{"stalled-cycles-frontend", 0, 7, 0, 0, 0},
		{"idle-cycles-frontend", 0, 7, 0, 0, 0},
		{"stalled-cycles-backend", 0, 8, 0, 0, 0},
		{"idle-cycles-backend", 0, 8, 0, 0, 0},
		{"ref-cycles", 0, 9, 0, 0, 0},
		{"cpu-clock", 1, 0, 0, 0, 0},
		{"task-clock", 1, 1, 0, 0, 0},
		{"page-faults", 1, 2, 0, 0, 0},
		{"faults", 1, 2, 0, 0, 0},
		{"context-switches", 1, 3, 0, 0, 0},
		{"cs", 1, 3, 0, 0, 0},
		{"cpu-migrations", 1, 4, 0, 0, 0},
		{"migrations", 1, 4, 0, 0, 0},
		{"minor-faults", 1, 5, 0, 0, 0},
		{"major-faults", 1, 6, 0, 0, 0},
		{"alignment-faults", 1, 7, 0, 0, 0},
		{"emulation-faults", 1, 8, 0, 0, 0},
		{"dummy", 1, 9, 0, 0, 0},
		{"bpf-output", 1, 10, 0, 0, 0},
		{"cgroup-switches", 1, 11, 0, 0, 0},
		{"r1a8", 4, 0x1a8, 0, 0, 0},
		{"rffFF00001234abcd", 4, 0xffff00001234abcd, 0, 0, 0},
		{"r0x3c", 4, 0x3c, 0, 0, 0},
		{"4:0x1c2", 4, 0x1c2, 0, 0, 0},
		{"1:3", 1, 3, 0, 0, 0},
		{" cycles ", 0, 0, 0, 0, 0},
	};

	expect_attrs("amd", e, ARRAY_SIZE(e));
}

/* [CACHE-01, CACHE-02, CACHE-03] */
TEST(cache_names_in_every_spelling)
{
	static const struct {
		const char *names[5];
		unsigned int ops;
	} types[] = {
		{{"L1-dcache", "l1-d", "l1d", "L1-data"}, 7},
		{{"L1-icache", "l1-i", "l1i", "L1-instruction"}, 5},
		{{"LLC", "L2"}, 7},
		{{"dTLB", "d-tlb", "Data-TLB"}, 7},
		{{"iTLB", "i-tlb", "Instruction-TLB"}, 1},
		{{"branch", "bpu", "btb", "bpc"}, 1},
		{{"node"}, 7},
	};
	static const char *const ops[3][4] = {
		{"load", "loads", "read"},
		{"store", "stores", "write"},
		{"prefetch", "prefetches", "speculative-read", "speculative-load"}};
	static const char *const results[2][4] = {{"refs", "Reference", "ops", "access"},
						  {"misses", "miss"}};
	char text[96];

	for (unsigned int t = 0; t < ARRAY_SIZE(types); t++)
		for (int n = 0; n < 5 && types[t].names[n]; n++)
			for (unsigned int o = 0; o < 3; o++)
				for (int on = 0; on < 4 && ops[o][on]; on++)
					for (unsigned int r = 0; r < 2; r++)
						for (int rn = 0; rn < 4 && results[r][rn]; rn++) {
							u64 config = t | o << 8 | r << 16;
							int got;

							snprintf(text, sizeof(text), "%s-%s-%s",
								 types[t].names[n], ops[o][on],
								 results[r][rn]);
							/* The generic event has this name. */
							if (strcmp(text, "branch-misses") == 0)
								continue;
							got = parse("amd", text);
							if (!(types[t].ops & 1u << o)) {
								if (got != -ENOENT)
									TEST_FAIL("%s: %d", text,
										  got);
								continue;
							}
							if (got != 1 ||
							    attr_of(spec(0))->type != 3 ||
							    attr_of(spec(0))->config != config)
								TEST_FAIL("%s: %d", text, got);
							snprintf(text, sizeof(text), "%s-%s-%s",
								 types[t].names[n], results[r][rn],
								 ops[o][on]);
							if (parse("amd", text) != 1 ||
							    attr_of(spec(0))->config != config)
								TEST_FAIL("%s", text);
						}
	EXPECT_EQ(parse("amd", "L1-dcache"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 0);
	EXPECT_EQ(parse("amd", "LLC-misses"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 0x10002);
	EXPECT_EQ(parse("amd", "llc-STORES"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 0x102); /* [CACHE-04] */
	EXPECT_EQ(parse("amd", "iTLB-stores"), -ENOENT);
	EXPECT_CONTAINS(err.why, "no such operation");
	EXPECT_EQ(parse("amd", "L1-dcache-"), -ENOENT);
	EXPECT_EQ(parse("amd", "L1-dcache-load-store"), -ENOENT);
}

TEST(terms_by_the_format_files)
{
	static const struct expected hybrid[] = {
		{"cpu_core/event=0x3c,umask=1,cmask=0x10,inv,edge/", 4, 0x1084013c, 0, 0, 0},
		{"cpu_core/mem-loads,ldlat=30/", 4, 0x1cd, 30, 0, 0},
		{"cpu_core/mem-loads/", 4, 0x1cd, 3, 0, 0},
		{"cpu_core/cache-misses,umask=0x1/", 4, 0x12e, 0, 0, 0},
		{"cpu_core/config=0x123456789abcdef0/", 4, 0x123456789abcdef0, 0, 0, 0},
		{"cpu_core/config1=7,config2=8,config3=9/", 4, 0, 7, 8, 9},
		{"cpu_core/cycles/", 0, 0x400000000, 0, 0, 0},
		{"cpu_atom/L1-dcache-load-misses/", 3, 0xa00010000, 0, 0, 0},
		{"cpu_core/r1a8/", 4, 0x1a8, 0, 0, 0},
		{"cpu_core/ event=0x3c , umask = 1 /", 4, 0, 0, 0, 0},
		{"msr/tsc/", 25, 0, 0, 0, 0},
		{"intel_pt/cyc,psb_period=5,noretcomp=0/", 26, 0x5000002, 0, 0, 0},
		{"uprobe/retprobe,ref_ctr_offset=0x1234/", 7, 0x123400000001, 0, 0, 0},
	};
	static const struct expected amd[] = {
		{"cpu/event=0x1c2,umask=0x3/", 4, 0x1000003c2, 0, 0, 0},
		{"cpu/cache-references/", 4, 0x70000007d, 0, 0, 0},
		{"cpu/op_cache,umask=0x3/", 4, 0x20000038f, 0, 0, 0},
		{"amd_df/event=0x1fff,umask=0xabc/", 12, 0x1f0a00bcff, 0, 0, 0},
		{"cpu/branch-instructions/", 4, 0xc2, 0, 0, 0},
	};
	/* [ARM-25] */
	static const struct expected arm[] = {
		{"armv8_cortex_a720/stall_slot,threshold=2,threshold_compare=2/", 9, 0x3f, 0x50, 0,
		 0},
		{"armv8_cortex_a720/dtlb_walk,threshold=10,threshold_compare=3,threshold_count/", 9,
		 0x34, 0x15c, 0, 0},
		{"armv8_cortex_a720/event=0x11,long,rdpmc/", 9, 0x11, 3, 0, 0},
		{"armv8_cortex_a720/event=0x11,threshold=255/", 9, 0x11, 0x1fe0, 0, 0},
		{"armv8_cortex_a520/event=0x11,threshold=0/", 8, 0x11, 0, 0, 0},
		{"arm_spe_0/ts_enable,min_latency=100,inv_event_filter=0x10/", 10, 1, 0, 100, 0x10},
		{"arm_cmn_0/type=5,eventid=1,nodeid=8/", 11, 0x800010005, 0, 0, 0},
		{"arm_cmn_0/hnf_cache_miss/", 11, 0x10005, 0, 0, 0},
	};

	/* Blanks around a term are taken off, but "umask " is no term. */
	expect_attrs("intel-hybrid", hybrid, 9);
	expect_attrs("intel-hybrid", hybrid + 10, ARRAY_SIZE(hybrid) - 10);
	expect_attrs("amd", amd, ARRAY_SIZE(amd));
	expect_attrs("arm64-biglittle", arm, ARRAY_SIZE(arm));
}

TEST(values_that_do_not_fit_are_refused)
{
	static const struct {
		const char *machine, *text;
		int code;
		const char *why;
	} bad[] = {
		{"amd", "cpu/event=0x1000/", -EINVAL, "12 bits"},
		{"amd", "cpu/umask=256/", -EINVAL, "8 bits"},
		{"amd", "cpu/edge=2/", -EINVAL, "1 bit"},
		{"amd", "cpu/event=0x10000000000000000/", -EINVAL, "64 bits"},
		{"amd", "cpu/event=twelve/", -EINVAL, "not a decimal or 0x number"},
		{"amd", "cpu/event=-1/", -EINVAL, "not a decimal or 0x number"},
		{"amd", "cpu/event=/", -EINVAL, "not a decimal or 0x number"},
		{"amd", "cpu/op_cache/", -EINVAL, "add umask=..."},
		{"amd", "cpu/period=0x8000000000000000/", -EINVAL, "period"},
		{"amd", "cpu/name/", -EINVAL, "needs a value"},
		{"amd", "cpu/name=/", -EINVAL, "needs a value"},
		{"amd", "cpu/name=''/", -EINVAL, "needs a value"},
		{"amd", "cpu/config=/", -EINVAL, "needs a value"},
		{"amd", "cpu/event=1,,umask=2/", -EINVAL, "empty"},
		{"amd", "5000000000:1", -EINVAL, "32 bits"},
		{"amd", "cpu/branch_type=sideways/", -EINVAL, "any_call"},
		{"arm64-biglittle", "armv8_cortex_a720/stall_slot,threshold=256/", -EINVAL,
		 "threshold=256 is above the highest that armv8_cortex_a720 takes, 255"},
		{"arm64-biglittle", "armv8_cortex_a720/stall_slot,threshold=4096/", -EINVAL, "255"},
		{"arm64-biglittle", "armv8_cortex_a520/stall_slot,threshold=1/", -EINVAL,
		 "FEAT_PMUv3_TH"},
		{"arm64-biglittle", "armv8_cortex_a720/event=0x11,threshold_compare=4/", -EINVAL,
		 "2 bits"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].machine, bad[i].text) != bad[i].code)
			TEST_FAIL("%s: %s", bad[i].text, err.why);
		EXPECT_CONTAINS(err.why, bad[i].why);
	}
	EXPECT_EQ(parse("arm64-biglittle", "armv8_cortex_a720/stall_slot,threshold=256/"), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_BAD_VALUE);
	EXPECT_CONTAINS(err.remedy, "at most 255");
	EXPECT_EQ(parse("arm64-biglittle", "armv8_cortex_a520/stall_slot,threshold=1/"), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_UNSUPPORTED);
}

TEST(unknown_names_are_answered_with_the_nearest)
{
	static const struct {
		const char *machine, *text, *near;
	} bad[] = {
		{"amd", "cycels", "did you mean cycles?"},
		{"amd", "page-fault", "page-faults"},
		{"amd", "branchmisses", "branch-misses"},
		{"amd", "L1-dcache-laod-misses", "L1-dcache-load-misses"},
		{"amd", "cycels:u", "did you mean cycles?"},
		{"amd", "cpu/umsk=1/", "did you mean umask?"},
		{"amd", "cpu/perod=1/", "did you mean period?"},
		{"amd", "cpu/cache-mises/", "did you mean cache-misses?"},
		{"amd", "amd_d3/event=1/", "did you mean"},
		{"intel-hybrid", "cpu_cor/cycles/", "did you mean cpu_core?"},
		{"intel-hybrid", "sched:sched_swich", "did you mean sched_switch?"},
		{"intel-hybrid", "shced:sched_switch", "did you mean sched?"},
		{"intel-hybrid", "sched:nothing*", "tracepoint that matches"},
		{"arm64-biglittle", "stall_slt", "stall_slot"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(parse(bad[i].machine, bad[i].text), -ENOENT);
		EXPECT_EQ(err.cause, AP_CAUSE_UNKNOWN_EVENT);
		EXPECT_CONTAINS(err.why, bad[i].near);
	}
	/* Nothing is near: nothing is suggested. */
	EXPECT_EQ(parse("amd", "xyzzy"), -ENOENT);
	EXPECT(!strstr(err.why, "did you mean"));
	EXPECT_EQ(parse("amd", "sched:sched_switch"), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_TRACEFS);
	EXPECT_CONTAINS(err.remedy, "mount -t tracefs");
}

TEST(edit_distance)
{
	EXPECT_EQ(ap__edit_distance("cycles", "cycles"), 0);
	EXPECT_EQ(ap__edit_distance("cycels", "cycles"), 1); /* swapped */
	EXPECT_EQ(ap__edit_distance("cylces", "cycels"), 2);
	EXPECT_EQ(ap__edit_distance("", "abc"), 3);
	EXPECT_EQ(ap__edit_distance("abc", "abd"), 1);
	EXPECT_EQ(ap__edit_distance("abc", "ab"), 1);
	EXPECT_EQ(ap__edit_distance("L1-Dcache_loads", "l1-dcache-loads"), 0);
	EXPECT_EQ(ap__edit_distance("kitten", "sitting"), 3);
}

TEST(hybrid_machines_get_one_event_per_core_pmu)
{
	EXPECT_EQ(parse("intel-hybrid", "cycles"), 2);
	EXPECT_STREQ(spec(0)->name, "cpu_core/cycles/");
	EXPECT_EQ(attr_of(spec(0))->config, 0x400000000);
	EXPECT_STREQ(spec(0)->cpus, "0-15");
	EXPECT_EQ(attr_of(spec(1))->config, 0xa00000000);
	EXPECT_STREQ(spec(1)->cpus, "16-23");
	EXPECT(spec(0)->flags & AP_SPEC_EXPANDED);
	EXPECT_EQ(spec(1)->group, 1);

	EXPECT_EQ(parse("intel-hybrid", "r1a8:u"), 2);
	EXPECT_EQ(attr_of(spec(0))->type, 4);
	EXPECT_EQ(attr_of(spec(1))->type, 10);
	EXPECT_STREQ(spec(1)->name, "cpu_atom/r1a8/u");

	/* A group per PMU; what needs none stays with the first. */
	EXPECT_EQ(parse("intel-hybrid", "faults,{cycles,instructions,cs}:u,dummy"), 7);
	EXPECT_EQ(spec(1)->members, 3);
	EXPECT_STREQ(spec(2)->name, "cpu_core/instructions/u");
	EXPECT_STREQ(spec(3)->name, "cs:u");
	EXPECT_EQ(spec(3)->group, 1);
	EXPECT_EQ(spec(4)->members, 2);
	EXPECT_STREQ(spec(5)->name, "cpu_atom/instructions/u");
	EXPECT_EQ(spec(5)->group, 2);
	EXPECT_EQ(spec(6)->group, 3);

	EXPECT_EQ(parse("arm64-biglittle", "stall_slot"), 2);
	EXPECT_STREQ(spec(0)->name, "armv8_cortex_a520/stall_slot/");
	EXPECT_EQ(parse("amd", "cycles"), 1);
	EXPECT_STREQ(spec(0)->name, "cycles");
}

TEST(uncore_pmus)
{
	EXPECT_EQ(parse("intel-hybrid", "imc/cas_count_read/"), 2);
	EXPECT_EQ(attr_of(spec(1))->type, 21);
	EXPECT(spec(0)->uncore);
	EXPECT_STREQ(spec(0)->cpus, "0");
	EXPECT_STREQ(spec(0)->unit, "MiB");
	EXPECT(spec(0)->scale > 6.1e-5 && spec(0)->scale < 6.2e-5);
	EXPECT_EQ(parse("intel-hybrid", "uncore_imc_1/clockticks/"), 1);
	EXPECT_EQ(parse("intel-hybrid", "uncore_*/clockticks/"), 3);
	EXPECT_EQ(parse("intel-hybrid", "energy-pkg"), 1);
	EXPECT_STREQ(spec(0)->unit, "Joules");
	EXPECT_STREQ(spec(0)->pmu, "power");
	EXPECT_EQ(parse("arm64-biglittle", "arm_spe_0/ts_enable/"), 1);
	EXPECT(!spec(0)->uncore);
}

TEST(tracepoints)
{
	EXPECT_EQ(parse("intel-hybrid", "sched:sched_switch"), 1);
	EXPECT_EQ(attr_of(spec(0))->type, PERF_TYPE_TRACEPOINT);
	EXPECT_EQ(attr_of(spec(0))->config, 314);
	EXPECT_EQ(parse("intel-hybrid", "sched:*"), 3);
	EXPECT_EQ(parse("intel-hybrid", "*:sys_*_open*:u"), 3);
	EXPECT_STREQ(spec(0)->name, "syscalls:sys_enter_open:u");
	EXPECT(attr_of(spec(0))->exclude_kernel);
	EXPECT_EQ(parse("intel-hybrid", "{sched:sched_switch,cs}"), 2);
	EXPECT_EQ(parse("intel-hybrid", "sched:../sched/sched_switch"), -ENOENT);
	EXPECT_EQ(parse("intel-hybrid", "sched:sched_switch:x:y"), -EINVAL);
}

/* A generic event takes the terms that every event has, as with perf. */
TEST(terms_of_generic_events)
{
	EXPECT_EQ(parse("amd", "page-faults/name=foo/"), 1);
	EXPECT_STREQ(spec(0)->name, "foo");
	EXPECT_EQ(attr_of(spec(0))->type, PERF_TYPE_SOFTWARE);
	EXPECT_EQ(attr_of(spec(0))->config, PERF_COUNT_SW_PAGE_FAULTS);
	EXPECT_EQ(parse("amd", "{cs//u,instructions/period=5,name='a, b'/k}:S,faults"), 3);
	EXPECT_STREQ(spec(0)->name, "cs//uS");
	EXPECT(attr_of(spec(0))->exclude_kernel);
	EXPECT_STREQ(spec(1)->name, "a, b");
	EXPECT_EQ(attr_of(spec(1))->sample_period, 5);
	EXPECT(spec(1)->flags & AP_SPEC_PERIOD_GIVEN);
	EXPECT_EQ(parse("amd", "L1-dcache-loads/config1=7/,r1a8/percore/u"), 2);
	EXPECT_EQ(attr_of(spec(0))->config1, 7);
	EXPECT_EQ(attr_of(spec(1))->config, 0x1a8);
	EXPECT(spec(1)->flags & AP_SPEC_PERCORE);
	EXPECT_EQ(parse("amd", "page-faults/config=3/"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 3);
	EXPECT_EQ(parse("intel-hybrid", "cycles/period=9/u"), 2);
	EXPECT_STREQ(spec(1)->name, "cpu_atom/cycles/u");
	EXPECT_EQ(attr_of(spec(1))->sample_period, 9);

	/* So does an event of a PMU, and those of the PMU's format as well. */
	EXPECT_EQ(parse("amd", "op_cache/umask=5,period=7/u"), 1);
	EXPECT_STREQ(spec(0)->pmu, "cpu");
	EXPECT_STREQ(spec(0)->name, "op_cache/umask=5,period=7/u");
	EXPECT_EQ(attr_of(spec(0))->config, 0x20000058f);
	EXPECT_EQ(attr_of(spec(0))->sample_period, 7);
	EXPECT_EQ(parse("arm64-biglittle", "dtlb_walk/threshold_compare=1,name=walks/"), 2);
	EXPECT_STREQ(spec(0)->pmu, "armv8_cortex_a520");
	EXPECT_STREQ(spec(1)->name, "walks");
	EXPECT_EQ(attr_of(spec(1))->config1, attr_of(spec(0))->config1);
	EXPECT(attr_of(spec(1))->config1 != 0);
	EXPECT_EQ(parse("arm64-biglittle", "stall_slot/threshold=2/"), -EINVAL);
	EXPECT_CONTAINS(err.why, "armv8_cortex_a520/caps/threshold_max is 0");
	EXPECT_EQ(parse("amd", "op_cach/umask=5/"), -ENOENT);

	EXPECT_EQ(parse("amd", "cs/event=1/"), -ENOENT);
	EXPECT_CONTAINS(err.why, "cs/event=1/ has no term \"event\"");
	EXPECT_EQ(parse("amd", "cs/perod=1/"), -ENOENT);
	EXPECT_CONTAINS(err.why, "did you mean period?");
	EXPECT_EQ(parse("amd", "cs/name=/"), -EINVAL);
	EXPECT_EQ(parse("amd", "cs/,/"), -EINVAL);
	EXPECT_EQ(parse("amd", "cs/u"), -EINVAL);
	EXPECT_CONTAINS(err.why, "closing slash");
}

/* Nothing that was asked for is left out: what follows a name is a modifier, or it is refused. */
TEST(nothing_is_dropped)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"page-faults:u:S,cs", "not in one piece"},
		{"cs:u:k", "not in one piece"},
		{"cs:u:", "not in one piece"},
		{"cs::u", "not in one piece"},
		{"cs::", "not in one piece"},
		{"L1-dcache-loads:u:k", "not in one piece"},
		{"r1a8:u:k", "not in one piece"},
		{"1:2:u:k", "\":\" in \"u:k\" is not a modifier"},
		{"cs:q", "\"q\" in \"q\" is not a modifier"},
		{"r1a8:q", "\"q\" in \"q\" is not a modifier"},
		{"L1-dcache-loads:uq", "\"q\" in \"uq\" is not a modifier"},
		{"cs:uu", "has the modifier u twice"},
		{"cs:uku", "has the modifier u twice"},
		{"{cs:u}:SS", "has the modifier S twice"},
		{"cpu/event=1/uu", "has the modifier u twice"},
		{"cpu/event=1/:", "\":\" in \":\" is not a modifier"},
		{"cpu/event=1/u:", "\":\" in \"u:\" is not a modifier"},
		{"cpu/name=a/b/", "is not a modifier"},
		{"cpu/event=1/u,cpu/event=2/u/", "is not a modifier"},
		{"cpu/event=1/uname='a'/u", "is not a modifier"},
		{"cpu/name='a/", "lacks the closing slash"},
		{"{cs}:", "follows a closing brace"},
		{"{cs}u", "follows a closing brace"},
	};
	static const char *const good[] = {
		"cs:",         "instructions:", "L1-dcache-loads:", "r1a8:",
		"1:2:",        "mem:0x10:",     "mem:0x10/4:",      "mem:0x10:rw:",
		"mem:0x10:w:", "{cs:}:u",       "cache-misses:"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse("amd", bad[i].text) != -EINVAL)
			TEST_FAIL("\"%s\" is not refused", bad[i].text);
		EXPECT_CONTAINS(err.why, bad[i].why);
	}
	/* No modifier behind a colon is none, as with perf. */
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (parse("amd", good[i]) != 1)
			TEST_FAIL("\"%s\": %s", good[i], err.why);
	EXPECT_EQ(parse("amd", "instructions:"), 1);
	EXPECT(!attr_of(spec(0))->exclude_kernel);
	EXPECT_EQ(parse("intel-hybrid", "sched:sched_switch:"), 1);
	EXPECT_EQ(parse("intel-hybrid", "sched:sched_switch:u"), 1);
	EXPECT_EQ(parse("intel-hybrid", "sched:sched_switch:u:u"), -EINVAL);
}

TEST(modifiers)
{
	const struct pe_attr *a;

	EXPECT_EQ(parse("amd", "cycles:u"), 1);
	a = attr_of(spec(0));
	EXPECT(!a->exclude_user && a->exclude_kernel && a->exclude_hv);
	EXPECT(a->exclude_guest);
	EXPECT(spec(0)->flags & AP_SPEC_PRIV_GIVEN);
	EXPECT_STREQ(spec(0)->name, "cycles:u");

	EXPECT_EQ(parse("amd", "cycles:kh"), 1);
	a = attr_of(spec(0));
	EXPECT(a->exclude_user && !a->exclude_kernel && !a->exclude_hv);

	EXPECT_EQ(parse("amd", "cycles:G"), 1);
	a = attr_of(spec(0));
	EXPECT(a->exclude_host && !a->exclude_guest);
	EXPECT_EQ(parse("amd", "cycles:GH"), 1);
	a = attr_of(spec(0));
	EXPECT(!a->exclude_host && !a->exclude_guest);

	EXPECT_EQ(parse("amd", "cycles:Ippp"), 1);
	a = attr_of(spec(0));
	EXPECT(a->exclude_idle);
	EXPECT_EQ(a->precise_ip, 3);
	EXPECT_EQ(parse("amd", "cycles:pppp"), -EINVAL);
	EXPECT_EQ(parse("amd", "cycles:ux"), -EINVAL);
	EXPECT_EQ(parse("amd", "1:3:u"), 1);
	EXPECT(attr_of(spec(0))->exclude_kernel);
	EXPECT_STREQ(spec(0)->name, "1:3:u");
	EXPECT_EQ(parse("amd", "1:3:y"), -EINVAL);

	EXPECT_EQ(parse("amd", "cycles:PSWDe"), 1);
	a = attr_of(spec(0));
	EXPECT(a->pinned && a->exclusive);
	EXPECT(spec(0)->flags & AP_SPEC_PRECISE_MAX);
	EXPECT(spec(0)->flags & AP_SPEC_SAMPLE_READ);
	EXPECT(spec(0)->flags & AP_SPEC_WEAK);

	EXPECT_EQ(parse("amd", "cpu/event=0x76/uppp"), 1);
	a = attr_of(spec(0));
	EXPECT(a->exclude_kernel);
	EXPECT_STREQ(spec(0)->name, "cpu/event=0x76/uppp");
}

TEST(groups)
{
	EXPECT_EQ(parse("amd", "cs,{cycles:u,instructions}:D,faults"), 4);
	EXPECT_EQ(spec(0)->group, 0);
	EXPECT_EQ(spec(0)->members, 1);
	EXPECT(spec(1)->flags & AP_SPEC_LEADER);
	EXPECT(!(spec(2)->flags & AP_SPEC_LEADER));
	EXPECT_EQ(spec(1)->members, 2);
	EXPECT_EQ(spec(2)->group, spec(1)->group);
	EXPECT(attr_of(spec(1))->pinned);
	EXPECT(!attr_of(spec(2))->pinned);
	EXPECT_STREQ(spec(1)->name, "cycles:uD");
	EXPECT_EQ(spec(3)->group, 2);

	/* The group's modifiers build on the event's: user and kernel. */
	EXPECT_EQ(parse("amd", "{cycles:u,instructions}:k"), 2);
	EXPECT(!attr_of(spec(0))->exclude_user && !attr_of(spec(0))->exclude_kernel);
	EXPECT(attr_of(spec(1))->exclude_user);
	EXPECT_EQ(parse("amd", "{cycles:u}:u"), 1);
	EXPECT_STREQ(spec(0)->name, "cycles:u");
	EXPECT_EQ(parse("amd", "{ cycles , cs }:W , faults"), 3);
	EXPECT(spec(1)->flags & AP_SPEC_WEAK);
	EXPECT(!(spec(2)->flags & AP_SPEC_WEAK));
}

TEST(syntax_errors_say_what_is_wrong)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "the list of events is empty"},
		{"{", "an event and the closing brace"},
		{"r11111111111111111", "at most 16 hexadecimal digits"},
		{"cs,", "beside a comma"},
		{",cs", "beside a comma"},
		{"cs,,cs", "beside a comma"},
		{"{cs", "closing brace of a group is missing"},
		{"{}", "before \"}\""},
		{"{cs,}", "before \"}\""},
		{"cs}", "has no opening one"},
		{"{cs}u", "follows a closing brace"},
		{"{cs,{faults}}", "group begins within a group"},
		{"{{cs}", "group begins within a group"},
		{"{cs{faults}}", "opening brace"},
		{"cpu/event=1", "closing slash"},
		{"/event=1/", "PMU's name"},
		{"cpu/event=1/u/", "is not a modifier"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT(parse("amd", bad[i].text) < 0);
		EXPECT_CONTAINS(err.why, bad[i].why);
	}
}

TEST(perfs_own_terms)
{
	const struct pe_attr *a;

	EXPECT_EQ(parse("amd", "cpu/event=0x76,name='two, words',period=1000/u"), 1);
	EXPECT_STREQ(spec(0)->name, "two, words");
	a = attr_of(spec(0));
	EXPECT_EQ(a->sample_period, 1000);
	EXPECT(!a->freq);
	EXPECT(spec(0)->flags & AP_SPEC_PERIOD_GIVEN);
	EXPECT_EQ(parse("amd", "cpu/event=0x76,freq=99,max-stack=5,no-inherit,percore/"), 1);
	a = attr_of(spec(0));
	EXPECT(a->freq && a->sample_freq == 99 && a->sample_max_stack == 5 && !a->inherit);
	EXPECT(spec(0)->flags & AP_SPEC_INHERIT_GIVEN);
	EXPECT(spec(0)->flags & AP_SPEC_PERCORE);
	EXPECT_EQ(
		parse("amd", "cpu/event=0x76,branch_type=any|u,call-graph=dwarf,stack-size=1001/"),
		1);
	a = attr_of(spec(0));
	EXPECT_EQ(a->branch_sample_type, 9);
	EXPECT_EQ(a->sample_type, PERF_SAMPLE_BRANCH_STACK);
	EXPECT_STREQ(spec(0)->call_graph, "dwarf");
	EXPECT_EQ(a->sample_stack_user, 1008);
	EXPECT_EQ(parse("amd", "cpu/event=0x76,time=0,overwrite,aux-output/"), 1);
	a = attr_of(spec(0));
	EXPECT(spec(0)->flags & AP_SPEC_TIME_GIVEN);
	EXPECT(!(a->sample_type & PERF_SAMPLE_TIME));
	EXPECT(a->write_backward && a->aux_output);
}

TEST(breakpoints)
{
	static const struct {
		const char *text;
		u32 type;
		u64 addr, len;
	} good[] = {
		{"mem:0x601040", 3, 0x601040, 4},     {"mem:0x601040/8", 3, 0x601040, 8},
		{"mem:0x601040/1:w", 2, 0x601040, 1}, {"mem:0x601040:r", 1, 0x601040, 4},
		{"mem:4096:rw", 3, 4096, 4},          {"mem:0x401000:x", 4, 0x401000, sizeof(long)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const struct pe_attr *a;

		ASSERT(parse("amd", good[i].text) == 1);
		a = attr_of(spec(0));
		EXPECT_EQ(a->type, PERF_TYPE_BREAKPOINT);
		EXPECT_EQ(a->bp_type, good[i].type);
		EXPECT_EQ(a->bp_addr, good[i].addr);
		EXPECT_EQ(a->bp_len, good[i].len);
	}
	EXPECT_EQ(parse("amd", "mem:0x601040/8:w:u,cs"), 2);
	EXPECT(attr_of(spec(0))->exclude_kernel);
	EXPECT_STREQ(spec(0)->name, "mem:0x601040/8:w:u");
	EXPECT_EQ(parse("amd", "mem:main"), -EINVAL);
	EXPECT_EQ(parse("amd", "mem:0x1000/3"), -EINVAL);
	EXPECT_EQ(parse("amd", "mem:0x1000:rx"), -EINVAL);
	EXPECT_EQ(parse("amd", "mem:0x1000:q"), -EINVAL);
	EXPECT_CONTAINS(err.remedy, "mem:ADDR");
}

/* Something that a uprobe may be put on; also called, so that it is not thrown away. */
__attribute__((noinline, used)) static int uprobe_victim(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

TEST(probes)
{
	char self[512], text[1024];
	const struct pe_attr *a;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *f;
	u64 offset;
	u8 bytes[8];

	EXPECT_EQ(parse("amd", "kprobe:do_sys_open+8"), 1);
	a = attr_of(spec(0));
	EXPECT_EQ(a->type, 6);
	EXPECT_STREQ((const char *)(uintptr_t)a->kprobe_func, "do_sys_open");
	EXPECT_EQ(a->probe_offset, 8);
	EXPECT_EQ(a->config, 0);
	EXPECT_EQ(parse("amd", "kretprobe:vfs_read:k"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 1);
	EXPECT_EQ(parse("amd", "kprobe:0xffffffff81000000"), 1);
	EXPECT_EQ(attr_of(spec(0))->kprobe_func, 0);
	EXPECT_EQ(attr_of(spec(0))->kprobe_addr, 0xffffffff81000000);

	ASSERT(n > 0);
	self[n] = '\0';
	snprintf(text, sizeof(text), "uprobe:%s:uprobe_victim:u", self);
	ASSERT(parse("amd", text) == 1);
	a = attr_of(spec(0));
	EXPECT_EQ(a->type, 7);
	EXPECT_STREQ((const char *)(uintptr_t)a->uprobe_path, self);
	/* What stands at that offset of the file is the function's code. */
	offset = a->probe_offset;
	f = fopen(self, "rb");
	ASSERT(f && fseek(f, (long)offset, SEEK_SET) == 0);
	EXPECT_EQ(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	fclose(f);
	EXPECT(memcmp(bytes, (const void *)(uintptr_t)uprobe_victim, sizeof(bytes)) == 0);
	EXPECT_EQ(uprobe_victim(1), 2);

	snprintf(text, sizeof(text), "uretprobe:%s:uprobe_victim+4", self);
	ASSERT(parse("amd", text) == 1);
	EXPECT_EQ(attr_of(spec(0))->probe_offset, offset + 4);
	EXPECT_EQ(attr_of(spec(0))->config, 1);
	snprintf(text, sizeof(text), "uprobe:%s:uprobe_vitcim", self);
	EXPECT_EQ(parse("amd", text), -ENOENT);
	EXPECT_CONTAINS(err.why, "did you mean uprobe_victim?");
	EXPECT_EQ(parse("amd", "uprobe:/no/such/file:main"), -ENOENT);
	EXPECT_CONTAINS(err.why, "no such file");
	EXPECT_EQ(err.cause, AP_CAUSE_FILE);
	EXPECT_EQ(parse("amd", "uprobe:/etc/passwd:main"), -ENOEXEC);
	EXPECT_EQ(parse("amd", "uprobe:/etc:main"), -ENOEXEC);
	EXPECT_EQ(parse("amd", "uprobe:main"), -EINVAL);
	EXPECT_EQ(parse("amd", "uprobe:/bin/sh:0x1000+0x10,cs"), 2);
	EXPECT_EQ(attr_of(spec(0))->probe_offset, 0x1010);
	EXPECT_EQ(parse("amd", "kprobe:f+x"), -EINVAL);
}

TEST(descriptions_come_back)
{
	static const struct {
		const char *machine, *text;
	} same[] = {
		{"amd", "cycles:u"},
		{"amd", "branches:kpp"},
		{"amd", "page-faults"},
		{"amd", "L1-dcache-load-misses"},
		{"amd", "r1a8:u"},
		{"amd", "mem:0x601040/8:rw:u"},
		{"amd", "amd_df/config=0x7f/"},
		{"amd", "cycles:D"},
		{"intel-hybrid", "cpu_core/cycles/u"},
		{"intel-hybrid", "cpu_atom/config=0x1cd,config1=0x3/k"},
		{"intel-hybrid", "msr/config=0x1/"},
		{"amd", "99:0x5"},
		/* A breakpoint, if it said where: mem: could not. */
		{"amd", "breakpoint/config=0x1/"},
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		ASSERT(parse(same[i].machine, same[i].text) == 1);
		EXPECT_STREQ(ap_attr_describe(spec(0)->attr, m, text, sizeof(text)), same[i].text);
	}
}

/* libpfm4 is optional; if it is here its own generic events must come out as ours. */
TEST(libpfm4_names)
{
	u64 flags;

	if (parse(NULL, "perf::PERF_COUNT_SW_PAGE_FAULTS") != 1) {
		printf("     libpfm4 is not installed\n");
		EXPECT_EQ(err.code, -ENOENT);
		return;
	}
	EXPECT_EQ(attr_of(spec(0))->type, 1);
	EXPECT_EQ(attr_of(spec(0))->config, 2);
	EXPECT_EQ(parse(NULL, "perf::INSTRUCTIONS:u"), 1);
	EXPECT_EQ(attr_of(spec(0))->config, 1);
	flags = attr_of(spec(0))->flags;
	EXPECT(flags & 1 << 5); /* exclude_kernel */
	/* It looks at this CPU, so it must stay out of another machine's tree. */
	EXPECT_EQ(parse("amd", "perf::PERF_COUNT_SW_PAGE_FAULTS"), -ENOENT);
	ap_specs_free(specs);
	ap_machine_free(m);
	specs = NULL;
	m = NULL;
}

/* The number is bounded, and what is over it is told apart from a lack of memory. */
TEST(more_events_than_there_may_be)
{
	size_t n = AP__MAX_SPECS + 1;
	char *text = malloc(3 * n);

	ASSERT(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + 3 * i, "cs,", 3);
	text[3 * n - 1] = '\0';
	EXPECT_EQ(parse("amd", text), -E2BIG);
	text[3 * n - 4] = '\0';
	EXPECT_EQ(parse("amd", text), AP__MAX_SPECS);
	free(text);
}
