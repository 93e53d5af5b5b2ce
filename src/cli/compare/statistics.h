/*
 * PURPOSE: what a few noisy measurements say: where the middle of them lies, which of them are
 * outliers, and by what factor one command takes longer than another, with how much that factor may
 * be off. Pure: the same numbers and seed give the same answers.
 */
#ifndef CLI_COMPARE_STATISTICS_H
#define CLI_COMPARE_STATISTICS_H

#include "base/types.h"

/* Below so many rounds no 95 % interval of a median exists: all lie on one side in 2 of 2^n. */
#define ROUNDS_FOR_INTERVAL 6

struct spread {
	u32 n;
	double min, low, median, high, max; /* low and high are the quartiles */
	u32 outliers; /* further from the median than 10 times the median deviation from it */
};

/* @n may be 0: all is 0. */
void spread_of(const double *samples, u32 n, struct spread *s);

struct ratio {
	double value;                     /* median of b / median of a */
	double low, high;                 /* the 95 % interval of it */
	double more, more_low, more_high; /* likewise, how much larger that of b is */
	bool has_interval;                /* there were rounds enough */
};

/*
 * @a[i] and @b[i] were measured in round i, side by side, so what slows a round down as a whole
 * slows both. Rounds are drawn anew, with @seed, some thousand times (the bootstrap). False: there
 * is no ratio, since there are no rounds or a median of @a is 0.
 */
bool ratio_of_medians(const double *a, const double *b, u32 n, u64 seed, struct ratio *r);

/* xorshift64*: the next of a row of random numbers; *@state is anything but 0. */
u64 random_next(u64 *state);

#endif
