/*
 * What a model has counted of what a thread executes, by who executes it: cells, and instructions
 * of them. One table for all, since most instructions never cause most events.
 */
#include <stdlib.h>

#include "abi/modeled-profile.h"
#include "base/check.h"
#include "calls/calls-priv.h"

/* Of a program at most: most may be used by half, so that a look is short. */
#define MODELED_MOST (1u << 22)

static u64 hash_of(const struct calls_modeled *m)
{
	u64 hash = (u64)(uintptr_t)m->cell * 0x9e3779b97f4a7c15ull ^ m->pc;

	hash = (hash ^ hash >> 29 ^ m->addr << 4 ^ m->event) * 0xbf58476d1ce4e5b9ull;
	return hash ^ hash >> 32;
}

/* Where that is or would be: `cell` is NULL then. */
static struct calls_modeled *place_at(const struct calls_modeled_counts *c,
				      const struct calls_modeled *m)
{
	for (u64 i = hash_of(m);; i++) {
		struct calls_modeled *at = &c->at[i & (c->room - 1)];

		if (!at->cell || (at->cell == m->cell && at->pc == m->pc && at->addr == m->addr &&
				  at->event == m->event))
			return at;
	}
}

static void grow(struct calls_modeled_counts *c)
{
	struct calls_modeled_counts more = {.n = c->n, .room = c->room ? c->room * 2 : 4096};

	more.at = calloc(more.room, sizeof(*more.at));
	CHECK(more.at);
	for (u32 i = 0; i < c->room; i++)
		if (c->at[i].cell)
			*place_at(&more, &c->at[i]) = c->at[i];
	free(c->at);
	c->at = more.at;
	c->room = more.room;
}

/* The less room there is, the more data is taken for one. */
static u64 data_of(const struct calls_modeled_counts *c, u64 addr)
{
	if (!addr || addr & MODELED_SITE)
		return addr;
	if (c->n < MODELED_MOST / 4)
		return addr & ~7ull;
	return c->n < MODELED_MOST / 8 * 3 ? addr & ~4095ull : 0;
}

/* @n of @event at @pc of @cell (0: at all of its instructions), which is executed. */
static void count_at(struct calls_graph *g, const struct calls_cell *cell, u64 pc,
		     const struct path_event *event, u64 n)
{
	struct calls_modeled_counts *c = &g->modeled;
	struct calls_modeled *at, m = {.cell = cell,
				       .pc = pc,
				       .addr = data_of(c, event->addr),
				       .event = event->event};

	if (!n)
		return;
	if (c->n * 2 >= c->room && c->room < MODELED_MOST)
		grow(c);
	at = place_at(c, &m);
	if (!at->cell && c->n >= c->room / 2) {
		c->unplaced[event->event] += n;
		return;
	}
	if (!at->cell) {
		*at = m;
		c->n++;
	}
	at->count += n;
}

/* Likewise, by the thread: what is not told of by itself is its caller's. */
static void count_by(struct calls_thread *t, u64 pc, const struct path_event *event, u64 n)
{
	const struct calls_cell *skipped = t->nonskipped;

	if (!t->collect)
		return;
	if (skipped)
		count_at(t->graph, skipped, skipped->span->last, event, n);
	else
		count_at(t->graph, t->last, pc, event, n);
}

void calls_modeled_before(struct calls_thread *t, const struct path_event *event, u32 n, bool all)
{
	for (u32 i = 0; i < n; i++) {
		const struct path_event *e = &event[i];

		if (e->event >= PROFILED_EVENTS || !(all || e->flags))
			continue;
		if (e->flags & PATH_EVENT_UNKNOWN || !t->last)
			t->graph->modeled.unplaced[e->event] += e->count;
		else
			count_by(t, e->pc ? e->pc : t->last->span->last, e, e->count);
	}
}

/* The part of @path that executes @pc; the last one if none does. */
static const struct calls_span *part_with(const struct calls_span *path, u64 pc)
{
	const struct calls_span *s = path;
	u32 i;

	for (; s->rest; s = s->rest) {
		for (i = 0; i < s->n && s->pc[i] != pc; i++)
			;
		if (i < s->n)
			break;
	}
	return s;
}

/* What a path of several parts costs is that of each by its instructions. */
static u64 share(const struct calls_span *path, const struct calls_span *part, u64 count)
{
	u32 before = 0, all = 0;

	for (const struct calls_span *s = path; s; s = s->rest) {
		before = s == part ? all : before;
		all += s->n;
	}
	CHECK(all);
	return count * (before + part->n) / all - count * before / all;
}

void calls_modeled_part(struct calls_thread *t, const struct calls_span *path,
			const struct path_event *event, u32 n)
{
	const struct calls_span *part = t->last->span;

	for (u32 i = 0; i < n; i++) {
		const struct path_event *e = &event[i];

		if (e->event >= PROFILED_EVENTS || e->flags)
			continue;
		if (!e->pc)
			count_by(t, 0, e, path->rest ? share(path, part, e->count) : e->count);
		else if (!path->rest || part_with(path, e->pc) == part)
			count_by(t, e->pc, e, e->count);
	}
}

int calls_tree_modeled(struct calls_graph *g, calls_piece_fn *fn, void *data)
{
	struct calls_modeled_counts *c = &g->modeled;
	int err = 0;

	for (u32 i = 0; i < c->room && !err; i++) {
		const struct calls_modeled *m = &c->at[i];
		struct calls_piece piece = {.pc = &m->pc,
					    .n = 1,
					    .count = m->count,
					    .event = m->event,
					    .addr = m->addr};

		if (!m->cell)
			continue;
		if (!m->pc) {
			piece.pc = m->cell->span->pc;
			piece.n = m->cell->span->n;
		}
		err = calls_tree_give(m->cell, &piece, fn, data);
	}
	for (u32 i = 0; i < PROFILED_EVENTS && !err; i++) {
		const u64 nowhere = 0;
		const struct calls_piece piece = {
			.pc = &nowhere, .n = 1, .count = c->unplaced[i], .event = i};

		err = piece.count ? fn(&piece, data) : 0;
	}
	return err;
}
