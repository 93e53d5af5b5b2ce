/*
 * PURPOSE: instructions that code of the filter is made of, in front of accesses (filter.c) and for
 * what is recorded (filter-stubs.c).
 */
#ifndef DBT_ARCH_X86_64_FILTER_PRIV_H
#define DBT_ARCH_X86_64_FILTER_PRIV_H

#include "dbt/arch/x86_64/branch-priv.h"

static inline bool fits_s8(s64 v)
{
	return v >= -128 && v < 128;
}

/* and, cmp, ... (@op of group 1) @reg, @v; with 64 bits if @wide */
static inline void emit_group1(struct emitter *e, bool wide, u8 op, u8 reg, u32 v)
{
	emit3(e, (u8)((wide ? 0x48 : 0x40) | reg >> 3), fits_s8(v) ? 0x83 : 0x81,
	      (u8)(0xc0 | op << 3 | (reg & 7)));
	if (fits_s8(v))
		emit1(e, (u8)v);
	else
		emit_u32(e, v);
}

#define OP_ADD 0
#define OP_OR  1
#define OP_AND 4
#define OP_SUB 5
#define OP_XOR 6
#define OP_CMP 7

/* shr @reg, to the number of the line */
static inline void emit_shift(struct emitter *e, bool wide, u8 reg)
{
	emit4(e, (u8)((wide ? 0x48 : 0x40) | reg >> 3), 0xc1, (u8)(0xe8 | (reg & 7)),
	      cache.filter_shift);
}

#endif
