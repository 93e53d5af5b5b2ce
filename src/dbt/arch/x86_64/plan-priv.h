/*
 * PURPOSE: a superblock before it is code: which guest instructions it takes, in order of execution,
 * what becomes of each, and where the arithmetic flags are dead.
 */
#ifndef DBT_ARCH_X86_64_PLAN_PRIV_H
#define DBT_ARCH_X86_64_PLAN_PRIV_H

#include "dbt/arch/x86_64/decode.h"
#include "dbt/arch-priv.h"

enum plan_role {
	ROLE_COPY,  /* goes on with the next; copied or rewritten */
	ROLE_ELIDE, /* a jmp to the next one in the plan: no code */
	ROLE_SIDE,  /* a conditional branch: taken it leaves, else goes on with the next */
	ROLE_CALL,  /* a call; what it returns to is next in the plan, entered from outside */
	ROLE_TRAP,  /* runs as it is and raises a signal; going on with the next is possible */
	ROLE_END,   /* leaves */
};

struct plan_insn {
	struct insn d; /* INSN_BRIEF where that says enough */
	u64 pc;
	u8 bytes[INSN_MAX + 1];
	u8 class; /* enum insn_class */
	u8 role;
	u16 live;                /* FL_ARITH bits that matter before it */
	u16 taken_live;          /* ROLE_SIDE, direct ROLE_END: those that matter at its target */
	struct dbt_entry *known; /* ROLE_CALL: the return point that there is already, or NULL */
};

struct plan {
	struct plan_insn insns[BLOCK_INSNS_MAX];
	struct block_frag
		frags[BLOCK_FRAGS_MAX + 1]; /* the last one, of no length, says what follows */
	u64 pages[BLOCK_PAGES_MAX];
	u32 nr_insns, nr_frags, nr_pages, nr_exits;
	u64 next_pc;      /* where it goes on after the last instruction, if that falls through */
	u16 next_live;    /* FL_ARITH bits that matter there */
	bool rewrites;    /* it may write to its own page */
	bool checked;     /* the bytes have to be compared before each execution */
	bool undecodable; /* what is at next_pc is no instruction */
	u8 bad[INSN_MAX + 1]; /* its bytes */
	u8 bad_len;
};

/*
 * Plans the superblock at @pc. 0, or -EFAULT with *@fault set to the first byte that could not be
 * fetched for its first instruction.
 */
int plan_build(struct plan *plan, u64 pc, u64 *fault);

/* A branch that is done in C (arch_emulate). */
bool is_emulated_branch(const struct insn *d);

/* fnstenv, fnsave, fxsave, xsave: the image says where the last x87 instruction was. */
bool stores_x87_pc(const struct insn *d);

static inline u16 plan_live(const struct plan *plan, u32 i)
{
	return i < plan->nr_insns ? plan->insns[i].live : plan->next_live;
}

#endif
