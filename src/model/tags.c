/* Sets of tags: replacement. */
#include "model/tags.h"

#define EACH_BYTE 0x0101010101010101ull
#define TOP_BITS  0x8080808080808080ull

static u64 *set_of(const struct tags *t, u32 set)
{
	return t->word + (u64)set * t->ways;
}

void tags_shape(struct tags *t, u32 sets, u32 ways, enum tags_policy policy)
{
	t->sets = sets;
	t->ways = ways;
	t->mask = sets - 1;
	t->divides = sets & (sets - 1);
	if (ways == 1)
		t->kind = ORDER_NONE;
	else if (policy == TAGS_FIFO)
		t->kind = ORDER_TURN;
	else if (policy == TAGS_PLRU)
		t->kind = ORDER_TREE;
	else
		t->kind = ways <= 16 ? ORDER_LIST : ORDER_STAMPS;
	t->part_words = ways > 1 ? (ways + 7) / 8 : 0;
	while (t->kind == ORDER_TREE && BIT(t->levels) < ways)
		t->levels++;
}

struct tags_sizes tags_sizes(const struct tags *t)
{
	u64 sets = t->sets, words = sets * sizeof(u64);

	return (struct tags_sizes){
		.word = words * t->ways,
		.bytes = words * t->part_words,
		.order = t->kind == ORDER_STAMPS ? words * t->ways
			 : t->kind == ORDER_NONE ? 0
						 : words,
		.away = t->kind == ORDER_TREE ? t->ways * 2 * sizeof(u64) : 0,
		.recent = t->kind == ORDER_NONE ? 0 : sets * sizeof(u16),
		.hint = t->kind == ORDER_STAMPS && sets == 1 && t->ways <= TAGS_HINTS ? TAGS_HINTS
										      : 0,
	};
}

void tags_begin(struct tags *t)
{
	if (t->kind != ORDER_TREE)
		return;
	for (u32 way = 0; way < t->ways; way++) {
		u32 node = 1;

		for (u32 level = t->levels; level-- > 0;) {
			u32 right = way >> level & 1;

			t->away[way * 2] |= BIT(node);
			t->away[way * 2 + 1] |= right ? 0 : BIT(node);
			node = node * 2 + right;
		}
	}
}

/* Where the tree points. A number of ways that is no power of two leaves leaves without one. */
static inline u32 pointed_at(const struct tags *t, u32 set)
{
	u64 order = t->order[set];
	u32 node = 1, way = 0;

	if (likely(BIT(t->levels) == t->ways)) {
		for (u32 level = t->levels; level-- > 0;)
			node = node * 2 + (order >> node & 1);
		return node - t->ways;
	}
	for (u32 level = t->levels; level-- > 0;) {
		u32 right = order >> node & 1;

		if (((way * 2 + 1) << level) >= t->ways)
			right = 0;
		way = way * 2 + right;
		node = node * 2 + right;
	}
	return way;
}

/* The way of the tag; -1: it is not there. */
static inline s32 way_of(const struct tags *t, u32 set, u64 key)
{
	const u64 *word = set_of(t, set), *bytes = t->bytes + (u64)set * t->part_words;
	u8 byte = tag_byte(key);
	u64 each = byte * EACH_BYTE;

	if (t->hint && tag_is(word[t->hint[byte]], key))
		return t->hint[byte];
	for (u32 i = 0; i < t->part_words; i++) {
		u64 x = bytes[i] ^ each;

		/* Each byte that is 0, and perhaps some above one. */
		for (u64 like = (x - EACH_BYTE) & ~x & TOP_BITS; like; like &= like - 1) {
			u32 way = i * 8 + (u32)__builtin_ctzll(like) / 8;

			if (way < t->ways && tag_is(word[way], key)) {
				if (t->hint)
					t->hint[byte] = (u8)way;
				return (s32)way;
			}
		}
	}
	return -1;
}

static void put(struct tags *t, u32 set, u32 way, u64 word)
{
	u8 *bytes = (u8 *)(t->bytes + (u64)set * t->part_words);

	set_of(t, set)[way] = word;
	bytes[way] = tag_byte(word);
}

/* An empty place; as many as there are ways: there is none. */
static u32 empty(const struct tags *t, u32 set)
{
	const u64 *bytes = t->bytes + (u64)set * t->part_words;

	for (u32 i = 0; i < t->part_words; i++) {
		u64 none = (bytes[i] - EACH_BYTE) & ~bytes[i] & TOP_BITS;
		u32 way = i * 8 + (none ? (u32)__builtin_ctzll(none) / 8 : 0);

		if (none)
			return way < t->ways ? way : t->ways;
	}
	return t->ways;
}

/* The place for what comes next. */
static u32 victim(struct tags *t, u32 set)
{
	u32 way = 0;

	if (t->kind == ORDER_LIST)
		return (t->order[set] ^ LIST_AT_FIRST) >> 4 * (t->ways - 1) & 15;
	if (t->kind == ORDER_STAMPS) {
		const u64 *stamp = t->order + (u64)set * t->ways;

		for (u32 i = 1; i < t->ways; i++)
			if (stamp[i] < stamp[way])
				way = i;
		return way;
	}
	way = empty(t, set);
	if (way < t->ways)
		return way;
	if (t->kind == ORDER_TREE)
		return pointed_at(t, set);
	way = (u32)t->order[set];
	t->order[set] = way + 1 < t->ways ? way + 1 : 0;
	return way;
}

u64 *tags_find(const struct tags *t, u32 set, u64 key)
{
	u64 *word = set_of(t, set);
	s32 way;

	if (t->kind == ORDER_NONE)
		return tag_is(*word, key) ? word : NULL;
	way = way_of(t, set, key);
	return way < 0 ? NULL : word + way;
}

u64 *tags_touch_other(struct tags *t, u32 set, u64 key)
{
	s32 way = way_of(t, set, key);

	if (way < 0)
		return NULL;
	tags_use(t, set, (u32)way);
	return set_of(t, set) + way;
}

u64 tags_insert(struct tags *t, u32 set, u64 tag)
{
	u64 *word = set_of(t, set), old = *word;
	u32 way;

	if (t->kind == ORDER_NONE) {
		*word = tag;
		return old;
	}
	way = victim(t, set);
	old = word[way];
	put(t, set, way, tag);
	tags_use(t, set, way);
	return old;
}

bool tags_insert_behind(struct tags *t, u32 set, u64 tag, u64 *old)
{
	u32 recent;

	if (t->kind == ORDER_NONE) {
		if (*set_of(t, set))
			return false;
		*old = tags_insert(t, set, tag);
		return true;
	}
	recent = t->recent[set];
	if (!set_of(t, set)[recent]) {
		*old = tags_insert(t, set, tag);
		return true;
	}
	*old = tags_insert(t, set, tag);
	tags_use(t, set, recent);
	return true;
}

/* The way goes behind all others; the one before it may have become the one that was used last. */
static void use_no_more(struct tags *t, u32 set, u32 way)
{
	if (t->kind == ORDER_LIST) {
		u64 list = t->order[set] ^ LIST_AT_FIRST;
		u32 at = list_place(list, way), last = 4 * (t->ways - 1);
		u64 before = BIT(at) - 1, behind = last < 60 ? ~(BIT(last + 4) - 1) : 0;

		list = (list & (before | behind)) | (list >> 4 & ~before & (BIT(last) - 1)) |
		       (u64)way << last;
		t->order[set] = list ^ LIST_AT_FIRST;
		t->recent[set] = list & 15;
	} else if (t->kind == ORDER_STAMPS) {
		u64 *stamp = t->order + (u64)set * t->ways;
		u32 last = 0;

		stamp[way] = 0;
		for (u32 i = 1; i < t->ways; i++)
			if (stamp[i] > stamp[last])
				last = i;
		t->recent[set] = (u16)last;
	}
}

u64 tags_remove(struct tags *t, u32 set, u64 key)
{
	u64 *word = tags_find(t, set, key), old;

	if (!word)
		return 0;
	old = *word;
	if (t->kind == ORDER_NONE) {
		*word = 0;
		return old;
	}
	put(t, set, (u32)(word - set_of(t, set)), 0);
	use_no_more(t, set, (u32)(word - set_of(t, set)));
	return old;
}
