/*
 * PURPOSE: a cache as those of Valgrind: sets of lines that replace each other by LRU, and nothing
 * else. Lines of a set stand in the order of their use, so that the one that was used last, which
 * most accesses are of, is found by one comparison, and to use it again changes nothing.
 *
 * A line is known by the address of its last byte; 0 is no line.
 *
 * Lifetime: lru_cache_init() .. lru_cache_release().
 */
#ifndef CALLS_LRU_CACHE_H
#define CALLS_LRU_CACHE_H

#include "base/types.h"

struct lru_cache {
	u64 *last;   /* of each set, the line that was used last; owned */
	u64 *before; /* of each set ways - 1 others, the last one first; owned */
	u64 mask;    /* sets - 1 */
	u32 sets, others, shift;
	bool divides; /* the number of sets is no power of two */
};

/* Lines have @line bytes, a power of two. */
void lru_cache_init(struct lru_cache *c, u32 sets, u32 ways, u32 line);
void lru_cache_release(struct lru_cache *c);

static inline u64 lru_cache_set(const struct lru_cache *c, u64 line)
{
	u64 n = line >> c->shift;

	return unlikely(c->divides) ? n % c->sets : n & c->mask;
}

/* Puts @next in front of @n lines, of which @line goes, or else the last one. False: the latter. */
static inline __attribute__((always_inline)) bool lru_cache_move(u64 *before, u32 n, u64 line,
								 u64 next)
{
#pragma GCC unroll 16
	for (u32 i = 0; i < n; i++) {
		u64 was = before[i];

		before[i] = next;
		if (was == line)
			return true;
		next = was;
	}
	return false;
}

/* Uses a line that is not the one that its set has used last. False: it was not there. */
static inline bool lru_cache_use_other(struct lru_cache *c, u64 set, u64 line)
{
	u64 *before = c->before + set * c->others, next = c->last[set];

	c->last[set] = line;
	/* Of most caches; a number that is known is quicker. */
	switch (c->others) {
	case 7: return lru_cache_move(before, 7, line, next);
	case 11: return lru_cache_move(before, 11, line, next);
	case 15: return lru_cache_move(before, 15, line, next);
	default: return lru_cache_move(before, c->others, line, next);
	}
}

static inline bool lru_cache_use(struct lru_cache *c, u64 line)
{
	u64 set = lru_cache_set(c, line);

	return c->last[set] == line || lru_cache_use_other(c, set, line);
}

/* In the set of @line the last two lines have changed places. */
static inline void lru_cache_swap(struct lru_cache *c, u64 line)
{
	u64 set = lru_cache_set(c, line), *before = c->before + set * c->others, was = c->last[set];

	if (!c->others)
		return;
	c->last[set] = *before;
	*before = was;
}

/* A line, if it is there, is the one that its set has used last. */
static inline void lru_cache_use_again(struct lru_cache *c, u64 line)
{
	u64 set = lru_cache_set(c, line), *before = c->before + set * c->others, next;
	u32 i = 0;

	if (c->last[set] == line)
		return;
	while (i < c->others && before[i] != line)
		i++;
	if (i == c->others)
		return;
	next = c->last[set];
	c->last[set] = line;
	lru_cache_move(before, i + 1, line, next);
}

#endif
