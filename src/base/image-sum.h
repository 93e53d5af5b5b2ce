/*
 * PURPOSE: the sum at the end of an image of translated code (src/rt/load/images.c), over all words
 * in front of it. It tells accidents, not enemies.
 */
#ifndef BASE_IMAGE_SUM_H
#define BASE_IMAGE_SUM_H

#include "base/types.h"

/* Of what has gone by. Four words at once: each waits for its own last multiplication only. */
struct image_sum {
	u64 lane[4];
	u64 words;
};

static inline u64 image_sum_mix(u64 lane, u64 word)
{
	lane = (lane ^ word) * 0x9e3779b97f4a7c15ull;
	return lane ^ lane >> 29;
}

/* Of @p's next @n words; NULL: they are 0. */
static inline void image_sum_add(struct image_sum *s, const u64 *p, u64 n)
{
	u64 i = 0;

	for (; i < n && s->words % 4; i++, s->words++)
		s->lane[s->words % 4] = image_sum_mix(s->lane[s->words % 4], p ? p[i] : 0);
	for (; i + 4 <= n; i += 4, s->words += 4)
		for (u32 j = 0; j < 4; j++)
			s->lane[j] = image_sum_mix(s->lane[j], p ? p[i + j] : 0);
	for (; i < n; i++, s->words++)
		s->lane[s->words % 4] = image_sum_mix(s->lane[s->words % 4], p ? p[i] : 0);
}

/* Not 0 of an image of zeros. */
static inline u64 image_sum_of(const struct image_sum *s)
{
	u64 sum = image_sum_mix(1, s->words);

	for (u32 j = 0; j < 4; j++)
		sum = image_sum_mix(sum, s->lane[j]);
	return sum;
}

#endif
