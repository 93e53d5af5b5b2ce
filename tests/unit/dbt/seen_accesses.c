#include "unit/dbt/seen_accesses.h"

#include <Zydis/Zydis.h>
#include <asm/prctl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit/dbt/stepper.h"

struct seen_accesses seen;

static u64 fs_base(void)
{
	u64 base = 0;

	syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
	return base;
}

static u64 reg_value(const struct dbt_regs *r, ZydisRegister reg, u64 next)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	u32 bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
	u64 v;

	if (reg == ZYDIS_REGISTER_NONE)
		return 0;
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		return next;
	v = r->gpr[ZydisRegisterGetId(whole)];
	return bits == 64 ? v : v & ((1ull << bits) - 1);
}

static void want_once(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *op);

static void want(u64 pc, u64 addr, u32 size, char kind)
{
	if (seen.n < ARRAY_SIZE(seen.at))
		seen.at[seen.n++] = (struct noted){pc, addr, size, kind};
}

/* The word of a bit test, which Zydis does not look for. */
static bool want_bit(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		     const ZydisDecodedOperand *op)
{
	u64 a, size = op[0].size / 8;
	s64 bit, words;

	if (op[0].type != ZYDIS_OPERAND_TYPE_MEMORY || op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	a = (u64)op[0].mem.disp.value + reg_value(r, op[0].mem.base, pc + z->length) +
	    reg_value(r, op[0].mem.index, 0) * (op[0].mem.scale ? op[0].mem.scale : 1) +
	    (op[0].mem.segment == ZYDIS_REGISTER_FS ? seen.fs_base : 0);
	bit = (s64)(reg_value(r, op[1].reg.value, 0) << (64 - op[0].size)) >> (64 - op[0].size);
	words = bit / op[0].size - (bit % op[0].size < 0);
	a += (u64)words * size;
	want(pc, a, (u32)size, 'l');
	if (op[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		want(pc, a, (u32)size, 's');
	return true;
}

bool seen_initial_state;

/*
 * What the SDM says (Vol. 1, 13.6 to 13.10), of x87, SSE and AVX, the latter two in use, or all in
 * their initial state.
 */
static void want_xsave(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z)
{
	u64 area = r->gpr[DBT_RDI] + (u64)z->raw.disp.value, asked = r->gpr[DBT_RAX];
	bool loads = z->mnemonic == ZYDIS_MNEMONIC_XRSTOR || z->mnemonic == ZYDIS_MNEMONIC_XRSTOR64;
	bool compact = z->mnemonic == ZYDIS_MNEMONIC_XSAVEC ||
		       z->mnemonic == ZYDIS_MNEMONIC_XSAVEC64;
	char kind = loads ? 'l' : 's';

	asked = seen_initial_state ? 0 : asked;
	if (loads)
		want(pc, area + 512, 64, 'l');
	else if (!compact)
		want(pc, area + 512, 8, 'l');
	if (asked & 3)
		want(pc, area, asked & 2 ? 416 : 160, kind);
	/* AVX is the first of the extended region in both forms. */
	if (asked & 4)
		want(pc, area + 576, 256, kind);
	if (!loads)
		want(pc, area + 512, compact ? 16 : 8, 's');
}

/* Of tiles 0 and 1 in the order of the configuration, as snip_tiles has them. */
const u8 seen_tile_rows[2] = {5, 3};
const u16 seen_tile_bytes[2] = {48, 16};

static void want_tile(const struct dbt_regs *r, u64 pc, const ZydisDecodedOperand *op)
{
	bool stores = op[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
	const ZydisDecodedOperandMem *m = &op[stores ? 0 : 1].mem;
	u32 tile = (u32)ZydisRegisterGetId(op[stores ? 1 : 0].reg.value);
	u64 a = (u64)m->disp.value + reg_value(r, m->base, 0);

	for (u32 row = 0; row < seen_tile_rows[tile]; row++)
		want(pc, a + row * reg_value(r, m->index, 0) * m->scale, seen_tile_bytes[tile],
		     stores ? 's' : 'l');
}

/* What the SDM says of instructions of which C code tells, each of several words. */
static bool want_words(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		       const ZydisDecodedOperand *op)
{
	static const u8 of_iret[] = {16, 8, 0, 24, 32};
	u64 sp = r->gpr[DBT_RSP], a;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		if (z->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR)
			return false;
		want(pc, sp + 8, 8, 'l');
		want(pc, sp, 8, 'l');
		return true;
	case ZYDIS_MNEMONIC_IRETQ:
		for (u32 i = 0; i < ARRAY_SIZE(of_iret); i++)
			want(pc, sp + of_iret[i], 8, 'l');
		return true;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC: return want_bit(r, pc, z, op);
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64: want_xsave(r, pc, z); return true;
	case ZYDIS_MNEMONIC_TILELOADD:
	case ZYDIS_MNEMONIC_TILELOADDT1:
	case ZYDIS_MNEMONIC_TILESTORED: want_tile(r, pc, op); return true;
	case ZYDIS_MNEMONIC_LGS:
		a = r->gpr[DBT_RDI] + (u64)op[1].mem.disp.value;
		want(pc, a, 4, 'l');
		want(pc, a + 4, 2, 'l');
		return true;
	default: return false;
	}
}

static bool is_at_once(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B: return false;
	case ZYDIS_MNEMONIC_XCHG:
		return op[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
		       op[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
	default: return z->attributes & ZYDIS_ATTRIB_HAS_LOCK;
	}
}

/* The accesses of the instruction at @pc, which is executed with @r and leaves @after. */
static void want_step(const struct dbt_regs *r, u64 pc, const struct dbt_regs *after)
{
	static ZydisDecoder decoder;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (!decoder.machine_mode)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, (const void *)pc, 15, &z, op)))
		abort();
	if (z.attributes &
	    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) {
		u64 times = r->gpr[DBT_RCX] - after->gpr[DBT_RCX];
		struct dbt_regs now = *r;

		for (; times; times--) {
			u64 step = r->rflags & 0x400 ? -(u64)(op[0].size / 8) : op[0].size / 8u;

			want_once(&now, pc, &z, op);
			now.gpr[DBT_RSI] += step;
			now.gpr[DBT_RDI] += step;
		}
		return;
	}
	seen.twice += is_at_once(&z, op);
	if (!want_words(r, pc, &z, op))
		want_once(r, pc, &z, op);
}

static void want_once(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *op)
{
	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 i = 0; i < z->operand_count; i++) {
			const ZydisDecodedOperandMem *m = &op[i].mem;
			u32 wants = pass ? ZYDIS_OPERAND_ACTION_MASK_WRITE
					 : ZYDIS_OPERAND_ACTION_MASK_READ;
			u32 size = op[i].size / 8;
			u64 a;

			if (op[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
			    m->type != ZYDIS_MEMOP_TYPE_MEM || !(op[i].actions & wants))
				continue;
			a = (u64)m->disp.value + reg_value(r, m->base, pc + z->length) +
			    reg_value(r, m->index, 0) * (m->scale ? m->scale : 1);
			/* push, call; and pop, whose operand is addressed with the new rsp. */
			if (op[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
			    m->base == ZYDIS_REGISTER_RSP && pass)
				a -= size;
			if (z->mnemonic == ZYDIS_MNEMONIC_POP && m->base == ZYDIS_REGISTER_RSP &&
			    op[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
				a += 8;
			/* Zydis has nothing of al. */
			if (z->mnemonic == ZYDIS_MNEMONIC_XLAT)
				a += (u8)r->gpr[DBT_RAX];
			if (z->address_width == 32)
				a = (u32)a;
			if (m->segment == ZYDIS_REGISTER_FS)
				a += seen.fs_base;
			if (m->segment == ZYDIS_REGISTER_GS)
				a += seen.gs_base;
			want(pc, a, size, pass ? 's' : 'l');
		}
	}
}

void see_program(struct guest *g, const struct program *p)
{
	struct native_step *steps;
	struct dbt_regs begin;
	u64 n, gs_base = 0;

	seen.fs_base = fs_base();
	seen.gs_base = g->t->arch.gs_base;
	native_begin(g, p->fn, p->abc);
	begin = g->t->regs;
	/* The runtime's. */
	syscall(SYS_arch_prctl, ARCH_GET_GS, &gs_base);
	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	syscall(SYS_arch_prctl, ARCH_SET_GS, gs_base);
	seen.n = seen.twice = 0;
	for (u64 i = 0; i < n; i++)
		want_step(i ? &steps[i - 1].regs : &begin, steps[i].pc, &steps[i].regs);
	free(steps);
}

void see_no_stores_back(void)
{
	u64 left = 0;

	for (u64 i = 0; i < seen.n; i++) {
		const struct noted *a = &seen.at[i];

		if (i && a->kind == 's' && a[-1].kind == 'l' && a->ip == a[-1].ip &&
		    a->addr == a[-1].addr && a->size == a[-1].size)
			continue;
		seen.at[left++] = *a;
	}
	seen.n = left;
}
