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
			      const struct calls_fn *fn, bool emulated)
{
	struct calls_frame *f = q->top++;

	f->from = from;
	f->edge = e;
	f->enter = q->cost;
	f->ret = emulated ? 0 : q->last->behind;
	f->context = q->context;
	f->nonskipped = q->nonskipped;
	f->number = fn->number;
	f->emulated = emulated;
	f->asks = false;
}

/* The call of @s by the last span, or by @from if that one is not told of; NULL: not known. */
static inline struct calls_edge *edge_to(const struct calls_span *s, const struct calls_cell *from)
{
	struct calls_edge *e = s->called;

	if (likely(e && e->from == from))
		return e;
	e = from->edges;
	return e && e->target == s->first && e->to->fn == s->fn ? e : NULL;
}

/* The last span calls @s, or with @emulated its jump does. False: not here; nothing is done. */
static inline bool call(struct quick *q, struct calls_span *s, bool emulated)
{
	struct calls_cell *from = q->last->cell;
	struct calls_fn *fn = s->fn;
	struct calls_edge *e;
	u32 *active;

	if (unlikely(q->top == q->room))
		return false;
	if (fn->skip) {
		open_frame(q, from, NULL, fn, emulated);
		if (!q->nonskipped)
			q->nonskipped = from;
		return true;
	}
	if (q->nonskipped) {
		if (!emulated)
			return false;
		from = q->nonskipped;
	}
	e = edge_to(s, from);
	if (unlikely(!e || fn->number >= q->nr_active || calls_fn_asks(fn)))
		return false;
	active = &q->active[fn->number];
	if (unlikely(e->level != (*active < q->levels ? *active : q->levels)))
		return false;
	++*active;
	e->count++;
	open_frame(q, from, e, fn, emulated);
	q->context = e->to;
	q->nonskipped = NULL;
	return true;
}

static inline void close_frame(struct quick *q)
{
	const struct calls_frame *f = --q->top;
	u32 *active;

	q->nonskipped = f->nonskipped;
	if (!f->edge)
		return;
	f->edge->cost += q->cost - f->enter;
	q->context = f->context;
	active = &q->active[f->number];
	*active -= *active != 0;
}

/* The last span returns to @s. */
static inline bool come_back(struct quick *q, const struct calls_span *s)
{
	const struct calls_frame *f = q->top;

	do {
		if (unlikely(f == q->bottom))
			return false;
		f--;
		if (unlikely(f->asks || (f->ret != s->first && !f->emulated)))
			return false;
	} while (f->ret != s->first);
	while (q->top > f)
		close_frame(q);
	return true;
}

/* Another function may begin with @s. */
static inline bool pass_on(struct quick *q, struct calls_span *s)
{
	const struct calls_span *last = q->last;
	bool jumps;

	if (unlikely(s->more))
		return false;
	if (last->end == PATH_RETURN)
		return come_back(q, s);
	jumps = last->end != PATH_CALL && last->end != PATH_CALL_IND;
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

/* As many of @path as are usual, from @i on; returns the first one that is not, or @n. */
static size_t run_usual(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
			size_t i, size_t n)
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

	for (; i < n; i++) {
		struct calls_span *s = span[path[i]];

		if (unlikely(!s))
			break;
		if (s->in != q.last->out && !pass_on(&q, s))
			break;
		/* Where its caller has the costs the context is nobody's. */
		if (unlikely(s->context != q.context) && (!q.nonskipped || !s->cell))
			(void)calls_cell_of(t->graph, s, q.context);
		q.last = s;
		q.cost += s->n;
		if (unlikely(q.nonskipped != NULL))
			q.nonskipped->skipped += s->n;
		else
			s->count++;
	}
	t->last = q.last->cell;
	t->out = q.last->out;
	t->fn = q.context->fn;
	t->context = q.context;
	t->nonskipped = q.nonskipped;
	t->cost = q.cost;
	t->nr = (u32)(q.top - t->frame);
	return i;
}

size_t calls_run_paths(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
		       size_t n)
{
	for (size_t i = 0;; i++) {
		if (is_usual(t))
			i = run_usual(t, span, path, i, n);
		if (i == n || !span[path[i]])
			return i;
		calls_run(t, span[path[i]]);
	}
}
