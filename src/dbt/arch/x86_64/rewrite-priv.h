/*
 * PURPOSE: the native form of guest instructions that do not branch: most are copied, those with a
 * rip-relative or GS operand get another address, the few that show the runtime's GS are emulated.
 */
#ifndef DBT_ARCH_X86_64_REWRITE_PRIV_H
#define DBT_ARCH_X86_64_REWRITE_PRIV_H

#include "dbt/arch/x86_64/emit-priv.h"

/*
 * Emits @d, whose bytes are @bytes, at guest address @pc. Returns the mask of registers it lent: they
 * are in their spill slots somewhere between begin and end, which is the whole sequence but for
 * the stores at its start.
 */
struct rewritten {
	u16 mask;
	u8 *begin, *end;
};

struct rewritten rewrite_insn(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc);

/* Loads the 64-bit operand of an indirect branch into rax; rax and rcx are spilled, rcx is lost. */
void rewrite_load_target(struct emit *e, const struct insn *d, const u8 *bytes, u64 pc);

#endif
