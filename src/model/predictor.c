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

/* Entry of a tagged table: three bits of counter, 4 to 7 taken; two of use; a tag, 0 of none. */
#define TAGE_COUNTER 7u
#define TAGE_USEFUL  (3u << 3)
#define TAGE_TAG     5u

struct tage_look {
	u16 *entry[TAGE_TABLES];
	u16 tag[TAGE_TABLES];
	s32 provider, alternate; /* table; -1: the base */
};

/* The last table of a mask of them; -1: none. */
static s32 last_table(u32 tables)
{
	return tables ? 31 - __builtin_clz(tables) : -1;
}

/*
 * Without branches: which tables know a branch is not to be foreseen. Only the last one has a
 * history of more than 64 bits; the others' halve from there.
 */
static void tage_find(const struct predictor *p, u64 ip, struct tage_look *l)
{
	u64 high = (p->history[1] & p->tage_mask_high) * 0xbf58476d1ce4e5b9ull;
	u16 *table = p->tagged;
	u32 known = 0;

	high ^= high >> 32;
#pragma GCC unroll 6
	for (u32 i = 0; i < TAGE_TABLES; i++, table += p->mask + 1) {
		u64 hash = ((p->history[0] & p->tage_mask[i]) ^ ip) * 0x9e3779b97f4a7c15ull;
		u32 tag;

		if (i == TAGE_TABLES - 1)
			hash ^= high << 24;
		tag = (u32)(hash >> 53);
		l->tag[i] = (u16)(tag + !tag);
		l->entry[i] = table + (hash >> 28 & p->mask);
		known |= (u32)(*l->entry[i] >> TAGE_TAG == l->tag[i]) << i;
	}
	l->provider = last_table(known);
	l->alternate = l->provider < 0 ? -1 : last_table(known & ~(1u << l->provider));
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
			*l->entry[i] = (u16)(l->tag[i] << TAGE_TAG | (taken ? 4 : 3));
			return;
		}
	for (u32 i = first; i < TAGE_TABLES; i++)
		*l->entry[i] = (u16)(*l->entry[i] - (1u << 3));
}

/* A longer history than that of the base knows the branch. */
static bool tage_tagged(struct predictor *p, u64 ip, bool taken, struct tage_look *l)
{
	u16 *entry = l->entry[l->provider];
	u32 counter = *entry & TAGE_COUNTER, useful = *entry >> 3 & 3;
	bool other = says_taken(p, l, l->alternate, ip), says = counter >= 4;
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
	if (fresh && l->alternate < 0)
		use_counter(&p->counter[place_of(ip) & p->mask], taken);
	if (predicted != taken)
		tage_allocate(p, l, taken);
	return predicted == taken;
}

static bool tage(struct predictor *p, u64 ip, bool taken)
{
	struct tage_look l;

	tage_find(p, ip, &l);
	if (l.provider >= 0)
		return tage_tagged(p, ip, taken, &l);
	if (use_counter(&p->counter[place_of(ip) & p->mask], taken))
		return true;
	tage_allocate(p, &l, taken);
	return false;
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
