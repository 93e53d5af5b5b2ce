/*
 * What is simulated of instructions that were made up: caches by their geometry, branches by the
 * predictors of cachegrind, and whose each event is.
 */
#include "calls/calls.h"
#include "unit/test.h"

enum { A = 0x10000, B = 0x20000 };

static struct machine machine_of(void)
{
	struct machine m = {.memory = {.line = 64,
				       .page = 4096,
				       .huge = 2 << 20,
				       .latency = 1,
				       .crossing = MACHINE_ONCE}};

	m.cache[MACHINE_L1I] = m.cache[MACHINE_L1D] =
		(struct machine_cache){.size = 32 << 10, .ways = 8, .latency = 1};
	m.cache[MACHINE_LL] = (struct machine_cache){.size = 1 << 20, .ways = 16, .latency = 1};
	return m;
}

static struct event_simulation *new_simulation(bool modified_is_read)
{
	struct machine m = machine_of();

	return simulation_new(&(struct simulation_opts){.machine = &m,
							.caches = true,
							.branches = true,
							.modified_is_read = modified_is_read});
}

/* One instruction with the accesses, executed with @slots; what it has met. */
static struct event_counts met(struct event_simulation *s, const struct path_access *a, u32 n,
			       const u64 *slots, u32 nr_slots)
{
	struct path_step step = {.pc = A, .len = 4, .nr_accesses = n, .access = a};
	struct path_slots values = {.slot = slots, .n = nr_slots, .fs_base = 0x7000000};
	struct simulated_code *c = simulated_code_new(s, &step, 1);
	struct event_counts sum = {0};

	simulate(s, c, &values, NULL, &sum);
	simulated_code_free(c);
	return sum;
}

TEST(accesses_and_their_misses)
{
	static const u64 slots[] = {0x100000, 3};
	struct path_access load = {.disp = 8, .base = 0, .index = PATH_NO_SLOT, .size = 8};
	struct path_access scaled = {
		.base = 0, .index = 1, .size = 4, .scale = 3, .kind = PATH_STORE};
	struct path_access fs = {.disp = 0x40,
				 .base = PATH_NO_SLOT,
				 .index = PATH_NO_SLOT,
				 .size = 8,
				 .flags = PATH_FS};
	struct path_access both[] = {load, load};
	struct event_simulation *s = new_simulation(false);
	struct event_counts e = met(s, &load, 1, slots, 2);

	EXPECT_EQ(e.n[SIMULATED_FETCH][1], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][2], 1);
	/* The same line. */
	e = met(s, &scaled, 1, slots, 2);
	EXPECT_EQ(e.n[SIMULATED_FETCH][1], 0);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 1);
	EXPECT_EQ(e.n[SIMULATED_WRITE][1], 0);
	e = met(s, &fs, 1, NULL, 0);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	/* Across two lines it is one miss. */
	load.disp = 0x1000 - 4;
	e = met(s, &load, 1, slots, 2);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	/* What slots are missing of is left out. */
	e = met(s, &scaled, 1, slots, 1);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 0);
	/* A modification is one access, of callgrind a write, of cachegrind a read. */
	both[1].kind = PATH_STORE;
	e = met(s, both, 2, slots, 2);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 0);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 1);
	simulation_free(s);
	s = new_simulation(true);
	e = met(s, both, 2, slots, 2);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 1);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 0);
	simulation_free(s);
}

TEST(strings)
{
	/* From rsi to rdi, 100 elements of 8 bytes; where they were and are. */
	static const u64 slots[] = {0x200000, 0x300000, 0x200000 + 800, 0x300000 + 800, 0x200000};
	struct path_access a[] = {
		{.base = 0, .index = 2, .size = 8, .kind = PATH_LOADS},
		{.base = 1, .index = 3, .size = 8, .kind = PATH_STORES},
	};
	struct event_simulation *s = new_simulation(false);
	struct event_counts e = met(s, a, 2, slots, 4);

	EXPECT_EQ(e.n[SIMULATED_READ][0], 100);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 13);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 100);
	EXPECT_EQ(e.n[SIMULATED_WRITE][1], 13);
	/* Downwards. */
	a[0].base = 2;
	a[0].index = 4;
	e = met(s, a, 1, slots, 5);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 100);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 0);
	simulation_free(s);
}

/* Runs a branch that goes by @pattern; how many of the last 100 were not foreseen. */
static u64 not_foreseen(u32 pattern, u32 length)
{
	struct event_simulation *s = new_simulation(false);
	const struct path_slots none = {.n = 0};
	struct simulated_code *c[2];
	struct event_counts sum = {0};

	for (u32 i = 0; i < 2; i++)
		c[i] = simulated_code_new(
			s, &(struct path_step){.pc = A, .len = 2, .kind = PATH_COND, .taken = i},
			1);
	for (u32 i = 0; i < 1100; i++) {
		if (i == 1000)
			sum = (struct event_counts){0};
		simulate(s, c[pattern >> i % length & 1], &none, NULL, &sum);
	}
	EXPECT_EQ(sum.n[SIMULATED_COND][0], 100);
	simulated_code_free(c[0]);
	simulated_code_free(c[1]);
	simulation_free(s);
	return sum.n[SIMULATED_COND][1];
}

TEST(branches_with_seven_of_history)
{
	EXPECT_EQ(not_foreseen(1, 1), 0);
	EXPECT_EQ(not_foreseen(1, 2), 0);
	EXPECT_EQ(not_foreseen(0x7f, 8), 0);
	/* After eight that were taken the next one was, or was not. */
	EXPECT(not_foreseen(0xffff, 20) >= 5);
}

static void find(void *data, struct calls_graph *g, u64 pc, struct calls_code *code)
{
	bool made;

	(void)data;
	*code = (struct calls_code){.address = pc, .entry = !(pc & 0xffff), .region = 1};
	code->fn = calls_fn_of(g, "/p", "p.c", pc >= B ? "b" : "a", &made);
	code->fn->symbol = pc & ~0xffffull;
	code->fn->skip = *(const bool *)data && pc >= B;
}

static struct calls_span *span(struct calls_graph *g, u64 pc, u8 kind)
{
	static const struct path_access load = {.base = 0, .index = PATH_NO_SLOT, .size = 8};
	struct path_step steps[2] = {{.pc = pc, .len = 1, .nr_accesses = 1, .access = &load},
				     {.pc = pc + 1, .len = 1, .kind = kind}};

	return calls_span_new(g, steps, 2);
}

/* a calls b through a pointer, which reads a line each time; b is @skip. */
static struct calls_profile profile_of(bool skip, bool take_back)
{
	struct event_simulation *s = new_simulation(false);
	const struct calls_opts opts = {
		.recursions = 1, .collect = true, .find = find, .data = &skip, .simulation = s};
	struct calls_graph *g = calls_graph_new(&opts);
	struct calls_thread *t = calls_thread_new(g, 1);
	struct calls_profile p;

	for (u64 i = 0; i < 10; i++) {
		const u64 at = 0x100000 + i * 64;
		const struct path_slots slots = {.slot = &at, .n = 1};

		calls_run_simulated(t, span(g, A + 4, PATH_CALL_IND), &slots, false);
		calls_run_simulated(t, span(g, B, PATH_RETURN), &slots, take_back);
		if (take_back)
			calls_uncount(t);
		calls_run_simulated(t, span(g, A + 6, PATH_JUMP), &slots, false);
	}
	calls_finish(g);
	calls_take(g, &p);
	calls_graph_free(g);
	simulation_free(s);
	return p;
}

static const struct event_counts *events_of(const struct calls_profile *p, u64 pc)
{
	static const struct event_counts none;

	for (u32 i = 0; i < p->nr_costs; i++)
		if (p->cost[i].pc == pc && p->cost[i].events)
			return &p->events[p->cost[i].events - 1];
	return &none;
}

TEST(whose_they_are)
{
	struct calls_profile p = profile_of(false, false);
	const struct event_counts *call;

	EXPECT_EQ(events_of(&p, A + 4)->n[SIMULATED_READ][1], 10);
	EXPECT_EQ(events_of(&p, A + 4)->n[SIMULATED_FETCH][1], 1);
	EXPECT_EQ(events_of(&p, B)->n[SIMULATED_READ][0], 10);
	EXPECT_EQ(events_of(&p, B)->n[SIMULATED_READ][1], 0);
	EXPECT_EQ(events_of(&p, A + 5)->n[SIMULATED_INDIRECT][0], 10);
	EXPECT_EQ(events_of(&p, A + 5)->n[SIMULATED_INDIRECT][1], 1);
	EXPECT_EQ(p.summary_events.n[SIMULATED_READ][0], 30);
	EXPECT_EQ(p.summary_events.n[SIMULATED_INDIRECT][1], 1);
	ASSERT(p.nr_calls == 1 && p.call[0].events > 0);
	call = &p.events[p.call[0].events - 1];
	EXPECT_EQ(call->n[SIMULATED_READ][0], 10);
	EXPECT_EQ(call->n[SIMULATED_INDIRECT][0], 0);
	calls_profile_release(&p);
}

TEST(what_is_not_told_of_is_its_callers)
{
	struct calls_profile p = profile_of(true, false);

	/* With the fetch of b, and its reads. */
	EXPECT_EQ(events_of(&p, A + 5)->n[SIMULATED_READ][0], 10);
	EXPECT_EQ(events_of(&p, A + 5)->n[SIMULATED_FETCH][1], 1);
	EXPECT_EQ(p.nr_calls, 0);
	EXPECT_EQ(p.summary_events.n[SIMULATED_READ][0], 30);
	calls_profile_release(&p);
}

TEST(what_is_taken_back)
{
	struct calls_profile p = profile_of(false, true);

	EXPECT_EQ(events_of(&p, B)->n[SIMULATED_READ][0], 0);
	EXPECT_EQ(p.summary_events.n[SIMULATED_READ][0], 20);
	calls_profile_release(&p);
}
