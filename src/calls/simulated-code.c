/* What instructions one after the other have to do with caches and branches. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/simulation-priv.h"

/* What is being made, with room for the most that there can be. */
struct code_draft {
	struct event_simulation *s;
	u32 nr_places, nr_fetches, nr_lines, nr_accesses, nr_conds, nr_slots;
	u64 fetched; /* the line; 0: none */
	u64 met[SIMULATED_GROUPS];
	struct line_fetch fetch[SIMULATED_INSNS + 1];
	struct cond_branch cond[SIMULATED_INSNS];
	struct line_access line[PATH_WALK_ACCESSES];
	struct one_access access[PATH_WALK_ACCESSES];
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
	const struct one_access *p = &d->access[d->nr_accesses - 1];
	const struct event_place *place = &d->place[p->place];

	return place->group == SIMULATED_READ && place->insn == insn && a->kind == PATH_STORE &&
	       p->kind != ACCESS_STRING && p->disp == a->disp && p->base == a->base &&
	       p->index == a->index && p->size == a->size && p->scale == a->scale &&
	       p->flags == a->flags;
}

static enum access_kind kind_of(const struct path_access *a)
{
	if (a->kind == PATH_LOADS || a->kind == PATH_STORES)
		return ACCESS_STRING;
	if (a->flags)
		return ACCESS_OTHER;
	if (a->base == PATH_NO_SLOT)
		return a->index == PATH_NO_SLOT ? ACCESS_FIXED : ACCESS_SCALED;
	return a->index == PATH_NO_SLOT ? ACCESS_SLOT : ACCESS_SLOTS;
}

/* Puts the access to the one before it, if that is mostly of the same line. */
static bool add_to_line(struct code_draft *d, const struct one_access *p)
{
	struct line_access *line = d->nr_lines ? &d->line[d->nr_lines - 1] : NULL;
	s64 from, upto;

	if (!line || p->kind != ACCESS_SLOT || line->kind != ACCESS_SLOT || line->base != p->base)
		return false;
	from = (s64)(p->disp - line->disp);
	upto = from + p->size - 1;
	if (from < -(s64)d->s->within || upto > (s64)d->s->within)
		return false;
	from = from < 0 ? from : 0;
	upto = upto > line->more ? upto : line->more;
	if (upto - from > (s64)d->s->within)
		return false;
	line->disp += (u64)from;
	line->more = (u16)(upto - from);
	line->n++;
	return true;
}

static void need_slot(struct code_draft *d, u16 slot)
{
	if (slot != PATH_NO_SLOT && slot >= d->nr_slots)
		d->nr_slots = slot + 1u;
}

static void add_access(struct code_draft *d, const struct path_access *a, u32 insn)
{
	bool write = a->kind == PATH_STORE || a->kind == PATH_STORES;
	struct one_access *last = d->nr_accesses ? &d->access[d->nr_accesses - 1] : NULL, *p;
	enum access_kind kind = kind_of(a);

	if (a->kind == PATH_PREFETCH || !a->size)
		return;
	if (kind == ACCESS_STRING && (a->base == PATH_NO_SLOT || a->index == PATH_NO_SLOT))
		return;
	if (last && modifies(d, a, insn)) {
		if (!d->s->opts.modified_is_read) {
			d->place[last->place].group = SIMULATED_WRITE;
			d->met[SIMULATED_READ]--;
			d->met[SIMULATED_WRITE]++;
		}
		return;
	}
	if (kind == ACCESS_STRING && last && last->kind == ACCESS_STRING &&
	    d->place[last->place].insn == insn)
		last->with_next = true;
	p = &d->access[d->nr_accesses];
	*p = (struct one_access){.disp = a->disp,
				 .base = a->base,
				 .index = a->index,
				 .size = (u16)min_u64(a->size, d->s->within + 1),
				 .kind = (u8)kind,
				 .flags = a->flags,
				 .scale = a->scale};
	p->place = (u16)add_place(d, write ? SIMULATED_WRITE : SIMULATED_READ, insn,
				  kind == ACCESS_STRING);
	need_slot(d, p->base);
	need_slot(d, p->index);
	if (!add_to_line(d, p))
		d->line[d->nr_lines++] = (struct line_access){.disp = p->disp,
							      .base = p->base,
							      .index = p->index,
							      .more = (u16)(p->size - 1),
							      .kind = p->kind,
							      .scale = p->scale,
							      .first = (u16)d->nr_accesses,
							      .n = 1};
	d->nr_accesses++;
}

static struct simulated_code *finish(const struct code_draft *d, bool indirect)
{
	size_t fetches = d->nr_fetches * sizeof(d->fetch[0]);
	size_t lines = d->nr_lines * sizeof(d->line[0]);
	size_t accesses = d->nr_accesses * sizeof(d->access[0]);
	size_t conds = d->nr_conds * sizeof(d->cond[0]);
	size_t places = d->nr_places * sizeof(d->place[0]);
	struct simulated_code *c = calls_memory_take(
		&d->s->memory, sizeof(*c) + fetches + lines + accesses + conds + places + 5 * 8);
	u8 *at = (u8 *)(c + 1);

	*c = (struct simulated_code){.nr_places = d->nr_places,
				     .nr_fetches = d->nr_fetches,
				     .nr_lines = d->nr_lines,
				     .nr_accesses = d->nr_accesses,
				     .nr_conds = d->nr_conds,
				     .nr_slots = d->nr_slots,
				     .indirect = indirect};
	memcpy(c->met, d->met, sizeof(c->met));
	c->fetch = calls_memory_put(&at, d->fetch, fetches);
	c->line = calls_memory_put(&at, d->line, lines);
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
	d->nr_places = d->nr_fetches = d->nr_lines = d->nr_accesses = d->nr_conds = 0;
	d->nr_slots = 0;
	d->fetched = 0;
	memset(d->met, 0, sizeof(d->met));
	for (u32 i = 0; i < n; i++) {
		const struct path_step *at = &steps[i];

		if (s->opts.caches) {
			add_fetch(d, at, i);
			for (u32 k = 0; k < at->nr_accesses; k++)
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
