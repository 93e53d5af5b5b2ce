/* Calls from an instruction to an address, and how they are found. */
#include <stdlib.h>

#include "base/check.h"
#include "calls/calls-priv.h"

/* Nearly all instructions call few. What is called from where there are more is in a table. */
#define FEW   8u
#define EDGES 1024u /* places of the table at first; a power of two */

static u64 hash_of(const struct calls_cell *from, const struct calls_context *to, u64 target)
{
	u64 h = (uintptr_t)from * 0x9e3779b97f4a7c15ull + (uintptr_t)to;

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull + target;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static void put(struct calls_edges *t, struct calls_edge *e)
{
	u64 at = hash_of(e->from, e->to, e->target);

	while (t->place[at & t->mask])
		at++;
	t->place[at & t->mask] = e;
}

static void grow(struct calls_edges *t)
{
	struct calls_edge **was = t->place;
	u64 n = was ? t->mask + 1 : 0, size = n ? 2 * n : EDGES;

	t->place = calloc(size, sizeof(struct calls_edge *));
	CHECK(t->place);
	t->mask = size - 1;
	for (u64 i = 0; i < n; i++)
		if (was[i])
			put(t, was[i]);
	free(was);
}

static struct calls_edge *find(const struct calls_edges *t, const struct calls_cell *from,
			       const struct calls_context *to, u64 target)
{
	struct calls_edge *e;

	for (u64 at = hash_of(from, to, target); (e = t->place[at & t->mask]); at++)
		if (e->from == from && e->to == to && e->target == target)
			break;
	return e;
}

struct calls_edge *calls_edge_of(struct calls_graph *g, struct calls_cell *from,
				 struct calls_context *to, u64 target)
{
	struct calls_edge *e, **at;
	u32 few = 0;

	for (at = &from->edges; (e = *at) && few < FEW; at = &e->next, few++) {
		if (e->to != to || e->target != target)
			continue;
		/* The next call is likely to be the same. */
		*at = e->next;
		e->next = from->edges;
		from->edges = e;
		return e;
	}
	e = e ? find(&g->edges, from, to, target) : NULL;
	if (e)
		return e;
	e = calls_memory_take(&g->memory, sizeof(*e));
	*e = (struct calls_edge){.from = from,
				 .to = to,
				 .target = target,
				 .level = to->level,
				 .number = to->fn->number,
				 .next = from->edges};
	if (from->span->simulated) {
		e->events = calloc(1, sizeof(*e->events));
		CHECK(e->events);
	}
	from->edges = e;
	if (2 * g->edges.n >= g->edges.mask)
		grow(&g->edges);
	g->edges.n++;
	put(&g->edges, e);
	return e;
}
