/*
 * PURPOSE: what kinds of instructions the cycles model tells apart, whatever the CPU. A decoder's
 * facts are turned into them beside the decoder (dbt/arch/CPU/insn-cost.h). Shapes only.
 */
#ifndef MODEL_COST_H
#define MODEL_COST_H

/*
 * A load or a store that is part of another operation is counted beside it: an addition with a
 * memory operand is INT and LOAD. In the order in which machine files name them.
 */
enum cost_class {
	COST_NOP,   /* and moves that renaming makes: no port is used */
	COST_INT,   /* add, and, compare, move, set, conditional move */
	COST_LEA,   /* addresses with three parts */
	COST_SHIFT, /* shifts, rotates, bit tests and scans */
	COST_INT_MUL,
	COST_INT_DIV,
	COST_LOAD,
	COST_STORE,
	COST_BRANCH, /* jumps, conditional or not */
	COST_CALL,   /* and returns */
	COST_VEC,    /* integer vectors, logic, moves between vector registers */
	COST_SHUFFLE,
	COST_FP_ADD,  /* and compare, minimum, maximum */
	COST_FP_MUL,  /* and fused multiply-add */
	COST_FP_DIV,  /* and square roots */
	COST_CONVERT, /* between formats; between vector and general registers */
	COST_CRYPTO,  /* AES, SHA, carry-less multiplication, CRC */
	COST_X87,
	COST_GATHER, /* gathers and scatters, without their loads */
	COST_STRING, /* a string instruction, without what it moves */
	COST_ATOMIC, /* locked, exclusive */
	COST_FENCE,
	COST_SYSTEM, /* system calls, CPUID, clocks, state of the processor */
	COST_CLASSES,
};

#endif
