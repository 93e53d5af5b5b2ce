/*
 * The numbers of run 004 (doc/matrix.md) from the bytes that its strace recorded, and from the
 * values that its perf printed: decoding, scaling and percentages to the digit [SCAL-01, SCAL-02,
 * SCAL-19]. The layout of the text is held by stat's own golden test.
 */
#include "unit/test.h"

#include <anyperf/read.h>

#include "base/types.h"

#define ENABLED_RUNNING 3

struct row {
	/* As strace printed them: 24 bytes, octal escapes resolved by the compiler. */
	const char *bytes;
	u64 value, enabled, running, scaled;
	const char *percent;
};

/* strace, fds 3 4 5 7 8 9 10 [SCAL-12..18, STAT-05] */
static const struct row recorded[] = {
	{"\0024\330\3\0\0\0\0B$u\310\0\0\0\0}\267\312\253\0\0\0\0", 64500738, 3363120194,
	 2882189181, 75263530, "85.70"},
	{"\355=\321\3\0\0\0\0\2>u\310\0\0\0\0\346\206\311\253\0\0\0\0", 64044525, 3363126786,
	 2882111206, 74733361, "85.70"},
	{"\342\312\330\3\0\0\0\0\313[u\310\0\0\0\0\325\201\331\253\0\0\0\0", 64539362, 3363134411,
	 2883158485, 75283599, "85.73"},
	{"\252\247\326\3\0\0\0\0\t0u\310\0\0\0\0]\377\326\253\0\0\0\0", 64399274, 3363123209,
	 2882994013, 75124225, "85.72"},
	{"n\6\330\3\0\0\0\0\360\23u\310\0\0\0\0fd\333\253\0\0\0\0", 64489070, 3363116016,
	 2883282022, 75221300, "85.73"},
	{"{\245\316\3\0\0\0\0\274\335t\310\0\0\0\0w/\327\253\0\0\0\0", 63874427, 3363102140,
	 2883006327, 74511186, "85.72"},
	{"\26^\322\3\0\0\0\0\225{t\310\0\0\0\0\245\371\311\253\0\0\0\0", 64118294, 3363077013,
	 2882140581, 74817572, "85.70"},
};

/* perf_evsel__read()'s lines and what perf stat made of them [SCAL-03..09] */
static const struct row printed[] = {
	{NULL, 65718555, 3358872543, 2878892162, 76675414, "85.71"},
	{NULL, 65664243, 3358872543, 2878835926, 76613543, "85.71"},
	{NULL, 65534598, 3358873665, 2878904935, 76460473, "85.71"},
	{NULL, 65742430, 3358874036, 2878867475, 76703961, "85.71"},
	{NULL, 65191034, 3358873485, 2878862949, 76060736, "85.71"},
	{NULL, 64160428, 3358872053, 2879733186, 74835637, "85.74"},
	{NULL, 65568243, 3358868936, 2879142333, 76493312, "85.72"},
};

static void expect_row(const struct row *r, const struct ap_value *v)
{
	char percent[16];
	uint64_t scaled;

	EXPECT_EQ(v->value, r->value);
	EXPECT_EQ(v->enabled, r->enabled);
	EXPECT_EQ(v->running, r->running);
	EXPECT_EQ(ap_value_scale(v, &scaled), AP_SCALED);
	EXPECT_EQ(scaled, r->scaled);
	EXPECT_EQ(ap_value_scale_int(v), r->scaled);
	snprintf(percent, sizeof(percent), "%.2f", ap_value_percent(v));
	EXPECT_STREQ(percent, r->percent);
}

TEST(recorded_bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		struct ap_value v;

		ASSERT(ap_read_decode(recorded[i].bytes, 24, ENABLED_RUNNING, &v, 1) == 1);
		expect_row(&recorded[i], &v);
	}
}

TEST(printed_values)
{
	for (size_t i = 0; i < ARRAY_SIZE(printed); i++) {
		struct ap_value v = {.value = printed[i].value,
				     .enabled = printed[i].enabled,
				     .running = printed[i].running};

		expect_row(&printed[i], &v);
	}
}

/* Rounding would give one more in these rows [SCAL-10]. */
TEST(truncation)
{
	static const int rows[] = {0, 1, 2, 3, 6};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &printed[rows[i]];

		EXPECT_EQ((u64)((double)r->value * (double)r->enabled / (double)r->running + 0.5),
			  r->scaled + 1);
	}
}

/* Six events on six counters: run = ena, the counts are shown as read [SCAL-11]. */
TEST(no_multiplexing)
{
	static const struct {
		u64 value, times;
	} rows[] = {{718763, 3356602112}, {722050, 3356604236}, {724352, 3356605579},
		    {724794, 3356605869}, {724448, 3356605489}, {723444, 3356604036}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ap_value v = {
			.value = rows[i].value, .enabled = rows[i].times, .running = rows[i].times};
		uint64_t scaled;

		EXPECT_EQ(ap_value_scale(&v, &scaled), AP_EXACT);
		EXPECT_EQ(scaled, rows[i].value);
		EXPECT_EQ(ap_value_scale_int(&v), rows[i].value);
	}
}
