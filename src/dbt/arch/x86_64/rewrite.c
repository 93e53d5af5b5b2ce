/* Instructions that do not branch: see rewrite-priv.h. */
#include "dbt/arch/x86_64/rewrite-priv.h"

#define REG_LENDABLE_LOW \
	(BIT(REG_RAX) | BIT(REG_RCX) | BIT(REG_RDX) | BIT(REG_RBX) | BIT(REG_RSI) | BIT(REG_RDI))

/* A register that the instruction leaves alone and that encodes as plain [reg] without REX.B. */
static u8 lend(const struct insn *d, u16 besides)
{
	u16 free = (u16)(REG_LENDABLE_LOW & ~(d->gpr_read | d->gpr_written | besides));

	CHECK(free);
	return (u8)__builtin_ctz(free);
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

/*
 * Copies everything up to the modrm byte; without the GS prefix if @drop_gs. @plain: the operand's
 * address will need neither REX.B nor REX.X, so they are cleared.
 */
static void copy_head(struct emit *e, const struct insn *d, const u8 *bytes, bool drop_gs,
		      bool plain)
{
	u32 fixed = d->rex_off != INSN_ABSENT ? d->rex_off : d->opcode_off;

	for (u32 i = 0; i < d->modrm_off; i++) {
		u8 b = bytes[i];

		/* Legacy prefixes come before REX or VEX, if there is one, else before the opcode. */
		if (drop_gs && b == 0x65 && i < fixed)
			continue;
		if (plain && d->rex_off != INSN_ABSENT) {
			bool second = i == d->rex_off + 1u;

			if (d->enc == ENC_LEGACY && i == d->rex_off)
				b &= (u8)~3;
			else if (second && d->enc != ENC_LEGACY && bytes[d->rex_off] != 0xc5)
				b |= 0x60; /* inverted X and B; the short VEX has none */
		}
		emit1(e, b);
	}
}

/* The instruction with [reg] in place of its memory operand. */
static void emit_with_reg(struct emit *e, const struct insn *d, const u8 *bytes, u8 reg)
{
	u32 tail = tail_offset(d);

	copy_head(e, d, bytes, true, true);
	emit1(e, (d->modrm & 0x38) | reg);
	emit_bytes(e, bytes + tail, d->len - tail);
}

static bool reachable(const struct emit *e, u64 target)
{
	/* From anywhere within the longest instruction. */
	return fits_s32(target - (u64)e->p) && fits_s32(target - ((u64)e->p + 2 * INSN_MAX));
}

static u64 rip_address(const struct insn *d, u64 pc)
{
	u64 a = insn_rip_address(d, pc);

	return d->attr & INSN_ADDR32 ? (u32)a : a;
}

static struct rewritten rewrite_lea(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	u64 target = rip_address(d, pc);
	u8 reg = insn_reg_field(d);

	if (d->opsize == 2) {
		emit1(e, 0x66);
		if (reg & 8)
			emit1(e, 0x41);
		emit1(e, 0xb8 | (reg & 7));
		emit2(e, (u8)target, (u8)(target >> 8));
	} else if (d->opsize == 4 || target <= 0xffffffffu) {
		emit_mov_imm(e, reg, (u32)target);
	} else if (reachable(e, target) && !(d->attr & INSN_ADDR32)) {
		emit_bytes(e, bytes, d->disp_off);
		emit_rel(e, target, 0);
	} else {
		emit_mov_imm(e, reg, target);
	}
	return (struct rewritten){0};
}

static struct rewritten rewrite_rip(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	u64 target = rip_address(d, pc);
	u32 tail = tail_offset(d);
	struct rewritten r = {0};
	u8 reg;

	if (d->enc == ENC_LEGACY && d->map == MAP_1 && d->opcode == 0x8d)
		return rewrite_lea(e, d, bytes, pc);
	if (reachable(e, target) || d->attr & INSN_ADDR32) {
		emit_bytes(e, bytes, d->disp_off);
		emit_rel(e, target, d->len - tail);
		emit_bytes(e, bytes + tail, d->len - tail);
		return r;
	}
	if (fits_s32(target)) {
		copy_head(e, d, bytes, false, true);
		emit2(e, (d->modrm & 0x38) | 4, 0x25);
		emit_u32(e, (u32)target);
		emit_bytes(e, bytes + tail, d->len - tail);
		return r;
	}
	reg = lend(d, 0);
	emit_spill(e, reg);
	r.mask = (u16)BIT(reg);
	r.begin = e->p;
	emit_mov_imm(e, reg, target);
	emit_with_reg(e, d, bytes, reg);
	emit_unspill(e, reg);
	r.end = e->p;
	return r;
}

/* lea @reg, the operand's address without its segment. */
static void emit_address(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc, u8 reg)
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
		emit1(e, 0x67);
	if (d->enc == ENC_EVEX && d->disp_size == 1) {
		/* Its displacement is scaled; lea's is not. */
		u8 rm = d->modrm & 7;

		emit3(e, 0x48 | (d->rex & 3), 0x8d, 0x80 | rm);
		if (rm == 4)
			emit1(e, d->sib);
		emit_u32(e, (u32)d->mem.disp);
		return;
	}
	emit3(e, 0x48 | (d->rex & 3), 0x8d, (d->modrm & 0xc7) | (u8)(reg << 3));
	emit_bytes(e, bytes + d->modrm_off + 1, tail - d->modrm_off - 1u);
}

/* mov al/eax/rax, gs:[constant] and back: opcodes a0 .. a3 have no form with a register. */
static void emit_moffs(struct emit *e, const struct insn *d, u8 reg)
{
	static const u8 as[4] = {0x8a, 0x8b, 0x88, 0x89};

	if (d->attr & INSN_OPSIZE16)
		emit1(e, 0x66);
	if (d->rex & 8)
		emit1(e, 0x48);
	emit2(e, as[d->opcode & 3], reg);
}

static struct rewritten rewrite_gs(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	u8 a = lend(d, 0), b = lend(d, (u16)BIT(a));
	struct rewritten r = {.mask = (u16)(BIT(a) | BIT(b))};

	emit_spill(e, a);
	emit_spill(e, b);
	r.begin = e->p;
	emit_address(e, d, bytes, pc, a);
	emit_load_gs(e, b, GS(guest_gs));
	emit4(e, 0x48, 0x8d, 0x04 | (u8)(a << 3), (u8)(b << 3) | a); /* lea a, [a + b] */
	if (d->attr & INSN_MOFFS)
		emit_moffs(e, d, a);
	else
		emit_with_reg(e, d, bytes, a);
	emit_unspill(e, a);
	emit_unspill(e, b);
	r.end = e->p;
	return r;
}

/* rdgsbase and wrgsbase are about the guest's GS base, which is in the thread block. */
static struct rewritten rewrite_gsbase(struct emit *e, const struct insn *d)
{
	u8 reg = insn_rm(d), lent;
	struct rewritten r = {0};

	if (d->special == SP_RDGSBASE) {
		if (d->opsize == 8) {
			emit_load_gs(e, reg, GS(guest_gs));
		} else {
			emit1(e, 0x65);
			if (reg & 8)
				emit1(e, 0x44);
			emit3(e, 0x8b, 0x04 | (u8)((reg & 7) << 3), 0x25);
			emit_u32(e, GS(guest_gs));
		}
		return r;
	}
	if (d->opsize == 8) {
		emit_store_gs(e, GS(guest_gs), reg);
		return r;
	}
	lent = lend(d, (u16)BIT(reg));
	emit_spill(e, lent);
	r.mask = (u16)BIT(lent);
	r.begin = e->p;
	/* mov lent32, reg32 */
	emit3(e, 0x40 | (reg >> 3) << 2, 0x89, 0xc0 | (u8)((reg & 7) << 3) | lent);
	emit_store_gs(e, GS(guest_gs), lent);
	emit_unspill(e, lent);
	r.end = e->p;
	return r;
}

struct rewritten rewrite_insn(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	if (d->special == SP_RDGSBASE || d->special == SP_WRGSBASE)
		return rewrite_gsbase(e, d);
	if (d->mem.seg == SEG_GS && d->attr & (INSN_MEM | INSN_MOFFS) && !(d->attr & INSN_NOADDR))
		return rewrite_gs(e, d, bytes, pc);
	if (d->attr & INSN_RIPREL)
		return rewrite_rip(e, d, bytes, pc);
	emit_insn(e, bytes, d->len);
	return (struct rewritten){0};
}

void rewrite_load_target(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc)
{
	u64 target;
	u32 tail;

	if (!(d->attr & INSN_MEM)) {
		if (insn_rm(d) != REG_RAX)
			emit_mov_reg(e, REG_RAX, insn_rm(d));
		return;
	}
	if (d->mem.seg == SEG_GS) {
		emit_address(e, d, bytes, pc, REG_RAX);
		emit_load_gs(e, REG_RCX, GS(guest_gs));
		emit4(e, 0x48, 0x8b, 0x04, 0x08); /* mov rax, [rax + rcx] */
		return;
	}
	if (d->mem.seg == SEG_FS)
		emit1(e, 0x64);
	if (d->attr & INSN_RIPREL) {
		target = rip_address(d, pc);
		if (reachable(e, target)) {
			emit3(e, 0x48, 0x8b, 0x05);
			emit_rel(e, target, 0);
		} else if (fits_s32(target)) {
			emit4(e, 0x48, 0x8b, 0x04, 0x25);
			emit_u32(e, (u32)target);
		} else if (d->mem.seg == SEG_FS) {
			e->p--;
			emit_mov_imm(e, REG_RAX, target);
			emit4(e, 0x64, 0x48, 0x8b, 0x00);
		} else {
			emit_mov_imm(e, REG_RAX, target);
			emit3(e, 0x48, 0x8b, 0x00);
		}
		return;
	}
	if (d->attr & INSN_ADDR32)
		emit1(e, 0x67);
	tail = tail_offset(d);
	emit3(e, 0x48 | (d->rex & 3), 0x8b, d->modrm & 0xc7);
	emit_bytes(e, bytes + d->modrm_off + 1, tail - d->modrm_off - 1u);
}
