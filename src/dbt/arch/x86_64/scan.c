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

static int scan_branch(struct insn *insn, const u8 *p)
{
	switch (p[0]) {
	case 0x70 ... 0x7f: return branch(insn, p, CF_JCC, MAP_1, p[0], 2, 1);
	case 0xe8: return branch(insn, p, CF_CALL, MAP_1, p[0], 5, 4);
	case 0xe9: return branch(insn, p, CF_JMP, MAP_1, p[0], 5, 4);
	case 0xeb: return branch(insn, p, CF_JMP, MAP_1, p[0], 2, 1);
	case 0xc3: return branch(insn, p, CF_RET, MAP_1, p[0], 1, 0);
	case 0x0f:
		if ((p[1] & 0xf0) == 0x80)
			return branch(insn, p, CF_JCC, MAP_0F, p[1], 6, 4);
		return 0;
	default: return 0;
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
	u32 at = 0, pp = 0, rex = 0, table = T_1, vvvv = 0, len;
	bool opsize16 = false;
	const struct insn_shape *shape;
	u8 op, modrm = 0, enc = ENC_LEGACY, map = MAP_1, seg = SEG_NONE;

	len = (u32)scan_branch(insn, p);
	if (len)
		return (int)len;
	for (;; at++) {
		op = p[at];
		if (op == PREFIX_OPSIZE16)
			opsize16 = true;
		else if (op == 0xf3 || op == 0xf2)
			pp = op == 0xf3 ? 2 : 3;
		else if (op == PREFIX_FS)
			seg = SEG_FS;
		else
			break;
		if (at == 3)
			return 0;
	}
	if ((op & 0xf0) == 0x40) {
		rex = op & 15;
		op = p[++at];
	} else if (op == 0xc5 || op == 0xc4) {
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
	}
	if (enc == ENC_LEGACY) {
		if (opsize16 && !pp)
			pp = 1;
		if (op == 0x0f) {
			op = p[++at];
			table = T_0F;
			if (op == 0x38 || op == 0x3a) {
				table = op == 0x38 ? T_0F38 : T_0F3A;
				op = p[++at];
			}
			map = (u8)(MAP_0F + table - T_0F);
		}
	}
	at++;
	if (insn_has_modrm(table, op))
		modrm = p[at];
	len = insn_scan_cells[insn_scan_class[table][op]]
			     [pp << 4 | (modrm >= 0xc0) << 3 | (modrm >> 3 & 7)];
	if (!len)
		return 0;
	shape = &insn_shapes[len];
	if (vvvv && !(shape->bits & SCAN_VVVV))
		return 0;
	fill_brief(insn, enc, map, op, modrm);
	insn->mem.seg = seg;
	insn->fl_read = shape->fl_read;
	insn->fl_written = shape->fl_written;
	if (insn_has_modrm(table, op))
		at += memory_len(insn, p + at);
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
