/*
 * PURPOSE: what an instruction does with floating-point numbers, whatever the CPU, and what of that
 * the counters of the model are. A decoder's facts are turned into it beside the decoder
 * (dbt/arch/CPU/insn-floats.h). It needs nothing of a machine, and is exact.
 */
#ifndef MODEL_FLOATS_H
#define MODEL_FLOATS_H

#include "base/types.h"

enum floats_op {
	FLOATS_NONE,
	FLOATS_ADD, /* and subtract, horizontally too */
	FLOATS_MUL,
	FLOATS_DIV,   /* and square roots */
	FLOATS_FUSED, /* multiply and add */
	FLOATS_DOT,   /* a multiplication and an addition of each element */
	FLOATS_OTHER, /* minimum, maximum, reciprocals: Intel counts them, AMD does not */
};

enum floats_type {
	FLOATS_SINGLE,
	FLOATS_DOUBLE,
	FLOATS_HALF,
	FLOATS_BF16,
};

enum floats_width {
	FLOATS_SCALAR,
	FLOATS_128,
	FLOATS_256,
	FLOATS_512,
};

/* What an instruction is of, arithmetic or not. */
enum floats_set {
	FLOATS_NO_SET,
	FLOATS_X87,
	FLOATS_MMX,
	FLOATS_SSE, /* and AVX */
};

#define FLOATS_WORK_MAX 512u

/* Below FLOATS_WORK_MAX; 0: the instruction does nothing of all this. */
static inline u16 floats_work(enum floats_op op, enum floats_type type, enum floats_width width,
			      enum floats_set set)
{
	return (u16)((u32)op | (u32)type << 3 | (u32)width << 5 | (u32)set << 7);
}

#endif
