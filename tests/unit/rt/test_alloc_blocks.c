/* Blocks of a program's allocator by address, against a list of them. */
#include "rt/task/alloc-blocks.h"

#include <stdlib.h>
#include <string.h>

#include "unit/test.h"

#define ROOM  512u
#define SPACE 4096u

/* Which block each byte of a small space is in, by its site; 0: in none. */
static u64 site_at[SPACE];

static u64 rnd_state = 1;

static u32 rnd(u32 below)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)((rnd_state >> 33) % below);
}

static void forget(u64 at)
{
	u64 site = site_at[at];

	for (u32 i = 0; site && i < SPACE; i++)
		if (site_at[i] == site)
			site_at[i] = 0;
}

static void note(u64 start, u64 size, u64 site)
{
	for (u64 i = start; i < start + size; i++)
		forget(i);
	for (u64 i = start; i < start + size; i++)
		site_at[i] = site;
}

static void expect_same(const struct alloc_blocks *b)
{
	for (u32 i = 0; i < SPACE; i++) {
		const struct alloc_block *found = alloc_blocks_find(b, i);

		EXPECT_EQ(found ? found->site : 0, site_at[i]);
	}
}

TEST(like_a_list)
{
	struct alloc_block *room = calloc(ROOM, sizeof(*room));
	struct alloc_blocks b = {.block = room, .room = ROOM};

	memset(site_at, 0, sizeof(site_at));
	for (u64 n = 1; n < 4000; n++) {
		u64 start = rnd(SPACE - 256), size = 1 + rnd(rnd(8) ? 24 : 256);
		const struct alloc_block *found;

		if (rnd(3)) {
			/* More than 400 of nine bytes and one do not fit in the space. */
			ASSERT(alloc_blocks_add(&b, start, size, n));
			note(start, size, n);
		} else {
			found = alloc_blocks_find(&b, start);
			if (found) {
				u64 first = found->start;
				u32 number = found->number;

				/* Neither from within nor by another's number. */
				alloc_blocks_remove(&b, first + 1, 0);
				alloc_blocks_remove(&b, first, number + 1);
				EXPECT(alloc_blocks_find(&b, first) == found || first + 1 == start);
				alloc_blocks_remove(&b, first, rnd(2) ? number : 0);
				forget(first);
			}
		}
		if (n % 50 == 0)
			expect_same(&b);
	}
	expect_same(&b);
	free(room);
}

TEST(room)
{
	struct alloc_block *small = calloc(4, sizeof(*small)), *large = calloc(64, sizeof(*large));
	struct alloc_blocks b = {.block = small, .room = 4};

	EXPECT(!alloc_blocks_find(&b, 0));
	for (u64 i = 1; i < 4; i++)
		EXPECT(alloc_blocks_add(&b, i * 16, 16, i));
	EXPECT(!alloc_blocks_add(&b, 256, 16, 9));
	EXPECT(!alloc_blocks_find(&b, 256));
	EXPECT_EQ(alloc_blocks_find(&b, 40)->site, 2);
	/* One that takes the place of others needs no more. */
	EXPECT(alloc_blocks_add(&b, 17, 30, 5));
	EXPECT_EQ(alloc_blocks_find(&b, 40)->site, 5);
	EXPECT(!alloc_blocks_find(&b, 16));
	EXPECT(!alloc_blocks_find(&b, 47));
	alloc_blocks_move(&b, large, 64);
	memset(small, 0xff, 4 * sizeof(*small));
	for (u64 i = 0; i < 40; i++)
		EXPECT(alloc_blocks_add(&b, 4096 + i * 64, 64, 100 + i));
	EXPECT_EQ(alloc_blocks_find(&b, 20)->site, 5);
	EXPECT_EQ(alloc_blocks_find(&b, 4096 + 39 * 64 + 63)->site, 139);
	free(small);
	free(large);
}

/* What malloc() has given for nothing has an address all the same; some sizes are none. */
TEST(odd_sizes)
{
	struct alloc_block room[8];
	struct alloc_blocks b = {.block = room, .room = 8};

	EXPECT(alloc_blocks_add(&b, 64, 0, 1));
	EXPECT_EQ(alloc_blocks_find(&b, 64)->site, 1);
	EXPECT(!alloc_blocks_find(&b, 65));
	EXPECT(!alloc_blocks_add(&b, 128, UINT64_MAX, 2));
	EXPECT(alloc_blocks_add(&b, 0, UINT64_MAX, 3));
	EXPECT_EQ(alloc_blocks_find(&b, 64)->site, 3);
	EXPECT_EQ(alloc_blocks_find(&b, UINT64_MAX - 1)->site, 3);
}

/* In the order of addresses a tree that is not balanced would be a list: this would take hours. */
TEST(balanced)
{
	u32 n = 1u << 20;
	struct alloc_block *room = calloc(n + 1, sizeof(*room));
	struct alloc_blocks b = {.block = room, .room = n + 1};

	for (u64 i = 0; i < n; i++)
		ASSERT(alloc_blocks_add(&b, 0x7f0000000000 + i * 32, 24, i + 1));
	for (u64 i = 0; i < n; i += 3)
		EXPECT_EQ(alloc_blocks_find(&b, 0x7f0000000000 + i * 32 + 23)->site, i + 1);
	for (u64 i = 0; i < n; i++)
		alloc_blocks_remove(&b, 0x7f0000000000 + i * 32, 0);
	EXPECT(!b.root);
	free(room);
}
