/* Predictors: what theory says of loops, alternations, correlated and random branches. */
#include "unit/model/machines.h"
#include "unit/test.h"

static struct model *model_of(enum machine_direction direction, u32 history)
{
	struct machine m = small_machine();

	m.branch.direction = (u8)direction;
	m.branch.history = history;
	m.branch.entries = 4096;
	return model_new(&m, 1, MODEL_BRANCHES);
}

static u64 misses(struct model_core *core)
{
	return model_count(core, MODEL_BRANCH_MISSES);
}

static void cond(struct model_core *core, u64 ip, bool taken)
{
	model_branch(core, ip, ip + 2, MODEL_COND, taken, ip + 100);
}

/* A loop of @trips, executed @times: misses of the second half of them. */
static u64 loop_misses(enum machine_direction d, u32 history, u32 trips, u32 times)
{
	struct model *model = model_of(d, history);
	struct model_core *core = model_core(model, 0);
	u64 before = 0, n;

	for (u32 i = 0; i < times; i++) {
		if (i == times / 2)
			before = misses(core);
		for (u32 t = 1; t <= trips; t++)
			cond(core, 0x4000, t < trips);
	}
	n = misses(core) - before;
	model_free(model);
	return n;
}

TEST(loops)
{
	/* Two bits miss the end of each loop, and nothing else. */
	EXPECT_EQ(loop_misses(MACHINE_BIMODAL, 0, 10, 200), 100);
	EXPECT_EQ(loop_misses(MACHINE_BIMODAL, 0, 100, 200), 100);
	/* With a history that reaches over the loop its end is seen; else it is missed. */
	EXPECT_EQ(loop_misses(MACHINE_GSHARE, 12, 10, 200), 0);
	EXPECT_EQ(loop_misses(MACHINE_GSHARE, 12, 13, 200), 0);
	EXPECT_EQ(loop_misses(MACHINE_GSHARE, 12, 14, 200), 100);
	EXPECT_EQ(loop_misses(MACHINE_GSHARE, 12, 40, 200), 100);
	EXPECT_EQ(loop_misses(MACHINE_TAGE, 128, 10, 400), 0);
	EXPECT_EQ(loop_misses(MACHINE_TAGE, 128, 40, 400), 0);
	EXPECT_EQ(loop_misses(MACHINE_TAGE, 128, 100, 2000), 0);
	EXPECT_EQ(loop_misses(MACHINE_TAGE, 128, 200, 400), 200);
}

static u64 pattern_misses(enum machine_direction d, u32 history, const char *pattern, u32 n)
{
	struct model *model = model_of(d, history);
	struct model_core *core = model_core(model, 0);
	u32 length = (u32)strlen(pattern);
	u64 before = 0;

	for (u32 i = 0; i < n; i++) {
		if (i == n / 2)
			before = misses(core);
		cond(core, 0x4000, pattern[i % length] == 'T');
	}
	before = misses(core) - before;
	model_free(model);
	return before;
}

TEST(patterns)
{
	EXPECT_EQ(pattern_misses(MACHINE_BIMODAL, 0, "T", 2000), 0);
	/* A counter of two bits that alternates around its middle misses half, or all. */
	EXPECT(pattern_misses(MACHINE_BIMODAL, 0, "TN", 2000) >= 500);
	EXPECT_EQ(pattern_misses(MACHINE_BIMODAL, 0, "TTTN", 2000), 250);
	EXPECT_EQ(pattern_misses(MACHINE_GSHARE, 8, "TN", 2000), 0);
	EXPECT_EQ(pattern_misses(MACHINE_GSHARE, 8, "TTNTNNTN", 2000), 0);
	EXPECT_EQ(pattern_misses(MACHINE_TAGE, 64, "TN", 2000), 0);
	EXPECT_EQ(pattern_misses(MACHINE_TAGE, 64, "TTNTNNTN", 2000), 0);
	EXPECT_EQ(pattern_misses(MACHINE_TAGE, 64, "TTNNNTNTTTTNNTNNNNNTTNTN", 4000), 0);
}

/* Of 1000 in a pattern of @length, long after something else came in between, as windows do. */
static u64 resumed_misses(u32 pattern, u32 length, u64 seed)
{
	struct model *model = model_of(MACHINE_TAGE, 128);
	struct model_core *core = model_core(model, 0);
	u64 before = 0;

	for (u32 again = 0; again < 10; again++) {
		for (u32 i = 0; i < 20; i++)
			cond(core, 0x4000, random_number(&seed) >> 20 & 1);
		for (u32 i = 0; i < 2000; i++) {
			if (i == 1000)
				before = misses(core);
			cond(core, 0x4000, pattern >> i % length & 1);
		}
	}
	before = misses(core) - before;
	model_free(model);
	return before;
}

/* Halves that are the opposite of one another: histories that are, too, are not to be the same. */
TEST(patterns_resumed)
{
	u64 state = 4711;

	for (u32 half = 1; half <= 12; half++) {
		for (u32 i = 0; i < 20; i++) {
			u32 low = (u32)(random_number(&state) >> 20) & (BIT(half) - 1);
			u32 pattern = low | (~low & (BIT(half) - 1)) << half;

			EXPECT_EQ(resumed_misses(pattern, 2 * half, i), 0);
		}
	}
	EXPECT_EQ(resumed_misses(0x0f, 8, 1), 0);
}

/*
 * A third branch that is the exclusive or of two random ones before it. Their addresses differ in
 * bits that gshare does not mix with its history.
 */
static u64 correlated_misses(enum machine_direction d, u32 history, u32 between)
{
	struct model *model = model_of(d, history);
	struct model_core *core = model_core(model, 0);
	u64 state = 12345, of_third = 0;

	for (u32 i = 0; i < 20000; i++) {
		bool a = random_number(&state) >> 20 & 1, b = random_number(&state) >> 20 & 1;
		u64 before;

		cond(core, 0x4000, a);
		cond(core, 0x4400, b);
		for (u32 k = 0; k < between; k++)
			cond(core, 0x5000 + 16 * k, true);
		before = misses(core);
		cond(core, 0x4800, a != b);
		if (i >= 10000)
			of_third += misses(core) - before;
	}
	model_free(model);
	return of_third;
}

TEST(correlation)
{
	u64 alone = correlated_misses(MACHINE_BIMODAL, 0, 0);

	EXPECT(alone > 4700 && alone < 5300);
	EXPECT_EQ(correlated_misses(MACHINE_GSHARE, 8, 0), 0);
	EXPECT(correlated_misses(MACHINE_GSHARE, 8, 10) > 4000);
	EXPECT(correlated_misses(MACHINE_TAGE, 128, 0) < 100);
	EXPECT(correlated_misses(MACHINE_TAGE, 128, 10) < 100);
}

/* A branch that has gone one way only is not in TAGE's history, which reaches over any number. */
TEST(branches_of_one_direction)
{
	struct model *model = model_of(MACHINE_TAGE, 128);
	struct model_core *core = model_core(model, 0);

	cond(core, 0x4000, false);
	EXPECT_EQ(misses(core), 0);
	cond(core, 0x5000, true);
	EXPECT_EQ(misses(core), 1);
	for (u32 i = 0; i < 1000; i++) {
		cond(core, 0x4000, false);
		cond(core, 0x5000, true);
	}
	EXPECT_EQ(misses(core), 1);
	cond(core, 0x4000, true);
	cond(core, 0x5000, false);
	EXPECT_EQ(misses(core), 3);
	model_free(model);
	EXPECT(correlated_misses(MACHINE_TAGE, 128, 200) < 100);
}

/* One that has gone the same way for long goes on so, whatever comes in between. */
TEST(long_runs)
{
	struct model *model = model_of(MACHINE_TAGE, 128);
	struct model_core *core = model_core(model, 0);
	u64 state = 99, before = 0;

	for (u32 i = 0; i < 100; i++) {
		if (i == 50)
			before = misses(core);
		for (u32 k = 0; k < 1000; k++)
			cond(core, 0x4000, k > 0);
	}
	EXPECT_EQ(misses(core) - before, 50);
	model_free(model);
	/* With a random one beside it each history is a new one. */
	model = model_of(MACHINE_TAGE, 128);
	core = model_core(model, 0);
	for (u32 i = 0, of_others = 0; i < 20000; i++) {
		cond(core, 0x4000, random_number(&state) >> 20 & 1);
		before = misses(core);
		cond(core, 0x5000, i % 500 != 0);
		of_others += misses(core) != before;
		if (i + 1 == 20000)
			EXPECT(of_others >= 40 && of_others < 100);
	}
	model_free(model);
}

TEST(random_directions)
{
	static const enum machine_direction all[] = {MACHINE_BIMODAL, MACHINE_GSHARE, MACHINE_TAGE};

	for (u32 i = 0; i < 3; i++)
		for (u32 chance = 2; chance <= 10; chance += 4) {
			struct model *model = model_of(all[i], all[i] == MACHINE_TAGE ? 64 : 12);
			struct model_core *core = model_core(model, 0);
			u64 state = 777, taken = 0;

			for (u32 k = 0; k < 100000; k++) {
				bool t = random_number(&state) % chance == 0;

				taken += t;
				cond(core, 0x4000, t);
			}
			/* No one misses less than the rarer one; a poor one not twice it. */
			EXPECT(misses(core) > taken * 95 / 100);
			EXPECT(misses(core) < taken * 2 + 1000 && misses(core) < 52000);
			model_free(model);
		}
}

/* Branches that are biased, each in its way, do not get in each other's. */
TEST(many_branches)
{
	struct model *model = model_of(MACHINE_TAGE, 64);
	struct model_core *core = model_core(model, 0);

	for (u32 round = 0; round < 50; round++)
		for (u32 i = 0; i < 200; i++)
			cond(core, 0x4000 + i * 6, i * 7 % 3 != 0);
	EXPECT(misses(core) < 600);
	model_free(model);
}

TEST(returns)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	m.branch.returns = 4;
	model = model_new(&m, 1, MODEL_BRANCHES);
	core = model_core(model, 0);
	for (u32 depth = 1; depth <= 6; depth++) {
		u64 before = misses(core);

		for (u64 i = 0; i < depth; i++)
			model_branch(core, 0x100 * i, 0x100 * i + 5, MODEL_CALL, true, 0x9000);
		for (u64 i = depth; i-- > 0;)
			model_branch(core, 0x9010, 0x9011, MODEL_RETURN, true, 0x100 * i + 5);
		/* What is deeper than the stack has fallen out of it. */
		EXPECT_EQ(misses(core) - before, depth > 4 ? depth - 4 : 0);
	}
	/* A return to somewhere else. */
	model_branch(core, 0x100, 0x105, MODEL_CALL, true, 0x9000);
	EXPECT(model_branch(core, 0x9010, 0x9011, MODEL_RETURN, true, 0x107));
	model_free(model);
}

TEST(indirect_targets)
{
	struct model *model = model_of(MACHINE_BIMODAL, 0);
	struct model_core *core = model_core(model, 0);
	u64 state = 5, before = 0;

	for (u32 i = 0; i < 100; i++)
		model_branch(core, 0x4000, 0x4002, MODEL_CALL_IND, true, 0x7000);
	/* The first time of each path, of which a deep stack of calls makes some. */
	EXPECT(misses(core) <= 1);
	for (u32 i = 0; i < 2000; i++) {
		if (i == 1000)
			before = misses(core);
		model_branch(core, 0x5000, 0x5002, MODEL_JUMP_IND, true, 0x8000 + i % 5 * 64);
	}
	/* A cycle of five is known by its path. */
	EXPECT_EQ(misses(core) - before, 0);
	before = misses(core);
	for (u32 i = 0; i < 4000; i++)
		model_branch(core, 0x6000, 0x6002, MODEL_JUMP_IND, true,
			     0x8000 + random_number(&state) % 4 * 64);
	/* Three of four are wrong if there is nothing to know. */
	EXPECT(misses(core) - before > 2700 && misses(core) - before < 3300);
	model_free(model);
}

TEST(targets_that_do_not_fit_the_btb)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	m.branch.btb = 64;
	m.branch.btb_ways = 4;
	model = model_new(&m, 1, MODEL_BRANCHES | MODEL_CYCLES);
	core = model_core(model, 0);
	for (u32 round = 0; round < 10; round++)
		for (u64 i = 0; i < 64; i++)
			model_branch(core, i, i + 1, MODEL_JUMP, true, 0x9000);
	EXPECT_EQ(model_count(core, MODEL_BTB_MISSES), 64);
	for (u32 round = 0; round < 10; round++)
		for (u64 i = 0; i < 128; i++)
			model_branch(core, 0x10000 + i, 0x10001 + i, MODEL_JUMP, true, 0x9000);
	EXPECT_EQ(model_count(core, MODEL_BTB_MISSES), 64 + 1280);
	EXPECT_EQ(misses(core), 0);
	model_free(model);
}

TEST(what_came_first_leaves_the_btb_first)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	m.branch.btb = 64;
	m.branch.btb_ways = 4;
	model = model_new(&m, 1, MODEL_BRANCHES | MODEL_CYCLES);
	core = model_core(model, 0);
	/* One set; the first is used between the others, which does not keep it. */
	for (u64 i = 0; i < 5; i++) {
		model_branch(core, i * 16, i * 16 + 1, MODEL_JUMP, true, 0x9000);
		if (i < 4)
			model_branch(core, 0, 1, MODEL_JUMP, true, 0x9000);
	}
	EXPECT_EQ(model_count(core, MODEL_BTB_MISSES), 5);
	for (u64 i = 1; i < 5; i++)
		model_branch(core, i * 16, i * 16 + 1, MODEL_JUMP, true, 0x9000);
	EXPECT_EQ(model_count(core, MODEL_BTB_MISSES), 5);
	model_branch(core, 0, 1, MODEL_JUMP, true, 0x9000);
	EXPECT_EQ(model_count(core, MODEL_BTB_MISSES), 6);
	model_free(model);
}
