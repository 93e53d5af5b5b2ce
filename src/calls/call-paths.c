/*
 * Paths in quick succession. What nearly all do is done here, with all that changes in registers:
 * go on in the same function, call what was called from there before, return to who has called, go
 * by a linkage table, jump to where a function begins. Anything else is call-stack.c's, which knows
 * all of the rules; what is done here leaves behind what it would have.
 */
#include "calls/calls-priv.h"

/* What struct calls_thread has under the same names, where there is one. */
struct quick {
	struct calls_span *last;
	struct calls_context *context;
	struct calls_cell *nonskipped;
	u64 cost;
	struct calls_frame *bottom, *top,
		*room; /* behind the last that ..., the last, all of them */
	u32 *active;
	u32 nr_active;
	u32 levels; /* most of recursion that are told apart, less 1; of a tree there are none */
};

/* Whether @t is where quick work can begin. Another thread may have moved the span's cell. */
static bool is_usual(const struct calls_thread *t)
{
	return t->collect && t->last && t->context && !t->graph->opts.simulation &&
	       t->last->span->cell == t->last;
}

static inline void open_frame(struct quick *q, struct calls_cell *from, struct calls_edge *e,
			      u32 number, bool emulated)
{
	struct calls_frame *f = q->top++;

	f->from = from;
	f->edge = e;
	f->enter = q->cost;
	f->ret = emulated ? 0 : q->last->behind;
	f->context = q->context;
	f->nonskipped = q->nonskipped;
	f->number = number;
	f->emulated = emulated;
}

/* A call of what is not told of. */
static inline void call_skipped(struct quick *q, const struct calls_fn *fn, bool emulated)
{
	struct calls_cell *from = q->last->cell;

	open_frame(q, from, NULL, fn->number, emulated);
	if (!q->nonskipped)
		q->nonskipped = from;
}

/* The last span calls @s, or with @emulated its jump does. False: not here; nothing is done. */
static inline bool call(struct quick *q, struct calls_span *s, bool emulated)
{
	struct calls_cell *from = q->nonskipped ? q->nonskipped : q->last->cell;
	struct calls_edge *e = s->called;
	u32 *active;

	if (unlikely(q->top == q->room))
		return false;
	if (unlikely(!e || e->from != from)) {
		if (s->fn->skip) {
			call_skipped(q, s->fn, emulated);
			return true;
		}
		e = from->edges;
		if (!e || e->target != s->first || e->to->fn != s->fn || calls_fn_asks(s->fn))
			return false;
	}
	if (unlikely(e->number >= q->nr_active))
		return false;
	active = &q->active[e->number];
	if (unlikely(e->level != (*active < q->levels ? *active : q->levels)))
		return false;
	++*active;
	e->count++;
	open_frame(q, from, e, e->number, emulated);
	q->context = e->to;
	q->nonskipped = NULL;
	return true;
}

static inline void close_frame(struct quick *q)
{
	const struct calls_frame *f = --q->top;
	u32 *active;

	q->nonskipped = f->nonskipped;
	if (unlikely(!f->edge))
		return;
	f->edge->cost += q->cost - f->enter;
	q->context = f->context;
	active = &q->active[f->number];
	*active -= *active != 0;
}

/* The last span returns to @s. */
static inline bool come_back(struct quick *q, const struct calls_span *s, struct calls_fn **fn)
{
	const struct calls_frame *f = q->top;

	do {
		if (unlikely(f == q->bottom))
			return false;
		f--;
		if (likely(f->ret == s->first))
			break;
		/* The call of a tail ends with the one below. */
		if (!f->emulated || (f->edge && calls_fn_asks(fn[f->number])))
			return false;
	} while (true);
	do
		close_frame(q);
	while (unlikely(q->top > f));
	return true;
}

/* Another function may begin with @s. */
static inline bool pass_on(struct quick *q, struct calls_span *s, struct calls_fn **fn)
{
	const struct calls_span *last = q->last;
	bool jumps = !calls_span_calls(last);

	if (last->end == PATH_RETURN)
		return come_back(q, s, fn);
	/* What is called by what is not told of returns to somewhere else. */
	if (unlikely(!jumps && q->nonskipped))
		return false;
	if (jumps) {
		if (last->end == PATH_PLAIN)
			return true;
		if (!s->entry)
			return s->fn == last->fn && s->code.region == last->code.region;
		if (q->top == q->bottom || last->fn->pop_on_jump)
			return false;
	}
	return call(q, s, jumps);
}

/* The instructions of @s, by whoever executes them now. */
static inline void charge(struct quick *q, struct calls_graph *g, struct calls_span *s)
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

/*
 * As many of @path as are usual, from @*at on. Returns the span that is not, and what is before it
 * in its path has been done; NULL: all of them were, or @*at is of one that is not known.
 */
static struct calls_span *run_usual(struct calls_thread *t, struct calls_span *const *span,
				    const u32 *path, size_t *at, size_t n)
{
	struct quick q = {.last = t->last->span,
			  .context = t->context,
			  .nonskipped = t->nonskipped,
			  .cost = t->cost,
			  .bottom = t->frame + t->bottom,
			  .top = t->frame + t->nr,
			  .room = t->frame + t->room,
			  .active = t->active,
			  .nr_active = t->nr_active,
			  .levels = t->graph->opts.tree ? 0 : t->graph->opts.recursions - 1};
	struct calls_span *s = NULL;
	size_t i;

	for (i = *at; i < n; i++) {
		s = span[path[i]];
		if (unlikely(!s))
			break;
part:
		if (s->in != q.last->out) {
			if (unlikely(!pass_on(&q, s, t->graph->fn)))
				break;
			if (unlikely(s->more)) {
				charge(&q, t->graph, s);
				s = s->rest;
				goto part;
			}
		}
		charge(&q, t->graph, s);
	}
	*at = i;
	t->last = q.last->cell;
	t->out = q.last->out;
	t->fn = q.context->fn;
	t->context = q.context;
	t->nonskipped = q.nonskipped;
	t->cost = q.cost;
	t->nr = (u32)(q.top - t->frame);
	return i < n ? s : NULL;
}

size_t calls_run_paths(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct calls_span *s = is_usual(t) ? run_usual(t, span, path, &i, n)
						   : span[path[i]];

		if (i == n || !s)
			return i;
		calls_run(t, s);
	}
	return n;
}
