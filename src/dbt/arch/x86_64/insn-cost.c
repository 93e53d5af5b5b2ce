/*
 * Classes of instructions. Opcodes: Intel SDM vol. 2, AMD APM vols. 3 and 4; which of them cost
 * alike: uops.info.
 */
#include "dbt/arch/x86_64/insn-cost.h"

static bool within(u8 opcode, u8 first, u8 last)
{
	return opcode >= first && opcode <= last;
}

/* modrm.reg as an opcode's extension. */
static u8 extension(const struct insn *insn)
{
	return insn->modrm >> 3 & 7;
}

/* A move: what it touches says what it is. */
static enum cost_class move(const struct insn *insn, enum cost_class between_registers)
{
	if (insn->mem_write || insn->stack_write)
		return COST_STORE;
	return insn->mem_read || insn->stack_read ? COST_LOAD : between_registers;
}

static enum cost_class control(const struct insn *insn)
{
	switch (insn->cf) {
	case CF_JMP:
	case CF_JCC:
	case CF_LOOP:
	case CF_JMP_IND: return COST_BRANCH;
	case CF_CALL:
	case CF_CALL_IND:
	case CF_RET: return COST_CALL;
	default: return COST_SYSTEM;
	}
}

static enum cost_class special(const struct insn *insn)
{
	switch (insn->special) {
	case SP_STRING: return COST_STRING;
	case SP_GATHER: return COST_GATHER;
	case SP_CMPXCHG16B: return COST_ATOMIC;
	case SP_ENDBR: return COST_NOP;
	case SP_XLAT: return COST_LOAD;
	case SP_MASKMOV:
	case SP_DIR64: return COST_STORE;
	case SP_TILE: return COST_GATHER;
	default: return COST_SYSTEM;
	}
}

static enum cost_class x87(const struct insn *insn)
{
	/* fdiv, fdivr, with memory and between registers, and fsqrt. */
	if ((insn->opcode == 0xd8 || insn->opcode == 0xdc || insn->opcode == 0xda ||
	     insn->opcode == 0xde) &&
	    extension(insn) >= 6)
		return COST_FP_DIV;
	return insn->opcode == 0xd9 && insn->modrm == 0xfa ? COST_FP_DIV : COST_X87;
}

static enum cost_class vector_0f(const struct insn *insn)
{
	u8 op = insn->opcode;

	if (within(op, 0x10, 0x13) || op == 0x16 || op == 0x17 || op == 0x28 || op == 0x29 ||
	    op == 0x2b || op == 0x6f || op == 0x7f || op == 0xd6 || op == 0xe7 || op == 0xf0)
		return move(insn, COST_VEC);
	if (op == 0x6e || op == 0x7e)
		return move(insn, COST_CONVERT);
	if (op == 0x51 || op == 0x5e)
		return COST_FP_DIV;
	if (op == 0x52 || op == 0x53 || op == 0x59 || op == 0xd5 || op == 0xe4 || op == 0xe5 ||
	    within(op, 0xf4, 0xf6))
		return COST_FP_MUL;
	if (op == 0x58 || op == 0x5c || op == 0x5d || op == 0x5f || op == 0x2e || op == 0x2f ||
	    op == 0xc2 || op == 0x7c || op == 0x7d || op == 0xd0)
		return COST_FP_ADD;
	if (op == 0x5a || op == 0x5b || op == 0x2a || op == 0x2c || op == 0x2d || op == 0xe6 ||
	    within(op, 0x78, 0x7b) || op == 0x50 || op == 0xd7 || op == 0xc4 || op == 0xc5)
		return COST_CONVERT;
	if (op == 0x14 || op == 0x15 || within(op, 0x60, 0x63) || within(op, 0x67, 0x6d) ||
	    op == 0x70 || op == 0xc6)
		return COST_SHUFFLE;
	if (op == 0xae)
		return COST_SYSTEM; /* ldmxcsr, stmxcsr */
	return COST_VEC;
}

static enum cost_class vector_0f38(const struct insn *insn)
{
	u8 op = insn->opcode, low = op & 0xf;

	if (within(op, 0x96, 0xbf) && low >= 6)
		return COST_FP_MUL; /* fused multiply-add */
	if (within(op, 0xc8, 0xcd) || within(op, 0xdb, 0xdf) || op == 0xcf)
		return COST_CRYPTO;
	if (op == 0x04 || op == 0x0b || op == 0x28 || op == 0x40 || within(op, 0x50, 0x53))
		return COST_FP_MUL;
	if (within(op, 0x18, 0x1a) || within(op, 0x58, 0x5b) || op == 0x78 || op == 0x79)
		return insn->mem_read ? COST_LOAD : COST_SHUFFLE; /* broadcasts */
	if (op == 0x00 || op == 0x16 || op == 0x36 || within(op, 0x20, 0x25) ||
	    within(op, 0x30, 0x35) || within(op, 0x75, 0x77) || op == 0x8d)
		return COST_SHUFFLE;
	if (op == 0x2a || within(op, 0x2c, 0x2f) || op == 0x8c || op == 0x8e)
		return move(insn, COST_VEC);
	return COST_VEC;
}

static enum cost_class vector_0f3a(const struct insn *insn)
{
	u8 op = insn->opcode;

	if (op == 0x44 || op == 0xcc || op == 0xdf || op == 0xce || op == 0xcf)
		return COST_CRYPTO;
	if (op <= 0x01 || within(op, 0x04, 0x06) || op == 0x0f || within(op, 0x18, 0x1b) ||
	    within(op, 0x38, 0x3b) || op == 0x43 || op == 0x46)
		return COST_SHUFFLE;
	if (within(op, 0x14, 0x17) || within(op, 0x20, 0x22))
		return COST_CONVERT;
	if (within(op, 0x08, 0x0b) || op == 0x40 || op == 0x41)
		return COST_FP_ADD;
	return COST_VEC;
}

static enum cost_class vector(const struct insn *insn)
{
	switch (insn->map) {
	case MAP_1: return x87(insn);
	case MAP_0F: return vector_0f(insn);
	case MAP_0F38: return vector_0f38(insn);
	case MAP_0F3A: return vector_0f3a(insn);
	case MAP_5: return vector_0f(insn); /* FP16 has the opcodes of 0f */
	case MAP_6: return COST_FP_MUL;
	default: return COST_VEC;
	}
}

static enum cost_class general_1(const struct insn *insn)
{
	u8 op = insn->opcode;

	if (within(op, 0x88, 0x8b) || within(op, 0xa0, 0xa3) || op == 0xc6 || op == 0xc7 ||
	    op == 0x63)
		/* Renaming makes those between whole registers. */
		return move(insn,
			    (op == 0x89 || op == 0x8b) && insn->opsize >= 4 ? COST_NOP : COST_INT);
	if (op == 0x8d)
		return insn->mem.base != REG_NONE && insn->mem.index != REG_NONE && insn->mem.disp
			       ? COST_LEA
			       : COST_INT;
	if (op == 0x90)
		return insn->attr & INSN_REPE ? COST_FENCE /* pause */
		       : insn->rex & REX_B    ? COST_INT
					      : COST_NOP;
	if ((op == 0x86 || op == 0x87) && insn->attr & INSN_MEM)
		return COST_ATOMIC;
	if (op == 0xc0 || op == 0xc1 || within(op, 0xd0, 0xd3))
		return COST_SHIFT;
	if (op == 0xf6 || op == 0xf7)
		return extension(insn) >= 6   ? COST_INT_DIV
		       : extension(insn) >= 4 ? COST_INT_MUL
					      : COST_INT;
	if (op == 0x69 || op == 0x6b)
		return COST_INT_MUL;
	if (within(op, 0x50, 0x5f) || op == 0x68 || op == 0x6a || op == 0x8f || op == 0xc9 ||
	    (op == 0xff && extension(insn) == 6))
		return move(insn, COST_INT); /* push, pop, leave */
	return COST_INT;
}

static enum cost_class general_0f(const struct insn *insn)
{
	u8 op = insn->opcode;

	if (op == 0xaf)
		return COST_INT_MUL;
	if (op == 0xa3 || op == 0xab || op == 0xb3 || op == 0xbb || op == 0xba || op == 0xbc ||
	    op == 0xbd || op == 0xb8 || op == 0xa4 || op == 0xa5 || op == 0xac || op == 0xad)
		return COST_SHIFT;
	if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xc3)
		return move(insn, COST_INT);
	if (op == 0xa0 || op == 0xa1 || op == 0xa8 || op == 0xa9)
		return COST_SYSTEM; /* push, pop of fs and gs */
	if (op == 0xae)
		/* lfence, mfence, sfence; else clflush and its like */
		return extension(insn) >= 5 && !(insn->attr & INSN_MEM) ? COST_FENCE : COST_SYSTEM;
	if (insn->attr & INSN_PREFETCH)
		return COST_LOAD;
	if (within(op, 0x18, 0x1f))
		return COST_NOP;
	return COST_INT;
}

static enum cost_class general_0f38(const struct insn *insn)
{
	switch (insn->opcode) {
	case 0xf0:
	case 0xf1: return insn->attr & INSN_REPNE ? COST_CRYPTO : move(insn, COST_INT);
	case 0xf5: return insn->pp ? COST_INT_MUL : COST_INT;                /* pdep, pext; bzhi */
	case 0xf6: return insn->enc == ENC_LEGACY ? COST_INT : COST_INT_MUL; /* mulx */
	case 0xf7: return COST_SHIFT;
	case 0xf9: return COST_STORE;
	}
	return COST_INT;
}

enum cost_class insn_cost_class(const struct insn *insn)
{
	if (insn->cf != CF_NONE)
		return control(insn);
	if (insn->special != SP_NONE)
		return special(insn);
	if (insn->attr & INSN_LOCK)
		return COST_ATOMIC;
	if (insn->attr & INSN_VECTOR)
		return vector(insn);
	switch (insn->map) {
	case MAP_1: return general_1(insn);
	case MAP_0F: return general_0f(insn);
	case MAP_0F38: return general_0f38(insn);
	case MAP_0F3A: return COST_SHIFT; /* rorx */
	default: return COST_INT;
	}
}
