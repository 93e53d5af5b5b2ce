/* Words of paths say how often each instruction was executed: checked against single steps. */
#include "data/path-reader.h"
#include "unit/dbt/path_room.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define MASK (DBT_MASK_ALL | DBT_MASK_PATHS)

static struct path_space *space;

static const struct path_space *space_at(u32 index, void *data)
{
	(void)data;
	return index ? NULL : space;
}

static struct path_thread *words_of(struct guest *g)
{
	return (struct path_thread *)((char *)g->t + DBT_PATHS_AT);
}

static void counting(struct guest *g)
{
	words_of(g)->magic = PATH_MAGIC;
	if (space)
		return;
	space = mmap(NULL, sizeof(*space), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		abort();
	dbt_paths(g->t, space);
}

static struct path_counts counts_of(struct guest *g)
{
	struct path_counts c;

	EXPECT_EQ(path_counts_read(&c, words_of(g), space_at, NULL, NULL), 0);
	EXPECT_EQ(c.bad, 0);
	EXPECT_EQ(c.unplaced, 0);
	return c;
}

static u64 count_at(const struct path_counts *c, u64 pc)
{
	u32 lo = 0, hi = c->nr_insns;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (c->insn[mid].pc < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->nr_insns && c->insn[lo].pc == pc ? c->insn[lo].count : 0;
}

static u64 calls_at(const struct path_counts *c, u64 from, u64 to)
{
	for (u32 i = 0; i < c->nr_calls; i++)
		if (c->call[i].from == from && c->call[i].to == to)
			return c->call[i].count;
	return 0;
}

static int by_pc(const void *a, const void *b)
{
	const struct native_step *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->regs.rip < y->regs.rip ? -1 : x->regs.rip > y->regs.rip;
}

/* What was counted between @was and @is, against @steps, which are sorted by where they were. */
static void check_counts(const struct program *p, const struct path_counts *was,
			 const struct path_counts *is, const struct native_step *steps, u64 n,
			 u64 times)
{
	u32 complaints = 0;
	u64 pcs = 0;

	EXPECT_EQ(is->total - was->total, n * times);
	for (u64 i = 0, end; i < n; i = end) {
		u64 pc = steps[i].pc, calls = 0;

		for (end = i; end < n && steps[end].pc == pc; end++)
			calls += steps[end].taken == TRACE_BRANCH_CALL;
		pcs++;
		if (count_at(is, pc) - count_at(was, pc) != (end - i) * times && complaints++ < 5)
			TEST_FAIL("%s: %#llx was executed %llu times, not %llu", p->name,
				  (unsigned long long)pc,
				  (unsigned long long)(count_at(is, pc) - count_at(was, pc)),
				  (unsigned long long)((end - i) * times));
		if (calls &&
		    calls_at(is, pc, steps[i].regs.rip) - calls_at(was, pc, steps[i].regs.rip) !=
			    calls * times)
			TEST_FAIL("%s: the call at %#llx is counted wrongly", p->name,
				  (unsigned long long)pc);
	}
	/* Nothing else has been. */
	for (u32 i = 0; i < is->nr_insns; i++)
		pcs -= count_at(was, is->insn[i].pc) != is->insn[i].count;
	EXPECT_EQ(pcs, 0);
}

/* Runs @p, with a deadline each @period instructions if that is not 0. */
static void check_run(struct guest *g, const struct program *p, struct native_step *steps, u64 n,
		      u64 period)
{
	struct path_counts was = counts_of(g), is;
	u64 before = guest_count(g, METER_INSTRUCTIONS);

	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	if (period)
		stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	if (period)
		stops_end(g);
	is = counts_of(g);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, is.total - was.total);
	check_counts(p, &was, &is, steps, n, 1);
	path_counts_release(&was);
	path_counts_release(&is);
}

static struct native_step *steps_of(struct guest *g, const struct program *p, u64 *n)
{
	struct native_step *steps;

	*n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	qsort(steps, *n, sizeof(*steps), by_pc);
	return steps;
}

static void check_program(struct guest *g, const struct program *p)
{
	static const u64 periods[] = {1, 2, 7, 100, 10007};
	struct native_step *steps;
	u64 n;

	counting(g);
	steps = steps_of(g, p, &n);
	dbt_set_mask(g->t, MASK);
	check_run(g, p, steps, n, 0);
	check_run(g, p, steps, n, 0);
	dbt_set_mask(g->t, MASK | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, steps, n, periods[i]);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
	dbt_check(g->t);
}

TEST(each_instruction_is_counted)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i]);
}

/* Only words are of interest to who does not count. */
TEST(without_a_meter_too)
{
	static const struct program p = {"fib", snip_fib, {9}};
	struct guest *g = guest_main();
	struct path_counts was, is;
	struct native_step *steps;
	u64 n;

	counting(g);
	steps = steps_of(g, &p, &n);
	dbt_set_mask(g->t, DBT_MASK_PATHS);
	was = counts_of(g);
	native_begin(g, p.fn, p.abc);
	EXPECT_EQ(guest_run(g), 0);
	is = counts_of(g);
	check_counts(&p, &was, &is, steps, n, 1);
	path_counts_release(&was);
	path_counts_release(&is);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	free(steps);
}

TEST(in_a_storm_of_signals)
{
	static const struct program programs[] = {{"fib", snip_fib, {15}},
						  {"table", snip_table, {3000}},
						  {"flags", snip_flags, {5000, 7}}};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	guest_main();
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n;

		counting(guest_main());
		steps = steps_of(guest_main(), &programs[i], &n);
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
	EXPECT(guest_main()->interrupts > 0);
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

	counting(g);
	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		struct native_step *steps;
		u64 n;

		steps = steps_of(g, &programs[i], &n);
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

/* mov eax, [rdi]; add rdi, 8; mov eax, [rsi]; ret: the last load faults */
static const u8 faulting[] = {0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x8b, 0x06, 0xc3};

TEST(up_to_a_fault)
{
	struct guest *g = guest_main();
	struct path_counts was, is;
	u64 word = 0, at;
	u8 *code;

	counting(g);
	code = guest_code(4096, 0);
	at = (u64)code;
	memcpy(code, faulting, sizeof(faulting));
	dbt_set_mask(g->t, MASK);
	was = counts_of(g);
	for (u32 i = 0; i < 3; i++)
		EXPECT_EQ(guest_call(g, code, (u64)&word, 8, 0), ~0ull);
	EXPECT_EQ(guest_call(g, code, (u64)&word, (u64)&word, 0), 0);
	is = counts_of(g);
	/* Other code may have been there. */
	EXPECT_EQ(count_at(&is, at) - count_at(&was, at), 4);
	EXPECT_EQ(count_at(&is, at + 2) - count_at(&was, at + 2), 4);
	EXPECT_EQ(count_at(&is, at + 6) - count_at(&was, at + 6), 1);
	EXPECT_EQ(count_at(&is, at + 8) - count_at(&was, at + 8), 1);
	EXPECT_EQ(is.total - was.total, 10);
	path_counts_release(&was);
	path_counts_release(&is);
	dbt_set_mask(g->t, DBT_MASK_ALL);
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
		counting(&g);
		steps = steps_of(&g, &p, &n);
		check_run(&g, &p, steps, n, 0);
		check_run(&g, &p, steps, n, 0);
		free(steps);
		guest_thread_exit(&g);
	}
	return NULL;
}

/* The same path has another number after a flush. */
TEST(of_threads_while_the_cache_is_flushed)
{
	pthread_t threads[2];

	counting(guest_main());
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

/* Instructions of the program, of which so many are not placed. */
static void run_crowded(struct guest *g, const struct program *p, u64 least, u64 most)
{
	struct path_counts was, is;
	u64 before = guest_count(g, METER_INSTRUCTIONS), n;

	EXPECT_EQ(path_counts_read(&was, words_of(g), space_at, NULL, NULL), 0);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	EXPECT_EQ(path_counts_read(&is, words_of(g), space_at, NULL, NULL), 0);
	n = guest_count(g, METER_INSTRUCTIONS) - before;
	EXPECT_EQ(is.total - was.total, n);
	EXPECT(is.unplaced - was.unplaced >= (s64)least);
	EXPECT(is.unplaced - was.unplaced <= (s64)most);
	path_counts_release(&was);
	path_counts_release(&is);
}

TEST(what_has_no_room_is_counted_all_the_same)
{
	static const struct program p = {"fib", snip_fib, {9}};
	struct guest *g = guest_main();
	struct path_room room;

	counting(g);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	room = path_room_set(PATH_WORDS - 4, 0);
	dbt_set_mask(g->t, MASK);
	run_crowded(g, &p, 1, ~0u);
	run_crowded(g, &p, 1, ~0u);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	EXPECT_EQ(path_room_set(room.paths, PATH_LOG - 8).paths, PATH_WORDS);
	dbt_set_mask(g->t, MASK);
	run_crowded(g, &p, 1, ~0u);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	/* No path has got a number. */
	EXPECT_EQ(path_room_set(0, room.log).paths, room.paths);
	space->paths = room.paths;
	space->logged = room.log;
	memset(words_of(g)->word, 0, sizeof(words_of(g)->word));
	words_of(g)->unplaced = 0;
}

TEST(nor_is_a_part_of_a_path_lost_that_has_none)
{
	static const struct program p = {"branches", snip_branches, {0}};
	struct guest *g = guest_main();
	struct path_extra *extra = words_of(g)->extra;
	u32 parts = 0;

	counting(g);
	/* Those that other tests have left have places. */
	for (u32 i = 0; i < PATH_EXTRAS; i++)
		extra[i] = (struct path_extra){.key = ~PATH_PART};
	dbt_set_mask(g->t, MASK);
	for (g->step = 1;; g->step++) {
		words_of(g)->unplaced = 0;
		run_crowded(g, &p, -100ull, 100);
		parts += words_of(g)->unplaced != 0;
		if (g->stepped < g->step || test_failures)
			break;
	}
	g->step = 0;
	EXPECT(parts > 0);
	words_of(g)->unplaced = 0;
	memset(extra, 0, sizeof(words_of(g)->extra));
	dbt_set_mask(g->t, DBT_MASK_ALL);
}

/* As if something were mapped at time 25 where all of it is. */
static u64 until_25(u64 pc, u64 since, void *data)
{
	(void)data;
	EXPECT_EQ(pc, 0x4000);
	return since < 25 ? since : 0;
}

/* A space that nobody has described anything in, and a thread of it. */
static struct path_space *made_space(struct path_thread **t)
{
	struct path_space *s = calloc(1, sizeof(*s));

	*t = calloc(1, sizeof(**t));
	if (!s || !*t)
		abort();
	s->magic = (*t)->magic = PATH_MAGIC;
	s->from_path = PATH_FIRST;
	s->from_log = 8;
	return s;
}

/* One instruction at one place, described three times: code was mapped in between. */
TEST(what_was_there_before_is_told_apart)
{
	struct path_thread *t;
	struct path_space *s = made_space(&t), *before = space;
	const struct path_block head = {.nr_frags = 1, .nr_insns = 1};
	const struct path_frag frag = {.pc = 0x4000};
	struct path_counts c;

	space = s;
	s->paths = PATH_FIRST + 3;
	s->logged = 8 + 3 * 64;
	for (u32 i = 0; i < 3; i++) {
		u8 *at = s->log + 8 + (size_t)i * 64;

		memcpy(at, &head, sizeof(head));
		memcpy(at + sizeof(head), &frag, sizeof(frag));
		at[sizeof(head) + sizeof(frag)] = 1;
		s->path[PATH_FIRST + i] =
			(struct path_entry){.block = 1 + i * 8, .upto = 1, .known = 1};
		t->word[PATH_FIRST + i] = 1 + i;
	}
	s->mark[0] = (struct path_mark){.time = 10, .logged = 8};
	s->mark[1] = (struct path_mark){.time = 20, .logged = 72};
	s->mark[2] = (struct path_mark){.time = 30, .logged = 136};
	s->marks = 3;
	EXPECT_EQ(path_counts_read(&c, t, space_at, until_25, NULL), 0);
	EXPECT_EQ(c.nr_insns, 3);
	for (u32 i = 0; i < c.nr_insns; i++) {
		EXPECT_EQ(c.insn[i].time, i * 10);
		EXPECT_EQ(c.insn[i].count, i ? i : 3);
	}
	EXPECT_EQ(c.total, 6);
	path_counts_release(&c);
	EXPECT_EQ(path_counts_read(&c, t, space_at, NULL, NULL), 0);
	EXPECT_EQ(c.nr_insns, 1);
	EXPECT_EQ(c.total, 6);
	path_counts_release(&c);
	/* Not all have found room. */
	s->marks = PATH_MARKS + 1;
	EXPECT_EQ(path_counts_read(&c, t, space_at, until_25, NULL), 0);
	EXPECT_EQ(c.nr_insns, 1);
	path_counts_release(&c);
	free(s);
	free(t);
	space = before;
}

TEST(what_makes_no_sense_is_left_out)
{
	struct path_thread *t;
	struct path_space *s = made_space(&t), *before = space;
	struct path_counts c;

	space = s;
	s->paths = PATH_WORDS;
	s->logged = PATH_LOG;
	t->word[3] = 5;
	for (u32 i = PATH_FIRST; i < PATH_FIRST + 10; i++)
		t->word[i] = 1;
	t->word[PATH_FIRST + 9] = ~0ull;
	s->path[PATH_FIRST + 1] = (struct path_entry){.block = 0, .upto = 1, .known = 1};
	s->path[PATH_FIRST + 2] = (struct path_entry){.block = ~0u, .upto = 1, .known = 1};
	s->path[PATH_FIRST + 3] =
		(struct path_entry){.block = PATH_LOG / 8 - 1, .upto = 1, .known = 1};
	/* Frags or instructions that do not fit, none, and too few of them. */
	s->path[PATH_FIRST + 4] = (struct path_entry){.block = 1, .upto = 1, .known = 1};
	*(struct path_block *)(s->log + 8) = (struct path_block){.nr_frags = 0xffff, .nr_insns = 1};
	s->path[PATH_FIRST + 5] = (struct path_entry){.block = 2, .upto = 1, .known = 1};
	*(struct path_block *)(s->log + 16) = (struct path_block){.nr_frags = 1};
	s->path[PATH_FIRST + 6] = (struct path_entry){.block = 3, .upto = 9, .known = 1};
	*(struct path_block *)(s->log + 24) = (struct path_block){.nr_frags = 1, .nr_insns = 2};
	s->path[PATH_FIRST + 7] =
		(struct path_entry){.block = PATH_LOG / 8 - 2, .upto = 1, .known = 1};
	*(struct path_block *)(s->log + PATH_LOG - 16) = (struct path_block){.nr_frags = 1,
									     .nr_insns = 2};
	t->extra[7] = (struct path_extra){path_part(99, 3, 1), 4};
	EXPECT_EQ(path_counts_read(&c, t, space_at, NULL, NULL), 0);
	EXPECT_EQ(c.nr_insns, 0);
	EXPECT_EQ(c.unplaced, 15);
	EXPECT_EQ(c.total, 15);
	EXPECT_EQ(c.bad, 11);
	path_counts_release(&c);
	t->space = 5;
	EXPECT_EQ(path_counts_read(&c, t, space_at, NULL, NULL), 0);
	EXPECT_EQ(c.bad, 1);
	path_counts_release(&c);
	/* It would be its own parent. */
	t->space = 0;
	s->parent = 1;
	s->from_path = PATH_WORDS;
	EXPECT_EQ(path_counts_read(&c, t, space_at, NULL, NULL), 0);
	EXPECT_EQ(c.nr_insns, 0);
	path_counts_release(&c);
	free(s);
	free(t);
	space = before;
}
