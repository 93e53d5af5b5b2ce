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
	LEAD_0F,
	LEAD_PREFIX,
	LEAD_REX,
	LEAD_VEX,
};

static const u8 leads[256] = {
	[0x0f] = LEAD_0F,
	[0x40 ... 0x4f] = LEAD_REX,
	[PREFIX_FS] = LEAD_PREFIX,
	[PREFIX_OPSIZE16] = LEAD_PREFIX,
	[0x70 ... 0x7f] = LEAD_BRANCH,
	[0xc3] = LEAD_BRANCH,
	[0xc4 ... 0xc5] = LEAD_VEX,
	[0xe8 ... 0xe9] = LEAD_BRANCH,
	[0xeb] = LEAD_BRANCH,
	[0xf2 ... 0xf3] = LEAD_PREFIX,
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

/* modrm of @p and what belongs to it; sets INSN_RIPREL. */
static inline u32 memory_len(struct insn *insn, const u8 *p)
{
	u32 mod = p[0] >> 6, rm = p[0] & 7, len = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		len = 2;
		if (mod == 0 && (p[1] & 7) == 5)
			return 6;
	} else if (rm == 5 && mod == 0) {
		insn->attr |= INSN_RIPREL;
		return 5;
	}
	return mod == 1 ? len + 1 : mod == 2 ? len + 4 : len;
}

/* Flags of a shift or rotation by a constant, of 32 or 64 bits. */
static void shift(struct insn *insn, u32 count)
{
	if (count == 0)
		insn->fl_read = insn->fl_written = 0;
	else if (count > 1)
		insn->fl_written &= (u16)~FL_OF;
}

int insn_scan(struct insn *insn, const u8 *p)
{
	u32 at = 0, pp = 0, rex = 0, table = T_1, vvvv = 0, cell;
	bool opsize16 = false;
	const struct insn_shape *shape;
	u8 op = p[0], lead = leads[op], enc = ENC_LEGACY, map = MAP_1, seg = SEG_NONE;

	if (lead == LEAD_BRANCH)
		return scan_branch(insn, p);
	for (; unlikely(lead == LEAD_PREFIX); lead = leads[op]) {
		if (op == PREFIX_OPSIZE16)
			opsize16 = true;
		else if (op == PREFIX_FS)
			seg = SEG_FS;
		else
			pp = op == 0xf3 ? 2 : 3;
		if (at == 3)
			return 0;
		op = p[++at];
	}
	if (lead == LEAD_VEX) {
		if (opsize16 || pp)
			return 0;
		enc = ENC_VEX;
		if (op == 0xc5) {
			vvvv = ~(u32)p[at + 1] >> 3 & 15;
			pp = p[at + 1] & 3;
			map = MAP_0F;
			at += 2;
		} else {
			map = p[at + 1] & 31;
			if (map < MAP_0F || map > MAP_0F3A)
				return 0;
			rex = p[at + 2] & 0x80 ? REX_W : 0;
			vvvv = ~(u32)p[at + 2] >> 3 & 15;
			pp = p[at + 2] & 3;
			at += 3;
		}
		table = T_V1 + map - MAP_0F;
		op = p[at];
	} else {
		if (opsize16 && !pp)
			pp = 1;
		if (lead == LEAD_REX) {
			rex = op & 15;
			op = p[++at];
		}
		if (op == 0x0f) {
			op = p[++at];
			if ((op & 0xf0) == 0x80 && at == 1)
				return branch(insn, p, CF_JCC, MAP_0F, op, 6, 4);
			table = T_0F;
			if (op == 0x38 || op == 0x3a) {
				table = op == 0x38 ? T_0F38 : T_0F3A;
				op = p[++at];
			}
			map = (u8)(MAP_0F + table - T_0F);
		}
	}
	at++;
	cell = insn_scan_cells[insn_scan_class[table][op]][pp << 5 | p[at] >> 3];
	if (!cell)
		return 0;
	shape = &insn_shapes[cell];
	if (vvvv && !(shape->bits & SCAN_VVVV))
		return 0;
	fill_brief(insn, enc, map, op, 0);
	insn->mem.seg = seg;
	insn->fl_read = shape->fl_read;
	insn->fl_written = shape->fl_written;
	if (shape->bits & SCAN_MODRM) {
		insn->modrm = p[at];
		at += memory_len(insn, p + at);
	}
	switch (shape->imm) {
	case IMM_IB:
	case IMM_UB:
		if (shape->bits & SCAN_SHIFT) {
			if (opsize16)
				return 0;
			shift(insn, p[at] & (rex & REX_W ? 63 : 31));
		}
		at++;
		break;
	case IMM_IZ: at += opsize16 && !(rex & REX_W) ? 2 : 4; break;
	case IMM_IV: at += rex & REX_W ? 8 : opsize16 ? 2 : 4; break;
	default: break;
	}
	if (at > INSN_MAX)
		return 0;
	insn->len = (u8)at;
	return (int)at;
}
