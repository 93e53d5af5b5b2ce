/*
 * The last taken branches, as they are where a thread stops at a deadline: checked against single
 * steps [BR-02, BR-03, BR-06].
 */
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

u64 snip_sparse(u64 n);

#define TYPE(name) BIT(TRACE_BRANCH_##name)
#define ANY        0xfeu

static const u32 choices[] = {
	ANY,          TYPE(CALL) | TYPE(CALL_IND),
	TYPE(RETURN), TYPE(CALL_IND),
	TYPE(COND),   TYPE(JUMP_IND),
	TYPE(CALL),   TYPE(COND) | TYPE(RETURN),
	TYPE(JUMP),   TRACE_OPEN_CALLS,
};

/* Fits no more than one other choice, beside open calls. */
#define CROWD (TYPE(COND)), (TYPE(RETURN)), (TYPE(CALL) | TYPE(JUMP))

/* What single steps have taken, the last one at the end; of open calls, those. */
struct model {
	struct trace_branch *at;
	u64 n;
};

static void model_step(struct model *m, const struct native_step *s, u32 kinds)
{
	bool call = s->taken == TRACE_BRANCH_CALL || s->taken == TRACE_BRANCH_CALL_IND;

	if (!s->taken)
		return;
	if (kinds & TRACE_OPEN_CALLS) {
		if (s->taken == TRACE_BRANCH_RETURN && m->n)
			m->n--;
		if (!call || (s->taken == TRACE_BRANCH_CALL && s->next))
			return;
	} else if (!(kinds & BIT(s->taken))) {
		return;
	}
	m->at[m->n++] = (struct trace_branch){s->pc, s->regs.rip, s->taken};
}

static u32 complaints;

/* @fresh: the thread has logged nothing before. */
static void check_stop(const struct program *p, const struct model *m,
		       const struct stop_branches *b, u64 k, bool fresh)
{
	u64 want = m->n < TRACE_LBR ? m->n : TRACE_LBR;
	bool same = fresh ? b->nr == want : b->nr >= want;

	for (u64 i = 0; same && i < want; i++) {
		const struct trace_branch *a = &b->at[i], *w = &m->at[m->n - 1 - i];

		same = a->from == w->from && a->to == w->to && a->type == w->type;
		if (!same && complaints < 5)
			TEST_FAIL("  %llu before: %#llx to %#llx, %llu, not %#llx to %#llx, %llu",
				  (unsigned long long)i, (unsigned long long)a->from,
				  (unsigned long long)a->to, (unsigned long long)a->type,
				  (unsigned long long)w->from, (unsigned long long)w->to,
				  (unsigned long long)w->type);
	}
	if (!same && complaints++ < 5)
		TEST_FAIL("%s, kinds %#x, period %llu, stop %llu: %u branches of %llu", p->name,
			  stops.kinds, (unsigned long long)stops.period, (unsigned long long)k,
			  b->nr, (unsigned long long)m->n);
}

/* With stops.q, kinds and max set. */
static void check_run(struct guest *g, const struct program *p, const struct native_step *steps,
		      u64 n, u64 period, bool fresh)
{
	struct model m = {malloc(n * sizeof(*m.at)), 0};
	struct stop_branches last;
	u64 count = 0, k = 0;

	stops.at = malloc(stops.max * sizeof(*stops.at));
	stops.branches = malloc(stops.max * sizeof(*stops.branches));
	stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	stops_end(g);
	for (u64 i = 0; i < n; i++) {
		model_step(&m, &steps[i], stops.kinds);
		count += steps[i].counts[stops.q];
		if (!steps[i].counts[stops.q] || count % period)
			continue;
		if (k < stops.n && k < stops.max)
			check_stop(p, &m, &stops.branches[k], k, fresh);
		k++;
	}
	EXPECT_EQ(stops.n, count / period);
	last.nr = dbt_branches(g->t, stops.kinds, last.at, TRACE_LBR);
	check_stop(p, &m, &last, ~0ull, fresh);
	free(m.at);
	free(stops.at);
	free(stops.branches);
	stops.branches = NULL;
}

static u64 mask_of(u32 kinds, enum meter_quantity q)
{
	return dbt_mask_branches(DBT_MASK_ALL | DBT_MASK_DEADLINES(q), kinds);
}

/* The last one is never reached. */
static const u64 periods[] = {1, 2, 7, 100, 1000, 1ull << 40};

static void check_program(struct guest *g, const struct program *p, u64 most)
{
	static const enum meter_quantity all[] = {METER_INSTRUCTIONS, METER_TAKEN, METER_CALLS};
	struct native_step *steps;
	u64 n = native_steps(g, p->fn, p->abc, 2000000, &steps);

	stops.max = most;
	for (u32 c = 0; c < ARRAY_SIZE(choices); c++) {
		stops.kinds = choices[c];
		for (u32 q = 0; q < ARRAY_SIZE(all); q++) {
			stops.q = all[q];
			dbt_set_mask(g->t, mask_of(stops.kinds, stops.q));
			for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
				if (n / periods[i] <= most)
					check_run(g, p, steps, n, periods[i], false);
		}
	}
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
	dbt_check(g->t);
}

/*
 * mov eax, cs; push rax; lea rax, [rip + 3]; push rax; lretq, to what follows; call +0; pop rax;
 * jmp +1; nop; ret
 */
static const u8 far[] = {0x8c, 0xc8, 0x50, 0x48, 0x8d, 0x05, 3,    0,    0, 0,    0x50, 0x48,
			 0xcb, 0xe8, 0,    0,    0,    0,    0x58, 0xeb, 1, 0x90, 0xc3};

TEST(branches_before_each_stop_are_those_that_were_taken)
{
	struct program programs[] = {
		{"loop", snip_loop, {100}},      {"branches", snip_branches, {0}},
		{"flags", snip_flags, {100, 7}}, {"redzone", snip_redzone, {0}},
		{"fib", snip_fib, {9}},          {"table", snip_table, {100}},
		{"spilled", snip_spilled, {0}},  {"deep", snip_deep, {300}},
		{"longjmp", snip_longjmp, {0}},  {"far", NULL, {0}},
	};
	void *code;

	guest_main();
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	memcpy(code, far, sizeof(far));
	dbt_exec_add(guest_main()->t, (u64)code, 4096, 0);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		if (!programs[i].fn)
			programs[i].fn = code;
		check_program(guest_main(), &programs[i], 10000);
	}
}

TEST(a_long_run_has_the_same)
{
	static const struct program programs[] = {
		{"loop", snip_loop, {30000}},
		{"fib", snip_fib, {17}},
		{"table", snip_table, {4000}},
		/*
		 * Most of what is told has run far from the deadline, in other code than near it.
		 */
		{"sparse", snip_sparse, {100}},
	};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		check_program(guest_main(), &programs[i], 2000);
}

/* Each choice beside others that are logged at the same time. */
TEST(choices_do_not_disturb_each_other)
{
	static const struct program p = {"fib", snip_fib, {12}};
	static const u32 crowd[] = {CROWD, TRACE_OPEN_CALLS};
	struct native_step *steps;
	u64 n = native_steps(guest_main(), p.fn, p.abc, 2000000, &steps);

	stops.max = 10000;
	stops.q = METER_INSTRUCTIONS;
	for (u32 c = 0; c < ARRAY_SIZE(choices); c++) {
		u64 mask = mask_of(choices[c], stops.q);

		for (u32 i = 0; i < ARRAY_SIZE(crowd); i++)
			mask = dbt_mask_branches(mask, crowd[i]);
		dbt_set_mask(guest_main()->t, mask);
		stops.kinds = choices[c];
		check_run(guest_main(), &p, steps, n, 97, false);
		for (u32 i = 0; i < ARRAY_SIZE(crowd); i++) {
			stops.kinds = crowd[i];
			check_run(guest_main(), &p, steps, n, 89, false);
		}
	}
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
	free(steps);
}

TEST(more_choices_than_rings_share_the_last_one)
{
	u64 mask = 0, full;

	for (u32 c = 0; c < DBT_BRANCH_RINGS; c++)
		mask = dbt_mask_branches(mask, choices[c]);
	EXPECT_EQ(mask & ~DBT_MASK_BRANCHES, 0);
	EXPECT_EQ(dbt_mask_branches(mask, choices[1]), mask);
	full = dbt_mask_branches(mask, TYPE(JUMP));
	EXPECT_EQ(full ^ mask, (u64)TYPE(JUMP) << (16 + 8 * (DBT_BRANCH_RINGS - 1)));
	EXPECT_EQ(dbt_mask_branches(mask, TRACE_OPEN_CALLS) ^ mask, BIT(16));
}

/* Interrupted after each native instruction in turn. */
static void interrupt_everywhere(const struct program *p, u32 kinds, u64 period)
{
	struct guest *g = guest_main();
	struct native_step *steps;
	u64 n = native_steps(g, p->fn, p->abc, 100000, &steps);

	stops.q = METER_INSTRUCTIONS;
	stops.kinds = kinds;
	stops.max = n;
	dbt_set_mask(g->t, mask_of(kinds, stops.q));
	for (g->step = 1;; g->step++) {
		check_run(g, p, steps, n, period, false);
		if (g->stepped < g->step || test_failures)
			break;
	}
	g->step = 0;
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

TEST(no_branch_is_lost_or_told_twice_wherever_a_signal_comes)
{
	static const struct program programs[] = {
		{"loop", snip_loop, {3}},       {"branches", snip_branches, {0}},
		{"deep", snip_deep, {2}},       {"spilled", snip_spilled, {0}},
		{"longjmp", snip_longjmp, {0}},
	};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		interrupt_everywhere(&programs[i], ANY, 3);
		interrupt_everywhere(&programs[i], ANY, 20);
		interrupt_everywhere(&programs[i], TRACE_OPEN_CALLS, 5);
	}
}

TEST(nor_in_a_storm_of_signals)
{
	static const struct program p = {"fib", snip_fib, {13}};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &tick, NULL);
	check_program(guest_main(), &p, 300);
	setitimer(ITIMER_REAL, &off, NULL);
}

TEST(branches_of_code_that_rewrites_itself_are_exact)
{
	struct program p = {"rewriting", NULL, {100}};
	void *at = snip_rewriting_copy(guest_main()->t);

	p.fn = at;
	check_program(guest_main(), &p, 1000);
	dbt_exec_remove(guest_main()->t, (u64)at, 4096);
	munmap(at, 4096);
}

static void *other_thread(void *arg)
{
	static const struct program p = {"fib", snip_fib, {14}};
	struct native_step *steps = NULL;
	u64 n = 0;

	(void)arg;
	for (u32 i = 0; i < 30; i++) {
		struct guest g;

		guest_thread_init(&g);
		/* They take longer than all that follows, and are the same for each. */
		if (!steps)
			n = native_steps(&g, p.fn, p.abc, 100000, &steps);
		stops.q = METER_INSTRUCTIONS;
		stops.kinds = i & 1 ? ANY : TRACE_OPEN_CALLS;
		stops.max = n;
		/* Those of a new thread are its own. */
		check_run(&g, &p, steps, n, 50 + i * 37, true);
		check_run(&g, &p, steps, n, 30 + i * 37, false);
		guest_thread_exit(&g);
	}
	free(steps);
	return NULL;
}

/* Flushed with the other code, but with these kinds always logged. */
TEST(branches_of_threads_are_their_own_while_the_cache_is_flushed)
{
	u64 mask = dbt_mask_branches(mask_of(ANY, METER_INSTRUCTIONS), TRACE_OPEN_CALLS);
	pthread_t threads[2];

	dbt_set_mask(guest_main()->t, mask);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, other_thread, NULL);
	for (u32 i = 0; i < 40; i++) {
		usleep(3000);
		dbt_set_mask(guest_main()->t, i & 1 ? mask : mask & ~(u64)DBT_MASK_SPLIT);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	dbt_check(guest_main()->t);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

TEST(what_is_logged_anew_begins_with_nothing)
{
	static const struct program p = {"fib", snip_fib, {9}};
	struct native_step *steps;
	u64 n = native_steps(guest_main(), p.fn, p.abc, 100000, &steps), mask = mask_of(ANY, 0);

	stops.q = METER_INSTRUCTIONS;
	stops.kinds = ANY;
	stops.max = n;
	for (u32 i = 0; i < 3; i++) {
		dbt_set_mask(guest_main()->t, mask);
		check_run(guest_main(), &p, steps, n, 3, true);
		/* It has run since then, and taken others. */
		dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
		(void)guest_call(guest_main(), snip_loop, 3, 0, 0);
	}
	free(steps);
}
