/*
 * Caches and branches, span by span, or several spans that were joined. Nearly all data is of the
 * line that its set has used last: one comparison, and nothing changes. First come fetches, then
 * accesses, which have no cache in common but LL; that is asked in the order of the instructions,
 * so fetches that it is to be asked for wait until an access asks as well.
 */
#include <stdlib.h>

#include "base/check.h"
#include "calls/simulation-priv.h"

/* Of cachegrind: seven bits of the address below seven of the history; the last targets of 512. */
#define HISTORY_BITS 7u
#define ADDRESS_BITS 7u
#define LAST_TARGETS 512u

#define STRING_MAX BIT(30)

static void new_cache(struct lru_cache *c, const struct machine *m, enum machine_cache_id id)
{
	lru_cache_init(c, machine_sets(m, id), m->cache[id].ways, m->memory.line);
}

struct event_simulation *simulation_new(const struct simulation_opts *opts)
{
	struct event_simulation *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->opts = *opts;
	s->opts.machine = NULL;
	s->counter = calloc(1u << (HISTORY_BITS + ADDRESS_BITS), sizeof(*s->counter));
	s->last_target = calloc(LAST_TARGETS, sizeof(*s->last_target));
	CHECK(s->counter && s->last_target);
	if (!opts->caches)
		return s;
	s->within = opts->machine->memory.line - 1;
	fetch_cache_init(&s->i1, machine_sets(opts->machine, MACHINE_L1I),
			 opts->machine->cache[MACHINE_L1I].ways, opts->machine->memory.line);
	new_cache(&s->d1, opts->machine, MACHINE_L1D);
	new_cache(&s->ll, opts->machine, MACHINE_LL);
	return s;
}

void simulation_free(struct event_simulation *s)
{
	if (!s)
		return;
	fetch_cache_release(&s->i1);
	lru_cache_release(&s->d1);
	lru_cache_release(&s->ll);
	free(s->counter);
	free(s->last_target);
	calls_memory_release(&s->memory);
	free(s);
}

/* Code that is being executed, and where its events go. */
struct running {
	struct event_simulation *s;
	const struct simulated_code *c;
	const struct path_slots *slots;
	u64 *counts; /* NULL: only the sum is wanted */
	struct event_counts *sum;
	/* Of joined code, which has no sum: what is missed. */
	struct simulated_miss *miss;
	u32 *nr_missed;
};

static void note(const struct running *r, u32 place, u32 level, u64 n)
{
	if (r->miss) {
		const struct event_place *p = &r->c->place[place];

		r->miss[(*r->nr_missed)++] = (struct simulated_miss){p->own, p->part, p->group,
								     (u8)level};
		return;
	}
	r->sum->n[r->c->place[place].group][level] += n;
	if (r->counts)
		r->counts[place * 3 + level] += n;
}

/* Line @line was not in L1, or @before was not, in which the same instruction begins. */
static void ask_ll(const struct running *r, u32 place, u64 before, u64 line)
{
	bool hit = true;

	if (before)
		hit = lru_cache_use(&r->s->ll, before);
	hit &= lru_cache_use(&r->s->ll, line);
	note(r, place, 1, 1);
	if (!hit)
		note(r, place, 2, 1);
}

static void ask_for_fetch(const struct running *r, const struct line_fetch *f)
{
	u64 line = r->s->i1.line[f->line];

	ask_ll(r, f->place, f->second ? line - r->s->within - 1 : 0, line);
}

/* LL is asked for fetches before @place. */
static void ask_for_fetches(const struct running *r, u32 place)
{
	struct event_simulation *s = r->s;
	u32 i = 0;

	while (i < s->nr_missed && s->missed[i]->place < place)
		ask_for_fetch(r, s->missed[i++]);
	s->nr_missed -= i;
	for (u32 k = 0; i && k < s->nr_missed; k++)
		s->missed[k] = s->missed[k + i];
}

/* A line that is not there. Returns the last one of the instruction. */
static __attribute__((noinline)) const struct line_fetch *fetch_missed(struct event_simulation *s,
								       const struct line_fetch *f)
{
	fetch_cache_bring(&s->i1, f->line);
	if (f->both && !fetch_cache_use(&s->i1, (++f)->line))
		fetch_cache_bring(&s->i1, f->line);
	s->missed[s->nr_missed++] = f;
	return f;
}

static void data_missed(const struct running *r, u32 place, u64 before, u64 line)
{
	if (r->s->nr_missed)
		ask_for_fetches(r, place);
	ask_ll(r, place, before, line);
}

static void access_one(const struct running *r, const struct one_access *a, u64 at)
{
	struct lru_cache *d1 = &r->s->d1;
	u64 first = at | r->s->within, last = (at + a->size - 1) | r->s->within;
	bool hit = lru_cache_use(d1, first);

	if (last != first)
		hit &= lru_cache_use(d1, last);
	if (!hit)
		data_missed(r, a->place, last != first ? first : 0, last);
}

static u64 address(const struct one_access *a, const struct path_slots *slots)
{
	u64 at = a->disp;

	if (a->base != PATH_NO_SLOT)
		at += slots->slot[a->base];
	if (a->index != PATH_NO_SLOT && a->kind != ACCESS_STRING)
		at += (a->flags & PATH_BYTE_INDEX ? (u8)slots->slot[a->index]
						  : slots->slot[a->index])
		      << a->scale;
	if (a->flags & PATH_ADDR32)
		at = (u32)at;
	if (a->flags & PATH_FS)
		at += slots->fs_base;
	if (a->flags & PATH_GS)
		at += slots->gs_base;
	return at;
}

/* By what the instruction has done to the registers that go over the strings. */
static void string(const struct running *r, const struct one_access *a)
{
	const struct path_slots *slots = r->slots;
	u64 moved = slots->slot[a->index] - (slots->slot[a->base] + a->disp), step = a->size, n;
	u64 at[2] = {address(a, slots), a->with_next ? address(a + 1, slots) : 0};

	if (a->flags & PATH_ADDR32)
		moved = (u64)(s64)(s32)moved;
	if ((s64)moved < 0) {
		moved = -moved;
		step = -step;
	}
	n = moved / a->size;
	/* What nobody executes: the registers may be anybody's. */
	if (n > STRING_MAX)
		return;
	note(r, a->place, 0, n);
	if (a->with_next)
		note(r, a[1].place, 0, n);
	for (; n; n--, at[0] += step, at[1] += step) {
		access_one(r, a, at[0]);
		if (a->with_next)
			access_one(r, a + 1, at[1]);
	}
}

/* Accesses @from and those behind it, one by one. */
static __attribute__((noinline)) void access_each(const struct running *r, u32 from, u32 n)
{
	for (u32 i = from; i < from + n; i++) {
		const struct one_access *a = &r->c->access[i];

		if (a->kind != ACCESS_STRING)
			access_one(r, a, address(a, r->slots));
		else if (i == 0 || a[-1].kind != ACCESS_STRING || !a[-1].with_next)
			string(r, a);
	}
}

static bool has_slots(const struct one_access *a, const struct path_slots *slots)
{
	return (a->base == PATH_NO_SLOT || a->base < slots->n) &&
	       (a->index == PATH_NO_SLOT || a->index < slots->n);
}

/* Slots may be missing: what needs them is left out. */
static void access_some(const struct running *r)
{
	for (u32 i = 0; i < r->c->nr_accesses; i++) {
		const struct one_access *a = &r->c->access[i];
		bool both = a->kind == ACCESS_STRING && a->with_next;

		if (has_slots(a, r->slots) && (!both || has_slots(a + 1, r->slots)))
			access_each(r, i, 1);
		else if (!r->c->place[a->place].counts)
			note(r, a->place, 0, -1ull);
		i += both;
	}
}

static __attribute__((noinline)) void data_other(const struct running *r, u32 place, u64 set,
						 u64 line)
{
	if (!lru_cache_use_other(&r->s->d1, set, line))
		data_missed(r, place, 0, line);
}

/* Accesses that are not of one line, or one of two lines. */
static __attribute__((noinline)) void access_crossing(const struct running *r,
						      const struct line_access *a)
{
	const struct one_access *one = &r->c->access[a->first];
	const struct lru_cache *d1 = &r->s->d1;
	u64 slot = a->n > 1 ? r->slots->slot[a->base] : 0, within = r->s->within;

	if (a->n == 1) {
		access_one(r, one, address(one, r->slots));
		return;
	}
	for (u32 i = 0; i < a->n; i++, one++) {
		u64 at = slot + one->disp, line = at | within, set = lru_cache_set(d1, line);

		if (unlikely(at + one->size - 1 > line))
			access_one(r, one, at);
		else if (d1->last[set] != line)
			data_other(r, one->place, set, line);
	}
}

static inline u64 address_of(const struct line_access *a, const u64 *slot)
{
	if (likely(a->kind == ACCESS_SLOT))
		return a->disp + slot[a->base];
	if (a->kind == ACCESS_SLOTS)
		return a->disp + slot[a->base] + (slot[a->index] << a->scale);
	if (a->kind == ACCESS_FIXED)
		return a->disp;
	return a->disp + (slot[a->index] << a->scale);
}

/* All slots are there, and sets are found by a mask. */
static inline void access_all(const struct running *r)
{
	const struct simulated_code *c = r->c;
	const u64 *slot = r->slots->slot, *last = r->s->d1.last;
	u64 within = r->s->within, mask = r->s->d1.mask;
	u32 shift = r->s->d1.shift;

	for (const struct line_access *a = c->line, *end = a + c->nr_lines; a < end; a++) {
		u64 at, line, set;

		if (unlikely(a->kind >= ACCESS_OTHER)) {
			access_each(r, a->first, a->n);
			continue;
		}
		at = address_of(a, slot);
		line = at | within;
		set = line >> shift & mask;
		if (unlikely(at + a->more > line))
			access_crossing(r, a);
		else if (unlikely(last[set] != line))
			data_other(r, c->access[a->first].place, set, line);
	}
}

/* True: it was not foreseen. */
static inline bool branch(struct event_simulation *s, const struct cond_branch *b)
{
	u32 at = (u32)((s->history & (BIT(HISTORY_BITS) - 1)) << ADDRESS_BITS |
		       (b->pc & (BIT(ADDRESS_BITS) - 1)));
	u8 was = s->counter[at];

	s->history = s->history << 1 | b->taken;
	if (b->taken)
		s->counter[at] = (u8)(was + (was < 3));
	else
		s->counter[at] = (u8)(was - (was > 0));
	return (was >= 2) != b->taken;
}

bool simulate_target(struct event_simulation *s, u64 pc, u64 target)
{
	u64 *last = &s->last_target[pc % LAST_TARGETS];
	bool wrong = *last != target;

	*last = target;
	return wrong;
}

static inline void fetch(struct event_simulation *s, const struct simulated_code *c)
{
	const u32 *place = s->i1.place;
	u64 *used = s->i1.used, now = s->i1.now;

	for (const struct line_fetch *f = c->fetch, *end = f + c->nr_fetches; f < end; f++) {
		if (likely(place[f->line])) {
			used[place[f->line]] = ++now;
			continue;
		}
		s->i1.now = now;
		f = fetch_missed(s, f);
		now = s->i1.now;
	}
	s->i1.now = now;
}

bool simulate(struct event_simulation *s, const struct simulated_code *c,
	      const struct path_slots *slots, u64 *counts, struct event_counts *sum)
{
	const struct running r = {.s = s, .c = c, .slots = slots, .counts = counts, .sum = sum};

	fetch(s, c);
	if (likely(c->nr_slots <= slots->n && !s->d1.divides))
		access_all(&r);
	else
		access_some(&r);
	if (unlikely(s->nr_missed))
		ask_for_fetches(&r, c->nr_places);
	for (const struct cond_branch *b = c->cond, *end = b + c->nr_conds; b < end; b++)
		if (branch(s, b))
			note(&r, b->place, 1, 1);
	sum->n[SIMULATED_READ][0] += c->met[SIMULATED_READ];
	sum->n[SIMULATED_WRITE][0] += c->met[SIMULATED_WRITE];
	if (!s->opts.branches)
		return false;
	sum->n[SIMULATED_COND][0] += c->met[SIMULATED_COND];
	sum->n[SIMULATED_INDIRECT][0] += c->met[SIMULATED_INDIRECT];
	return c->indirect;
}

bool simulated_fits(const struct simulated_code *c, const struct path_slots *slots)
{
	return c->nr_slots <= slots->n;
}

/* What the first level has of it all: only when each line was used last changes. */
static inline bool fetch_hits(struct fetch_cache *i1, const struct simulated_code *c)
{
	const u32 *place = i1->place;
	u64 now = i1->now, absent = 0;

	for (u32 i = 0; i < c->nr_unique; i++)
		absent |= place[c->unique[i]] - 1u;
	if (unlikely(absent >> 31))
		return false;
	for (u32 i = 0; i < c->nr_unique; i++)
		i1->used[place[c->unique[i]]] = ++now;
	i1->now = now;
	return true;
}

/* As they come, first those of a part after the other: few, and nearly so already. */
static __attribute__((noinline)) void sort_by_part(struct simulated_miss *miss, u32 n)
{
	for (u32 i = 1; i < n; i++) {
		struct simulated_miss m = miss[i];
		u32 k = i;

		for (; k && miss[k - 1].part > m.part; k--)
			miss[k] = miss[k - 1];
		miss[k] = m;
	}
}

u32 simulate_joined(struct event_simulation *s, const struct simulated_code *c,
		    const struct path_slots *slots, struct simulated_miss *miss)
{
	u32 n = 0;
	const struct running r = {.s = s, .c = c, .slots = slots, .miss = miss, .nr_missed = &n};

	_Static_assert(SIMULATED_MISSES >= 2 * JOINED_PLACES, "two levels of each place");
	if (!fetch_hits(&s->i1, c))
		fetch(s, c);
	access_all(&r);
	if (unlikely(s->nr_missed))
		ask_for_fetches(&r, c->nr_places);
	for (const struct cond_branch *b = c->cond, *end = b + c->nr_conds; b < end; b++)
		if (branch(s, b))
			note(&r, b->place, 1, 1);
	for (u32 i = 0; i < c->nr_targets; i++)
		if (simulate_target(s, c->target[i].pc, c->target[i].target))
			note(&r, c->target[i].place, 1, 1);
	if (unlikely(n > 1))
		sort_by_part(miss, n);
	return n;
}
