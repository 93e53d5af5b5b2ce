/*
 * Caches and branches, span by span, or several spans that were joined. Nearly all data is of the
 * two lines that its set has used last, which the program's threads leave out. First come fetches,
 * then accesses, which have no cache in common but LL; that is asked in the order of the
 * instructions, so fetches that it is to be asked for wait until an access asks as well.
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

		/* There are two for each place; but who has records made up may have any number. */
		if (*r->nr_missed == SIMULATED_MISSES)
			return;
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

static inline void access_one(const struct running *r, u32 place, u32 size, u64 at)
{
	struct lru_cache *d1 = &r->s->d1;
	u64 first = at | r->s->within, last = (at + size - 1) | r->s->within;
	bool hit = lru_cache_use(d1, first);

	if (unlikely(last != first))
		hit &= lru_cache_use(d1, last);
	if (!hit)
		data_missed(r, place, last != first ? first : 0, last);
}

void simulate_again(struct event_simulation *s, const struct path_record *r)
{
	lru_cache_use_again(&s->d1, r->addr | s->within);
}

/* The record behind @p of access @access and the same word. NULL: another one comes there. */
static const struct path_record *behind(const struct running *r, const struct path_record *p,
					const struct path_record *end, u32 access)
{
	u32 word = p->at;

	/* What is said of the order meanwhile was so before. */
	while (++p < end && path_record_is_again(p))
		simulate_again(r->s, p);
	return p < end && p->at == word && path_record_access(p) == access ? p : NULL;
}

/* What the instruction has done to one string, or two. Returns the first record behind it. */
static __attribute__((noinline)) const struct path_record *string(const struct running *r,
								  const struct one_access *a,
								  const struct path_record *p,
								  const struct path_record *end)
{
	u32 number = path_record_access(p);
	u64 mask = a->addr32 ? ~0u : ~0ull, moved, step = a->size, n;
	/* Where it stopped; where the other one began, and stopped. */
	const struct path_record *stop = behind(r, p, end, number), *next = NULL, *last = NULL;
	bool both;
	u64 at[2];

	if (!stop)
		return p + 1;
	if (a->with_next)
		next = behind(r, stop, end, number + 1);
	if (next)
		last = behind(r, next, end, number + 1);
	both = last;
	at[0] = p->addr;
	at[1] = both ? next->addr : 0;
	moved = stop->addr - p->addr;
	if (a->addr32)
		moved = (u64)(s64)(s32)moved;
	if ((s64)moved < 0) {
		moved = -moved;
		step = -step;
	}
	n = moved / a->size;
	/* What nobody executes: what is recorded may be anybody's. */
	if (n <= STRING_MAX) {
		note(r, a->place, 0, n);
		if (both)
			note(r, a[1].place, 0, n);
		for (; n; n--, at[0] += step, at[1] += step) {
			access_one(r, a->place, a->size, at[0] & mask);
			if (both)
				access_one(r, a[1].place, a[1].size, at[1] & mask);
		}
	}
	return (both ? last : stop) + 1;
}

/* @p is of @a, whose code begins with place @first. Returns the first record behind it. */
static inline const struct path_record *access_by(const struct running *r,
						  const struct one_access *a, u32 first,
						  const struct path_record *p,
						  const struct path_record *end)
{
	if (unlikely(a->place == NO_PLACE))
		return p + 1;
	if (unlikely(a->string))
		return string(r, a, p, end);
	if (p->what & PATH_RECORD_SWAPPED)
		lru_cache_swap(&r->s->d1, p->addr | r->s->within);
	access_one(r, first + a->place, a->size, p->addr);
	return p + 1;
}

/* Those of the records that are of the code. */
static inline void access_all(const struct running *r, struct path_records *records)
{
	const struct simulated_code *c = r->c;
	const struct path_record *p = records->next, *end = records->end;

	while (p < end && p->at == records->word) {
		u32 i = path_record_access(p) - c->first_access;

		if (likely(i < c->nr_accesses))
			p = access_by(r, &c->access[i], 0, p, end);
		else if (path_record_is_again(p))
			simulate_again(r->s, p++);
		else if ((s32)i < 0)
			p++;
		else
			break; /* of what comes behind the code in the same path */
	}
	records->next = p;
}

static const struct path_record *next_word(const struct path_record *p,
					   const struct path_record *end)
{
	u32 word = p->at;

	while (p < end && p->at == word)
		p++;
	return p;
}

/* The same, of several words. */
static inline void access_joined(const struct running *r, struct path_records *records)
{
	const struct simulated_code *c = r->c;
	const struct path_record *p = records->next, *end = records->end;
	const struct joined_part *part = c->part, *last = part + c->nr_parts - 1;
	u32 word, i;

	while (p < end && (word = p->at - records->word) < c->nr_words) {
		while (part->word < word)
			part++;
		i = path_record_access(p) - part->first_access;
		if (likely(i < part->nr_accesses))
			p = access_by(r, &part->access[i], part->place, p, end);
		else if (path_record_is_again(p))
			simulate_again(r->s, p++);
		else if ((s32)i < 0)
			p++;
		else if (part != last && part[1].word == word)
			part++;
		else /* as path_records_pass() has it */
			p = next_word(p, end);
	}
	records->next = p;
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
	      struct path_records *records, u64 *counts, struct event_counts *sum)
{
	const struct running r = {.s = s, .c = c, .counts = counts, .sum = sum};

	fetch(s, c);
	access_all(&r, records);
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

void simulate_accesses(struct event_simulation *s, const struct simulated_code *c,
		       struct path_records *records, u64 *counts, struct event_counts *sum)
{
	const struct running r = {.s = s, .c = c, .counts = counts, .sum = sum};

	access_all(&r, records);
}

/* Of what a loop fetches all is there, or it has to be looked for each time. */
static bool has_all(const struct fetch_cache *i1, const struct simulated_code *c)
{
	for (u32 i = 0; i < c->nr_fetches; i++)
		if (!i1->place[c->fetch[i].line])
			return false;
	return true;
}

bool simulate_round(struct event_simulation *s, const struct simulated_code *c, u32 times,
		    struct path_records *records, u64 *counts, struct event_counts *sum)
{
	const struct running r = {.s = s, .c = c, .counts = counts, .sum = sum};
	struct path_records left = *records;

	if (c->indirect || !has_all(&s->i1, c))
		return false;
	/* Only the last time of each line is of interest. */
	fetch(s, c);
	while (left.next < left.end && left.next->at - records->word < times) {
		left.word = left.next->at;
		access_all(&r, &left);
		path_records_pass(&left, 1);
	}
	records->next = left.next;
	for (u32 i = 0; c->nr_conds && i < times; i++)
		for (const struct cond_branch *b = c->cond, *end = b + c->nr_conds; b < end; b++)
			if (branch(s, b))
				note(&r, b->place, 1, 1);
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		sum->n[i][0] += c->met[i] * times;
	return true;
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
		    struct path_records *records, struct simulated_miss *miss)
{
	u32 n = 0;
	const struct running r = {.s = s, .c = c, .miss = miss, .nr_missed = &n};

	_Static_assert(SIMULATED_MISSES >= 2 * JOINED_PLACES, "two levels of each place");
	if (!fetch_hits(&s->i1, c))
		fetch(s, c);
	access_joined(&r, records);
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
