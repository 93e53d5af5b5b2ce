/* Sets of tags: replacement. */
#include "model/tags.h"

/* Makes the tree of @set point away from @way. */
static void point_away(struct tags *t, u32 set, u32 way)
{
	u64 tree = t->tree[set];
	u32 node = 1;

	for (u32 level = t->levels; level-- > 0;) {
		u32 right = way >> level & 1;

		tree = right ? tree & ~BIT(node) : tree | BIT(node);
		node = node * 2 + right;
	}
	t->tree[set] = tree;
	t->recent[set] = (u8)way;
}

/* Where the tree points. A number of ways that is no power of two leaves leaves without one. */
static u32 pointed_at(const struct tags *t, u32 set)
{
	u32 node = 1, way = 0;

	for (u32 level = t->levels; level-- > 0;) {
		u32 right = t->tree[set] >> node & 1;

		if (((way * 2 + 1) << level) >= t->ways)
			right = 0;
		way = way * 2 + right;
		node = node * 2 + right;
	}
	return way;
}

/* Moves what is at @i to the front. */
static void to_front(u64 *word, u32 i)
{
	u64 first = word[i];

	for (; i; i--)
		word[i] = word[i - 1];
	word[0] = first;
}

u64 *tags_touch_other(struct tags *t, u32 set, u64 key)
{
	u64 *word = t->word + (u64)set * t->ways;

	for (u32 i = 0; i < t->ways; i++) {
		if (!tag_is(word[i], key))
			continue;
		if (t->tree) {
			point_away(t, set, i);
			return word + i;
		}
		to_front(word, i);
		return word;
	}
	return NULL;
}

u64 tags_insert(struct tags *t, u32 set, u64 tag)
{
	u64 *word = t->word + (u64)set * t->ways, old;
	u32 way = 0;

	if (!t->tree) {
		/* Empty places are behind the others. */
		old = word[t->ways - 1];
		for (u32 i = t->ways - 1; i; i--)
			word[i] = word[i - 1];
		word[0] = tag;
		return old;
	}
	while (way < t->ways && word[way])
		way++;
	if (way == t->ways)
		way = pointed_at(t, set);
	old = word[way];
	word[way] = tag;
	point_away(t, set, way);
	return old;
}

bool tags_insert_behind(struct tags *t, u32 set, u64 tag, u64 *old)
{
	u64 *word = t->word + (u64)set * t->ways;
	u32 recent = t->tree ? t->recent[set] : 0;

	if (!word[recent]) {
		*old = tags_insert(t, set, tag);
		return true;
	}
	if (t->ways == 1)
		return false;
	if (t->tree) {
		*old = tags_insert(t, set, tag);
		point_away(t, set, recent);
		return true;
	}
	*old = word[t->ways - 1];
	for (u32 i = t->ways - 1; i > 1; i--)
		word[i] = word[i - 1];
	word[1] = tag;
	return true;
}

u64 tags_remove(struct tags *t, u32 set, u64 key)
{
	u64 *word = tags_find(t, set, key);
	u64 *end = t->word + ((u64)set + 1) * t->ways;
	u64 old;

	if (!word)
		return 0;
	old = *word;
	if (!t->tree)
		for (; word + 1 < end; word++)
			word[0] = word[1];
	*word = 0;
	return old;
}
