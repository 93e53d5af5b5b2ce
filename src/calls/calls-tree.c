/*
 * The tree of calls: a context for each way to a function, by who called and by which instruction.
 * That it is, and not where the caller goes on, since behind a call that does not return another
 * line begins, or another function. It is told as the byte behind its first one: who reads chains
 * looks at the byte before each, or at it, and finds the call both times. A function that is on its
 * way already has the context of its first call, so that a tree is no deeper than there are
 * functions.
 */
#include <stdlib.h>

#include "base/check.h"
#include "calls/calls-priv.h"

static u64 hash_of(const void *of, const void *what, u64 site)
{
	u64 hash = (u64)(uintptr_t)of * 0x9e3779b97f4a7c15ull ^ (u64)(uintptr_t)what;

	hash = (hash ^ hash >> 29 ^ site) * 0xbf58476d1ce4e5b9ull;
	return hash ^ hash >> 32;
}

/* Where that is or would be: `of` is NULL then. */
static struct calls_place *place_at(const struct calls_places *p, const void *of, const void *what,
				    u64 site)
{
	for (u64 i = hash_of(of, what, site);; i++) {
		struct calls_place *at = &p->place[i & (p->room - 1)];

		if (!at->of || (at->of == of && at->what == what && at->site == site))
			return at;
	}
}

static struct calls_place *place_of(struct calls_places *p, const void *of, const void *what,
				    u64 site)
{
	struct calls_place *at;

	if (p->n * 2 >= p->room) {
		struct calls_places more = {.n = p->n, .room = p->room ? p->room * 2 : 4096};

		more.place = calloc(more.room, sizeof(*more.place));
		CHECK(more.place);
		for (u32 i = 0; i < p->room; i++) {
			const struct calls_place *old = &p->place[i];

			if (old->of)
				*place_at(&more, old->of, old->what, old->site) = *old;
		}
		free(p->place);
		*p = more;
	}
	at = place_at(p, of, what, site);
	if (!at->of) {
		*at = (struct calls_place){.of = of, .what = what, .site = site};
		p->n++;
	}
	return at;
}

struct calls_context *calls_tree_root(struct calls_graph *g, u32 tid)
{
	struct calls_context *c = calloc(1, sizeof(*c));

	CHECK(c);
	c->tid = tid;
	c->next_made = g->made;
	g->made = c;
	return c;
}

struct calls_context *calls_tree_context(struct calls_graph *g, struct calls_context *parent,
					 struct calls_fn *fn, u64 site)
{
	struct calls_place *at = place_of(&g->places, parent, fn, site);
	struct calls_context *c;

	if (at->found)
		return at->found;
	CHECK(parent); /* a thread has a root */
	for (c = parent; c && c->fn != fn; c = c->parent)
		;
	if (!c) {
		c = calls_tree_root(g, parent->tid);
		c->fn = fn;
		c->parent = parent;
		c->site = site;
	}
	at->found = c;
	return c;
}

struct calls_place *calls_tree_cell(struct calls_graph *g, struct calls_span *s,
				    struct calls_context *c)
{
	return place_of(&g->places, s, c, 0);
}

void calls_tree_free(struct calls_graph *g)
{
	while (g->made) {
		struct calls_context *c = g->made;

		g->made = c->next_made;
		free(c);
	}
	free(g->places.place);
	free(g->modeled.at);
}

#define CALLERS_MAX 126u /* as many as the kernel takes, with the instruction itself */

int calls_tree_give(const struct calls_cell *c, struct calls_piece *piece, calls_piece_fn *fn,
		    void *data)
{
	u64 callers[CALLERS_MAX];

	piece->tid = c->context->tid;
	piece->callers = callers;
	piece->nr_callers = 0;
	for (const struct calls_context *at = c->context;
	     at && at->site && piece->nr_callers < CALLERS_MAX; at = at->parent)
		callers[piece->nr_callers++] = at->site;
	return fn(piece, data);
}

static int give(const struct calls_cell *c, calls_piece_fn *fn, void *data)
{
	const struct calls_span *s = c->span;
	struct calls_piece piece = {.pc = s->pc, .n = s->n, .count = c->count};
	int err = 0;

	if (piece.count)
		err = calls_tree_give(c, &piece, fn, data);
	/* What is not told of by itself is at the instruction that has called it. */
	piece.pc = &s->last;
	piece.n = 1;
	piece.count = c->skipped;
	return err || !piece.count ? err : calls_tree_give(c, &piece, fn, data);
}

int calls_tree(struct calls_graph *g, calls_piece_fn *fn, void *data)
{
	int err = 0;

	calls_runs_settle(g);
	for (struct calls_span *s = g->spans; s && !err; s = s->next_made) {
		if (s->cell)
			s->cell->count += s->count;
		s->count = 0;
		for (const struct calls_cell *c = s->cells; c && !err; c = c->next)
			err = give(c, fn, data);
	}
	return err;
}
