/* Notes of <anyperf/mark.h>: any bytes are places, or none. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/compare/compare-region.h"

const char *const fuzz_samples[] = {
	"\x08___\x0a___\x01___anyperf_12345678a_",
	"\x08___\x0d___\x01___anyperf_12345678part_abc\x08___",
	NULL,
};

const char *const fuzz_words[] = {"\x08", "anyperf", "a", "\xff\xff\xff\xff", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Of its own size, so that a byte too many is seen; an underscore stands for a zero. */
	u8 *bytes = malloc(len ? len : 1);
	u64 places[MARK_PLACES_MAX];

	CHECK(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = data[i] == '_' ? 0 : data[i];
	CHECK(mark_places_in(bytes, len, 0x1000, "a", places) <= len / 12);
	CHECK(mark_places_in(bytes, len, UINT64_MAX, "", places) <= len / 12);
	free(bytes);
	return 0;
}
