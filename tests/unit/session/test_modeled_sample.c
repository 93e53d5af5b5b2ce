/* What a model knows of an access as perf's bits say it [DSRC-01..06]. */
#include "session/task/modeled-sample.h"

#include "abi/modeled.h"
#include "model/feed-watch.h"
#include "unit/test.h"

#define ALL        (MODEL_CACHES | MODEL_TLBS)
#define S(f, what) ((u64)PERF_MEM_##f##_##what << PERF_MEM_##f##_SHIFT)
#define N(what)    ((u64)PERF_MEM_LVLNUM_##what << PERF_MEM_LVLNUM_SHIFT)

TEST(loads)
{
	static const u64 levels[] = {
		[MODEL_FROM_L1] = S(LVL, HIT) | S(LVL, L1) | N(L1),
		[MODEL_FROM_L2] = S(LVL, HIT) | S(LVL, L2) | N(L2),
		[MODEL_FROM_LL] = S(LVL, HIT) | S(LVL, L3) | N(L3),
		[MODEL_FROM_CORE] = S(LVL, HIT) | S(LVL, L3) | N(L3),
		[MODEL_FROM_MEMORY] = S(LVL, HIT) | S(LVL, LOC_RAM) | N(RAM),
	};
	static const u64 snoops[] = {
		[MODEL_SNOOP_NONE] = S(SNOOP, NONE),
		[MODEL_SNOOP_MISS] = S(SNOOP, MISS),
		[MODEL_SNOOP_HIT] = S(SNOOP, HIT),
		[MODEL_SNOOP_HITM] = S(SNOOP, HITM),
	};
	static const u64 tlbs[] = {
		[MODEL_TLB_L1] = S(TLB, HIT) | S(TLB, L1),
		[MODEL_TLB_L2] = S(TLB, HIT) | S(TLB, L2),
		[MODEL_TLB_WALK] = S(TLB, MISS) | S(TLB, L2),
	};
	struct trace_modeled hit = {.kind = FEED_HIT_LOAD};
	u64 rest = S(OP, LOAD);

	for (hit.source = 0; hit.source < ARRAY_SIZE(levels); hit.source++)
		for (hit.snoop = 0; hit.snoop < ARRAY_SIZE(snoops); hit.snoop++)
			for (hit.tlb = 0; hit.tlb < ARRAY_SIZE(tlbs); hit.tlb++)
				EXPECT_EQ(modeled_data_src(&hit, ALL), rest | levels[hit.source] |
									       snoops[hit.snoop] |
									       tlbs[hit.tlb]);
	/* What guests write there is anything. */
	hit.source = hit.snoop = hit.tlb = 255;
	EXPECT_EQ(modeled_data_src(&hit, ALL),
		  rest | S(LVL, NA) | N(NA) | S(SNOOP, NA) | S(TLB, NA));
}

TEST(stores)
{
	struct trace_modeled hit = {.kind = FEED_HIT_STORE, .locked = 1};
	u64 rest = S(OP, STORE) | S(LOCK, LOCKED) | S(SNOOP, NONE) | S(TLB, HIT) | S(TLB, L1) |
		   S(LVL, L1) | N(L1);

	EXPECT_EQ(modeled_data_src(&hit, ALL), rest | S(LVL, HIT));
	hit.misses = 1;
	hit.source = MODEL_FROM_MEMORY;
	EXPECT_EQ(modeled_data_src(&hit, ALL), rest | S(LVL, MISS));
}

/* As a kernel writes it that knows nothing. */
TEST(what_is_not_known)
{
	struct trace_modeled hit = {.kind = FEED_HIT_BRANCH};
	u64 nothing = 0x1e05080021ull;

	EXPECT_EQ(modeled_data_src(&hit, ALL), nothing);
	hit.kind = FEED_HIT_WORK;
	EXPECT_EQ(modeled_data_src(&hit, ALL), nothing);
	hit.kind = FEED_HIT_FETCH;
	EXPECT_EQ(modeled_data_src(&hit, ALL), (nothing & ~S(OP, NA)) | S(OP, EXEC));
	hit.kind = FEED_HIT_PREFETCH;
	EXPECT_EQ(modeled_data_src(&hit, ALL), (nothing & ~S(OP, NA)) | S(OP, PFETCH));
	/* A part that is not simulated. */
	hit.kind = FEED_HIT_LOAD;
	EXPECT_EQ(modeled_data_src(&hit, MODEL_TLBS),
		  S(OP, LOAD) | S(LVL, NA) | N(NA) | S(SNOOP, NA) | S(TLB, HIT) | S(TLB, L1));
	EXPECT_EQ(modeled_data_src(&hit, MODEL_CACHES),
		  S(OP, LOAD) | S(LVL, HIT) | S(LVL, L1) | N(L1) | S(SNOOP, NONE) | S(TLB, NA));
}
