/*
 * Who calls whom: spans of a program that was made up, run in orders that calls, returns, tails,
 * longjmp, handlers of signals and the dynamic linker have.
 */
#include "calls/calls.h"
#include "unit/test.h"

/* Functions of 256 bytes: A..H, the slot of a linkage table, the linker's resolver. */
enum { A = 0x1000, B = 0x1100, C = 0x1200, D = 0x1300, PLT = 0x5000, RESOLVE = 0x9000 };

static struct calls_profile got;
static u32 dumps;
static char last_trigger[100];
static const char *toggled = "", *unwinder = "", *twice = "";
static const char *names[] = {"a", "b", "c", "d"};

static void find(void *data, struct calls_graph *g, u64 pc, struct calls_code *code)
{
	char text[40];
	bool made;

	(void)data;
	*code = (struct calls_code){.address = pc, .entry = !(pc & 0xff)};
	if (pc >= RESOLVE) {
		code->fn = calls_fn_of(g, "/ld.so", "???", "_dl_runtime_resolve", &made);
		code->fn->pop_on_jump = true;
		code->region = 3;
	} else if (pc >= PLT) {
		snprintf(text, sizeof(text), "%#llx [PLT]", (unsigned long long)pc);
		code->fn = calls_fn_of(g, "/prog", "???", text, &made);
		code->fn->skip = true;
		code->entry = false;
		code->region = 2;
		return;
	} else {
		code->fn = calls_fn_of(g, "/prog", "p.c", names[(pc - A) >> 8 & 3], &made);
		code->region = 1;
	}
	code->fn->symbol = pc & ~0xffull;
	code->fn->toggle = !strcmp(code->fn->name, toggled);
	code->fn->unwinds = !strcmp(code->fn->name, unwinder);
	code->fn->twice = !strcmp(code->fn->name, twice);
}

static void on_dump(void *data, struct calls_graph *g, const char *trigger)
{
	(void)data;
	snprintf(last_trigger, sizeof(last_trigger), "%s", trigger);
	dumps++;
	calls_profile_release(&got);
	calls_take(g, &got);
}

static struct calls_graph *new_graph(bool collect)
{
	const struct calls_opts opts = {
		.recursions = 2, .collect = collect, .find = find, .dump = on_dump};

	return calls_graph_new(&opts);
}

/* @n instructions of a byte from @pc on, the last of which is of @kind. */
static struct calls_span *span(struct calls_graph *g, u64 pc, u32 n, u8 kind)
{
	struct path_step steps[32];

	for (u32 i = 0; i < n; i++)
		steps[i] = (struct path_step){.pc = pc + i, .len = 1};
	steps[n - 1].kind = kind;
	return calls_span_new(g, steps, n);
}

static void run(struct calls_thread *t, struct calls_graph *g, u64 pc, u32 n, u8 kind)
{
	calls_run(t, span(g, pc, n, kind));
}

static void take(struct calls_graph *g)
{
	calls_profile_release(&got);
	calls_finish(g);
	calls_take(g, &got);
}

static u64 self_of(const char *name, u32 level)
{
	u64 sum = 0;

	for (u32 i = 0; i < got.nr_costs; i++)
		if (!strcmp(got.cost[i].fn->name, name) && got.cost[i].level == level)
			sum += got.cost[i].count;
	return sum;
}

static const struct calls_call *call_of(const char *from, const char *to, u32 level)
{
	static const struct calls_call none;

	for (u32 i = 0; i < got.nr_calls; i++)
		if (!strcmp(got.call[i].from->name, from) && !strcmp(got.call[i].to->name, to) &&
		    got.call[i].to_level == level)
			return &got.call[i];
	return &none;
}

/* As where an interpreter calls what its compiler has made. */
TEST(one_that_calls_many)
{
	enum { MANY = 3000 };
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);
	struct calls_span *site = span(g, A + 4, 2, PATH_CALL_IND),
			  *behind = span(g, A + 6, 1, PATH_JUMP);
	static struct calls_span *to[MANY];
	u32 n = 0;

	for (u32 i = 0; i < MANY; i++)
		to[i] = span(g, RESOLVE + i * 0x400ull, 1, PATH_RETURN);
	for (u32 i = 0; i < 3 * MANY; i++) {
		calls_run(t, site);
		calls_run(t, to[i % MANY]);
		calls_run(t, behind);
	}
	take(g);
	for (u32 i = 0; i < got.nr_calls; i++)
		n += got.call[i].site == A + 5 && got.call[i].count == 3 && got.call[i].cost == 3;
	EXPECT_EQ(n, MANY);
	EXPECT_EQ(got.nr_calls, MANY);
	calls_graph_free(g);
}

TEST(calls_and_returns)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	for (u32 i = 0; i < 3; i++) {
		run(t, g, A, 4, PATH_CALL);       /* a calls b, */
		run(t, g, B, 5, PATH_CALL);       /* which calls c */
		run(t, g, C, 7, PATH_RETURN);     /* and */
		run(t, g, B + 5, 1, PATH_RETURN); /* returns */
		run(t, g, A + 4, 2, PATH_JUMP);
		run(t, g, A + 8, 1, PATH_JUMP);
	}
	take(g);
	EXPECT_EQ(self_of("a", 0), 21 - 2 * 7);
	EXPECT_EQ(self_of("a", 1), 2 * 7);
	EXPECT_EQ(self_of("b", 0), 18);
	EXPECT_EQ(self_of("c", 0), 21);
	EXPECT_EQ(call_of("b", "c", 0)->count, 3);
	EXPECT_EQ(call_of("b", "c", 0)->cost, 21);
	EXPECT_EQ(call_of("a", "b", 0)->site, A + 3);
	EXPECT_EQ(call_of("a", "b", 0)->target, B);
	EXPECT_EQ(got.summary, 60);
	calls_graph_free(g);
}

TEST(what_nobody_knows_is_a_function_of_its_own)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	calls_run_unknown(t, 5);
	run(t, g, A, 4, PATH_CALL);
	run(t, g, B, 3, PATH_CALL); /* what is called is not known, and has returned */
	for (u32 i = 0; i < 3; i++) {
		calls_run_unknown(t, 100);
		run(t, g, B + 3, 2, PATH_CALL);
	}
	calls_run_unknown(t, 100);
	run(t, g, B + 5, 1, PATH_RETURN);
	run(t, g, A + 4, 1, PATH_PLAIN);
	calls_toggle_collect(t);
	calls_run_unknown(t, 1000);
	take(g);
	EXPECT_EQ(self_of("???", 0), 405);
	EXPECT_EQ(self_of("b", 0), 10);
	EXPECT_EQ(self_of("b", 1), 0);
	EXPECT_EQ(call_of("a", "b", 0)->count, 1);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 410);
	EXPECT_EQ(got.summary, 420);
	calls_graph_free(g);
}

TEST(the_second_level_of_recursion_is_told_apart)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 2, PATH_CALL);
	for (u32 i = 0; i < 4; i++)
		run(t, g, B, 3, PATH_CALL); /* b calls itself */
	run(t, g, B, 1, PATH_RETURN);
	for (u32 i = 0; i < 4; i++)
		run(t, g, B + 3, 1, PATH_RETURN);
	run(t, g, A + 2, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("b", 0), 4);
	EXPECT_EQ(self_of("b", 1), 9 + 1 + 3);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 17);
	EXPECT_EQ(call_of("b", "b", 1)->count, 1);
	EXPECT_EQ(call_of("b", "b", 1)->cost, 13);
	calls_graph_free(g);
}

TEST(a_jump_to_a_function_is_a_call_that_ends_with_the_caller)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 2, PATH_CALL);
	run(t, g, B, 3, PATH_JUMP);
	run(t, g, C, 4, PATH_JUMP_IND);
	run(t, g, D, 5, PATH_RETURN);
	run(t, g, A + 2, 6, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 8);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 12);
	EXPECT_EQ(call_of("b", "c", 0)->cost, 9);
	EXPECT_EQ(call_of("c", "d", 0)->cost, 5);
	calls_graph_free(g);
}

/* A path may go on into another function. */
TEST(a_path_is_cut_where_a_function_begins)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);
	const struct path_step steps[] = {{.pc = A, .len = 1},
					  {.pc = A + 1, .len = 1, .kind = PATH_JUMP},
					  {.pc = B, .len = 1},
					  {.pc = B + 1, .len = 1, .kind = PATH_RETURN}};

	run(t, g, D, 1, PATH_CALL);
	calls_run(t, calls_span_new(g, steps, 4));
	run(t, g, D + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 2);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 2);
	EXPECT_EQ(call_of("a", "b", 0)->site, A + 1);
	calls_graph_free(g);
}

TEST(slots_of_linkage_tables_are_their_callers)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	for (u32 i = 0; i < 2; i++) {
		run(t, g, A + 1, 2, PATH_CALL);
		run(t, g, PLT, 3, PATH_JUMP_IND);
		if (!i) /* the first time the linker looks for it */
			run(t, g, RESOLVE, 10, PATH_JUMP_IND);
		run(t, g, B, 5, PATH_RETURN);
		run(t, g, A + 3, 1, PATH_PLAIN);
	}
	take(g);
	EXPECT_EQ(self_of("a", 0), 2 * 6);
	EXPECT_EQ(self_of("_dl_runtime_resolve", 0), 10);
	EXPECT_EQ(call_of("a", "b", 0)->count, 2);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 10);
	EXPECT_EQ(call_of("a", "b", 0)->site, A + 2);
	EXPECT_EQ(call_of("a", "_dl_runtime_resolve", 0)->cost, 10);
	EXPECT_EQ(call_of("_dl_runtime_resolve", "b", 0)->count, 0);
	calls_graph_free(g);
}

/* With --fn-skip. Also where its caller is left from what it has called. */
TEST(a_function_that_is_not_told_of_calls)
{
	for (u32 leaves = 0; leaves < 2; leaves++) {
		struct calls_graph *g = new_graph(true);
		struct calls_thread *t = calls_thread_new(g, 1);

		run(t, g, C, 1, PATH_CALL);
		run(t, g, A, 1, PATH_CALL);
		for (u32 i = 0; i < 3; i++) {
			run(t, g, PLT + i * 2, 2, PATH_CALL);
			run(t, g, B, 4, PATH_RETURN);
		}
		run(t, g, PLT + 6, 2, PATH_CALL);
		if (leaves) {
			run(t, g, D, 1, PATH_JUMP_IND);
		} else {
			run(t, g, D, 1, PATH_RETURN);
			run(t, g, PLT + 8, 1, PATH_RETURN);
		}
		run(t, g, A + 1, 5, PATH_CALL);
		run(t, g, B, 4, PATH_RETURN);
		run(t, g, A + 6, 1, PATH_RETURN);
		run(t, g, C + 1, 1, PATH_PLAIN);
		take(g);
		EXPECT_EQ(self_of("a", 0), 7 + 8 + !leaves);
		EXPECT_EQ(self_of("b", 0), 16);
		EXPECT_EQ(self_of("b", 1), 0);
		EXPECT_EQ(self_of("c", 0), 2);
		EXPECT_EQ(call_of("a", "d", 0)->cost, 1);
		EXPECT_EQ(call_of("c", "a", 0)->cost, 7 + 8 + !leaves + 16 + 1);
		calls_graph_free(g);
	}
}

TEST(longjmp_ends_what_was_called)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 1, PATH_CALL);
	run(t, g, C, 1, PATH_CALL);
	run(t, g, D, 1, PATH_JUMP_IND);
	run(t, g, A + 0x20, 5, PATH_CALL);
	run(t, g, C, 2, PATH_RETURN);
	run(t, g, A + 0x25, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 7);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 3);
	EXPECT_EQ(call_of("a", "c", 0)->cost, 2);
	calls_graph_free(g);
}

TEST(longjmp_ends_what_was_called_by_a_linkage_table)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, C, 1, PATH_CALL);
	run(t, g, A, 1, PATH_CALL);
	run(t, g, PLT, 1, PATH_JUMP_IND);
	run(t, g, B, 1, PATH_CALL);
	run(t, g, D, 1, PATH_JUMP_IND);
	run(t, g, A + 0x20, 5, PATH_CALL);
	run(t, g, D, 2, PATH_RETURN);
	run(t, g, A + 0x25, 1, PATH_RETURN);
	run(t, g, C + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 8);
	EXPECT_EQ(self_of("a", 1), 0);
	EXPECT_EQ(self_of("c", 0), 2);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 2);
	EXPECT_EQ(call_of("a", "d", 0)->cost, 2);
	EXPECT_EQ(call_of("c", "a", 0)->cost, 12);
	calls_graph_free(g);
}

/* a calls itself. Its first level has called d, which is setjmp, and others have not. */
TEST(longjmp_to_an_outer_level_of_recursion)
{
	twice = "d";
	for (u32 table = 0; table < 2; table++) {
		struct calls_graph *g = new_graph(true);
		struct calls_thread *t = calls_thread_new(g, 1);

		run(t, g, C, 1, PATH_CALL);
		run(t, g, A, 1, PATH_CALL);
		if (table)
			run(t, g, PLT, 1, PATH_JUMP_IND);
		run(t, g, D, 1, PATH_RETURN);
		for (u32 i = 0; i < 3; i++)
			run(t, g, A + 1, 1, PATH_CALL);
		run(t, g, B, 1, PATH_JUMP_IND);
		run(t, g, A + 1, 4, PATH_CALL);
		run(t, g, B, 1, PATH_RETURN);
		run(t, g, A + 5, 1, PATH_RETURN);
		run(t, g, C + 1, 1, PATH_PLAIN);
		take(g);
		EXPECT_EQ(self_of("a", 0), 1 + table + 1 + 4 + 1);
		EXPECT_EQ(self_of("a", 1), 2);
		EXPECT_EQ(self_of("c", 0), 2);
		EXPECT_EQ(call_of("c", "a", 0)->cost, 1 + table + 1 + 3 + 1 + 4 + 1 + 1);
		calls_graph_free(g);
	}
	twice = "";
}

/* Each level of a cleans up and resumes, which d does: that goes on in the one before. */
TEST(an_exception_leaves_level_by_level)
{
	struct calls_graph *g;
	struct calls_thread *t;

	unwinder = "d";
	g = new_graph(true);
	t = calls_thread_new(g, 1);
	run(t, g, C, 1, PATH_CALL);
	for (u32 i = 0; i < 3; i++)
		run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 1, PATH_RETURN);
	for (u32 i = 0; i < 3; i++) {
		run(t, g, A + 0x20, 4, PATH_CALL);
		run(t, g, PLT, 1, PATH_JUMP_IND);
		run(t, g, D, 2, PATH_RETURN);
	}
	run(t, g, C + 0x20, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 1 + 5);
	EXPECT_EQ(self_of("a", 1), 2 + 2 * 5);
	EXPECT_EQ(self_of("c", 0), 2);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 1);
	EXPECT_EQ(call_of("c", "a", 0)->cost, 3 + 1 + 3 * 7);
	unwinder = "";
	calls_graph_free(g);
}

/* The jump back is no longjmp into the level of a that has called this one. */
TEST(a_function_goes_on_behind_its_cold_part)
{
	static const char *const hot[] = {"a", "a.part.0", "a(int, ...)", "a(int) [clone .isra.0]"};

	for (u32 i = 0; i < ARRAY_SIZE(hot); i++) {
		struct calls_graph *g;
		struct calls_thread *t;
		char cold[60];

		snprintf(cold, sizeof(cold), i < 2 ? "%s.cold" : "%s [clone .cold]", hot[i]);
		names[0] = hot[i];
		names[1] = cold;
		g = new_graph(true);
		t = calls_thread_new(g, 1);
		run(t, g, C, 1, PATH_CALL);
		run(t, g, A, 1, PATH_CALL);
		run(t, g, A, 1, PATH_JUMP);
		run(t, g, B, 3, PATH_JUMP_IND);
		run(t, g, A + 0x20, 5, PATH_RETURN);
		run(t, g, A + 1, 1, PATH_RETURN);
		run(t, g, C + 1, 1, PATH_PLAIN);
		take(g);
		EXPECT_EQ(self_of(hot[i], 0), 2);
		EXPECT_EQ(self_of(hot[i], 1), 1);
		EXPECT_EQ(self_of(cold, 0), 8);
		EXPECT_EQ(call_of("c", hot[i], 0)->cost, 11);
		calls_graph_free(g);
	}
	names[0] = "a";
	names[1] = "b";
}

TEST(a_return_to_an_earlier_caller_ends_all_between)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 1, PATH_CALL);
	run(t, g, C, 1, PATH_RETURN);
	run(t, g, B + 1, 1, PATH_CALL);
	run(t, g, C, 1, PATH_RETURN);
	run(t, g, A + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 2);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 4);
	calls_graph_free(g);
}

TEST(a_return_to_where_nobody_called_from_is_a_call)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 1, PATH_RETURN);
	run(t, g, C, 1, PATH_RETURN);
	run(t, g, A + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(call_of("b", "c", 0)->count, 1);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 2);
	EXPECT_EQ(self_of("a", 0), 2);
	calls_graph_free(g);
}

TEST(handlers_of_signals_are_nobodys_calls)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 2, PATH_PLAIN);
	calls_signal(t);
	run(t, g, C, 3, PATH_CALL);
	run(t, g, D, 4, PATH_RETURN);
	run(t, g, C + 3, 1, PATH_PLAIN);
	calls_signal_return(t);
	run(t, g, B + 2, 1, PATH_RETURN);
	run(t, g, A + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 3);
	EXPECT_EQ(call_of("c", "d", 0)->cost, 4);
	EXPECT_EQ(self_of("c", 0), 4);
	EXPECT_EQ(got.summary, 5);
	EXPECT_EQ(got.nr_calls, 2);
	calls_graph_free(g);
}

TEST(collecting_is_toggled_by_a_function)
{
	struct calls_graph *g;
	struct calls_thread *t;

	toggled = "b";
	g = new_graph(false);
	t = calls_thread_new(g, 1);
	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 2, PATH_CALL);
	run(t, g, C, 3, PATH_RETURN);
	run(t, g, B + 2, 1, PATH_RETURN);
	run(t, g, A + 1, 1, PATH_CALL);
	run(t, g, C, 1, PATH_RETURN);
	take(g);
	EXPECT_EQ(self_of("a", 0), 0);
	EXPECT_EQ(self_of("b", 0), 3);
	EXPECT_EQ(self_of("c", 0), 3);
	EXPECT_EQ(got.summary, 6);
	toggled = "";
	calls_graph_free(g);
}

/* What is taken in between is told once; open calls are told of in parts. */
TEST(parts)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 2, PATH_PLAIN);
	on_dump(NULL, g, "now");
	EXPECT_EQ(call_of("a", "b", 0)->cost, 2);
	EXPECT_EQ(call_of("a", "b", 0)->count, 1);
	EXPECT_EQ(got.summary, 3);
	run(t, g, B + 2, 3, PATH_RETURN);
	run(t, g, A + 1, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 3);
	EXPECT_EQ(call_of("a", "b", 0)->count, 0);
	EXPECT_EQ(got.summary, 4);
	EXPECT_EQ(self_of("b", 0), 3);
	calls_graph_free(g);
}

TEST(what_asks_is_counted_when_it_is_answered)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, A, 1, PATH_CALL);
	run(t, g, B, 2, PATH_PLAIN);
	calls_uncount(t);
	on_dump(NULL, g, "asked");
	EXPECT_EQ(self_of("b", 0), 0);
	EXPECT_EQ(got.summary, 1);
	calls_recount(t);
	run(t, g, B + 2, 1, PATH_RETURN);
	run(t, g, A + 1, 4, PATH_PLAIN);
	calls_uncount(t);
	calls_toggle_collect(t);
	calls_recount(t);
	take(g);
	EXPECT_EQ(self_of("b", 0), 3);
	EXPECT_EQ(call_of("a", "b", 0)->cost, 3);
	EXPECT_EQ(self_of("a", 0), 0);
	calls_graph_free(g);
}

TEST(what_was_called_before_is_found_when_it_returns)
{
	struct calls_graph *g = new_graph(true);
	struct calls_thread *t = calls_thread_new(g, 1);

	run(t, g, C + 7, 1, PATH_CALL);
	run(t, g, D, 2, PATH_RETURN);
	run(t, g, C + 8, 1, PATH_RETURN);
	run(t, g, B + 3, 5, PATH_PLAIN);
	take(g);
	EXPECT_EQ(call_of("b", "c", 0)->count, 1);
	EXPECT_EQ(call_of("b", "c", 0)->cost, 4);
	EXPECT_EQ(call_of("b", "c", 0)->site, B + 2);
	EXPECT_EQ(self_of("b", 0), 5);
	/* Once more from nothing. */
	calls_forget(g);
	run(t, g, D + 5, 1, PATH_RETURN);
	run(t, g, A + 9, 1, PATH_PLAIN);
	take(g);
	EXPECT_EQ(call_of("a", "d", 0)->cost, 1);
	EXPECT_EQ(got.summary, 2);
	calls_zero(g);
	take(g);
	EXPECT_EQ(got.nr_costs + got.nr_calls + got.summary, 0);
	calls_graph_free(g);
	calls_profile_release(&got);
}

static int put_piece(const struct calls_piece *piece, void *data)
{
	char *at = (char *)data + strlen(data);

	at += sprintf(at, "%llx:%llu<", (unsigned long long)piece->pc[0],
		      (unsigned long long)piece->count * piece->n);
	for (u32 i = 0; i < piece->nr_callers; i++)
		at += sprintf(at, "%llx ", (unsigned long long)piece->callers[i]);
	strcpy(at, ";");
	return 0;
}

TEST(a_tree_tells_each_way_to_a_function)
{
	const struct calls_opts opts = {
		.recursions = 1, .collect = true, .tree = true, .find = find};
	struct calls_graph *g = calls_graph_new(&opts);
	struct calls_thread *t = calls_thread_new(g, 7);
	static char text[2000];

	run(t, g, A, 4, PATH_CALL);       /* a calls b, */
	run(t, g, B, 5, PATH_CALL);       /* which calls c */
	run(t, g, C, 7, PATH_RETURN);     /* and */
	run(t, g, B + 5, 1, PATH_RETURN); /* returns */
	run(t, g, A + 4, 2, PATH_CALL);   /* a calls c, */
	run(t, g, C, 7, PATH_CALL);       /* which calls a: that is where it was */
	run(t, g, A, 4, PATH_RETURN);
	run(t, g, C + 7, 1, PATH_JUMP); /* c goes on as d: within that jump */
	run(t, g, D, 3, PATH_RETURN);
	run(t, g, A + 6, 1, PATH_JUMP);
	calls_finish(g);
	EXPECT_EQ(calls_tree(g, put_piece, text), 0);
	EXPECT_CONTAINS(text, "1000:4<;");
	EXPECT_CONTAINS(text, "1100:5<1004 ;");
	EXPECT_CONTAINS(text, "1200:7<1105 1004 ;");
	EXPECT_CONTAINS(text, "1200:7<1006 ;");
	EXPECT_CONTAINS(text, "1300:3<1208 1006 ;");
	EXPECT_CONTAINS(text, "1006:1<;");
	calls_graph_free(g);
}

static u64 modeled_sum[4]; /* by event */

static int put_modeled(const struct calls_piece *piece, void *data)
{
	char *at = strchr((char *)data, 0);

	modeled_sum[piece->event & 3] += piece->count;
	at += sprintf(at, "%u.%llx-%llx@%llx:%llu<", piece->event, (unsigned long long)piece->pc[0],
		      (unsigned long long)piece->pc[piece->n - 1], (unsigned long long)piece->addr,
		      (unsigned long long)piece->count);
	for (u32 i = 0; i < piece->nr_callers; i++)
		at += sprintf(at, "%llx ", (unsigned long long)piece->callers[i]);
	strcpy(at, ";");
	return 0;
}

/* As run(), with @n events. */
static void run_modeled(struct calls_thread *t, struct calls_graph *g, u64 pc, u32 insns, u8 kind,
			const struct path_event *event, u32 n)
{
	calls_run_modeled(t, span(g, pc, insns, kind), event, n);
}

static const char *modeled(struct calls_graph *g)
{
	static char text[4000];

	*text = 0;
	memset(modeled_sum, 0, sizeof(modeled_sum));
	calls_finish(g);
	EXPECT_EQ(calls_tree_modeled(g, put_modeled, text), 0);
	return text;
}

TEST(what_a_model_counts_is_that_of_each_way)
{
	const struct calls_opts opts = {
		.recursions = 1, .collect = true, .tree = true, .find = find};
	struct calls_graph *g = calls_graph_new(&opts);
	struct calls_thread *t = calls_thread_new(g, 7);
	struct path_event e[] = {{.count = 10},
				 {.pc = C + 1, .addr = 0x7009, .count = 2, .event = 1}};
	struct path_event wrong = {.pc = B + 4, .count = 1, .event = 2, .flags = PATH_EVENT_BRANCH};
	const char *text;

	run_modeled(t, g, A, 4, PATH_CALL, e, 1);
	run_modeled(t, g, B, 5, PATH_CALL_IND, e, 1);
	/* Where the call of b went was not foreseen: that is b's. */
	calls_run_modeled(
		t, span(g, C, 7, PATH_RETURN),
		(struct path_event[]){
			wrong, e[0], e[1], {.count = 5, .event = 3, .flags = PATH_EVENT_UNKNOWN}},
		4);
	run_modeled(t, g, B + 5, 1, PATH_RETURN, e, 1);
	run_modeled(t, g, A + 4, 2, PATH_CALL, NULL, 0);
	run_modeled(t, g, C, 7, PATH_RETURN, e, 2);
	/* Again; 8 bytes are one place. */
	run_modeled(t, g, A + 4, 2, PATH_CALL, NULL, 0);
	e[1].addr = 0x700f;
	run_modeled(t, g, C, 7, PATH_RETURN, e, 2);
	/* Nothing was executed that is known: it is whose turn it was, or nobody's. */
	calls_run_modeled(t, NULL, e, 2);
	text = modeled(g);
	EXPECT_CONTAINS(text, "0.1000-1003@0:10<;");
	EXPECT_CONTAINS(text, "0.1100-1104@0:10<1004 ;");
	EXPECT_CONTAINS(text, "2.1104-1104@0:1<1004 ;");
	EXPECT_CONTAINS(text, "0.1200-1206@0:10<1105 1004 ;");
	EXPECT_CONTAINS(text, "1.1201-1201@7008:2<1105 1004 ;");
	EXPECT_CONTAINS(text, "1.1201-1201@7008:2<1006 ;");
	EXPECT_EQ(modeled_sum[0], 70);
	EXPECT_EQ(modeled_sum[1], 8);
	EXPECT_EQ(modeled_sum[3], 5);
	calls_graph_free(g);
}

/* A path over several functions, and through a slot that is its caller's. */
TEST(what_a_path_costs_is_that_of_its_parts)
{
	const struct calls_opts opts = {
		.recursions = 1, .collect = true, .tree = true, .find = find};
	struct calls_graph *g = calls_graph_new(&opts);
	struct calls_thread *t = calls_thread_new(g, 7);
	const struct path_step steps[] = {{.pc = A, .len = 1},
					  {.pc = A + 1, .len = 1, .kind = PATH_CALL},
					  {.pc = PLT, .len = 1, .kind = PATH_JUMP},
					  {.pc = B, .len = 1},
					  {.pc = B + 1, .len = 1},
					  {.pc = B + 2, .len = 1, .kind = PATH_RETURN}};
	struct path_event e[] = {{.count = 16},
				 {.pc = A, .count = 1, .event = 1},
				 {.pc = PLT, .count = 2, .event = 1},
				 {.pc = B + 2, .count = 4, .event = 1},
				 {.pc = 0x8888, .count = 8, .event = 2}};
	const char *text;

	calls_run_modeled(t, calls_span_new(g, steps, ARRAY_SIZE(steps)), e, ARRAY_SIZE(e));
	text = modeled(g);
	EXPECT_CONTAINS(text, "0.1000-1001@0:5<;");
	EXPECT_CONTAINS(text, "0.1001-1001@0:3<;");
	EXPECT_CONTAINS(text, "0.1100-1102@0:8<1002 ;");
	EXPECT_CONTAINS(text, "1.1000-1000@0:1<;");
	EXPECT_CONTAINS(text, "1.1001-1001@0:2<;");
	EXPECT_CONTAINS(text, "1.1102-1102@0:4<1002 ;");
	EXPECT_EQ(modeled_sum[0], 16);
	EXPECT_EQ(modeled_sum[1], 7);
	EXPECT_EQ(modeled_sum[2], 8);
	calls_graph_free(g);
}

/* What the kernel calls in the middle of a, twice. */
static void run_handler(struct calls_thread *t, struct calls_graph *g)
{
	run(t, g, A, 2, PATH_PLAIN);
	for (u32 i = 0; i < 2; i++) {
		calls_signal(t);
		run(t, g, B, 3, PATH_CALL);
		run(t, g, C, 7, PATH_RETURN);
		run(t, g, B + 3, 1, PATH_RETURN);
		calls_signal_return(t);
		run(t, g, A + 2, 1, PATH_PLAIN);
	}
}

TEST(a_handler_toggles_in_a_tree)
{
	const struct calls_opts opts = {.recursions = 1, .tree = true, .find = find};
	struct calls_graph *g;
	char text[1000] = "";

	toggled = "b";
	g = calls_graph_new(&opts);
	run_handler(calls_thread_new(g, 7), g);
	EXPECT_EQ(calls_tree(g, put_piece, text), 0);
	EXPECT_STREQ(text, "1103:1<;1200:7<1103 ;1100:3<;1103:1<;1200:7<1103 ;1100:3<;");
	calls_graph_free(g);
	/* For callgrind nobody has called it. */
	g = new_graph(false);
	run_handler(calls_thread_new(g, 7), g);
	take(g);
	EXPECT_EQ(self_of("b", 0) + self_of("c", 0) + got.summary, 0);
	toggled = "";
	calls_graph_free(g);
	calls_profile_release(&got);
}

TEST(what_a_model_counts_in_a_region)
{
	const struct calls_opts opts = {.recursions = 1, .tree = true, .find = find};
	struct calls_graph *g;
	struct calls_thread *t;
	const struct path_event e[] = {
		{.pc = A + 3, .count = 1, .event = 2, .flags = PATH_EVENT_BRANCH}, {.count = 3}};

	toggled = "b";
	g = calls_graph_new(&opts);
	t = calls_thread_new(g, 7);
	run_modeled(t, g, A, 4, PATH_CALL_IND, e + 1, 1);
	/* What a has not foreseen is no part of b. */
	run_modeled(t, g, B, 5, PATH_CALL, e, 2);
	run_modeled(t, g, C, 7, PATH_RETURN, e + 1, 1);
	run_modeled(t, g, B + 5, 1, PATH_RETURN, e + 1, 1);
	run_modeled(t, g, A + 4, 2, PATH_JUMP, e + 1, 1);
	toggled = "";
	modeled(g);
	EXPECT_EQ(modeled_sum[0], 9);
	EXPECT_EQ(modeled_sum[2], 0);
	calls_graph_free(g);
}
