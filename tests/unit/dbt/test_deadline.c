/* A thread stops exactly where a quantity reaches its deadline: checked against single steps. */
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

/* The flags that an instruction leaves undefined differ between CPUs, and AF with them. */
#define FLAGS 0xcd5u

static u32 complaints;

static bool same_stop(const struct stop *s, const struct native_step *n)
{
	bool same = s->ip == n->pc && s->regs.rip == n->regs.rip;

	for (u32 i = 0; i < 16; i++)
		same &= s->regs.gpr[i] == n->regs.gpr[i];
	return same && !((s->regs.rflags ^ n->regs.rflags) & FLAGS);
}

static void complain(const char *name, u64 period, u64 k, const struct stop *s,
		     const struct native_step *n)
{
	if (complaints++ > 5)
		return;
	TEST_FAIL("%s, quantity %u, period %llu, stop %llu: ip %#llx pc %#llx flags %#llx, not "
		  "%#llx %#llx %#llx",
		  name, stops.q, (unsigned long long)period, (unsigned long long)k,
		  (unsigned long long)s->ip, (unsigned long long)s->regs.rip,
		  (unsigned long long)s->regs.rflags, (unsigned long long)n->pc,
		  (unsigned long long)n->regs.rip, (unsigned long long)n->regs.rflags);
	for (u32 i = 0; i < 16; i++)
		if (s->regs.gpr[i] != n->regs.gpr[i])
			TEST_FAIL("  register %u is %#llx, not %#llx", i,
				  (unsigned long long)s->regs.gpr[i],
				  (unsigned long long)n->regs.gpr[i]);
}

static void check_run(struct guest *g, const struct program *p, const struct native_step *steps,
		      u64 n, u64 period)
{
	u64 before, count = 0, k = 0;

	before = guest_count(g, stops.q);
	stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	stops_end(g);
	for (u64 i = 0; i < n; i++) {
		count += steps[i].counts[stops.q];
		if (!steps[i].counts[stops.q] || count % period)
			continue;
		if (k < stops.n && k < stops.max && !same_stop(&stops.at[k], &steps[i]))
			complain(p->name, period, k, &stops.at[k], &steps[i]);
		k++;
	}
	EXPECT_EQ(guest_count(g, stops.q) - before, count);
	EXPECT_EQ(stops.n, count / period);
}

static const u64 periods[] = {1, 2, 3, 7, 100, 1000, 100003};

/* Every stop of the program, for each of the periods that make at most @most of them. */
static void check_program(struct guest *g, const struct program *p, u64 most)
{
	static const enum meter_quantity all[] = {
		METER_INSTRUCTIONS, METER_BRANCHES, METER_CONDITIONAL, METER_TAKEN,
		METER_CALLS,        METER_RETURNS,  METER_INDIRECT,
	};
	struct native_step *steps;
	u64 n;

	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	stops.max = most;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	for (u32 q = 0; q < ARRAY_SIZE(all); q++) {
		for (u32 own = 0; own < 2; own++) {
			stops.q = all[q];
			dbt_set_mask(g->t,
				     DBT_MASK_ALL | DBT_MASK_DEADLINES(own ? stops.q
									   : METER_INSTRUCTIONS));
			for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
				if (n / periods[i] <= most)
					check_run(g, p, steps, n, periods[i]);
			dbt_check(g->t);
		}
	}
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(stops.at);
	free(steps);
	dbt_check(g->t);
}

TEST(each_stop_is_exact)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i], 100000);
}

/* Signals that arrive wherever the thread is. */
TEST(stops_are_exact_in_a_storm_of_signals)
{
	static const struct program programs[] = {
		{"fib", snip_fib, {13}},
		{"table", snip_table, {500}},
	};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &tick, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		check_program(guest_main(), &programs[i], 3000);
	setitimer(ITIMER_REAL, &off, NULL);
}

/* Interrupted after each native instruction in turn, in code of both kinds. */
static void interrupt_everywhere(const struct program *p, u64 period)
{
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n = native_steps(g, p->fn, p->abc, 100000, &steps);

	stops.q = METER_INSTRUCTIONS;
	stops.max = n;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (g->step = 1;; g->step++) {
		check_run(g, p, steps, n, period);
		if (g->stepped < g->step || test_failures)
			break;
	}
	g->step = 0;
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(stops.at);
	free(steps);
}

TEST(stops_are_exact_wherever_a_signal_comes)
{
	static const struct program programs[] = {
		{"loop", snip_loop, {3}},       {"branches", snip_branches, {0}},
		{"rep", snip_rep, {20}},        {"deep", snip_deep, {2}},
		{"spilled", snip_spilled, {0}}, {"longjmp", snip_longjmp, {0}},
	};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		interrupt_everywhere(&programs[i], 3);
		interrupt_everywhere(&programs[i], 1000000);
	}
}

TEST(stops_are_exact_in_code_that_rewrites_itself)
{
	struct program p = {"rewriting", NULL, {100}};
	void *at = snip_rewriting_copy(guest_main()->t);

	p.fn = at;
	check_program(guest_main(), &p, 1000);
	dbt_exec_remove(guest_main()->t, (u64)at, 4096);
	dbt_exec_add(guest_main()->t, (u64)at, 4096, DBT_EXEC_WRITABLE | DBT_EXEC_CHECKED);
	mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	check_program(guest_main(), &p, 1000);
	dbt_exec_remove(guest_main()->t, (u64)at, 4096);
	munmap(at, 4096);
}

static void *other_thread(void *arg)
{
	const struct program p = {"fib", snip_fib, {15}};
	struct native_step *steps;
	struct guest g;
	u64 n;

	(void)arg;
	guest_thread_init(&g);
	n = native_steps(&g, p.fn, p.abc, 100000, &steps);
	stops.q = METER_INSTRUCTIONS;
	stops.max = n;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	for (u32 i = 0; i < 100; i++)
		check_run(&g, &p, steps, n, 50 + i * 37);
	free(stops.at);
	free(steps);
	guest_thread_exit(&g);
	return NULL;
}

TEST(stops_of_threads_are_exact_while_the_cache_is_flushed)
{
	const u32 mask = DBT_MASK_DEADLINES(METER_INSTRUCTIONS);
	pthread_t threads[2];

	dbt_set_mask(guest_main()->t, DBT_MASK_ALL | mask);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, other_thread, NULL);
	for (u32 i = 0; i < 40; i++) {
		usleep(3000);
		dbt_set_mask(guest_main()->t, (i & 1 ? DBT_MASK_ALL : DBT_MASK_COUNT) | mask);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	dbt_check(guest_main()->t);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

static const struct meter *watched;
static bool watching;
static u64 fell;

/* How far the count that another thread reads ever falls. */
static void *watch_count(void *arg)
{
	u64 last = 0;

	(void)arg;
	while (__atomic_load_n(&watching, __ATOMIC_RELAXED)) {
		u64 now = meter_sum(watched, METER_INSTRUCTIONS);

		if (now < last && last - now > fell)
			fell = last - now;
		last = now;
	}
	return NULL;
}

/* By no more than a path, which is counted as a whole and corrected where it was interrupted. */
TEST(others_read_true_counts_while_grants_are_made)
{
	static const struct program p = {"fib", snip_fib, {17}};
	struct native_step *steps;
	pthread_t thread;
	u64 n = native_steps(guest_main(), p.fn, p.abc, 2000000, &steps);

	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	watched = dbt_meter(guest_main()->t);
	watching = true;
	pthread_create(&thread, NULL, watch_count, NULL);
	for (u32 i = 0; i < 200; i++)
		check_run(guest_main(), &p, steps, n, 6000 + i);
	__atomic_store_n(&watching, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_EQ(fell / 256, 0);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
	free(steps);
}

/* The owner of a meter was killed between two stores of meter_set_hits(). */
TEST(a_count_survives_its_thread_anywhere)
{
	static struct meter m;

	m.classes = 2;
	m.grants = 1;
	m.weight[0] = 3;
	m.weight[1] = 5;
	m.hits[0] = 100;
	m.hits[1] = 10;
	meter_fold_begin(&m);
	meter_set_hits(&m, 0, (u64)-1000);
	EXPECT_EQ(meter_sum(&m, METER_INSTRUCTIONS), 350);
	m.moving_hits = 10;
	m.moving = 2;
	EXPECT_EQ(meter_sum(&m, METER_INSTRUCTIONS), 350);
	m.hits[1] = (u64)-7;
	EXPECT_EQ(meter_sum(&m, METER_INSTRUCTIONS), 350);
	m.granted[1] = 17;
	EXPECT_EQ(meter_sum(&m, METER_INSTRUCTIONS), 350);
	m.moving = 0;
	/* Another owner. */
	meter_fold_begin(&m);
	EXPECT_EQ(m.folding & 1, 1);
	meter_set_hits(&m, 1, 0);
	meter_fold_end(&m);
	EXPECT_EQ(m.folding & 1, 0);
	EXPECT_EQ(meter_sum(&m, METER_INSTRUCTIONS), 350);
}

TEST(each_stop_of_a_long_run_is_exact)
{
	static const struct program programs[] = {
		{"loop", snip_loop, {60000}},
		{"fib", snip_fib, {17}},
		{"table", snip_table, {8000}},
	};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		check_program(guest_main(), &programs[i], 20000);
}

/* Grants are used up in returns, too, whose targets have been loaded by then. */
TEST(stops_are_exact_where_flags_live_through_returns)
{
	static const struct program p = {"live", snip_live, {9000}};
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n = native_steps(g, p.fn, p.abc, 2000000, &steps);

	stops.q = METER_INSTRUCTIONS;
	stops.max = 100;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < 60; i++)
		check_run(g, &p, steps, n, 17001 + 97 * i);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(stops.at);
	free(steps);
}

/* A long path that is counted at its beginning, wherever the deadline lies in it and before it. */
TEST(stops_are_exact_behind_what_counts_first)
{
	static const struct program p = {"compared", snip_compared, {60}};
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n = native_steps(g, p.fn, p.abc, 10000, &steps);

	stops.q = METER_INSTRUCTIONS;
	stops.max = n;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u64 period = 60; period < 400; period++)
		check_run(g, &p, steps, n, period);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(stops.at);
	free(steps);
}
