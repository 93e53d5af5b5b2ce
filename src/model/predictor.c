/*
 * Predictors. Bimodal: a counter of two bits for each branch. Gshare: the same, found with the
 * directions of the last branches. TAGE (Seznec, "A case for (partially) tagged geometric history
 * length branch predictors", JILP 2006): a bimodal base, and tables of tagged counters that are
 * found with histories of growing lengths; the longest that knows the branch decides, and a wrong
 * one makes room in a longer one.
 *
 * The tables' histories are not folded but multiplied into index and tag, since they have at most
 * 128 bits; that is as good a hash, and quicker in software. Its random numbers are a fixed
 * sequence.
 */
#include "model/predictor.h"

static bool use_counter(u8 *counter, bool taken)
{
	bool predicted = *counter >= 2;

	if (taken)
		*counter += *counter < 3;
	else
		*counter -= *counter > 0;
	return predicted == taken;
}

static void remember(struct predictor *p, bool taken)
{
	p->history[1] = p->history[1] << 1 | p->history[0] >> 63;
	p->history[0] = p->history[0] << 1 | taken;
}

/* Distributes the addresses of branches over tables; what lies near stays apart. */
static u32 place_of(u64 ip)
{
	return (u32)(ip >> 1 ^ ip >> 16);
}

/* Entry of a tagged table: three bits of counter, 4 to 7 taken; two of use; a tag. */
#define TAGE_COUNTER 7u
#define TAGE_USEFUL  (3u << 3)
#define TAGE_TAG     8u

struct tage_look {
	u32 *entry[TAGE_TABLES];
	u32 tag[TAGE_TABLES];
	s32 provider, alternate; /* table; -1: the base */
};

static void tage_find(const struct predictor *p, u64 ip, struct tage_look *l)
{
	l->provider = l->alternate = -1;
	for (u32 i = 0; i < TAGE_TABLES; i++) {
		u64 low = p->history[0] & p->tage_mask[i][0];
		u64 high = p->history[1] & p->tage_mask[i][1];
		u64 hash = (low ^ ip) * 0x9e3779b97f4a7c15ull;

		if (high)
			hash = (hash ^ high ^ hash >> 29) * 0xbf58476d1ce4e5b9ull;
		hash += (u64)(i + 1) << 40;
		hash ^= hash >> 32;
		l->tag[i] = ((u32)(hash >> 20) & 0xfff) | 0x1000;
		l->entry[i] = p->tagged + (u64)i * (p->mask + 1) + (hash & p->mask);
		if (*l->entry[i] >> TAGE_TAG == l->tag[i]) {
			l->alternate = l->provider;
			l->provider = (s32)i;
		}
	}
}

static bool says_taken(const struct predictor *p, const struct tage_look *l, s32 table, u64 ip)
{
	if (table < 0)
		return p->counter[place_of(ip) & p->mask] >= 2;
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
			*l->entry[i] = l->tag[i] << TAGE_TAG | (taken ? 4 : 3);
			return;
		}
	for (u32 i = first; i < TAGE_TABLES; i++)
		*l->entry[i] -= 1u << 3;
}

static bool tage(struct predictor *p, u64 ip, bool taken)
{
	struct tage_look l;
	bool long_one, other, predicted, fresh;

	tage_find(p, ip, &l);
	long_one = says_taken(p, &l, l.provider, ip);
	if (l.provider < 0) {
		use_counter(&p->counter[place_of(ip) & p->mask], taken);
		if (long_one != taken)
			tage_allocate(p, &l, taken);
		return long_one == taken;
	}
	other = says_taken(p, &l, l.alternate, ip);
	fresh = !(*l.entry[l.provider] & TAGE_USEFUL) &&
		((*l.entry[l.provider] & TAGE_COUNTER) == 3 ||
		 (*l.entry[l.provider] & TAGE_COUNTER) == 4);
	predicted = fresh && p->use_alternate >= 0 ? other : long_one;
	if (fresh && long_one != other) {
		if (other == taken)
			p->use_alternate += p->use_alternate < 7;
		else
			p->use_alternate -= p->use_alternate > -8;
	}
	if (long_one != other) {
		u32 useful = *l.entry[l.provider] >> 3 & 3;

		if (long_one == taken)
			useful += useful < 3;
		else
			useful -= useful > 0;
		*l.entry[l.provider] = (*l.entry[l.provider] & ~TAGE_USEFUL) | useful << 3;
	}
	if (taken)
		*l.entry[l.provider] += (*l.entry[l.provider] & TAGE_COUNTER) < 7;
	else
		*l.entry[l.provider] -= (*l.entry[l.provider] & TAGE_COUNTER) > 0;
	if (fresh && l.alternate < 0)
		use_counter(&p->counter[place_of(ip) & p->mask], taken);
	if (predicted != taken && l.provider + 1 < (s32)TAGE_TABLES)
		tage_allocate(p, &l, taken);
	return predicted == taken;
}

bool predict_direction(struct predictor *p, u64 ip, bool taken)
{
	bool right;

	if (p->direction == MACHINE_TAGE) {
		right = tage(p, ip, taken);
		remember(p, taken);
		return right;
	}
	if (p->direction == MACHINE_BIMODAL)
		return use_counter(&p->counter[place_of(ip) & p->mask], taken);
	right = use_counter(
		&p->counter[(place_of(ip) ^ (u32)(p->history[0] & p->history_mask)) & p->mask],
		taken);
	remember(p, taken);
	return right;
}

/* By branch and path; for one that this does not know, where it went last. */
bool predict_target(struct predictor *p, u64 ip, u64 target)
{
	u64 hash = (ip ^ p->path) * 0x9e3779b97f4a7c15ull;
	u32 tag = (u32)(hash >> 32) | 1;
	struct indirect_entry *e = &p->indirect[hash >> 20 & p->indirect_mask];
	struct indirect_entry *last = &p->last_target[place_of(ip) & p->indirect_mask];
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

void predictor_call(struct predictor *p, u64 next)
{
	p->top = p->top + 1 == p->returns ? 0 : p->top + 1;
	p->stack[p->top] = next;
	p->depth += p->depth < p->returns;
}

bool predict_return(struct predictor *p, u64 target)
{
	u64 predicted = p->stack[p->top];

	if (!p->depth)
		return false;
	p->depth--;
	p->top = p->top ? p->top - 1 : p->returns - 1;
	return predicted == target;
}
