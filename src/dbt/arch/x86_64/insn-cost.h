/*
 * PURPOSE: what an x86-64 instruction is for the model's cycles: its class, its loads and stores.
 * Pure, as the decoder.
 */
#ifndef DBT_ARCH_X86_64_INSN_COST_H
#define DBT_ARCH_X86_64_INSN_COST_H

#include "dbt/arch/x86_64/decode.h"
#include "model/cycles.h"

/* @insn is one that insn_decode() has filled, not insn_scan(). */
enum cost_class insn_cost_class(const struct insn *insn);

/* Adds it to a run of instructions. */
static inline void insn_cost_add(struct cost *cost, const struct machine *m,
				 const struct insn *insn)
{
	cost_add(cost, m, insn_cost_class(insn), (insn->mem_read > 0) + (insn->stack_read > 0),
		 (insn->mem_write > 0) + (insn->stack_write > 0));
}

#endif
