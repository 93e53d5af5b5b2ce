/*
 * Paths in quick succession. What nearly all do is done here, with all that changes in registers:
 * go on in the same function, call what was called from there before, return to who has called, go
 * by a linkage table, jump to where a function begins. Anything else is call-stack.c's, which knows
 * all of the rules; what is done here leaves behind what it would have.
 */
#include "calls/calls-priv.h"

/* There are two loops, without a simulation and with one: what changes is in registers in both. */
#define QUICK inline __attribute__((always_inline))

/* What struct calls_thread has under the same names, where there is one. */
struct quick {
	struct calls_span *last;
	struct calls_context *context;
	struct calls_cell *nonskipped;
	u64 cost;
	struct calls_frame *bottom, *top,
		*room; /* behind the last that ..., the last, all of them */
	u32 *active;
	struct calls_thread *simulated; /* the thread, if something is; else NULL */
	u32 levels; /* most of recursion that are told apart, less 1; of a tree there are none */
};

/* Whether @t is where quick work can begin. Another thread may have moved the span's cell. */
static bool is_usual(const struct calls_thread *t)
{
	return t->collect && t->last && t->context && t->last->span->cell == t->last;
}

static QUICK void open_frame(struct quick *q, struct calls_cell *from, struct calls_edge *e,
			     bool emulated)
{
	struct calls_frame *f = q->top++;

	if (q->simulated)
		q->simulated->entered[f - q->simulated->frame] = q->simulated->events;
	f->from = from;
	f->edge = e;
	f->enter = q->cost;
	f->ret = emulated ? 0 : q->last->behind;
	f->context = q->context;
	f->nonskipped = q->nonskipped;
	f->emulated = emulated;
}

/* What @from has called last, if it was @s; NULL: no. */
static __attribute__((noinline)) struct calls_edge *last_call(const struct calls_cell *from,
							      const struct calls_span *s)
{
	struct calls_edge *e = from->edges;

	return e && e->target == s->first && e->to->fn == s->fn && !calls_fn_asks(s->fn) ? e : NULL;
}

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
			from = q->last->cell;
			open_frame(q, from, NULL, emulated);
			if (!q->nonskipped)
				q->nonskipped = from;
			return true;
		}
		e = last_call(from, s);
		if (!e)
			return false;
	}
	active = &q->active[e->number];
	if (unlikely(e->level != (*active < q->levels ? *active : q->levels)))
		return false;
	++*active;
	e->count++;
	open_frame(q, from, e, emulated);
	q->context = e->to;
	q->nonskipped = NULL;
	return true;
}

static QUICK void close_frame(struct quick *q)
{
	const struct calls_frame *f = --q->top;
	struct calls_edge *e = f->edge;
	u32 *active;

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
static __attribute__((noinline)) u32 tails(const struct calls_frame *bottom,
					   const struct calls_frame *top, u64 pc)
{
	const struct calls_frame *f = top;

	while (f > bottom) {
		f--;
		if (f->ret == pc)
			return (u32)(top - f) - 1;
		if (!f->emulated || (f->edge && calls_fn_asks(f->edge->to->fn)))
			break;
	}
	return ~0u;
}

/* The last span returns to @s. */
static QUICK bool come_back(struct quick *q, const struct calls_span *s)
{
	u32 n;

	if (unlikely(q->top == q->bottom))
		return false;
	if (unlikely(q->top[-1].ret != s->first)) {
		n = tails(q->bottom, q->top, s->first);
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

	if (last->end == PATH_RETURN)
		return come_back(q, s);
	/* What is called by what is not told of returns to somewhere else. */
	if (calls_span_calls(last))
		return !q->nonskipped && call(q, last->cell, s, false);
	if (last->end == PATH_PLAIN)
		return true;
	if (!s->entry)
		return s->fn == last->fn && s->code.region == last->code.region;
	if (q->top == q->bottom || last->fn->pop_on_jump)
		return false;
	return call(q, q->nonskipped ? q->nonskipped : last->cell, s, true);
}

/* The instructions of @s, by whoever executes them now. */
static QUICK void charge(struct quick *q, struct calls_graph *g, struct calls_span *s)
{
	/* Where its caller has the costs the context is nobody's. */
	if (unlikely(s->context != q->context) && (!q->nonskipped || !s->cell))
		(void)calls_cell_of(g, s, q->context);
	q->last = s;
	q->cost += s->n;
	if (unlikely(q->nonskipped != NULL))
		q->nonskipped->skipped += s->n;
	else
		s->count++;
}

/* What @s meets, which was charged. */
static QUICK void meet(struct quick *q, struct calls_span *s, const struct path_slots *slots)
{
	struct calls_thread *t = q->simulated;

	if (unlikely(q->nonskipped != NULL)) {
		t->nonskipped = q->nonskipped;
		calls_simulate(t, s, slots, false);
		return;
	}
	if (unlikely(simulate(t->graph->opts.simulation, s->simulated, slots,
			      s->cell->events ?: calls_events_of(s->cell), &t->events)))
		calls_open_branch(t, s, true);
}

/*
 * The path of @s, which was charged, and how often the next ones of @n are the same: a loop goes
 * round in it, and nothing else of what is known changes.
 */
static QUICK size_t go_round(struct quick *q, struct calls_span *s, const u32 *path, size_t n)
{
	size_t times = 1;

	while (times < n && path[times] == path[0])
		times++;
	q->cost += (times - 1) * (u64)s->n;
	if (unlikely(q->nonskipped != NULL))
		q->nonskipped->skipped += (times - 1) * (u64)s->n;
	else
		s->count += times - 1;
	return times - 1;
}

#define AHEAD 8u /* paths whose spans are asked for before they are needed */

/*
 * As many of @path as are usual, from @*at on. Returns the span that is not, and what is before it
 * in its path has been done; NULL: all of them were, or @*at is of one that is not known.
 */
static QUICK struct calls_span *run_usual(struct calls_thread *t, struct calls_span *const *span,
					  const u32 *path, size_t *at, size_t n,
					  struct path_slots *slots)
{
	struct calls_graph *g = t->graph;
	struct quick q = {.last = t->last->span,
			  .context = t->context,
			  .nonskipped = t->nonskipped,
			  .cost = t->cost,
			  .bottom = t->frame + t->bottom,
			  .top = t->frame + t->nr,
			  .room = t->frame + t->room,
			  .active = t->active,
			  .simulated = slots ? t : NULL,
			  .levels = g->opts.tree ? 0 : g->opts.recursions - 1};
	struct calls_span *s = NULL;
	size_t i;

	for (i = *at; i < n; i++) {
		s = span[path[i]];
		if (unlikely(!s))
			break;
		if (likely(i + AHEAD < n))
			__builtin_prefetch(span[path[i + AHEAD]]);
part:
		if (slots && unlikely(t->branch.open))
			calls_close_branch(t, s->first);
		if (s->in != q.last->out) {
			if (unlikely(!pass_on(&q, s)))
				break;
			if (unlikely(s->more)) {
				charge(&q, g, s);
				if (slots)
					meet(&q, s, slots);
				s = s->rest;
				goto part;
			}
		}
		charge(&q, g, s);
		if (slots) {
			meet(&q, s, slots);
			calls_pass_slots(slots, s->nr_slots);
		} else if (i + 1 < n && path[i + 1] == path[i] && s->in == s->out &&
			   s == span[path[i]]) {
			i += go_round(&q, s, path + i, n - i);
		}
	}
	*at = i;
	t->last = q.last->cell;
	t->out = q.last->out;
	t->fn = q.context->fn;
	t->context = q.context;
	t->nonskipped = q.nonskipped;
	t->cost = q.cost;
	t->nr = (u32)(q.top - t->frame);
	if (slots)
		t->last_kept = false;
	return i < n ? s : NULL;
}

static QUICK size_t run_paths(struct calls_thread *t, struct calls_span *const *span,
			      const u32 *path, size_t n, struct path_slots *slots)
{
	for (size_t i = 0; i < n; i++) {
		struct calls_span *s;

		calls_count_active(t);
		s = is_usual(t) ? run_usual(t, span, path, &i, n, slots) : span[path[i]];

		if (i == n || !s)
			return i;
		if (!slots) {
			calls_run(t, s);
			continue;
		}
		calls_run_simulated(t, s, slots, false);
		calls_pass_slots(slots, s->nr_slots);
	}
	return n;
}

static __attribute__((noinline)) size_t run_simulated(struct calls_thread *t,
						      struct calls_span *const *span,
						      const u32 *path, size_t n,
						      struct path_slots *slots)
{
	return run_paths(t, span, path, n, slots);
}

size_t calls_run_paths(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
		       size_t n, struct path_slots *slots)
{
	return slots ? run_simulated(t, span, path, n, slots) : run_paths(t, span, path, n, NULL);
}
