/*
 * Paths in quick succession: run by run, those that are of no run one by one (call-quick.h), and
 * what is not usual by all of the rules (call-stack.c).
 */
#include "calls/call-quick.h"

#include <string.h>

struct calls_edge *quick_last_call(const struct calls_cell *from, const struct calls_span *s)
{
	struct calls_edge *e = from->edges;

	return e && e->target == s->first && e->to->fn == s->fn && !calls_fn_asks(s->fn) ? e : NULL;
}

u32 quick_tails(const struct calls_frame *bottom, const struct calls_frame *top, u64 pc)
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

/* Whether @t is where quick work can begin. */
static bool is_usual(const struct calls_thread *t)
{
	return t->collect && t->last && t->context;
}

/* Ones for the first @n of RUN_MOST paths, where paths are compared at once. */
#define ONES(n) [n] = {[0 ...(n) - 1] = ~0u}

static const u32 ones[RUN_MOST + 1][RUN_MOST] = {
	ONES(1), ONES(2),  ONES(3),  ONES(4),  ONES(5),  ONES(6),  ONES(7),  ONES(8),
	ONES(9), ONES(10), ONES(11), ONES(12), ONES(13), ONES(14), ONES(15), ONES(16),
};

/*
 * 0 if @path begins with @r, where its context is executing. No branch for each path: where
 * programs go is what a CPU cannot foretell of their traces either.
 */
static QUICK u64 differs(const struct quick *q, const struct calls_run *r, const u32 *path)
{
	u32 d = 0;

	for (u32 i = 0; i < RUN_MOST; i++)
		d |= (path[i] ^ r->path[i]) & ones[r->n][i];
	return d | ((uintptr_t)r->context ^ (uintptr_t)q->context) |
	       ((uintptr_t)r->nonskipped ^ (uintptr_t)q->nonskipped) |
	       (r->before ? (uintptr_t)r->before ^ (uintptr_t)q->last : r->in ^ q->out);
}

/* Whether the calls that @r closes are those that are open. */
static QUICK bool closes(const struct quick *q, const struct calls_run *r)
{
	const struct calls_frame *f = q->top;

	for (u32 i = 0; i < r->nr_closed; i++) {
		const struct run_close *c = &run_closed(r)[i];

		f--;
		if (f->ret != c->ret || f->context != c->context ||
		    f->nonskipped != c->nonskipped || f->emulated != c->emulated ||
		    !f->edge == c->told)
			return false;
	}
	return true;
}

/* NULL does no harm. */
static QUICK void ask_for(const struct calls_run *r)
{
	for (uintptr_t at = 0; at < sizeof(*r); at += 64)
		__builtin_prefetch((const void *)((uintptr_t)r + at));
}

/* Whether @path are those of @r, and do now what they did when it was worked out. */
static QUICK bool is_run(const struct quick *q, const struct calls_run *r, const u32 *path)
{
	if (differs(q, r, path))
		return false;
	for (u32 i = 0; i < r->nr_calls; i++) {
		const struct run_call *c = &run_calls(r)[i];
		u32 active = q->active[c->number] + (u32)(s32)c->more;

		if ((active < q->levels ? active : q->levels) != c->level)
			return false;
	}
	return (size_t)(q->top - q->bottom) >= r->depth &&
	       q->room - q->top + r->nr_closed >= r->nr_opened && closes(q, r);
}

/* What came behind @was the last times, if @path begins with it; NULL: it does not. */
static QUICK struct calls_run *following_run(const struct quick *q, struct calls_run *was,
					     const u32 *path)
{
	struct calls_run *r = was->follows[0];

	if (!r)
		return NULL;
	ask_for(r->follows[0]);
	ask_for(r->follows[1]);
	if (likely(is_run(q, r, path)))
		return r;
	r = was->follows[1];
	if (!r || !is_run(q, r, path))
		return NULL;
	was->follows[1] = was->follows[0];
	was->follows[0] = r;
	return r;
}

/* The run of @hash that @path begins with, which follows @was, or no run; NULL: none is known. */
static QUICK struct calls_run *find_run(const struct quick *q, const struct calls_runs *runs,
					u64 hash, struct calls_run *was, const u32 *path)
{
	struct calls_run *r = NULL;

	if (unlikely(!runs->slot))
		return NULL;
	for (u64 i = hash;; i++) {
		u64 x = runs->slot[i & runs->mask];

		if (!x)
			return NULL;
		r = RUN_OF(x);
		if (!((x ^ hash) & RUN_TAG) && is_run(q, r, path))
			break;
	}
	if (was) {
		was->follows[1] = was->follows[0];
		was->follows[0] = r;
	}
	return r;
}

static QUICK void take_run(struct quick *q, struct calls_run *r)
{
	for (u32 i = 0; i < r->nr_closed; i++) {
		const struct calls_frame *f = --q->top;
		u32 *active;

		if (!f->edge)
			continue;
		f->edge->cost += q->cost + run_closed(r)[i].cost - f->enter;
		active = &q->active[f->edge->number];
		*active -= *active != 0;
	}
	for (u32 i = 0; i < r->nr_opened; i++) {
		struct calls_frame *f = q->top++;

		*f = run_opened(r)[i].frame;
		f->enter += q->cost;
		if (f->edge)
			q->active[run_opened(r)[i].number]++;
	}
	/* What is closed next has its costs somewhere else. */
	if (q->top != q->bottom)
		__builtin_prefetch(q->top[-1].edge);
	r->times++;
	q->cost += r->cost;
	q->context = r->after;
	q->nonskipped = r->nonskipped_after;
	q->last = r->last;
	q->cell = r->cell;
	q->out = r->out;
}

/*
 * Takes the @n of @path that are a run one by one, and keeps what they do. Returns the span that is
 * not usual, which is of path @*at; NULL: all of them were, or that one is not known.
 */
static __attribute__((noinline)) struct calls_span *
work_out_run(struct quick *q, struct calls_thread *t, struct calls_span *const *span,
	     const u32 *path, size_t *at, u32 n, u64 hash, struct path_records *records)
{
	struct run_recording rec = {0};
	struct calls_run run = {
		.context = q->context, .nonskipped = q->nonskipped, .n = (u8)n, .hash = hash};
	struct quick work = *q;
	struct calls_span *s = span[path[0]];
	u32 i;

	if (s) {
		run.in = s->in;
		run.before = s->in != work.out ? work.last : NULL;
	}
	memcpy(run.path, path, n * sizeof(*path));
	work.recording = &rec;
	for (i = 0; i < n; i++) {
		s = span[path[i]];
		if (!s)
			break;
		s = take(&work, t, s, records);
		if (s)
			break;
		if (!records)
			continue;
		rec.word++;
		path_records_pass(records, 1);
	}
	*q = work;
	q->recording = NULL;
	*at += i;
	if (i < n) {
		if (s)
			run_refuse(&t->graph->runs, hash);
		return s;
	}
	run.out = work.out;
	run.after = work.context;
	run.nonskipped_after = work.nonskipped;
	run.last = work.last;
	run.cell = work.cell;
	run_keep(t->graph, &run, &rec);
	return NULL;
}

#define AHEAD 8u /* paths whose spans are asked for before they are needed */

/* With what they have to do with caches, which is known to lie where when the span is there. */
static QUICK void ask_for_simulated(struct calls_span *const *span, const u32 *path)
{
	const char *next = (const char *)span[path[AHEAD]];
	const struct calls_span *s = span[path[AHEAD / 2]];

	__builtin_prefetch(next);
	__builtin_prefetch(next + 64);
	if (unlikely(!s))
		return;
	for (u32 at = 0; at < 192; at += 64)
		__builtin_prefetch((const char *)s->simulated + at);
}

/*
 * The paths from @*at to @stop, of @n, one by one. Returns the span that is not usual, and what is
 * before it in its path has been done; NULL: all of them were, or @*at is of one that is not known.
 */
static QUICK struct calls_span *take_alone(struct quick *q, struct calls_thread *t,
					   struct calls_span *const *span, const u32 *path,
					   size_t *at, size_t stop, size_t n,
					   struct path_records *records)
{
	struct calls_span *s = NULL;
	size_t i;

	for (i = *at; i < stop; i++) {
		s = span[path[i]];
		if (unlikely(!s))
			break;
		if (likely(i + AHEAD < n))
			records ? ask_for_simulated(span, path + i)
				: __builtin_prefetch(span[path[i + AHEAD]]);
		s = take(q, t, s, records);
		if (unlikely(s))
			break;
		if (records)
			path_records_pass(records, 1);
		if (i + 1 < n && path[i + 1] == path[i])
			i += go_round(q, span[path[i]], path + i, n - i, records);
	}
	*at = i;
	return s;
}

/* With what changes in registers: @q is read and written once. */
static QUICK struct calls_span *take_several(struct quick *q, struct calls_thread *t,
					     struct calls_span *const *span, const u32 *path,
					     size_t *at, size_t stop, size_t n,
					     struct path_records *records)
{
	struct quick work = *q;
	size_t i = *at;
	struct calls_span *s = take_alone(&work, t, span, path, &i, stop, n, records);

	*q = work;
	*at = i;
	return s;
}

static __attribute__((noinline)) struct calls_span *
take_some(struct quick *q, struct calls_thread *t, struct calls_span *const *span, const u32 *path,
	  size_t *at, size_t stop, size_t n)
{
	return take_several(q, t, span, path, at, stop, n, NULL);
}

static __attribute__((noinline)) struct calls_span *
take_simulated(struct quick *q, struct calls_thread *t, struct calls_span *const *span,
	       const u32 *path, size_t *at, size_t stop, size_t n, struct path_records *records)
{
	return take_several(q, t, span, path, at, stop, n, records);
}

/* A run that meets something, and begins with @first. Returns what its misses are worth. */
static __attribute__((noinline)) u32 meet_run(const struct quick *q, struct calls_thread *t,
					      const struct calls_run *r,
					      const struct calls_span *first,
					      struct path_records *records)
{
	u32 misses;

	if (t->branch.open)
		calls_close_branch(t, first->first);
	misses = run_meet(t, r, q->top, records);
	if (simulated_is_open(r->events->code)) {
		t->nonskipped = r->nonskipped_after;
		calls_open_branch(t, r->last, r->nonskipped_after ? NULL : r->cell);
	}
	return misses;
}

/* As many of @path as are usual, from @*at on, run by run. Returns what take_alone() does. */
static QUICK struct calls_span *take_runs(struct quick *q, struct calls_thread *t,
					  struct calls_span *const *span, const u32 *path,
					  size_t *at, size_t n, struct path_records *records)
{
	struct calls_runs *runs = &t->graph->runs;
	size_t i = *at, run_from = i + runs->pause, stop; /* where a run may begin */
	struct calls_run *was = NULL, *r;
	struct calls_span *s = NULL;
	struct quick work;
	u64 hash;
	u32 most, misses = 0;

	while (i < n) {
		if (i < run_from)
			goto alone;
		run_from = n;
		if (i + RUN_MOST + 2 > n)
			goto alone;
		run_from = i + 1;
		if (run_is_loop(path + i)) {
			/* What is simulated is told each time. */
			while (records && run_from < n && path[run_from] == path[i])
				run_from++;
			goto alone;
		}
		r = was ? following_run(q, was, path + i) : NULL;
		if (unlikely(!r)) {
			if (run_seldom_follow(runs, records ? RUN_MEETS_WORTH : RUN_WORTH)) {
				run_from = i + (records ? RUN_MEETS_PAUSE : RUN_PAUSE);
				goto alone;
			}
			most = run_measure(path + i, q->context, &hash);
			run_from = i + most;
			if (most < RUN_LEAST)
				goto alone;
			r = find_run(q, runs, hash, was, path + i);
		}
		was = r;
		if (likely(r)) {
			if (records) {
				misses = meet_run(q, t, r, span[path[i]], records);
			}
			take_run(q, r);
			runs->taken += r->n;
			i += r->n;
			run_from = i;
			if (records && run_misses_often(runs, misses))
				run_from += RUN_MEETS_PAUSE;
			continue;
		}
		if (run_is_worth(runs, hash, records)) {
			work = *q;
			s = work_out_run(&work, t, span, path + i, &i, most, hash, records);
			*q = work;
			if (i < run_from)
				break;
			continue;
		}
alone:
		stop = run_from < n ? run_from : n;
		work = *q;
		s = records ? take_simulated(&work, t, span, path, &i, stop, n, records)
			    : take_some(&work, t, span, path, &i, stop, n);
		*q = work;
		if (i < stop)
			break;
	}
	runs->pause = run_from > n ? run_from - n : 0;
	*at = i;
	return s;
}

/* As many of @path as are usual, from @*at on. Returns what take_alone() does. */
static QUICK struct calls_span *run_usual(struct calls_thread *t, struct calls_span *const *span,
					  const u32 *path, size_t *at, size_t n,
					  struct path_records *records)
{
	const struct calls_graph *g = t->graph;
	struct quick q = {.last = t->last->span,
			  .cell = t->last,
			  .context = t->context,
			  .out = t->out,
			  .nonskipped = t->nonskipped,
			  .cost = t->cost,
			  .bottom = t->frame + t->bottom,
			  .top = t->frame + t->nr,
			  .room = t->frame + t->room,
			  .active = t->active,
			  .simulated = records ? t : NULL,
			  .levels = g->opts.tree ? 0 : g->opts.recursions - 1};
	struct calls_span *s = take_runs(&q, t, span, path, at, n, records);

	t->last = q.cell;
	t->out = q.out;
	t->fn = q.context->fn;
	t->context = q.context;
	t->nonskipped = q.nonskipped;
	t->cost = q.cost;
	t->nr = (u32)(q.top - t->frame);
	if (records)
		t->last_kept = false;
	return *at < n ? s : NULL;
}

static QUICK size_t run_paths(struct calls_thread *t, struct calls_span *const *span,
			      const u32 *path, size_t n, struct path_records *records)
{
	for (size_t i = 0; i < n; i++) {
		struct calls_span *s;

		calls_count_active(t);
		s = is_usual(t) ? run_usual(t, span, path, &i, n, records) : span[path[i]];

		if (i == n || !s)
			return i;
		if (!records) {
			calls_run(t, s);
			continue;
		}
		calls_run_simulated(t, s, records, false);
		path_records_pass(records, 1);
	}
	return n;
}

static __attribute__((noinline)) size_t run_simulated(struct calls_thread *t,
						      struct calls_span *const *span,
						      const u32 *path, size_t n,
						      struct path_records *records)
{
	return run_paths(t, span, path, n, records);
}

size_t calls_run_paths(struct calls_thread *t, struct calls_span *const *span, const u32 *path,
		       size_t n, struct path_records *records)
{
	return records ? run_simulated(t, span, path, n, records)
		       : run_paths(t, span, path, n, NULL);
}
