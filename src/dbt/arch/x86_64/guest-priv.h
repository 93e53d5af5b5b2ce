/* PURPOSE: the guest's pc, stack pointer and trap flag, for the files that know no CPU. */
#ifndef DBT_ARCH_X86_64_GUEST_PRIV_H
#define DBT_ARCH_X86_64_GUEST_PRIV_H

#include "dbt/dbt.h"

#include <asm/processor-flags.h>

#define PAGE_SHIFT 12

static inline u64 guest_pc(const struct dbt_thread *t)
{
	return t->regs.rip;
}

static inline u64 guest_sp(const struct dbt_thread *t)
{
	return t->regs.gpr[DBT_RSP];
}

static inline void guest_set_pc(struct dbt_thread *t, u64 pc)
{
	t->regs.rip = pc;
}

/* Whether the guest has the trap flag set, which traps after each instruction. */
static inline bool guest_is_traced(const struct dbt_thread *t)
{
	return t->regs.rflags & X86_EFLAGS_TF;
}

static inline void guest_set_traced(struct dbt_thread *t)
{
	t->regs.rflags |= X86_EFLAGS_TF;
}

#endif
