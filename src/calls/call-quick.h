/*
 * PURPOSE: what nearly all paths do, with all that changes in registers: go on in a function, call
 * what was called from there before, return to who has called, go by linkage tables, jump to where
 * a function begins. Anything else is call-stack.c's, which knows all of the rules; what is done
 * here leaves behind what it would have. For call-paths.c's loops.
 */
#ifndef CALLS_CALL_QUICK_H
#define CALLS_CALL_QUICK_H

#include "calls/call-runs.h"

/*
 * There are three loops, without a simulation and with one, and to work out a run: each has all of
 * this in it.
 */
#define QUICK inline __attribute__((always_inline))

/* What struct calls_thread has under the same names, where there is one. */
struct quick {
	struct calls_span *last;
	struct calls_cell *cell; /* of that */
	struct calls_context *context;
	u32 out;
	struct calls_cell *nonskipped;
	u64 cost;
	struct calls_frame *bottom, *top,
		*room; /* behind the last that ..., the last, all of them */
	u32 *active;
	struct calls_thread *simulated; /* the thread, if something is; else NULL */
	u32 levels; /* most of recursion that are told apart, less 1; of a tree there are none */
	struct run_recording *recording; /* NULL: nothing is */
};

static QUICK void open_frame(struct quick *q, struct calls_edge *e, bool emulated)
{
	struct calls_frame *f = q->top++;

	if (q->simulated)
		q->simulated->entered[f - q->simulated->frame] = q->simulated->events;
	f->site = q->last;
	f->edge = e;
	f->enter = q->cost;
	f->ret = emulated ? 0 : q->last->behind;
	f->again = 0;
	f->context = q->context;
	f->nonskipped = q->nonskipped;
	f->emulated = emulated;
	if (q->recording)
		run_record_open(q->recording, f);
}

/* What @from has called last, if it was @s; NULL: no. */
struct calls_edge *quick_last_call(const struct calls_cell *from, const struct calls_span *s);

/*
 * The last span calls @s, or with @emulated its jump does; @from: who is said to. False: not here;
 * nothing is done.
 */
static QUICK bool call(struct quick *q, struct calls_cell *from, struct calls_span *s,
		       bool emulated)
{
	struct calls_edge *e = s->called;
	u32 *active;

	if (unlikely(q->top == q->room))
		return false;
	if (unlikely(!e || e->from != from)) {
		if (s->fn->skip) {
			from = q->cell;
			open_frame(q, NULL, emulated);
			if (!q->nonskipped)
				q->nonskipped = from;
			return true;
		}
		e = quick_last_call(from, s);
		if (!e)
			return false;
	}
	active = &q->active[e->number];
	if (unlikely(e->level != (*active < q->levels ? *active : q->levels)))
		return false;
	++*active;
	e->count++;
	open_frame(q, e, emulated);
	q->context = e->to;
	q->nonskipped = NULL;
	return true;
}

static QUICK void close_frame(struct quick *q)
{
	const struct calls_frame *f = --q->top;
	struct calls_edge *e = f->edge;
	u32 *active;

	if (q->recording)
		run_record_close(q->recording, f);
	q->nonskipped = f->nonskipped;
	if (unlikely(!e))
		return;
	e->cost += q->cost - f->enter;
	if (q->simulated) {
		event_counts_add(e->events, &q->simulated->events);
		event_counts_subtract(e->events, &q->simulated->entered[f - q->simulated->frame]);
	}
	q->context = f->context;
	active = &q->active[e->number];
	*active -= *active != 0;
}

/* How many calls of tails end with the call below them, by a return to @pc; ~0u: that is none. */
u32 quick_tails(const struct calls_frame *bottom, const struct calls_frame *top, u64 pc);

/* The last span returns to @s. */
static QUICK bool come_back(struct quick *q, const struct calls_span *s)
{
	u32 n;

	if (unlikely(q->top == q->bottom))
		return false;
	if (unlikely(q->top[-1].ret != s->first)) {
		n = quick_tails(q->bottom, q->top, s->first);
		if (n == ~0u)
			return false;
		while (n--)
			close_frame(q);
	}
	close_frame(q);
	return true;
}

/* Another function may begin with @s. */
static QUICK bool pass_on(struct quick *q, struct calls_span *s)
{
	const struct calls_span *last = q->last;
	struct calls_cell *from = q->nonskipped ? q->nonskipped : q->cell;

	if (last->end == PATH_RETURN)
		return come_back(q, s);
	if (calls_span_calls(last))
		return call(q, from, s, false);
	if (last->end == PATH_PLAIN)
		return true;
	if (!s->entry) {
		/* In the middle of another function may be who has called: call-stack.c knows. */
		if (last->end == PATH_JUMP_IND && s->fn->symbol && s->fn != last->fn)
			return false;
		if (s->code.region == last->code.region)
			return true;
	}
	if (q->top == q->bottom || last->fn->pop_on_jump)
		return false;
	return call(q, from, s, true);
}

/* The instructions of @s, by whoever executes them now. */
static QUICK void charge(struct quick *q, struct calls_graph *g, struct calls_span *s)
{
	/* Where its caller has the costs the context is nobody's. */
	if (unlikely(s->context != q->context) && (!q->nonskipped || !s->cell))
		(void)calls_cell_of(g, s, q->context);
	q->last = s;
	q->cell = s->cell;
	q->out = s->out;
	q->cost += s->n;
	if (unlikely(q->nonskipped != NULL))
		q->nonskipped->skipped += s->n;
	else
		s->count++;
	if (q->recording)
		run_record_count(q->recording, s, q->nonskipped);
}

/* What @s meets, which was charged. */
static QUICK void meet(struct quick *q, struct calls_span *s, struct path_records *records)
{
	struct calls_thread *t = q->simulated;

	if (unlikely(q->nonskipped != NULL)) {
		t->nonskipped = q->nonskipped;
		calls_simulate(t, s, records, false);
		return;
	}
	if (unlikely(simulate(t->graph->opts.simulation, s->simulated, records,
			      s->cell->events ?: calls_events_of(s->cell), &t->events)))
		calls_open_branch(t, s, s->cell);
}

/* What it meets @times times more; false: that is to be done each time. */
static QUICK bool meet_round(const struct quick *q, const struct calls_span *s, u32 times,
			     struct path_records *records)
{
	struct calls_thread *t = q->simulated;

	if (q->nonskipped || !simulate_round(t->graph->opts.simulation, s->simulated, times,
					     records, calls_events_of(s->cell), &t->events))
		return false;
	path_records_pass(records, times);
	return true;
}

/*
 * The path of @s, which was charged, and how often the next ones of @n are the same: a loop goes
 * round in it, and nothing else of what is known changes.
 */
static QUICK size_t go_round(struct quick *q, struct calls_span *s, const u32 *path, size_t n,
			     struct path_records *records)
{
	size_t times = 1;

	if (s->more || s->in != s->out)
		return 0;
	while (times < n && path[times] == path[0])
		times++;
	if (records && !meet_round(q, s, (u32)times - 1, records))
		return 0;
	q->cost += (times - 1) * (u64)s->n;
	if (unlikely(q->nonskipped != NULL))
		q->nonskipped->skipped += (times - 1) * (u64)s->n;
	else
		s->count += times - 1;
	return times - 1;
}

/* A path, and all its parts. Returns the one that is not usual: what is before it was done. */
static QUICK struct calls_span *take(struct quick *q, struct calls_thread *t, struct calls_span *s,
				     struct path_records *records)
{
part:
	if (records && unlikely(t->branch.open))
		calls_close_branch(t, s->first);
	if (s->in != q->out) {
		if (unlikely(!pass_on(q, s)))
			return s;
		if (unlikely(s->more)) {
			charge(q, t->graph, s);
			if (records)
				meet(q, s, records);
			s = s->rest;
			goto part;
		}
	}
	charge(q, t->graph, s);
	if (records)
		meet(q, s, records);
	return NULL;
}

#endif
