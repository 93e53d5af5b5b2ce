/*
 * The fast half of decode.h: lengths, flags and plain branches. gen-rows.py derives its tables from
 * the decoder's own; they say what can be told without looking at operands.
 * tests/unit/dbt/test_decode_scan.c compares it with insn_decode().
 */
#include "dbt/arch/x86_64/decode-priv.h"

/* Fills everything but flags and immediates. */
static inline void fill_brief(struct insn *insn, u8 enc, u8 map, u8 opcode, u8 modrm)
{
	insn->map = map;
	insn->enc = enc;
	insn->opcode = opcode;
	insn->cf = CF_NONE;
	insn->special = SP_NONE;
	insn->cond = 0;
	insn->modrm = modrm;
	insn->attr = INSN_BRIEF;
	insn->mem.seg = SEG_NONE;
}

static inline s32 get_s32(const u8 *p)
{
	s32 v;

	__builtin_memcpy(&v, p, 4);
	return v;
}

/* @len bytes, of which the last @size are the displacement. */
static int branch(struct insn *insn, const u8 *p, enum insn_cf cf, u8 map, u8 opcode, u32 len,
		  u32 size)
{
	fill_brief(insn, ENC_LEGACY, map, opcode, 0);
	insn->cf = (u8)cf;
	insn->len = (u8)len;
	insn->attr |= INSN_BRANCH;
	insn->imm_size = (u8)size;
	insn->imm = size == 4 ? get_s32(p + len - 4) : size == 1 ? (s8)p[len - 1] : 0;
	insn->fl_read = insn->fl_written = 0;
	if (cf == CF_JCC) {
		insn->cond = opcode & 15;
		insn->attr |= INSN_COND;
		insn->fl_read = insn_cond_flags(opcode & 15);
	}
	return (int)len;
}

/* What the first byte of an instruction is. */
enum lead {
	LEAD_OPCODE, /* or a prefix that is not known here, which no table has */
	LEAD_BRANCH,
	LEAD_PREFIX,
	LEAD_VEX,
};

static const u8 leads[256] =
	{
		[PREFIX_FS] = LEAD_PREFIX,     [PREFIX_OPSIZE16] = LEAD_PREFIX,
		[0x70 ... 0x7f] = LEAD_BRANCH, [0xc3] = LEAD_BRANCH,
		[0xc4 ... 0xc5] = LEAD_VEX,    [0xe8 ... 0xe9] = LEAD_BRANCH,
		[0xeb] = LEAD_BRANCH,          [0xf2 ... 0xf3] = LEAD_PREFIX,
};

static int scan_branch(struct insn *insn, const u8 *p)
{
	switch (p[0]) {
	case 0xe8: return branch(insn, p, CF_CALL, MAP_1, p[0], 5, 4);
	case 0xe9: return branch(insn, p, CF_JMP, MAP_1, p[0], 5, 4);
	case 0xeb: return branch(insn, p, CF_JMP, MAP_1, p[0], 2, 1);
	case 0xc3: return branch(insn, p, CF_RET, MAP_1, p[0], 1, 0);
	default: return branch(insn, p, CF_JCC, MAP_1, p[0], 2, 1);
	}
}

/* By modrm's mod and rm: the length of it and of what belongs to it. */
#define MODRM_RIP 0x40
#define MODRM_SIB 0x80 /* without a base there are 4 more */

static const u8 modrm_lens[4][8] = {
	{1, 1, 1, 1, 2 | MODRM_SIB, 5 | MODRM_RIP, 1, 1},
	{2, 2, 2, 2, 3, 2, 2, 2},
	{5, 5, 5, 5, 6, 5, 5, 5},
	{1, 1, 1, 1, 1, 1, 1, 1},
};

/* modrm at @p[at] and what belongs to it; sets INSN_RIPREL. */
static inline u32 memory_len(struct insn *insn, const u8 *p, u32 at)
{
	u32 len = modrm_lens[p[at] >> 6][p[at] & 7];

	if (likely(len < MODRM_RIP))
		return len;
	if (len & MODRM_RIP) {
		insn->attr |= INSN_RIPREL;
		insn->disp_off = (u8)(at + 1);
		return 5;
	}
	return (p[at + 1] & 7) == 5 ? 6 : 2;
}

/* Flags of a shift or rotation by a constant, of 32 or 64 bits. */
static void shift(struct insn *insn, u32 count)
{
	if (count == 0)
		insn->fl_read = insn->fl_written = 0;
	else if (count > 1)
		insn->fl_written &= (u16)~FL_OF;
}

/* What is known when the opcode is found; at: behind it. */
struct opcode {
	u32 at, table, pp, rex, vvvv;
	bool opsize16;
	u8 op, enc, map, seg;
};

static inline __attribute__((always_inline)) int scan_operands(struct insn *insn, const u8 *p,
							       struct opcode o)
{
	u32 at = o.at;
	u32 cell = insn_scan_cells[insn_scan_class[o.table][o.op]][o.pp << 5 | p[at] >> 3];
	const struct insn_shape *shape = &insn_shapes[cell];

	if (!cell || (o.vvvv && !(shape->bits & SCAN_VVVV)))
		return 0;
	fill_brief(insn, o.enc, o.map, o.op, 0);
	insn->mem.seg = o.seg;
	insn->fl_read = shape->fl_read;
	insn->fl_written = shape->fl_written;
	if (shape->bits & SCAN_MODRM) {
		insn->modrm = p[at];
		at += memory_len(insn, p, at);
	}
	switch (shape->imm) {
	case IMM_NONE: break;
	case IMM_IB:
	case IMM_UB:
		if (shape->bits & SCAN_SHIFT) {
			if (o.opsize16)
				return 0;
			shift(insn, p[at] & (o.rex & REX_W ? 63 : 31));
		}
		at++;
		break;
	case IMM_IZ: at += o.opsize16 && !(o.rex & REX_W) ? 2 : 4; break;
	case IMM_IV: at += o.rex & REX_W ? 8 : o.opsize16 ? 2 : 4; break;
	default: break;
	}
	if (at > INSN_MAX)
		return 0;
	insn->len = (u8)at;
	return (int)at;
}

/* From the first byte that is no prefix, which is at o.at. */
static inline __attribute__((always_inline)) int scan_legacy(struct insn *insn, const u8 *p,
							     struct opcode o)
{
	o.op = p[o.at];
	if ((o.op & 0xf0) == 0x40) {
		o.rex = o.op & 15;
		o.op = p[++o.at];
	}
	if (o.op != 0x0f) {
		o.at++;
		return scan_operands(insn, p, o);
	}
	o.op = p[++o.at];
	if ((o.op & 0xf0) == 0x80 && o.at == 1)
		return branch(insn, p, CF_JCC, MAP_0F, o.op, 6, 4);
	o.table = T_0F;
	if (o.op == 0x38 || o.op == 0x3a) {
		o.table = o.op == 0x38 ? T_0F38 : T_0F3A;
		o.op = p[++o.at];
	}
	o.map = (u8)(MAP_0F + o.table - T_0F);
	o.at++;
	return scan_operands(insn, p, o);
}

static int scan_vex(struct insn *insn, const u8 *p, u32 at)
{
	struct opcode o = {.enc = ENC_VEX, .seg = SEG_NONE, .map = MAP_0F};

	if (p[at] == 0xc4) {
		at++;
		o.map = p[at] & 31;
		if (o.map < MAP_0F || o.map > MAP_0F3A)
			return 0;
		o.rex = p[at + 1] & 0x80 ? REX_W : 0;
	}
	o.vvvv = ~(u32)p[at + 1] >> 3 & 15;
	o.pp = p[at + 1] & 3;
	o.op = p[at + 2];
	o.at = at + 3;
	o.table = T_V1 + o.map - MAP_0F;
	return scan_operands(insn, p, o);
}

static __attribute__((noinline)) int scan_prefixed(struct insn *insn, const u8 *p)
{
	struct opcode o = {.table = T_1, .enc = ENC_LEGACY, .map = MAP_1, .seg = SEG_NONE};

	for (; leads[p[o.at]] == LEAD_PREFIX; o.at++) {
		if (o.at == 3)
			return 0;
		if (p[o.at] == PREFIX_OPSIZE16)
			o.opsize16 = true;
		else if (p[o.at] == PREFIX_FS)
			o.seg = SEG_FS;
		else
			o.pp = p[o.at] == 0xf3 ? 2 : 3;
	}
	if (leads[p[o.at]] == LEAD_VEX) {
		if (o.opsize16 || o.pp || o.seg != SEG_NONE)
			return 0;
		return scan_vex(insn, p, o.at);
	}
	if (o.opsize16 && !o.pp)
		o.pp = 1;
	return scan_legacy(insn, p, o);
}

int insn_scan(struct insn *insn, const u8 *p)
{
	switch (leads[p[0]]) {
	case LEAD_BRANCH: return scan_branch(insn, p);
	case LEAD_PREFIX:
	case LEAD_VEX: return scan_prefixed(insn, p);
	default:
		return scan_legacy(
			insn, p,
			(struct opcode){
				.table = T_1, .enc = ENC_LEGACY, .map = MAP_1, .seg = SEG_NONE});
	}
}
