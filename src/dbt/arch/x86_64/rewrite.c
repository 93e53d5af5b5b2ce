/* Instructions that do not branch: see rewrite-priv.h. */
#include "dbt/arch/x86_64/rewrite-priv.h"

#define SCRATCH_LOW \
	(BIT(REG_RAX) | BIT(REG_RCX) | BIT(REG_RDX) | BIT(REG_RBX) | BIT(REG_RSI) | BIT(REG_RDI))

/*
 * A register that the instruction does not use and that [reg] encodes without REX.B or a
 * displacement.
 */
static u8 scratch_reg(const struct insn *d, u16 besides)
{
	u16 free = (u16)(SCRATCH_LOW & ~(d->gpr_read | d->gpr_written | besides));

	CHECK(free);
	return (u8)__builtin_ctz(free);
}

/* A register that the instruction does not use, any but rsp. */
static u8 scratch_any(const struct insn *d, u16 besides)
{
	u16 free = (u16) ~(d->gpr_read | d->gpr_written | besides | BIT(REG_RSP));

	CHECK(free);
	return (u8)__builtin_ctz(free);
}

/* lea @to, [@base + @index]; @index is not rsp. */
static void emit_sum(struct emitter *e, u8 to, u8 base, u8 index)
{
	emit2(e, 0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3, 0x8d);
	/* A displacement of 0, since rbp and r13 cannot be bases without one. */
	emit3(e, 0x44 | (u8)((to & 7) << 3), (u8)((index & 7) << 3) | (base & 7), 0);
}

/* Where the bytes after the memory operand begin: immediates, and 3DNow's opcode. */
static u32 tail_offset(const struct insn *d)
{
	if (d->disp_off)
		return d->disp_off + d->disp_size;
	if (d->sib_off)
		return d->sib_off + 1u;
	return d->modrm_off + 1u;
}

/* What copy_head() leaves out. */
#define DROP_GS     BIT(0) /* the GS prefix */
#define DROP_ADDR32 BIT(1) /* the prefix for addresses of 32 bits */
#define DROP_BASE   BIT(2) /* REX.B: the base, or the register in modrm.rm, will be a low one */
#define DROP_X      BIT(3) /* REX.X: there will be no index */

/* Copies everything up to the modrm byte, or up to the last byte if there is none. */
static void copy_head(struct emitter *e, const struct insn *d, const u8 *bytes, u32 drop)
{
	u32 fixed = d->rex_off != INSN_ABSENT ? d->rex_off : d->opcode_off;
	u32 end = d->attr & INSN_MODRM ? d->modrm_off : d->len;
	u8 bits = (u8)(drop >> 2 & 3);

	for (u32 i = 0; i < end; i++) {
		u8 b = bytes[i];

		/*
		 * Legacy prefixes come before REX or VEX, if there is one, else before the opcode.
		 */
		if (i < fixed && ((drop & DROP_GS && b == PREFIX_GS) ||
				  (drop & DROP_ADDR32 && b == PREFIX_ADDR32)))
			continue;
		if (bits && d->rex_off != INSN_ABSENT) {
			bool second = i == d->rex_off + 1u;

			if (d->enc == ENC_LEGACY && i == d->rex_off)
				b &= (u8)~bits;
			else if (second && d->enc != ENC_LEGACY && bytes[d->rex_off] != 0xc5)
				b |= (u8)(bits << 5); /* inverted X and B; the short VEX has none */
		}
		emit1(e, b);
	}
}

/*
 * The instruction with [reg] as its memory operand. rbp is used as an index: as a base it would
 * turn the fault for an address that is not canonical into a stack fault (SIGBUS).
 */
static void emit_with_reg(struct emitter *e, const struct insn *d, const u8 *bytes, u8 reg)
{
	u32 tail = tail_offset(d);

	copy_head(e, d, bytes, DROP_GS | DROP_ADDR32 | DROP_BASE | DROP_X);
	if (reg == REG_RBP) {
		emit2(e, (d->modrm & 0x38) | 4, 0x2d); /* [rbp * 1 + disp32] */
		emit_u32(e, 0);
	} else {
		emit1(e, (d->modrm & 0x38) | reg);
	}
	emit_bytes(e, bytes + tail, d->len - tail);
}

static u64 rip_address(const struct insn *d, u64 pc)
{
	u64 a = insn_rip_address(d, pc);

	return d->attr & INSN_ADDR32 ? (u32)a : a;
}

static struct rewritten rewrite_lea(struct emitter *e, const struct insn *d, const u8 *bytes,
				    u64 pc)
{
	u64 target = rip_address(d, pc);
	u8 reg = insn_reg_field(d);

	if (d->opsize == 2) {
		emit1(e, PREFIX_OPSIZE16);
		if (reg & 8)
			emit1(e, 0x41);
		emit1(e, 0xb8 | (reg & 7));
		emit2(e, (u8)target, (u8)(target >> 8));
	} else if (d->opsize == 4 || target <= 0xffffffffu) {
		emit_mov_imm(e, reg, (u32)target);
	} else if (emit_reaches(e, target) && !(d->attr & INSN_ADDR32)) {
		emit_bytes(e, bytes, d->disp_off);
		emit_rel(e, target, 0);
	} else {
		emit_mov_imm(e, reg, target);
	}
	return (struct rewritten){0};
}

static struct rewritten rewrite_rip(struct emitter *e, const struct insn *d, const u8 *bytes,
				    u64 pc)
{
	u64 target = rip_address(d, pc);
	u32 tail = tail_offset(d);
	struct rewritten r = {0};
	u8 reg;

	if (d->enc == ENC_LEGACY && d->map == MAP_1 && d->opcode == 0x8d)
		return rewrite_lea(e, d, bytes, pc);
	if (emit_reaches(e, target) || d->attr & INSN_ADDR32) {
		emit_bytes(e, bytes, d->disp_off);
		emit_rel(e, target, d->len - tail);
		emit_bytes(e, bytes + tail, d->len - tail);
		return r;
	}
	if (fits_s32(target)) {
		copy_head(e, d, bytes, DROP_BASE | DROP_X);
		emit2(e, (d->modrm & 0x38) | 4, 0x25);
		emit_u32(e, (u32)target);
		emit_bytes(e, bytes + tail, d->len - tail);
		return r;
	}
	reg = scratch_reg(d, 0);
	emit_spill(e, reg);
	r.mask = (u16)BIT(reg);
	r.begin = e->p;
	emit_mov_imm(e, reg, target);
	emit_with_reg(e, d, bytes, reg);
	emit_unspill(e, reg);
	r.end = e->p;
	return r;
}

/* @reg = the operand's address without its segment. */
static void emit_address(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc, u8 reg)
{
	u32 tail = tail_offset(d);

	if (d->attr & INSN_MOFFS) {
		emit_mov_imm(e, reg, d->attr & INSN_ADDR32 ? (u32)d->imm : (u64)d->imm);
		return;
	}
	if (d->attr & INSN_RIPREL) {
		emit_mov_imm(e, reg, rip_address(d, pc));
		return;
	}
	if (d->attr & INSN_ADDR32)
		emit1(e, PREFIX_ADDR32);
	if (d->enc == ENC_EVEX && d->disp_size == 1) {
		/* Its displacement is scaled; lea's is not. */
		u8 rm = d->modrm & 7;

		emit3(e, 0x48 | (d->rex & 3) | (reg >> 3) << 2, 0x8d,
		      0x80 | rm | (u8)((reg & 7) << 3));
		if (rm == 4)
			emit1(e, d->sib);
		emit_u32(e, (u32)d->mem.disp);
		return;
	}
	emit3(e, 0x48 | (d->rex & 3) | (reg >> 3) << 2, 0x8d,
	      (d->modrm & 0xc7) | (u8)((reg & 7) << 3));
	emit_bytes(e, bytes + d->modrm_off + 1, tail - d->modrm_off - 1u);
}

/* mov al/eax/rax, gs:[constant] and back: opcodes a0 .. a3 have no form with a register. */
static void emit_moffs(struct emitter *e, const struct insn *d, u8 reg)
{
	static const u8 as[4] = {0x8a, 0x8b, 0x88, 0x89};

	if (d->attr & INSN_OPSIZE16)
		emit1(e, PREFIX_OPSIZE16);
	if (d->rex & REX_W)
		emit1(e, 0x48);
	emit2(e, as[d->opcode & 3], reg);
}

/* Any instruction with a memory operand in modrm form, or moffs. */
static struct rewritten rewrite_gs(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	/* cmpxchg16b with an operand addressed by rsi and rdi leaves only rbp. */
	u16 low = (u16)(SCRATCH_LOW & ~(d->gpr_read | d->gpr_written));
	u8 a = low ? scratch_reg(d, 0) : REG_RBP, b = scratch_any(d, (u16)BIT(a));
	struct rewritten r = {.mask = (u16)(BIT(a) | BIT(b))};

	emit_spill(e, a);
	emit_spill(e, b);
	r.begin = e->p;
	emit_address(e, d, bytes, pc, a);
	if (d->map == MAP_1 && d->opcode == 0x8f && d->mem.base == REG_RSP) {
		/* pop addresses its operand with rsp as it is afterwards. */
		emit4(e, 0x48, 0x8d, 0x40 | (u8)(a << 3) | a, d->opsize);
	}
	emit_load_gs(e, b, GS(arch.gs_base));
	emit_sum(e, a, a, b);
	if (d->attr & INSN_MOFFS)
		emit_moffs(e, d, a);
	else
		emit_with_reg(e, d, bytes, a);
	emit_unspill(e, a);
	emit_unspill(e, b);
	r.end = e->p;
	return r;
}

bool rewrite_can_gs(const struct insn *d)
{
	/* stos, scas and ins have no source, so the prefix means nothing. */
	return !(d->attr & INSN_ADDR32) ||
	       (d->special == SP_STRING && !(d->gpr_read & BIT(REG_RSI)));
}

/*
 * Gathers, scatters, tiles: the operand is more than one address. It stays as it is, but the base
 * has the GS base added to it.
 */
static struct rewritten rewrite_gs_base(struct emitter *e, const struct insn *d, const u8 *bytes)
{
	u8 a = scratch_reg(d, 0), mod = d->modrm & 0xc0;
	u32 tail = d->sib_off + 1u;
	struct rewritten r = {.mask = (u16)BIT(a)};

	emit_spill(e, a);
	r.begin = e->p;
	emit_load_gs(e, a, GS(arch.gs_base));
	if (d->mem.base != REG_NONE)
		emit_sum(e, a, d->mem.base, a);
	copy_head(e, d, bytes, DROP_GS | DROP_BASE);
	/* Without a base there is a disp32, which with a base is another mod. */
	emit2(e, (d->mem.base == REG_NONE ? 0x80 : mod) | (d->modrm & 0x3f), (d->sib & 0xf8) | a);
	emit_bytes(e, bytes + tail, d->len - tail);
	emit_unspill(e, a);
	r.end = e->p;
	return r;
}

/*
 * movs, cmps, lods, outs: only the source has a segment. The GS base is added to rsi, and taken off
 * again.
 */
static struct rewritten rewrite_gs_string(struct emitter *e, const struct insn *d, const u8 *bytes)
{
	u8 a = scratch_reg(d, 0);
	struct rewritten r = {.mask = (u16)BIT(a), .moved = (u16)BIT(REG_RSI)};

	emit_spill(e, a);
	emit_load_gs(e, a, GS(arch.gs_base));
	emit_sum(e, REG_RSI, REG_RSI, a);
	emit3(e, 0x48, 0xf7, 0xd0 | a); /* not a */
	r.begin = e->p;
	copy_head(e, d, bytes, DROP_GS);
	r.end = e->p;
	emit4(e, 0x48, 0x8d, 0x74, 0x06 | (u8)(a << 3)); /* lea rsi, [rsi + a + 1] */
	emit1(e, 1);
	emit_unspill(e, a);
	return r;
}

/* xlat: al = gs:[rbx + al] */
static struct rewritten rewrite_gs_xlat(struct emitter *e, const struct insn *d)
{
	u8 a = scratch_reg(d, 0), b = scratch_reg(d, (u16)BIT(a));
	struct rewritten r = {.mask = (u16)(BIT(a) | BIT(b))};

	emit_spill(e, a);
	emit_spill(e, b);
	r.begin = e->p;
	emit3(e, 0x0f, 0xb6, 0xc0 | (u8)(a << 3)); /* movzx a, al */
	if (d->attr & INSN_ADDR32)
		emit3(e, 0x8d, 0x04 | (u8)(a << 3),
		      (u8)(a << 3) | REG_RBX); /* lea a32, [rbx + a] */
	else
		emit_sum(e, a, REG_RBX, a);
	emit_load_gs(e, b, GS(arch.gs_base));
	emit3(e, 0x8a, 0x04, (u8)(b << 3) | a); /* mov al, [a + b] */
	emit_unspill(e, a);
	emit_unspill(e, b);
	r.end = e->p;
	return r;
}

/* The register that addresses memory in an instruction without a memory operand, or REG_NONE. */
static u8 address_register(const struct insn *d)
{
	if (d->special == SP_MASKMOV)
		return REG_RDI;
	if (d->special != SP_MONITOR)
		return REG_NONE;
	if (d->opcode == 0xae)
		return d->pp == 2 ? insn_rm(d) : REG_NONE; /* umonitor */
	if (d->modrm == 0xc8 || d->modrm == 0xfa || d->modrm == 0xfc)
		return REG_RAX; /* monitor, monitorx, clzero */
	return REG_NONE;
}

static struct rewritten rewrite_gs_register(struct emitter *e, const struct insn *d,
					    const u8 *bytes)
{
	u8 reg = address_register(d), a = scratch_reg(d, (u16)BIT(reg));
	struct rewritten r = {.mask = (u16)(BIT(a) | BIT(reg))};

	emit_spill(e, a);
	emit_spill(e, reg);
	r.begin = e->p;
	if (d->attr & INSN_ADDR32)
		emit3(e, 0x40 | (reg >> 3) * 5, 0x89, 0xc0 | (reg & 7) * 9); /* mov reg32, reg32 */
	emit_load_gs(e, a, GS(arch.gs_base));
	emit_sum(e, reg, reg, a);
	copy_head(e, d, bytes, DROP_GS | DROP_ADDR32);
	emit_bytes(e, bytes + d->modrm_off, d->len - d->modrm_off);
	emit_unspill(e, reg);
	emit_unspill(e, a);
	r.end = e->p;
	return r;
}

/*
 * movzx @reg32, word gs:arch.gs_selector; with @narrow mov @reg16 of the same, which keeps the
 * rest.
 */
static void emit_selector(struct emitter *e, u8 reg, bool narrow)
{
	emit1(e, PREFIX_GS);
	if (narrow)
		emit1(e, PREFIX_OPSIZE16);
	emit1(e, 0x40 | (reg >> 3) << 2);
	if (narrow)
		emit1(e, 0x8b);
	else
		emit2(e, 0x0f, 0xb7);
	emit2(e, 0x04 | (u8)((reg & 7) << 3), 0x25);
	emit_u32(e, GS(arch.gs_selector));
}

/* mov from GS, push of GS: the selector that the guest believes to be there. */
static struct rewritten rewrite_selector(struct emitter *e, const struct insn *d, const u8 *bytes,
					 u64 pc)
{
	struct rewritten r = {0};
	u8 a, b;

	if (d->special == SP_PUSH_SEG) {
		if (d->opsize == 2)
			emit1(e, PREFIX_OPSIZE16);
		emit_push_gs(e, GS(arch.gs_selector));
		return r;
	}
	if (!(d->attr & INSN_MEM)) {
		emit_selector(e, insn_rm(d), d->opsize == 2);
		return r;
	}
	a = scratch_reg(d, 0);
	b = scratch_reg(d, (u16)BIT(a));
	r.mask = (u16)(BIT(a) | BIT(b));
	emit_spill(e, a);
	emit_spill(e, b);
	r.begin = e->p;
	emit_address(e, d, bytes, pc, a);
	if (d->mem.seg == SEG_GS) {
		emit_load_gs(e, b, GS(arch.gs_base));
		emit_sum(e, a, a, b);
	}
	emit_selector(e, b, false);
	if (d->mem.seg == SEG_FS)
		emit1(e, PREFIX_FS);
	emit3(e, 0x66, 0x89, (u8)(b << 3) | a); /* mov [a], b16 */
	emit_unspill(e, a);
	emit_unspill(e, b);
	r.end = e->p;
	return r;
}

/* Instructions with a GS prefix. */
static struct rewritten rewrite_prefixed(struct emitter *e, const struct insn *d, const u8 *bytes,
					 u64 pc)
{
	switch (d->special) {
	case SP_GATHER:
	case SP_TILE:
		if (d->attr & INSN_MEM)
			return rewrite_gs_base(e, d, bytes);
		break;
	case SP_XLAT: return rewrite_gs_xlat(e, d);
	case SP_STRING:
		if (d->gpr_read & BIT(REG_RSI))
			return rewrite_gs_string(e, d, bytes);
		break;
	default:
		if (address_register(d) != REG_NONE)
			return rewrite_gs_register(e, d, bytes);
		if (d->attr & (INSN_MEM | INSN_MOFFS) && !(d->attr & INSN_NOADDR))
			return rewrite_gs(e, d, bytes, pc);
	}
	emit_insn(e, bytes, d->len);
	return (struct rewritten){0};
}

/*
 * rdgsbase and wrgsbase work on the guest's GS base, which is in the thread. wrgsbase of 64 bits is
 * done in C (emulate.c), because it faults if the base is not canonical.
 */
static struct rewritten rewrite_gsbase(struct emitter *e, const struct insn *d)
{
	u8 reg = insn_rm(d), copy;
	struct rewritten r = {0};

	if (d->special == SP_RDGSBASE) {
		if (d->opsize == 8) {
			emit_load_gs(e, reg, GS(arch.gs_base));
		} else {
			emit1(e, PREFIX_GS);
			if (reg & 8)
				emit1(e, 0x44);
			emit3(e, 0x8b, 0x04 | (u8)((reg & 7) << 3), 0x25);
			emit_u32(e, GS(arch.gs_base));
		}
		return r;
	}
	copy = scratch_reg(d, (u16)BIT(reg));
	emit_spill(e, copy);
	r.mask = (u16)BIT(copy);
	r.begin = e->p;
	/* mov copy32, reg32 */
	emit3(e, 0x40 | (reg >> 3) << 2, 0x89, 0xc0 | (u8)((reg & 7) << 3) | copy);
	emit_store_gs(e, GS(arch.gs_base), copy);
	emit_unspill(e, copy);
	r.end = e->p;
	return r;
}

struct rewritten rewrite_insn(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	if (d->special == SP_RDGSBASE || d->special == SP_WRGSBASE)
		return rewrite_gsbase(e, d);
	if ((d->special == SP_MOV_FROM_SEG && (insn_reg_field(d) & 7) == 5) ||
	    (d->special == SP_PUSH_SEG && d->opcode == 0xa8))
		return rewrite_selector(e, d, bytes, pc);
	if (d->mem.seg == SEG_GS && !(d->attr & INSN_RIPREL && d->attr & INSN_NOADDR))
		return rewrite_prefixed(e, d, bytes, pc);
	if (d->attr & INSN_RIPREL)
		return rewrite_rip(e, d, bytes, pc);
	emit_insn(e, bytes, d->len);
	return (struct rewritten){0};
}

void rewrite_load_target(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	u64 target;
	u32 tail;

	if (!(d->attr & INSN_MEM)) {
		if (insn_rm(d) != REG_TARGET)
			emit_mov_reg(e, REG_TARGET, insn_rm(d));
		return;
	}
	if (d->mem.seg == SEG_GS) {
		emit_address(e, d, bytes, pc, REG_TARGET);
		emit_load_gs(e, REG_RCX, GS(arch.gs_base));
		emit4(e, 0x4d, 0x8b, 0x1c, 0x0b); /* mov r11, [r11 + rcx] */
		return;
	}
	if (d->mem.seg == SEG_FS)
		emit1(e, PREFIX_FS);
	if (d->attr & INSN_RIPREL) {
		target = rip_address(d, pc);
		if (emit_reaches(e, target)) {
			emit3(e, 0x4c, 0x8b, 0x1d);
			emit_rel(e, target, 0);
		} else if (fits_s32(target)) {
			emit4(e, 0x4c, 0x8b, 0x1c, 0x25);
			emit_u32(e, (u32)target);
		} else {
			if (d->mem.seg == SEG_FS)
				e->p--;
			emit_mov_imm(e, REG_TARGET, target);
			if (d->mem.seg == SEG_FS)
				emit1(e, PREFIX_FS);
			emit3(e, 0x4d, 0x8b, 0x1b); /* mov r11, [r11] */
		}
		return;
	}
	if (d->attr & INSN_ADDR32)
		emit1(e, PREFIX_ADDR32);
	tail = tail_offset(d);
	emit3(e, 0x4c | (d->rex & 3), 0x8b, (d->modrm & 0xc7) | (REG_TARGET & 7) << 3);
	emit_bytes(e, bytes + d->modrm_off + 1, tail - d->modrm_off - 1u);
}
