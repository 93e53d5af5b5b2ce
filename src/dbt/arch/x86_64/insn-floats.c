/*
 * Which instructions calculate: those that Intel's tables name at FP_ARITH_INST_RETIRED. Opcodes:
 * Intel SDM vol. 2. Masked ones count whole, as on Intel's CPUs.
 */
#include "dbt/arch/x86_64/insn-floats.h"

#define EVEX_B 0x10 /* in evex_flags: rounding, of registers; else a broadcast */

static bool within(u8 opcode, u8 first, u8 last)
{
	return opcode >= first && opcode <= last;
}

struct calculation {
	enum floats_op op;
	enum floats_type type;
	bool scalar;
};

static enum floats_op op_0f(u8 opcode)
{
	switch (opcode) {
	case 0x58:
	case 0x5c:
	case 0x7c: /* hadd, hsub, addsub */
	case 0x7d:
	case 0xd0: return FLOATS_ADD;
	case 0x59: return FLOATS_MUL;
	case 0x51:
	case 0x5e: return FLOATS_DIV;
	case 0x52:
	case 0x53:
	case 0x5d:
	case 0x5f: return FLOATS_OTHER;
	default: return FLOATS_NONE;
	}
}

/* The mandatory prefix says the type: none ps, 66 pd, f3 ss, f2 sd. */
static struct calculation work_0f(const struct insn *insn)
{
	bool across = insn->opcode == 0x7c || insn->opcode == 0x7d || insn->opcode == 0xd0;
	struct calculation w = {.op = op_0f(insn->opcode),
				.type = insn->pp & 1 ? FLOATS_DOUBLE : FLOATS_SINGLE,
				.scalar = insn->pp >= 2};

	if (!across)
		return w;
	/* Without one or with f3 they are others. */
	if (insn->pp != 1 && insn->pp != 3)
		return (struct calculation){0};
	w.scalar = false;
	w.type = insn->pp == 1 ? FLOATS_DOUBLE : FLOATS_SINGLE;
	return w;
}

static struct calculation fused(const struct insn *insn, enum floats_type type)
{
	u8 low = insn->opcode & 0xf;

	return (struct calculation){
		.op = FLOATS_FUSED, .type = type, .scalar = low >= 9 && low & 1};
}

static bool is_fused(u8 opcode)
{
	return within(opcode, 0x96, 0x9f) || within(opcode, 0xa6, 0xaf) ||
	       within(opcode, 0xb6, 0xbf);
}

static struct calculation work_0f38(const struct insn *insn)
{
	enum floats_type type = insn->rex & REX_W ? FLOATS_DOUBLE : FLOATS_SINGLE;

	if (insn->enc == ENC_LEGACY)
		return (struct calculation){0};
	if (insn->pp == 1 && is_fused(insn->opcode))
		return fused(insn, type);
	if (insn->enc != ENC_EVEX)
		return (struct calculation){0};
	/* rcp14, rsqrt14 */
	if (insn->pp == 1 && within(insn->opcode, 0x4c, 0x4f))
		return (struct calculation){
			.op = FLOATS_OTHER, .type = type, .scalar = insn->opcode & 1};
	if (insn->pp == 2 && insn->opcode == 0x52)
		return (struct calculation){.op = FLOATS_FUSED, .type = FLOATS_BF16};
	return (struct calculation){0};
}

static struct calculation work_of(const struct insn *insn)
{
	struct calculation w = {0};

	switch (insn->map) {
	case MAP_0F: return work_0f(insn);
	case MAP_0F38: return work_0f38(insn);
	case MAP_0F3A:
		if (insn->enc != ENC_EVEX && insn->pp == 1 && within(insn->opcode, 0x40, 0x41))
			w = (struct calculation){.op = FLOATS_DOT,
						 .type = insn->opcode & 1 ? FLOATS_DOUBLE
									  : FLOATS_SINGLE};
		return w;
	case MAP_5:
		if (within(insn->opcode, 0x51, 0x5f))
			w = (struct calculation){.op = op_0f(insn->opcode),
						 .type = FLOATS_HALF,
						 .scalar = insn->pp >= 2};
		return w;
	case MAP_6: return is_fused(insn->opcode) ? fused(insn, FLOATS_HALF) : w;
	default: return w;
	}
}

static enum floats_width width_of(const struct insn *insn, const struct calculation *w)
{
	if (w->scalar || w->op == FLOATS_NONE)
		return FLOATS_SCALAR;
	if (insn->enc == ENC_LEGACY)
		return FLOATS_128;
	/* The length says how to round. */
	if (insn->evex_flags & EVEX_B && !(insn->attr & INSN_MEM))
		return FLOATS_512;
	return (enum floats_width)(FLOATS_128 + (insn->vl < 3 ? insn->vl : 0));
}

static bool is_mmx(const struct insn *insn)
{
	u8 op = insn->opcode;

	if (insn->map == MAP_3DNOW)
		return true;
	if (insn->enc != ENC_LEGACY || insn->pp)
		return false;
	switch (insn->map) {
	case MAP_0F: return within(op, 0x60, 0x7f) || op == 0xc4 || op == 0xc5 || op >= 0xd1;
	case MAP_0F38: return op < 0x40;
	case MAP_0F3A: return op == 0x0f;
	default: return false;
	}
}

static bool is_tile(const struct insn *insn)
{
	u8 op = insn->opcode;

	return insn->special == SP_TILE ||
	       (insn->enc == ENC_VEX && insn->map == MAP_0F38 &&
		(op == 0x49 || op == 0x4b || op == 0x5c || op == 0x5e || op == 0x6c));
}

static enum floats_set set_of(const struct insn *insn)
{
	if (!(insn->attr & INSN_VECTOR) || insn->special == SP_XSAVE || is_tile(insn))
		return FLOATS_NO_SET;
	if (insn->map == MAP_1)
		return FLOATS_X87;
	return is_mmx(insn) ? FLOATS_MMX : FLOATS_SSE;
}

u16 insn_floats(const struct insn *insn)
{
	enum floats_set set = set_of(insn);
	struct calculation w = {0};

	if (set == FLOATS_SSE)
		w = work_of(insn);
	if (w.op == FLOATS_NONE)
		w = (struct calculation){0};
	return floats_work(w.op, w.type, width_of(insn, &w), set);
}
