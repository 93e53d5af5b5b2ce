/*
 * Flags that the translator takes for set by an instruction do not depend on what they were before
 * it.
 */
#include "dbt/arch/x86_64/cpu-probe-priv.h"
#include "unit/test.h"

#include <sys/mman.h>

static const struct {
	u8 len, bytes[7];
} insns[] = {
	{3, {0x48, 0x85, 0xd0}},                   /* test rax, rdx */
	{2, {0x84, 0xd0}},                         /* test al, dl */
	{3, {0xf6, 0xc2, 0x40}},                   /* test dl, 0x40 */
	{2, {0xa8, 0x11}},                         /* test al, 0x11 */
	{2, {0x21, 0xd0}},                         /* and eax, edx */
	{4, {0x66, 0x83, 0xe0, 0xf0}},             /* and ax, -16 */
	{3, {0x48, 0x09, 0xd0}},                   /* or rax, rdx */
	{3, {0x80, 0xca, 0x03}},                   /* or dl, 3 */
	{2, {0x31, 0xc0}},                         /* xor eax, eax */
	{6, {0x81, 0xf2, 0x78, 0x56, 0x34, 0x12}}, /* xor edx, imm32 */
	{2, {0xd1, 0xe0}},                         /* shl eax, 1 */
	{4, {0x48, 0xc1, 0xe0, 0x0c}},             /* shl rax, 12 */
	{3, {0xc0, 0xe8, 0x03}},                   /* shr al, 3 */
	{4, {0x66, 0xc1, 0xea, 0x0f}},             /* shr dx, 15 */
	{4, {0x48, 0xc1, 0xfa, 0x3f}},             /* sar rdx, 63 */
	{4, {0x48, 0x0f, 0xaf, 0xc2}},             /* imul rax, rdx */
	{3, {0x6b, 0xc2, 0x64}},                   /* imul eax, edx, 100 */
	{3, {0x48, 0xf7, 0xe2}},                   /* mul rdx */
	{2, {0xf6, 0xea}},                         /* imul dl */
	{3, {0xc1, 0xc0, 0x05}},                   /* rol eax, 5 */
	{2, {0xd3, 0xe0}},                         /* shl eax, cl */
	{3, {0x0f, 0xbd, 0xc2}},                   /* bsr eax, edx */
	{2, {0x01, 0xd0}},                         /* add eax, edx */
	{3, {0x0f, 0xa3, 0xd0}},                   /* bt eax, edx */
};

static u64 run(const u8 *insn, u32 len, u64 a, u64 b, u64 flags)
{
	/* rax = rdi, rdx = rsi, flags = rcx's copy in r8; then the instruction; rax = flags */
	static const u8 before[] = {0x49, 0x89, 0xd0, 0x48, 0x89, 0xf8, 0x48,
				    0x89, 0xf2, 0x31, 0xc9, 0x41, 0x50, 0x9d};
	static const u8 after[] = {0x9c, 0x58, 0xc3};
	static u8 *code;

	if (!code)
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, before, sizeof(before));
	memcpy(code + sizeof(before), insn, len);
	memcpy(code + sizeof(before) + len, after, sizeof(after));
	return ((u64(*)(u64, u64, u64))code)(a, b, flags);
}

TEST(what_is_set_does_not_depend_on_what_was)
{
	u64 seed = 88172645463325252ull;

	cpu_probe(NULL);
	for (u32 i = 0; i < ARRAY_SIZE(insns); i++) {
		struct insn d;
		u16 set;

		EXPECT_EQ(insn_decode(&d, insns[i].bytes, insns[i].len), insns[i].len);
		set = flags_set(&d);
		EXPECT_EQ(set & d.fl_written, d.fl_written);
		EXPECT_EQ(set & ~(d.fl_written | d.fl_undef), 0);
		EXPECT(!d.fl_may || set == d.fl_written);
		for (u32 n = 0; n < 3000; n++) {
			u64 a, b, x, y;

			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			a = n % 7 ? seed : n % 3 - 1ull;
			b = n % 5 ? seed * 0x9e3779b97f4a7c15ull : n % 2 - 1ull;
			x = run(insns[i].bytes, insns[i].len, a, b, 0x202);
			y = run(insns[i].bytes, insns[i].len, a, b, 0x202 | FL_ARITH);
			EXPECT_EQ((x ^ y) & set, 0);
		}
	}
}
