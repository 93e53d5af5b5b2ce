/* Side exits that count when they are taken: by their stub, in front of their target, or apart. */
#include "unit/dbt/guest.h"
#include "unit/test.h"

#include <stdlib.h>

u64 exits_ways(u64 a, u64 b), exits_apart(u64 a);
extern const char exits_below[], exits_apart_end[];

/* Calls @fn(@a, @b), and holds what it returns and how many instructions and branches retire. */
static void expect(const void *fn, u64 a, u64 b, u64 value, u64 insns, u64 taken)
{
	struct guest *g = guest_main();
	u64 before[] = {guest_count(g, METER_INSTRUCTIONS), guest_count(g, METER_TAKEN),
			guest_count(g, METER_RETURNS)};

	EXPECT_EQ(guest_call(g, fn, a, b, 0), value);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before[0], insns);
	EXPECT_EQ(guest_count(g, METER_TAKEN) - before[1], taken);
	EXPECT_EQ(guest_count(g, METER_RETURNS) - before[2], 1);
}

static void expect_below(void)
{
	expect(exits_ways, 1, 0, 1, 6, 1);
}

static void expect_above(void)
{
	expect(exits_ways, 5, 3, 6, 10, 1);
}

static void expect_neither(void)
{
	expect(exits_ways, 5, 9, 5, 7, 0);
}

/* Nothing is translated, and no exit linked. */
static void forget_code(void)
{
	struct guest *g = guest_main();

	dbt_set_mask(g->t, DBT_MASK_COUNT);
	dbt_set_mask(g->t, DBT_MASK_ALL);
}

TEST(each_way_counts_from_its_first_time)
{
	for (u32 i = 0; i < 4; i++) {
		expect_neither();
		expect_below();
		expect_above();
	}
	dbt_check(guest_main()->t);
}

TEST(a_target_may_have_been_there_before)
{
	struct dbt_stats before, after;

	forget_code();
	expect(exits_below, 0, 0, 1, 3, 0);
	dbt_stats_read(&before);
	expect_below();
	dbt_stats_read(&after);
	/* An image takes the numbers with it. */
	if (!getenv("IMAGED")) {
		EXPECT_EQ(after.blocks - before.blocks, 1);
		EXPECT_EQ(after.links - before.links, 1);
	}
	for (u32 i = 0; i < 3; i++) {
		expect_below();
		expect(exits_below, 0, 0, 1, 3, 0);
		expect_above();
	}
	dbt_check(guest_main()->t);
}

/* The first time, when blocks are made and exits linked, and when all that is done. */
static void interrupt_everywhere(void (*way)(void), bool first)
{
	struct guest *g = guest_main();

	for (g->step = 1;; g->step++) {
		u64 step = g->step;

		if (first)
			forget_code();
		way();
		if (g->stepped < step || test_failures)
			break;
	}
	g->step = 0;
}

TEST(signals_anywhere_at_an_exit)
{
	for (u32 i = 0; i < 2; i++) {
		interrupt_everywhere(expect_neither, !i);
		interrupt_everywhere(expect_below, !i);
		interrupt_everywhere(expect_above, !i);
	}
}

/* mov eax, @value; ret */
static void write_return(u8 *p, u32 value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}

TEST(a_target_that_is_made_again_is_linked_again)
{
	struct dbt_stats before, after;
	u8 *p;

	guest_main();
	p = guest_code(8192, DBT_EXEC_WRITABLE);
	memcpy(p, (const void *)exits_apart, (size_t)(exits_apart_end - (const char *)exits_apart));
	expect(p, 0, 0, 7, 4, 0);
	for (u32 i = 0; i < 20; i++) {
		write_return(p + 4096, i);
		dbt_stats_read(&before);
		for (u32 n = 0; n < 3; n++)
			expect(p, 1, 0, i, 4, 1);
		dbt_stats_read(&after);
		EXPECT_EQ(after.blocks - before.blocks, 1);
		EXPECT_EQ(after.links - before.links, 1);
		expect(p, 0, 0, 7, 4, 0);
		dbt_check(guest_main()->t);
	}
}
