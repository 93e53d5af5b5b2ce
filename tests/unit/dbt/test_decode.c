/* The decoder's answers for chosen instructions, and its manners at the end of readable memory. */
#include "dbt/arch/x86_64/decode.h"
#include "unit/test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct sample {
	const char *text; /* as an assembler would print it */
	u8 len;
	u8 bytes[INSN_MAX];
};

static const struct sample samples[] = {
	{"nop", 1, {0x90}},
	{"add [rax], al", 2, {0x00, 0x00}},
	{"mov rax, imm64", 10, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}},
	{"movabs al, moffs64", 9, {0xa0, 1, 2, 3, 4, 5, 6, 7, 8}},
	{"addr32 movabs al, moffs32", 6, {0x67, 0xa0, 1, 2, 3, 4}},
	{"mov dword [rip+1], imm32", 10, {0xc7, 0x05, 1, 0, 0, 0, 9, 9, 9, 9}},
	{"mov qword fs:[rax+rbx*8+disp32], imm32",
	 13,
	 {0x64, 0x48, 0xc7, 0x84, 0xd8, 1, 2, 3, 4, 5, 6, 7, 8}},
	{"enter 16, 3", 4, {0xc8, 16, 0, 3}},
	{"call rel32", 5, {0xe8, 1, 0, 0, 0}},
	{"jo rel32", 6, {0x0f, 0x80, 1, 0, 0, 0}},
	{"pshufb mm, [rax+disp8]", 5, {0x0f, 0x38, 0x00, 0x40, 1}},
	{"palignr xmm, [rip], 1", 10, {0x66, 0x0f, 0x3a, 0x0f, 0x05, 0, 0, 0, 0, 1}},
	{"pfadd mm0, [rax]", 4, {0x0f, 0x0f, 0x00, 0x9e}},
	{"vzeroupper", 3, {0xc5, 0xf8, 0x77}},
	{"vpaddd ymm", 5, {0xc4, 0xe1, 0x7d, 0xfe, 0xc0}},
	{"vaddps zmm0{k1}{z}, zmm0, [rax+64]", 7, {0x62, 0xf1, 0x7c, 0xc9, 0x58, 0x40, 1}},
	{"bextr eax, ecx, imm32 (TBM)", 9, {0x8f, 0xea, 0x78, 0x10, 0xc1, 1, 2, 3, 4}},
	{"15 bytes: prefixes and add eax, imm32",
	 15,
	 {0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x81, 0xc0, 1, 2, 3, 4}},
};

/* Two pages, the second unreadable; returns the end of the first. */
static u8 *page_end(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	u8 *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE)) {
		perror("mmap");
		exit(1);
	}
	return p + page;
}

TEST(lengths)
{
	struct insn insn;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		EXPECT_EQ(insn_decode(&insn, samples[i].bytes, INSN_MAX), samples[i].len);
		EXPECT_EQ(insn.len, samples[i].len);
	}
}

TEST(every_prefix_is_truncated_and_nothing_past_it_is_read)
{
	u8 *end = page_end();
	struct insn insn;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		for (size_t n = 0; n < samples[i].len; n++) {
			memcpy(end - n, samples[i].bytes, n);
			EXPECT_EQ(insn_decode(&insn, end - n, n), -ENODATA);
		}
		memcpy(end - samples[i].len, samples[i].bytes, samples[i].len);
		EXPECT_EQ(insn_decode(&insn, end - samples[i].len, samples[i].len), samples[i].len);
	}
}

TEST(sixteen_bytes_are_no_instruction)
{
	static const u8 bytes[16] = {0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e,
				     0x3e, 0x3e, 0x81, 0xc0, 1,    2,    3,    4};
	struct insn insn;

	EXPECT_EQ(insn_decode(&insn, bytes, 16), -EBADMSG);
	EXPECT_EQ(insn_decode(&insn, bytes, 15), -EBADMSG);
	EXPECT_EQ(insn_decode(&insn, bytes, 14), -ENODATA);
}

static const struct insn *decode(const char *bytes, int len)
{
	static struct insn insn;

	EXPECT_EQ(insn_decode(&insn, (const u8 *)bytes, (size_t)len), len);
	return &insn;
}

#define DECODE(bytes) decode(bytes, sizeof(bytes) - 1)

TEST(branch_targets)
{
	EXPECT_EQ(insn_target(DECODE("\xeb\xfe"), 0x1000), 0x1000);
	EXPECT_EQ(insn_target(DECODE("\xe8\x00\x00\x00\x80"), 0x100000000), 0x80000005);
	EXPECT_EQ(insn_target(DECODE("\x0f\x84\x10\x00\x00\x00"), 0x1000), 0x1016);
	EXPECT_EQ(DECODE("\x0f\x84\x10\x00\x00\x00")->cond, 4);
	EXPECT_EQ(DECODE("\xe3\x10")->cf, CF_LOOP);
	EXPECT_EQ(DECODE("\xc2\x10\x80")->imm, 0x8010);
	EXPECT_EQ(DECODE("\xcd\x80")->imm, 0x80);
	EXPECT_EQ(DECODE("\xff\x25\x00\x00\x00\x00")->cf, CF_JMP_IND);
	EXPECT_EQ(DECODE("\x41\xff\xd3")->cf, CF_CALL_IND);
	EXPECT_EQ(insn_rm(DECODE("\x41\xff\xd3")), REG_R11);
}

/* Prefix 66 on near branches, as Intel's CPUs and as AMD's do it. */
TEST(branches_of_16_bits)
{
	static const struct {
		const char *bytes;
		u8 len[2]; /* ignored, honoured */
		u64 target[2];
	} direct[] = {
		{"\x66\xeb\xfe", {3, 3}, {0x12345001, 0x5001}},
		{"\x66\x74\x10", {3, 3}, {0x12345013, 0x5013}},
		{"\x66\xe2\x10", {3, 3}, {0x12345013, 0x5013}},
		{"\x66\xe8\x10\x80\x00\x00", {6, 4}, {0x1234d016, 0xd014}},
		{"\x66\xe9\x10\xf0\x00\x00", {6, 4}, {0x12354016, 0x4014}},
		{"\x66\x0f\x84\x10\x00\x00\x00", {7, 5}, {0x12345017, 0x5015}},
		{"\x66\x48\xe8\x10\x00\x00\x00", {7, 7}, {0x12345017, 0x12345017}},
	};
	struct insn insn;

	for (int honoured = 0; honoured < 2; honoured++) {
		insn_set_near16(honoured);
		for (size_t i = 0; i < ARRAY_SIZE(direct); i++) {
			EXPECT_EQ(insn_decode(&insn, (const u8 *)direct[i].bytes, 7),
				  direct[i].len[honoured]);
			EXPECT_EQ(insn_target(&insn, 0x12345000), direct[i].target[honoured]);
		}
		EXPECT_EQ(DECODE("\x66\xc3")->stack_read, honoured ? 2 : 8);
		EXPECT_EQ(DECODE("\x66\xff\xd0")->stack_write, honoured ? 2 : 8);
		EXPECT_EQ(DECODE("\x66\xff\x20")->mem_read, honoured ? 2 : 8);
		EXPECT_EQ(DECODE("\x66\x48\xff\x20")->mem_read, 8);
		/* Not a near branch: */
		EXPECT_EQ(DECODE("\x66\x9d")->stack_read, 2);
		EXPECT_EQ(DECODE("\x66\xc7\xf8\x10\x00")->imm_size, 2);
	}
	insn_set_near16(false);
}

TEST(registers)
{
	const struct insn *i = DECODE("\x66\x48\x0f\x7e\xc2"); /* movq rdx, xmm0 */

	EXPECT_EQ(i->gpr_written, BIT(REG_RDX));
	EXPECT_EQ(i->gpr_read, 0);
	i = DECODE("\xb4\x01"); /* mov ah, 1 */
	EXPECT_EQ(i->gpr_written, BIT(REG_RAX));
	EXPECT_EQ(i->gpr_read, BIT(REG_RAX));
	i = DECODE("\x40\xb4\x01"); /* mov spl, 1 */
	EXPECT_EQ(i->gpr_written, BIT(REG_RSP));
	EXPECT(i->attr & INSN_RSP);
	i = DECODE("\x0f\x44\xc1"); /* cmovz eax, ecx: eax may survive */
	EXPECT_EQ(i->gpr_read, BIT(REG_RAX) | BIT(REG_RCX));
	i = DECODE("\x31\xc0"); /* xor eax, eax */
	EXPECT_EQ(i->gpr_written, BIT(REG_RAX));
	i = DECODE("\xf3\xa4"); /* rep movsb */
	EXPECT_EQ(i->gpr_written, BIT(REG_RCX) | BIT(REG_RSI) | BIT(REG_RDI));
	EXPECT(i->attr & INSN_REP);
}

TEST(flags)
{
	const struct insn *i = DECODE("\xd3\xe0"); /* shl eax, cl */

	EXPECT_EQ(i->fl_written, 0);
	EXPECT_EQ(insn_fl_clobbered(i), FL_ARITH);
	i = DECODE("\xc1\xe0\x00"); /* shl eax, 0 */
	EXPECT_EQ(insn_fl_clobbered(i), 0);
	i = DECODE("\xc1\xe0\x02"); /* shl eax, 2 */
	EXPECT_EQ(i->fl_written, FL_ARITH & ~(FL_OF | FL_AF));
	i = DECODE("\xff\xc0"); /* inc eax */
	EXPECT_EQ(i->fl_written, FL_ARITH & ~FL_CF);
	EXPECT_EQ(i->fl_read, 0);
	i = DECODE("\x0f\x9f\xc0"); /* setg al */
	EXPECT_EQ(i->fl_read, FL_ZF | FL_SF | FL_OF);
}

TEST(memory)
{
	const struct insn *i = DECODE("\x65\x48\x8b\x44\x9d\x80"); /* mov rax, gs:[rbp+rbx*4-128] */

	EXPECT_EQ(i->mem.seg, SEG_GS);
	EXPECT_EQ(i->mem.base, REG_RBP);
	EXPECT_EQ(i->mem.index, REG_RBX);
	EXPECT_EQ(i->mem.scale, 2);
	EXPECT_EQ(i->mem.disp, -128);
	EXPECT_EQ(i->mem_read, 8);
	EXPECT_EQ(i->mem_write, 0);
	i = DECODE("\x83\x3d\x04\x03\x02\x01\x07"); /* cmp dword [rip+0x1020304], 7 */
	EXPECT(i->attr & INSN_RIPREL);
	EXPECT_EQ(i->disp_off, 2);
	EXPECT_EQ(i->imm_size, 1);
	EXPECT_EQ(insn_rip_address(i, 0x1000), 0x1000 + 7 + 0x1020304);
	i = DECODE("\x62\xf1\x7c\x48\x58\x40\x01"); /* vaddps zmm0, zmm0, [rax+64] */
	EXPECT_EQ(i->mem.disp, 64);
	EXPECT_EQ(i->mem_read, 64);
	i = DECODE("\x62\xf1\x7c\x58\x58\x40\x01"); /* vaddps zmm0, zmm0, dword [rax+4]{1to16} */
	EXPECT_EQ(i->mem.disp, 4);
	EXPECT_EQ(i->mem_read, 4);
}
