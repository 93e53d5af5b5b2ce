/*
 * PURPOSE: sets of tags that replace each other: what caches, TLBs and the BTB consist of.
 *
 * A tag is a word: the key, whose bit 0 is set, and flags in bits 1 to 3, which the owner uses as
 * he likes; 0 is an empty place. So memory of zeros is an empty array. Tags stay where they are;
 * beside each set stands which way was used last, to use which again changes nothing, and in what
 * order the ways were used. A set is searched by bytes, of which each stands for a tag, eight at a
 * time.
 */
#ifndef MODEL_TAGS_H
#define MODEL_TAGS_H

#include "base/types.h"

#define TAG_VALID 1ull
#define TAG_FLAGS 14ull

enum tags_order {
	ORDER_NONE,   /* one way */
	ORDER_TREE,   /* PLRU: bits that point away from what was used last */
	ORDER_LIST,   /* LRU: ways, the last one first, four bits each */
	ORDER_STAMPS, /* LRU of more than 16 ways: when each was used last */
	ORDER_TURN,   /* FIFO: which way goes next; use changes nothing */
};

#define TAGS_HINTS 256u

struct tags {
	u64 *word;  /* sets * ways; set by tags_place(), in the model's memory, as all of these */
	u64 *bytes; /* of each set part_words; NULL: one way */
	u64 *order; /* of each set; with stamps of each way */
	u64 *away; /* PLRU: of each way the bits of a tree that it leaves, and those that it sets */
	u16 *recent; /* of each set: the way that was used last; NULL: one way */
	u8 *hint;    /* one set with stamps: by byte, the way where such a tag was found last */
	u64 clock;   /* of stamps */
	u64 mask;    /* sets - 1 */
	u32 sets, ways, part_words;
	u32 kind;     /* enum tags_order */
	u32 levels;   /* of the tree */
	u32 shift;    /* an address without these bits is what is distributed over the sets */
	bool divides; /* the number of sets is no power of two */
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

/* How a set that is full makes room. */
enum tags_policy {
	TAGS_LRU,
	TAGS_PLRU,
	TAGS_FIFO,
};

/* What the tags are beside their memory: @ways of each set. */
void tags_shape(struct tags *t, u32 sets, u32 ways, enum tags_policy policy);

/* Bytes of the parts of memory that such tags need; 0: none. */
struct tags_sizes {
	u64 word, bytes, order, away, recent, hint;
};

struct tags_sizes tags_sizes(const struct tags *t);

/* All of it is there. */
void tags_begin(struct tags *t);

/* An order of a list is kept as it differs from this one, so that 0 is one. */
#define LIST_AT_FIRST 0xfedcba9876543210ull

/* Where @way stands in a list, in bits. */
static inline u32 list_place(u64 list, u32 way)
{
	u64 x = list ^ way * 0x1111111111111111ull;

	/* The lowest four bits that are 0; a borrow comes from lower ones only. */
	return (u32)__builtin_ctzll((x - 0x1111111111111111ull) & ~x & 0x8888888888888888ull) - 3;
}

/* @way was used last. */
static inline void tags_use(struct tags *t, u32 set, u32 way)
{
	if (t->kind == ORDER_TURN)
		return;
	t->recent[set] = (u16)way;
	if (t->kind == ORDER_TREE) {
		t->order[set] = (t->order[set] & ~t->away[way * 2]) | t->away[way * 2 + 1];
	} else if (t->kind == ORDER_LIST) {
		u64 list = t->order[set] ^ LIST_AT_FIRST;
		u32 at = list_place(list, way);
		u64 before = BIT(at) - 1;

		list = (list & ~(before << 4 | 15)) | (list & before) << 4 | way;
		t->order[set] = list ^ LIST_AT_FIRST;
	} else {
		t->order[(u64)set * t->ways + way] = ++t->clock;
	}
}

/* A byte that stands for a tag; 0 of an empty place alone. */
static inline u8 tag_byte(u64 word)
{
	u8 byte = (word & ~TAG_FLAGS) * 0x9e3779b97f4a7c15ull >> 56;

	return word && !byte ? 1 : byte;
}

/* Uses a tag of the first set, which has a hint; false: it may be there all the same. */
static inline bool tags_touch_hinted(struct tags *t, u64 key)
{
	u32 way = t->hint[tag_byte(key)];

	if (!tag_is(t->word[way], key))
		return false;
	t->recent[0] = (u16)way;
	t->order[way] = ++t->clock;
	return true;
}

/* The tag without using it; NULL: it is not there. */
u64 *tags_find(const struct tags *t, u32 set, u64 key);

/* The rest of tags_touch(). */
u64 *tags_touch_other(struct tags *t, u32 set, u64 key);

/* Uses the tag; NULL: it is not there. The place is good until something else is used. */
static inline u64 *tags_touch(struct tags *t, u32 set, u64 key)
{
	u64 *word = t->word + (u64)set * t->ways;

	if (t->recent)
		word += t->recent[set];
	if (likely(tag_is(*word, key)))
		return word;
	return t->recent ? tags_touch_other(t, set, key) : NULL;
}

/* The same with the way where the tag may be, from the last time that it was looked for. */
static inline u64 *tags_touch_near(struct tags *t, u32 set, u64 key, u32 *near)
{
	u64 *word = t->word + (u64)set * t->ways, *at;
	u32 way = *near;

	if (likely(way < t->ways && tag_is(word[way], key))) {
		if (t->recent && t->recent[set] != way)
			tags_use(t, set, way);
		return word + way;
	}
	at = t->recent ? tags_touch_other(t, set, key) : NULL;
	if (at)
		*near = (u32)(at - word);
	return at;
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
