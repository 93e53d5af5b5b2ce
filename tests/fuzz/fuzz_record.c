/*
 * Records: any bytes with any layout are a record or an error, nothing outside of them is read, and
 * what was decoded can be encoded.
 *
 * The layout comes first: sample_type (4 bytes), read_format (1), branch_sample_type (3), the masks
 * of user and interrupt registers (4 and 3), sample_id_all (1). The rest is the record.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "record/coding.h"
#include "records/touch.h"

#define LAYOUT 16

/* Records are full of zeros, which strings cannot have: they come from record.hex. */
const char *const fuzz_samples[] = {NULL};
const char *const fuzz_words[] = {"\x01\x02\x03\x04\x05\x06\x07\x08",
				  "\xff\xff\xff\xff\xff\xff\xff\xff",
				  "\x08",
				  "\x10",
				  "\x18",
				  "\x20",
				  NULL};

static u64 bits(const u8 *p, unsigned int n)
{
	u64 v = 0;

	for (unsigned int i = 0; i < n; i++)
		v |= (u64)p[i] << (8 * i);
	return v;
}

/* Decoding what was encoded gives what was decoded. */
static void encode_again(const struct ap_record *rec, const struct ap_layout *layout)
{
	static u64 first[RECORD_MAX / 8], second[RECORD_MAX / 8];
	struct ap_record again;
	const char *why;
	int n = ap__record_encode(rec, layout, first, sizeof(first));

	CHECK(n > 0 && n <= rec->size);
	CHECK(rec->type != PERF_RECORD_SAMPLE || n == rec->size);
	CHECK(ap__record_decode(&again, first, (size_t)n, layout, &why) == n);
	CHECK(touch_record(&again) == touch_record(rec));
	CHECK(ap__record_encode(&again, layout, second, sizeof(second)) == n);
	CHECK(memcmp(first, second, (size_t)n) == 0);
}

static void check(const struct ap_record *rec, const struct ap_layout *layout)
{
	size_t at = ap__record_time_at(rec->type, rec->size, layout);
	u64 time;

	touch_record(rec);
	if (rec->id.has & PERF_SAMPLE_TIME) {
		CHECK(at);
		memcpy(&time, (const u8 *)rec->bytes + at, sizeof(time));
		CHECK(time == rec->id.time);
	}
	if (rec->known)
		encode_again(rec, layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ap_layout layout;
	struct ap_record rec;
	const char *why;
	uint64_t id;
	u8 *bytes;
	int n;

	if (len < LAYOUT)
		return 0;
	layout = (struct ap_layout){.sample_type = bits(data, 4),
				    .read_format = data[4],
				    .branch_sample_type = bits(data + 5, 3),
				    .sample_regs_user = bits(data + 8, 4),
				    .sample_regs_intr = bits(data + 12, 3),
				    .sample_id_all = data[15] & 1};
	len -= LAYOUT;
	bytes = malloc(len ? len : 1); /* ends where the record ends */
	CHECK(bytes);
	memcpy(bytes, data + LAYOUT, len);
	n = ap__record_decode(&rec, bytes, len, &layout, &why);
	CHECK(n > 0 ? (size_t)n <= len && !why : why != NULL);
	CHECK(n > 0 || n == -ENODATA || n == -EBADMSG || n == -EOPNOTSUPP);
	if (n > 0)
		check(&rec, &layout);
	if (!ap_record_event_id(bytes, len, &id))
		CHECK(len >= 16);
	free(bytes);
	return 0;
}
