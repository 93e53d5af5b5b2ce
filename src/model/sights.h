/*
 * PURPOSE: which keys (lines, pages) were seen in which windows, and what that says of those that
 * were not: of a program that is seen in windows, whether one that is seen for the first time is
 * new to the program too, or only to who sees it.
 *
 * The caller brings the memory, zeroed, and calls for one thread at a time. As many keys are kept
 * as there is room for; then those of one half of all hashes, which stand for the others, and of a
 * half of that when these are too many.
 */
#ifndef MODEL_SIGHTS_H
#define MODEL_SIGHTS_H

#include "base/types.h"

#define SIGHT_SETS 2048u
#define SIGHT_WAYS 16u

/* What a key was seen by first; each is estimated by itself. */
enum sight_kind {
	SIGHT_FETCH,
	SIGHT_LOAD,
	SIGHT_STORE,
	SIGHT_KINDS,
};

enum sight_times {
	SIGHT_NONE,
	SIGHT_ONCE,
	SIGHT_TWICE,
	SIGHT_MORE,
	SIGHT_KNOWN, /* from when all was seen */
	SIGHT_TIMES,
};

struct sight {
	u32 tag;
	u32 window; /* in which it was seen last */
	u32 weight; /* of its first sight; 0: that was while the model warmed up */
	u8 times;   /* enum sight_times; in how many windows */
	u8 kind;
};

struct sights_of {
	u64 keys[SIGHT_TIMES];
	u64 weight;      /* of first sights in windows */
	u64 once_weight; /* of those that were the only ones */
	u64 again;       /* first uses in a window of what had been seen before */
};

struct sights {
	u32 windows; /* how many there were */
	u32 level;   /* of hashes those with so many bits that are 0 are kept */
	/* In the window, of these in the one before too; in that one. */
	u64 now, now_again, before;
	u64 pairs, both; /* sums over all windows: products of two that follow, and in both */
	struct sights_of of[SIGHT_KINDS];
	struct sight sight[SIGHT_SETS][SIGHT_WAYS];
};

/*
 * @key, the number of a line or a page, was seen in @window, not for the first time in it perhaps.
 * @weight: for how much that counts; 1: all is seen.
 */
void sights_see(struct sights *s, u64 key, enum sight_kind kind, u32 window, u32 weight);

#define SIGHTS_ALL 65536u

/*
 * How many of what was seen for the first time by @kind, by weight, was new to the program:
 * SIGHTS_ALL are all. Lines that were seen in several windows are once new, each; to these come
 * those that no window has seen, by Chao's estimate ("Nonparametric estimation of the number of
 * classes in a population", Scandinavian Journal of Statistics 11, 1984), which is a lower bound;
 * and they are no more than what was seen in one window only says if all of it was new.
 */
u32 sights_new(const struct sights *s, enum sight_kind kind);
/* Likewise of loads and stores together. */
u32 sights_new_data(const struct sights *s);
/*
 * Likewise of those that were used by @kind for the first time by the program. Who stores to a line
 * and loads it much later is often seen to load it first. Of new ones so many are loaded first that
 * with those that were not, which are loaded as often as what was seen before, it is what was seen.
 */
u32 sights_new_by(const struct sights *s, enum sight_kind kind);

/* @window begins, the one behind the last one. */
void sights_window(struct sights *s, u32 window);

/*
 * How many keys the program uses for some time, by how many two windows that follow each other have
 * in common; how many it uses again at some time; and how many were seen.
 */
u64 sights_in_use(const struct sights *s);
u64 sights_used_again(const struct sights *s);
u64 sights_seen(const struct sights *s);

#endif
