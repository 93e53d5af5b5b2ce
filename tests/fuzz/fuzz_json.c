/*
 * JSON texts: any bytes are values whose members can be walked, or an error with a sentence.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/json-reader.h"

const char *const fuzz_samples[] = {
	"{\"schema\": \"anyperf-baseline-1\", \"command\": [\"./bench\", \"-n\", \"12\"]}",
	"{\"counts\": [{\"event\": \"instructions:u\", \"min\": 18446744073709551615, \"max\": 1}]}",
	"[[[[1.5e-3, -0, 12, true, false, null]]], {}, [], \"\\u00e9\\ud83d\\ude00\\n\"]",
	NULL,
};

const char *const fuzz_words[] = {
	"{", "}", "[", "]", ",", ":", "\"", "\\u", "\\ud800", "\\\\", "e", "-", ".", "null", NULL,
};

static u32 walk(const struct json_text *t, const struct json_value *v, u32 depth)
{
	u32 n = 1;
	u64 number;

	CHECK(depth <= 33);
	if (v->text)
		n += (u32)(strlen(v->text) == SIZE_MAX);
	(void)!json_member_u64(t, v, "min", &number);
	for (const struct json_value *m = json_first(t, v); m; m = json_next(t, m)) {
		CHECK((m->key != NULL) == (v->kind == JSON_OBJECT));
		n += walk(t, m, depth + 1);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Of its own size, so that a byte too many is seen. */
	char *bytes = malloc(len ? len : 1), why[100] = "";
	struct json_text t;

	CHECK(bytes);
	memcpy(bytes, data, len);
	if (json_read(&t, bytes, len, why, sizeof(why))) {
		CHECK(*why && !t.values);
	} else {
		CHECK(walk(&t, t.values, 0) == t.nr_values);
		json_release(&t);
	}
	free(bytes);
	return 0;
}
