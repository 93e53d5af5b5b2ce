/*
 * PURPOSE: the plan of a superblock, before there is code: which guest instructions it has, in
 * order of execution, what becomes of each, and where the arithmetic flags are dead.
 */
#ifndef DBT_ARCH_X86_64_PLAN_PRIV_H
#define DBT_ARCH_X86_64_PLAN_PRIV_H

#include "dbt/arch/x86_64/decode.h"
#include "dbt/arch-priv.h"

enum plan_role {
	ROLE_COPY,  /* copied or rewritten; goes on with the next */
	ROLE_ELIDE, /* a jump to the next one in the plan: no code, unless it is logged */
	ROLE_SIDE,  /* a conditional branch: leaves if it is taken */
	ROLE_CALL,  /* a call; next in the plan is what it returns to, entered from outside */
	ROLE_TRAP,  /* copied; ends the plan, and may raise a signal first */
	ROLE_GUESS, /* an indirect jump that goes to next_pc, unless a comparison says otherwise */
	ROLE_END,   /* leaves */
};

#define PLAN_COUNTS_NONE 0xff

/* More than counting is done on the way, with code of its own. */
#define MASK_INSIDE_PATHS                                                               \
	(DBT_MASK_ANY_DEADLINES | DBT_MASK_PATHS | DBT_MASK_TRACE | DBT_MASK_BRANCHES | \
	 DBT_MASK_MEMORY)

struct plan_insn {
	struct insn d; /* INSN_BRIEF if that says enough */
	u64 pc;
	u8 bytes[INSN_MAX + 1];
	u8 class; /* enum insn_class */
	u8 role;
	u8 counts;      /* before it the path is counted that leaves here on the main line */
	u16 live;       /* FL_ARITH bits that matter before it */
	u16 taken_live; /* of ROLE_SIDE and direct ROLE_END: those that matter at its target */
	struct dbt_entry *known; /* of ROLE_CALL: its return point if there is one, else NULL */
};

struct plan {
	u32 form; /* of BLOCK_FORMS */
	struct plan_insn insns[BLOCK_INSNS_MAX];
	/* The last one has no length and says what follows. */
	struct block_frag frags[BLOCK_FRAGS_MAX + 1];
	u64 pages[BLOCK_PAGES_MAX];
	u32 nr_insns, nr_frags, nr_pages, nr_exits;
	u64 next_pc;      /* what follows the last instruction, if that falls through */
	u16 next_live;    /* FL_ARITH bits that matter there */
	bool rewrites;    /* it may write to its own pages */
	bool checked;     /* the bytes have to be compared before each execution */
	bool exact;       /* it ends with a branch, and may count down before each instruction */
	bool passes;      /* it is one instruction, at a place that has been told of */
	bool once;        /* its code is worth no second execution */
	bool at_place;    /* it is none: its pc is a place to tell of */
	bool undecodable; /* there is no instruction at next_pc */
	u8 bad[INSN_MAX + 1]; /* its bytes */
	u8 bad_len;
};

/*
 * Plans the superblock at @pc, or with a @form a block that ends with the first branch. 0, or
 * -EFAULT with *@fault set to the first byte that could not be fetched for its first instruction.
 */
int plan_build(struct plan *plan, u64 pc, u32 form, u64 *fault);

/* A branch that is done in C (arch_emulate). */
bool is_emulated_branch(const struct insn *d);

/* Where it accesses memory C code tells, arch_tell_elements(); insn_scan() says enough of it. */
bool tells_elements(const struct insn *d);
/* The address of its operand with what @more is added to it, of an index that is no vector. */
u64 address_of(const struct dbt_thread *t, const struct insn *d, u64 pc, u64 more);
/* xsave, xsaveopt, xsavec, xrstor; tileloadd, tileloaddt1, tilestored (elements-xstate.c). */
void tell_xstate(struct dbt_thread *t, const struct insn *d, u64 pc);
void tell_tile(struct dbt_thread *t, const struct insn *d, u64 pc);
/* Bytes of an element of a string instruction. */
u32 string_step(const struct insn *d);
/*
 * A string instruction, copied to @native, has been interrupted between two iterations, and t->regs
 * are set: tells what it has done since filter.from. @of_gs: its source had that prefix.
 */
void elements_of_string(struct dbt_thread *t, const u8 *native, bool of_gs);

/* Instructions about the extended state that are done in C, since guests see less of it. */
bool is_virtual_xstate(const struct insn *d);

/* fnstenv, fnsave, fxsave, xsave: the image says where the last x87 instruction was. */
bool stores_x87_pc(const struct insn *d);

static inline u16 plan_live(const struct plan *plan, u32 i)
{
	return i < plan->nr_insns ? plan->insns[i].live : plan->next_live;
}

#endif
