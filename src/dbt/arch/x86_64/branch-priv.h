/*
 * PURPOSE: control flow in translated code: exits, calls, returns, lookups, and the counting that
 * happens at each way out of a superblock.
 */
#ifndef DBT_ARCH_X86_64_BRANCH_PRIV_H
#define DBT_ARCH_X86_64_BRANCH_PRIV_H

#include "dbt/arch/x86_64/emit-priv.h"
#include "dbt/arch/x86_64/plan-priv.h"

#define SPILL_RANGES_MAX (BLOCK_INSNS_MAX + 4 * BLOCK_FRAGS_MAX)
#define BLOCK_COUNTS_MAX (BLOCK_FRAGS_MAX + 2)

/* A side exit whose code comes after the superblock's main line. */
struct pending_side {
	u32 insn;  /* index of the branch */
	u8 *rel32; /* its displacement */
};

/* A native call, whose target is made after the main line. */
struct pending_thunk {
	u32 insn;
	u8 *rel32;
};

/* What is recorded of a block's accesses; accesses.c. */
struct recording {
	u16 before[BLOCK_INSNS_MAX]; /* registers whose values are recorded before an instruction */
	u16 after[BLOCK_INSNS_MAX];
	u16 slots_before[BLOCK_INSNS_MAX + 1]; /* slots of the instructions before it */
	/* For the filter: accesses of the instructions before it; registers that each needs. */
	u16 accesses_before[BLOCK_INSNS_MAX + 1];
	u16 read[BLOCK_INSNS_MAX], written[BLOCK_INSNS_MAX];
	u32 filtered; /* accesses before this number are done */
};

/* An access for the filter: what its address is made of when the instruction begins. */
struct access_site {
	u64 disp;
	u16 number; /* of the block's accesses */
	u16 size;
	u8 kind, flags; /* enum path_access_kind, enum path_access_flags */
	u8 base, index; /* enum insn_reg; REG_NONE: none */
	u8 scale;
	u8 insn;
	bool counted; /* the path has been counted already */
};

/* A superblock being made. */
struct build {
	struct plan plan;
	struct emitter e;
	struct dbt_block *block;
	struct dbt_exit *exits;
	u32 nr_exits;
	/* The way to cold code that a jrcxz takes: countdown_near(). */
	bool near_ends; /* the code ends soon behind what is counted next, and that follows */
	u8 *near;       /* behind its displacement; NULL: nothing to do */
	u32 near_cold;
	struct recording recording;
	bool hooks;   /* something else may come before or behind any instruction */
	u32 restart;  /* index of the instruction from which the current path counts */
	u32 side_end; /* index after the last side exit */
	struct pending_side sides[BLOCK_INSNS_MAX];
	u32 nr_sides;
	struct pending_thunk thunks[BLOCK_FRAGS_MAX];
	u32 nr_thunks;
	struct block_insn insns[BLOCK_INSNS_MAX + 1];
	u64 weight[BLOCK_INSNS_MAX + 1]; /* weight_of() all that come before */
	struct spill_range spill_ranges[SPILL_RANGES_MAX];
	u32 nr_spill_ranges;
	struct block_count counts[BLOCK_COUNTS_MAX];
	u32 nr_counts;
	/* Made so far, to be added to the tables at the end. */
	struct dbt_entry *entries[BLOCK_FRAGS_MAX + 2];
	u32 nr_entries;
};

/* whole-jumps.c: whether the CPU may take @d and a conditional branch behind it as one. */
bool fuses(const struct insn *d);

/* The weight of one of a quantity. */
#define WEIGHT(q) (1ull << (8 * METER_##q))

/*
 * The weight of instructions [from, to) of @insns, if the branches among them fall through: byte q
 * is what they add to quantity q.
 */
u64 weight_of(const struct block_insn *insns, u32 from, u32 to);

static inline u32 weight_byte(u64 weight, u32 q)
{
	return weight >> (8 * q) & 0xff;
}

/* At most so many bytes count a path: in lanes, by a register that is spilled. */
#define COUNT_BYTES_MAX 200u

/* As flags that are live: they are, but rcx is spilled already. */
#define COUNT_SPILLED 0x8000u

/* Counts a path without a class: adds to a lane's word of each quantity. */
void emit_count_lanes(struct emitter *e, u64 w, u16 live);
/*
 * Adds the path that ends before instruction @upto, whose weight is @w, to the meter. The
 * arithmetic flags are dead if !@live. COUNT_SPILLED: they are live, but rcx is spilled already.
 * @index as for countdown_hit(). If the path leaves by @x right behind, which may be NULL, the jump
 * may be emitted together with the count: returns whether it has been.
 */
bool emit_count(struct build *b, u32 upto, bool taken, u64 w, u16 live, u32 index,
		struct dbt_exit *x);
/* The same for a path of an exact block, which is counted in lanes. */
void emit_count_exact(struct build *b, u32 upto, bool taken, u64 w);

/*
 * accesses.c: works out what is to be recorded of the plan's accesses, and describes them in
 * @details; @whole: its instructions as insn_decode() has them. Then emits the code in front of
 * instruction @index that records, and behind it.
 */
void accesses_plan(struct build *b, const struct insn *whole, struct path_details *details);
void accesses_record(struct build *b, u32 index);
void accesses_record_after(struct build *b, u32 index);
/* Whether it is a string instruction that repeats, and records. */
bool accesses_repeat(const struct build *b, u32 index);
/* How many slots the path from b->restart to before instruction @upto has. */
static inline u32 accesses_slots(const struct build *b, u32 upto)
{
	return b->recording.slots_before[upto] - b->recording.slots_before[b->restart];
}

#define FILTER_GROUP 8u /* sites at most */

/*
 * filter.c: code in front of the instruction that looks whether an access is to be recorded; or
 * whether some of @n are, which come one after the other and are by the registers of the first one.
 * Returns how many of them it was. Of a string instruction that repeats the second comes before it,
 * and the third behind it for each string.
 * filter_segment() comes behind one that writes the base of FS. filter_init() makes the stubs:
 * filter-stubs.c.
 */
u32 filter_accesses(struct build *b, const struct access_site *s, u32 n);
void filter_strings(struct build *b);
void filter_string_after(struct build *b, const struct access_site *s);
void filter_segment(struct build *b, const struct insn *i);
void filter_init(void);

/*
 * countdown.c: code on its way to a deadline. countdown_hit() adds 1 to the word of @class, of
 * whose paths each adds @n to what is counted down, and countdown_exit() leaves the block by @x as
 * well; countdown_lanes() comes where a path has no class. Flags are live as for emit_count() in
 * path-count.c. @index is the instruction that comes next, DEADLINE_TAKEN an exit that follows.
 * countdown_near() comes where control does not go on, after near_ends. countdown_before() comes
 * before instruction @index of an exact block, countdown_from() where the one at @pc is about to
 * leave it.
 */
void countdown_hit(struct build *b, u32 class, u32 n, u16 live, u32 index);
void countdown_exit(struct build *b, u32 class, u32 n, u16 live, struct dbt_exit *x);
void countdown_lanes(struct build *b, u32 n, u16 live, u32 index);
void countdown_near(struct build *b);
void countdown_before(struct build *b, u32 index);
void countdown_from(struct build *b, u64 pc);
/* The stubs that these use. */
void countdown_init(void);

/*
 * branch-log.c: instruction @index is taken, if such are logged. log_target(): to the guest pc in
 * r11; rcx is spilled as well. log_direct(): to its own target. Comes where nothing can fault any
 * more, and no deadline be found, before the branch has retired.
 */
void log_direct_branch(struct build *b, u32 index, bool rcx_spilled);
void log_target_branch(struct build *b, u32 index);

static inline void log_direct(struct build *b, u32 index, bool rcx_spilled)
{
	if (unlikely(cache.mask & DBT_MASK_BRANCHES))
		log_direct_branch(b, index, rcx_spilled);
}

static inline void log_target(struct build *b, u32 index)
{
	if (unlikely(cache.mask & DBT_MASK_BRANCHES))
		log_target_branch(b, index);
}

/*
 * Emits an entry of @table for guest @pc, which lookups or native returns go to. r11 and rcx are
 * still spilled behind it (emit_unspill_target()). The struct is complete but for block.
 */
struct dbt_entry *emit_entry(struct emitter *e, enum entry_table table, u64 pc, u32 set);

/* Emits a jump to the guest pc in r11, by the thread's table; r11 and rcx are spilled. */
void emit_jump_target(struct emitter *e, u32 set);

/* Before anything is emitted: what the instructions of the plan are and weigh. */
void count_begin(struct build *b);
/* Emit instruction @index of the plan, which ends a path, and the ways out that it has. */
void branch_side(struct build *b, u32 index);
void branch_call(struct build *b, u32 index);
void branch_end(struct build *b, u32 index);
void branch_guess(struct build *b, u32 index);
/* Emits the way out after the last instruction of the plan, which falls through. */
void branch_fall(struct build *b);
/* Emits the code of side exits and of calls, which comes after everything else. */
void branch_sides_finish(struct build *b);
/* Before instruction @index, of which the plan says that a path is counted there: counts it. */
void branch_count_before(struct build *b, u32 index);

/*
 * Emits the code that leaves a checked block before its first instruction, with rax and rcx
 * spilled. Returns its cache offset.
 */
u32 branch_stale(struct build *b);
/* Between @begin and here the registers in @mask are spilled. */
void branch_spill_range(struct build *b, const u8 *begin, u16 mask);

#endif
