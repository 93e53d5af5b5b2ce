/*
 * What a running kernel has written (kernel.txt), and what it does not write (made.txt): each
 * record is decoded, says what stands beside it, and is encoded to the same bytes again; cut off
 * anywhere, it is refused [SAMP-01..22, SAMP-24, MISC-01..04, MISC-09, BR-05, REC-01..20]. Of every
 * type there is one, and of every bit of sample_type.
 */
#include "unit/test.h"

#include <errno.h>

#include "records/show.h"
#include "record/coding.h"

static u64 record[RECORD_MAX / 8];
/* What the files have: types, and the bits of the samples among them. */
static u64 types, sample_bits;

/* The bytes of a line of hexadecimal digits; 0: it is none. */
static size_t from_hex(const char *line, u8 *out, size_t room)
{
	size_t n = 0;
	unsigned int byte;

	for (; n < room && sscanf(line, "%2x", &byte) == 1; line += 2)
		out[n++] = (u8)byte;
	return n;
}

/* In memory that ends where the record ends, so that a sanitizer sees a byte too many. */
static void cut_short(size_t size, const struct ap_layout *layout)
{
	for (size_t len = 0; len < size; len++) {
		struct ap_record rec = {.type = 77};
		u8 *exact = malloc(len ? len : 1);

		memcpy(exact, record, len);
		EXPECT_EQ(ap_record_decode(&rec, exact, len, layout, NULL), -ENODATA);
		EXPECT_EQ(rec.type, 77);
		free(exact);
	}
}

/* A record that says it is shorter than it is: an error or fewer fields, nothing beyond its end. */
static void say_shorter(size_t size, const struct ap_layout *layout)
{
	for (size_t len = 8; len < size; len += 8) {
		struct perf_event_header *h = malloc(len);
		struct ap_record rec;
		int r;

		memcpy(h, record, len);
		h->size = (u16)len;
		r = ap_record_decode(&rec, h, len, layout, NULL);
		EXPECT(r == (int)len || r == -EBADMSG);
		if (h->type == PERF_RECORD_SAMPLE)
			EXPECT_EQ(r, -EBADMSG);
		free(h);
	}
}

static void check_record(size_t size, const struct ap_layout *layout, const char *expected)
{
	struct ap_record rec;
	struct ap_error err;
	char *text = NULL;
	size_t text_len;
	u8 again[4096];
	FILE *f;

	if (ap_record_decode(&rec, record, size, layout, &err) != (int)size) {
		TEST_FAIL("%s\nfor %s", err.why, expected);
		return;
	}
	f = open_memstream(&text, &text_len);
	show_record(f, &rec);
	fclose(f);
	EXPECT_STREQ(text, expected);
	free(text);
	memset(again, 0xff, sizeof(again));
	EXPECT_EQ(ap__record_size(&rec, layout), size);
	EXPECT_EQ(ap__record_encode(&rec, layout, again, sizeof(again)), size);
	if (memcmp(again, record, size) != 0)
		TEST_FAIL("encoded to other bytes: %s", expected);
	EXPECT_EQ(ap__record_encode(&rec, layout, again, size - 1), -ENOSPC);
	types |= BIT(rec.type);
	if (rec.type == PERF_RECORD_SAMPLE)
		sample_bits |= layout->sample_type;
	cut_short(size, layout);
	say_shorter(size, layout);
}

static void check_file(const char *path, unsigned int at_least)
{
	static char line[65536];
	struct ap_layout layout = {0};
	unsigned int records = 0;
	FILE *f = fopen(path, "r");
	size_t size = 0;

	ASSERT(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n' || read_layout(line, &layout) == 0)
			continue;
		if (line[0] == '=') {
			check_record(size, &layout, line + 2);
			records++;
		} else {
			size = from_hex(line, (u8 *)record, sizeof(record));
			ASSERT(size);
		}
	}
	fclose(f);
	EXPECT(records >= at_least);
}

TEST(every_type_and_every_bit)
{
	check_file(KERNEL_TXT, 70);
	check_file(MADE_TXT, 25);
	EXPECT_EQ(types, BIT(AP_RECORD_CALLCHAIN_DEFERRED + 1) - 2);
	EXPECT_EQ(sample_bits, BIT(25) - 1);
}
