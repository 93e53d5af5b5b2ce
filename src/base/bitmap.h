/* PURPOSE: fixed-size sets of small integers in arrays of u64. Not atomic: the caller locks. */
#ifndef BASE_BITMAP_H
#define BASE_BITMAP_H

#include "base/types.h"

#define BITMAP_WORDS(bits) (((bits) + 63) / 64)

static inline void bitmap_set(u64 *map, u32 bit)
{
	map[bit / 64] |= BIT(bit % 64);
}

static inline void bitmap_clear(u64 *map, u32 bit)
{
	map[bit / 64] &= ~BIT(bit % 64);
}

static inline bool bitmap_test(const u64 *map, u32 bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

/* The first bit set at or after @from, or @bits if there is none. */
static inline u32 bitmap_next(const u64 *map, u32 bits, u32 from)
{
	while (from < bits) {
		u64 word = map[from / 64] >> (from % 64);

		if (word) {
			from += (u32)__builtin_ctzll(word);
			return from < bits ? from : bits;
		}
		from = (from / 64 + 1) * 64;
	}
	return bits;
}

#define bitmap_for_each(bit, map, bits) \
	for (bit = bitmap_next(map, bits, 0); bit < (bits); bit = bitmap_next(map, bits, bit + 1))

#endif
