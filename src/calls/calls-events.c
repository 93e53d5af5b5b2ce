/* What is simulated of what a thread executes, and whose it is. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/calls-priv.h"

u64 *calls_events_of(struct calls_cell *c)
{
	if (!c->events) {
		c->events = calloc(simulated_places(c->span->simulated) * 3 + 1, sizeof(u64));
		CHECK(c->events);
	}
	return c->events;
}

struct event_counts *calls_skipped_of(struct calls_cell *c)
{
	if (!c->skipped_events) {
		c->skipped_events = calloc(1, sizeof(*c->skipped_events));
		CHECK(c->skipped_events);
	}
	return c->skipped_events;
}

/* Room for the counts of a span that may be taken back, all 0. */
static u64 *last_counts(struct calls_thread *t, u32 n)
{
	if (n > t->last_room) {
		t->last_room = n;
		t->last_counts = realloc(t->last_counts, n * sizeof(u64));
		CHECK(t->last_counts);
	}
	if (n)
		memset(t->last_counts, 0, n * sizeof(u64));
	return t->last_counts;
}

void calls_simulate_again(struct calls_thread *t, u64 times)
{
	struct calls_cell *c = t->last;
	struct event_counts *skipped = t->nonskipped ? calls_skipped_of(t->nonskipped) : NULL;

	if (!t->last_kept)
		return;
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		for (u32 k = 0; k < 3; k++) {
			u64 n = t->last_sum.n[i][k] * times;

			t->events.n[i][k] += n;
			if (skipped)
				skipped->n[i][k] += n;
		}
	for (u32 i = 0; !skipped && i < simulated_places(c->span->simulated) * 3; i++)
		calls_events_of(c)[i] += t->last_counts[i] * times;
}

void calls_simulate(struct calls_thread *t, struct calls_span *s, struct path_records *records,
		    bool keep)
{
	struct event_simulation *sim = t->graph->opts.simulation;
	bool own = t->collect && !t->nonskipped;
	u32 n = simulated_places(s->simulated);
	struct event_counts *sum = &t->events;
	u64 *counts = NULL;
	bool open;

	t->last_kept = keep || !own;
	if (t->last_kept) {
		t->last_sum = (struct event_counts){0};
		sum = &t->last_sum;
		counts = last_counts(t, n * 3);
	} else {
		counts = calls_events_of(s->cell);
	}
	open = simulate(sim, s->simulated, records, counts, sum);
	if (t->last_kept && t->collect)
		calls_simulate_again(t, 1);
	if (open)
		calls_open_branch(t, s, own ? s->cell : NULL);
}

void calls_simulate_accesses(struct calls_thread *t, struct calls_span *s,
			     struct path_records *records)
{
	struct event_counts sum = {0};
	bool own = t->collect && !t->nonskipped;

	simulate_accesses(t->graph->opts.simulation, s->simulated, records,
			  own ? calls_events_of(s->cell) : NULL, &sum);
	if (!t->collect)
		return;
	event_counts_add(&t->events, &sum);
	if (!own)
		event_counts_add(calls_skipped_of(t->nonskipped), &sum);
}

void calls_open_branch(struct calls_thread *t, const struct calls_span *s, struct calls_cell *own)
{
	u32 n = simulated_places(s->simulated);

	t->branch = (struct calls_branch){
		.open = true,
		.collect = t->collect,
		.pc = s->last,
		.skipped = t->collect && !own ? t->nonskipped : NULL,
		.counts = own ? calls_events_of(own) + (n - 1) * 3 : NULL,
	};
}

void calls_close_branch(struct calls_thread *t, u64 target)
{
	struct calls_branch *b = &t->branch;

	if (!b->open)
		return;
	b->open = false;
	if (!simulate_target(t->graph->opts.simulation, b->pc, target) || !b->collect)
		return;
	t->events.n[SIMULATED_INDIRECT][1]++;
	if (b->counts)
		b->counts[1]++;
	else if (b->skipped)
		calls_skipped_of(b->skipped)->n[SIMULATED_INDIRECT][1]++;
}
