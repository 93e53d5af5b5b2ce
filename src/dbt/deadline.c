/*
 * Deadlines: a thread stops at the very instruction at which a quantity of its meter reaches a
 * number.
 *
 * There is no running total to compare, since paths are counted by class. So while a process has
 * deadlines each path takes its length from a *budget* as well, and leaves the cache when that goes
 * below 0. Budgets are many for the same reason as the words of a class: the total of those given
 * out is never more than what remains to the nearest deadline, less DEADLINE_SLACK, whichever of
 * them ends first. Then the meter is read, and what remains is shared out anew, by what each budget
 * has been used for. The code goes on where it has left, so nothing is translated for it.
 *
 * When little remains the thread executes *exact code*: blocks that end with the first branch, in
 * which each instruction first takes 1 of `left` and leaves if there is nothing. A quantity grows
 * by at most 1 with an instruction; so that many instructions can be executed as remain to the
 * nearest deadline of any quantity, and then one looks again. Exact code does not touch the flags,
 * and it begins so early that flags which were dead where a path was counted have been written
 * again: what is found at the deadline is what would be found natively.
 */
#include "dbt/arch-priv.h"

/* From here on budgets would end after a few paths each. */
#define EXACT_BELOW (DEADLINE_SLACK + 160u)
/* So that a thread looks at its meter now and then, and the sums below do not overflow. */
#define SHARED_MAX (1u << 22)
/* Never spent. The top byte is 0, as of all that are given out: code may look at nothing else. */
#define NO_LIMIT (1ull << 55)

void dbt_deadlines(struct dbt_thread *t, const u64 *sums)
{
	struct dbt_deadline *d = &t->deadline;
	u32 was = d->quantity, q = METER_QUANTITIES, n = 0;
	u64 old = was < METER_QUANTITIES ? d->at_sum[was] : 0;

	for (u32 i = 0; i < METER_QUANTITIES; i++) {
		d->at_sum[i] = sums[i];
		if (sums[i] == DBT_NO_DEADLINE)
			continue;
		q = i;
		n++;
	}
	d->quantity = n == 1 ? q : METER_QUANTITIES;
	d->from = 0;
	/* As after each sample: what remained to the old one tells what remains to the new one. */
	if (n == 1 && q == was && d->tracked && d->state == DEADLINE_MEASURED &&
	    sums[q] - (old - d->remaining) < 1ull << 63)
		d->remaining += sums[q] - old;
	else
		d->state = DEADLINE_STALE;
}

u64 dbt_deadline_ip(const struct dbt_thread *t)
{
	return t->deadline.from ? t->deadline.from : guest_pc(t);
}

u64 dbt_deadline_sum(struct dbt_thread *t, enum meter_quantity q)
{
	const struct dbt_deadline *d = &t->deadline;

	if (d->quantity == q && d->tracked && d->state == DEADLINE_MEASURED)
		return d->at_sum[q] - d->remaining;
	return meter_sum(dbt_meter(t), q);
}

/* How much remains to the nearest deadline; 0 if one was reached. */
static u64 measure(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;
	u64 sums[METER_QUANTITIES], remaining = DBT_NO_DEADLINE;
	const u64 *at = d->at_sum;
	u32 n = 0;

	d->tracked = false;
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		if (at[q] != DBT_NO_DEADLINE)
			n = q + 1;
	if (!n)
		return DBT_NO_DEADLINE;
	if (d->quantity < METER_QUANTITIES)
		sums[d->quantity] = meter_sum(dbt_meter(t), d->quantity);
	else
		meter_sums(dbt_meter(t), n, sums);
	for (u32 q = 0; q < n; q++)
		if (at[q] != DBT_NO_DEADLINE)
			remaining = min_u64(remaining, at[q] > sums[q] ? at[q] - sums[q] : 0);
	/* One that has passed is not known to be exact. */
	d->tracked = d->quantity < METER_QUANTITIES && at[d->quantity] >= sums[d->quantity];
	return remaining;
}

static void look(struct dbt_thread *t)
{
	if (t->deadline.state != DEADLINE_STALE)
		return;
	t->deadline.remaining = measure(t);
	t->deadline.state = DEADLINE_MEASURED;
}

/* Exact code has executed what it was to. */
static void exact_done(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	d->state = DEADLINE_STALE;
	if (d->quantity == METER_INSTRUCTIONS && d->tracked) {
		d->remaining = 0;
		d->state = DEADLINE_MEASURED;
	}
}

void deadline_tell(struct dbt_thread *t)
{
	/* The last instruction was the last one of its block. */
	if (t->deadline.state == DEADLINE_EXACT && !t->deadline.left)
		exact_done(t);
	for (;;) {
		look(t);
		if (t->deadline.state != DEADLINE_MEASURED || t->deadline.remaining)
			return;
		cache.ops.deadline(t);
	}
}

/* What paths have taken from the budgets since they were given. */
static u64 used_up(const struct dbt_deadline *d)
{
	u64 used = 0;

	for (u32 i = 0; i < DBT_BUDGETS; i++)
		used += d->given[i] - d->budget[i];
	return used;
}

/*
 * Most of @total goes where it was used last, and some everywhere: a loop, which uses one budget,
 * is not stopped more often than a program that goes by all of them.
 */
static void share_out(struct dbt_deadline *d, u64 total)
{
	u64 used[DBT_BUDGETS], sum = 0, even;

	for (u32 i = 0; i < DBT_BUDGETS; i++) {
		used[i] = d->given[i] - d->budget[i];
		if (used[i] > 2 * SHARED_MAX)
			used[i] = 0;
		sum += used[i];
	}
	total = min_u64(total, SHARED_MAX);
	even = sum ? total / 8 / DBT_BUDGETS : total / DBT_BUDGETS;
	total -= even * DBT_BUDGETS;
	for (u32 i = 0; i < DBT_BUDGETS; i++)
		d->given[i] = d->budget[i] = even + (sum ? total * used[i] / sum : 0);
}

static void set_budgets(struct dbt_deadline *d)
{
	if (d->remaining != DBT_NO_DEADLINE) {
		share_out(d, d->remaining - DEADLINE_SLACK);
	} else {
		for (u32 i = 0; i < DBT_BUDGETS; i++)
			d->given[i] = d->budget[i] = NO_LIMIT;
	}
	d->state = DEADLINE_BUDGETS;
}

bool deadline_settle(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	look(t);
	if (d->state != DEADLINE_MEASURED)
		return true;
	if (!d->remaining)
		return false;
	if (d->remaining > EXACT_BELOW) {
		set_budgets(d);
	} else {
		d->left = d->remaining;
		d->from = 0;
		d->state = DEADLINE_EXACT;
	}
	return true;
}

void deadline_one(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	d->left = 1;
	d->from = 0;
	d->tracked = false;
	d->state = DEADLINE_EXACT;
}

void deadline_no_resume(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	if (likely(!d->resuming))
		return;
	d->resuming = 0;
	d->state = DEADLINE_STALE;
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		dbt_meter(t)->count[0][q] -= d->ahead[q];
}

/* Says by how much the meter is ahead of what @b has executed. */
static void set_ahead(struct dbt_thread *t, const struct dbt_block *b)
{
	struct dbt_deadline *d = &t->deadline;
	u64 *count = dbt_meter(t)->count[0];

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		d->ahead[q] = count[q];
	if (d->index != DEADLINE_TAKEN)
		arch_meter_correct(t, b, d->at - b->code, d->index);
	for (u32 q = 0; q < METER_QUANTITIES; q++) {
		d->ahead[q] -= count[q];
		count[q] += d->ahead[q];
	}
}

/* The pc at which the code at @at goes on. */
static u64 next_pc(const struct dbt_block *b, u32 at, u32 index)
{
	const struct dbt_exit *x = b->exits, *next = NULL;

	if (index != DEADLINE_TAKEN)
		return arch_insn_pc(b, index);
	/* The exit whose jump follows. */
	for (u32 i = 0; i < b->nr_exits; i++, x++)
		if (x->patch > at && (!next || x->patch < next->patch))
			next = x;
	CHECK(next);
	return next->target;
}

void deadline_left(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;
	const struct dbt_block *b = block_by_code(code_addr(d->at));

	CHECK(b);
	guest_set_pc(t, next_pc(b, d->at, d->index));
	if (t->exit_id == EXIT_ID_EXACT) {
		if (d->index)
			d->from = arch_insn_pc(b, d->index - 1);
		/* Of an exact block nothing is counted before its end. */
		arch_meter_correct(t, b, 0, d->index);
		exact_done(t);
		return;
	}
	/* The meter is ahead, so more may remain than this. */
	set_ahead(t, b);
	d->resuming = 1;
	d->resume_pc = code_addr(d->at);
	d->remaining -= used_up(d);
	d->tracked &= d->quantity == deadline_quantity();
	d->state = DEADLINE_MEASURED;
	if ((s64)d->remaining > EXACT_BELOW && !(b->flags & BLOCK_DEAD))
		return;
	d->remaining += d->quantity < METER_QUANTITIES ? d->ahead[d->quantity] : 0;
	deadline_no_resume(t);
	if (d->tracked)
		d->state = DEADLINE_MEASURED;
}
