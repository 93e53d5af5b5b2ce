/*
 * PURPOSE: "did you mean": offers candidates one by one and keeps the few that are nearest to what
 * was written. Used for event, PMU, term, tracepoint and symbol names.
 */
#ifndef LIB_SPEC_NEAREST_H
#define LIB_SPEC_NEAREST_H

#include "base/types.h"

#define NEAREST_MAX 3

struct ap__nearest {
	const char *wanted; /* borrowed */
	unsigned int n;
	unsigned int distance[NEAREST_MAX]; /* ascending */
	char name[NEAREST_MAX][96];
};

void ap__nearest_init(struct ap__nearest *n, const char *wanted);
void ap__nearest_offer(struct ap__nearest *n, const char *candidate);

/* "did you mean a, b or c?" with those that are equally near, or "". Returns @buf. */
char *ap__nearest_text(const struct ap__nearest *n, char *buf, size_t len);

/*
 * How many letters must be inserted, removed, replaced or swapped with their neighbour to get from
 * @a to @b, letter case ignored. Names longer than 95 letters are UINT_MAX apart.
 */
unsigned int ap__edit_distance(const char *a, const char *b);

#endif
