/*
 * PURPOSE: sets of tags that replace each other: what caches, TLBs and the BTB consist of.
 *
 * A tag is a word: the key, whose bit 0 is set, and flags in bits 1 to 3, which the owner uses as
 * he likes; 0 is an empty place. So memory of zeros is an empty array. A set under LRU has the most
 * recent tag first. A set under PLRU keeps its tags in place, with a tree of bits that point away
 * from what was used last; touching the most recent one changes neither, so that is the fast way of
 * both.
 */
#ifndef MODEL_TAGS_H
#define MODEL_TAGS_H

#include "base/types.h"

#define TAG_VALID 1ull
#define TAG_FLAGS 14ull

struct tags {
	u64 *word;  /* sets * ways; set by tags_place(), in the model's memory */
	u64 *tree;  /* of each set, NULL: LRU */
	u8 *recent; /* with a tree: the way that was used last */
	u64 mask;   /* sets - 1 */
	u32 sets, ways;
	bool divides; /* the number of sets is no power of two */
	u32 levels;   /* of the tree */
	u32 shift;    /* an address without these bits is what is distributed over the sets */
};

static inline bool tag_is(u64 word, u64 key)
{
	return !((word ^ key) & ~TAG_FLAGS);
}

static inline u32 tags_set(const struct tags *t, u64 addr)
{
	u64 n = addr >> t->shift;

	return unlikely(t->divides) ? (u32)(n % t->sets) : (u32)(n & t->mask);
}

/* The tag without using it; NULL: it is not there. */
static inline u64 *tags_find(const struct tags *t, u32 set, u64 key)
{
	u64 *word = t->word + (u64)set * t->ways;

	for (u32 i = 0; i < t->ways; i++)
		if (tag_is(word[i], key))
			return word + i;
	return NULL;
}

/* The rest of tags_touch(). */
u64 *tags_touch_other(struct tags *t, u32 set, u64 key);

/* Uses the tag; NULL: it is not there. The place is good until something else is used. */
static inline u64 *tags_touch(struct tags *t, u32 set, u64 key)
{
	u64 *word = t->word + (u64)set * t->ways;

	if (t->tree)
		word += t->recent[set];
	if (likely(tag_is(*word, key)))
		return word;
	return tags_touch_other(t, set, key);
}

/* Puts a tag that is not there, with its flags. What had to go for it; 0: nothing. */
u64 tags_insert(struct tags *t, u32 set, u64 word);

/*
 * The same behind the tag that was used last, which stays that. False: nothing was done, since that
 * would have had to go.
 */
bool tags_insert_behind(struct tags *t, u32 set, u64 word, u64 *old);

/* Takes a tag out. What it was; 0: it was not there. */
u64 tags_remove(struct tags *t, u32 set, u64 key);

#endif
