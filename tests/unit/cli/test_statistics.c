/*
 * Medians, quartiles, outliers, and the interval of a ratio: known answers, and how often it holds.
 */
#include "cli/compare/statistics.h"
#include "unit/test.h"

TEST(spread_of_known_numbers)
{
	static const double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 3}, one[] = {7};
	struct spread s;

	spread_of(odd, 3, &s);
	EXPECT(s.n == 3 && s.min == 1 && s.median == 3 && s.max == 5);
	EXPECT(s.low == 2 && s.high == 4 && s.outliers == 0);
	spread_of(even, 4, &s);
	EXPECT(s.median == 2.5 && s.low == 1.75 && s.high == 3.25);
	spread_of(one, 1, &s);
	EXPECT(s.min == 7 && s.low == 7 && s.median == 7 && s.high == 7 && s.max == 7);
	spread_of(NULL, 0, &s);
	EXPECT(s.n == 0 && s.median == 0);
}

TEST(outliers_are_far_away)
{
	/* Half of these are within 1 of 100. */
	double v[] = {98, 99, 100, 101, 102, 110, 100, 111, 89};
	struct spread s;

	spread_of(v, 9, &s);
	EXPECT(s.median == 100);
	EXPECT_EQ(s.outliers, 0);
	v[7] = 121;
	v[8] = 79;
	spread_of(v, 9, &s);
	EXPECT_EQ(s.outliers, 2);
	/* Where most are the same nothing tells how far is far. */
	for (int i = 0; i < 8; i++)
		v[i] = 5;
	spread_of(v, 9, &s);
	EXPECT_EQ(s.outliers, 0);
}

TEST(ratio_of_known_numbers)
{
	static const double a[] = {10, 12, 11, 10, 9, 10, 11, 10};
	double b[8];
	struct ratio r, again;

	for (int i = 0; i < 8; i++)
		b[i] = 2 * a[i];
	/* Measured side by side: whatever is drawn, one is twice the other. */
	EXPECT(ratio_of_medians(a, b, 8, 1, &r));
	EXPECT(r.has_interval && r.value == 2 && r.low == 2 && r.high == 2);
	b[0] = 30;
	b[1] = 15;
	EXPECT(ratio_of_medians(a, b, 8, 1, &r));
	EXPECT(r.low < r.value && r.value < r.high);
	EXPECT(ratio_of_medians(a, b, 8, 1, &again));
	EXPECT(again.low == r.low && again.high == r.high);
}

/* A run of six that was held up may be the middle of what is drawn, which makes any ratio. */
TEST(difference_of_known_numbers)
{
	static const double a[] = {0.0055, 0.0008, 0.192, 0.001, 0.0009, 0.0009};
	static const double b[] = {0.706, 0.701, 0.731, 0.718, 0.701, 0.702};
	struct ratio r;

	EXPECT(ratio_of_medians(a, b, 6, 1, &r));
	EXPECT(r.low < 10 && r.value > 700);
	EXPECT(r.more > 0.70 && r.more < 0.71);
	EXPECT(r.more_low > 0.5 && r.more_low < r.more && r.more < r.more_high);
}

/* Few values, so that many are equal; the median of a sort is the judge. */
TEST(medians_of_many_rows)
{
	double ones[32], b[32];
	u64 state = 3;

	for (u32 i = 0; i < 32; i++)
		ones[i] = 1;
	for (u32 k = 0; k < 200; k++) {
		u32 n = 1 + k % 5; /* below ROUNDS_FOR_INTERVAL: nothing is drawn */
		struct spread s;
		struct ratio r;

		if (k >= 180)
			n = 12 + k - 180;
		for (u32 i = 0; i < n; i++)
			b[i] = (double)(1 + random_next(&state) % (1 + k % 7));
		spread_of(b, n, &s);
		EXPECT(ratio_of_medians(ones, b, n, 0, &r));
		EXPECT(r.value == s.median && r.low <= r.value && r.value <= r.high);
	}
}

TEST(ratio_of_too_little)
{
	static const double a[] = {1, 1, 1, 1, 1, 1}, zero[6] = {0};
	struct ratio r;

	EXPECT(!ratio_of_medians(a, a, 0, 1, &r));
	EXPECT(!ratio_of_medians(zero, a, 6, 1, &r));
	EXPECT(ratio_of_medians(a, zero, 6, 1, &r));
	EXPECT(r.value == 0);
	EXPECT(ratio_of_medians(a, a, ROUNDS_FOR_INTERVAL - 1, 1, &r));
	EXPECT(!r.has_interval && r.value == 1);
	EXPECT(ratio_of_medians(a, a, ROUNDS_FOR_INTERVAL, 1, &r));
	EXPECT(r.has_interval);
}

static double uniform(u64 *state)
{
	return (double)(random_next(state) >> 11) / 9007199254740992.0;
}

/* Nearly normal, around 0, with a standard deviation of 1. */
static double normal(u64 *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(state);
	return sum;
}

/* Mostly quick, sometimes slow, as times are. */
static double skewed(u64 *state)
{
	double slow = uniform(state);

	return 10 + 0.2 * normal(state) + (slow > 0.9 ? 20 * (slow - 0.9) : 0);
}

/* In how many of 500 comparisons of a thing with itself the interval is beside 1. */
static int misses(u32 n, double (*sample)(u64 *), u64 seed)
{
	double a[32], b[32];
	int missed = 0;

	for (u32 k = 0; k < 500; k++) {
		struct ratio r;

		for (u32 i = 0; i < n; i++) {
			a[i] = sample(&seed);
			b[i] = sample(&seed);
		}
		EXPECT(ratio_of_medians(a, b, n, k, &r));
		missed += r.low > 1 || r.high < 1;
	}
	return missed;
}

static double narrow(u64 *state)
{
	return 10 + 0.3 * normal(state);
}

/*
 * 25 of 500 are promised. The seeds are fixed, so is the answer; the bounds are three standard
 * deviations, and a little for intervals of medians, which have few places to end at.
 */
TEST(interval_holds_as_often_as_it_says)
{
	static const u32 rounds[] = {10, 15, 30};

	for (u32 i = 0; i < 3; i++) {
		int even = misses(rounds[i], narrow, 1 + i), odd = misses(rounds[i], skewed, 7 + i);

		if (even > 40 || even < 8 || odd > 40 || odd < 8)
			TEST_FAIL("%u rounds: %d and %d misses of 500", rounds[i], even, odd);
	}
}

TEST(interval_sees_a_difference)
{
	double a[20], b[20];
	u64 state = 1;
	struct ratio r;

	for (u32 i = 0; i < 20; i++) {
		a[i] = narrow(&state);
		b[i] = 1.1 * narrow(&state);
	}
	EXPECT(ratio_of_medians(a, b, 20, 0, &r));
	EXPECT(r.low > 1.05 && r.high < 1.15);
}
