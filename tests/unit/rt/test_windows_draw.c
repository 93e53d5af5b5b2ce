/* Which of a session's processes the model sees from their beginning. */
#include "rt/task/windows-draw.h"
#include "unit/test.h"

/* For how many children of @place those stand that are seen of @n; *@seen: these. */
static u64 stands_for(struct model_place place, u32 n, u32 *seen)
{
	u64 all = 0;

	*seen = 0;
	for (u32 i = 0; i < n; i++) {
		struct model_place child = draw_child(&place, true);

		if (child.unseen)
			continue;
		++*seen;
		all += draw_times(&child);
	}
	return all;
}

TEST(the_first_are_seen)
{
	struct model_place place = {0};
	u32 seen;

	EXPECT_EQ(draw_times(&place), 1);
	EXPECT_EQ(stands_for(place, 5, &seen), 5);
	EXPECT_EQ(seen, 5);
}

/* Of those behind them as many as a third of those before them have one, but twelve at most. */
TEST(who_is_seen_stands_for_the_others)
{
	static const struct {
		u32 n, seen; /* all of the last ones are over */
	} row[] = {{7, 6},   {9, 7},   {12, 8},  {16, 9},  {21, 10},
		   {28, 11}, {37, 12}, {49, 13}, {61, 14}, {613, 60}};

	for (u64 key = 0; key < 50; key++)
		for (u32 i = 0; i < ARRAY_SIZE(row); i++) {
			struct model_place place = {.key = key};
			u32 seen;

			EXPECT_EQ(stands_for(place, row[i].n, &seen), row[i].n);
			EXPECT_EQ(seen, row[i].seen);
		}
}

/* Which one that is differs, or what a script does in turns would fall in with it. */
TEST(any_of_several_is_drawn)
{
	u32 drawn[12] = {0};

	for (u64 key = 0; key < 1600; key++) {
		struct model_place place = {.key = key};

		for (u32 number = 1; number <= 61; number++) {
			struct model_place child = draw_child(&place, true);

			if (number >= 50)
				drawn[number - 50] += !child.unseen;
		}
	}
	for (u32 i = 0; i < ARRAY_SIZE(drawn); i++)
		EXPECT(drawn[i] > 90 && drawn[i] < 180);
}

TEST(descendants)
{
	struct model_place place = {0}, child, grandchild = {0};
	u32 seen;

	for (u32 i = 0; i < 49; i++)
		(void)draw_child(&place, true);
	/* One is seen, for 12. */
	do
		child = draw_child(&place, true);
	while (child.unseen);
	EXPECT_EQ(draw_times(&child), 12);
	EXPECT_EQ(child.behind + 1, place.children);
	grandchild = draw_child(&child, true);
	EXPECT_EQ(grandchild.behind, child.behind);
	grandchild = draw_child(&child, true);
	EXPECT_EQ(grandchild.behind + 1, 2 * place.children);
	/* Of one that is not seen the first ones are not, and the others count for themselves. */
	do
		child = draw_child(&place, true);
	while (!child.unseen);
	EXPECT_EQ(draw_times(&child), 1);
	EXPECT_EQ(stands_for(child, 3, &seen), 0);
}

/*
 * Of a process that has others in front of it children are drawn from the first one on: one of as
 * many as a third of those in front of them. In the mean all are counted, however many there are.
 */
TEST(descendants_of_who_is_not_the_first)
{
	static const struct {
		u32 behind, n, most; /* so many are seen at most, of n */
	} row[] = {{1, 1, 1},  {4, 1, 1},  {8, 1, 1},   {8, 3, 2},   {11, 5, 2},
		   {36, 1, 1}, {36, 5, 1}, {36, 12, 1}, {36, 61, 6}, {1000, 5, 1}};
	const u32 keys = 20000;

	for (u32 i = 0; i < ARRAY_SIZE(row); i++) {
		u64 all = 0;

		for (u64 key = 0; key < keys; key++) {
			struct model_place place = {.key = key << 20 | 7, .behind = row[i].behind};
			u32 seen;

			all += stands_for(place, row[i].n, &seen);
			EXPECT(seen <= row[i].most);
		}
		EXPECT(all > 9ull * keys * row[i].n / 10);
		EXPECT(all < 11ull * keys * row[i].n / 10);
	}
}

/* All work is done by the only child of the only child of each: they are seen as often as it is. */
TEST(chains)
{
	for (u64 key = 0; key < 200; key++) {
		struct model_place place = {.key = key << 20 | 5};
		u64 all = 0;

		for (u32 i = 0; i < 61; i++) {
			struct model_place child = draw_child(&place, true);
			struct model_place grandchild = draw_child(&child, true);
			struct model_place last = draw_child(&grandchild, true);

			EXPECT_EQ(last.unseen, child.unseen);
			all += last.unseen ? 0 : draw_times(&last);
		}
		EXPECT_EQ(all, 61);
	}
}

/* While no event is open nobody has a place. */
TEST(first_again)
{
	struct model_place place = {.more = 3, .behind = 3, .unseen = 1}, child;

	child = draw_child(&place, false);
	EXPECT(!child.more && !child.behind && !child.unseen && !child.children);
	EXPECT_EQ(place.children, 0);
}

TEST(very_many)
{
	struct model_place place = {.more = 0x7fffffff, .behind = 0x7fffffff, .children = ~0u - 9};

	for (u32 i = 0; i < 9; i++) {
		struct model_place child = draw_child(&place, true);

		EXPECT(child.more < 1 << 20 && child.behind < 1 << 20);
	}
}
