/* Turns a plan into code and a block. */
#include "dbt/arch/x86_64/branch-priv.h"
#include "dbt/arch/x86_64/insn-cost.h"
#include "dbt/arch/x86_64/insn-floats.h"
#include "dbt/arch/x86_64/rewrite-priv.h"

static struct build build used_late; /* too large for the stack; used with the lock */

#define ONCE 256u

/* Where blocks were that died as soon as they were made; more are not remembered. */
static struct {
	u32 n;
	struct {
		u64 pc;
		u32 why, form;
	} at[ONCE];
} once used_late;

static void once_note(u64 pc, enum exit_kind why, u32 form)
{
	for (u32 i = 0; i < once.n; i++)
		if (once.at[i].pc == pc && once.at[i].form == form)
			return;
	if (once.n == ONCE)
		return;
	once.at[once.n].pc = pc;
	once.at[once.n].why = why;
	once.at[once.n++].form = form;
}

/* Copies few bytes, a multiple of 2, to *@to, which moves behind them. */
static void keep(u16 **to, const void *from, u64 size)
{
	const u8 *bytes = from;
	u16 *at = *to;
	u64 i = 0;

	for (; i + 8 <= size; i += 8)
		__builtin_memcpy((u8 *)at + i, bytes + i, 8);
	for (; i < size; i += 2)
		__builtin_memcpy((u8 *)at + i, bytes + i, 2);
	*to = at + size / 2;
}

void arch_translate_soon(void)
{
	populate_own(&build, sizeof(build));
}

/*
 * Copies the block's lists into one piece, that of the strictest alignment first. Returns what
 * comes behind: room for the references from its pages.
 */
static struct page_ref *keep_lists(struct dbt_block *block, const struct build *b)
{
	const struct plan *plan = &b->plan;
	u64 frags = plan->nr_frags * sizeof(*plan->frags);
	u64 insns = ALIGN_UP(plan->nr_insns * sizeof(*b->insns), 2);
	u64 spill_ranges = b->nr_spill_ranges * sizeof(*b->spill_ranges);
	u64 counts = b->nr_counts * sizeof(*b->counts);
	u64 lists = ALIGN_UP(frags + insns + spill_ranges + counts, 8);
	u16 *to = meta_alloc(lists + plan->nr_pages * sizeof(struct page_ref));

	block->lists = (const u8 *)to;
	keep(&to, plan->frags, frags);
	block->nr_frags = (u8)plan->nr_frags;
	keep(&to, b->insns, insns);
	block->nr_insns = (u8)plan->nr_insns;
	keep(&to, b->spill_ranges, spill_ranges);
	block->nr_spill_ranges = (u16)b->nr_spill_ranges;
	keep(&to, b->counts, counts);
	block->nr_counts = (u16)b->nr_counts;
	return (struct page_ref *)(block->lists + lists);
}

/*
 * An instruction whose operand is relative to rip: if it can be reached from here, all that changes
 * is the displacement. False: it needs more. rewrite_insn() would do the same.
 */
static bool emit_rip_near(struct emitter *e, const struct plan_insn *i)
{
	u64 target;
	u8 *at = e->p;
	s32 disp;

	__builtin_memcpy(&disp, i->bytes + i->d.disp_off, 4);
	target = i->pc + i->d.len + (u64)(s64)disp;
	/* lea has a shorter form for what is low. */
	if (target <= 0xffffffffu || !emit_reaches(e, target))
		return false;
	emit_insn(e, i->bytes, i->d.len);
	disp = (s32)(target - emit_addr(e));
	__builtin_memcpy(at + i->d.disp_off, &disp, 4);
	return true;
}

static void emit_copy(struct build *b, const struct plan_insn *i)
{
	const u8 *code = code_at(b->block->code);
	const struct insn *d = &i->d;
	struct rewritten r;
	struct insn full;

	if (d->attr & INSN_BRIEF) {
		if (!(d->attr & INSN_RIPREL)) {
			emit_insn(&b->e, i->bytes, d->len);
			return;
		}
		if (emit_rip_near(&b->e, i))
			return;
		CHECK(insn_decode(&full, i->bytes, INSN_MAX) == d->len);
		d = &full;
	}
	r = rewrite_insn(&b->e, d, i->bytes, i->pc);
	if (!r.mask)
		return;
	CHECK(b->nr_spill_ranges < SPILL_RANGES_MAX);
	b->spill_ranges[b->nr_spill_ranges++] = (struct spill_range){
		(u16)(r.begin - code), (u16)(r.end - code), r.mask, r.moved, 0, 0};
}

/* A string instruction: its accesses are told behind it, or when it is left between iterations. */
static void emit_repeated(struct build *b, const struct plan_insn *i)
{
	u32 n = b->nr_spill_ranges;
	const u8 *begin = b->e.p;

	emit_copy(b, i);
	if (n == b->nr_spill_ranges)
		branch_spill_range(b, begin, 0);
	b->spill_ranges[n].repeats = 1;
}

/* Whether instruction @n is copied as it is, and nothing else is to be done. */
static bool is_plain(const struct build *b, const struct plan_insn *i)
{
	return i->role == ROLE_COPY && (i->d.attr & (INSN_BRIEF | INSN_RIPREL)) == INSN_BRIEF &&
	       i->counts == PLAN_COUNTS_NONE && !b->hooks;
}

/* Before instruction @n, which may fuse with a branch behind it. */
static void emit_whole_pair(struct build *b, u32 n)
{
	const struct plan_insn *i = &b->plan.insns[n];

	/* The branch may get prefixes that align its displacement. */
	if (n + 1 < b->plan.nr_insns && i[1].role == ROLE_SIDE && i[1].d.cf == CF_JCC &&
	    fuses(&i->d))
		emit_whole(&b->e, i->d.len + 6u + 3u);
}

/* Emits the main line. insns[] says afterwards how long each instruction's native form is. */
static void emit_insns(struct build *b)
{
	const struct plan *plan = &b->plan;
	u32 code = b->block->code, start = code;
	u32 n = 0;

	b->hooks = plan->exact || cache.form_mask & DBT_MASK_MEMORY;
	for (; n < plan->nr_insns; n++) {
		const struct plan_insn *i = &plan->insns[n];

		if (unlikely(cache.whole_jumps))
			emit_whole_pair(b, n);
		/* Of most instructions all is said by the lengths, which are the same. */
		if (n && is_plain(b, i)) {
			b->insns[n - 1].native = (u16)(emit_at(&b->e) - start);
			start = emit_at(&b->e);
			emit_insn(&b->e, i->bytes, i->d.len);
			continue;
		}
		if (b->block->flags & BLOCK_EXACT)
			countdown_before(b, n);
		else if (i->counts != PLAN_COUNTS_NONE && !plan->exact)
			branch_count_before(b, n);
		if (n)
			b->insns[n - 1].native = (u16)(emit_at(&b->e) - start);
		else
			b->block->first = (u16)(emit_at(&b->e) - code);
		start = emit_at(&b->e);
		if (b->hooks)
			accesses_record(b, n);
		switch (i->role) {
		case ROLE_COPY:
		case ROLE_TRAP:
			if (b->hooks && accesses_repeat(b, n))
				emit_repeated(b, i);
			else
				emit_copy(b, i);
			break;
		case ROLE_ELIDE: log_direct(b, n, false); break;
		case ROLE_SIDE: branch_side(b, n); break;
		case ROLE_CALL: branch_call(b, n); break;
		case ROLE_GUESS: branch_guess(b, n); break;
		case ROLE_END: branch_end(b, n); break;
		}
		if (b->hooks)
			accesses_record_after(b, n);
	}
	if (plan->nr_insns)
		b->insns[plan->nr_insns - 1].native = (u16)(emit_at(&b->e) - start);
}

/* Whether control gets past the last instruction of the plan. */
static bool falls_through(const struct build *b)
{
	const struct plan *plan = &b->plan;
	const struct plan_insn *last = &plan->insns[plan->nr_insns - 1];
	const struct dbt_entry *known;

	if (plan->nr_insns == 0)
		return true;
	if (last->role == ROLE_END)
		return false;
	if (last->role != ROLE_CALL)
		return true;
	/* Past a call only if its return point is in this block. */
	known = b->nr_entries ? b->entries[b->nr_entries - 1] : NULL;
	return known && known->table == TABLE_RET && known->pc == plan->next_pc && known->call;
}

static void save_bytes(struct dbt_block *block, const struct plan *plan)
{
	u8 *to;
	u32 n = 0;

	for (u32 i = 0; i < plan->nr_insns; i++)
		n += plan->insns[i].d.len;
	n += plan->undecodable ? plan->bad_len : 0;
	to = meta_alloc(n);
	block->bytes = meta_ref_of(to);
	for (u32 i = 0; i < plan->nr_insns; i++) {
		memcpy(to, plan->insns[i].bytes, plan->insns[i].d.len);
		to += plan->insns[i].d.len;
	}
	block->nr_bytes = (u16)n;
	if (plan->undecodable)
		memcpy(to, plan->bad, plan->bad_len);
}

/*
 * Emits the comparison of the guest's bytes with those that the block was made from. If they differ
 * control goes to @stale. It changes no flags: jrcxz tells whether a difference is 0.
 */
static void emit_compare_bytes(struct build *b, u32 stale)
{
	static const u8 load[9][4] = {
		[1] = {3, 0x0f, 0xb6, 0x01}, /* movzx eax, byte [rcx] */
		[2] = {3, 0x0f, 0xb7, 0x01}, /* movzx eax, word [rcx] */
		[4] = {2, 0x8b, 0x01},       /* mov eax, [rcx] */
		[8] = {3, 0x48, 0x8b, 0x01}, /* mov rax, [rcx] */
	};
	const struct dbt_block *block = b->block;
	struct emitter *e = &b->e;
	const u8 *bytes = meta_at(block->bytes);
	u32 n = block->nr_bytes, size;
	u8 *begin;

	emit_spill(e, REG_RAX);
	emit_spill(e, REG_RCX);
	begin = e->p;
	for (u32 at = 0; at < n; at += size) {
		u64 want = 0;

		size = n - at >= 8 ? 8 : n - at >= 4 ? 4 : n - at >= 2 ? 2 : 1;
		/* The last bytes, together with some before them. */
		if (size < 8 && n >= 8) {
			at = n - 8;
			size = 8;
		}
		memcpy(&want, bytes + at, size);
		emit_mov_imm(e, REG_RCX, block->pc + at);
		emit_bytes(e, &load[size][1], load[size][0]);
		emit_mov_imm(e, REG_RCX, -want);
		emit4(e, 0x48, 0x8d, 0x0c, 0x01); /* lea rcx, [rcx + rax] */
		emit2(e, 0xe3, 5);                /* jrcxz over the jmp */
		emit_jmp(e, stale);
	}
	branch_spill_range(b, begin, (u16)(BIT(REG_RAX) | BIT(REG_RCX)));
	emit_unspill(e, REG_RCX);
	emit_unspill(e, REG_RAX);
}

static u32 insn_cost(const struct insn *d)
{
	return path_cost(insn_cost_class(d), (d->mem_read > 0) + (d->stack_read > 0),
			 (d->mem_write > 0) + (d->stack_write > 0), insn_floats(d));
}

/* All of a plan's, each decoded as a whole; used with the lock. */
static struct insn whole_insns[BLOCK_INSNS_MAX] used_late;

static void decode_whole(const struct plan *plan)
{
	/* The first time. */
	if (!whole_insns[0].len)
		populate_own(whole_insns, sizeof(whole_insns));
	for (u32 i = 0; i < plan->nr_insns; i++) {
		const struct plan_insn *insn = &plan->insns[i];

		if (insn->d.attr & INSN_BRIEF)
			CHECK(insn_decode(&whole_insns[i], insn->bytes, INSN_MAX) == insn->d.len);
		else
			whole_insns[i] = insn->d;
	}
}

/* For its paths. */
static u32 describe(struct build *b)
{
	const struct plan *plan = &b->plan;
	bool traced = cache.form_mask & DBT_MASK_TRACE;
	struct path_details details = {0};
	u64 targets[BLOCK_INSNS_MAX];
	u32 costs[BLOCK_INSNS_MAX];
	u32 n = 0;

	if (traced || cache.form_mask & DBT_MASK_MEMORY)
		decode_whole(plan);
	for (u32 i = 0; i < plan->nr_insns; i++) {
		const struct plan_insn *insn = &plan->insns[i];

		if (path_insn_is_direct(insn->class))
			targets[n++] = insn_target(&insn->d, insn->pc);
		if (traced)
			costs[i] = insn_cost(&whole_insns[i]);
	}
	details.costs = costs;
	if (cache.form_mask & DBT_MASK_MEMORY)
		accesses_plan(b, whole_insns, &details);
	return path_block_add(plan->frags, plan->nr_frags, b->insns, plan->nr_insns, targets, n,
			      traced ? &details : NULL);
}

_Static_assert((u32)CLASS_COND == PATH_COND && (u32)CLASS_CALL == PATH_CALL &&
		       (u32)CLASS_BRANCH == PATH_BRANCH,
	       "both name the same things");

struct dbt_block *arch_translate(u64 pc, enum exit_kind why, u32 form, struct dbt_exit *from,
				 u64 *fault)
{
	struct build *b = &build;
	struct plan *plan = &b->plan;
	struct dbt_block *block;
	struct page_ref *refs;
	u32 stale = 0, front = 0;

	cache.form_mask = cache.mask;
	if (form & BLOCK_PLAIN)
		cache.form_mask &= ~(u64)(DBT_MASK_TRACE | DBT_MASK_MEMORY | DBT_MASK_FILTER);
	if (plan_build(plan, pc, form, fault))
		return NULL;
	cache_fill();
	block = meta_alloc(sizeof(*block));
	b->block = block;
	b->nr_exits = b->nr_sides = b->nr_thunks = b->nr_spill_ranges = b->nr_counts =
		b->nr_entries = 0;
	b->restart = b->side_end = 0;
	b->exits = meta_alloc(plan->nr_exits * sizeof(*b->exits));
	CHECK(b->exits == block_exits(block));
	count_begin(b);
	if (form_describes_paths())
		block->path_block = describe(b);

	block->pc = pc;
	block->flags = (u16)form;
	/*
	 * Predictors of indirect branches tell targets apart by low bits of their addresses, among
	 * others. Longer code has been found that needs these. Of what is linked only, more blocks
	 * fit into a line if they are not aligned.
	 */
	if (!(cache.mask & (DBT_MASK_ANY_DEADLINES | DBT_MASK_PATHS)) && why == EXIT_MISS)
		cache.hot = (u32)ALIGN_UP(cache.hot, 16);
	block->start = cache.hot;
	b->e.p = code_at(cache.hot);
	if (plan->checked) {
		block->flags |= BLOCK_CHECKED;
		save_bytes(block, plan);
		stale = branch_stale(b);
	}
	if (why == EXIT_MISS && !plan->exact) {
		b->entries[b->nr_entries++] = emit_entry(&b->e, TABLE_JUMP, pc, 0);
		emit_unspill_target(&b->e);
	}
	if (from && from->counts && !code_is_shared(from->patch)) {
		front = emit_at(&b->e);
		block->flags |= BLOCK_FRONT;
		memcpy(b->e.p, (const u8 *)code_addr(from->stub), from->counts);
		b->e.p += from->counts;
	}
	block->code = emit_at(&b->e);
	if (plan->checked)
		emit_compare_bytes(b, stale);
	emit_insns(b);
	if (falls_through(b)) {
		block->flags |= BLOCK_FALLS;
		branch_fall(b);
	}
	branch_sides_finish(b);
	cache.hot = emit_at(&b->e);
	block->code_end = cache.hot;
	CHECK(block->code_end - block->code < 65536);

	block->nr_exits = (u16)b->nr_exits;
	refs = keep_lists(block, b);
	block_insert(block, plan->pages, plan->nr_pages, refs);
	for (u32 i = 0; i < b->nr_entries; i++) {
		b->entries[i]->block = meta_ref_of(block);
		entry_add(b->entries[i]);
	}
	for (u32 i = 0; i < b->nr_exits; i++) {
		struct dbt_exit *x = &b->exits[i];
		struct dbt_block *to;

		if (x->kind != EXIT_JUMP || plan->checked || x->counts)
			continue;
		to = block_find(x->target, form & (BLOCK_EXACT | BLOCK_PLAIN));
		if (to)
			exit_link(x, to);
	}
	if (front && !from->to)
		exit_link_by(from, block, front);
	if (plan->once) {
		block_kill(block);
		once_note(pc, why, form & BLOCK_PLAIN);
	}
	return block;
}

void arch_translate_once_more(void)
{
	u64 fault;

	for (u32 i = 0; i < once.n && code_thaw() && cache_has_room(); i++) {
		u64 pc = once.at[i].pc;
		u32 form = once.at[i].form;

		if (!block_find(pc, form) && exec_find(pc))
			(void)arch_translate(pc, (enum exit_kind)once.at[i].why, form, NULL,
					     &fault);
	}
	once.n = 0;
}

bool arch_block_current(struct dbt_block *b)
{
	u8 now[INSN_MAX * 16];
	const u8 *was = meta_at(b->bytes);
	u32 left = b->nr_bytes;
	u64 pc = b->pc;

	while (left) {
		u32 n = left < sizeof(now) ? left : (u32)sizeof(now);

		if (dbt_fetch(now, pc, n) != n || memcmp(now, was, n) != 0)
			return false;
		pc += n;
		was += n;
		left -= n;
	}
	return true;
}
