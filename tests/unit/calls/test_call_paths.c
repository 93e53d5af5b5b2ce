/*
 * Paths in quick succession against the same spans one by one: programs made up at random, which
 * call, return, jump to other functions, go by linkage tables, leave frames behind, recurse, and do
 * the like again and again, so that runs of paths are found.
 */
#include <string.h>

#include "calls/calls-priv.h"
#include "unit/test.h"

enum { FUNCTIONS = 6, TABLES = 2, BLOCKS = 5, KINDS = 6, PATHS = 16000 };
enum { RECORDS = 2 }; /* of a path, at most */
enum { CODE = 0x10000, TABLE = 0x50000, OTHER = 0x90000 };

static const u8 kinds[KINDS] = {PATH_PLAIN,    PATH_JUMP,     PATH_CALL,
				PATH_CALL_IND, PATH_JUMP_IND, PATH_RETURN};
static const char *watched; /* a function that asks for something */
static u32 dumps;
static bool simulates;

static void find(void *data, struct calls_graph *g, u64 pc, struct calls_code *code)
{
	char name[20];
	bool made;

	(void)data;
	snprintf(name, sizeof(name), "%llx", (unsigned long long)pc >> 8);
	*code = (struct calls_code){.address = pc, .region = (u32)(pc >> 16)};
	code->fn = calls_fn_of(g, "/prog", "p.c", name, &made);
	code->fn->symbol = pc & ~0xffull;
	code->fn->skip = code->region == TABLE >> 16;
	code->entry = !code->fn->skip && !(pc & 0xff);
	code->fn->pop_on_jump = code->fn->symbol == OTHER + 0x100;
	code->fn->toggle = watched && !strcmp(watched, name);
	code->fn->twice = watched && !strcmp("103", name);
}

static void on_dump(void *data, struct calls_graph *g, const char *trigger)
{
	(void)data;
	(void)g;
	(void)trigger;
	dumps++;
}

static u32 random_below(u64 *state, u32 n)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(*state >> 33) % n;
}

/* A program: each block of each function, ended in each way. Numbers from 1 on. */
struct program {
	struct calls_graph *graph;
	struct calls_thread *thread[2];
	struct event_simulation *simulation; /* NULL: nothing is simulated */
	struct calls_span *span[1 + (FUNCTIONS + TABLES + 1) * BLOCKS * KINDS];
	u64 first[1 + (FUNCTIONS + TABLES + 1) * BLOCKS * KINDS];
	u32 nr;
};

static void add_block(struct program *p, u64 pc)
{
	static const struct path_access load = {.base = 0, .index = PATH_NO_SLOT, .size = 8},
					store = {.base = 1,
						 .index = PATH_NO_SLOT,
						 .size = 8,
						 .kind = PATH_STORE};

	for (u32 kind = 0; kind < KINDS; kind++) {
		struct path_step steps[] = {{.pc = pc, .len = 4, .nr_accesses = 1, .access = &load},
					    {.pc = pc + 4,
					     .len = 4,
					     .nr_accesses = 1,
					     .first_access = 1,
					     .access = &store},
					    {.pc = pc + 8, .len = 4, .kind = kinds[kind]}};

		p->first[++p->nr] = pc;
		p->span[p->nr] = calls_span_new(p->graph, steps, 3);
	}
}

static struct event_simulation *new_simulation(void)
{
	struct machine m = {.memory = {.line = 64}};

	m.cache[MACHINE_L1I] = m.cache[MACHINE_L1D] = (struct machine_cache){1 << 9, .ways = 2};
	m.cache[MACHINE_LL] = (struct machine_cache){1 << 11, .ways = 4};
	return simulation_new(
		&(struct simulation_opts){.machine = &m, .caches = true, .branches = true});
}

static void make(struct program *p, u32 recursions, bool tree)
{
	const struct calls_opts opts = {.recursions = recursions,
					.collect = true,
					.tree = tree,
					.find = find,
					.dump = on_dump,
					.simulation = simulates ? new_simulation() : NULL};

	*p = (struct program){.graph = calls_graph_new(&opts), .simulation = opts.simulation};
	for (u32 i = 0; i < ARRAY_SIZE(p->thread); i++)
		p->thread[i] = calls_thread_new(p->graph, i + 1);
	for (u32 f = 0; f < FUNCTIONS + TABLES + 1; f++)
		for (u32 b = 0; b < BLOCKS; b++)
			add_block(p, (f < FUNCTIONS            ? CODE + f * 0x100
				      : f < FUNCTIONS + TABLES ? TABLE + f * 0x100
							       : OTHER + 0x100u) +
					     b * 12);
}

/* Mostly what a program would do: go on, call an entry, return to behind a call. */
static u32 next_path(const struct program *p, u64 *state, u32 last, u64 *stack, u32 *depth)
{
	u8 kind = kinds[(last - 1) % KINDS];
	u64 to = p->first[last] + 12;
	u32 way = random_below(state, 16);

	if (kind == PATH_CALL || kind == PATH_CALL_IND) {
		if (*depth < 12)
			stack[(*depth)++] = to;
		to = (way < 4 ? TABLE + 0x600u : CODE) +
		     random_below(state, way < 4 ? 2 : 6) * 0x100u;
	} else if (kind == PATH_RETURN && *depth && way) {
		*depth -= way == 1 && *depth > 1 ? 2 : 1;
		to = stack[*depth];
	} else if (kind == PATH_JUMP_IND || kind == PATH_JUMP) {
		to = way < 3    ? (p->first[last] & ~0xffull)
		     : way < 12 ? CODE + random_below(state, FUNCTIONS) * 0x100u
				: to;
	}
	for (u32 i = 1; i <= p->nr; i += KINDS)
		if (p->first[i] == to)
			return i + (*depth > 8 ? KINDS - 1 : random_below(state, KINDS));
	return 1 + random_below(state, p->nr);
}

static u32 path_taken[PATHS];
static struct path_record record_taken[PATHS * RECORDS + 1]; /* of each of these */
static u32 record_of[PATHS + 1];                             /* where those of a path begin */

static u32 word_of(const u32 *path)
{
	return (u32)(path - path_taken);
}

static struct path_records records_of(const u32 *path, u32 n)
{
	u32 word = word_of(path);

	return (struct path_records){record_taken + record_of[word],
				     record_taken + record_of[word + n], word, NULL};
}

static void run_slowly(struct program *p, u32 thread, const u32 *path, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct path_records own = records_of(path + i, 1);

		if (p->simulation)
			calls_run_simulated(p->thread[thread], p->span[path[i]], &own, false);
		else
			calls_run(p->thread[thread], p->span[path[i]]);
	}
}

static void run_quickly(struct program *p, u32 thread, const u32 *path, u32 n)
{
	struct path_records records = records_of(path, n);

	EXPECT_EQ(calls_run_paths(p->thread[thread], p->span, path, n,
				  p->simulation ? &records : NULL),
		  n);
	EXPECT_EQ(records.word, word_of(path) + (p->simulation ? n : 0));
	EXPECT(!p->simulation || records.next == records.end);
}

static void compare_events(const struct calls_profile *x, u32 in_x, const struct calls_profile *y,
			   u32 in_y)
{
	EXPECT_EQ(!in_x, !in_y);
	if (in_x && in_y)
		EXPECT(!memcmp(&x->events[in_x - 1], &y->events[in_y - 1], sizeof(*x->events)));
}

static void compare(struct program *a, struct program *b)
{
	struct calls_profile x, y;

	calls_finish(a->graph);
	calls_finish(b->graph);
	calls_take(a->graph, &x);
	calls_take(b->graph, &y);
	EXPECT_EQ(x.summary, y.summary);
	EXPECT(!memcmp(&x.summary_events, &y.summary_events, sizeof(x.summary_events)));
	EXPECT_EQ(x.nr_costs, y.nr_costs);
	EXPECT_EQ(x.nr_calls, y.nr_calls);
	for (u32 i = 0; i < x.nr_costs && i < y.nr_costs; i++) {
		EXPECT_EQ(x.cost[i].pc, y.cost[i].pc);
		EXPECT_EQ(x.cost[i].level, y.cost[i].level);
		EXPECT_EQ(x.cost[i].count, y.cost[i].count);
		compare_events(&x, x.cost[i].events, &y, y.cost[i].events);
		EXPECT_STREQ(x.cost[i].fn->name, y.cost[i].fn->name);
	}
	for (u32 i = 0; i < x.nr_calls && i < y.nr_calls; i++) {
		EXPECT_EQ(x.call[i].site, y.call[i].site);
		EXPECT_EQ(x.call[i].target, y.call[i].target);
		EXPECT_EQ(x.call[i].to_level, y.call[i].to_level);
		EXPECT_EQ(x.call[i].count, y.call[i].count);
		EXPECT_EQ(x.call[i].cost, y.call[i].cost);
		compare_events(&x, x.call[i].events, &y, y.call[i].events);
	}
	calls_profile_release(&x);
	calls_profile_release(&y);
}

/* Pieces come in no order that means something. */
static int put_piece(const struct calls_piece *piece, void *data)
{
	u64 *all = data, sum = piece->pc[0] * 31 + piece->tid;

	for (u32 i = 0; i < piece->nr_callers; i++)
		sum = sum * 31 + piece->callers[i];
	*all += (sum ^ sum >> 17) * piece->count;
	return 0;
}

static u64 tree_sum(struct program *p)
{
	u64 sum = 0;

	calls_finish(p->graph);
	EXPECT_EQ(calls_tree(p->graph, put_piece, &sum), 0);
	return sum;
}

/*
 * From a few pieces of what comes first the rest is made, with something else in between now and
 * then: the same paths come again, called from elsewhere and with other calls open.
 */
static void repeat(u32 *path, u64 *state)
{
	enum { FIRST = PATHS / 32, PIECES = 5 };
	u32 from[PIECES], i = FIRST;

	for (u32 k = 0; k < PIECES; k++)
		from[k] = random_below(state, FIRST - 80);
	while (i < PATHS) {
		u32 k = random_below(state, PIECES), n = 3 + random_below(state, 70);

		if (random_below(state, 20) == 0)
			from[k] = random_below(state, FIRST - 80);
		for (; n && i < PATHS; n--)
			path[i++] = path[from[k] + 80 - n];
		for (n = random_below(state, 3) ? 0 : 1; n && i < PATHS; n--)
			path[i++] = path[random_below(state, FIRST)];
	}
}

/* Now and then one comes many times, as a loop goes round in it. */
static void go_round(u32 *path, u64 *state)
{
	for (u32 i = 0; i < PATHS - 40; i += 1 + random_below(state, 400))
		for (u32 n = random_below(state, 40); n; n--)
			path[i + n] = path[i];
}

/* Of most accesses; no filter makes a difference between two ways to read them. */
static void make_records(u64 *state)
{
	u32 n = 0;

	for (u32 i = 0; i < PATHS; i++) {
		record_of[i] = n;
		for (u32 k = 0; k < RECORDS; k++)
			if (random_below(state, 4))
				record_taken[n++] = (struct path_record){
					.addr = 0x100000 + random_below(state, 0x800),
					.at = i,
					.what = path_record_what(k, k, false, 7)};
	}
	record_of[PATHS] = n;
}

/* What a dump in between says. */
static void compare_now(struct program *a, struct program *b)
{
	struct calls_profile x, y;

	calls_take(a->graph, &x);
	calls_take(b->graph, &y);
	EXPECT_EQ(x.summary, y.summary);
	EXPECT_EQ(x.nr_costs, y.nr_costs);
	EXPECT_EQ(x.nr_calls, y.nr_calls);
	for (u32 i = 0; i < x.nr_calls && i < y.nr_calls; i++) {
		EXPECT_EQ(x.call[i].count, y.call[i].count);
		EXPECT_EQ(x.call[i].cost, y.call[i].cost);
	}
	calls_profile_release(&x);
	calls_profile_release(&y);
}

static u64 runs; /* that were known in the end */

static void check(u64 seed, u32 recursions, bool tree)
{
	static struct program a, b;
	u32 *path = path_taken;
	u64 state = seed, stack[16];
	u32 depth = 0, done[2] = {0, 0};

	make(&a, recursions, tree);
	make(&b, recursions, tree);
	if (seed % 5 == 0)
		b.graph->runs.most = 5000;
	path[0] = 1;
	for (u32 i = 1; i < PATHS; i++)
		path[i] = next_path(&a, &state, path[i - 1], stack, &depth);
	if (seed % 4)
		repeat(path, &state);
	go_round(path, &state);
	make_records(&state);
	/* Two threads do the same, in turns. */
	while (done[0] < PATHS || done[1] < PATHS) {
		u32 t = random_below(&state, 2), n = random_below(&state, 300);

		n = n < PATHS - done[t] ? n : PATHS - done[t];
		run_slowly(&a, t, path + done[t], n);
		run_quickly(&b, t, path + done[t], n);
		done[t] += n;
		if (!tree && random_below(&state, 20) == 0)
			compare_now(&a, &b);
		if (random_below(&state, 50) == 0) {
			calls_signal(a.thread[t]);
			calls_signal(b.thread[t]);
			run_slowly(&a, t, path, 20);
			run_quickly(&b, t, path, 20);
			calls_signal_return(a.thread[t]);
			calls_signal_return(b.thread[t]);
		}
	}
	runs += b.graph->runs.n;
	if (tree)
		EXPECT_EQ(tree_sum(&a), tree_sum(&b));
	else
		compare(&a, &b);
	calls_graph_free(a.graph);
	calls_graph_free(b.graph);
	simulation_free(a.simulation);
	simulation_free(b.simulation);
}

TEST(paths_in_quick_succession_are_what_they_are_one_by_one)
{
	runs = 0;
	for (u64 seed = 1; seed <= 80; seed++)
		check(seed, 1 + seed % 3, false);
	EXPECT(runs > 80 * 20);
}

TEST(and_in_a_tree)
{
	runs = 0;
	for (u64 seed = 1; seed <= 40; seed++)
		check(seed, 1, true);
	EXPECT(runs > 40 * 20);
}

TEST(and_where_a_function_is_watched)
{
	watched = "102";
	for (u64 seed = 1; seed <= 20; seed++)
		check(seed, 2, false);
	watched = NULL;
}

TEST(and_with_caches_and_branches)
{
	simulates = true;
	for (u64 seed = 1; seed <= 20; seed++)
		check(seed, 1 + seed % 3, false);
	watched = "102";
	for (u64 seed = 1; seed <= 10; seed++)
		check(seed, 2, false);
	watched = NULL;
	simulates = false;
}

TEST(a_path_that_is_not_known_is_not_passed)
{
	static struct program p;
	static const u32 path[] = {1, 2, 0, 1};

	make(&p, 2, false);
	EXPECT_EQ(calls_run_paths(p.thread[0], p.span, path, 4, NULL), 2);
	calls_graph_free(p.graph);
}
