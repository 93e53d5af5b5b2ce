/* dbt_check(): verifies the invariants of doc/translator.md for the whole cache. */
#include "dbt/arch-priv.h"

static void check_block(const struct dbt_block *b)
{
	u32 native = b->first;
	u32 guest = 0;

	CHECK(b->start <= b->code && b->code <= b->code_end && b->code_end <= cache.hot);
	for (u32 i = 0; i < b->nr_insns; i++)
		native += block_insns(b)[i].native;
	CHECK(b->code + native <= b->code_end);
	CHECK(b->nr_frags > 0 && block_frags(b)[0].pc == b->pc && block_frags(b)[0].first == 0);
	for (u32 f = 0; f < b->nr_frags; f++) {
		const struct block_frag *frag = &block_frags(b)[f];
		u32 next = f + 1 < b->nr_frags ? frag[1].first : b->nr_insns;
		u32 len = 0;

		CHECK(frag->first <= next && next <= b->nr_insns);
		for (u32 i = frag->first; i < next; i++)
			len += insn_len_of(&block_insns(b)[i]);
		CHECK(len == frag->len);
		guest += next - frag->first;
	}
	CHECK(guest == b->nr_insns);
	for (u32 i = 0; i < b->nr_spill_ranges; i++)
		CHECK(block_spill_ranges(b)[i].begin <= block_spill_ranges(b)[i].end &&
		      block_spill_ranges(b)[i].end <= b->code_end - b->code);
	for (u32 i = 0; i < b->nr_counts; i++)
		CHECK(block_counts(b)[i].upto <= b->nr_insns);
}

/*
 * An exit that is linked to a block is in that block's list once, and in no other. Its code leads
 * there.
 */
static void check_links(const struct dbt_block *b)
{
	for (const struct dbt_exit *x = meta_at(b->in); x; x = meta_at(x->next))
		CHECK(meta_at(x->to) == b && !(b->flags & BLOCK_DEAD));
	for (u32 i = 0; i < b->nr_exits; i++) {
		const struct dbt_exit *x = &block_exits(b)[i];
		const struct dbt_block *to = meta_at(x->to);
		u32 mates = 0;

		arch_check_exit(x);
		if (!to)
			continue;
		CHECK(x->kind == EXIT_JUMP && x->target == to->pc);
		CHECK((b->flags & (BLOCK_EXACT | BLOCK_PLAIN)) ==
		      (to->flags & BLOCK_FORMS & ~BLOCK_LEARNT));
		for (const struct dbt_exit *m = meta_at(to->in); m; m = meta_at(m->next))
			mates += m == x;
		CHECK(mates == 1);
	}
}

/*
 * A block that is alive is in the map by pc, or in the one for those that sleep, and on its pages'
 * lists.
 */
static void check_maps(struct dbt_block *b)
{
	u32 state = b->flags & (BLOCK_DEAD | BLOCK_DORMANT);

	CHECK((block_find_awake(b->pc, b->flags & BLOCK_FORMS) == b) == !state);
	CHECK((block_find_dormant(b->pc, b->flags & BLOCK_FORMS) == b) == (state == BLOCK_DORMANT));
	if (b->flags & BLOCK_DEAD) {
		CHECK(!b->in);
		return;
	}
	for (u32 f = 0; f < b->nr_frags; f++) {
		const struct code_page *p = page_find(block_frags(b)[f].pc >> PAGE_SHIFT);
		const struct page_ref *ref;

		if (!block_frags(b)[f].len)
			continue;
		CHECK(p);
		for (ref = page_ref_at(p->blocks); ref && meta_at(ref->block) != b;
		     ref = page_ref_at(ref->next))
			;
		CHECK(ref);
		CHECK(!(p->flags & PAGE_CHECKED) || b->flags & BLOCK_CHECKED);
	}
}

static void check_entries(const struct hash_map *m, enum entry_table table)
{
	u32 count = 0;

	for (u32 i = 0; i < m->size; i++) {
		for (const struct dbt_entry *e = meta_at(m->heads[i]); e; e = meta_at(e->next)) {
			CHECK(entry_hash(m, e->pc) == i);
			CHECK(e->table == table && !e->dead && !e->dormant);
			CHECK(!(entry_block(e)->flags & BLOCK_DEAD));
			CHECK(arch_entry_lives(e));
			CHECK((table == TABLE_JUMP) == (entry_link(e) != 0) &&
			      arch_can_patch(entry_link(e)));
			count++;
		}
	}
	CHECK(count == m->count);
}

static void check_sleepers(const struct hash_map *m, enum entry_table table)
{
	u32 count = 0;

	for (u32 i = 0; i < m->size; i++) {
		for (const struct dbt_entry *e = meta_at(m->heads[i]); e; e = meta_at(e->next)) {
			CHECK(entry_hash(m, e->pc) == i && e->table == table);
			CHECK(e->dormant && !e->dead && entry_block(e)->flags & BLOCK_DORMANT);
			CHECK(arch_entry_lives(e));
			count++;
		}
	}
	CHECK(count == m->count);
}

/*
 * How many slots of the thread's jump table have @e: it has another number at each size of the
 * table.
 */
static u32 slots_of(const struct dbt_thread *t, u32 set, const struct dbt_entry *e)
{
	const u64 *table = thread_table(t, jumps_at(set));
	u32 mask = t->tables[set].jump_mask >> cache.index_shift, slots = 0, last = ~0u;

	for (u32 size = TABLE_FIRST; size - 1 <= mask; size *= 4) {
		u32 at = (u32)(e->pc >> cache.index_shift) & (size - 1);

		slots += at != last && table[at] == code_addr(e->code);
		last = at;
	}
	return slots;
}

/*
 * Whether @code is what a native return may get: a return point, dead or alive, or the miss path.
 */
static bool is_return_point(u64 code, u32 set)
{
	const struct dbt_block *b = block_by_code(code);
	const struct dbt_entry *e;

	if (code == code_addr(cache.ret_miss_code[set]))
		return true;
	if (!b)
		return false;
	block_for_each_entry (b, e)
		if (e->table == TABLE_RET && code_addr(e->code) == code)
			return table_set(b->flags) == set;
	return false;
}

/* Each slot leads to code that compares what is wanted, or to the miss path. */
static void check_set(const struct dbt_thread *t, u32 set)
{
	const u64 *jump = thread_table(t, jumps_at(set)), *ring = thread_table(t, ring_at(set));
	u32 taken = 0;

	for (u32 i = 0; i <= t->tables[set].jump_mask >> cache.index_shift; i++)
		taken += jump[i] != code_addr(cache.miss_code);
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		const struct dbt_block *b = meta_at(cache.by_code[i]);
		const struct dbt_entry *e;

		block_for_each_entry (b, e)
			if (e->table == TABLE_JUMP && table_set(b->flags) == set)
				taken -= slots_of(t, set, e);
	}
	CHECK(taken == 0);
	for (u32 i = 0; i <= t->tables[set].ring_mask >> 3; i++)
		CHECK(is_return_point(ring[i], set));
}

static void check_tables(const struct dbt_thread *t)
{
	for (u32 set = 0; t->epoch == cache.epoch && set < table_sets(); set++)
		check_set(t, set);
}

static void check_ranges(void)
{
	for (u32 i = 0; i < cache.nr_ranges; i++) {
		CHECK(cache.ranges[i].start < cache.ranges[i].end);
		CHECK(i == 0 || cache.ranges[i - 1].end <= cache.ranges[i].start);
	}
}

void cache_verify(const struct dbt_thread *t)
{
	u32 end = 0;

	CHECK(cache.hot <= cache.cold && cache.cold <= cache.floor);
	CHECK(cache.meta_used <= cache.meta_mapped && cache.meta_mapped <= cache.meta_size);
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);

		CHECK(b->start >= end);
		end = b->code_end;
		check_block(b);
		arch_check_jumps(b);
		check_links(b);
		check_maps(b);
	}
	for (u32 table = 0; table < TABLES; table++) {
		check_entries(&cache.tables[table], table);
		check_entries(&cache.plain_tables[table], table);
		check_sleepers(&cache.dormant.tables[table], table);
		check_sleepers(&cache.dormant.plain_tables[table], table);
	}
	check_ranges();
	check_tables(t);
	deadline_verify(t);
}

void dbt_check(struct dbt_thread *t)
{
	cache_lock(t);
	cache_verify(t);
	cache_unlock(t);
}
