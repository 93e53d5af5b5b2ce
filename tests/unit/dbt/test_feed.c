/*
 * A model that is fed with the trace counts what one counts that is told of each instruction, which
 * native single steps say.
 */
#include "dbt/arch/x86_64/decode.h"
#include "data/path-walk.h"
#include "dbt/arch/x86_64/insn-floats.h"
#include "model/feed-tally.h"
#include "model/feed.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/model/machines.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define MASK (DBT_MASK_ALL | DBT_MASK_TRACE)

static struct path_space *space;

static void *zeroes(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void tracing(struct guest *g)
{
	if (!g->trace) {
		g->max_traced = 4 << 20;
		g->trace = zeroes(g->max_traced * sizeof(*g->trace));
	}
	if (space)
		return;
	space = zeroes(sizeof(*space));
	dbt_paths(g->t, space);
}

/* What the model is to be told of one instruction; what follows it is at @next. */
static void tell_step(struct model_core *core, u32 parts, const struct native_step *s, u64 next)
{
	static const u8 kinds[] = {
		[CF_JMP] = MODEL_JUMP,          [CF_JCC] = MODEL_COND,
		[CF_LOOP] = MODEL_COND,         [CF_CALL] = MODEL_CALL,
		[CF_RET] = MODEL_RETURN,        [CF_JMP_IND] = MODEL_JUMP_IND,
		[CF_CALL_IND] = MODEL_CALL_IND,
	};
	struct insn i;
	u64 follows;

	if (insn_decode(&i, (const u8 *)s->pc, INSN_MAX) <= 0)
		abort();
	follows = s->pc + i.len;
	if (parts & (MODEL_CACHES | MODEL_TLBS))
		model_fetch(core, s->pc, i.len);
	if (parts & MODEL_BRANCHES && i.cf < ARRAY_SIZE(kinds) && kinds[i.cf]) {
		bool direct = i.cf == CF_JMP || i.cf == CF_JCC || i.cf == CF_LOOP ||
			      i.cf == CF_CALL;

		model_branch(core, s->pc, follows, kinds[i.cf],
			     kinds[i.cf] != MODEL_COND || s->taken == TRACE_BRANCH_COND,
			     direct ? insn_target(&i, s->pc) : next);
	}
	model_work(core, 1, 0);
	if (parts & MODEL_FLOATS && insn_floats(&i))
		model_floats(core, insn_floats(&i), 1);
}

static void same_counts(const char *name, u32 parts, const struct model_core *got,
			const struct model_core *want)
{
	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		u64 is = model_count(got, i), should = model_count(want, i);

		/* What instructions cost by themselves depends on where paths end. */
		if (i == MODEL_CPU_CYCLES || i == MODEL_REF_CYCLES || i == MODEL_BUS_CYCLES)
			continue;
		if (is != should)
			TEST_FAIL("%s, parts %u: counter %u is %llu, not %llu", name, parts, i,
				  (unsigned long long)is, (unsigned long long)should);
	}
}

static struct machine machine_that_predicts(enum machine_direction direction)
{
	struct machine m = small_machine();

	m.branch.direction = (u8)direction;
	m.branch.history = direction == MACHINE_BIMODAL ? 0 : direction == MACHINE_TAGE ? 128 : 10;
	return m;
}

/* @period: with a deadline each so many instructions. */
static void check_run(struct guest *g, const struct program *p, const struct native_step *steps,
		      u64 n, u32 parts, enum machine_direction direction, u64 period)
{
	struct machine m = machine_that_predicts(direction);
	struct model *model = model_new(&m, 1, parts), *oracle = model_new(&m, 1, parts);
	struct model_core *core = model_core(model, 0), *want = model_core(oracle, 0);
	struct feed *f = zeroes(sizeof(*f));
	struct feed_thread t = {0};

	feed_init(f, model, space, parts, false);
	dbt_trace_flush(g->t);
	g->nr_traced = 0;
	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	if (period)
		stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	if (period)
		stops_end(g);
	dbt_trace_flush(g->t);
	EXPECT(g->nr_traced < g->max_traced);
	/* In pieces of any size that tear no entry. */
	for (u64 i = 0, k; i < g->nr_traced; i += k) {
		k = 1;
		while (i + k < g->nr_traced && (k < 1000 || g->trace[i + k - 1] >= PATH_WORDS ||
						g->trace[i + k - 2] >= PATH_WORDS))
			k++;
		feed_words(f, &t, core,
			   &(struct feed_input){.words = g->trace + i, .nr_words = (u32)k});
	}
	feed_settle(f, &t, core);
	/* What the program returns to is not executed, so nobody knows where its return goes. */
	if (parts & MODEL_BRANCHES && t.open)
		model_branch(core, t.open_pc, t.open_next, (enum model_branch_kind)t.open, true,
			     GUEST_DONE);
	for (u64 i = 0; i < n; i++)
		tell_step(want, parts, &steps[i], steps[i].regs.rip);
	EXPECT_EQ(f->unknown, 0);
	same_counts(p->name, parts, core, want);
	model_free(model);
	model_free(oracle);
	munmap(f, sizeof(*f));
}

static void check_program(struct guest *g, const struct program *p)
{
	static const u32 parts[] = {MODEL_BRANCHES, MODEL_CACHES, MODEL_CACHES | MODEL_TLBS,
				    MODEL_FLOATS, MODEL_PARTS};
	struct native_step *steps;
	u64 n;

	tracing(g);
	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	dbt_set_mask(g->t, MASK);
	for (u32 i = 0; i < ARRAY_SIZE(parts); i++)
		check_run(g, p, steps, n, parts[i], MACHINE_BIMODAL, 0);
	check_run(g, p, steps, n, MODEL_BRANCHES, MACHINE_GSHARE, 0);
	check_run(g, p, steps, n, MODEL_PARTS, MACHINE_TAGE, 0);
	dbt_set_mask(g->t, MASK | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	check_run(g, p, steps, n, MODEL_PARTS, MACHINE_TAGE, 7);
	check_run(g, p, steps, n, MODEL_PARTS, MACHINE_TAGE, 1009);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

TEST(as_if_told_of_each_instruction)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i]);
}

/* What comes of a trace in which what each path has caused stands in front of it. */
struct listing {
	struct path_event event[4096]; /* those of what is not told yet */
	u32 nr, taken, nr_steps;
	u64 step[256]; /* of what is being told */
	u64 last;      /* the last one of what was told before */
	u64 sum[PROFILED_EVENTS];
	const char *name;
	struct path_walk walk;
};

static const struct path_space *space_at(u32 index, void *data)
{
	(void)index;
	(void)data;
	return space;
}

static void on_events(const u32 *words, u32 n, u32 first, void *data)
{
	struct listing *l = data;

	if (l->nr + n > ARRAY_SIZE(l->event))
		abort();
	memcpy(l->event + l->nr, words, n * sizeof(l->event[0]));
	for (u32 i = 0; i < n; i++)
		l->event[l->nr++].path += first;
}

static void on_step(const struct path_step *s, void *data)
{
	struct listing *l = data;

	l->step[l->nr_steps++] = s->pc;
}

/* It has executed what is said to have caused each, and what came before has what is its. */
static void on_done(u32 number, void *data)
{
	struct listing *l = data;
	u32 k;

	(void)number;
	for (; l->taken < l->nr && l->event[l->taken].path == l->walk.told; l->taken++) {
		const struct path_event *e = &l->event[l->taken];

		for (k = 0; k < l->nr_steps && l->step[k] != e->pc; k++)
			;
		if (e->flags ? e->flags != PATH_EVENT_BRANCH || e->pc != l->last
			     : e->pc && k == l->nr_steps)
			TEST_FAIL("%s: event %u of %u at %#llx, flags %u", l->name, e->event,
				  e->path, (unsigned long long)e->pc, e->flags);
		l->sum[e->event] += e->count;
	}
	if (l->taken == l->nr)
		l->taken = l->nr = 0;
	else if ((s32)(l->event[l->taken].path - l->walk.told) < 0)
		TEST_FAIL("%s: event of %u behind %u", l->name, l->event[l->taken].path,
			  l->walk.told);
	l->last = l->nr_steps ? l->step[l->nr_steps - 1] : l->last;
	l->nr_steps = 0;
}

static void on_gap(u32 n, void *data)
{
	(void)n;
	on_done(0, data);
}

/* Hands out what is in the list, and makes room. */
static void hand_out(struct feed_tally *t, struct listing *l, u32 settled)
{
	static u32 words[1 + 64 * PATH_EVENT_WORDS];

	words[0] = PATH_TRACE_EVENTS | settled | t->nr_list;
	memcpy(words + 1, t->list, t->nr_list * sizeof(t->list[0]));
	path_walk_feed(&l->walk, words, 1 + t->nr_list * PATH_EVENT_WORDS);
	t->nr_list = 0;
}

static struct listing *listing;

static void list_full(struct feed_tally *t)
{
	hand_out(t, listing, 0);
}

static bool is_taken_back(u32 word)
{
	u32 kind = word & PATH_TRACE_KIND;

	return kind == PATH_TRACE_BACK || kind == PATH_TRACE_AGAIN;
}

/* The last trace, in pieces of @least words, some of which the model is told of to their end. */
static void check_list(const struct guest *g, const char *name, u32 least)
{
	/* Of branches nearly each path has one, which is told by its address. */
	static const u8 counters[] = {MODEL_CPU_CYCLES, MODEL_BRANCH_INSTRUCTIONS,
				      MODEL_BRANCH_MISSES, MODEL_HW_CACHE + 1};
	struct machine m = machine_that_predicts(MACHINE_GSHARE);
	struct model *model = model_new(&m, 1, MODEL_PARTS);
	struct model_core *core = model_core(model, 0);
	struct feed *f = zeroes(sizeof(*f));
	struct feed_watching *w = zeroes(sizeof(*w));
	struct feed_thread t = {.watching = w};
	struct path_event list[64];
	struct feed_tally tally = {.list = list,
				   .list_room = ARRAY_SIZE(list),
				   .full = list_full,
				   .nr = ARRAY_SIZE(counters)};

	memcpy(tally.counter, counters, sizeof(counters));
	listing = zeroes(sizeof(*listing));
	listing->name = name;
	listing->walk = (struct path_walk){.source = {space_at, NULL},
					   .done = on_done,
					   .step = on_step,
					   .gap = on_gap,
					   .events = on_events,
					   .data = listing};
	w->tally = &tally;
	feed_init(f, model, space, MODEL_PARTS, true);
	for (u64 i = 0, k; i < g->nr_traced; i += k) {
		struct feed_input in = {.words = g->trace + i};

		for (k = 1;
		     i + k < g->nr_traced && (k < least || g->trace[i + k - 1] >= PATH_WORDS ||
					      g->trace[i + k - 2] >= PATH_WORDS);)
			k++;
		in.nr_words = (u32)k;
		feed_words(f, &t, core, &in);
		hand_out(&tally, listing, 0);
		path_walk_feed(&listing->walk, in.words, k);
		tally.told = 0;
		if (i % 3 && i + k < g->nr_traced && !is_taken_back(g->trace[i + k])) {
			feed_settle(f, &t, core);
			hand_out(&tally, listing, PATH_EVENTS_SETTLED);
			tally.told = 0;
		}
	}
	feed_settle(f, &t, core);
	hand_out(&tally, listing, PATH_EVENTS_SETTLED);
	path_walk_end(&listing->walk);
	EXPECT_EQ(listing->walk.bad, 0);
	EXPECT_EQ(listing->nr, 0);
	for (u32 i = 0; i < ARRAY_SIZE(counters); i++)
		EXPECT_EQ(listing->sum[i], model_count(core, counters[i]));
	model_free(model);
	munmap(f, sizeof(*f));
	munmap(w, sizeof(*w));
	munmap(listing, sizeof(*listing));
}

TEST(wherever_a_signal_comes)
{
	static const struct program programs[] = {{"loop", snip_loop, {3}},
						  {"deep", snip_deep, {2}}};
	struct guest *g = guest_main();

	tracing(g);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n = native_steps(g, programs[i].fn, programs[i].abc, 100000, &steps);

		dbt_set_mask(g->t, MASK);
		for (g->step = 1;; g->step++) {
			check_run(g, &programs[i], steps, n, MODEL_PARTS, MACHINE_TAGE, 0);
			for (u32 least = 1; least < 12; least += 2)
				check_list(g, programs[i].name, least);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		dbt_set_mask(g->t, DBT_MASK_ALL);
		free(steps);
	}
}

/* How often @counter has reached a multiple of its period, and where. */
static void check_hits(const struct feed_watching *w, const struct program *p, u64 count,
		       const struct native_step *steps, u64 n)
{
	const struct feed_watch *watch = &w->watch[0];
	u64 periods = 0;

	EXPECT(watch->at > count && watch->at - count <= watch->period);
	for (u32 i = 0; i < w->nr_hits; i++) {
		const struct feed_hit *h = &w->hit[i];
		bool executed = false;

		periods += h->periods;
		EXPECT(h->count >= periods * watch->period);
		EXPECT(!i || h->count > w->hit[i - 1].count);
		for (u64 k = 0; k < n && !executed; k++)
			executed = steps[k].pc == h->ip;
		if (!executed)
			TEST_FAIL("%s: a hit of counter %u at %#llx, which was not executed",
				  p->name, watch->counter, (unsigned long long)h->ip);
	}
	EXPECT_EQ(periods, count / watch->period);
}

/* What comes next counts @weight times, for @w and for another. */
static void weigh(struct feed_watching *w, struct model_core *core, struct model_core *other,
		  u32 weight)
{
	model_weigh(core);
	model_weigh(other);
	model_window(core, weight, false);
	model_window(other, weight, false);
	feed_watch_begin(w, core, weight);
}

/*
 * Who watches counts the same, and finds each period once, in pieces of any size. @windows: some of
 * them count several times, and others not at all.
 */
static void check_watch(struct guest *g, const struct program *p, const struct native_step *steps,
			u64 n, u32 counter, u64 period, bool windows)
{
	static const u8 weights[] = {1, 0, 5, 1, 90, 0, 0, 2};
	struct machine m = machine_that_predicts(MACHINE_TAGE);
	struct model *model = model_new(&m, 1, MODEL_PARTS), *other = model_new(&m, 1, MODEL_PARTS);
	struct model_core *core = model_core(model, 0), *usual = model_core(other, 0);
	struct feed *f = zeroes(sizeof(*f)), *not_each = zeroes(sizeof(*f));
	struct feed_watching *w = zeroes(sizeof(*w));
	struct feed_thread t = {.watching = w}, u = {0};

	w->nr = 1;
	w->watch[0] = (struct feed_watch){.counter = counter, .at = period, .period = period};
	feed_init(f, model, space, MODEL_PARTS, true);
	feed_init(not_each, other, space, MODEL_PARTS, false);
	for (u64 i = 0, k; i < g->nr_traced; i += k) {
		struct feed_input in = {.words = g->trace + i};

		k = 1;
		while (i + k < g->nr_traced &&
		       (k < 1 + i % 50 || g->trace[i + k - 1] >= PATH_WORDS ||
			g->trace[i + k - 2] >= PATH_WORDS))
			k++;
		in.nr_words = (u32)k;
		weigh(w, core, usual, windows ? weights[i % ARRAY_SIZE(weights)] : 1);
		feed_words(f, &t, core, &in);
		feed_words(not_each, &u, usual, &in);
	}
	feed_settle(f, &t, core);
	feed_settle(not_each, &u, usual);
	weigh(w, core, usual, 1);
	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		EXPECT_EQ(model_count(core, i), model_count(usual, i));
	check_hits(w, p, model_count(core, counter), steps, n);
	model_free(model);
	model_free(other);
	munmap(f, sizeof(*f));
	munmap(not_each, sizeof(*f));
	munmap(w, sizeof(*w));
}

/* A number that is behind already when it is told is reached by what counts next. */
static void check_late(const struct guest *g, const struct program *p)
{
	const u32 counter = MODEL_BRANCH_MISSES;
	struct machine m = machine_that_predicts(MACHINE_TAGE);
	struct model *model = model_new(&m, 1, MODEL_PARTS);
	struct model_core *core = model_core(model, 0);
	struct feed *f = zeroes(sizeof(*f));
	struct feed_watching *w = zeroes(sizeof(*w));
	struct feed_thread t = {.watching = w};
	u64 found = 0, missed = 0;

	feed_init(f, model, space, MODEL_PARTS, true);
	w->nr = 1;
	for (u64 i = 0; i < g->nr_traced; i++) {
		const struct feed_input in = {.words = g->trace + i, .nr_words = 1};
		u64 before = model_count(core, counter);

		if (g->trace[i] >= PATH_WORDS)
			break;
		w->watch[0] = (struct feed_watch){
			.counter = counter, .at = before - i % 3, .period = 1ull << 40};
		w->nr_hits = 0;
		feed_watch_begin(w, core, 1);
		feed_words(f, &t, core, &in);
		if (w->nr_hits && w->hit[0].kind != FEED_HIT_BRANCH)
			TEST_FAIL("%s: kind %u at %#llx", p->name, w->hit[0].kind,
				  (unsigned long long)w->hit[0].ip);
		found += w->nr_hits;
		missed += model_count(core, counter) != before;
	}
	EXPECT_EQ(found, missed);
	model_free(model);
	munmap(f, sizeof(*f));
	munmap(w, sizeof(*w));
}

TEST(what_is_watched)
{
	static const u32 counters[] = {MODEL_CPU_CYCLES,
				       MODEL_BRANCH_MISSES,
				       MODEL_BRANCH_INSTRUCTIONS,
				       MODEL_CACHE_MISSES,
				       MODEL_STALLED_FRONTEND,
				       MODEL_HW_CACHE + (MODEL_L1I * MODEL_OPS + MODEL_READ) * 2};
	static const struct program programs[] = {{"fib", snip_fib, {9}},
						  {"table", snip_table, {300}},
						  {"flags", snip_flags, {50, 7}}};
	struct guest *g = guest_main();

	tracing(g);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n = native_steps(g, programs[i].fn, programs[i].abc, 100000, &steps);

		dbt_set_mask(g->t, MASK);
		dbt_trace_flush(g->t);
		g->nr_traced = 0;
		native_begin(g, programs[i].fn, programs[i].abc);
		EXPECT_EQ(guest_run(g), 0);
		dbt_trace_flush(g->t);
		for (u32 k = 0; k < ARRAY_SIZE(counters); k++) {
			check_watch(g, &programs[i], steps, n, counters[k], 1, false);
			check_watch(g, &programs[i], steps, n, counters[k], 7, false);
			check_watch(g, &programs[i], steps, n, counters[k], 1009, false);
		}
		check_late(g, &programs[i]);
		/* Of these nothing is taken back. */
		for (u32 k = 1; k < 3; k++) {
			check_watch(g, &programs[i], steps, n, counters[k], 7, true);
			check_watch(g, &programs[i], steps, n, counters[k], 100, true);
		}
		dbt_set_mask(g->t, DBT_MASK_ALL);
		free(steps);
	}
}

/* The halves of a machine, one after the other, count what all of it does. */
static void check_halves(struct guest *g, const char *name, const struct machine *m, u32 parts)
{
	struct model *model[1 + MODEL_HALVES] = {NULL};
	struct model_core *core[1 + MODEL_HALVES] = {NULL};
	struct model_half of[1 + MODEL_HALVES] = {{parts, parts}};
	u32 n = model_halves(parts, of + 1);
	u64 counts[MODEL_HALVES][MODEL_COUNTERS], sum[MODEL_COUNTERS];

	EXPECT_EQ(n, parts & MODEL_BRANCHES && parts & (MODEL_CACHES | MODEL_TLBS) ? 2 : 1);
	for (u32 h = 0; h < 1 + n; h++) {
		struct feed *f = zeroes(sizeof(*f));
		struct feed_thread *t = zeroes(sizeof(*t));

		model[h] = model_new(m, 1, of[h].parts);
		core[h] = model_core(model[h], 0);
		feed_init(f, model[h], space, of[h].fed, false);
		f->counts = !h || h == n;
		for (u64 i = 0, k; i < g->nr_traced; i += k) {
			/* Each half in pieces of its own. */
			k = 1;
			while (i + k < g->nr_traced &&
			       (k < 1 + i % (50 + h) || g->trace[i + k - 1] >= PATH_WORDS ||
				g->trace[i + k - 2] >= PATH_WORDS))
				k++;
			feed_words(f, t, core[h],
				   &(struct feed_input){.words = g->trace + i, .nr_words = (u32)k});
		}
		feed_settle(f, t, core[h]);
		munmap(f, sizeof(*f));
		munmap(t, sizeof(*t));
	}
	for (u32 h = 0; h < n; h++)
		model_counts(core[1 + h], counts[h]);
	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		for (u32 h = 0; h < n; h++)
			EXPECT_EQ(counts[h][i], model_count(core[1 + h], i));
	model_halves_sum(m, counts, n, sum);
	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		u64 should = model_count(core[0], i);

		if (sum[i] != should)
			TEST_FAIL("%s, parts %u: counter %u of the halves is %llu, not %llu", name,
				  parts, i, (unsigned long long)sum[i], (unsigned long long)should);
	}
	for (u32 h = 0; h < 1 + n; h++)
		model_free(model[h]);
}

TEST(halves)
{
	static const struct program programs[] = {{"fib", snip_fib, {9}},
						  {"table", snip_table, {300}},
						  {"flags", snip_flags, {50, 7}},
						  {"vector", snip_vector, {40, 3}}};
	struct guest *g = guest_main();

	tracing(g);
	dbt_set_mask(g->t, MASK);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		dbt_trace_flush(g->t);
		g->nr_traced = 0;
		native_begin(g, programs[i].fn, programs[i].abc);
		EXPECT_EQ(guest_run(g), 0);
		dbt_trace_flush(g->t);
		for (u32 parts = 1; parts <= MODEL_PARTS; parts++)
			for (enum machine_direction d = MACHINE_BIMODAL; d <= MACHINE_TAGE; d++) {
				struct machine m = machine_that_predicts(d);

				/* So that it counts what it is rounded to. */
				m.core.bus_mhz = 3;
				m.core.mhz = 7;
				check_halves(g, programs[i].name, &m, parts);
			}
	}
	dbt_set_mask(g->t, DBT_MASK_ALL);
}

/* Words and descriptions that make no sense are counted and left out. */
TEST(nonsense)
{
	static const u32 words[] = {
		PATH_FIRST + 1,
		PATH_TRACE_PART | 0 << 8 | 4,
		1 << 24,
		PATH_TRACE_PART | 3 << 8 | 2,
		8,
		PATH_TRACE_BACK | 0 << 8 | 4,
		1,
		0xffffffff,
		PATH_WORDS - 1,
		PATH_TRACE_AGAIN,
		1,
		2,
		PATH_FIRST,
		PATH_TRACE_BACK | 1 << 8 | 9,
		3,
		PATH_TRACE_INSN,
	};
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_PARTS);
	struct path_space *s = zeroes(sizeof(*s));
	struct feed *f = zeroes(sizeof(*f));
	struct feed_thread t = {0};

	s->path[PATH_FIRST] = (struct path_entry){.block = 3, .from = 1, .upto = 9, .known = 1};
	s->path[PATH_FIRST + 1] =
		(struct path_entry){.block = ~0u, .from = 0, .upto = 255, .known = 1};
	memset(s->log + 24, 0xff, 64);
	feed_init(f, model, s, MODEL_PARTS, false);
	feed_words(f, &t, model_core(model, 0),
		   &(struct feed_input){.words = words, .nr_words = ARRAY_SIZE(words)});
	feed_settle(f, &t, model_core(model, 0));
	EXPECT(f->unknown >= 4);
	EXPECT_EQ(model_count(model_core(model, 0), MODEL_BRANCH_INSTRUCTIONS), 0);
	model_free(model);
	munmap(f, sizeof(*f));
	munmap(s, sizeof(*s));
}
