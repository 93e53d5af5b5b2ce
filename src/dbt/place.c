/*
 * Places: addresses before whose instruction a thread stops each time and tells.
 *
 * A block never goes past a place but ends in front of it. The block that begins at one has no
 * instruction: it leaves the cache, so wherever control comes from the place is told of. Then the
 * dispatcher goes on with a block of another form, BLOCK_PASSES, which is that one instruction and
 * to which nothing is linked. Code without places is as it would be otherwise, to the byte.
 *
 * Where accesses are traced, gathers and scatters are places as well: C code looks at the vector
 * registers then, and appends the elements' accesses to the trace.
 *
 * A thread that has been told of and is interrupted before the instruction has retired, by a signal
 * or a fault, is not told of again when it comes back to it at once.
 */
#include "dbt/arch-priv.h"

struct dbt_places places;

bool place_search(u64 pc)
{
	u32 lo = 0, hi = places.nr;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (places.pc[mid] < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < places.nr && places.pc[lo] == pc;
}

static bool same(const u64 *pcs, u32 n)
{
	if (n != places.nr)
		return false;
	for (u32 i = 0; i < n; i++)
		if (pcs[i] != places.pc[i])
			return false;
	return true;
}

void dbt_set_places(struct dbt_thread *t, const u64 *pcs, u32 n)
{
	CHECK(n <= DBT_PLACES);
	cache_lock(t);
	if (!same(pcs, n)) {
		for (u32 i = 0; i < n; i++)
			places.pc[i] = pcs[i];
		places.nr = n;
		flush_all(t->id);
	}
	cache_unlock(t);
}

void dbt_add_place(struct dbt_thread *t, u64 pc)
{
	u32 i;

	CHECK(places.nr < DBT_PLACES);
	cache_lock(t);
	for (i = places.nr++; i && places.pc[i - 1] > pc; i--)
		places.pc[i] = places.pc[i - 1];
	places.pc[i] = pc;
	cache_unlock(t);
	dbt_invalidate(t, pc, 1);
}

void place_reached(struct dbt_thread *t)
{
	t->traced = TRACE_NONE;
	t->pass_pc = guest_pc(t);
	if (place_at(t->pass_pc))
		cache.ops.place(t);
	if (cache.mask & DBT_MASK_MEMORY && !t->untraced && t->pass_pc == guest_pc(t))
		arch_tell_elements(t);
}

void place_left(struct dbt_thread *t)
{
	if (guest_pc(t) != t->pass_pc)
		t->pass_pc = 0;
}

u32 place_form(struct dbt_thread *t, u32 form)
{
	if (likely(!t->pass_pc))
		return form;
	if (t->pass_pc != guest_pc(t)) {
		t->pass_pc = 0;
		return form;
	}
	/* Nobody takes from a budget for it, so it is looked at the meter behind it. */
	if (cache_has_deadlines() && !(form & BLOCK_EXACT)) {
		deadline_one(t);
		form |= BLOCK_EXACT;
	}
	return form | BLOCK_PASSES;
}
