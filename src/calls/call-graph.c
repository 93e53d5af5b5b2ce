/* What a call graph holds: functions, contexts, spans, cells; and taking what was counted. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/calls-priv.h"

static void *must(void *p)
{
	CHECK(p);
	return p;
}

struct calls_graph *calls_graph_new(const struct calls_opts *opts)
{
	struct calls_graph *g = must(calloc(1, sizeof(*g)));

	g->opts = *opts;
	g->runs.most = CALLS_RUNS_MOST;
	return g;
}

static void release_span(struct calls_span *s)
{
	while (s->cells) {
		struct calls_cell *c = s->cells;

		s->cells = c->next;
		while (c->edges) {
			struct calls_edge *e = c->edges;

			c->edges = e->next;
			free(e->events);
		}
		free(c->events);
		free(c->skipped_events);
	}
}

void calls_graph_free(struct calls_graph *g)
{
	if (!g)
		return;
	while (g->threads) {
		struct calls_thread *t = g->threads;

		g->threads = t->next;
		free(t->frame);
		free(t->active);
		free(t->interrupted);
		free(t->entered);
		free(t->last_counts);
		free(t);
	}
	while (g->spans) {
		struct calls_span *s = g->spans;

		g->spans = s->next_made;
		release_span(s);
	}
	for (u32 i = 0; i < g->nr_fns * g->opts.recursions; i++)
		free(g->contexts[i]);
	free(g->contexts);
	for (u32 i = 0; i < g->nr_fns; i++) {
		free((char *)g->fn[i]->object);
		free((char *)g->fn[i]->file);
		free((char *)g->fn[i]->name);
		free(g->fn[i]);
	}
	calls_tree_free(g);
	calls_runs_release(&g->runs);
	calls_memory_release(&g->memory);
	free(g->fn);
	free(g->fn_next);
	free(g->gaps);
	free(g->edges.place);
	free(g);
}

static u32 hash_text(u32 hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 16777619u;
	return hash;
}

struct calls_fn *calls_fn_of(struct calls_graph *g, const char *object, const char *file,
			     const char *name, bool *made)
{
	u32 hash = hash_text(hash_text(hash_text(2166136261u, object), file), name);
	u32 *bucket = &g->fn_hash[hash % CALLS_BUCKETS];
	struct calls_fn *f;

	*made = false;
	for (u32 i = *bucket; i; i = g->fn_next[i - 1]) {
		f = g->fn[i - 1];
		if (!strcmp(f->name, name) && !strcmp(f->file, file) && !strcmp(f->object, object))
			return f;
	}
	if (g->nr_fns == g->fn_room) {
		g->fn_room = g->fn_room ? g->fn_room * 2 : 256;
		g->fn = must(realloc(g->fn, g->fn_room * sizeof(struct calls_fn *)));
		g->fn_next = must(realloc(g->fn_next, g->fn_room * sizeof(*g->fn_next)));
		g->contexts = must(realloc(g->contexts, (size_t)g->fn_room * g->opts.recursions *
								sizeof(struct calls_context *)));
	}
	f = must(calloc(1, sizeof(*f)));
	f->number = g->nr_fns;
	f->object = must(strdup(object));
	f->file = must(strdup(file));
	f->name = must(strdup(name));
	memset(g->contexts + (size_t)g->nr_fns * g->opts.recursions, 0,
	       g->opts.recursions * sizeof(struct calls_context *));
	g->fn[g->nr_fns] = f;
	g->fn_next[g->nr_fns++] = *bucket;
	*bucket = g->nr_fns;
	*made = true;
	return f;
}

struct calls_context *calls_context_new(struct calls_graph *g, struct calls_fn *fn, u32 level)
{
	struct calls_context *c = must(calloc(1, sizeof(*c)));

	c->fn = fn;
	c->level = level;
	g->contexts[fn->number * g->opts.recursions + level] = c;
	return c;
}

struct calls_cell *calls_cell_of(struct calls_graph *g, struct calls_span *s,
				 struct calls_context *context)
{
	struct calls_place *place = NULL;
	struct calls_cell *c;

	if (s->cell)
		s->cell->count += s->count;
	s->count = 0;
	s->context = context;
	if (g->opts.tree) {
		place = calls_tree_cell(g, s, context);
		if (place->found)
			return s->cell = place->found;
	}
	for (c = place ? NULL : s->cells; c; c = c->next)
		if (c->context == context)
			return s->cell = c;
	c = calls_memory_take(&g->memory, sizeof(*c));
	c->span = s;
	c->context = context;
	c->next = s->cells;
	s->cells = c;
	if (place)
		place->found = c;
	return s->cell = c;
}

struct calls_thread *calls_thread_new(struct calls_graph *g, u32 tid)
{
	struct calls_thread *t = must(calloc(1, sizeof(*t)));

	t->graph = g;
	t->tid = tid;
	t->room = 64;
	t->frame = must(calloc(t->room, sizeof(*t->frame)));
	if (g->opts.simulation)
		t->entered = must(calloc(t->room, sizeof(*t->entered)));
	if (g->opts.tree)
		t->root = calls_tree_root(g, tid);
	t->collect = g->opts.collect;
	t->out = CALLS_LEAVES;
	t->next = g->threads;
	g->threads = t;
	return t;
}

static bool may_leave(u8 kind)
{
	return kind == PATH_CALL || kind == PATH_CALL_IND || kind == PATH_RETURN ||
	       kind == PATH_JUMP_IND;
}

static struct calls_span *add_span(struct calls_graph *g, const struct path_step *steps, u32 n,
				   const struct calls_code *code)
{
	struct calls_span *s = calls_memory_take(&g->memory, sizeof(*s) + n * sizeof(s->pc[0]));

	s->n = n;
	s->entry = code->entry;
	s->code = *code;
	s->fn = code->fn;
	s->first = steps[0].pc;
	s->last = steps[n - 1].pc;
	s->behind = s->last + steps[n - 1].len;
	s->end = steps[n - 1].kind;
	if (!g->opts.no_calls) {
		s->in = s->entry ? CALLS_ENTERS : code->region;
		s->out = may_leave(s->end) ? CALLS_LEAVES : code->region;
	}
	for (u32 i = 0; i < n; i++)
		s->pc[i] = steps[i].pc;
	if (g->opts.simulation)
		s->simulated = simulated_code_new(g->opts.simulation, steps, n);
	s->next_made = g->spans;
	g->spans = s;
	return s;
}

/* Spans are cut behind branches where another function begins. */
struct calls_span *calls_span_new(struct calls_graph *g, const struct path_step *steps, u32 n)
{
	struct calls_span *first = NULL, **to = &first;
	struct calls_code code, next;
	u32 from = 0;

	g->opts.find(g->opts.data, g, steps[0].pc, &code);
	for (u32 i = 1; i < n && !g->opts.no_calls; i++) {
		if (steps[i - 1].kind == PATH_PLAIN)
			continue;
		g->opts.find(g->opts.data, g, steps[i].pc, &next);
		if (!next.entry && next.region == code.region)
			continue;
		*to = add_span(g, steps + from, i - from, &code);
		(*to)->more = true;
		(*to)->in = CALLS_ENTERS;
		to = &(*to)->rest;
		from = i;
		code = next;
	}
	*to = add_span(g, steps + from, n - from, &code);
	return first;
}

/* Stands for what is not known, behind something of @code's. It counts nothing itself. */
static struct calls_span *gap_behind(struct calls_graph *g, const struct calls_code *code)
{
	const struct path_step nothing = {.kind = PATH_JUMP_IND};
	struct calls_code middle = *code;
	struct calls_span **gap;

	if (code->fn->number >= g->nr_gaps) {
		u32 n = g->nr_gaps;

		g->nr_gaps = g->nr_fns;
		g->gaps = must(realloc(g->gaps, g->nr_gaps * sizeof(struct calls_span *)));
		memset(g->gaps + n, 0, (g->nr_gaps - n) * sizeof(struct calls_span *));
	}
	gap = &g->gaps[code->fn->number];
	if (!*gap) {
		middle.entry = false;
		*gap = add_span(g, &nothing, 1, &middle);
		(*gap)->n = 0;
	}
	return *gap;
}

void calls_run_unknown(struct calls_thread *t, u32 n)
{
	if (t->collect) {
		t->cost += n;
		t->graph->unknown += n;
	}
	t->branch.open = false;
	t->last_kept = false;
	if (!t->last)
		return;
	/*
	 * What comes next is no longer what the last instruction has called or returned to. As
	 * behind a jump it is the same function, or one that begins, or one that has an open call.
	 */
	t->last = calls_cell_of(t->graph, gap_behind(t->graph, &t->last->span->code), t->context);
	t->out = t->last->span->out;
}

static void free_lists(struct calls_profile *p)
{
	free(p->cost);
	free(p->call);
	free(p->events);
}

void calls_profile_release(struct calls_profile *p)
{
	free_lists(p);
	*p = (struct calls_profile){0};
}

static int by_place(const void *a, const void *b)
{
	const struct calls_cost *x = a, *y = b;

	if (x->fn != y->fn)
		return x->fn->number < y->fn->number ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static int by_site(const void *a, const void *b)
{
	const struct calls_call *x = a, *y = b;

	if (x->from != y->from)
		return x->from->number < y->from->number ? -1 : 1;
	if (x->from_level != y->from_level)
		return x->from_level < y->from_level ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->to != y->to)
		return x->to->number < y->to->number ? -1 : 1;
	if (x->to_level != y->to_level)
		return x->to_level < y->to_level ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

/* What belongs to @from as well as to @into is @into's. */
static void merge_events(struct calls_profile *p, u32 *into, u32 from)
{
	if (!*into)
		*into = from;
	else if (from)
		event_counts_add(&p->events[*into - 1], &p->events[from - 1]);
}

static void merge(struct calls_profile *p)
{
	u32 n = 0;

	if (p->nr_costs)
		qsort(p->cost, p->nr_costs, sizeof(*p->cost), by_place);
	for (u32 i = 0; i < p->nr_costs; i++) {
		if (n && !by_place(&p->cost[n - 1], &p->cost[i])) {
			p->cost[n - 1].count += p->cost[i].count;
			merge_events(p, &p->cost[n - 1].events, p->cost[i].events);
		} else {
			p->cost[n++] = p->cost[i];
		}
	}
	p->nr_costs = n;
	n = 0;
	if (p->nr_calls)
		qsort(p->call, p->nr_calls, sizeof(*p->call), by_site);
	for (u32 i = 0; i < p->nr_calls; i++) {
		if (n && !by_site(&p->call[n - 1], &p->call[i])) {
			p->call[n - 1].count += p->call[i].count;
			p->call[n - 1].cost += p->call[i].cost;
			merge_events(p, &p->call[n - 1].events, p->call[i].events);
		} else {
			p->call[n++] = p->call[i];
		}
	}
	p->nr_calls = n;
}

struct calls_rooms {
	u32 costs, calls, events;
};

/* A copy of @events; 0: there are none. */
static u32 put_events(struct calls_profile *p, struct calls_rooms *r,
		      const struct event_counts *events)
{
	if (!events)
		return 0;
	if (p->nr_events == r->events) {
		r->events = r->events ? r->events * 2 : 1024;
		p->events = must(realloc(p->events, r->events * sizeof(*p->events)));
	}
	p->events[p->nr_events] = *events;
	return ++p->nr_events;
}

static void put_cost(struct calls_profile *p, struct calls_rooms *r, const struct calls_context *c,
		     u64 pc, u64 count, const struct event_counts *events)
{
	if (p->nr_costs == r->costs) {
		r->costs = r->costs ? r->costs * 2 : 1024;
		p->cost = must(realloc(p->cost, r->costs * sizeof(*p->cost)));
	}
	p->cost[p->nr_costs++] = (struct calls_cost){c->fn, c->level, pc, count,
						     put_events(p, r, events)};
}

static void put_call(struct calls_profile *p, struct calls_rooms *r, const struct calls_cell *c,
		     const struct calls_edge *e)
{
	if (p->nr_calls == r->calls) {
		r->calls = r->calls ? r->calls * 2 : 1024;
		p->call = must(realloc(p->call, r->calls * sizeof(*p->call)));
	}
	p->call[p->nr_calls++] = (struct calls_call){
		.from = c->context->fn,
		.to = e->to->fn,
		.from_level = c->context->level,
		.to_level = e->to->level,
		.site = c->span->last,
		.target = e->target,
		.count = e->count,
		.cost = e->cost,
		.events = put_events(p, r, e->events),
	};
}

/* What the instructions have met, with how often they were executed. */
static void take_events(struct calls_profile *p, struct calls_rooms *r, struct calls_cell *c)
{
	const struct calls_span *s = c->span;
	u32 place = 0, n = c->events ? simulated_places(s->simulated) : 0;

	for (u32 i = 0; i < s->n; i++) {
		struct event_counts at = {0};
		enum simulated what;
		bool counts;

		for (; place < n && simulated_insn(s->simulated, place, &what, &counts) == i;
		     place++) {
			for (u32 k = 0; k < 3; k++)
				at.n[what][k] += c->events[place * 3 + k];
			at.n[what][0] += counts ? 0 : c->count;
		}
		if (c->count || !event_counts_none(&at))
			put_cost(p, r, c->context, s->pc[i], c->count,
				 event_counts_none(&at) ? NULL : &at);
	}
	if (n)
		memset(c->events, 0, n * 3 * sizeof(u64));
}

static void take_cell(struct calls_profile *p, struct calls_rooms *r, struct calls_cell *c)
{
	if (c->count || c->events)
		take_events(p, r, c);
	if (c->skipped)
		put_cost(p, r, c->context, c->span->last, c->skipped, c->skipped_events);
	c->count = c->skipped = 0;
	if (c->skipped_events)
		*c->skipped_events = (struct event_counts){0};
	for (struct calls_edge *e = c->edges; e; e = e->next) {
		/* As with callgrind, calls that have cost nothing are not told of. */
		if (!e->cost)
			continue;
		put_call(p, r, c, e);
		e->cost = e->count = 0;
		if (e->events)
			*e->events = (struct event_counts){0};
	}
}

static void put_unknown(struct calls_graph *g, struct calls_profile *p, struct calls_rooms *r)
{
	struct calls_fn *fn;
	bool made;

	if (!g->unknown)
		return;
	fn = calls_fn_of(g, "???", "???", "???", &made);
	put_cost(p, r, calls_context_of(g, fn, 0), 0, g->unknown, NULL);
	g->unknown = 0;
}

/* What calls that are open have cost so far. */
static void settle_frames(struct calls_thread *t)
{
	for (u32 i = 0; i < t->nr; i++) {
		struct calls_frame *f = &t->frame[i];

		/* Below are those of what was interrupted, which had a count of its own. */
		u64 cost = t->cost;
		const struct event_counts *events = &t->events;

		for (u32 s = t->signals; s > 0 && i < t->interrupted[s - 1].bottom; s--) {
			cost = t->interrupted[s - 1].cost;
			events = &t->interrupted[s - 1].events;
		}
		if (f->edge)
			f->edge->cost += cost - f->enter;
		f->enter = cost;
		if (!t->entered)
			continue;
		if (f->edge) {
			event_counts_add(f->edge->events, events);
			event_counts_subtract(f->edge->events, &t->entered[i]);
		}
		t->entered[i] = *events;
	}
}

static u64 cost_of(const struct calls_thread *t)
{
	return t->signals ? t->interrupted[0].cost : t->cost;
}

static void take_summary(struct calls_thread *t, struct calls_profile *p)
{
	const struct event_counts *now = t->signals ? &t->interrupted[0].events : &t->events;

	p->summary += cost_of(t) - t->dumped;
	t->dumped = cost_of(t);
	event_counts_add(&p->summary_events, now);
	event_counts_subtract(&p->summary_events, &t->events_dumped);
	t->events_dumped = *now;
}

void calls_take(struct calls_graph *g, struct calls_profile *p)
{
	struct calls_rooms r = {0, 0, 0};

	*p = (struct calls_profile){0};
	calls_runs_settle(g);
	for (struct calls_thread *t = g->threads; t; t = t->next) {
		settle_frames(t);
		take_summary(t, p);
	}
	for (struct calls_span *s = g->spans; s; s = s->next_made) {
		if (s->cell)
			s->cell->count += s->count;
		s->count = 0;
		for (struct calls_cell *c = s->cells; c; c = c->next)
			take_cell(p, &r, c);
	}
	put_unknown(g, p, &r);
	merge(p);
}

void calls_zero(struct calls_graph *g)
{
	struct calls_profile p;

	calls_take(g, &p);
	calls_profile_release(&p);
	/* Edges of open calls may be without cost and have a count. */
	for (struct calls_thread *t = g->threads; t; t = t->next)
		for (u32 i = 0; i < t->nr; i++)
			if (t->frame[i].edge)
				t->frame[i].edge->count = 0;
}
