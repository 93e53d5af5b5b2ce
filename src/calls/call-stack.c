/*
 * Who calls and who returns, span by span. The rules are callgrind's; it has stack pointers to go
 * by, and here are the addresses that calls return to:
 *
 *   a call opens a frame, unless it is of a function that is not told of
 *   a return to where the topmost real call returns to ends it, and with it all frames that jumps
 *     have opened above; one to where an earlier call returns to ends all up to that one
 *   a return to where nobody called from is a jump
 *   a jump to where a function begins, or to another object or kind of section, opens a frame too:
 *     the call of a tail, which ends with the frame below
 *   a jump into the middle of a function that has an open frame, from another function, ends all
 *     that it has called: longjmp, and exceptions. Who has called _Unwind_Resume is left for good.
 *     Of several frames it is the innermost, but behind a call of setjmp the one that has made it
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/calls-priv.h"

void calls_grow_active(struct calls_thread *t, u32 number)
{
	u32 n = t->nr_active;

	t->nr_active = number * 2 + 64;
	t->active = realloc(t->active, t->nr_active * sizeof(*t->active));
	CHECK(t->active);
	memset(t->active + n, 0, (t->nr_active - n) * sizeof(*t->active));
}

static inline u32 *active_of(struct calls_thread *t, const struct calls_fn *fn)
{
	if (unlikely(fn->number >= t->nr_active))
		calls_grow_active(t, fn->number);
	return &t->active[fn->number];
}

/* The context of who is executing, called by @from, or by nobody that is known (NULL). */
static void set_context(struct calls_thread *t, const struct calls_cell *from)
{
	u32 level = *active_of(t, t->fn), most = t->graph->opts.recursions;

	if (!level)
		level = *active_of(t, t->fn) = 1; /* nobody has seen it being called */
	if (t->graph->opts.tree) {
		t->context = calls_tree_context(t->graph, from ? from->context : t->root, t->fn,
						from ? from->span->last + 1 : 0);
		return;
	}
	t->context = calls_context_of(t->graph, t->fn, (level < most ? level : most) - 1);
}

static void dump(struct calls_thread *t, const char *option, const struct calls_fn *fn)
{
	const struct calls_opts *o = &t->graph->opts;
	char trigger[256];
	size_t n = strlen(option), m = strlen(fn->name);

	if (!o->dump)
		return;
	m = m < sizeof(trigger) - n - 1 ? m : sizeof(trigger) - n - 1;
	memcpy(trigger, option, n);
	memcpy(trigger + n, fn->name, m);
	trigger[n + m] = 0;
	o->dump(o->data, t->graph, trigger);
}

static void entered(struct calls_thread *t, const struct calls_fn *fn)
{
	if (fn->dump_before)
		dump(t, "--dump-before=", fn);
	else if (fn->zero_before)
		calls_zero(t->graph);
	if (fn->toggle)
		t->collect = !t->collect;
}

static void left(struct calls_thread *t, const struct calls_fn *fn)
{
	if (fn->dump_after)
		dump(t, "--dump-after=", fn);
	if (fn->toggle)
		t->collect = !t->collect;
}

static struct calls_frame *new_frame(struct calls_thread *t)
{
	if (t->nr == t->room) {
		CHECK(t->room);
		t->room *= 2;
		t->frame = realloc(t->frame, t->room * sizeof(*t->frame));
		CHECK(t->frame);
		if (t->graph->opts.simulation) {
			t->entered = realloc(t->entered, t->room * sizeof(*t->entered));
			CHECK(t->entered);
		}
	}
	return &t->frame[t->nr++];
}

/* The call that was opened last is of setjmp, or ends with one that is: who has called that? */
static void remember_setjmp(struct calls_thread *t)
{
	for (u32 i = t->nr; i > t->bottom + 1; i--) {
		const struct calls_frame *f = &t->frame[i - 1];

		if (!calls_frame_ret(f))
			continue;
		t->frame[i - 2].again = calls_frame_ret(f);
		f->site->code.fn->catches = true;
		return;
	}
}

static void push(struct calls_thread *t, struct calls_span *s, bool emulated)
{
	struct calls_cell *from = t->last;
	struct calls_fn *to = s->code.fn;
	struct calls_frame *f;
	u32 *active;

	if (!to->skip && t->nonskipped)
		from = t->nonskipped;
	f = new_frame(t);
	*f = (struct calls_frame){.site = t->last->span,
				  .enter = t->cost,
				  .context = t->context,
				  .nonskipped = t->nonskipped,
				  .emulated = emulated};
	if (t->entered)
		t->entered[t->nr - 1] = t->events;
	f->ret = calls_fn_asks(to) ? 0 : calls_frame_ret(f);
	if (to->skip) {
		if (!t->nonskipped)
			t->nonskipped = from;
		return;
	}
	t->fn = to;
	active = active_of(t, to);
	++*active;
	set_context(t, from);
	f->edge = calls_edge_of(t->graph, from, t->context, s->first);
	s->called = calls_fn_asks(to) ? NULL : f->edge;
	if (to->twice)
		remember_setjmp(t);
	f->edge->count++;
	/* A dump in between tells of this call. */
	if (*active == 1)
		entered(t, to);
	t->nonskipped = NULL;
}

static void end_signal(struct calls_thread *t);

static void pop(struct calls_thread *t)
{
	struct calls_frame *f;
	struct calls_fn *fn;
	u32 *active;

	/* Handlers that were left by longjmp: one may have interrupted another's first path. */
	while (t->signals && t->nr == t->bottom)
		end_signal(t);
	f = &t->frame[--t->nr];
	t->nonskipped = f->nonskipped;
	if (!f->edge)
		return;
	fn = f->edge->to->fn;
	f->edge->cost += t->cost - f->enter;
	if (t->entered) {
		event_counts_add(f->edge->events, &t->events);
		event_counts_subtract(f->edge->events, &t->entered[t->nr]);
	}
	t->fn = f->context->fn;
	t->context = f->context;
	active = active_of(t, fn);
	if (*active)
		--*active;
	if (!*active)
		left(t, fn);
}

static void pop_many(struct calls_thread *t, u32 n)
{
	while (n--)
		pop(t);
}

/* How many frames end with a return to @pc; 0: nobody called from there. */
static u32 frames_to(const struct calls_thread *t, u64 pc)
{
	for (u32 i = t->nr; i > t->bottom; i--)
		if (calls_frame_ret(&t->frame[i - 1]) == pc)
			return t->nr - i + 1;
	return 0;
}

/* Without what is said of the part of a function that the compiler has put elsewhere. */
static size_t length_of(const char *name)
{
	static const char *const said[] = {".cold", " [clone .cold]"};
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		size_t m = strlen(said[i]);

		if (n > m && !strcmp(name + n - m, said[i]))
			return n - m;
	}
	return n;
}

/* The same function, or that part of it. */
static bool is_same(const struct calls_fn *a, const struct calls_fn *b)
{
	size_t n;

	if (a == b)
		return true;
	n = length_of(a->name);
	return n == length_of(b->name) && !strncmp(a->name, b->name, n) &&
	       !strcmp(a->object, b->object);
}

/*
 * How many frames end if the thread goes on in the middle of the function at @s. A call by way of a
 * linkage table is two frames: that of the slot, which is not told of, and that of its jump.
 */
static u32 frames_into(const struct calls_thread *t, const struct calls_span *s)
{
	bool unwinds = false;

	if (s->code.entry || !s->code.fn->symbol || is_same(s->code.fn, t->last->span->code.fn))
		return 0;
	/* Of a recursive function the level that has called setjmp there, and that last. */
	for (u32 i = s->code.fn->catches ? t->nr : 0; i-- > 1;)
		if (t->frame[i - 1].again == s->first)
			return t->nr - i;
	for (u32 i = t->nr; i > 0; i--) {
		const struct calls_frame *f = &t->frame[i - 1];

		if (f->edge)
			unwinds = f->edge->to->fn->unwinds;
		if (f->emulated)
			continue;
		if (!unwinds && is_same(f->site->code.fn, s->code.fn))
			return t->nr - i + 1;
		unwinds = false;
	}
	return 0;
}

/*
 * A return from what was called before anything was known: the caller is who comes next, and what
 * has been executed so far was its call.
 */
static void underflow(struct calls_thread *t, const struct calls_span *s)
{
	static const u64 dumped_by_handlers = 0;
	struct calls_cell *was = t->last;
	struct path_step site = {.pc = s->pc[0] - 1, .len = 1, .kind = PATH_CALL};
	struct calls_code code = s->code;
	struct calls_span *source;
	struct calls_edge *e;
	u64 enter = t->signals ? dumped_by_handlers : t->dumped;

	code.entry = false;
	source = calls_span_new(t->graph, &site, 1);
	source->code = code;
	source->fn = code.fn;
	source->entry = false;
	if (*active_of(t, t->fn))
		--*active_of(t, t->fn);
	t->fn = s->code.fn;
	++*active_of(t, t->fn);
	set_context(t, NULL);
	e = calls_edge_of(t->graph, calls_cell_of(t->graph, source, t->context), was->context,
			  was->span->pc[0]);
	e->count++;
	e->cost += t->cost - enter;
	if (e->events) {
		event_counts_add(e->events, &t->events);
		if (!t->signals)
			event_counts_subtract(e->events, &t->events_dumped);
	}
	t->nonskipped = NULL;
	if (was->context->fn->toggle || was->context->fn->dump_after)
		left(t, was->context->fn);
}

/* A jump from one function into the next is a return and a call: of the dynamic linker. */
static void pop_on_jump(struct calls_thread *t)
{
	const struct calls_frame *f = t->nr > t->bottom ? &t->frame[t->nr - 1] : NULL;

	if (!f || !f->edge)
		return;
	t->last = f->edge->from;
	pop(t);
}

static void change(struct calls_thread *t, struct calls_span *s)
{
	const struct calls_span *last = t->last->span;
	u8 kind = last->end;
	bool lost = false, emulated;
	u32 n;

	if (kind == PATH_RETURN) {
		if (t->nr == 0) {
			underflow(t, s);
			return;
		}
		n = frames_to(t, s->pc[0]);
		pop_many(t, n);
		if (n)
			return;
		lost = true;
	}
	if (kind == PATH_CALL || kind == PATH_CALL_IND) {
		push(t, s, false);
		return;
	}
	if (lost || kind == PATH_JUMP_IND) {
		n = frames_into(t, s);
		pop_many(t, n);
		if (n)
			return;
	}
	if (kind == PATH_PLAIN || (!lost && !s->code.entry && s->code.region == last->code.region))
		return;
	emulated = t->nr > 0;
	if (last->code.fn->pop_on_jump) {
		bool real = t->nr > t->bottom && !t->frame[t->nr - 1].emulated;

		pop_on_jump(t);
		emulated = !real && t->nr > 0;
	}
	push(t, s, emulated);
}

/* Who is executing, where that may have changed. */
static void look(struct calls_thread *t, struct calls_span *s)
{
	if (!t->context) {
		t->fn = s->code.fn;
		++*active_of(t, t->fn);
		set_context(t, NULL);
		/* The kernel has called it: the handler of a signal. For callgrind nobody has. */
		if (t->graph->opts.tree && t->signals && s->code.entry)
			entered(t, t->fn);
	} else if (t->last && !t->graph->opts.no_calls) {
		change(t, s);
	}
}

/* The thread is in @s from now on. */
static inline void enter(struct calls_thread *t, struct calls_span *s)
{
	if (unlikely(s->in != t->out))
		look(t, s);
	if (unlikely(s->context != t->context))
		(void)calls_cell_of(t->graph, s, t->context);
	t->last = s->cell;
	t->out = s->out;
}

/* Its instructions cost, once. */
static inline void charge(struct calls_thread *t, struct calls_span *s)
{
	if (!t->collect)
		return;
	t->cost += s->n;
	if (unlikely(t->nonskipped != NULL))
		t->nonskipped->skipped += s->n;
	else
		s->count++;
}

static inline void execute(struct calls_thread *t, struct calls_span *s)
{
	for (; s; s = s->rest) {
		enter(t, s);
		charge(t, s);
	}
}

void calls_run(struct calls_thread *t, struct calls_span *s)
{
	execute(t, s);
}

void calls_run_simulated(struct calls_thread *t, struct calls_span *s, struct path_records *records,
			 bool keep)
{
	for (; s; s = s->rest) {
		calls_close_branch(t, s->pc[0]);
		enter(t, s);
		calls_simulate(t, s, records, keep);
		charge(t, s);
	}
}

void calls_run_interrupted(struct calls_thread *t, struct calls_span *s,
			   struct path_records *records)
{
	calls_close_branch(t, s->pc[0]);
	enter(t, s);
	calls_simulate_accesses(t, s, records);
}

void calls_run_modeled(struct calls_thread *t, struct calls_span *s, const struct path_event *event,
		       u32 n)
{
	const struct calls_span *path = s;

	calls_modeled_before(t, event, n, !s);
	for (; s; s = s->rest) {
		enter(t, s);
		calls_modeled_part(t, path, event, n);
		charge(t, s);
	}
}

static void count(struct calls_thread *t, u64 times)
{
	u64 n = times * t->last->span->n;

	t->cost += n;
	if (t->nonskipped)
		t->nonskipped->skipped += n;
	else
		t->last->count += times;
	calls_simulate_again(t, times);
}

void calls_uncount(struct calls_thread *t)
{
	if (t->last && t->collect)
		count(t, -1ull);
}

void calls_recount(struct calls_thread *t)
{
	if (t->last && t->collect)
		count(t, 1);
}

void calls_signal(struct calls_thread *t)
{
	if (t->signals == t->signal_room) {
		t->signal_room = t->signal_room ? t->signal_room * 2 : 4;
		t->interrupted = realloc(t->interrupted, t->signal_room * sizeof(*t->interrupted));
		CHECK(t->interrupted);
	}
	t->interrupted[t->signals++] = (struct calls_interrupted){.last = t->last,
								  .nonskipped = t->nonskipped,
								  .fn = t->fn,
								  .context = t->context,
								  .cost = t->cost,
								  .events = t->events,
								  .branch = t->branch,
								  .bottom = t->bottom,
								  .collect = t->collect};
	t->bottom = t->nr;
	t->cost = 0;
	t->events = (struct event_counts){0};
	t->branch.open = false;
	t->last = t->nonskipped = NULL;
	t->out = CALLS_LEAVES;
	t->fn = NULL;
	t->context = NULL;
	t->collect = t->graph->opts.collect;
}

/* The frames of the handler are gone. */
static void end_signal(struct calls_thread *t)
{
	const struct calls_interrupted *i = &t->interrupted[--t->signals];

	if (t->fn && *active_of(t, t->fn))
		--*active_of(t, t->fn);
	t->last = i->last;
	t->nonskipped = i->nonskipped;
	t->fn = i->fn;
	t->cost = i->cost;
	t->events = i->events;
	t->branch = i->branch;
	t->bottom = i->bottom;
	t->collect = i->collect;
	t->context = i->context;
	t->out = CALLS_LEAVES;
}

void calls_signal_return(struct calls_thread *t)
{
	if (!t->signals)
		return;
	while (t->nr > t->bottom)
		pop(t);
	end_signal(t);
}

void calls_toggle_collect(struct calls_thread *t)
{
	t->collect = !t->collect;
}

static void unwind(struct calls_thread *t)
{
	while (t->signals)
		calls_signal_return(t);
	while (t->nr)
		pop(t);
}

void calls_finish(struct calls_graph *g)
{
	for (struct calls_thread *t = g->threads; t; t = t->next)
		unwind(t);
}

void calls_forget(struct calls_graph *g)
{
	for (struct calls_thread *t = g->threads; t; t = t->next) {
		unwind(t);
		if (t->nr_active)
			memset(t->active, 0, t->nr_active * sizeof(*t->active));
		t->cost = t->dumped = 0;
		t->events = t->events_dumped = (struct event_counts){0};
		t->branch.open = false;
		t->last = t->nonskipped = NULL;
		t->out = CALLS_LEAVES;
		t->fn = NULL;
		t->context = NULL;
		t->collect = g->opts.collect;
	}
}
