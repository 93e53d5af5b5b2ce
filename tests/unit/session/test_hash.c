/* The session's hash: what is in it is found, and in few steps, while it grows and shrinks. */
#include "session/hash.h"
#include "unit/test.h"

#define MANY 20000u

struct object {
	struct hash_link link;
};

static struct object objects[MANY];

static struct object *find(const struct hash *h, u64 key)
{
	struct hash_link *l = hash_find(h, key);

	return l ? container_of(l, struct object, link) : NULL;
}

TEST(what_is_in_it_is_found)
{
	struct hash h;

	memset(objects, 0, sizeof(objects));
	hash_init(&h);
	for (u32 i = 0; i < MANY; i++)
		hash_add(&h, &objects[i].link, i * 7ull);
	for (u32 i = 0; i < MANY; i++)
		ASSERT(find(&h, i * 7ull) == &objects[i]);
	EXPECT(!find(&h, 1));
	for (u32 i = 0; i < MANY; i += 2) {
		hash_del(&h, &objects[i].link);
		hash_del(&h, &objects[i].link);
	}
	for (u32 i = 0; i < MANY; i++)
		ASSERT(find(&h, i * 7ull) == (i % 2 ? &objects[i] : NULL));
	EXPECT_EQ(h.n, MANY / 2);
	hash_release(&h);
	EXPECT(!find(&h, 7));
}

TEST(several_with_one_number)
{
	struct hash h;
	u32 n = 0;

	memset(objects, 0, sizeof(objects));
	hash_init(&h);
	for (u32 i = 0; i < 1000; i++)
		hash_add(&h, &objects[i].link, i % 10);
	for (struct hash_link *l = hash_find(&h, 3); l; l = hash_next(l), n++)
		EXPECT_EQ((container_of(l, struct object, link) - objects) % 10, 3);
	EXPECT_EQ(n, 100u);
	hash_release(&h);
}

/* Numbers as they come: pids and inodes in a row, meters, tokens, multiples of a page. */
TEST(chains_stay_short)
{
	static const u64 strides[] = {1, 2, 8, 4096, 1ull << 32};
	struct hash h;

	for (u32 s = 0; s < ARRAY_SIZE(strides); s++) {
		memset(objects, 0, sizeof(objects));
		hash_init(&h);
		for (u32 i = 0; i < MANY; i++)
			hash_add(&h, &objects[i].link, 1000000 + i * strides[s]);
		EXPECT(hash_longest(&h) <= 8);
		hash_release(&h);
	}
}
