/*
 * PURPOSE: the native form of guest instructions that do not branch: most are copied, those with a
 * rip-relative or GS operand get another address, the few that show the runtime's GS are emulated.
 */
#ifndef DBT_ARCH_X86_64_REWRITE_PRIV_H
#define DBT_ARCH_X86_64_REWRITE_PRIV_H

#include "dbt/arch/x86_64/emit-priv.h"

/*
 * Emits @d, whose bytes are @bytes, at guest address @pc. Returns the mask of registers it spilled: they
 * are in their spill slots somewhere between begin and end, which is the whole sequence but for
 * the stores at its start. With @moved, registers that hold more than the guest's values by the
 * guest's GS base, begin and end are those of the one instruction in the sequence that may fault, and
 * that may be interrupted and begun again.
 */
struct rewritten {
	u16 mask, moved;
	u8 *begin, *end;
};

struct rewritten rewrite_insn(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc);

/*
 * Whether there is a native form for @d, a string instruction, gather, scatter or tile load with a GS
 * prefix. Not with 32-bit addresses, whose sum with the base is not an address of 32 bits.
 */
bool rewrite_can_gs(const struct insn *d);

/* Loads the 64-bit operand of an indirect branch into r11; r11 and rcx are spilled, rcx is lost. */
void rewrite_load_target(struct emitter *e, const struct insn *d, const u8 *bytes, u64 pc);

#endif
