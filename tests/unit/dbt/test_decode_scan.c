/*
 * insn_scan() against insn_decode(): every opcode of every map with every modrm, behind prefixes in
 * turn, and the machine's own code, most of which it must know.
 */
#include "dbt/arch/x86_64/decode.h"
#include "unit/test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static unsigned long scanned, asked;

static bool same(const struct insn *a, const struct insn *b)
{
	const u32 attr = INSN_RIPREL | INSN_BRANCH | INSN_COND;

	return a->len == b->len && a->map == b->map && a->enc == b->enc && a->opcode == b->opcode &&
	       a->modrm == b->modrm && a->cf == b->cf &&
	       (a->special == b->special || b->special == SP_ENDBR) &&
	       a->cond == (b->cf ? b->cond : 0) && a->fl_read == b->fl_read &&
	       a->fl_written == b->fl_written && (a->attr & attr) == (b->attr & attr) &&
	       b->mem.seg != SEG_GS && !(b->attr & (INSN_MOFFS | INSN_ADDR32)) &&
	       (!b->cf || (a->imm == b->imm && a->imm_size == b->imm_size));
}

/* True if they agree, or insn_scan() says nothing. */
static bool agrees(const u8 *p)
{
	struct insn brief, full;

	memset(&brief, 0xa5, sizeof(brief));
	asked++;
	if (!insn_scan(&brief, p))
		return true;
	scanned++;
	if (insn_decode(&full, p, INSN_MAX) > 0 && same(&brief, &full))
		return true;
	TEST_FAIL(
		"of %02x %02x %02x %02x %02x %02x %02x %02x: length %d and %d, flags %x %x and %x %x",
		p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], brief.len, full.len, brief.fl_read,
		brief.fl_written, full.fl_read, full.fl_written);
	return test_failures < 20;
}

static bool opcodes(u8 *bytes, unsigned int at)
{
	for (unsigned int op = 0; op < 256; op++) {
		for (unsigned int modrm = 0; modrm < 256; modrm++) {
			bytes[at] = (u8)op;
			bytes[at + 1] = (u8)modrm;
			bytes[at + 2] = (u8)(modrm * 7 + op); /* sib, or the count of a shift */
			if (!agrees(bytes))
				return false;
			bytes[at + 2] = modrm & 1 ? 0x25 : (u8)(op & 3);
			if (!agrees(bytes))
				return false;
		}
	}
	return true;
}

static const struct {
	u8 len, bytes[4];
} prefixes[] = {
	{0, {0}},
	{1, {0x66}},
	{1, {0xf3}},
	{1, {0xf2}},
	{1, {0x48}},
	{1, {0x41}},
	{1, {0x47}},
	{2, {0x66, 0x48}},
	{2, {0xf3, 0x48}},
	{2, {0xf2, 0x49}},
	{2, {0x66, 0xf3}},
	{2, {0xf2, 0x66}},
	{1, {0x64}},
	{2, {0x64, 0x48}},
	{1, {0x65}},
	{1, {0x67}},
	{1, {0xf0}},
	{1, {0x2e}},
	{1, {0x3e}},
	{2, {0x48, 0x66}},
	{3, {0x66, 0x66, 0x66}},
	{4, {0x66, 0x66, 0x64, 0x48}},
	{4, {0x66, 0x66, 0x66, 0x66}},
};

TEST(legacy)
{
	static const u8 maps[][2] = {{0}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
	static const u8 lens[] = {0, 1, 2, 2};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		for (size_t map = 0; map < ARRAY_SIZE(maps); map++) {
			u8 bytes[32];

			memset(bytes, 0x81, sizeof(bytes));
			memcpy(bytes, prefixes[i].bytes, prefixes[i].len);
			memcpy(bytes + prefixes[i].len, maps[map], lens[map]);
			if (!opcodes(bytes, prefixes[i].len + lens[map]))
				return;
		}
	}
	EXPECT(scanned > asked / 8);
}

/* A block copies what is told of here without a second look; behind this one it ends. */
TEST(serialize_is_not_told)
{
	static const u8 serialize[INSN_MAX + 1] = {0x0f, 0x01, 0xe8};
	struct insn insn;

	EXPECT_EQ(insn_scan(&insn, serialize), 0);
}

TEST(vex)
{
	static const u8 payloads[] = {0x78, 0xf8, 0x7c, 0xfc, 0x79, 0x7d,
				      0x7a, 0x7b, 0x38, 0x3d, 0x82, 0x07};
	u8 bytes[32];

	scanned = asked = 0;
	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++) {
		memset(bytes, 0x81, sizeof(bytes));
		bytes[0] = 0xc5;
		bytes[1] = payloads[i];
		if (!opcodes(bytes, 2))
			return;
		for (u8 map = 0; map < 5; map++) {
			memset(bytes, 0x81, sizeof(bytes));
			bytes[0] = 0xc4;
			bytes[1] = 0xe0 | map;
			bytes[2] = payloads[i];
			if (!opcodes(bytes, 3))
				return;
		}
	}
	EXPECT(scanned > asked / 20);
}

/* From the start of .text on, as the CPU would go. */
TEST(code)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	const Elf64_Phdr *ph;
	const Elf64_Ehdr *eh;
	struct stat st;
	const u8 *file;

	ASSERT(fd >= 0 && fstat(fd, &st) == 0);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT(file != MAP_FAILED);
	eh = (const Elf64_Ehdr *)file;
	ph = (const Elf64_Phdr *)(file + eh->e_phoff);
	scanned = asked = 0;
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X))
			continue;
		for (u64 at = 0; at + 16 < ph[i].p_filesz;) {
			const u8 *p = file + ph[i].p_offset + at;
			struct insn insn;
			int len = insn_decode(&insn, p, INSN_MAX);

			if (!agrees(p))
				return;
			at += len > 0 ? (u64)len : 1;
		}
	}
	/* Padding and 3e prefixes are not executed often. */
	EXPECT(scanned > asked / 10 * 8);
}
