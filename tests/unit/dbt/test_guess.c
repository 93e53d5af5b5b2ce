/* Jumps through a word in memory: where they go is guessed when they are translated. */
#include "unit/dbt/guest.h"
#include "unit/test.h"

#include <signal.h>

u64 stub_to(void *to), stub_bind(void), stub_unbound(void);
extern char stub_one[], stub_two[], stub_zero[], stub_binder[], stub_never_binder[];
extern void *stub_word, *stub_bound, *stub_never;

/* Calls @fn(a), and holds what it returns and how many instructions and branches it retires. */
static void expect(const void *fn, const void *a, u64 value, u64 insns, u64 branches)
{
	struct guest *g = guest_main();
	u64 before[] = {guest_count(g, METER_INSTRUCTIONS), guest_count(g, METER_BRANCHES)};

	EXPECT_EQ(guest_call(g, fn, (u64)a, 0, 0), value);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before[0], insns);
	EXPECT_EQ(guest_count(g, METER_BRANCHES) - before[1], branches);
}

/* How many native instructions that takes when nothing is translated any more. */
static u64 native(const void *fn, const void *a)
{
	struct guest *g = guest_main();

	guest_call(g, fn, (u64)a, 0, 0);
	guest_call(g, fn, (u64)a, 0, 0);
	g->step = ~0ull;
	guest_call(g, fn, (u64)a, 0, 0);
	g->step = 0;
	return g->stepped;
}

TEST(a_guess_that_is_wrong_changes_nothing)
{
	char *const to[] = {stub_one, stub_one, stub_two,  stub_two, stub_zero,
			    stub_one, stub_two, stub_zero, stub_one};

	for (u32 i = 0; i < ARRAY_SIZE(to); i++) {
		u64 value = to[i] == stub_one ? 0x101 : to[i] == stub_two ? 0x102 : 0;

		expect(stub_to, to[i], value, 11, 4);
	}
	EXPECT(native(stub_to, stub_one) < native(stub_to, stub_two));
}

TEST(signals_anywhere_at_a_guess)
{
	struct guest *g = guest_main();

	for (u32 i = 0; i < 3; i++) {
		char *to = i == 0 ? stub_one : i == 1 ? stub_two : stub_zero;

		for (g->step = 1;; g->step++) {
			u64 step = g->step;

			expect(stub_to, to, i == 2 ? 0 : 0x101 + i, 11, 4);
			if (g->stepped < step || test_failures)
				break;
		}
		g->step = 0;
	}
}

TEST(a_stub_may_lead_to_nothing)
{
	struct guest *g = guest_main();

	expect(stub_to, stub_one, 0x101, 11, 4);
	for (u32 i = 0; i < 2; i++) {
		guest_call(g, stub_to, 0x1000, 0, 0);
		EXPECT_EQ(g->fault_sig, SIGSEGV);
		EXPECT_EQ(g->fault_addr, 0x1000);
		expect(stub_to, stub_two, 0x102, 11, 4);
	}
}

/* Else who takes the image would translate it once more, as it is called once while unbound. */
TEST(a_stub_that_has_been_bound_meanwhile_is_in_an_image)
{
	struct guest *g = guest_main();
	struct dbt_stats before, after;

	stub_bound = stub_binder;
	expect(stub_bind, NULL, 1, 14, 6);
	dbt_stats_read(&before);
	dbt_image_complete(g->t);
	dbt_stats_read(&after);
	EXPECT(after.blocks > before.blocks);
	before = after;
	expect(stub_bind, NULL, 1, 6, 4);
	/* None of them are new; from an image they begin at 0. */
	dbt_stats_read(&after);
	EXPECT(after.blocks <= before.blocks);
	dbt_check(g->t);
}

TEST(a_stub_that_is_bound_later_is_guessed_then)
{
	stub_bound = stub_binder;
	expect(stub_bind, NULL, 1, 14, 6);
	for (u32 i = 0; i < 3; i++)
		expect(stub_bind, NULL, 1, 6, 4);
	stub_bound = stub_two;
	expect(stub_bind, NULL, 2, 6, 4);
	{
		u64 other = native(stub_bind, NULL);

		stub_bound = stub_one;
		EXPECT(native(stub_bind, NULL) < other);
	}
	stub_bound = stub_binder;
	expect(stub_bind, NULL, 1, 14, 6);
}

TEST(a_stub_that_is_never_bound_is_not_translated_for_ever)
{
	struct dbt_stats before, after;

	stub_never = stub_never_binder;
	for (u32 i = 0; i < 8; i++)
		expect(stub_unbound, NULL, 1, 9, 6);
	dbt_stats_read(&before);
	for (u32 i = 0; i < 20; i++)
		expect(stub_unbound, NULL, 1, 9, 6);
	dbt_stats_read(&after);
	EXPECT_EQ(after.blocks, before.blocks);
	dbt_check(guest_main()->t);
}
