/*
 * ITTAGE (Seznec, "A 64-Kbytes ITTAGE indirect branch predictor", 3rd Championship Branch
 * Prediction, 2011): where the branch went last, and tables of tagged targets that are found with
 * histories of growing lengths. The longest one that knows the branch decides, unless it is new and
 * new ones have been wrong of late; a wrong one makes room in a longer one.
 *
 * The histories are those of TAGE, into which each indirect branch puts bits of its target. They
 * say nearly what the path history of Intel's cores does, which has bits of each branch that is
 * taken: the other branches follow from directions and targets.
 *
 * A branch that has always gone to the same place is predicted to go there, and is in no table and
 * in no history: so AMD says of its cores (Software Optimization Guides, of the BTB).
 */
#include "model/target-tables.h"

struct target_look {
	struct target_entry *entry[TAGE_TABLES];
	u16 tag[TAGE_TABLES];
};

/* What is kept of a target: two that are alike in this are one. */
static inline u32 short_target(u64 target)
{
	return (u32)(target ^ target >> 32 << 13);
}

/* Tables need not be powers of two. */
static inline u64 scaled(u64 hash, u32 entries)
{
	return (hash >> 32) * entries >> 32;
}

/* Table @i, which stands beside the others; true: it knows the branch. */
static inline bool look(const struct predictor *p, u64 key, u32 i, struct target_look *l)
{
	u64 bits = p->history[0] & p->tage_mask[i], hash;
	struct target_entry *e;
	u16 tag;

	/* Only the last one has a history of more than 64 bits. */
	if (i == TAGE_TABLES - 1) {
		u64 high = p->history[1] & p->tage_mask_high;

		bits += high * HISTORY_HIGH;
	}
	hash = (bits + key) * 0xbf58476d1ce4e5b9ull;
	tag = (u16)(hash >> 32 & TARGET_TAG) | TARGET_KNOWN;
	e = p->target_table + scaled(hash, p->indirect) * TAGE_TABLES + i;
	l->tag[i] = tag;
	l->entry[i] = e;
	return e->tag == tag;
}

/* In a table from @first on. */
static void allocate(struct predictor *p, const struct target_look *l, u32 first, u32 target)
{
	p->random = p->random * 1103515245u + 12345u;
	if (first + 1 < TAGE_TABLES && (p->random >> 16 & 3) == 0)
		first++;
	for (u32 i = first; i < TAGE_TABLES; i++)
		if (!l->entry[i]->useful) {
			*l->entry[i] = (struct target_entry){.target = target, .tag = l->tag[i]};
			return;
		}
	for (u32 i = first; i < TAGE_TABLES; i++)
		l->entry[i]->useful--;
}

static void learn(struct target_entry *e, u32 target)
{
	if (e->target == target)
		e->sure += e->sure < TARGET_SURE;
	else if (e->sure)
		e->sure--;
	else
		e->target = target;
}

/* The tables from @next on do not know the branch; the one before does, unless there is none. */
__attribute__((noinline)) static bool decide(struct predictor *p, u64 key,
					     struct target_entry *last, u32 next,
					     struct target_look *l, u32 target)
{
	struct target_entry *e = next ? l->entry[next - 1] : NULL, *other = last;
	u32 says, else_says;
	bool fresh;

	for (u32 i = next; i-- > 1 && other == last;)
		if (look(p, key, i - 1, l))
			other = l->entry[i - 1];
	else_says = other->target;
	fresh = e && !e->sure;
	says = !e || (fresh && p->use_other_target >= 0) ? else_says : e->target;
	if (e && e->target != else_says) {
		if (fresh && else_says == target)
			p->use_other_target += p->use_other_target < 7;
		else if (fresh && e->target == target)
			p->use_other_target -= p->use_other_target > -8;
		if (e->target == target)
			e->useful += e->useful < TARGET_USEFUL;
		else if (else_says == target && e->useful)
			e->useful--;
	}
	/* Where it went last is kept for those that no table, or only a new one, knows. */
	if (!e || (fresh && other == last))
		last->target = target;
	else if (fresh)
		learn(other, target);
	if (e)
		learn(e, target);
	if (says != target && next < TAGE_TABLES)
		allocate(p, l, next, target);
	return says == target;
}

bool target_tables_predict(struct predictor *p, u64 ip, u64 target)
{
	/* Another key than that of the directions, so that a branch is not alike in both. */
	u64 key = ip * 0xd6e8feb86659fd93ull;
	struct target_entry *last = &p->last_target[scaled(key, p->btb_entries)];
	u32 is = short_target(target), i;
	u16 tag = (u16)(key >> 16 | TARGET_KNOWN);
	struct target_look l;
	bool right;

	if (unlikely(last->tag != tag)) {
		*last = (struct target_entry){.target = is, .tag = tag};
		return false;
	}
	if (!last->useful) {
		if (likely(last->target == is))
			return true;
		last->useful = 1;
	}
	/* Mostly the longest one knows the branch, or none. */
	_Static_assert(TAGE_TABLES == 4, "each is named");
	i = look(p, key, 3, &l)   ? 4
	    : look(p, key, 2, &l) ? 3
	    : look(p, key, 1, &l) ? 2
	    : look(p, key, 0, &l) ? 1
				  : 0;
	/* One that has been right for so long learns nothing; how useful it is shows before. */
	right = i && l.entry[i - 1]->target == is && l.entry[i - 1]->sure == TARGET_SURE;
	if (!right)
		right = decide(p, key, last, i, &l, is);
	p->history[1] = p->history[1] << TARGET_BITS | p->history[0] >> (64 - TARGET_BITS);
	p->history[0] = p->history[0] << TARGET_BITS |
			target * 0x9e3779b97f4a7c15ull >> (64 - TARGET_BITS);
	return right;
}
