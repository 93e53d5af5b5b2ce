/*
 * Taken branches of a thread, as far as the mask has them logged. Each choice of kinds has a ring
 * of its own, so that the last ones of each are there, however many others have been taken since.
 * The ring of open calls is a stack: a call goes on top, and a return takes the top off and leaves
 * 0 there. So what deep recursion has overwritten is not told again.
 */
#include "base/check.h"
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

static u64 *ring_of(const struct dbt_thread *t, u32 i)
{
	return thread_table(t, BRANCH_RING_AT(i));
}

static u64 *open_of(const struct dbt_thread *t)
{
	return thread_table(t, BRANCH_OPEN_AT);
}

u64 dbt_mask_branches(u64 mask, u32 kinds)
{
	u32 i;

	if (kinds & TRACE_OPEN_CALLS)
		return mask | (u64)TRACE_OPEN_CALLS << 16;
	for (i = 0; i < DBT_BRANCH_RINGS; i++)
		if (branch_kinds(mask, i) == kinds)
			return mask;
	for (i = 0; i < DBT_BRANCH_RINGS - 1 && branch_kinds(mask, i); i++)
		;
	return mask | (u64)(kinds & 0xfe) << (16 + 8 * i);
}

void branch_rings_catch_up(struct dbt_thread *t)
{
	u64 now = cache.mask & DBT_MASK_BRANCHES;

	if (likely(t->logged == now))
		return;
	CHECK(!now || thread_reaches(t, DBT_LOG_AT + DBT_LOG_SIZE));
	for (u32 i = 0; i < DBT_BRANCH_RINGS; i++)
		if (branch_kinds(now, i) && branch_kinds(now, i) != branch_kinds(t->logged, i))
			memset(ring_of(t, i), 0, 256 * sizeof(u64));
	if (branch_open_calls(now) && !branch_open_calls(t->logged))
		sys_madvise(open_of(t), 65536 * sizeof(u64), MADV_DONTNEED);
	t->logged = now;
}

void branch_taken(struct dbt_thread *t, u64 from, u64 to, enum trace_branch_type type)
{
	u64 word = from | (u64)type << BRANCH_TYPE_SHIFT, mask = cache.mask;

	for (u32 i = 0; i < DBT_BRANCH_RINGS; i++) {
		if (!(branch_kinds(mask, i) & BIT(type)))
			continue;
		ring_of(t, i)[t->branch_at[i]] = word;
		ring_of(t, i)[t->branch_at[i] + 1] = to;
		t->branch_at[i] += 2;
	}
	if (!branch_open_calls(mask))
		return;
	if (type == TRACE_BRANCH_CALL || type == TRACE_BRANCH_CALL_IND) {
		open_of(t)[t->open_calls] = word;
		open_of(t)[t->open_calls + 1] = to;
		t->open_calls += 2;
	} else if (type == TRACE_BRANCH_RETURN) {
		t->open_calls -= 2;
		open_of(t)[t->open_calls] = 0;
	}
}

u32 dbt_branches(const struct dbt_thread *t, u32 kinds, struct trace_branch *out, u32 max)
{
	bool open = kinds & TRACE_OPEN_CALLS;
	const u64 *ring = open ? open_of(t) : NULL;
	u32 size = open ? 65536 : 256, at = open ? t->open_calls : 0, n = 0;

	for (u32 i = 0; !open && kinds && i < DBT_BRANCH_RINGS; i++) {
		if ((branch_kinds(t->logged, i) & kinds) != kinds)
			continue;
		ring = ring_of(t, i);
		at = t->branch_at[i];
		if (branch_kinds(t->logged, i) == kinds)
			break;
	}
	if (!ring || (open && !branch_open_calls(t->logged)))
		return 0;
	for (u32 seen = 0; n < max && seen < size; seen += 2) {
		u64 word;

		at = (at - 2) % size;
		word = ring[at];
		if (!word)
			break;
		out[n].from = word & (BIT(BRANCH_TYPE_SHIFT) - 1);
		out[n].to = ring[at + 1];
		out[n].type = word >> BRANCH_TYPE_SHIFT;
		n += open || kinds & BIT(out[n].type);
	}
	return n;
}
