/*
 * What a runtime is told at its start: who executes the runtime's file himself may tell it
 * anything. What it accepts it can use as it is: texts end, lengths lie within, and each seccomp
 * filter behind it is one that the kernel would take.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi/meter.h"
#include "base/check.h"
#include "fuzz/fuzz.h"
#include "rt/load/told.h"
#include "rt/sandbox/bpf.h"

/*
 * Two bytes of place, two of what; then what is behind. A control block is large and mostly zero,
 * so an input is what differs from a good one.
 */
const char *const fuzz_samples[] = {
	"",
	"\x01\x01\x01\x01",
	"FFFFFFFFFFFFFFFF\x02\1\1\1\x20\1\1\1\4\1\1\1\x06\1\1\1\1\1\xff\x7f",
	"FF\x01\1\1\x20\x06\1\1\1\1\1\xff\x7f",
	NULL,
};
const char *const fuzz_words[] = {"\xff\xff\xff\xff", "\x7f\xff", "\x06\1\1\1\1\1\xff\x7f", NULL};

static void read_filters(const u8 *filters, size_t len)
{
	static const struct seccomp_data sd = {.nr = 1};
	struct sock_filter *code;
	struct told_filter f;
	size_t at = 0, before;
	int ret;

	for (before = 0; (ret = told_filter(filters, len, &at, &f)) > 0; before = at) {
		CHECK(at > before && at <= len && f.insns && f.insns <= BPF_MAXINSNS);
		CHECK(f.code + f.insns * sizeof(*code) == filters + at);
		code = malloc(f.insns * sizeof(*code));
		CHECK(code);
		memcpy(code, f.code, f.insns * sizeof(*code));
		if (!bpf_check(code, f.insns))
			(void)bpf_run(code, f.insns, &sd);
		free(code);
	}
	CHECK(ret == -EINVAL || at == len);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	size_t changes = len > 16 ? 16 : len / 4 * 4, behind = len - changes;
	struct rt_control *c = calloc(1, sizeof(*c) + behind);
	size_t size = sizeof(*c) + behind;

	CHECK(c);
	c->magic = CONTROL_MAGIC;
	c->version = CONTROL_VERSION;
	c->meter = ~0u;
	c->seccomp_len = (u32)behind;
	memset(c->exe, 'x', sizeof(c->exe));
	memcpy(c + 1, data + changes, behind);
	for (size_t i = 0; i < changes; i += 4) {
		size_t at = (size_t)data[i] << 8 | data[i + 1];

		/* Half of them where numbers are. */
		at = data[i] & 1 ? at % offsetof(struct rt_control, exe) : at % sizeof(*c);
		((u8 *)c)[at] = data[i + 2];
		if (data[i + 3] == 0xff)
			size = at;
	}
	if (told_check(c, size)) {
		CHECK(size >= sizeof(*c) && c->seccomp_len <= behind);
		CHECK(strlen(c->comm) < sizeof(c->comm) && strlen(c->exe) < CONTROL_PATH &&
		      strlen(c->execfn) < CONTROL_PATH);
		CHECK(c->meter == ~0u || c->meter < SEGMENT_SLOTS);
		read_filters((const u8 *)(c + 1), c->seccomp_len);
	}
	read_filters(data, len);
	free(c);
	return 0;
}
