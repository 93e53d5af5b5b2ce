/* The text of a machine: any bytes give a machine that can be shown and read again, or -EBADMSG
 * with a mistake that can be told; any struct is refused or can be shown. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model/machine.h"

const char *const fuzz_samples[] = {
	"anyperf-machine 1\nmachine a\nabout b\nmemory line 64\nl1i size 32K ways 8\n"
	"l1d size 32K ways 8 policy plru prefetch next-line,stride\nl2 size 1M ways 16\n"
	"ll size 33K ways 11 inclusion victim\nitlb entries 64 ways 64\ndtlb entries 64 ways 4 "
	"huge-entries 32 huge-ways 4\ntlb2 entries 1536 ways 12\nbranch direction tage entries 1024 "
	"history 64\ncore width 4\npenalty ll 4\nclass int-div uops 4 throughput 6.5 latency 26\n",
	"anyperf-machine 1\nmachine a # b\n",
	"",
	NULL,
};
const char *const fuzz_words[] = {
	"anyperf-machine 1",
	"machine",
	"about",
	"memory",
	"l1i",
	"l2",
	"ll",
	"size",
	"ways",
	"class",
	"int",
	"nop",
	"32K",
	"1G",
	"99999999",
	"0",
	"0.25",
	"1.",
	"none",
	"stride",
	"\n",
	" ",
	"#",
	"4096",
	"entries",
	"latency",
	"tage",
	"targets",
	"ittage",
	"line",
	"policy",
	"victim",
	"direction",
	NULL,
};

static void show(const struct machine *m, char *text, size_t size)
{
	static const char head[] = "anyperf-machine 1\n";
	struct machine_field f;
	bool begins = true;
	size_t n = strlen(head);

	memcpy(text, head, n + 1);
	for (u32 at = 0; machine_next_field(m, &at, &f); begins = f.ends) {
		const char *part[] = {
			begins ? f.subject : "", " ", begins ? f.of : "", " ", f.name, " ", f.value,
			f.ends ? "\n" : ""};

		for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
			CHECK(n + strlen(part[i]) < size);
			memcpy(text + n, part[i], strlen(part[i]) + 1);
			n += strlen(part[i]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char text[MACHINE_TEXT_MAX];
	struct machine m, again;
	struct machine_mistake why;
	char *copy = malloc(len ? len : 1);
	int rc;

	CHECK(copy);
	/* Of just this size: a sanitizer sees who reads on. */
	memcpy(copy, data, len);
	rc = machine_parse(&m, copy, len, &why);
	free(copy);
	CHECK(rc == 0 || rc == -EBADMSG);
	if (rc) {
		CHECK(why.fault != MACHINE_FINE && why.subject && why.field);
		CHECK(memchr(why.text, 0, sizeof(why.text)));
	} else {
		CHECK(!machine_check(&m, &why));
		show(&m, text, sizeof(text));
		CHECK(!machine_parse(&again, text, strlen(text), &why));
		CHECK(!memcmp(&m, &again, sizeof(m)));
	}
	/* No text: a good machine with some bytes changed, so that much is looked at. */
	rc = machine_parse(&m, fuzz_samples[0], strlen(fuzz_samples[0]), &why);
	CHECK(!rc);
	for (size_t i = 0; i + 2 < len; i += 3)
		((uint8_t *)&m)[(data[i] | data[i + 1] << 8) % sizeof(m)] = data[i + 2];
	if (!machine_check(&m, &why))
		show(&m, text, sizeof(text));
	return 0;
}
