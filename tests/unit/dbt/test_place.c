/* A thread tells before each execution of an instruction at a place: against single steps. */
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static const struct program programs[] = {
	{"loop", snip_loop, {30}},        {"rep", snip_rep, {20}},
	{"branches", snip_branches, {0}}, {"flags", snip_flags, {20, 7}},
	{"redzone", snip_redzone, {0}},   {"fib", snip_fib, {7}},
	{"table", snip_table, {20}},      {"spilled", snip_spilled, {0}},
	{"deep", snip_deep, {30}},        {"longjmp", snip_longjmp, {0}},
	{"vector", snip_vector, {8, 3}},
};

/* The flags that an instruction leaves undefined differ between CPUs, and AF with them. */
#define FLAGS    0xcd5u
#define HITS_MAX 100000u

static struct dbt_regs *hits;
static u64 nr_hits;
static bool goes_on; /* steps do, behind a place */

/* The vector registers are the guest's here, and what copies memory for us may use them. */
__attribute__((target("general-regs-only"))) static void note_hit(struct guest *g)
{
	const void *from = &g->t->regs;
	void *to = hits + nr_hits;
	size_t len = sizeof(*hits);

	if (nr_hits < HITS_MAX)
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(len) : : "memory");
	nr_hits++;
	/* On the way out of the cache stepping has ended. */
	if (goes_on && g->step && g->stepped < g->step)
		g->t->regs.rflags |= 0x100;
}

static struct guest *guest(void)
{
	struct guest *g = guest_main();

	if (!hits) {
		hits = malloc(HITS_MAX * sizeof(*hits));
		g->on_place = note_hit;
	}
	return g;
}

static bool same(const struct dbt_regs *a, const struct dbt_regs *b)
{
	bool same = a->rip == b->rip && !((a->rflags ^ b->rflags) & FLAGS);

	for (u32 i = 0; i < 16; i++)
		same &= a->gpr[i] == b->gpr[i];
	return same;
}

static bool has(const u64 *pcs, u32 n, u64 pc)
{
	for (u32 i = 0; i < n; i++)
		if (pcs[i] == pc)
			return true;
	return false;
}

static void check_run(struct guest *g, const struct program *p, const struct native_step *steps,
		      u64 n, const u64 *pcs, u32 nr)
{
	u64 before = guest_count(g, METER_INSTRUCTIONS), wrong = 0, k = 0;

	nr_hits = 0;
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	for (u64 i = 0; i < n; i++) {
		if (!has(pcs, nr, steps[i].pc))
			continue;
		wrong += i && k < nr_hits && !same(&hits[k], &steps[i - 1].regs);
		k++;
	}
	if (wrong || nr_hits != k)
		TEST_FAIL("%s, %u places from %#llx: %llu hits, not %llu; %llu are wrong", p->name,
			  nr, (unsigned long long)pcs[0], (unsigned long long)nr_hits,
			  (unsigned long long)k, (unsigned long long)wrong);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, n);
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u32 addresses(const struct native_step *steps, u64 n, u64 *pcs)
{
	u32 nr = 0;

	for (u64 i = 0; i < n && nr < DBT_PLACES; i++)
		if (!has(pcs, nr, steps[i].pc))
			pcs[nr++] = steps[i].pc;
	qsort(pcs, nr, sizeof(*pcs), compare);
	return nr;
}

/* At each instruction of the program alone, at each second one, and at all. */
static void check_program(struct guest *g, const struct program *p)
{
	struct native_step *steps;
	u64 n = native_steps(g, p->fn, p->abc, 100000, &steps), pcs[DBT_PLACES], odd[DBT_PLACES];
	u32 nr = addresses(steps, n, pcs);

	for (u32 i = 0; i < nr; i++) {
		dbt_set_places(g->t, &pcs[i], 1);
		check_run(g, p, steps, n, &pcs[i], 1);
	}
	for (u32 i = 0; i < nr / 2; i++)
		odd[i] = pcs[2 * i + 1];
	dbt_set_places(g->t, odd, nr / 2);
	check_run(g, p, steps, n, odd, nr / 2);
	dbt_set_places(g->t, pcs, nr);
	check_run(g, p, steps, n, pcs, nr);
	dbt_check(g->t);
	dbt_set_places(g->t, NULL, 0);
	check_run(g, p, steps, n, pcs, 0);
	free(steps);
}

TEST(each_execution_is_told)
{
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		check_program(guest(), &programs[i]);
}

static void check_with_deadlines(const struct program *p, u64 period)
{
	struct guest *g = guest();
	struct native_step *steps;
	u64 n = native_steps(g, p->fn, p->abc, 100000, &steps), pcs[DBT_PLACES];
	u32 nr = addresses(steps, n, pcs);

	stops.q = METER_INSTRUCTIONS;
	stops.max = n;
	stops.at = malloc(stops.max * sizeof(*stops.at));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < nr; i += 2) {
		dbt_set_places(g->t, &pcs[i], 1);
		stops_begin(g, period);
		check_run(g, p, steps, n, &pcs[i], 1);
		stops_end(g);
		EXPECT_EQ(stops.n, n / period);
		for (u64 k = 0; k < stops.n && k < stops.max; k++)
			EXPECT_EQ(stops.at[k].ip, steps[(k + 1) * period - 1].pc);
	}
	dbt_set_places(g->t, NULL, 0);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(stops.at);
	free(steps);
}

TEST(deadlines_are_exact_beside_places)
{
	static const u64 periods[] = {1, 7, 1000};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++)
		for (u32 k = 0; k < ARRAY_SIZE(periods); k++)
			check_with_deadlines(&programs[i], periods[k]);
}

TEST(each_execution_is_told_in_a_storm_of_signals)
{
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	guest(); /* has the handler */
	setitimer(ITIMER_REAL, &tick, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i += 2)
		check_program(guest(), &programs[i]);
	setitimer(ITIMER_REAL, &off, NULL);
}

/*
 * Of a loop each time round, also where code that is linked comes to the place again. Of each three
 * native instructions in turn a signal comes behind one, and behind another for the next place.
 */
TEST(each_time_round_is_told_wherever_a_signal_comes)
{
	static const struct program loops[] = {{"table", snip_table, {5}},
					       {"loop", snip_loop, {4}}};
	struct guest *g = guest();

	goes_on = true;
	for (u32 i = 0; i < ARRAY_SIZE(loops); i++) {
		struct native_step *steps;
		u64 n = native_steps(g, loops[i].fn, loops[i].abc, 100000, &steps);
		u64 pcs[DBT_PLACES];
		u32 nr = addresses(steps, n, pcs);

		for (u32 k = 0; k < nr; k++) {
			dbt_set_places(g->t, &pcs[k], 1);
			for (g->step = 1 + k % 3; !test_failures; g->step += 3) {
				check_run(g, &loops[i], steps, n, &pcs[k], 1);
				if (g->stepped < g->step)
					break;
			}
			g->step = 0;
		}
		dbt_set_places(g->t, NULL, 0);
		free(steps);
	}
	goes_on = false;
}

/* A signal after each native instruction in turn. */
TEST(no_execution_is_told_twice_wherever_a_signal_comes)
{
	struct guest *g = guest();

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n = native_steps(g, programs[i].fn, programs[i].abc, 100000, &steps);
		u64 pcs[DBT_PLACES];
		u32 nr = addresses(steps, n, pcs), middle = nr / 2;

		/* What pushf pushes has the flag by which it is stepped. */
		if (n > 80 || programs[i].fn == snip_flags) {
			free(steps);
			continue;
		}
		dbt_set_places(g->t, &pcs[middle], 1);
		for (g->step = 1; !test_failures; g->step++) {
			check_run(g, &programs[i], steps, n, &pcs[middle], 1);
			if (g->stepped < g->step)
				break;
		}
		g->step = 0;
		dbt_set_places(g->t, NULL, 0);
		free(steps);
	}
}
