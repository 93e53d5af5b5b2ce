/* TLBs, coherence, prefetchers, cycles, and what the parts that are not asked for leave out. */
#include "model/cycles.h"
#include "unit/model/machines.h"
#include "unit/test.h"

static u64 cell(const struct model_core *c, u32 id, u32 op, bool miss)
{
	return model_count(c, model_cache_counter(id, op, miss));
}

/* Each TLB is fully associative LRU here, so what it reaches is exact. */
TEST(reach_of_tlbs)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	m.tlb[MACHINE_DTLB] = (struct machine_tlb){.entries = 8, .ways = 8};
	m.tlb[MACHINE_TLB2] = (struct machine_tlb){.entries = 32, .ways = 32, .latency = 7};
	model = model_new(&m, 1, MODEL_TLBS);
	core = model_core(model, 0);
	for (u32 round = 0; round < 5; round++)
		for (u64 page = 0; page < 8; page++)
			model_load(core, 1, page << 12 | 64, 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_READ, true), 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_READ, false), 40);
	EXPECT_EQ(model_count(core, MODEL_TLB2_HITS), 0);
	/* One page more than L1 reaches: LRU misses each time, and the second level has them. */
	for (u32 round = 0; round < 5; round++)
		for (u64 page = 0; page < 9; page++)
			model_store(core, 1, page << 12 | 64, 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_WRITE, true), 1);
	EXPECT_EQ(model_count(core, MODEL_TLB2_HITS), 44 - 8);
	for (u32 round = 0; round < 3; round++)
		for (u64 page = 100; page < 133; page++)
			model_load(core, 1, page << 12, 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_READ, true), 8 + 99);
	/* Instructions have a first level of their own, and share the second. */
	model_fetch(core, 132 << 12, 4);
	EXPECT_EQ(cell(core, MODEL_ITLB, MODEL_READ, true), 0);
	model_fetch(core, 99 << 12, 4);
	EXPECT_EQ(cell(core, MODEL_ITLB, MODEL_READ, true), 1);
	/* Across two pages, and what an access tells. */
	EXPECT_EQ(model_load(core, 1, (200 << 12) - 4, 8).tlb, MODEL_TLB_WALK);
	EXPECT_EQ(model_load(core, 1, 200 << 12, 8).tlb, MODEL_TLB_L1);
	EXPECT_EQ(model_load(core, 1, 199 << 12, 8).tlb, MODEL_TLB_L1);
	EXPECT_EQ(model_load(core, 1, 120 << 12, 8).tlb, MODEL_TLB_L2);
	EXPECT_EQ(model_load(core, 1, 300ull << 12, 8).latency, 4 + 7 + 30);
	EXPECT_EQ(cell(core, MODEL_L1D, MODEL_READ, true), 0);
	model_free(model);
}

TEST(huge_pages)
{
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_TLBS);
	struct model_core *core = model_core(model, 0);
	u64 at = 1ull << 30;

	EXPECT(model_huge_pages(model, at, at + (8 << 20), true));
	for (u64 a = at; a < at + (8 << 20); a += 4096)
		model_load(core, 1, a, 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_READ, true), 4);
	/* The middle becomes small again. */
	EXPECT(model_huge_pages(model, at + (2 << 20), at + (4 << 20), false));
	for (u64 a = at; a < at + (8 << 20); a += 4096)
		model_load(core, 1, a, 8);
	EXPECT_EQ(cell(core, MODEL_DTLB, MODEL_READ, true) > 4 + 500, true);
	EXPECT(model_huge_pages(model, 0, ~0ull, false));
	for (u64 n = 0; n < 32; n++)
		EXPECT(model_huge_pages(model, n << 24, (n << 24) + (2 << 20), true));
	EXPECT(!model_huge_pages(model, 33ull << 24, (33ull << 24) + (2 << 20), true));
	EXPECT(!model_huge_pages(model, 4096, 8192, false));
	model_free(model);
}

TEST(coherence)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *a, *b;
	struct model_access x;

	set_cache(&m, MACHINE_L2, 16384, 4);
	model = model_new(&m, 2, MODEL_CACHES);
	a = model_core(model, 0);
	b = model_core(model, 1);
	/* Alone a store owns its line, and asks nobody again. */
	EXPECT_EQ(model_store(a, 1, 0x1000, 8).snoop, MODEL_SNOOP_MISS);
	EXPECT_EQ(model_store(a, 1, 0x1000, 8).snoop, MODEL_SNOOP_NONE);
	x = model_load(b, 1, 0x1000, 8);
	EXPECT_EQ(x.snoop, MODEL_SNOOP_HITM);
	EXPECT_EQ(x.source, MODEL_FROM_CORE);
	EXPECT_EQ(x.latency, 60);
	EXPECT_EQ(model_count(b, MODEL_SNOOP_HITMS), 1);
	/* Both have it now: loads hit, a store takes it from the other. */
	EXPECT_EQ(model_load(a, 1, 0x1000, 8).source, MODEL_FROM_L1);
	EXPECT_EQ(model_load(b, 1, 0x1000, 8).source, MODEL_FROM_L1);
	x = model_store(a, 1, 0x1000, 8);
	EXPECT_EQ(x.snoop, MODEL_SNOOP_HIT);
	EXPECT_EQ(x.misses, 0);
	EXPECT_EQ(model_count(a, MODEL_INVALIDATIONS), 1);
	EXPECT_EQ(model_load(b, 1, 0x1000, 8).snoop, MODEL_SNOOP_HITM);
	/* Ping-pong: each store misses, and finds it modified. */
	for (u32 i = 0; i < 10; i++) {
		EXPECT_EQ(model_store(a, 1, 0x1008, 8).misses, i ? 1 : 0);
		EXPECT_EQ(model_store(b, 1, 0x1010, 8).snoop, MODEL_SNOOP_HITM);
	}
	/* Reading what others only read costs nobody anything. */
	model_load(a, 1, 0x2000, 8);
	EXPECT_EQ(model_load(b, 1, 0x2000, 8).snoop, MODEL_SNOOP_HIT);
	EXPECT_EQ(model_load(a, 1, 0x2000, 8).misses, 0);
	/* A modified line that only L2 still has is found, too. */
	model_store(a, 1, 0x3000, 8);
	for (u64 n = 1; n <= 4; n++)
		model_load(a, 1, 0x3000 + n * 1024, 8);
	EXPECT_EQ(model_load(b, 1, 0x3000, 8).snoop, MODEL_SNOOP_HITM);
	model_free(model);
}

TEST(coherence_of_random_streams)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core[4];
	u64 state = 4711, hits = 0;
	/* Who may have each of the lines, and who has written it last and alone. */
	u32 readers[32] = {0}, owner[32] = {0};

	/* So large that nothing is evicted: what is lost is lost to others. */
	set_cache(&m, MACHINE_L1D, 1 << 20, 16);
	set_cache(&m, MACHINE_LL, 4 << 20, 16);
	model = model_new(&m, 4, MODEL_CACHES);
	for (u32 i = 0; i < 4; i++)
		core[i] = model_core(model, i);
	for (u32 i = 0; i < 20000; i++) {
		u32 who = random_number(&state) % 4, line = random_number(&state) % 32;
		bool store = random_number(&state) % 4 == 0, has = readers[line] >> who & 1;
		u64 addr = 0x10000 + line * 64;
		struct model_access a = store ? model_store(core[who], 1, addr, 8)
					      : model_load(core[who], 1, addr, 8);

		EXPECT_EQ(a.misses, !has);
		EXPECT_EQ(a.snoop == MODEL_SNOOP_HITM, !has && owner[line] != 0);
		hits += has;
		if (store) {
			readers[line] = 1u << who;
			owner[line] = 1;
		} else {
			readers[line] |= 1u << who;
			owner[line] &= has;
		}
	}
	EXPECT(hits > 5000);
	model_free(model);
}

TEST(an_inclusive_cache_takes_lines_from_all)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *a, *b;

	m.cache[MACHINE_LL].inclusion = MACHINE_INCLUSIVE;
	set_cache(&m, MACHINE_LL, 4096, 4);
	model = model_new(&m, 2, MODEL_CACHES);
	a = model_core(model, 0);
	b = model_core(model, 1);
	model_load(a, 1, 0, 8);
	/* The line that a set has used last would stay. */
	model_load(a, 1, 1 << 20, 8);
	model_fetch(a, 0, 4);
	for (u64 n = 1; n <= 4; n++)
		model_load(b, 1, n * 1024, 8);
	EXPECT_EQ(model_load(a, 1, 0, 8).source, MODEL_FROM_MEMORY);
	model_fetch(a, 0, 4);
	EXPECT_EQ(cell(a, MODEL_L1I, MODEL_READ, true), 2);
	model_free(model);
}

static u64 misses_of_walk(u8 prefetch, u64 step, u64 *issued)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;
	u64 misses;

	m.cache[MACHINE_L1D].prefetch = prefetch;
	model = model_new(&m, 1, MODEL_CACHES);
	core = model_core(model, 0);
	for (u64 a = 0; a < 16 * 4096; a += step)
		model_load(core, 0x400000, 0x100000 + a, 8);
	misses = cell(core, MODEL_L1D, MODEL_READ, true);
	*issued = cell(core, MODEL_L1D, MODEL_PREFETCH, true);
	EXPECT_EQ(cell(core, MODEL_LL, MODEL_PREFETCH, false), *issued);
	model_free(model);
	return misses;
}

TEST(prefetchers)
{
	u64 issued;

	EXPECT_EQ(misses_of_walk(0, 8, &issued), 1024);
	EXPECT_EQ(issued, 0);
	/* The next line, but not over the end of a page: one miss for each page. */
	EXPECT_EQ(misses_of_walk(MACHINE_NEXT_LINE, 8, &issued), 16);
	EXPECT_EQ(issued, 1024 - 16);
	/* Steps of three lines: the next line is the wrong one, the stride the right one. */
	EXPECT_EQ(misses_of_walk(MACHINE_NEXT_LINE, 192, &issued), 342);
	EXPECT(misses_of_walk(MACHINE_STRIDE, 192, &issued) < 16 * 2 + 4);
	EXPECT(misses_of_walk(MACHINE_STRIDE, 8, &issued) < 16 + 4);
}

TEST(prefetch_by_the_program_and_into_l2)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	set_cache(&m, MACHINE_L2, 16384, 4);
	m.cache[MACHINE_L2].prefetch = MACHINE_NEXT_LINE;
	m.cache[MACHINE_L1I].prefetch = MACHINE_NEXT_LINE;
	model = model_new(&m, 1, MODEL_CACHES);
	core = model_core(model, 0);
	model_prefetch(core, 0x5008);
	EXPECT_EQ(model_load(core, 1, 0x5000, 8).source, MODEL_FROM_L1);
	EXPECT_EQ(cell(core, MODEL_L1D, MODEL_PREFETCH, false), 1);
	EXPECT_EQ(model_load(core, 1, 0x9000, 8).source, MODEL_FROM_MEMORY);
	EXPECT_EQ(model_load(core, 1, 0x9040, 8).source, MODEL_FROM_L2);
	EXPECT_EQ(model_load(core, 1, 0x9080, 8).source, MODEL_FROM_L2);
	for (u64 a = 0; a < 4096; a += 4)
		model_fetch(core, 0x20000 + a, 4);
	EXPECT_EQ(cell(core, MODEL_L1I, MODEL_READ, true), 1);
	EXPECT_EQ(cell(core, MODEL_L1I, MODEL_PREFETCH, true), 63);
	model_free(model);
}

TEST(cost_of_runs)
{
	struct machine m = small_machine();
	struct cost c = {0};

	for (u32 i = 0; i < 8; i++)
		cost_add(&c, &m, COST_INT, 0, 0);
	EXPECT_EQ(cost_ticks(&c, &m), 200); /* four a cycle */
	for (u32 i = 0; i < 8; i++)
		cost_add(&c, &m, COST_LOAD, 1, 0);
	EXPECT_EQ(cost_ticks(&c, &m), 400); /* two loads a cycle, sixteen operations */
	m.core.width = 8;
	EXPECT_EQ(cost_ticks(&c, &m), 400);
	cost_add(&c, &m, COST_INT_DIV, 0, 0);
	EXPECT_EQ(cost_ticks(&c, &m), 600);
	m.core.dependence = 50; /* of 8 + 32 + 20 cycles */
	EXPECT_EQ(cost_ticks(&c, &m), 3000);
	m.core.dependence = 0;
	cost_add(&c, &m, COST_ATOMIC, 0, 0);
	EXPECT_EQ(cost_ticks(&c, &m), 600 + 1800);
	c = (struct cost){0};
	cost_add(&c, &m, COST_INT, 1, 0); /* renamed as one */
	EXPECT_EQ(c.uops, 1);
	EXPECT_EQ(c.latency, 500);
}

TEST(cycles_and_stalls)
{
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_PARTS);
	struct model_core *core = model_core(model, 0);

	model_work(core, 100, 2550);
	EXPECT_EQ(model_count(core, MODEL_INSTRUCTIONS), 100);
	EXPECT_EQ(model_count(core, MODEL_CPU_CYCLES), 25);
	model_load(core, 1, 0x1000, 8); /* memory and a walk */
	EXPECT_EQ(model_count(core, MODEL_STALLED_BACKEND), 80 + 30);
	model_load(core, 1, 0x1040, 8); /* half of it is hidden */
	EXPECT_EQ(model_count(core, MODEL_STALLED_BACKEND), 110 + 40);
	model_work(core, 10, 0);
	model_load(core, 1, 0x1080, 8);
	EXPECT_EQ(model_count(core, MODEL_STALLED_BACKEND), 150 + 80);
	model_branch(core, 0x1, 0x3, MODEL_COND, true, 0x100);
	EXPECT_EQ(model_count(core, MODEL_STALLED_FRONTEND), 10);
	model_branch(core, 0x1, 0x3, MODEL_JUMP, true, 0x100);
	model_branch(core, 0x1, 0x3, MODEL_JUMP, true, 0x100);
	EXPECT_EQ(model_count(core, MODEL_STALLED_FRONTEND), 13);
	EXPECT_EQ(model_count(core, MODEL_CPU_CYCLES), 25 + 230 + 13);
	EXPECT_EQ(model_count(core, MODEL_REF_CYCLES), 25 + 230 + 13);
	EXPECT_EQ(model_count(core, MODEL_BUS_CYCLES), (25 + 230 + 13) / 20);
	model_free(model);
}

/* Of each latency there is a counter of the loads that take as long, or longer. */
TEST(loads_by_latency)
{
	enum { LONGEST = 200 };
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core[2];
	u64 took[LONGEST + 1] = {0}, from = 0, state = 99;

	m.tlb[MACHINE_TLB2] = (struct machine_tlb){.entries = 32, .ways = 4, .latency = 7};
	set_cache(&m, MACHINE_L2, 16384, 4);
	m.cache[MACHINE_L2].latency = 12;
	model = model_new(&m, 2, MODEL_CACHES | MODEL_TLBS);
	core[0] = model_core(model, 0);
	core[1] = model_core(model, 1);
	for (u32 i = 0; i < 300000; i++) {
		u64 r = random_number(&state), addr = r >> 8 & (r & 8 ? 0x7ffff : 0xfff);

		if (r & 1)
			model_store(core[r >> 1 & 1], 1, addr, 8);
		else if (r & 2)
			model_load(core[1], 1, addr, 8);
		else
			took[model_load(core[0], 1, addr, 1u << (r >> 60 & 3)).latency]++;
	}
	for (u32 latency = LONGEST; latency; latency--) {
		u32 counter = model_loads_from(&m, latency);

		from += took[latency];
		if (counter == MODEL_COUNTERS)
			EXPECT_EQ(from, 0);
		else
			EXPECT_EQ(model_count(core[0], (enum model_counter)counter), from);
	}
	EXPECT(took[4] && took[12] && took[30] && took[60] && took[100] && took[100 + 7 + 30]);
	EXPECT_EQ(model_loads_from(&m, 138), MODEL_COUNTERS);
	EXPECT_EQ(model_loads_from(&m, 0), model_cache_counter(MODEL_L1D, MODEL_READ, false));
	EXPECT_EQ(model_parts_of(MODEL_SLOW_LOADS), MODEL_CACHES | MODEL_TLBS);
	model_free(model);
}

TEST(parts)
{
	struct machine m = small_machine();
	u64 all = model_size(&m, 1, MODEL_PARTS);
	struct model *model;
	struct model_core *core;

	EXPECT(model_size(&m, 1, MODEL_BRANCHES) < all);
	EXPECT(model_size(&m, 1, MODEL_CACHES) < all);
	EXPECT(model_size(&m, 2, MODEL_PARTS) < 2 * all);
	EXPECT_EQ(all % 64, 0);
	model = model_new(&m, 3, MODEL_BRANCHES);
	EXPECT_EQ(model_machine(model)->core.width, 4);
	core = model_core(model, 2);
	EXPECT(model_branch(core, 0x10, 0x12, MODEL_COND, true, 0x20));
	EXPECT_EQ(model_count(core, MODEL_BRANCH_MISSES), 1);
	EXPECT_EQ(model_count(core, MODEL_CPU_CYCLES), 0);
	EXPECT_EQ(model_count(model_core(model, 1), MODEL_BRANCH_MISSES), 0);
	model_free(model);
}

/* The same trace gives the same counts, whatever lies in between. */
TEST(deterministic)
{
	struct machine m = small_machine();
	u64 counts[2][MODEL_COUNTERS];

	m.branch.direction = MACHINE_TAGE;
	m.branch.history = 64;
	for (u32 run = 0; run < 2; run++) {
		struct model *model = model_new(&m, 2, MODEL_PARTS);
		u64 state = 99;

		for (u32 i = 0; i < 20000; i++) {
			struct model_core *core = model_core(model, random_number(&state) & 1);
			u64 n = random_number(&state);

			model_fetch(core, n % 9000, 4);
			model_load(core, n % 50, n % 100000, 8);
			model_store(core, n % 60, n % 90000, 4);
			model_branch(core, n % 300, n % 300 + 2, 1 + n % 6, n >> 20 & 1, n % 700);
			model_work(core, 4, 130);
		}
		for (u32 i = 0; i < MODEL_COUNTERS; i++)
			counts[run][i] = model_count(model_core(model, 1), i);
		model_free(model);
	}
	EXPECT(!memcmp(counts[0], counts[1], sizeof(counts[0])));
	EXPECT(counts[0][MODEL_BRANCH_MISSES] > 100);
}

/* A program that has something of everything. */
static void run_some(struct model_core *core, u32 parts)
{
	u64 state = 7;

	for (u32 i = 0; i < 20000; i++) {
		u64 r = random_number(&state), addr = (r & 0x3ffff) + (r >> 60 << 22);
		u64 ip = 0x400000 + (r >> 20 & 0x7fff);

		if (parts & (MODEL_CACHES | MODEL_TLBS)) {
			model_fetch(core, ip, 24);
			model_load(core, ip, addr, 8);
			if (r & 1ull << 40)
				model_store(core, ip + 4, addr ^ 64, 8);
			if (parts & MODEL_CACHES && (r & 7ull << 41) == 0)
				model_prefetch(core, addr + 4096);
		}
		if (parts & MODEL_CYCLES)
			model_work(core, 6, 150);
		if (parts & MODEL_BRANCHES)
			model_branch(core, ip + 20, ip + 24, MODEL_COND, r >> 50 & 3, ip + 96);
	}
}

/* What a counter says with its parts alone is what it says with all; with one less it differs. */
TEST(parts_of_counters)
{
	struct machine m = small_machine();
	struct model *all;
	struct model_core *core;
	u32 counted = 0;

	set_cache(&m, MACHINE_L2, 16384, 4);
	m.tlb[MACHINE_TLB2] = (struct machine_tlb){.entries = 32, .ways = 32, .latency = 7};
	m.penalty.btb = 3;
	m.penalty.tlb2 = 7;
	m.penalty.fetch_memory = 50;
	m.penalty.fetch_l2 = m.penalty.fetch_ll = 5;
	m.penalty.overlap = 50;
	all = model_new(&m, 1, MODEL_PARTS);
	core = model_core(all, 0);
	run_some(core, MODEL_PARTS);
	for (u32 c = 0; c < MODEL_COUNTERS; c++) {
		u32 parts = model_parts_of((enum model_counter)c);
		u64 expected = model_count(core, (enum model_counter)c);
		struct model *some;

		/* A cell that none has counts nothing, but for what is the same in all TLBs. */
		if (!parts) {
			EXPECT_EQ(expected, 0);
			continue;
		}
		counted += expected > 0;
		for (u32 without = 0; without <= MODEL_CYCLES;
		     without = without ? without << 1 : 1) {
			u32 left = parts & ~without;
			u64 value;

			if (without && !(parts & without))
				continue;
			/* What is in memory takes long whatever its page does. */
			if (without && c >= MODEL_SLOW_LOADS)
				continue;
			some = model_new(&m, 1, left);
			run_some(model_core(some, 0), left);
			value = model_count(model_core(some, 0), (enum model_counter)c);
			if (without && expected)
				EXPECT(value != expected);
			if (!without)
				EXPECT_EQ(value, expected);
			model_free(some);
		}
	}
	EXPECT(counted > 30);
	EXPECT_EQ(model_parts_of(MODEL_COUNTERS), 0);
	model_free(all);
}
