/* Runs of paths: working them out, keeping them, and what was counted by them. */
#include "calls/call-runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define SEEN  (1u << 17)
#define SLOTS 4096u

/*
 * Of paths that were seen: bits of their hash, how often they were, and how often they could not be
 * worked out.
 */
#define TAG     0xffe0u
#define TIMES   0x001cu
#define ONCE    0x0004u
#define REFUSED 3u

static u16 *seen_of(const struct calls_runs *r, u64 hash)
{
	return &r->seen[hash % SEEN];
}

bool run_is_worth(struct calls_runs *r, u64 hash, bool simulated)
{
	u16 tag = hash >> 48 & TAG, *seen;

	if (!r->seen) {
		r->seen = calloc(SEEN, sizeof(*r->seen));
		CHECK(r->seen);
	}
	seen = seen_of(r, hash);
	if ((*seen & TAG) != tag)
		*seen = tag;
	/* What it meets takes ten times as much memory: of a compiler's most come a few times. */
	else if (!simulated || (*seen & TIMES) == TIMES)
		return (*seen & REFUSED) != REFUSED;
	else
		*seen += ONCE;
	return false;
}

void run_refuse(const struct calls_runs *r, u64 hash)
{
	u16 *seen = r->seen ? seen_of(r, hash) : NULL;

	/* All may have been forgotten meanwhile. */
	if (seen && (*seen & REFUSED) != REFUSED)
		++*seen;
}

/* What the part meets, if something is simulated. */
static struct run_met record_part(struct run_recording *rec, const struct calls_span *s,
				  struct calls_cell *nonskipped)
{
	const u64 *met = simulated_met(s->simulated);
	struct run_met sum;

	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		sum.n[i] = (u32)met[i];
	run_met_add(&rec->met, &sum);
	if (rec->nr_parts == ARRAY_SIZE(rec->part)) {
		rec->failed = true;
		return sum;
	}
	if (rec->nr_parts)
		rec->code[rec->nr_parts - 1].after = s->first;
	rec->part[rec->nr_parts] = (struct run_part){s->cell, nonskipped};
	rec->code[rec->nr_parts++] =
		(struct simulated_part){.code = s->simulated, .word = rec->word, .last = s->last};
	return sum;
}

void run_record_count(struct run_recording *rec, const struct calls_span *s,
		      struct calls_cell *nonskipped)
{
	struct calls_cell *of = nonskipped ?: s->cell;
	struct run_met met = {{0}};
	u32 i = 0;

	rec->cost += s->n;
	if (s->simulated)
		met = record_part(rec, s, nonskipped);
	while (i < rec->nr_counts && rec->count[i].cell != of)
		i++;
	if (i == ARRAY_SIZE(rec->count)) {
		rec->failed = true;
		return;
	}
	if (i == rec->nr_counts)
		rec->count[rec->nr_counts++] = (struct run_count){.cell = of};
	if (!nonskipped) {
		rec->count[i].times++;
		return;
	}
	rec->count[i].skipped += s->n;
	run_met_add(&rec->count[i].met, &met);
}

static struct run_edge *edge_in(struct run_recording *rec, struct calls_edge *e)
{
	u32 i = 0;

	while (i < rec->nr_edges && rec->edge[i].edge != e)
		i++;
	if (i == ARRAY_SIZE(rec->edge)) {
		rec->failed = true;
		return &rec->edge[0];
	}
	if (i == rec->nr_edges)
		rec->edge[rec->nr_edges++] = (struct run_edge){.edge = e};
	return &rec->edge[i];
}

/* How many calls of the function are open beyond those that were before. */
static s32 open_now(const struct run_recording *rec, u32 number)
{
	s32 n = 0;

	for (u32 i = 0; i < rec->nr_opened; i++)
		n += rec->opened[i].frame.edge && rec->opened[i].number == number;
	for (u32 i = 0; i < rec->nr_closed; i++)
		n -= rec->closed[i].told && rec->closed[i].number == number;
	return n;
}

/* What was asked once need not be asked again. */
static void record_call(struct run_recording *rec, const struct calls_edge *e)
{
	struct run_call call = {e->number, (s16)open_now(rec, e->number), (u16)e->level};

	for (u32 i = 0; i < rec->nr_calls; i++)
		if (rec->call[i].number == call.number && rec->call[i].more == call.more)
			return;
	if (rec->nr_calls == ARRAY_SIZE(rec->call))
		rec->failed = true;
	else
		rec->call[rec->nr_calls++] = call;
}

void run_record_open(struct run_recording *rec, const struct calls_frame *f)
{
	struct run_open *o = &rec->opened[rec->nr_opened];

	/* Without an open call a jump to a function is another call. */
	if (f->emulated && !rec->nr_opened && rec->depth < rec->nr_closed + 1)
		rec->depth = rec->nr_closed + 1;
	if (f->edge) {
		record_call(rec, f->edge);
		edge_in(rec, f->edge)->times++;
	}
	if (rec->nr_opened == ARRAY_SIZE(rec->opened)) {
		rec->failed = true;
		return;
	}
	o->frame = *f;
	o->frame.enter = rec->cost;
	o->number = f->edge ? f->edge->number : 0;
	rec->opened_at[rec->nr_opened] = (struct run_moment){rec->met, rec->nr_parts};
	rec->nr_opened++;
}

/* A call that ends, and has begun in the same run. */
static void record_inner(struct run_recording *rec, const struct run_open *o,
			 const struct run_moment *opened)
{
	struct run_edge *e = edge_in(rec, o->frame.edge);

	e->cost += rec->cost - (u32)o->frame.enter;
	if (!rec->nr_parts)
		return;
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		e->met.n[i] += rec->met.n[i] - opened->met.n[i];
	if (rec->nr_inner == ARRAY_SIZE(rec->inner))
		rec->failed = true;
	else
		rec->inner[rec->nr_inner++] = (struct run_inner){o->frame.edge, opened->part,
								 rec->nr_parts};
}

void run_record_close(struct run_recording *rec, const struct calls_frame *f)
{
	if (rec->nr_opened) {
		const struct run_open *o = &rec->opened[--rec->nr_opened];

		if (o->frame.edge)
			record_inner(rec, o, &rec->opened_at[rec->nr_opened]);
		return;
	}
	if (rec->nr_closed == ARRAY_SIZE(rec->closed)) {
		rec->failed = true;
		return;
	}
	rec->closed_at[rec->nr_closed] = (struct run_moment){rec->met, rec->nr_parts};
	rec->closed[rec->nr_closed++] = (struct run_close){.ret = f->ret,
							   .context = f->context,
							   .nonskipped = f->nonskipped,
							   .cost = rec->cost,
							   .emulated = f->emulated,
							   .told = f->edge,
							   .number = f->edge ? f->edge->number : 0};
}

static void put(struct calls_runs *r, struct calls_run *run)
{
	u64 i = run->hash;

	while (r->slot[i & r->mask])
		i++;
	r->slot[i & r->mask] = (u64)(uintptr_t)run | (run->hash & RUN_TAG);
}

/* Twice as many slots. */
static void grow(struct calls_runs *r)
{
	u32 slots = r->slot ? (r->mask + 1) * 2 : SLOTS;

	free(r->slot);
	r->slot = calls_memory_table(slots * sizeof(*r->slot));
	r->mask = slots - 1;
	for (const struct run_totals *t = r->made; t; t = t->next_made)
		put(r, t->run);
}

static void keep_totals(struct calls_runs *r, struct calls_run *run,
			const struct run_recording *rec)
{
	size_t counts = rec->nr_counts * sizeof(rec->count[0]),
	       edges = rec->nr_edges * sizeof(rec->edge[0]);
	struct run_totals *t = calls_memory_take(&r->totals, sizeof(*t) + counts + edges);

	r->size += sizeof(*t) + counts + edges;
	t->run = run;
	t->nr_counts = rec->nr_counts;
	t->nr_edges = rec->nr_edges;
	t->count = memcpy(t + 1, rec->count, counts);
	t->edge = memcpy((u8 *)(t + 1) + counts, rec->edge, edges);
	t->next_made = r->made;
	r->made = t;
}

void run_keep(struct calls_graph *g, const struct calls_run *run, const struct run_recording *rec)
{
	struct calls_runs *r = &g->runs;
	size_t calls = rec->nr_calls * sizeof(rec->call[0]),
	       closed = rec->nr_closed * sizeof(rec->closed[0]),
	       opened = rec->nr_opened * sizeof(rec->opened[0]);
	struct run_events *events = NULL;
	struct calls_run *kept;

	if (r->size > r->most) {
		calls_runs_settle(g);
		calls_runs_release(r);
	}
	if (!rec->failed && rec->nr_parts)
		events = run_events_new(g, rec);
	if (rec->failed || (rec->nr_parts && !events)) {
		run_refuse(r, run->hash);
		return;
	}
	if (!r->slot || r->n > r->mask / 2)
		grow(r);
	kept = calls_memory_take(&r->memory, sizeof(*kept) + calls + closed + opened);
	r->size += sizeof(*kept) + calls + closed + opened;
	*kept = *run;
	kept->events = events;
	if (events)
		r->size += run_events_size(events, kept);
	kept->cost = rec->cost;
	kept->depth = rec->depth > rec->nr_closed ? rec->depth : rec->nr_closed;
	kept->nr_calls = (u8)rec->nr_calls;
	kept->nr_closed = (u8)rec->nr_closed;
	kept->nr_opened = (u8)rec->nr_opened;
	memcpy((void *)run_calls(kept), rec->call, calls);
	memcpy((void *)run_closed(kept), rec->closed, closed);
	memcpy((void *)run_opened(kept), rec->opened, opened);
	CHECK(!((uintptr_t)kept & RUN_TAG));
	put(r, kept);
	keep_totals(r, kept, rec);
	r->n++;
}

static void settle(const struct run_totals *t)
{
	u64 times = t->run->times;

	for (u32 i = 0; i < t->nr_counts; i++) {
		const struct run_count *c = &t->count[i];

		c->cell->count += times * c->times;
		c->cell->skipped += times * c->skipped;
		if (c->skipped && t->run->events)
			event_counts_met(calls_skipped_of(c->cell), &c->met, times);
	}
	for (u32 i = 0; i < t->nr_edges; i++) {
		t->edge[i].edge->count += times * t->edge[i].times;
		t->edge[i].edge->cost += times * t->edge[i].cost;
		if (t->run->events)
			event_counts_met(t->edge[i].edge->events, &t->edge[i].met, times);
	}
	t->run->times = 0;
}

void calls_runs_settle(struct calls_graph *g)
{
	for (const struct run_totals *t = g->runs.made; t; t = t->next_made)
		if (t->run->times)
			settle(t);
}

void calls_runs_release(struct calls_runs *r)
{
	free(r->slot);
	free(r->seen);
	calls_memory_release(&r->memory);
	calls_memory_release(&r->totals);
	*r = (struct calls_runs){.most = r->most};
}
