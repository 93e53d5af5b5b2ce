/*
 * Predictors. Bimodal: a counter of two bits for each branch. Gshare: the same, found with the
 * directions of the last branches. TAGE (Seznec, "A case for (partially) tagged geometric history
 * length branch predictors", JILP 2006): a bimodal base, and tables of tagged counters that are
 * found with histories of growing lengths; the longest that knows the branch decides, and a wrong
 * one makes room in a longer one.
 *
 * Two filters stand before TAGE. A branch that has always gone one way is predicted so and is in no
 * history, nearly as AMD says of its cores (Software Optimization Guide of family 17h: branches
 * that were never taken, and that always were). One that has gone the same way for long is
 * predicted so until it does not (Chang, Evers, Patt, "Improving branch prediction accuracy by
 * reducing pattern history table interference", PACT 1996).
 *
 * The tables' histories are not folded but multiplied into index and tag, since they have at most
 * 128 bits; that is as good a hash, and quicker in software. Its random numbers are a fixed
 * sequence.
 */
#include "model/predictor.h"

#include "model/target-tables.h"

static inline bool use_counter(u8 *counter, bool taken)
{
	bool predicted = *counter >= 2;

	if (taken)
		*counter += *counter < 3;
	else
		*counter -= *counter > 0;
	return predicted == taken;
}

struct history {
	u64 low, high;
};

static inline void remember(struct history *h, bool taken)
{
	h->high = h->high << 1 | h->low >> 63;
	h->low = h->low << 1 | taken;
}

/*
 * Entry of a tagged table: three bits of counter, 4 to 7 taken; two of use; a tag. What was never
 * used is an entry like others, since a bit that it is none would be one more to look at.
 */
#define TAGE_COUNTER 7u
#define TAGE_USEFUL  (3u << 3)
#define TAGE_TAG     (0x7ffu << 5)
#define TAGE_REST    31u

struct tage_look {
	u64 hash[TAGE_TABLES]; /* of branch and history */
	u32 known;             /* tables that know the branch, a bit each */
};

/* The last table of a mask of them, which is not 0. */
static inline u32 last_table(u32 tables)
{
	return 31 - (u32)__builtin_clz(tables);
}

/* Tables stand beside each other, so that a place is found with one addition. */
static inline u16 *tage_entry(const struct predictor *p, u32 table, u64 hash)
{
	return p->tagged + (hash >> p->shift) * TAGE_TABLES + table;
}

static inline u16 tage_tag(u64 hash)
{
	return (u16)(hash >> 32 & TAGE_TAG);
}

/* Without branches: which tables know a branch is not to be foreseen. */
static inline void tage_find(const struct predictor *p, const struct branch_place *b,
			     const struct history *h, struct tage_look *l)
{
	u64 high = h->high & p->tage_mask_high, key = b->key;
	const u16 *tagged = p->tagged;
	u32 known = 0, shift = p->shift;

#pragma GCC unroll 4
	for (u32 i = TAGE_TABLES; i-- > 0;) {
		u64 bits = h->low & p->tage_mask[i], hash;

		/* Only the last one has a history of more than 64 bits. */
		if (i == TAGE_TABLES - 1)
			bits += high * HISTORY_HIGH;
		hash = (bits + key) * 0xbf58476d1ce4e5b9ull;
		l->hash[i] = hash;
		known += known + ((u16)(tagged[(hash >> shift) * TAGE_TABLES + i] ^
					(u32)(hash >> 32)) <= TAGE_REST);
	}
	l->known = known;
}

static inline bool base_says_taken(const struct predictor *p, u32 at)
{
	return p->counter[at & p->mask] >= 2;
}

/* In a table from @first on. */
__attribute__((noinline)) static void tage_allocate(struct predictor *p, const struct tage_look *l,
						    u32 first, bool taken)
{
	/* Mostly the next longer one, sometimes one further, so that tables do not fill alike. */
	p->random = p->random * 1103515245u + 12345u;
	if (first + 1 < TAGE_TABLES && (p->random >> 16 & 3) == 0)
		first++;
	for (u32 i = first; i < TAGE_TABLES; i++) {
		u16 *entry = tage_entry(p, i, l->hash[i]);

		if (!(*entry & TAGE_USEFUL)) {
			*entry = (u16)(tage_tag(l->hash[i]) | (taken ? 4 : 3));
			return;
		}
	}
	for (u32 i = first; i < TAGE_TABLES; i++)
		*tage_entry(p, i, l->hash[i]) -= 1u << 3;
}

static inline u16 tage_counted(u16 entry, bool taken)
{
	u32 counter = entry & TAGE_COUNTER;

	return (u16)(taken ? entry + (counter < 7) : entry - (counter > 0));
}

/* The entry is a new one, or says something else than what would be thought without it. */
__attribute__((noinline)) static bool tage_unsure(struct predictor *p, u16 *entry, bool other,
						  bool fresh, bool taken)
{
	bool says = *entry & 4, predicted = fresh && p->use_alternate >= 0 ? other : says;
	u32 useful = *entry & TAGE_USEFUL;

	if (says != other) {
		if (fresh && other == taken)
			p->use_alternate += p->use_alternate < 7;
		else if (fresh)
			p->use_alternate -= p->use_alternate > -8;
		if (says == taken && useful != TAGE_USEFUL)
			*entry += 1u << 3;
		else if (says != taken && useful)
			*entry -= 1u << 3;
	}
	*entry = tage_counted(*entry, taken);
	return predicted == taken;
}

/* Longer histories than that of the base know the branch. */
static inline bool tage_tagged(struct predictor *p, u32 at, bool taken, const struct tage_look *l)
{
	u32 provider = last_table(l->known), others = l->known ^ 1u << provider;
	u16 *entry = tage_entry(p, provider, l->hash[provider]), now = *entry;
	bool says = now & 4, other, fresh, right;

	if (others) {
		u32 table = last_table(others);

		other = *tage_entry(p, table, l->hash[table]) & 4;
	} else {
		other = base_says_taken(p, at);
	}
	fresh = (now & TAGE_REST) - 3u <= 1;
	if (says == other && !fresh) {
		u16 then = tage_counted(now, taken);

		if (now != then)
			*entry = then;
		right = says == taken;
	} else {
		right = tage_unsure(p, entry, other, fresh, taken);
		if (fresh && !others)
			use_counter(&p->counter[at & p->mask], taken);
	}
	if (unlikely(!right))
		tage_allocate(p, l, provider + 1, taken);
	return right;
}

static inline bool tage(struct predictor *p, const struct branch_place *b, const struct history *h,
			bool taken)
{
	struct tage_look l;

	tage_find(p, b, h, &l);
	if (l.known)
		return tage_tagged(p, b->at, taken, &l);
	if (likely(use_counter(&p->counter[b->at & p->mask], taken)))
		return true;
	tage_allocate(p, &l, 0, taken);
	return false;
}

/* A branch that has gone both ways. */
static inline bool tage_after_filter(struct predictor *p, const struct branch_place *b,
				     const struct history *h, bool taken)
{
	s16 *run = &p->run[b->site];
	s32 now = *run, most = taken ? RUN_MAX : -RUN_MAX;

	if (now == most)
		return true;
	if (unlikely(now == -most)) {
		*run = taken ? 1 : -1;
		return false;
	}
	if (taken)
		*run = (s16)(now > 0 ? now + 1 : 1);
	else
		*run = (s16)(now < 0 ? now - 1 : -1);
	return tage(p, b, h, taken);
}

u32 predict_directions(struct predictor *p, const struct branch_place *b, u32 n, bool taken,
		       bool *last_wrong)
{
	struct history h = {p->history[0], p->history[1]};
	u32 wrong = 0;
	bool right = true;

	if (p->direction == MACHINE_TAGE) {
		for (u32 i = 1; i <= n; i++, b++) {
			bool goes = i == n && taken;

			right = tage_after_filter(p, b, &h, goes);
			wrong += !right;
			remember(&h, goes);
		}
		p->history[1] = h.high;
	} else {
		/* The history of bimodal has no bits. */
		for (u32 i = 1; i <= n; i++, b++) {
			bool goes = i == n && taken;

			right = use_counter(
				&p->counter[(b->at ^ (u32)(h.low & p->history_mask)) & p->mask],
				goes);
			wrong += !right;
			h.low = h.low << 1 | goes;
		}
	}
	p->history[0] = h.low;
	*last_wrong = !right;
	return wrong;
}

static void remember_last(struct predictor *p, bool taken)
{
	struct history h = {p->history[0], p->history[1]};

	remember(&h, taken);
	p->history[0] = h.low;
	p->history[1] = h.high;
}

bool predict_direction(struct predictor *p, u64 ip, bool taken)
{
	struct branch_place b = branch_place(ip);
	bool wrong;

	if (p->direction == MACHINE_TAGE && p->bias[b.site] != SITE_BOTH) {
		u8 *bias = &p->bias[b.site], before = *bias;

		*bias |= taken ? SITE_TAKEN : SITE_NOT_TAKEN;
		/* Who was not seen before is thought not to be taken. */
		if (*bias != SITE_BOTH)
			return before || !taken;
		p->run[b.site] = taken ? 1 : -1;
		p->counter[b.at & p->mask] = taken ? 1 : 2;
		remember_last(p, taken);
		return false;
	}
	predict_directions(p, &b, 1, taken, &wrong);
	return !wrong;
}

/* By branch and path; for one that this does not know, where it went last. */
static bool predict_by_path(struct predictor *p, u64 ip, u64 target)
{
	u64 hash = (ip ^ p->path) * 0x9e3779b97f4a7c15ull;
	u32 tag = (u32)(hash >> 32) | 1;
	struct indirect_entry *e = &p->by_path[hash >> 20 & p->indirect_mask];
	struct indirect_entry *last = &p->last_by_path[branch_place(ip).at & p->indirect_mask];
	bool known = e->tag == tag;
	bool right = (known ? e->target : last->tag == (u32)ip ? last->target : 0) == target;

	if (known) {
		if (e->target == target) {
			e->sure += e->sure < 3;
		} else if (e->sure) {
			e->sure--;
		} else {
			e->target = target;
		}
	} else if (!right) {
		if (e->sure)
			e->sure--;
		else
			*e = (struct indirect_entry){.target = target, .tag = tag};
	}
	*last = (struct indirect_entry){.target = target, .tag = (u32)ip};
	return right;
}

bool predict_target(struct predictor *p, u64 ip, u64 target)
{
	return p->target_table ? target_tables_predict(p, ip, target)
			       : predict_by_path(p, ip, target);
}
