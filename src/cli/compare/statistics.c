#include "cli/compare/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define RESAMPLES 2000

u64 random_next(u64 *state)
{
	u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1d;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The @share of sorted values below which a share of them lies, between two neighbours. */
static double quantile(const double *sorted, u32 n, double share)
{
	double at = share * (double)(n - 1);
	u32 below = (u32)at;

	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double *copy_of(const double *samples, u32 n)
{
	double *copy = calloc(n ? n : 1, sizeof(*copy));

	CHECK(copy);
	if (n)
		memcpy(copy, samples, n * sizeof(*copy));
	return copy;
}

void spread_of(const double *samples, u32 n, struct spread *s)
{
	double *v = copy_of(samples, n), *away = copy_of(samples, n), limit;

	*s = (struct spread){.n = n};
	if (n) {
		qsort(v, n, sizeof(*v), by_value);
		s->min = v[0];
		s->low = quantile(v, n, 0.25);
		s->median = quantile(v, n, 0.5);
		s->high = quantile(v, n, 0.75);
		s->max = v[n - 1];
		for (u32 i = 0; i < n; i++)
			away[i] = fabs(v[i] - s->median);
		qsort(away, n, sizeof(*away), by_value);
		/* Ten times as far as half of them: 6.7 standard deviations if they were normal. */
		limit = 10 * quantile(away, n, 0.5);
		for (u32 i = 0; i < n && limit > 0; i++)
			s->outliers += fabs(v[i] - s->median) > limit;
	}
	free(v);
	free(away);
}

/* Puts at @k what a sort would put there, and nothing larger before it (Hoare). */
static void select_at(double *v, u32 n, u32 k)
{
	u32 from = 0, to = n - 1;

	while (from < to) {
		double pivot = v[(from + to) / 2];
		u32 i = from, j = to;

		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			double swapped = v[i];

			v[i++] = v[j];
			v[j--] = swapped;
		}
		if (k <= j)
			to = j;
		else
			from = j + 1;
	}
}

/* Leaves @v in another order. */
static double median_of(double *v, u32 n)
{
	double above;

	select_at(v, n, (n - 1) / 2);
	if (n % 2)
		return v[n / 2];
	above = v[n / 2];
	for (u32 i = n / 2 + 1; i < n; i++)
		above = v[i] < above ? v[i] : above;
	return (v[n / 2 - 1] + above) / 2;
}

/* That of 95 % of what was drawn, which it leaves sorted. */
static void interval(double *drawn, double *low, double *high)
{
	qsort(drawn, RESAMPLES, sizeof(*drawn), by_value);
	*low = quantile(drawn, RESAMPLES, 0.025);
	*high = quantile(drawn, RESAMPLES, 0.975);
}

bool ratio_of_medians(const double *a, const double *b, u32 n, u64 seed, struct ratio *r)
{
	double *draw_a, *draw_b, *ratios, *differences, middle_a, middle_b;
	u64 state = (seed * 0x9e3779b97f4a7c15) | 1;
	bool known = true;

	*r = (struct ratio){.has_interval = n >= ROUNDS_FOR_INTERVAL};
	if (!n)
		return false;
	draw_a = copy_of(a, n);
	draw_b = copy_of(b, n);
	ratios = calloc(RESAMPLES, sizeof(*ratios));
	differences = calloc(RESAMPLES, sizeof(*differences));
	CHECK(ratios && differences);
	middle_a = median_of(draw_a, n);
	middle_b = median_of(draw_b, n);
	known = middle_a > 0;
	if (known) {
		r->value = r->low = r->high = middle_b / middle_a;
		r->more = r->more_low = r->more_high = middle_b - middle_a;
	}
	for (u32 k = 0; k < RESAMPLES && known && r->has_interval; k++) {
		for (u32 i = 0; i < n; i++) {
			u32 round = (u32)(random_next(&state) >> 32) % n;

			draw_a[i] = a[round];
			draw_b[i] = b[round];
		}
		middle_a = median_of(draw_a, n);
		middle_b = median_of(draw_b, n);
		known = middle_a > 0;
		if (known)
			ratios[k] = middle_b / middle_a;
		differences[k] = middle_b - middle_a;
	}
	if (known && r->has_interval) {
		interval(ratios, &r->low, &r->high);
		interval(differences, &r->more_low, &r->more_high);
	}
	free(draw_a);
	free(draw_b);
	free(ratios);
	free(differences);
	return known;
}
