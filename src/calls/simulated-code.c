/* What instructions one after the other have to do with caches and branches. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/simulation-priv.h"

/* What is being made, with room for the most that there can be. */
struct code_draft {
	struct event_simulation *s;
	u32 nr_places, nr_fetches, nr_accesses, nr_conds, first_access;
	u64 fetched; /* the line; 0: none */
	u64 met[SIMULATED_GROUPS];
	struct line_fetch fetch[SIMULATED_INSNS + 1];
	struct cond_branch cond[SIMULATED_INSNS];
	struct one_access access[PATH_WALK_ACCESSES];
	struct path_access last; /* that has a place */
	u32 last_insn;           /* of that */
	struct event_place place[SIMULATED_INSNS * 3 + PATH_WALK_ACCESSES];
};

static u32 add_place(struct code_draft *d, enum simulated group, u32 insn, bool counts)
{
	d->place[d->nr_places] =
		(struct event_place){.group = (u8)group, .insn = (u8)insn, .counts = counts};
	if (!counts && group != SIMULATED_FETCH)
		d->met[group]++;
	return d->nr_places++;
}

static void add_line(struct code_draft *d, u64 line, u32 place, bool both, bool second)
{
	d->fetch[d->nr_fetches++] = (struct line_fetch){fetch_cache_number(&d->s->i1, line),
							(u16)place, both, second};
}

static void add_fetch(struct code_draft *d, const struct path_step *at, u32 insn)
{
	u64 within = d->s->within, first = at->pc | within;
	u64 last = (at->pc + (at->len ? at->len : 1) - 1) | within;
	u32 place;

	/* Nothing would be counted. */
	if (first == d->fetched && last == first)
		return;
	place = add_place(d, SIMULATED_FETCH, insn, true);
	if (first != d->fetched)
		add_line(d, first, place, last != first, false);
	if (last != first)
		add_line(d, last, place, false, true);
	d->fetched = last;
}

/* Whether @a is written where it was read just before, by one instruction. */
static bool modifies(const struct code_draft *d, const struct path_access *a, u32 insn)
{
	const struct path_access *p = &d->last;
	const struct event_place *place = &d->place[d->nr_places - 1];

	return d->nr_places && place->group == SIMULATED_READ && place->insn == insn &&
	       a->kind == PATH_STORE && p->kind == PATH_LOAD && p->disp == a->disp &&
	       p->base == a->base && p->index == a->index && p->size == a->size &&
	       p->scale == a->scale && p->flags == a->flags;
}

/* The place of what was read before is one of a write. */
static void make_write(struct code_draft *d)
{
	d->place[d->nr_places - 1].group = SIMULATED_WRITE;
	d->met[SIMULATED_READ]--;
	d->met[SIMULATED_WRITE]++;
}

static void add_access(struct code_draft *d, const struct path_access *a, u32 insn)
{
	bool write = a->kind == PATH_STORE || a->kind == PATH_STORES;
	bool string = a->kind == PATH_LOADS || a->kind == PATH_STORES;
	struct one_access *p = &d->access[d->nr_accesses++];

	*p = (struct one_access){.place = NO_PLACE,
				 .size = (u16)min_u64(a->size, d->s->within + 1),
				 .string = string,
				 .addr32 = a->flags & PATH_ADDR32};
	if (a->kind == PATH_PREFETCH || !a->size)
		return;
	if (modifies(d, a, insn)) {
		if (!d->s->opts.modified_is_read)
			make_write(d);
		return;
	}
	/* What one string instruction does to two strings goes along. */
	if (string && d->nr_accesses > 1 && p[-1].string && d->last_insn == insn)
		p[-1].with_next = true;
	p->place = (u16)add_place(d, write ? SIMULATED_WRITE : SIMULATED_READ, insn, string);
	d->last = *a;
	d->last_insn = insn;
}

/* Who gives us more is not whom the translator has described. */
static bool has_room(const struct code_draft *d)
{
	return d->nr_accesses < PATH_WALK_ACCESSES;
}

static struct simulated_code *finish(const struct code_draft *d, bool indirect)
{
	size_t fetches = d->nr_fetches * sizeof(d->fetch[0]);
	size_t accesses = d->nr_accesses * sizeof(d->access[0]);
	size_t conds = d->nr_conds * sizeof(d->cond[0]);
	size_t places = d->nr_places * sizeof(d->place[0]);
	struct simulated_code *c = calls_memory_take(
		&d->s->memory, sizeof(*c) + fetches + accesses + conds + places + 4 * 8);
	u8 *at = (u8 *)(c + 1);

	*c = (struct simulated_code){.nr_places = d->nr_places,
				     .nr_fetches = d->nr_fetches,
				     .nr_accesses = d->nr_accesses,
				     .nr_conds = d->nr_conds,
				     .first_access = d->first_access,
				     .indirect = indirect};
	memcpy(c->met, d->met, sizeof(c->met));
	c->fetch = calls_memory_put(&at, d->fetch, fetches);
	c->access = calls_memory_put(&at, d->access, accesses);
	c->cond = calls_memory_put(&at, d->cond, conds);
	c->place = calls_memory_put(&at, d->place, places);
	return c;
}

struct simulated_code *simulated_code_new(struct event_simulation *s, const struct path_step *steps,
					  u32 n)
{
	struct code_draft *d = malloc(sizeof(*d));
	struct simulated_code *c;
	bool indirect = false;

	CHECK(d && n <= SIMULATED_INSNS);
	d->s = s;
	d->nr_places = d->nr_fetches = d->nr_accesses = d->nr_conds = 0;
	d->first_access = n ? steps[0].first_access : 0;
	d->fetched = 0;
	memset(d->met, 0, sizeof(d->met));
	for (u32 i = 0; i < n; i++) {
		const struct path_step *at = &steps[i];

		if (s->opts.caches) {
			add_fetch(d, at, i);
			for (u32 k = 0; k < at->nr_accesses && has_room(d); k++)
				add_access(d, &at->access[k], i);
		}
		if (!s->opts.branches)
			continue;
		if (at->kind == PATH_COND)
			d->cond[d->nr_conds++] = (struct cond_branch){
				at->pc, add_place(d, SIMULATED_COND, i, false), at->taken};
		/* Returns are foreseen, so cachegrind has none of them. */
		if (i + 1 == n && (at->kind == PATH_CALL_IND || at->kind == PATH_JUMP_IND)) {
			add_place(d, SIMULATED_INDIRECT, i, false);
			indirect = true;
		}
	}
	c = finish(d, indirect);
	free(d);
	return c;
}

u32 simulated_places(const struct simulated_code *c)
{
	return c->nr_places;
}

u32 simulated_insn(const struct simulated_code *c, u32 place, enum simulated *what, bool *counts)
{
	*what = (enum simulated)c->place[place].group;
	*counts = c->place[place].counts;
	return c->place[place].insn;
}
