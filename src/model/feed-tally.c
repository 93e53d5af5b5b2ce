#include "model/feed-tally.h"

void feed_tally_begin(struct feed_tally *t, const struct model_core *core)
{
	for (u32 i = 0; i < t->nr; i++)
		t->last[i] = model_count(core, (enum model_counter)t->counter[i]);
}

/* Places that are near to one another have entries that are. */
static u32 entry_of(u64 at, u64 addr, u32 event)
{
	u64 near = addr ? addr >> 3 : at;
	u64 mix = ((near >> 6) ^ (addr ? at << 20 : 0)) * 0x9e3779b97f4a7c15ull;

	return (u32)(mix >> 40 << 6 ^ ((near + event * 7) & 63)) & (MODELED_INDEX - 1);
}

/*
 * The place, made if need be; NULL: there is no room. Others that count in the same segment could
 * write to all of this, so each number is read once.
 */
static struct modeled_place *place_of(struct modeled_profile *p, u64 at, u64 addr, u32 event)
{
	u32 entry = entry_of(at, addr, event), used = p->used;

	for (u32 i = 0; i < MODELED_PROBES; i++, entry = (entry + 1) & (MODELED_INDEX - 1)) {
		u32 n = p->index[entry];
		struct modeled_place *place;

		if (!n) {
			if (used >= MODELED_PLACES)
				return NULL;
			place = &p->place[used];
			*place = (struct modeled_place){.at = at, .addr = addr, .event = event};
			p->index[entry] = used + 1;
			__atomic_store_n(&p->used, used + 1, __ATOMIC_RELEASE);
			return place;
		}
		if (n > MODELED_PLACES)
			return NULL;
		place = &p->place[n - 1];
		if (place->at == at && place->addr == addr && place->event == event)
			return place;
	}
	return NULL;
}

/* The less room there is, the more data is taken for one. */
static u64 data_of(const struct modeled_profile *p, u64 addr)
{
	u32 used = p->used;

	if (!addr || addr & MODELED_SITE)
		return addr;
	if (used < MODELED_PLACES / 2)
		return addr & ~7ull;
	if (used < MODELED_PLACES / 4 * 3)
		return addr & ~4095ull;
	return 0;
}

/* The data as it is told of. */
static u64 told_data(const struct feed_tally *t, u64 addr)
{
	u64 site = t->data && addr && t->site_of ? t->site_of(addr) : 0;

	if (!t->data)
		return 0;
	return site ? site | MODELED_SITE : addr;
}

static void add(struct feed_tally *t, u32 event, u64 at, u64 addr, u64 n)
{
	struct modeled_profile *p = t->to;
	struct modeled_place *place;

	addr = data_of(p, told_data(t, addr));
	/* No instruction is there. */
	place = at ? place_of(p, at, addr, event) : NULL;
	if (!place && addr)
		place = place_of(p, at, 0, event);
	if (place)
		place->count += n;
	else
		p->unplaced[event] += n;
}

static void list(struct feed_tally *t, u32 event, u64 at, u64 addr, u64 n)
{
	struct path_event *e;

	if (t->nr_list == t->list_room)
		t->full(t);
	if (t->nr_list == t->list_room)
		return;
	e = &t->list[t->nr_list++];
	*e = (struct path_event){.pc = at & PATH_PART ? 0 : at,
				 .addr = told_data(t, addr),
				 .count = n,
				 .path = t->told,
				 .event = (u16)event,
				 .flags = t->branch};
	if (!at)
		e->flags |= PATH_EVENT_UNKNOWN;
}

void feed_tally_add(struct feed_tally *t, const struct model_core *core, u64 at, u64 addr)
{
	for (u32 i = 0; i < t->nr; i++) {
		u64 now = model_count(core, (enum model_counter)t->counter[i]);

		if (now == t->last[i])
			continue;
		if (t->to)
			add(t, i, at, addr, now - t->last[i]);
		else
			list(t, i, at, addr, now - t->last[i]);
		t->last[i] = now;
	}
}
