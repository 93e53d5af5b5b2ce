/* How the size of the attr is negotiated [SIZE-*]. */
#include "conform/conform.h"

/* Room for every size that the kernel looks at, and one byte too many. */
union big {
	struct pe_attr attr;
	unsigned char bytes[8192];
};

static union big big(u32 size)
{
	union big b = {0};

	b.attr = sw_attr(PERF_COUNT_SW_DUMMY);
	b.attr.size = size;
	return b;
}

static long try_big(union big *b)
{
	return try_open(&b->attr, 0, -1, -1, 0);
}

/* What this kernel knows: it stores that when refusing. */
static u32 known_size(void)
{
	union big b = big(1);

	NEED(try_big(&b) == -E2BIG);
	return b.attr.size;
}

CONFORM(published)
{
	static const struct {
		const char *row, *text;
		u32 size;
	} sizes[] = {
		{"SIZE-01", "VER0, 64 bytes", 64},   {"SIZE-02", "VER1, 72 bytes", 72},
		{"SIZE-03", "VER2, 80 bytes", 80},   {"SIZE-04", "VER3, 96 bytes", 96},
		{"SIZE-05", "VER4, 104 bytes", 104}, {"SIZE-06", "VER5, 112 bytes", 112},
		{"SIZE-07", "VER6, 120 bytes", 120}, {"SIZE-07", "VER7, 128 bytes", 128},
		{"SIZE-07", "VER8, 136 bytes", 136},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		union big b = big(sizes[i].size);

		check_err(sizes[i].row, sizes[i].text, try_big(&b), 0);
	}
}

CONFORM(small)
{
	union big b = big(0);
	u32 known = known_size();

	check_err("SIZE-08", "size 0", try_big(&b), 0);
	if (kernel_at_least(6, 3))
		CHECK_ROW("SIZE-07", known >= 136, "the size stored on refusal is at least VER8",
			  "%u", known);
	b = big(0);
	b.bytes[100] = 1; /* beyond VER0: not looked at */
	check_err("SIZE-08", "size 0 is VER0: later bytes are not read", try_big(&b), 0);
	b = big(1);
	check_err("SIZE-09", "size 1", try_big(&b), E2BIG); /* [ERR-01] */
	check_val("SIZE-09", "size 1: the known size is stored", b.attr.size == known, 1);
	b = big(63);
	check_err("SIZE-09", "size 63", try_big(&b), E2BIG);
	check_val("SIZE-09", "size 63: the known size is stored", b.attr.size == known, 1);
}

CONFORM(large)
{
	u32 known = known_size();
	union big b = big(4096);

	check_err("SIZE-10", "size of a page, zero tail", try_big(&b), 0);
	b.bytes[4095] = 1;
	check_err("SIZE-10", "size of a page, last byte set", try_big(&b), E2BIG);
	check_val("SIZE-10", "last byte set: the known size is stored", b.attr.size == known, 1);
	b = big(4097);
	check_err("SIZE-10", "size of a page and a byte", try_big(&b), E2BIG);
	check_val("SIZE-10", "a page and a byte: the known size is stored", b.attr.size == known,
		  1);
	b = big(0xffffffff);
	check_err("SIZE-10", "the largest size", try_big(&b), E2BIG);
	b = big(known + 8);
	check_err("SIZE-11", "8 bytes more than known, zero", try_big(&b), 0);
	b.bytes[known] = 1;
	check_err("SIZE-11", "8 bytes more than known, the first set", try_big(&b), E2BIG);
	check_val("SIZE-11", "first set: the known size is stored", b.attr.size == known, 1);
	b = big(known + 8);
	b.bytes[known + 7] = 0x80;
	check_err("SIZE-11", "8 bytes more than known, the last set", try_big(&b), E2BIG);
	b = big(known);
	b.bytes[known] = 1;
	check_err("SIZE-11", "bytes beyond size are not looked at", try_big(&b), 0);
	b = big(known + 1);
	b.bytes[known] = 1;
	check_err("SIZE-11", "one byte more than known, set", try_big(&b), E2BIG);
}

CONFORM(between)
{
	union big b = big(65);

	check_err("SIZE-12", "size 65", try_big(&b), 0);
	b = big(127);
	check_err("SIZE-12", "size 127", try_big(&b), 0);
	/*
	 * clockid is at 92: with size 92 it is cut off, and 0 is CLOCK_REALTIME, good for software.
	 */
	b = big(92);
	b.attr.use_clockid = 1;
	b.attr.clockid = 12345;
	check_err("SIZE-12", "a field beyond size counts as 0", try_big(&b), 0);
	b.attr.size = 96;
	check_err("SIZE-12", "the same field within size", try_big(&b), EINVAL);
	b = big(80);
	b.attr.sample_type = PERF_SAMPLE_REGS_USER;
	b.attr.sample_regs_user = 1;
	check_err("SIZE-12", "REGS_USER whose mask is beyond size", try_big(&b), EINVAL);
	b.attr.size = 88;
	check_err("SIZE-12", "REGS_USER whose mask is within size", try_big(&b), 0);
}

CONFORM(precedence)
{
	union big b = big(1);

	b.attr.reserved_1 = 1;
	check_err("SIZE-13", "bad size and reserved bit", try_big(&b), E2BIG);
	b = big(1);
	check_err("SIZE-13", "bad size and bad flag", try_open(&b.attr, 0, -1, -1, 1 << 20),
		  EINVAL);
	check_val("SIZE-13", "bad flag: size is left alone", b.attr.size, 1);
	b = big(1);
	b.attr.type = 4000;
	check_err("SIZE-13", "bad size and unknown type", try_big(&b), E2BIG);
	b = big(1);
	check_err("SIZE-13", "bad size and no such task", try_open(&b.attr, -2, -1, -1, 0), E2BIG);
}

CONFORM(unreadable)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	NEED(two != MAP_FAILED && mprotect(two + 4096, 4096, PROT_NONE) == 0);
	check_err("SIZE-14", "no attr", try_open(NULL, 0, -1, -1, 0), EFAULT);
	check_err("SIZE-14", "an attr in the kernel's half",
		  try_open((void *)0xffff800000000000, 0, -1, -1, 0), EFAULT);
	check_err("SIZE-14", "an attr in unreadable memory",
		  try_open((void *)(two + 4096), 0, -1, -1, 0), EFAULT);
	memcpy(two + 4096 - 64, &attr, 64);
	check_err("SIZE-14", "an attr that runs into unreadable memory",
		  try_open((void *)(two + 4096 - 64), 0, -1, -1, 0), EFAULT);
	attr.size = 64;
	memcpy(two + 4096 - 64, &attr, 64);
	check_err("SIZE-14", "an attr that ends where unreadable memory begins",
		  try_open((void *)(two + 4096 - 64), 0, -1, -1, 0), 0);
	attr.size = 1;
	memcpy(two + 4096 - 64, &attr, 64);
	NEED(mprotect(two, 4096, PROT_READ) == 0);
	check_err("SIZE-14", "bad size in read-only memory",
		  try_open((void *)(two + 4096 - 64), 0, -1, -1, 0), E2BIG);
	attr.size = 200;
	NEED(mprotect(two, 4096, PROT_READ | PROT_WRITE) == 0);
	memcpy(two + 4096 - 144, &attr, 144);
	check_err("SIZE-14", "a tail that runs into unreadable memory",
		  try_open((void *)(two + 4096 - 144), 0, -1, -1, 0), EFAULT);
	memcpy(two + 4096 - 7, &attr, 7);
	check_err("SIZE-14", "a size word in unreadable memory",
		  try_open((void *)(two + 4096 - 4), 0, -1, -1, 0), EFAULT);
}
