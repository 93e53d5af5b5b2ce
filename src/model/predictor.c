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
 * Entry of a tagged table: three bits of counter, 4 to 7 taken; two of use; a tag; that it is one.
 */
#define TAGE_COUNTER 7u
#define TAGE_USEFUL  (3u << 3)
#define TAGE_TAG     (0x3ffu << 5)
#define TAGE_VALID   (1u << 15)

#define RUN_MAX 127 /* as long as the longest history, or nearly */

struct tage_look {
	u16 *entry[TAGE_TABLES];
	u32 tag[TAGE_TABLES]; /* with TAGE_VALID */
	s32 provider;         /* table; -1: the base */
	u32 known;            /* tables that know the branch, a bit each */
};

/* The last table of a mask of them; -1: none. */
static inline s32 last_table(u32 tables)
{
	return 31 - (s32)__builtin_clz(tables << 1 | 1) - 1;
}

/* Without branches: which tables know a branch is not to be foreseen. */
static inline void tage_find(const struct predictor *p, const struct branch_place *b,
			     const struct history *h, struct tage_look *l)
{
	u64 high = h->high & p->tage_mask_high;
	u16 *table = p->tagged;
	u32 known = 0;

#pragma GCC unroll 4
	for (u32 i = 0; i < TAGE_TABLES; i++, table += p->mask + 1) {
		u64 bits = h->low & p->tage_mask[i], hash;

		/* Only the last one has a history of more than 64 bits. */
		if (i == TAGE_TABLES - 1)
			bits ^= high << 29 | high >> 35;
		hash = (bits + b->key) * 0xbf58476d1ce4e5b9ull;
		l->tag[i] = (u32)(hash >> 32 & TAGE_TAG) | TAGE_VALID;
		l->entry[i] = table + (hash >> p->shift);
		known |= (u32)((*l->entry[i] ^ l->tag[i]) < 32) << i;
	}
	l->known = known;
	l->provider = last_table(known);
}

static inline bool says_taken(const struct predictor *p, const struct tage_look *l, s32 table,
			      u32 at)
{
	if (table < 0)
		return p->counter[at & p->mask] >= 2;
	return (*l->entry[table] & TAGE_COUNTER) >= 4;
}

static void tage_allocate(struct predictor *p, struct tage_look *l, bool taken)
{
	u32 first = (u32)(l->provider + 1);

	/* Mostly the next longer one, sometimes one further, so that tables do not fill alike. */
	p->random = p->random * 1103515245u + 12345u;
	if (first + 1 < TAGE_TABLES && (p->random >> 16 & 3) == 0)
		first++;
	for (u32 i = first; i < TAGE_TABLES; i++)
		if (!(*l->entry[i] & TAGE_USEFUL)) {
			*l->entry[i] = (u16)(l->tag[i] | (taken ? 4 : 3));
			return;
		}
	for (u32 i = first; i < TAGE_TABLES; i++)
		*l->entry[i] = (u16)(*l->entry[i] - (1u << 3));
}

/* A longer history than that of the base knows the branch, and there is something to learn. */
static bool tage_tagged(struct predictor *p, u32 at, bool taken, struct tage_look *l)
{
	u16 *entry = l->entry[l->provider];
	s32 alternate = last_table(l->known & ~(1u << l->provider));
	u32 counter = *entry & TAGE_COUNTER, useful = *entry >> 3 & 3;
	bool other = says_taken(p, l, alternate, at), says = counter >= 4;
	bool fresh = !useful && (counter == 3 || counter == 4);
	bool predicted = fresh && p->use_alternate >= 0 ? other : says;

	if (says != other) {
		if (fresh && other == taken)
			p->use_alternate += p->use_alternate < 7;
		else if (fresh)
			p->use_alternate -= p->use_alternate > -8;
		if (says == taken)
			useful += useful < 3;
		else
			useful -= useful > 0;
	}
	if (taken)
		counter += counter < 7;
	else
		counter -= counter > 0;
	*entry = (u16)((*entry & ~(TAGE_COUNTER | TAGE_USEFUL)) | useful << 3 | counter);
	if (fresh && alternate < 0)
		use_counter(&p->counter[at & p->mask], taken);
	if (predicted != taken)
		tage_allocate(p, l, taken);
	return predicted == taken;
}

static inline bool tage(struct predictor *p, const struct branch_place *b, const struct history *h,
			bool taken)
{
	struct tage_look l;

	tage_find(p, b, h, &l);
	if (l.provider >= 0)
		return tage_tagged(p, b->at, taken, &l);
	if (likely(use_counter(&p->counter[b->at & p->mask], taken)))
		return true;
	tage_allocate(p, &l, taken);
	return false;
}

/* A branch that has gone both ways. */
static inline bool tage_after_filter(struct predictor *p, const struct branch_place *b,
				     const struct history *h, bool taken)
{
	s8 *run = &p->run[b->site];
	s32 now = *run, most = taken ? RUN_MAX : -RUN_MAX;

	if (now == most)
		return true;
	if (unlikely(now == -most)) {
		*run = taken ? 1 : -1;
		return false;
	}
	if (taken)
		*run = (s8)(now > 0 ? now + 1 : 1);
	else
		*run = (s8)(now < 0 ? now - 1 : -1);
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
bool predict_target(struct predictor *p, u64 ip, u64 target)
{
	u64 hash = (ip ^ p->path) * 0x9e3779b97f4a7c15ull;
	u32 tag = (u32)(hash >> 32) | 1;
	struct indirect_entry *e = &p->indirect[hash >> 20 & p->indirect_mask];
	struct indirect_entry *last = &p->last_target[branch_place(ip).at & p->indirect_mask];
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
