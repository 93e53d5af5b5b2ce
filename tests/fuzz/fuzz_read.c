/* read(2)'s bytes: any bytes in any format give values or an errno, and scaling never traps. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include <anyperf/read.h>

#include "base/check.h"

const char *const fuzz_samples[] = {"\x03"
				    "valuevalenabledtrunning!",
				    "\x0f"
				    "\x02.......enabled.running.value...id......value...id......",
				    "\x1f",
				    "\x20",
				    "",
				    NULL};
const char *const fuzz_words[] = {"\x01", "\x02", "\xff\xff\xff\xff\xff\xff\xff\xff", "12345678",
				  NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ap_value v[4];
	uint64_t scaled;
	int n;

	if (!len)
		return 0;
	memset(v, 0, sizeof(v));
	n = ap_read_decode(data + 1, len - 1, data[0], v, 4);
	CHECK(n >= 0 || n == -EBADMSG || n == -EINVAL);
	if (n > 0)
		CHECK(ap_read_size(data[0], (unsigned int)n) == len - 1);
	for (int i = 0; i < n && i < 4; i++) {
		ap_value_scale(&v[i], &scaled);
		ap_value_scale_int(&v[i]);
		CHECK(ap_value_percent(&v[i]) >= 0);
	}
	return 0;
}
