/* list, bitmap and cursor. */
#include "unit/test.h"

#include "base/bitmap.h"
#include "base/cursor.h"
#include "base/list.h"

struct item {
	int n;
	struct list link;
};

TEST(list_keeps_order_and_survives_removal)
{
	struct list head;
	struct item items[4], *it, *tmp;
	int seen = 0;

	list_init(&head);
	EXPECT(list_empty(&head));
	for (int i = 0; i < 4; i++) {
		items[i].n = i;
		list_add_tail(&items[i].link, &head);
	}
	list_move_tail(&items[0].link, &head);
	list_for_each_entry_safe (it, tmp, &head, link) {
		seen = seen * 10 + it->n;
		list_del(&it->link);
		list_del(&it->link);
	}
	EXPECT_EQ(seen, 1230);
	EXPECT(list_empty(&head));
	EXPECT(list_first(&head, struct item, link) == NULL);
}

TEST(bitmap_finds_bits_across_words)
{
	u64 map[BITMAP_WORDS(130)] = {0};
	u32 bit, sum = 0;

	bitmap_set(map, 0);
	bitmap_set(map, 63);
	bitmap_set(map, 64);
	bitmap_set(map, 129);
	bitmap_clear(map, 63);
	bitmap_for_each (bit, map, 130)
		sum += bit;
	EXPECT_EQ(sum, 64 + 129);
	EXPECT_EQ(bitmap_next(map, 129, 65), 129);
	EXPECT(!bitmap_test(map, 63));
}

TEST(cursor_never_reads_past_the_end)
{
	/* The bytes end where the allocation ends, so that a sanitizer sees one byte too many. */
	u8 *bytes = malloc(7);
	struct cursor c = cursor_over(bytes, 7);

	memcpy(bytes, "\1\2\3\4\5\6\7", 7);
	EXPECT_EQ(cursor_u32(&c), 0x04030201);
	EXPECT_EQ(cursor_u32(&c), 0);
	EXPECT(c.torn);
	EXPECT_EQ(cursor_u8(&c), 0);
	free(bytes);
}

/* As a section that a file does not have is; a sanitizer minds a sum with NULL. */
TEST(cursor_over_nothing)
{
	struct cursor c = cursor_over(NULL, 0);

	EXPECT_EQ(cursor_left(&c), 0);
	EXPECT_EQ(cursor_u8(&c), 0);
	EXPECT(c.torn);
}
