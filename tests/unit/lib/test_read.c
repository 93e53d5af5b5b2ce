/* Decoding read(2)'s bytes in every format, and the arithmetic on the values. */
#include "unit/lib/fixture.h"

#include <errno.h>

/* Copies to the heap, so that a sanitizer sees a byte too many. */
static int decode(const u64 *words, size_t len, u64 format, struct ap_value *v, unsigned int max)
{
	void *bytes = calloc(1, len ? len : 1);
	int r;

	memcpy(bytes, words, len);
	r = ap_read_decode(bytes, len, format, v, max);
	free(bytes);
	return r;
}

/* Every combination of bits [READ-01, READ-02]. */
TEST(every_single_format)
{
	for (u64 format = 0; format < 32; format++) {
		u64 words[8] = {0}, n = 0;
		struct ap_value v;

		if (format & PERF_FORMAT_GROUP)
			continue;
		words[n++] = 11;
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			words[n++] = 22;
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			words[n++] = 33;
		if (format & PERF_FORMAT_ID)
			words[n++] = 44;
		if (format & PE_FORMAT_LOST)
			words[n++] = 55;
		EXPECT_EQ(ap_read_size(format, 1), n * 8);
		ASSERT(decode(words, n * 8, format, &v, 1) == 1);
		EXPECT_EQ(v.value, 11);
		EXPECT_EQ(v.enabled, format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 22 : 0);
		EXPECT_EQ(v.running, format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 33 : 0);
		EXPECT_EQ(v.id, format & PERF_FORMAT_ID ? 44 : 0);
		EXPECT_EQ(v.lost, format & PE_FORMAT_LOST ? 55 : 0);
		/* One byte or one word too few or too many is no longer this format. */
		EXPECT_EQ(decode(words, n * 8 - 1, format, &v, 1), -EBADMSG);
		EXPECT_EQ(decode(words, n * 8 + 8, format, &v, 1), -EBADMSG);
		if (n > 1)
			EXPECT_EQ(decode(words, n * 8 - 8, format, &v, 1), -EBADMSG);
	}
}

/* [READ-01, READ-03] */
TEST(every_group_format)
{
	for (u64 format = 0; format < 32; format++) {
		u64 words[32] = {0}, n = 0;
		struct ap_value v[3];

		if (!(format & PERF_FORMAT_GROUP))
			continue;
		words[n++] = 3;
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			words[n++] = 22;
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			words[n++] = 33;
		for (u64 i = 0; i < 3; i++) {
			words[n++] = 100 + i;
			if (format & PERF_FORMAT_ID)
				words[n++] = 200 + i;
			if (format & PE_FORMAT_LOST)
				words[n++] = 300 + i;
		}
		EXPECT_EQ(ap_read_size(format, 3), n * 8);
		ASSERT(decode(words, n * 8, format, v, 3) == 3);
		for (u64 i = 0; i < 3; i++) {
			EXPECT_EQ(v[i].value, 100 + i);
			EXPECT_EQ(v[i].enabled, format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 22 : 0);
			EXPECT_EQ(v[i].id, format & PERF_FORMAT_ID ? 200 + i : 0);
			EXPECT_EQ(v[i].lost, format & PE_FORMAT_LOST ? 300 + i : 0);
		}
		/* Room for fewer: the number is told, the rest not written. */
		v[1].value = 7;
		EXPECT_EQ(decode(words, n * 8, format, v, 1), 3);
		EXPECT_EQ(v[1].value, 7);
		words[0] = 4;
		EXPECT_EQ(decode(words, n * 8, format, v, 3), -EBADMSG);
		words[0] = 0;
		EXPECT_EQ(decode(words, n * 8, format, v, 3), -EBADMSG);
		/* A group has at least its leader, even where the length would fit. */
		EXPECT_EQ(decode(words, ap_read_size(format, 0), format, v, 3), -EBADMSG);
		words[0] = 1ull << 61; /* times the size of a value it would be 0 */
		EXPECT_EQ(decode(words, n * 8, format, v, 3), -EBADMSG);
	}
}

TEST(odd_cases)
{
	struct ap_value v = {.value = 5};
	u64 word = 1;

	EXPECT_EQ(decode(&word, 0, 3, &v, 1), 0); /* error state [READ-07] */
	EXPECT_EQ(v.value, 5);
	EXPECT_EQ(decode(&word, 8, 32, &v, 1), -EINVAL);
}

/* [SCAL-01, SCAL-02] */
TEST(scaling_at_the_edges)
{
	struct ap_value v = {.value = 10, .enabled = 100, .running = 0};
	uint64_t out = 99;

	EXPECT_EQ(ap_value_scale(&v, &out), AP_NOT_COUNTED);
	EXPECT_EQ(out, 0);
	EXPECT_EQ(ap_value_scale_int(&v), 0);
	v.running = 100;
	EXPECT_EQ(ap_value_scale(&v, &out), AP_EXACT);
	EXPECT_EQ(out, 10);
	v.running = 150; /* a racy read may find more running than enabled */
	EXPECT_EQ(ap_value_scale(&v, &out), AP_EXACT);
	EXPECT_EQ(out, 10);
	v = (struct ap_value){.value = UINT64_MAX, .enabled = 3, .running = 2};
	EXPECT_EQ(ap_value_scale(&v, &out), AP_SCALED);
	EXPECT(out == UINT64_MAX);
	EXPECT(ap_value_scale_int(&v) == UINT64_MAX);
	v = (struct ap_value){
		.value = 1ull << 60, .enabled = UINT64_MAX, .running = UINT64_MAX - 1};
	EXPECT_EQ(ap_value_scale_int(&v), 1ull << 60);
	v = (struct ap_value){.value = 1, .enabled = 0, .running = 0};
	EXPECT(ap_value_percent(&v) == 0.0);
}

TEST(sums_and_differences)
{
	struct ap_value a = {1, 2, 3, 4, 5}, b = {10, 20, 30, 40, 50};

	ap_value_add(&a, &b);
	EXPECT(a.value == 11 && a.enabled == 22 && a.running == 33 && a.id == 4 && a.lost == 55);
	ap_value_sub(&a, &b);
	EXPECT(a.value == 1 && a.enabled == 2 && a.running == 3 && a.id == 4 && a.lost == 5);
}
