/*
 * Control flow. Worked example, a call and its return (S is the slot the return address goes to):
 *
 *   guest              translated
 *   call f             call thunk            S = native return address, as the CPU's predictor
 *                                            knows; a fault here is the call's
 *                      back: ...
 *              thunk:  ring[S] = the native address; S = R, the guest's return address
 *                      jmp f
 *   ret                r11 = [rsp], that is R; mov [rsp], ring[rsp]
 *                      ret                   goes to `back`, predicted
 *   back:              if r11 is not R: ret_miss_code, which looks r11 up
 *                      mov [rsp - 8], r11    S is what it was
 *
 * So nothing below rsp is written but the slot that the guest's own call or ret uses, and when
 * guest code runs that slot holds again what it holds natively. The ring is indexed by rsp, so a
 * return finds what its call has put there. A call site has one native sequence, wherever it is
 * translated again: a second one would have a second return point, and the prediction would fail.
 */
#include "dbt/arch/x86_64/branch-priv.h"

#include "dbt/arch/x86_64/rewrite-priv.h"

/* The same as weight_of() of the path so far. */
static u64 path_weight(const struct build *b, u32 to)
{
	return b->weight[to] - b->weight[b->restart];
}

/*
 * rcx = 0 if r11 is @pc. What comes behind has its first two bytes in an aligned quadword: see
 * arch_entry_kill().
 */
static void emit_compare_target(struct emitter *e, u64 pc)
{
	bool low = pc <= 0x7fffffff;

	if (((emit_at(e) + (low ? 7 : 14)) & 7) == 7)
		emit1(e, PREFIX_PADDING);
	if (low) {
		emit3(e, 0x49, 0x8d, 0x8b); /* lea rcx, [r11 - pc] */
		emit_u32(e, (u32)-pc);
	} else {
		emit2(e, 0x48, 0xb9); /* movabs rcx, -pc */
		emit_u64(e, -pc);
		emit4(e, 0x4a, 0x8d, 0x0c, 0x19); /* lea rcx, [rcx + r11] */
	}
}

/*
 * The comparison leaves the flags alone even if they are dead at @pc. A branch on its way to
 * another pc comes by here, too, and at that pc they may be live.
 */
struct dbt_entry *emit_entry(struct emitter *e, enum entry_table table, u64 pc, u32 set)
{
	struct dbt_entry *entry = meta_alloc(sizeof(*entry));
	u8 *over;

	entry->pc = pc;
	entry->table = (u8)(table & 3);
	entry->code = emit_at(e);
	emit_compare_target(e, pc);
	emit_whole(e, 2);
	entry->kill = (u8)(emit_at(e) - entry->code);
	emit2(e, 0xe3, 0);
	over = e->p;
	if (table == TABLE_RET) {
		emit_whole(e, 5);
		emit_jmp(e, cache.ret_miss_code[set]);
	}
	if (table != TABLE_RET)
		entry->link = emit_jmp_patchable(e, cache.miss_code);
	over[-1] = (u8)(e->p - over);
	if (table == TABLE_RET)
		emit_store_slot(e);
	CHECK(emit_at(e) - entry->code < 256);
	entry->resume = (u8)(emit_at(e) - entry->code);
	return entry;
}

#define STUB_BYTES 18

/* Emits the stub of @x, cold code that leaves the cache for it, after the @n bytes at @count. */
static void emit_stub(struct dbt_exit *x, const u8 *count, u32 n)
{
	struct emitter e = cold_begin(n + STUB_BYTES);

	x->stub = emit_at(&e);
	x->counts = (u8)n;
	memcpy(e.p, count, n);
	e.p += n;
	emit_store_gs_imm(&e, GS(exit_id), meta_ref_of(x));
	emit_jmp(&e, cache.exit_code);
}

/* An exit whose stub first counts the path, by the @n bytes of code at @count. */
static struct dbt_exit *new_counting_exit(struct build *b, enum exit_kind kind, u64 target,
					  const u8 *count, u32 n)
{
	struct dbt_exit *x = &b->exits[b->nr_exits++];

	CHECK(b->nr_exits <= b->plan.nr_exits);
	x->kind = (u8)kind;
	x->target = target;
	emit_stub(x, count, n);
	return x;
}

static struct dbt_exit *new_exit(struct build *b, enum exit_kind kind, u64 target)
{
	return new_counting_exit(b, kind, target, NULL, 0);
}

/* An exit to guest @target, which is linked when it has been taken. */
static void emit_exit_jump(struct build *b, u64 target)
{
	struct dbt_exit *x = new_exit(b, EXIT_JUMP, target);

	x->patch = emit_jmp_patchable(&b->e, x->stub);
}

/* An exit that is never linked. */
static struct dbt_exit *emit_exit(struct build *b, enum exit_kind kind, u64 target)
{
	struct dbt_exit *x = new_exit(b, kind, target);

	emit_whole(&b->e, 5);
	emit_jmp(&b->e, x->stub);
	return x;
}

/* An exit for the runtime. */
static struct dbt_exit *emit_exit_stop(struct build *b, enum dbt_stop stop, u64 target)
{
	struct dbt_exit *x = emit_exit(b, EXIT_STOP, target);

	x->stop = (u8)stop;
	return x;
}

u32 branch_stale(struct build *b)
{
	u32 at = emit_at(&b->e);

	emit_unspill(&b->e, REG_RCX);
	emit_unspill(&b->e, REG_RAX);
	emit_exit(b, EXIT_JUMP, b->block->pc);
	return at;
}

/* From here on the path's instructions before @upto have been counted. */
static void note_count(struct build *b, u32 upto)
{
	struct block_count *c = &b->counts[b->nr_counts++];

	CHECK(b->nr_counts <= BLOCK_COUNTS_MAX);
	c->offset = (u16)(emit_at(&b->e) - b->block->code);
	c->upto = (u16)upto;
}

static bool counted_upto(const struct build *b, u32 upto)
{
	return b->nr_counts && b->counts[b->nr_counts - 1].upto == upto;
}

/* How many instructions an exit at @end counts: virtualized ones, which stop, do not count yet. */
static u32 counted_for(const struct build *b, u32 end)
{
	const struct plan_insn *i = &b->plan.insns[end];

	if (end == b->plan.nr_insns)
		return end;
	if (i->role == ROLE_END &&
	    (i->d.cf == CF_NONE || i->d.cf == CF_SYSENTER || is_emulated_branch(&i->d)))
		return end;
	return end + 1;
}

static bool emit_path_count_exit(struct build *b, u32 end, u16 live, u32 next, struct dbt_exit *x)
{
	u32 upto = counted_for(b, end);
	u64 w;
	bool left = false;

	if (counted_upto(b, upto) || upto <= b->restart)
		return false;
	w = path_weight(b, upto);
	if (b->plan.exact)
		emit_count_exact(b, upto, false, w);
	else
		left = emit_count(b, upto, false, w, live, next, x);
	note_count(b, upto);
	return left;
}

/* Adds to the meter what the path that ends with @end counts; instruction @next comes next. */
static void emit_path_count(struct build *b, u32 end, u16 live, u32 next)
{
	emit_path_count_exit(b, end, live, next, NULL);
}

/* The same for a path that leaves there to guest @target. */
static void emit_path_exit(struct build *b, u32 end, u16 live, u64 target)
{
	struct dbt_exit *x = new_exit(b, EXIT_JUMP, target);

	if (!emit_path_count_exit(b, end, live, DEADLINE_TAKEN, x))
		x->patch = emit_jmp_patchable(&b->e, x->stub);
}

void branch_count_before(struct build *b, u32 index)
{
	emit_path_count(b, b->plan.insns[index].counts, 0, index);
}

/* The taken side of a conditional branch: its count and its exit. */
static void emit_taken(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u64 w = path_weight(b, index + 1);
	struct dbt_exit *x = new_exit(b, EXIT_JUMP, insn_target(&i->d, i->pc));

	w += WEIGHT(TAKEN);
	log_direct(b, index, false);
	if (b->plan.exact)
		emit_count_exact(b, index + 1, true, w);
	else if (emit_count(b, index + 1, true, w, i->taken_live, DEADLINE_TAKEN, x))
		return;
	x->patch = emit_jmp_patchable(&b->e, x->stub);
}

static void put_u32(u8 *p, u32 v)
{
	__builtin_memcpy(p, &v, 4);
}

/*
 * Counts a path by code at @to, which will be copied to another place; it refers to none by its
 * own. Returns how long it is, at most COUNT_BYTES_MAX.
 */
static u32 make_count(struct build *b, u8 *to, u32 upto, bool taken, u64 w, u16 live)
{
	u8 *at = b->e.p;
	u32 n;

	b->e.p = to;
	emit_count(b, upto, taken, w, live, DEADLINE_TAKEN, NULL);
	n = (u32)(b->e.p - to);
	b->e.p = at;
	CHECK(n <= COUNT_BYTES_MAX);
	return n;
}

/*
 * A side exit that has no code beside the main line, since most are never taken and lines of the
 * CPU's cache are few: what counts is in its stub until it is taken, and then where
 * arch_exit_code() puts it.
 */
static void emit_side_apart(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u8 count[COUNT_BYTES_MAX];
	u64 w = path_weight(b, index + 1) + WEIGHT(TAKEN);
	u32 n = make_count(b, count, index + 1, true, w, i->taken_live);
	struct dbt_exit *x = new_counting_exit(b, EXIT_JUMP, insn_target(&i->d, i->pc), count, n);

	x->patch = emit_jcc_patchable(&b->e, i->d.cond, x->stub);
}

void branch_side(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u8 *over;

	if (i->d.cf == CF_LOOP) {
		emit_whole(&b->e, 8);
		if (i->d.attr & INSN_ADDR32)
			emit1(&b->e, PREFIX_ADDR32);
		emit2(&b->e, i->d.opcode, 5); /* over the jmp of the other side */
		emit1(&b->e, 0xe9);
		emit_u32(&b->e, 0);
		over = b->e.p;
		emit_taken(b, index);
		put_u32(over - 4, (u32)(b->e.p - over));
	} else if (insn_target(&i->d, i->pc) <= i->pc) {
		/* Backward, so it is probably a loop's: the taken side goes in line. */
		if (cache.form_mask &
		    (DBT_MASK_SPLIT | DBT_MASK_ANY_DEADLINES | DBT_MASK_PATHS | DBT_MASK_TRACE)) {
			emit_whole(&b->e, 6);
			emit2(&b->e, 0x0f, 0x80 | (i->d.cond ^ 1));
			emit_u32(&b->e, 0);
			over = b->e.p;
			emit_taken(b, index);
			put_u32(over - 4, (u32)(b->e.p - over));
		} else {
			emit_whole(&b->e, 2);
			emit2(&b->e, 0x70 | (i->d.cond ^ 1), 0);
			over = b->e.p;
			emit_taken(b, index);
			CHECK(b->e.p - over < 128);
			over[-1] = (u8)(b->e.p - over);
		}
	} else if (!b->plan.exact && !(cache.form_mask & MASK_INSIDE_PATHS)) {
		emit_side_apart(b, index);
	} else {
		struct pending_side *s = &b->sides[b->nr_sides++];

		emit_whole(&b->e, 6);
		emit2(&b->e, 0x0f, 0x80 | i->d.cond);
		emit_u32(&b->e, 0);
		s->insn = index;
		s->rel32 = b->e.p - 4;
	}
	b->side_end = index + 1;
}

static void note_spill_range(struct build *b, const u8 *begin, u16 mask, u32 insn)
{
	struct spill_range *r = &b->spill_ranges[b->nr_spill_ranges++];
	const u8 *code = code_at(b->block->code);

	CHECK(b->nr_spill_ranges <= SPILL_RANGES_MAX);
	*r = (struct spill_range){(u16)(begin - code), (u16)(b->e.p - code), mask, 0, (u8)insn, 0};
}

void branch_spill_range(struct build *b, const u8 *begin, u16 mask)
{
	note_spill_range(b, begin, mask, 0);
}

/*
 * Loads the target of the indirect branch or return @index into r11, rcx being spilled as well, and
 * counts the path that leaves by it, which need not spill another register then if flags are live.
 * Returns where both are spilled.
 */
static u8 *emit_target(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	/* An exact block leaves with nothing spilled. */
	bool early = !i->live || b->plan.exact;
	u8 *begin;

	if (early)
		emit_path_count(b, index, i->live, index);
	emit_spill_target(&b->e);
	begin = b->e.p;
	if (i->d.cf == CF_RET)
		emit_load_slot(&b->e);
	else
		rewrite_load_target(&b->e, &i->d, i->bytes, i->pc);
	if (early)
		return begin;
	/* What logs is too long. */
	b->near_ends = i->role == ROLE_END && !(cache.mask & DBT_MASK_BRANCHES);
	emit_path_count(b, index, COUNT_SPILLED, index);
	b->near_ends = false;
	return begin;
}

static void emit_push_word(struct emitter *e, u64 v)
{
	if (fits_s32(v)) {
		emit1(e, 0x68);
		emit_u32(e, (u32)v);
	} else {
		u32 word = cold_word(v);

		emit2(e, 0xff, 0x35);
		emit_rel_to(e, word);
	}
}

/* The place for guest @pc that the native call at @call returns to; the code goes on behind it. */
static void emit_return_point(struct build *b, u64 pc, u32 call, u32 index)
{
	u8 *begin = b->e.p;
	struct dbt_entry *entry = emit_entry(&b->e, TABLE_RET, pc, table_set(b->plan.form));

	entry->call = call;
	entry->call_len = b->plan.insns[index - 1].d.len & 15;
	entry->block = meta_ref_of(b->block);
	b->entries[b->nr_entries++] = entry;
	b->restart = index;
	/* The store to the slot belongs to the instruction after the call. */
	note_spill_range(b, begin, TARGET_SPILLS, index + 1);
	emit_unspill_target(&b->e);
}

/* At most, with what pads. */
#define JUMP_TARGET_BYTES (10u + 9u + (cache.whole_jumps ? WHOLE_LINE : 0))

/* jmp to the guest pc in r11, by a table. */
void emit_jump_target(struct emitter *e, u32 set)
{
	emit_index_pc(e, set);
	emit_whole(e, 9);
	emit4(e, PREFIX_GS, 0xff, 0x24, 0xcd); /* jmp gs:[rcx * 8 + table] */
	emit_u32(e, jumps_at(set));
}

/* The same for a block that may be an exact one: what follows then is found by dbt_run(). */
static void emit_leave_target(struct build *b)
{
	if (b->plan.exact)
		emit_jmp(&b->e, cache.miss_code);
	else
		emit_jump_target(&b->e, table_set(b->plan.form));
}

/* The target of a native call, which turns it into the guest's call. */
static void emit_thunk(struct build *b, const struct pending_thunk *t)
{
	const struct plan_insn *i = &b->plan.insns[t->insn];
	bool direct = i->d.cf == CF_CALL;
	u16 mask = direct ? BIT(REG_RCX) : TARGET_SPILLS;
	u8 *begin;

	put_u32(t->rel32, (u32)(b->e.p - (t->rel32 + 4)));
	if (direct)
		emit_spill(&b->e, REG_RCX);
	emit_index_ring(&b->e, table_set(b->plan.form));
	begin = b->e.p;
	emit4(&b->e, PREFIX_GS, 0x8f, 0x04, 0xcd); /* pop gs:[rcx * 8 + ring] */
	emit_u32(&b->e, ring_at(table_set(b->plan.form)));
	note_spill_range(b, begin, mask | BIT(REG_RSP), t->insn + 1);
	begin = b->e.p;
	emit_push_word(&b->e, i->pc + i->d.len);
	note_spill_range(b, begin, mask, t->insn + 1);
	if (direct) {
		log_direct(b, t->insn, true);
		emit_unspill(&b->e, REG_RCX);
		emit_exit_jump(b, insn_target(&i->d, i->pc));
	} else {
		log_target(b, t->insn);
		emit_jump_target(&b->e, table_set(b->plan.form));
	}
}

void branch_call(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u64 next = i->pc + i->d.len;
	bool direct = i->d.cf == CF_CALL, checked = b->plan.checked || b->plan.exact;
	struct dbt_entry *known = checked ? NULL : i->known;
	struct pending_thunk *t;
	u8 *begin = b->e.p;
	u32 call;

	if (direct)
		emit_path_count(b, index, i->live, index);
	else
		begin = emit_target(b, index);
	/* A call of another length is another instruction, which overlaps with this one. */
	emit_whole(&b->e, 5);
	if (known && known->call_len == i->d.len) {
		emit_jmp(&b->e, known->call);
		return;
	}
	call = emit_at(&b->e);
	if (checked) {
		emit_push_word(&b->e, next);
		if (direct) {
			log_direct(b, index, false);
			emit_exit_jump(b, insn_target(&i->d, i->pc));
		} else {
			log_target(b, index);
			emit_leave_target(b);
		}
	} else {
		t = &b->thunks[b->nr_thunks++];
		t->insn = index;
		emit1(&b->e, 0xe8);
		t->rel32 = b->e.p;
		emit_u32(&b->e, 0);
	}
	if (!direct)
		branch_spill_range(b, begin, TARGET_SPILLS);
	if (!checked)
		emit_return_point(b, next, call, index + 1);
}

static void emit_ret(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u8 *begin = emit_target(b, index);

	if (!i->d.imm_size && !b->plan.checked && !b->plan.exact) {
		emit_index_ring(&b->e, table_set(b->plan.form));
		emit1(&b->e, PREFIX_GS);
		emit4(&b->e, 0x48, 0x8b, 0x0c, 0xcd); /* mov rcx, gs:[rcx * 8 + ring] */
		emit_u32(&b->e, ring_at(table_set(b->plan.form)));
		emit4(&b->e, 0x48, 0x89, 0x0c, 0x24); /* mov [rsp], rcx */
		log_target(b, index);
		emit_whole(&b->e, 1);
		emit1(&b->e, 0xc3);
		branch_spill_range(b, begin, TARGET_SPILLS);
		countdown_near(b);
		return;
	}
	branch_spill_range(b, begin, TARGET_SPILLS);
	emit4(&b->e, 0x48, 0x8d, 0xa4, 0x24); /* lea rsp, [rsp + disp32] */
	emit_u32(&b->e, 8 + (i->d.imm_size ? (u16)i->d.imm : 0));
	log_target(b, index);
	emit_leave_target(b);
	countdown_near(b);
}

static void emit_virtual(struct build *b, const struct plan_insn *i)
{
	enum dbt_stop stop = DBT_REFUSED;
	struct dbt_exit *x;

	switch (i->d.special) {
	case SP_CPUID: stop = DBT_CPUID; break;
	case SP_RDPMC: stop = DBT_RDPMC; break;
	case SP_RDTSC: stop = DBT_RDTSC; break;
	case SP_RDTSCP: stop = DBT_RDTSCP; break;
	case SP_RDRAND:
	case SP_RDSEED: stop = DBT_RDRAND; break;
	case SP_REQUEST: stop = DBT_REQUEST; break;
	case SP_MOV_TO_SEG:
	case SP_POP_SEG:
	case SP_WRGSBASE:
	case SP_LOAD_FAR:
	case SP_XGETBV:
	case SP_XSAVE: emit_exit(b, EXIT_EMULATE, i->pc); return;
	default: break;
	}
	x = emit_exit_stop(b, stop, i->pc);
	x->len = i->d.len;
	x->reg = i->d.attr & INSN_MEM ? REG_NONE : insn_rm(&i->d);
	x->size = i->d.opsize;
}

void branch_end(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u64 next = i->pc + i->d.len;
	u8 *begin;

	if (is_emulated_branch(&i->d)) {
		emit_path_count(b, index, i->live, index);
		emit_exit(b, EXIT_EMULATE, i->pc);
		return;
	}
	if (i->d.cf == CF_JMP) {
		log_direct(b, index, false);
		emit_path_exit(b, index, i->live, insn_target(&i->d, i->pc));
		return;
	}
	if (i->d.cf != CF_JMP_IND && i->d.cf != CF_RET)
		emit_path_count(b, index, i->live, index);
	switch (i->d.cf) {
	case CF_NONE: emit_virtual(b, i); break;
	case CF_JMP_IND:
		begin = emit_target(b, index);
		branch_spill_range(b, begin, TARGET_SPILLS);
		log_target(b, index);
		emit_leave_target(b);
		countdown_near(b);
		break;
	case CF_RET: emit_ret(b, index); break;
	case CF_SYSCALL: emit_exit_stop(b, DBT_SYSCALL, next); break;
	case CF_INT: emit_exit_stop(b, DBT_INT80, next); break;
	case CF_XBEGIN:
		/*
		 * A transaction may abort at any time for any reason. Ours do so at once, with
		 * status 0.
		 */
		emit_mov_imm(&b->e, REG_RAX, 0);
		log_direct(b, index, false);
		emit_exit_jump(b, insn_target(&i->d, i->pc));
		break;
	default: emit_exit_stop(b, DBT_REFUSED, i->pc);
	}
}

/* What does not go where it is guessed to counts and is looked up, by cold code. */
static u32 emit_wrong_guess(struct build *b, u32 index)
{
	u8 count[COUNT_BYTES_MAX];
	u64 w = path_weight(b, index + 1);
	u32 n = make_count(b, count, index + 1, false, w, COUNT_SPILLED), at;
	struct emitter e = cold_begin(n + JUMP_TARGET_BYTES);

	at = emit_at(&e);
	memcpy(e.p, count, n);
	e.p += n;
	emit_jump_target(&e, table_set(b->plan.form));
	return at;
}

void branch_guess(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	u32 wrong = emit_wrong_guess(b, index);
	u8 *begin;

	emit_spill_target(&b->e);
	begin = b->e.p;
	rewrite_load_target(&b->e, &i->d, i->bytes, i->pc);
	emit_compare_target(&b->e, b->plan.next_pc);
	emit_whole(&b->e, 7);
	emit2(&b->e, 0xe3, 5); /* jrcxz over the jmp */
	emit_jmp(&b->e, wrong);
	branch_spill_range(b, begin, TARGET_SPILLS);
	emit_unspill_target(&b->e);
}

void branch_fall(struct build *b)
{
	const struct insn *last = b->plan.nr_insns ? &b->plan.insns[b->plan.nr_insns - 1].d : NULL;
	bool mends = last && stores_x87_pc(last);
	u32 end = b->plan.nr_insns;

	if (!b->plan.at_place && !b->plan.undecodable && !mends) {
		emit_path_exit(b, end, b->plan.next_live, b->plan.next_pc);
		return;
	}
	emit_path_count(b, end, b->plan.next_live, end);
	if (b->plan.at_place)
		emit_exit_stop(b, DBT_PLACE, b->plan.next_pc);
	else if (b->plan.undecodable)
		emit2(&b->e, 0x0f, 0x0b); /* ud2: the same fault, at the same guest pc */
	else
		emit_exit(b, EXIT_MEND, b->plan.next_pc)->len = last->len;
}

void branch_sides_finish(struct build *b)
{
	for (u32 n = 0; n < b->nr_thunks; n++)
		emit_thunk(b, &b->thunks[n]);
	for (u32 n = 0; n < b->nr_sides; n++) {
		const struct pending_side *s = &b->sides[n];
		u32 rel = (u32)(b->e.p - (s->rel32 + 4));

		put_u32(s->rel32, rel);
		b->restart = 0;
		for (u32 f = 0; f < b->plan.nr_frags; f++)
			if (b->plan.frags[f].flags & FRAG_RESTART &&
			    b->plan.frags[f].first <= s->insn)
				b->restart = b->plan.frags[f].first;
		emit_taken(b, s->insn);
	}
}
