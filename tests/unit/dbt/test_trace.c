/* The trace of paths says each instruction in order: checked against single steps. */
#include "data/path-walk.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define MASK guest_mask(DBT_MASK_ALL | DBT_MASK_PATHS | DBT_MASK_TRACE)

static struct path_space *space;

static const struct path_space *space_at(u32 index, void *data)
{
	(void)data;
	return index ? NULL : space;
}

static void tracing(struct guest *g)
{
	if (!g->trace) {
		g->max_traced = 4 << 20;
		g->trace = malloc(g->max_traced * sizeof(*g->trace));
		if (!g->trace)
			abort();
	}
	if (space)
		return;
	space = mmap(NULL, sizeof(*space), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		abort();
	dbt_paths(g->t, space);
}

/* What is told, held against what was executed. */
struct held {
	const struct program *p;
	const struct native_step *steps;
	u64 n, at;
	u32 complaints;
};

static void on_step(const struct path_step *s, void *data)
{
	struct held *h = data;
	const struct native_step *want = &h->steps[h->at];
	bool same = h->at < h->n && want->pc == s->pc;
	bool cond = same && want->counts[METER_CONDITIONAL];

	if (same && s->len) {
		same = cond == (s->kind == PATH_COND) &&
		       (want->counts[METER_RETURNS] || s->kind != PATH_RETURN) &&
		       s->taken == (want->taken == TRACE_BRANCH_COND);
		if (s->taken || s->kind == PATH_JUMP || s->kind == PATH_CALL)
			same = same && s->target == want->regs.rip;
		/* All but string instructions that are not done go to what follows. */
		if (s->kind == PATH_PLAIN)
			same = same && (want->next || want->regs.rip == GUEST_DONE);
	}
	h->at++;
	if (same || h->complaints++ > 3)
		return;
	TEST_FAIL("%s, step %llu of %llu: %#llx kind %u to %#llx taken %u, not %#llx to %#llx",
		  h->p->name, (unsigned long long)h->at, (unsigned long long)h->n,
		  (unsigned long long)s->pc, s->kind, (unsigned long long)s->target, s->taken,
		  (unsigned long long)(h->at <= h->n ? want->pc : 0),
		  (unsigned long long)(h->at <= h->n ? want->regs.rip : 0));
}

static void on_gap(u32 n, void *data)
{
	struct held *h = data;

	TEST_FAIL("%s: %u instructions are not known", h->p->name, n);
}

/* Runs @p, with a deadline each @period instructions if that is not 0. */
static void check_run(struct guest *g, const struct program *p, const struct native_step *steps,
		      u64 n, u64 period)
{
	struct held h = {p, steps, n, 0, 0};
	struct path_walk w = {
		.source = {space_at, NULL}, .step = on_step, .gap = on_gap, .data = &h};

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
	/* In pieces of any size. */
	for (u64 i = 0, k; i < g->nr_traced; i += k) {
		k = 1;
		while (i + k < g->nr_traced && (k < 1000 || g->trace[i + k - 1] >= PATH_WORDS ||
						g->trace[i + k - 2] >= PATH_WORDS))
			k++;
		path_walk_feed(&w, g->trace + i, k);
	}
	path_walk_end(&w);
	EXPECT_EQ(w.bad, 0);
	EXPECT_EQ(h.at, n);
}

static void check_program(struct guest *g, const struct program *p)
{
	static const u64 periods[] = {1, 2, 7, 100, 10007};
	struct native_step *steps;
	u64 n;

	tracing(g);
	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	dbt_set_mask(g->t, MASK);
	check_run(g, p, steps, n, 0);
	check_run(g, p, steps, n, 0);
	/* Without words. */
	dbt_set_mask(g->t, MASK & ~(u64)DBT_MASK_PATHS);
	check_run(g, p, steps, n, 0);
	dbt_set_mask(g->t, MASK | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, steps, n, periods[i]);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
	dbt_check(g->t);
}

TEST(each_instruction_in_order)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i]);
}

/* Each second window of @period instructions is traced, as if it were alone. */
static void check_windows(struct guest *g, const struct program *p, const struct native_step *steps,
			  u64 n, u64 period)
{
	u64 *edge = calloc(n / period + 2, sizeof(*edge)), whole, counted;

	if (!edge)
		abort();
	dbt_trace_on(g->t, false);
	g->nr_traced = 0;
	counted = guest_count(g, METER_INSTRUCTIONS);
	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	stops.edge = edge;
	stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	stops_end(g);
	stops.edge = NULL;
	dbt_trace_flush(g->t);
	dbt_trace_on(g->t, true);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - counted, n);
	EXPECT_EQ(stops.n, n / period);
	EXPECT(g->nr_traced < g->max_traced);
	whole = stops.n + 1;
	for (u32 i = 1; i < whole; i++) {
		u64 first = i * period, upto = min_u64(first + period, n);
		struct held h = {p, steps + first, upto - first, 0, 0};
		struct path_walk w = {
			.source = {space_at, NULL}, .step = on_step, .gap = on_gap, .data = &h};
		u64 end = i + 1 < whole ? edge[i + 1] : g->nr_traced;

		if (!(i & 1)) {
			EXPECT_EQ(end, edge[i]);
			continue;
		}
		path_walk_feed(&w, g->trace + edge[i], end - edge[i]);
		path_walk_end(&w);
		EXPECT_EQ(w.bad, 0);
		EXPECT_EQ(h.at, upto - first);
	}
	free(edge);
}

static void in_windows(struct guest *g, const struct program *p, const u64 *periods, u32 nr)
{
	struct native_step *steps;
	u64 n;

	tracing(g);
	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	dbt_set_mask(g->t, (MASK & ~(u64)DBT_MASK_PATHS) | DBT_MASK_WINDOWS |
				   DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 k = 0; k < nr; k++) {
		check_windows(g, p, steps, n, periods[k]);
		dbt_check(g->t);
	}
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

TEST(in_windows_of_a_few_instructions)
{
	static const u64 periods[] = {1, 2, 7, 100};

	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		in_windows(guest_main(), &snip_programs[i], periods, ARRAY_SIZE(periods));
}

/* So long that code of either kind is linked, found by tables and returned to. */
TEST(in_windows)
{
	static const struct program programs[] = {{"fib", snip_fib, {17}},
						  {"table", snip_table, {9000}},
						  {"flags", snip_flags, {9000, 7}}};
	static const u64 periods[] = {333, 1024, 5003};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		in_windows(guest_main(), &programs[i], periods, ARRAY_SIZE(periods));
}

/* It counts all the same, and traces when there is some. */
TEST(without_memory_for_the_trace)
{
	static const struct program p = {"fib", snip_fib, {17}};
	static const u64 period = 1024;
	struct guest *g = guest_main();
	u64 at = g->trace_at, before, n;
	struct native_step *steps;

	tracing(g);
	n = native_steps(g, p.fn, p.abc, 2000000, &steps);
	dbt_set_mask(g->t, (MASK & ~(u64)DBT_MASK_PATHS) | DBT_MASK_WINDOWS |
				   DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	dbt_trace_flush(g->t);
	g->t->trace_start = g->trace_at = 0;
	g->nr_traced = 0;
	before = guest_count(g, METER_INSTRUCTIONS);
	native_begin(g, p.fn, p.abc);
	EXPECT_EQ(guest_run(g), 0);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, n);
	dbt_trace_flush(g->t);
	EXPECT_EQ(g->nr_traced, 0);
	g->trace_at = at;
	dbt_trace_on(g->t, true);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	in_windows(g, &p, &period, 1);
	free(steps);
}

/* More than the buffer holds. */
TEST(beyond_the_end_of_the_buffer)
{
	static const struct program p = {"loop", snip_loop, {70000}};
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n;

	tracing(g);
	n = native_steps(g, p.fn, p.abc, 1000000, &steps);
	dbt_set_mask(g->t, MASK);
	check_run(g, &p, steps, n, 0);
	EXPECT(g->nr_traced > PATH_TRACE_SIZE / 4);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

/* As who waits for something near has it handed over. */
TEST(in_small_pieces)
{
	static const u32 rooms[] = {1, 2, 3, 5, 100, PATH_TRACE_SIZE / 4 + 1};
	static const struct program p = {"fib", snip_fib, {12}};
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n;

	tracing(g);
	n = native_steps(g, p.fn, p.abc, 1000000, &steps);
	for (u32 i = 0; i < ARRAY_SIZE(rooms); i++) {
		dbt_set_mask(g->t, MASK);
		g->t->trace_room = rooms[i];
		g->pieces = 0;
		check_run(g, &p, steps, n, 0);
		EXPECT(g->pieces >= g->nr_traced / rooms[i]);
		dbt_set_mask(g->t, MASK | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
		check_run(g, &p, steps, n, 7);
	}
	g->t->trace_room = 0;
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

TEST(in_a_storm_of_signals)
{
	static const struct program programs[] = {{"fib", snip_fib, {15}},
						  {"table", snip_table, {3000}},
						  {"flags", snip_flags, {5000, 7}}};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
	u64 before = guest_main()->interrupts;

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n;

		tracing(guest_main());
		n = native_steps(guest_main(), programs[i].fn, programs[i].abc, 2000000, &steps);
		for (u32 deadlines = 0; deadlines < 2; deadlines++) {
			dbt_set_mask(guest_main()->t,
				     MASK | (deadlines ? DBT_MASK_DEADLINES(0) : 0));
			setitimer(ITIMER_REAL, &tick, NULL);
			for (u32 k = 0; k < 20; k++)
				check_run(guest_main(), &programs[i], steps, n,
					  deadlines ? 500 + k * 37 : 0);
			setitimer(ITIMER_REAL, &off, NULL);
		}
		free(steps);
	}
	EXPECT(guest_main()->interrupts > before);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

/* Interrupted after each native instruction in turn. */
TEST(wherever_a_signal_comes)
{
	static const struct program programs[] = {{"loop", snip_loop, {3}},
						  {"branches", snip_branches, {0}},
						  {"deep", snip_deep, {2}},
						  {"spilled", snip_spilled, {0}},
						  {"longjmp", snip_longjmp, {0}}};
	struct guest *g = guest_main();

	tracing(g);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n = native_steps(g, programs[i].fn, programs[i].abc, 100000, &steps);

		dbt_set_mask(g->t, MASK);
		for (g->step = 1;; g->step++) {
			check_run(g, &programs[i], steps, n, 0);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		dbt_set_mask(g->t, DBT_MASK_ALL);
		free(steps);
	}
}

TEST(in_code_that_rewrites_itself)
{
	struct program p = {"rewriting", NULL, {100}};
	void *at = snip_rewriting_copy(guest_main()->t);

	p.fn = at;
	check_program(guest_main(), &p);
	dbt_exec_remove(guest_main()->t, (u64)at, 4096);
	munmap(at, 4096);
}

static void *other_thread(void *arg)
{
	static const struct program p = {"fib", snip_fib, {14}};
	struct native_step *steps;
	u64 n;

	(void)arg;
	for (u32 i = 0; i < 8; i++) {
		struct guest g;

		guest_thread_init(&g);
		tracing(&g);
		n = native_steps(&g, p.fn, p.abc, 100000, &steps);
		check_run(&g, &p, steps, n, 0);
		check_run(&g, &p, steps, n, 0);
		free(steps);
		free(g.trace);
		guest_thread_exit(&g);
	}
	return NULL;
}

TEST(of_threads_while_the_cache_is_flushed)
{
	pthread_t threads[2];

	tracing(guest_main());
	dbt_set_mask(guest_main()->t, MASK);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, other_thread, NULL);
	for (u32 i = 0; i < 40; i++) {
		usleep(3000);
		dbt_set_mask(guest_main()->t, i & 1 ? MASK : MASK & ~(u64)DBT_MASK_SPLIT);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	dbt_check(guest_main()->t);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

TEST(what_makes_no_sense_is_left_out)
{
	static const u32 words[] = {
		PATH_FIRST,
		PATH_TRACE_BACK | 0 << 8 | 1,
		7,
		PATH_TRACE_PART | 2 << 8 | 1,
		7,
		PATH_TRACE_PART | 0 << 8 | 1,
		7,
		PATH_TRACE_BACK | 0 << 8 | 1,
		7,
		0xff000000,
		PATH_WORDS - 1,
		PATH_TRACE_AGAIN | 5,
		1,
		2,
		PATH_TRACE_INSN,
	};
	struct path_space *before = space, *s = calloc(1, sizeof(*s));
	struct held h = {0};
	struct path_walk w = {
		.source = {space_at, NULL}, .step = on_step, .gap = on_gap, .data = &h};

	if (!s)
		abort();
	s->magic = PATH_MAGIC;
	space = s;
	path_walk_feed(&w, words, ARRAY_SIZE(words));
	path_walk_end(&w);
	EXPECT_EQ(w.bad, 9);
	EXPECT_EQ(h.at, 0);
	space = before;
	free(s);
}
