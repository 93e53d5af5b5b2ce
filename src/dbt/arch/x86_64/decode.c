/*
 * The decoder: prefixes, then the opcode map, then the first row of the opcode's list that matches
 * (insns-*.txt), then the operands that the row names. A row's effect is data; what depends on
 * operand values (a shift by 0, rep, bt with a register offset) is in fix_up().
 */
#include "dbt/arch/x86_64/decode-priv.h"

#include <linux/errno.h>

static bool near16;

struct cursor86 {
	const u8 *p;
	u8 at;    /* bytes consumed */
	u8 limit; /* bytes that may be read, at most 15 */
	bool cut; /* the limit is less than an instruction may have */
};

/* Whether @n more bytes may be read; asked before each read. */
static inline bool have(const struct cursor86 *c, unsigned int n)
{
	return c->at + n <= c->limit;
}

static inline int short_of_bytes(const struct cursor86 *c)
{
	return c->cut ? -ENODATA : -EBADMSG;
}

static s64 get_signed(const u8 *p, unsigned int n)
{
	u64 v = 0;

	for (unsigned int i = 0; i < n; i++)
		v |= (u64)p[i] << (8 * i);
	return n == 8 ? (s64)v : (s64)(v << (64 - 8 * n)) >> (64 - 8 * n);
}

static unsigned int vector_bytes(const struct insn *insn)
{
	return 16u << insn->vl;
}

static u16 size_of(const struct insn *insn, u8 size)
{
	static const u16 fixed[] = {
		[SZ_B0] = 0,   [SZ_B1] = 1,   [SZ_B2] = 2,     [SZ_B4] = 4,
		[SZ_B8] = 8,   [SZ_B10] = 10, [SZ_B16] = 16,   [SZ_B32] = 32,
		[SZ_B48] = 48, [SZ_B64] = 64, [SZ_B512] = 512, [SZ_ANY] = INSN_SIZE_VARIES,
	};

	if (size < SZ_V)
		return fixed[size];
	switch (size) {
	case SZ_V: return insn->opsize;
	case SZ_Z: return insn->opsize == 2 ? 2 : 4;
	case SZ_Y: return insn->rex & REX_W ? 8 : 4;
	case SZ_A: return insn->attr & INSN_ADDR32 ? 4 : 8;
	case SZ_P: return insn->opsize + 2;
	case SZ_ENV: return insn->opsize == 2 ? 14 : 28;
	case SZ_STATE: return insn->opsize == 2 ? 94 : 108;
	case SZ_X: return vector_bytes(insn);
	case SZ_H: return vector_bytes(insn) / 2;
	case SZ_F: return vector_bytes(insn) / 4;
	case SZ_G: return vector_bytes(insn) / 8;
	default: return insn->vl == 0 ? 8 : vector_bytes(insn);
	}
}

/* ah, ch, dh, bh: numbers 4..7 of byte registers when no REX is there. */
static unsigned int byte_reg(const struct insn *insn, unsigned int n)
{
	return insn->rex_off == INSN_ABSENT && insn->enc == ENC_LEGACY && n >= 4 && n < 8 ? n - 4
											  : n;
}

static void touch_reg(struct insn *insn, unsigned int n, u8 operand)
{
	u16 size = size_of(insn, operand & 63);
	u16 bit;

	if (size == 1)
		n = byte_reg(insn, n);
	bit = BIT(n & 15);
	if (operand & (1 << 6))
		insn->gpr_read |= bit;
	if (operand & (2 << 6)) {
		insn->gpr_written |= bit;
		if (size < 4)
			insn->gpr_read |= bit;
	}
}

/* modrm, sib and displacement. Registers of the address are added to gpr_read. */
static int decode_memory(struct insn *insn, struct cursor86 *c)
{
	unsigned int mod = insn->modrm >> 6, rm = insn->modrm & 7;
	struct insn_mem *mem = &insn->mem;

	insn->attr |= INSN_MEM;
	mem->base = mem->index = REG_NONE;
	if (rm == 4) {
		if (!have(c, 1))
			return short_of_bytes(c);
		insn->sib_off = c->at;
		insn->sib = c->p[c->at++];
		mem->scale = insn->sib >> 6;
		mem->index = ((insn->sib >> 3) & 7) | (insn->rex & REX_X ? 8 : 0);
		if (mem->index == 4)
			mem->index = REG_NONE;
		rm = insn->sib & 7;
		mem->base = rm | (insn->rex & REX_B ? 8 : 0);
		if (rm == 5 && mod == 0) {
			mem->base = REG_NONE;
			insn->disp_size = 4;
		}
	} else if (rm == 5 && mod == 0) {
		mem->base = REG_RIP;
		insn->attr |= INSN_RIPREL;
		insn->disp_size = 4;
	} else {
		mem->base = rm | (insn->rex & REX_B ? 8 : 0);
	}
	if (mod == 1)
		insn->disp_size = 1;
	else if (mod == 2)
		insn->disp_size = 4;
	if (insn->disp_size) {
		if (!have(c, insn->disp_size))
			return short_of_bytes(c);
		insn->disp_off = c->at;
		mem->disp = get_signed(c->p + c->at, insn->disp_size);
		c->at += insn->disp_size;
	}
	return 0;
}

static int decode_immediate(struct insn *insn, struct cursor86 *c, u8 kind)
{
	const u8 *p = c->p + c->at;

	switch (kind) {
	case IMM_NONE: return 0;
	case IMM_IB:
	case IMM_UB:
	case IMM_JB: insn->imm_size = 1; break;
	case IMM_IW:
	case IMM_IBB: insn->imm_size = 2; break;
	case IMM_IZ:
	case IMM_JZ: insn->imm_size = insn->opsize == 2 ? 2 : 4; break;
	case IMM_ID: insn->imm_size = 4; break;
	case IMM_IV: insn->imm_size = insn->opsize; break;
	case IMM_IWB: insn->imm_size = 3; break;
	case IMM_MOFFS:
		insn->imm_size = insn->attr & INSN_ADDR32 ? 4 : 8;
		insn->attr |= INSN_MOFFS | INSN_MEM;
		insn->mem.base = insn->mem.index = REG_NONE;
		break;
	}
	if (!have(c, insn->imm_size))
		return short_of_bytes(c);
	insn->imm_off = c->at;
	insn->imm = get_signed(p, insn->imm_size);
	if (kind == IMM_UB || kind == IMM_IW)
		insn->imm &= insn->imm_size == 1 ? 0xff : 0xffff;
	else if (kind == IMM_IWB)
		insn->imm &= 0xffffff;
	else if (kind == IMM_MOFFS && insn->imm_size == 4)
		insn->imm &= 0xffffffff;
	c->at += insn->imm_size;
	return 0;
}

/* @count: the masked shift count, or -1 when only the CPU knows. */
static void fix_shift(struct insn *insn, int count)
{
	bool rotate = !(insn->fl_written & FL_ZF);

	if (count == 0) {
		insn->fl_read = insn->fl_written = insn->fl_undef = 0;
	} else if (count < 0) {
		insn->fl_may = insn->fl_written;
		insn->fl_undef |= FL_OF;
		insn->fl_written = 0;
	} else if (count > 1) {
		insn->fl_written &= ~FL_OF;
		insn->fl_undef |= FL_OF;
		if (!rotate && count > insn->opsize * 8) {
			/*
			 * shrd and shld of 16 bits define nothing then; plain shifts lose only CF.
			 */
			insn->fl_undef |= insn->fl_written;
			insn->fl_written = 0;
		} else if (!rotate && count == insn->opsize * 8) {
			insn->fl_undef |= FL_CF;
			insn->fl_written &= ~FL_CF;
		}
	}
}

static void stack_push(struct insn *insn, u8 bytes)
{
	insn->attr |= INSN_STACK;
	insn->stack_write = bytes;
	insn->gpr_read |= BIT(REG_RSP);
	insn->gpr_written |= BIT(REG_RSP);
}

static void stack_pop(struct insn *insn, u8 bytes)
{
	insn->attr |= INSN_STACK;
	insn->stack_read = bytes;
	insn->gpr_read |= BIT(REG_RSP);
	insn->gpr_written |= BIT(REG_RSP);
}

static void fix_string(struct insn *insn, u64 xattr)
{
	if (!(insn->attr & (INSN_REPE | INSN_REPNE)))
		return;
	insn->attr |= INSN_REP;
	insn->gpr_read |= BIT(REG_RCX);
	insn->gpr_written |= BIT(REG_RCX);
	/* With rcx 0 nothing else changes. */
	insn->gpr_read |= insn->gpr_written;
	if (xattr & X_REPZ) {
		insn->fl_may = insn->fl_written;
		insn->fl_written = 0;
	}
}

static void fix_up(struct insn *insn, u8 fix)
{
	unsigned int mask = insn->opsize == 8 ? 63 : 31;

	switch (fix) {
	case FIX_SHIFT_I:
	case FIX_SHIFT_D: fix_shift(insn, (int)(insn->imm & mask)); break;
	case FIX_SHIFT_C: fix_shift(insn, -1); break;
	case FIX_NOP90:
		/* With f3 as well: that is pause on Intel's CPUs, and still xchg on AMD's. */
		if (insn->rex & REX_B)
			break;
		insn->gpr_read = insn->gpr_written = 0;
		break;
	case FIX_LEA: insn->mem.seg = SEG_NONE; break;
	case FIX_CMPXCHG8:
		insn->opsize = insn->rex & REX_W ? 8 : 4;
		if (insn->opsize == 8)
			insn->mem_read = insn->mem_write = 16;
		break;
	case FIX_RET:
	case FIX_UIRET: stack_pop(insn, fix == FIX_RET ? insn->opsize : 24); break;
	case FIX_RETF:
		stack_pop(insn, insn->cf == CF_IRET ? 5 * insn->opsize : 2 * insn->opsize);
		break;
	case FIX_CALL: stack_push(insn, insn->opsize); break;
	case FIX_CALLF: stack_push(insn, 2 * insn->opsize); break;
	case FIX_ENTER:
		insn->opsize = insn->opsize == 2 ? 2 : 8;
		stack_push(insn, insn->opsize);
		insn->gpr_read |= BIT(REG_RBP);
		insn->gpr_written |= BIT(REG_RBP);
		if ((insn->imm >> 16) & 31)
			insn->stack_read = insn->opsize;
		break;
	case FIX_LEAVE:
		stack_pop(insn, insn->opsize);
		insn->gpr_read |= BIT(REG_RBP);
		insn->gpr_written |= BIT(REG_RBP);
		if (insn->opsize != 2)
			insn->gpr_read &= ~BIT(REG_RSP);
		break;
	case FIX_LOOP: insn->attr |= INSN_COND; break;
	case FIX_SYSCALL:
		insn->attr |= INSN_BRANCH;
		insn->gpr_read |= 0xffff;
		insn->gpr_written |= BIT(REG_RAX) | BIT(REG_RCX) | BIT(REG_R11);
		break;
	case FIX_IMM3: insn->imm = 3; break;
	case FIX_IMM1: insn->imm = 1; break;
	}
}

/* Registers, memory and flags of the row. */
static void apply_effect(struct insn *insn, const struct insn_effect *e)
{
	u64 x = e->attr;

	if (e->reg)
		touch_reg(insn, insn_reg_field(insn), e->reg);
	if (e->rm && !(insn->attr & INSN_MEM))
		touch_reg(insn, insn_rm(insn), e->rm);
	if (e->vvvv)
		touch_reg(insn, insn->vvvv, e->vvvv);
	if (e->opr)
		touch_reg(insn, (insn->opcode & 7) | (insn->rex & REX_B ? 8 : 0), e->opr);
	if (e->acc)
		touch_reg(insn, REG_RAX, e->acc);
	insn->gpr_read |= e->gpr_r;
	insn->gpr_written |= e->gpr_w;
	if ((x & X_IVAR) && insn->opsize == 2)
		insn->gpr_read |= e->gpr_w;
	insn->fl_read = e->fl_r;
	insn->fl_written = e->fl_w;
	insn->fl_undef = e->fl_u;

	if ((insn->attr & INSN_MEM) || insn->special == SP_STRING || insn->special == SP_XLAT ||
	    insn->special == SP_MASKMOV) {
		insn->mem_read = e->mem_r ? size_of(insn, e->mem_r) : 0;
		insn->mem_write = e->mem_w ? size_of(insn, e->mem_w) : 0;
	}
	if (x & X_CC) {
		insn->cond = insn->opcode & 15;
		insn->fl_read |= insn_cond_flags(insn->cond);
		if (insn->cf == CF_JCC)
			insn->attr |= INSN_COND;
	}
	if (x & X_PUSH)
		stack_push(insn, insn->opsize);
	if (x & X_POP)
		stack_pop(insn, insn->opsize);
	if (x & X_STRING)
		fix_string(insn, x);
	if (x & (X_CMOV | X_GCOND))
		insn->gpr_read |= BIT(insn_reg_field(insn));
	if ((x & X_BITMEM) && (insn->attr & INSN_MEM))
		insn->attr |= INSN_MEM_COND;
	if (x & X_CMPXCHG) {
		/*
		 * The destination of a register form survives a failed comparison; rax a successful
		 * one.
		 */
		insn->gpr_read |= insn->gpr_written;
	}
	fix_up(insn, e->fix);
}

static const struct insn_row *find_row(const struct insn *insn, u16 first, bool rounding)
{
	const struct insn_row *r = &insn_rows[first];
	u8 pp = 1 << insn->pp;
	u8 w = insn->rex & REX_W ? 2 : 1;
	u8 l = rounding ? 0x1c : 4 << insn->vl;
	u8 mod = insn->modrm >= 0xc0 ? 0x40 : 0x20;
	u8 reg = 1 << ((insn->modrm >> 3) & 7), rm = 1 << (insn->modrm & 7);

	for (;; r++) {
		if ((r->pp & pp) && (r->wl & w) && (r->wl & l) && (r->wl & mod) && (r->reg & reg) &&
		    (mod == 0x20 || (r->rm & rm)))
			return r;
		if (r->wl & ROW_LAST)
			return NULL;
	}
}

/* Prefixes of EVEX that the row does not allow, and the multiplier of disp8. */
static int check_evex(struct insn *insn, const struct insn_effect *e)
{
	bool memory = insn->attr & INSN_MEM;
	unsigned int n;

	if (insn->evex_aaa ? !(e->evex & (EV_K | EV_KREQ)) : e->evex & EV_KREQ)
		return -EBADMSG;
	if ((insn->evex_flags & 0x80) && !((e->evex & EV_Z) || ((e->evex & EV_ZREG) && !memory)))
		return -EBADMSG;
	if ((insn->evex_flags & 0x80) && !insn->evex_aaa)
		return -EBADMSG;
	if (insn->evex_flags & 0x10) {
		if (!memory) {
			if (!(e->evex & EV_RB))
				return -EBADMSG;
		} else if (!(e->evex & (EV_BC2 | EV_BC4 | EV_BC8))) {
			return -EBADMSG;
		}
	}
	if (!memory)
		return 0;
	if (insn->evex_flags & 0x10)
		n = e->evex & EV_BC2 ? 2 : e->evex & EV_BC4 ? 4 : 8;
	else if (e->evex & (EV_N1 | EV_N2 | EV_N4 | EV_N8))
		n = e->evex & EV_N1 ? 1 : e->evex & EV_N2 ? 2 : e->evex & EV_N4 ? 4 : 8;
	else
		n = size_of(insn, e->mem_w ? e->mem_w : e->mem_r);
	if (insn->disp_size == 1)
		insn->mem.disp *= (s32)n;
	if (insn->evex_flags & 0x10)
		insn->mem_read = n;
	if (insn->evex_aaa)
		insn->attr |= INSN_MEM_COND;
	return 0;
}

/* 3DNow!: suffixes that name an operation (AMD APM vol. 3). */
static bool is_3dnow(u8 op)
{
	static const u8 ops[] = {
		0x0c, 0x0d, 0x1c, 0x1d, 0x8a, 0x8e, 0x90, 0x94, 0x96, 0x97, 0x9a, 0x9e,
		0xa0, 0xa4, 0xa6, 0xa7, 0xaa, 0xae, 0xb0, 0xb4, 0xb6, 0xb7, 0xbb, 0xbf,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i] == op)
			return true;
	return false;
}

static int decode_3dnow(struct insn *insn, struct cursor86 *c)
{
	int err;

	insn->map = MAP_3DNOW;
	if (!have(c, 1))
		return short_of_bytes(c);
	insn->modrm_off = c->at;
	insn->modrm = c->p[c->at++];
	insn->attr |= INSN_MODRM | INSN_VECTOR;
	if (insn->modrm < 0xc0) {
		err = decode_memory(insn, c);
		if (err)
			return err;
		insn->mem_read = 8;
	}
	if (!have(c, 1))
		return short_of_bytes(c);
	insn->opcode_off = c->at;
	insn->opcode = c->p[c->at++];
	return is_3dnow(insn->opcode) ? 0 : -EBADMSG;
}

/* The payload of VEX (c4, c5), XOP (8f) or EVEX (62) at c->at. Returns the table or an error. */
static int decode_vex(struct insn *insn, struct cursor86 *c, u8 first)
{
	unsigned int n = first == 0x62 ? 4 : first == 0xc5 ? 2 : 3;
	const u8 *p = c->p + c->at;
	unsigned int map = 1, inverted;

	if (!have(c, n))
		return short_of_bytes(c);
	insn->rex_off = c->at;
	c->at += n;
	if (first == 0xc5) {
		insn->enc = ENC_VEX;
		insn->rex = p[1] & 0x80 ? 0 : REX_R;
		insn->vvvv = ~(p[1] >> 3) & 15;
		insn->vl = (p[1] >> 2) & 1;
		insn->pp = p[1] & 3;
	} else {
		inverted = ~p[1] >> 5;
		insn->rex = (inverted & 7) | (p[2] & 0x80 ? REX_W : 0);
		insn->vvvv = ~(p[2] >> 3) & 15;
		insn->pp = p[2] & 3;
		if (first == 0x62) {
			map = p[1] & 15; /* bit 3 must be 0: map 8 and up are not there */
			insn->enc = ENC_EVEX;
			if (!(p[2] & 4))
				return -EBADMSG;
			insn->vl = (p[3] >> 5) & 3;
			insn->evex_aaa = p[3] & 7;
			insn->evex_flags = (p[3] & 0x90) | (p[1] & 0x10 ? 0 : 2) |
					   (p[3] & 8 ? 0 : 1);
			if (insn->evex_flags & 1)
				insn->vvvv |= 16;
		} else {
			map = p[1] & 31;
			insn->enc = first == 0xc4 ? ENC_VEX : ENC_XOP;
			insn->vl = (p[2] >> 2) & 1;
		}
	}
	switch (insn->enc) {
	case ENC_VEX:
		insn->map = map;
		return map >= 1 && map <= 3 ? (int)(T_V1 + map - 1) : -EBADMSG;
	case ENC_XOP:
		insn->map = MAP_XOP8 + map - 8;
		return map >= 8 && map <= 10 ? (int)(T_X8 + map - 8) : -EBADMSG;
	default:
		insn->map = map;
		if (map >= 1 && map <= 3)
			return T_E1 + map - 1;
		return map == 5 ? T_E5 : map == 6 ? T_E6 : -EBADMSG;
	}
}

/* Legacy prefixes and REX. Leaves c at the first byte after them. */
static int decode_prefixes(struct insn *insn, struct cursor86 *c)
{
	for (;; c->at++) {
		if (!have(c, 1))
			return short_of_bytes(c);
		switch (c->p[c->at]) {
		case PREFIX_OPSIZE16: insn->attr |= INSN_OPSIZE16; break;
		case PREFIX_ADDR32: insn->attr |= INSN_ADDR32; break;
		case 0xf0: insn->attr |= INSN_LOCK; break;
		case 0xf2: insn->attr = (insn->attr & ~INSN_REPE) | INSN_REPNE; break;
		case 0xf3: insn->attr = (insn->attr & ~INSN_REPNE) | INSN_REPE; break;
		case 0x26:
		case 0x2e:
		case 0x36:
			insn->attr &= ~INSN_NOTRACK;
			break; /* no base; they do not undo fs or gs */
		case 0x3e: insn->attr |= INSN_NOTRACK; break;
		case PREFIX_FS:
			insn->mem.seg = SEG_FS;
			insn->attr &= ~INSN_NOTRACK;
			break;
		case PREFIX_GS:
			insn->mem.seg = SEG_GS;
			insn->attr &= ~INSN_NOTRACK;
			break;
		case 0x40 ... 0x4f:
			/* Takes effect only right before the opcode. */
			insn->rex = c->p[c->at] & 15;
			insn->rex_off = c->at;
			continue;
		default: return 0;
		}
		insn->rex = 0;
		insn->rex_off = INSN_ABSENT;
	}
}

/* Finds table and opcode; c is left behind the opcode. Returns enum insn_table or an error. */
static int decode_opcode(struct insn *insn, struct cursor86 *c)
{
	u64 forbidden = INSN_LOCK | INSN_OPSIZE16 | INSN_REPE | INSN_REPNE;
	u8 op = c->p[c->at];
	int table = T_1;

	if (op == 0x8f && !have(c, 2))
		return short_of_bytes(c);
	if (op == 0xc4 || op == 0xc5 || op == 0x62 || (op == 0x8f && (c->p[c->at + 1] & 31) >= 8)) {
		if ((insn->attr & forbidden) || insn->rex_off != INSN_ABSENT)
			return -EBADMSG;
		table = decode_vex(insn, c, op);
		if (table < 0)
			return table;
	} else {
		insn->pp = insn->attr & INSN_REPE       ? 2
			   : insn->attr & INSN_REPNE    ? 3
			   : insn->attr & INSN_OPSIZE16 ? 1
							: 0;
		if (op == 0x0f) {
			c->at++;
			if (!have(c, 1))
				return short_of_bytes(c);
			table = T_0F;
			insn->map = MAP_0F;
			op = c->p[c->at];
			if (op == 0x38 || op == 0x3a) {
				c->at++;
				table = op == 0x38 ? T_0F38 : T_0F3A;
				insn->map = op == 0x38 ? MAP_0F38 : MAP_0F3A;
			}
		}
	}
	if (!have(c, 1))
		return short_of_bytes(c);
	insn->opcode_off = c->at;
	insn->opcode = c->p[c->at++];
	return table;
}

static u8 operand_size(const struct insn *insn, u64 x)
{
	if (x & X_F64)
		return insn->attr & INSN_NEAR16 ? 2 : 8;
	if (insn->rex & REX_W)
		return 8;
	if (insn->attr & INSN_OPSIZE16)
		return 2;
	return x & X_D64 ? 8 : 4;
}

static bool is_near16(const struct insn *insn, u8 cf)
{
	return near16 && cf >= CF_JMP && cf <= CF_CALL_IND && insn->attr & INSN_OPSIZE16 &&
	       !(insn->rex & REX_W);
}

static bool is_byte_op(const struct insn_effect *e)
{
	u8 operand = e->reg ? e->reg : e->rm ? e->rm : e->opr ? e->opr : e->acc;

	return (operand & 63) == SZ_B1 || e->mem_w == SZ_B1;
}

/* The row's rules for vvvv, EVEX bits and lock, which hold for the whole instruction. */
static int check_row(struct insn *insn, const struct insn_effect *e)
{
	u8 vvvv = insn->vvvv;

	if (e->attr & INSN_VSIB) {
		if (!insn->sib_off)
			return -EBADMSG;
		insn->mem.index = ((insn->sib >> 3) & 7) | (insn->rex & REX_X ? 8 : 0) |
				  (vvvv & 16);
		vvvv &= 15;
		if (insn->enc == ENC_EVEX)
			insn->vvvv = vvvv;
	}
	if (insn->special == SP_TILE && (insn->attr & INSN_MEM) && e->mem_r + e->mem_w &&
	    insn->opcode == 0x4b && !insn->sib_off)
		return -EBADMSG;
	if (insn->enc != ENC_LEGACY && !(e->attr & X_VVVV) && vvvv)
		return -EBADMSG;
	if (insn->enc == ENC_EVEX && e->reg && (insn->evex_flags & 2))
		return -EBADMSG;
	if ((insn->attr & INSN_LOCK) && !((e->attr & X_LOCK) && (insn->attr & INSN_MEM)))
		return -EBADMSG;
	return insn->enc == ENC_EVEX ? check_evex(insn, e) : 0;
}

static void address_registers(struct insn *insn)
{
	if (!(insn->attr & INSN_MEM))
		return;
	if (insn->mem.base < REG_RIP)
		insn->gpr_read |= BIT(insn->mem.base);
	if (insn->mem.index < REG_RIP && !(insn->attr & INSN_VSIB))
		insn->gpr_read |= BIT(insn->mem.index);
}

void insn_set_near16(bool honoured)
{
	near16 = honoured;
}

/*
 * A branch that is not taken: with 16 bits of displacement it is shorter by two bytes, which are
 * `mov al, 1`.
 */
bool insn_cpu_has_near16(void)
{
	u32 a;

	__asm__("xor %%eax, %%eax\n\t.byte 0x66, 0x0f, 0x85, 0, 0, 0xb0, 1" /* jnz */
		: "=a"(a)
		:
		: "cc");
	return a;
}

int insn_decode(struct insn *insn, const u8 *p, size_t n)
{
	struct cursor86 c = {p, 0, n < INSN_MAX ? n : INSN_MAX, n < INSN_MAX};
	const struct insn_effect *e;
	const struct insn_row *row;
	bool rounding;
	int table, err;
	u16 first;

	*insn = (struct insn){.rex_off = INSN_ABSENT};
	err = decode_prefixes(insn, &c);
	if (err)
		return err;
	table = decode_opcode(insn, &c);
	if (table < 0)
		return table;
	insn->opsize = operand_size(insn, 0);
	if (table == T_0F && insn->opcode == 0x0f) {
		err = decode_3dnow(insn, &c);
		if (!err && (insn->attr & INSN_LOCK))
			err = -EBADMSG;
		if (err)
			return err;
		address_registers(insn);
		goto out;
	}
	first = insn_first[table][insn->opcode];
	if (!first)
		return -EBADMSG;
	if (insn_has_modrm((u32)table, insn->opcode)) {
		if (!have(&c, 1))
			return short_of_bytes(&c);
		insn->attr |= INSN_MODRM;
		insn->modrm_off = c.at;
		insn->modrm = c.p[c.at++];
		/*
		 * mov to and from control and debug registers has no memory form, whatever mod
		 * says.
		 */
		if (insn->modrm < 0xc0 && !(table == T_0F && (insn->opcode & 0xfc) == 0x20)) {
			err = decode_memory(insn, &c);
			if (err)
				return err;
		}
	}
	rounding = insn->enc == ENC_EVEX && (insn->evex_flags & 0x10) && !(insn->attr & INSN_MEM);
	if (insn->vl == 3 && !rounding)
		return -EBADMSG;
	row = find_row(insn, first, rounding);
	if (!row)
		return -EBADMSG;
	e = &insn_effects[row->effect];
	if (rounding)
		insn->vl = 2;
	insn->cf = e->cf;
	insn->special = e->special;
	insn->attr |= (u32)(e->attr & 0xfffff) | (is_near16(insn, e->cf) ? INSN_NEAR16 : 0);
	insn->opsize = operand_size(insn, e->attr);
	err = decode_immediate(insn, &c, e->imm);
	if (err)
		return err;
	if (is_byte_op(e))
		insn->opsize = 1;
	apply_effect(insn, e);
	err = check_row(insn, e);
	if (err)
		return err;
	address_registers(insn);
	if (!(e->attr & X_NOTRACK))
		insn->attr &= ~INSN_NOTRACK;
out:
	if ((insn->gpr_read | insn->gpr_written) & BIT(REG_RSP))
		insn->attr |= INSN_RSP;
	insn->len = c.at;
	return c.at;
}
