/*
 * Deadlines: a thread stops at the very instruction at which a quantity of its meter reaches a
 * number.
 *
 * There is no running total to compare, since paths are counted by class. So each class is
 * *granted* a part of what remains to the nearest deadline: its word in the meter counts up, and as
 * long as it does not get to 0 that is all. A path whose word does, because the grant is used up or
 * there was none, puts it back to -1, where it rests, and takes its length from the *pool*, which
 * is one word for all: slower, and right. When the pool is used up as well the path leaves the
 * cache, and what remains is granted anew, by what each class has been used for lately. All grants
 * and the pool together are what remains less DEADLINE_SLACK. The code goes on where it has left,
 * so nothing is translated for it.
 *
 * When little remains the thread executes *exact code*: blocks that end with the first branch, in
 * which each instruction first takes 1 of `left` and leaves if there is nothing. A quantity grows
 * by at most 1 with an instruction; so that many instructions can be executed as remain to the
 * nearest deadline of any quantity, and then one looks again. Exact code does not touch the flags,
 * and it begins so early that flags which were dead where a path was counted have been written
 * again: what is found at the deadline is what would be found natively.
 */
#include "dbt/arch-priv.h"

/* From here on instructions are executed one by one. */
#define EXACT_BELOW (DEADLINE_SLACK + 16u)
/* So that a thread looks at its meter now and then, and the sums below do not overflow. */
#define SHARED_MAX (1u << 22)
/* Hits that are never used up. */
#define NO_LIMIT (1ull << 55)
/* The word of a class without a grant: it gets to 0 with each path. */
#define RESTING (~0ull)

/* Less than this is not granted: the pool has all. */
#define GRANTED_MIN 16384u
/* With nothing known of a program, so that something is known soon. */
#define UNKNOWN_MAX 65536u

/* What a thread has granted, at DBT_GRANTS_AT. */
struct grants {
	u16 granted[METER_CLASSES]; /* the classes with grants, dbt_deadline.granted of them */
	u16 used[METER_CLASSES];    /* while they are made: the classes that are used */
	u32 seen[METER_CLASSES];    /* hits, modulo 2^32, when grants were last made */
	u32 usual[METER_CLASSES];   /* hits from one time to the next, of late */
};

_Static_assert(sizeof(struct grants) <= DBT_GRANTS_SIZE, "grants have room");

static struct grants *grants_of(const struct dbt_thread *t)
{
	return (struct grants *)((u64)t + DBT_GRANTS_AT);
}

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

/* How far @at is; sums are modulo 2^64, and what is half of that away has passed. */
static u64 distance(u64 sum, u64 at)
{
	return at - sum < 1ull << 63 ? at - sum : 0;
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
	/* As who has set them compares: others can write to a meter, so a sum may be anything. */
	for (u32 q = 0; q < n; q++)
		if (at[q] != DBT_NO_DEADLINE)
			remaining = min_u64(remaining, distance(sums[q], at[q]));
	/* One that has passed is not known to be exact. */
	d->tracked = d->quantity < METER_QUANTITIES &&
		     at[d->quantity] - sums[d->quantity] < 1ull << 63;
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

void grants_forget(struct dbt_thread *t)
{
	t->deadline.granted = 0;
	t->deadline.seen = false;
	t->deadline.at_rest = false;
	t->deadline.state = DEADLINE_STALE;
}

/* What a hit of @class takes. */
static u32 charge(u32 class)
{
	return cache.class_weight[class] >> (8 * deadline_quantity()) & 0xff;
}

void deadline_verify(const struct dbt_thread *t)
{
	const struct meter *m = dbt_meter((struct dbt_thread *)t);

	if (!cache_has_deadlines() || !t->deadline.at_rest || t->epoch != cache.epoch)
		return;
	/* A word that has got past 0 would never be noticed again. */
	for (u32 class = 0; class < cache.nr_classes; class ++)
		CHECK(!charge(class) || m->hits[class] >> 63);
}

/* What has been granted and is not used. */
static u64 outstanding(struct dbt_thread *t)
{
	const struct grants *g = grants_of(t);
	u64 sum = 0;

	for (u32 i = 0; i < t->deadline.granted; i++) {
		u64 left = ~dbt_meter(t)->hits[g->granted[i]];

		if (left < 1ull << 63)
			sum += left * charge(g->granted[i]);
	}
	return sum;
}

/* The words of all classes, or of those that have grants, rest. While the meter is folding. */
static void take_back(struct dbt_thread *t)
{
	const struct grants *g = grants_of(t);
	struct meter *m = dbt_meter(t);

	if (!t->deadline.at_rest) {
		for (u32 class = 0; class < cache.nr_classes; class ++)
			if (charge(class))
				meter_set_hits(m, class, RESTING);
		t->deadline.at_rest = true;
	} else {
		for (u32 i = 0; i < t->deadline.granted; i++)
			meter_set_hits(m, g->granted[i], RESTING);
	}
	t->deadline.granted = 0;
}

/* Finds out what has been used since the last time; returns how many classes, *@sum of how much. */
static u32 see_used(struct dbt_thread *t, u64 *sum)
{
	const struct meter *m = dbt_meter(t);
	struct grants *g = grants_of(t);
	u32 n = 0;

	*sum = 0;
	for (u32 class = 0; class < cache.nr_classes; class ++) {
		u32 now = (u32)(m->hits[class] + m->granted[class]);

		if (!t->deadline.seen)
			g->usual[class] = 0;
		else
			g->usual[class] = g->usual[class] / 2 + (now - g->seen[class]);
		g->seen[class] = now;
		if (!g->usual[class] || !charge(class))
			continue;
		*sum += (u64)g->usual[class] * charge(class);
		g->used[n++] = (u16) class;
	}
	t->deadline.seen = true;
	return n;
}

/* Shares out @total. While the meter is folding. */
static void share_out(struct dbt_thread *t, u64 total)
{
	struct dbt_deadline *d = &t->deadline;
	struct grants *g = grants_of(t);
	u64 sum, rate, pool = total;
	u32 n;

	take_back(t);
	if (total >= GRANTED_MIN) {
		n = see_used(t, &sum);
		/* In fractions of 2^32 of a hit for each hit. */
		rate = sum ? ((total - total / 128) << 32) / sum : 0;
		for (u32 i = 0; i < n; i++) {
			u32 class = g->used[i];
			u64 hits = (g->usual[class] * rate) >> 32;

			if (!hits)
				continue;
			meter_set_hits(dbt_meter(t), class, ~hits);
			pool -= hits * charge(class);
			g->granted[d->granted++] = (u16) class;
		}
	}
	d->pool = -pool;
}

static void grant_for_ever(struct dbt_thread *t, u32 class)
{
	if (!charge(class))
		return;
	meter_set_hits(dbt_meter(t), class, -NO_LIMIT);
	grants_of(t)->granted[t->deadline.granted++] = (u16) class;
}

/* Nothing is ever used up. */
static void grant_all(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	d->granted = 0;
	for (u32 class = 0; class < cache.nr_classes; class ++)
		grant_for_ever(t, class);
	d->at_rest = true;
	d->pool = -NO_LIMIT;
}

void grants_new_class(struct dbt_thread *t, u32 class)
{
	const struct dbt_deadline *d = &t->deadline;

	if (!cache_has_deadlines() || !d->at_rest)
		return;
	if (d->state == DEADLINE_GRANTED && d->remaining == DBT_NO_DEADLINE)
		grant_for_ever(t, class);
	else if (charge(class))
		meter_set_hits(dbt_meter(t), class, RESTING);
}

static void set_grants(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;
	struct meter *m = dbt_meter(t);

	m->grants = 1;
	meter_fold_begin(m);
	if (d->remaining == DBT_NO_DEADLINE) {
		grant_all(t);
	} else {
		u64 total = d->remaining - DEADLINE_SLACK;

		total = min_u64(total, d->seen ? SHARED_MAX : UNKNOWN_MAX);
		d->kept = d->remaining - total;
		share_out(t, total);
	}
	meter_fold_end(m);
	d->state = DEADLINE_GRANTED;
}

bool deadline_settle(struct dbt_thread *t)
{
	struct dbt_deadline *d = &t->deadline;

	look(t);
	if (d->state != DEADLINE_MEASURED)
		return true;
	if (!d->remaining)
		return false;
	if (d->remaining > (d->undone ? EXACT_BELOW + DEADLINE_SLACK : EXACT_BELOW)) {
		set_grants(t);
	} else {
		d->left = d->remaining;
		d->from = 0;
		d->state = DEADLINE_EXACT;
	}
	d->undone = false;
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
	path_correct_again(t);
}

/* Says by how much the meter is ahead of what @b has executed. */
static void set_ahead(struct dbt_thread *t, const struct dbt_block *b)
{
	struct dbt_deadline *d = &t->deadline;
	u64 *count = dbt_meter(t)->count[0];

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		d->ahead[q] = count[q];
	arch_meter_correct(t, b, d->at - b->code, d->index);
	path_take_back(t);
	for (u32 q = 0; q < METER_QUANTITIES; q++) {
		d->ahead[q] -= count[q];
		count[q] += d->ahead[q];
	}
}

/* The pc at which the code at @at goes on. */
static u64 next_pc(const struct dbt_block *b, u32 at, u32 index)
{
	const struct dbt_exit *x = block_exits(b), *next = NULL;

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
	d->state = DEADLINE_MEASURED;
	/* Behind an exit it is counted what has been executed. Else the meter is ahead. */
	if (d->index != DEADLINE_TAKEN) {
		set_ahead(t, b);
		d->resuming = 1;
		d->resume_pc = code_addr(d->at);
		d->resume_code = t->exit_id == EXIT_ID_POOL_TARGET ? cache.resume_target_code
								   : cache.resume_code;
	}
	if (d->remaining == DBT_NO_DEADLINE)
		return;
	d->remaining = d->kept - d->pool + outstanding(t);
	d->tracked &= d->quantity == deadline_quantity();
	if ((s64)d->remaining > EXACT_BELOW && !(b->flags & BLOCK_DEAD))
		return;
	/*
	 * A path that was counted at its beginning is the one that comes next. It may be as long as
	 * what would be granted now, and so be undone again and again: it is executed exactly.
	 */
	d->undone = d->resuming;
	if (d->resuming && d->tracked)
		d->remaining += d->ahead[d->quantity];
	deadline_no_resume(t);
	d->state = d->tracked ? DEADLINE_MEASURED : DEADLINE_STALE;
}
