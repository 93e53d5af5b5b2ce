/*
 * PURPOSE: the same cache as lru-cache.h, of instructions: what is fetched is known ahead, so each
 * line has a number, and where it is in the cache is found by that alone. To use a line that is
 * there is to write down when: one load and one store, whatever its set has used since. Only a miss
 * looks for the line that was not used for longest.
 *
 * Lifetime: fetch_cache_init() .. fetch_cache_release(). Numbers are never given back.
 */
#ifndef CALLS_FETCH_CACHE_H
#define CALLS_FETCH_CACHE_H

#include "base/types.h"

struct fetch_cache {
	u32 *place; /* of each line that has a number, the index of its way, or 0; owned */
	u64 *used;  /* of each way, when; owned */
	u64 now;
	u32 *holds; /* of each way, a line's number, or 0; owned */
	u64 *line;  /* by number; owned */
	u32 *next;  /* the next one with the same hash; owned */
	u32 nr, room;
	u32 sets, ways, shift;
	u32 bucket[4096];
};

/* Lines have @line bytes, a power of two. */
void fetch_cache_init(struct fetch_cache *c, u32 sets, u32 ways, u32 line);
void fetch_cache_release(struct fetch_cache *c);

/* The number of a line, which is known by the address of its last byte. Never 0. */
u32 fetch_cache_number(struct fetch_cache *c, u64 line);

/* Line @number was not there: it comes in place of the one that was not used for longest. */
void fetch_cache_bring(struct fetch_cache *c, u32 number);

/* False: the line is not there, and nothing was done. */
static inline bool fetch_cache_use(struct fetch_cache *c, u32 number)
{
	u32 place = c->place[number];

	if (unlikely(!place))
		return false;
	c->used[place] = ++c->now;
	return true;
}

#endif
