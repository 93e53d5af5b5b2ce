/*
 * ITTAGE (Seznec, "A 64-Kbytes ITTAGE indirect branch predictor", 3rd Championship Branch
 * Prediction, 2011): where the branch went last, and tables of tagged targets that are found with
 * histories of growing lengths. The longest one that knows the branch decides, unless it is new and
 * new ones have been wrong of late; a wrong one makes room in a longer one.
 *
 * The histories are those of TAGE, into which each indirect branch puts bits of its target. They
 * say nearly what the path history of Intel's cores does, which has bits of each branch that is
 * taken: the other branches follow from directions and targets.
 */
#include "model/target-tables.h"

struct target_look {
	struct target_entry *entry[TAGE_TABLES];
	u16 tag[TAGE_TABLES];
	u32 known; /* tables that know the branch, a bit each */
};

static void find(const struct predictor *p, u64 ip, struct target_look *l)
{
	/* Another key than that of the directions, so that a branch is not alike in both. */
	u64 key = ip * 0xd6e8feb86659fd93ull;

	l->known = 0;
	for (u32 i = 0; i < TAGE_TABLES; i++) {
		u64 bits = p->history[0] & p->tage_mask[i], hash;

		if (i == TAGE_TABLES - 1) {
			u64 high = p->history[1] & p->tage_mask_high;

			bits ^= high << 29 | high >> 35;
		}
		hash = (bits + key) * 0xbf58476d1ce4e5b9ull;
		hash ^= hash >> 32;
		/* Tables need not be powers of two. */
		l->entry[i] = p->target_table + i * p->indirect +
			      ((hash * 0x9e3779b97f4a7c15ull >> 32) * p->indirect >> 32);
		l->tag[i] = (u16)(hash >> 8 & TARGET_TAG);
		if (l->entry[i]->target && l->entry[i]->tag == l->tag[i])
			l->known |= 1u << i;
	}
}

static u32 last_of(u32 tables)
{
	return 31 - (u32)__builtin_clz(tables);
}

/* In a table from @first on. */
static void allocate(struct predictor *p, const struct target_look *l, u32 first, u64 target)
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

static void learn(struct target_entry *e, u64 target)
{
	if (e->target == target)
		e->sure += e->sure < TARGET_SURE;
	else if (e->sure)
		e->sure--;
	else
		e->target = target;
}

bool target_tables_predict(struct predictor *p, u64 ip, u64 target)
{
	struct indirect_entry *last = &p->last_target[(u64)(u32)branch_place(ip).at % p->indirect];
	u64 other = last->tag == (u32)ip ? last->target : 0, says = other;
	struct target_look l;
	u32 next = 0;

	find(p, ip, &l);
	if (l.known) {
		u32 provider = last_of(l.known), others = l.known ^ 1u << provider;
		struct target_entry *e = l.entry[provider];
		bool fresh = !e->sure;

		next = provider + 1;
		if (others)
			other = l.entry[last_of(others)]->target;
		says = fresh && p->use_other_target >= 0 ? other : e->target;
		if (e->target != other) {
			if (fresh && other == target)
				p->use_other_target += p->use_other_target < 7;
			else if (fresh && e->target == target)
				p->use_other_target -= p->use_other_target > -8;
			if (e->target == target)
				e->useful += e->useful < TARGET_USEFUL;
			else if (other == target && e->useful)
				e->useful--;
		}
		learn(e, target);
		if (fresh && others)
			learn(l.entry[last_of(others)], target);
	}
	if (says != target && next < TAGE_TABLES)
		allocate(p, &l, next, target);
	*last = (struct indirect_entry){.target = target, .tag = (u32)ip};
	p->history[1] = p->history[1] << TARGET_BITS | p->history[0] >> (64 - TARGET_BITS);
	p->history[0] = p->history[0] << TARGET_BITS |
			target * 0x9e3779b97f4a7c15ull >> (64 - TARGET_BITS);
	return says == target;
}
