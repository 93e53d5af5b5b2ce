/* What is simulated of runs, and whose it is. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/call-runs.h"

struct run_events *run_events_new(struct calls_graph *g, const struct run_recording *rec)
{
	struct simulated_code *code = simulated_join(rec->code, rec->nr_parts, &g->runs.memory);
	size_t closed = rec->nr_closed * sizeof(rec->closed_at[0]),
	       opened = rec->nr_opened * sizeof(rec->opened_at[0]),
	       parts = rec->nr_parts * sizeof(rec->part[0]),
	       inner = rec->nr_inner * sizeof(rec->inner[0]);
	struct run_events *e;
	u8 *at;

	if (!code)
		return NULL;
	e = calls_memory_take(&g->runs.memory,
			      sizeof(*e) + closed + opened + parts + inner + 4 * 8);
	*e = (struct run_events){.code = code, .nr_inner = rec->nr_inner, .met = rec->met};
	at = (u8 *)(e + 1);
	e->closed = calls_memory_put(&at, rec->closed_at, closed);
	e->opened = calls_memory_put(&at, rec->opened_at, opened);
	e->part = calls_memory_put(&at, rec->part, parts);
	e->inner = calls_memory_put(&at, rec->inner, inner);
	return e;
}

size_t run_events_size(const struct run_events *e, const struct calls_run *r)
{
	return sizeof(*e) + simulated_size(e->code) +
	       (r->nr_closed + (size_t)r->nr_opened) * sizeof(*e->closed) +
	       SIMULATED_PARTS / 2 * sizeof(*e->part);
}

static void tell_one(struct calls_thread *t, const struct run_events *e,
		     const struct simulated_miss *m)
{
	const struct run_part *p = &e->part[m->part];

	t->events.n[m->group][m->level]++;
	if (p->nonskipped)
		calls_skipped_of(p->nonskipped)->n[m->group][m->level]++;
	else
		calls_events_of(p->cell)[m->place * 3u + m->level]++;
	for (u32 i = 0; i < e->nr_inner; i++)
		if (e->inner[i].from <= m->part && m->part < e->inner[i].upto)
			e->inner[i].edge->events->n[m->group][m->level]++;
}

/* What is of parts before @part, from @from on, of @n. Returns where the rest begins. */
static u32 tell(struct calls_thread *t, const struct run_events *e,
		const struct simulated_miss *miss, u32 from, u32 n, u32 part)
{
	while (from < n && miss[from].part < part)
		tell_one(t, e, &miss[from++]);
	return from;
}

/* In misses of data: of a fetch that misses all of the run's are looked for one by one. */
static u32 price(const struct simulated_miss *miss, u32 n)
{
	u32 sum = n;

	for (u32 i = 0; i < n; i++)
		sum += 2 * (miss[i].group == SIMULATED_FETCH);
	return sum;
}

u32 run_meet(struct calls_thread *t, const struct calls_run *r, const struct calls_frame *top,
	     struct path_records *records)
{
	const struct run_events *e = r->events;
	struct simulated_miss miss[SIMULATED_MISSES];
	u32 n = simulate_joined(t->graph->opts.simulation, e->code, records, miss), told = 0;

	for (u32 i = 0; i < r->nr_closed; i++) {
		const struct calls_frame *f = --top;
		struct event_counts *of;

		told = tell(t, e, miss, told, n, e->closed[i].part);
		if (!f->edge)
			continue;
		of = f->edge->events;
		event_counts_add(of, &t->events);
		event_counts_subtract(of, &t->entered[top - t->frame]);
		event_counts_met(of, &e->closed[i].met, 1);
	}
	for (u32 i = 0; i < r->nr_opened; i++) {
		struct event_counts *entered = &t->entered[top++ - t->frame];

		told = tell(t, e, miss, told, n, e->opened[i].part);
		*entered = t->events;
		event_counts_met(entered, &e->opened[i].met, 1);
	}
	(void)tell(t, e, miss, told, n, ~0u);
	event_counts_met(&t->events, &e->met, 1);
	path_records_pass(records, r->n);
	return price(miss, n);
}
