/*
 * PURPOSE: the native form of guest instructions that do not branch. Most are copied. Those with a
 * rip-relative or GS operand get another address. Those that show GS itself are replaced.
 */
#ifndef DBT_ARCH_X86_64_REWRITE_PRIV_H
#define DBT_ARCH_X86_64_REWRITE_PRIV_H

#include "dbt/arch/x86_64/emit-priv.h"

/*
 * What rewrite_insn() has emitted. The registers in @mask are in their spill slots between begin
 * and end, which is the whole sequence but for the stores at its start. The registers in @moved
 * have the guest's GS base added to them. If there are any, begin and end are those of the one
 * instruction in the sequence that may fault, and that may be interrupted and begun again.
 */
struct rewritten {
	u16 mask, moved;
	u8 *begin, *end;
};

/* Emits @d, whose bytes are @bytes, at guest address @pc. */
struct rewritten rewrite_insn(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc);

/*
 * Whether there is a native form for @d, a string instruction, gather, scatter or tile load with a
 * GS prefix. There is none with 32-bit addresses, because the sum with the base has more bits.
 */
bool rewrite_can_gs(const struct insn *d);

/*
 * Loads the 64-bit operand of an indirect branch into r11; both r11 and rcx, which is used, are
 * spilled.
 */
void rewrite_load_target(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc);

#endif
