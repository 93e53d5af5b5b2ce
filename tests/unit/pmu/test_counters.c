/* Assigning events to counters. */
#include "unit/test.h"

#include <errno.h>

#include "pmu/counters.h"

/* Events are only addresses to counters.c. */
static char pool[COUNTERS_MAX + 1];
static int place[COUNTERS_MAX + 1];

static struct event *ev(int i)
{
	return (struct event *)(void *)&pool[i];
}

static void moved(struct event *event, u32 counter)
{
	place[(char *)event - pool] = (int)counter;
}

TEST(takes_the_lowest_and_moves_whom_it_can)
{
	struct counters c = {0};

	EXPECT_EQ(counters_add(&c, ev(0), 0x7, 0, moved), 0);
	EXPECT_EQ(place[0], 0);
	EXPECT_EQ(counters_add(&c, ev(1), 0x3, 0, moved), 0);
	EXPECT_EQ(place[1], 1);
	/* 0 only: 0 goes to 1, which sends 1... nowhere; so 0 goes to 2. */
	EXPECT_EQ(counters_add(&c, ev(2), 0x1, 0, moved), 0);
	EXPECT_EQ(place[2], 0);
	EXPECT_EQ(place[1], 1);
	EXPECT_EQ(place[0], 2);
	EXPECT_EQ(counters_used(&c), 7);
	EXPECT_EQ(counters_add(&c, ev(3), 0x7, 0, moved), -ENOSPC);
	EXPECT_EQ(place[0] * 100 + place[1] * 10 + place[2], 210);
	counters_del(&c, ev(1));
	EXPECT_EQ(counters_used(&c), 5);
	EXPECT_EQ(counters_add(&c, ev(3), 0x7, 0, moved), 0);
	EXPECT_EQ(place[3], 1);
}

TEST(leaves_alone_what_others_have)
{
	struct counters c = {0};

	EXPECT_EQ(counters_add(&c, ev(0), ~0ull, 0x3, moved), 0);
	EXPECT_EQ(place[0], 2);
	EXPECT_EQ(counters_add(&c, ev(1), 0x4, 0x3, moved), 0);
	EXPECT_EQ(place[1], 2);
	EXPECT_EQ(place[0], 3);
	EXPECT_EQ(counters_add(&c, ev(2), 0x3, 0x3, moved), -ENOSPC);
}

TEST(fills_all_64)
{
	struct counters c = {0};

	for (int i = 0; i < COUNTERS_MAX; i++)
		EXPECT_EQ(counters_add(&c, ev(i), ~0ull, 0, moved), 0);
	EXPECT_EQ(counters_used(&c), ~0ull);
	EXPECT_EQ(counters_add(&c, ev(COUNTERS_MAX), ~0ull, 0, moved), -ENOSPC);
	for (int i = 0; i < COUNTERS_MAX; i++)
		counters_del(&c, ev(i));
	EXPECT_EQ(counters_used(&c), 0);
}

/* Against trying every assignment: 5 events on 4 counters, all masks that a generator gives. */
static bool brute(const u64 *masks, u32 n, u64 used)
{
	if (!n)
		return true;
	for (u32 i = 0; i < 6; i++)
		if (masks[0] & ~used & BIT(i) && brute(masks + 1, n - 1, used | BIT(i)))
			return true;
	return false;
}

TEST(fits_exactly_when_some_assignment_does)
{
	u32 seed = 1, fit = 0;

	for (int round = 0; round < 20000; round++) {
		u64 masks[6];
		u32 n = 1 + (u32)round % 6;

		for (u32 i = 0; i < n; i++) {
			seed = seed * 1103515245 + 12345;
			masks[i] = seed >> 16 & seed >> 22 & 0x3f;
		}
		EXPECT_EQ(counters_fit(masks, n), brute(masks, n, 0));
		fit += counters_fit(masks, n);
	}
	EXPECT(fit > 1000 && fit < 19000);
}
