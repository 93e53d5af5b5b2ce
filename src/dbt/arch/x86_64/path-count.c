/*
 * Counting: what a path adds to the meter, to words of paths and to the trace, at each way out of a
 * superblock.
 */
#include "dbt/arch/x86_64/branch-priv.h"

_Static_assert(BLOCK_INSNS_MAX < 256, "a path adds to each quantity what a byte can hold");

static u64 weight_of_insn(const struct block_insn *i)
{
	static const u64 of_class[] = {
		[CLASS_PLAIN] = WEIGHT(INSTRUCTIONS),
		[CLASS_COND] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES) | WEIGHT(CONDITIONAL),
		[CLASS_JUMP] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES),
		[CLASS_CALL] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES) | WEIGHT(CALLS),
		[CLASS_CALL_IND] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES) | WEIGHT(CALLS) |
				   WEIGHT(INDIRECT),
		[CLASS_JUMP_IND] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES) | WEIGHT(INDIRECT),
		[CLASS_RET] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES) | WEIGHT(RETURNS),
		[CLASS_BRANCH] = WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES),
	};

	return of_class[insn_class_of(i)];
}

u64 weight_of(const struct block_insn *insns, u32 from, u32 to)
{
	u64 w = 0;

	for (u32 i = from; i < to; i++)
		w += weight_of_insn(&insns[i]);
	return w;
}

void count_begin(struct build *b)
{
	b->weight[0] = 0;
	for (u32 i = 0; i < b->plan.nr_insns; i++) {
		const struct plan_insn *insn = &b->plan.insns[i];

		b->insns[i].guest = (u8)(insn->d.len | insn->class << 4);
		b->weight[i + 1] = b->weight[i] + weight_of_insn(&b->insns[i]);
	}
}

/* A mask of the bytes of a weight that are counted. */
static u64 counted_quantities(void)
{
	if (!(cache.mask & DBT_MASK_COUNT))
		return 0;
	return cache.mask & DBT_MASK_SPLIT ? ~0ull
					   : 0xff * (WEIGHT(INSTRUCTIONS) | WEIGHT(BRANCHES));
}

/* Adds @n to the word at GS + @at by way of @reg: no flags. */
static void emit_add_gs(struct emitter *e, u8 reg, u32 at, u32 n)
{
	emit_load_gs(e, reg, at);
	/* lea reg, [reg + n] */
	emit3(e, 0x48 | (reg >> 3) * 5, 0x8d, (n < 128 ? 0x40 : 0x80) | (reg & 7) * 9);
	if (n < 128)
		emit1(e, (u8)n);
	else
		emit_u32(e, n);
	emit_store_gs(e, at, reg);
}

/* Counts without a class: adds to a lane's word of each quantity. */
void emit_count_lanes(struct emitter *e, u64 w, u16 live)
{
	u32 lane = cache.lane++ % METER_LANES;
	u8 reg = live == COUNT_SPILLED ? REG_RCX : REG_RAX;
	bool spilled = live == COUNT_SPILLED;

	w &= counted_quantities();
	for (u32 q = 0; q < METER_QUANTITIES; q++) {
		u32 n = weight_byte(w, q), at = GS_METER(lane, q);

		if (!n)
			continue;
		if (!live) {
			emit4(e, PREFIX_GS, 0x48, n < 128 ? 0x83 : 0x81, 0x04);
			emit1(e, 0x25);
			emit_u32(e, at);
			if (n < 128)
				emit1(e, (u8)n);
			else
				emit_u32(e, n);
			continue;
		}
		if (!spilled)
			emit_spill(e, reg);
		spilled = true;
		emit_add_gs(e, reg, at, n);
	}
	if (spilled && live != COUNT_SPILLED)
		emit_unspill(e, reg);
}

/*
 * Appends path @number to the trace by way of @reg: no flags. Behind its end the store faults, and
 * goes on at its beginning (dbt_fault()).
 */
static void emit_trace(struct emitter *e, u8 reg, u32 number)
{
	emit_load_gs(e, reg, GS(trace_at));
	emit2(e, 0xc7, reg); /* mov dword [reg], number */
	emit_u32(e, number);
	emit4(e, 0x48, 0x8d, 0x40 | reg * 9, 4); /* lea reg, [reg + 4] */
	emit_store_gs(e, GS(trace_at), reg);
}

/* A path that is traced, unless @number is 0, and how many slots it has. */
struct traced_path {
	u32 number, slots;
};

/* Adds 1 to each of the @n words at GS + @at. Path @traced is traced. */
static void emit_count_words(struct emitter *e, const u32 *at, u32 n, struct traced_path traced,
			     u16 live)
{
	u8 reg = live == COUNT_SPILLED ? REG_RCX : REG_RAX;
	bool spill = (live || traced.number) && live != COUNT_SPILLED;

	if (!n && !traced.number)
		return;
	if (spill)
		emit_spill(e, reg);
	if (traced.number)
		emit_trace(e, reg, traced.number);
	if (traced.slots)
		emit_add_gs(e, reg, GS(slots_at), traced.slots * 8);
	for (u32 i = 0; i < n; i++) {
		if (live) {
			emit_add_gs(e, reg, at[i], 1);
		} else {
			emit4(e, PREFIX_GS, 0x48, 0x83, 0x04); /* add qword gs:[at], 1 */
			emit1(e, 0x25);
			emit_u32(e, at[i]);
			emit1(e, 1);
		}
	}
	if (spill)
		emit_unspill(e, reg);
}

/*
 * The class of @w, or two that add up to it: returns how many, 0 for nothing to count. ~0u if there
 * is no class left.
 */
static u32 classes_of(u64 w, u32 *class)
{
	u64 weight = w & counted_quantities();

	if (!weight)
		return 0;
	class[0] = meter_class(weight, false);
	if (class[0] != ~0u)
		return 1;
	class[0] = meter_class(weight & 0xff, true);
	class[1] = meter_class(weight & ~0xffull, true);
	return class[0] == ~0u || class[1] == ~0u ? ~0u : 2;
}

/*
 * The word of the path [b->restart, upto), at *@at from GS: returns 1, or 0 if paths have none or
 * this has no instruction. *@traced: what to trace.
 */
static u32 path_word(const struct build *b, u32 upto, bool taken, u32 *at,
		     struct traced_path *traced)
{
	u32 number;

	*traced = (struct traced_path){0};
	if (!form_describes_paths() || upto <= b->restart)
		return 0;
	number = path_add(b->block->path_block, b->restart, upto, taken);
	*at = DBT_PATHS_AT + (u32)offsetof(struct path_thread, word) + number * 8;
	if (cache.form_mask & DBT_MASK_TRACE)
		traced->number = number;
	if (cache.form_mask & DBT_MASK_MEMORY && b->block->path_block)
		traced->slots = accesses_slots(b, upto);
	return cache.mask & DBT_MASK_PATHS ? 1 : 0;
}

bool emit_count(struct build *b, u32 upto, bool taken, u64 w, u16 live, u32 index,
		struct dbt_exit *x)
{
	u32 class[2], at[3], nr = classes_of(w, class), n = 0, last = 0;
	struct traced_path traced;
	u32 words = path_word(b, upto, taken, at, &traced);

	if (cache_has_deadlines())
		n = weight_byte(w, deadline_quantity());
	if (nr == ~0u) {
		emit_count_words(&b->e, at, words, traced, live);
		emit_count_lanes(&b->e, w, live);
		if (n)
			countdown_lanes(b, n, live, index);
		return false;
	}
	/* What may leave comes last, when all is counted. */
	for (u32 i = 0; i < nr; i++) {
		if (n && cache.class_weight[class[i]] >> (8 * deadline_quantity()) & 0xff)
			last = class[i];
		else
			at[words++] = GS_METER_HITS(class[i]);
	}
	emit_count_words(&b->e, at, words, traced, live);
	if (!n)
		return false;
	if (x)
		countdown_exit(b, last, n, live, x);
	else
		countdown_hit(b, last, n, live, index);
	return x;
}

void emit_count_exact(struct build *b, u32 upto, bool taken, u64 w)
{
	struct traced_path traced;
	u32 at, words = path_word(b, upto, taken, &at, &traced);

	emit_count_words(&b->e, &at, words, traced, FL_ARITH);
	emit_count_lanes(&b->e, w, FL_ARITH);
	countdown_from(b, b->plan.insns[upto - 1].pc);
}
