/*
 * The accesses that the model is told of, in order, are those that Zydis sees in native single
 * steps; and with the filter, but for those that an obvious filter leaves out. The functions of the
 * model are this test's: they note what they are told.
 */
#include "model/feed.h"
#include "model/model-priv.h"
#include "unit/dbt/seen_accesses.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define MASK guest_mask(DBT_MASK_ALL | DBT_MASK_TRACE | DBT_MASK_MEMORY)

/* The filter of the translator; few sets, so that it lets much through. */
#define LINE_SHIFT 6u
#define SETS       8u

static bool filtered, plain;

u64 snip_operands(void *memory), snip_strings(void *memory), snip_touch(void *memory);
u64 snip_groups(void *memory), snip_strings_among(void *memory);
u64 snip_emulated(void *memory), snip_bit_tests(void *memory);
u64 snip_tiles(void *memory);
u64 snip_xsave(void *memory, u64 features), snip_xsavec(void *memory, u64 features);
u64 snip_xsavec_initial(void *memory, u64 features);

/* What the model was told. */
static struct {
	struct noted at[1 << 20];
	u64 n;
} told;

/* It is told nothing that it would keep. */
static struct model_core core_told;

static void note(u64 ip, u64 addr, u32 size, char kind)
{
	if (told.n < ARRAY_SIZE(told.at))
		told.at[told.n++] = (struct noted){ip, addr, size, kind};
}

struct model_access model_load(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	(void)core;
	note(ip, addr, size, 'l');
	return (struct model_access){0};
}

struct model_access model_store(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	(void)core;
	note(ip, addr, size, 's');
	return (struct model_access){0};
}

void model_strings(struct model_core *core, u64 ip, struct model_string *s, u32 nr, u64 n,
		   bool down)
{
	for (; n; n--) {
		for (u32 i = 0; i < nr; i++) {
			(s[i].stores ? model_store : model_load)(core, ip, s[i].at, s[i].size);
			s[i].at += down ? -(u64)s[i].size : s[i].size;
		}
	}
}

void model_prefetch(struct model_core *core, u64 addr)
{
	(void)core;
	note(0, addr, 0, 'p');
}

static u64 hits;

void model_hits(struct model_core *core, u64 loads, u64 stores)
{
	(void)core;
	hits += loads + stores;
}

void model_fetch(struct model_core *core, u64 addr, u32 len)
{
	(void)core;
	(void)addr;
	(void)len;
}

void model_fetch_lines(struct model_core *core, u64 first, u64 last, u32 *near)
{
	(void)core;
	(void)first;
	(void)last;
	(void)near;
}

u64 model_count(const struct model_core *core, enum model_counter counter)
{
	(void)core;
	(void)counter;
	return 0;
}

void model_work(struct model_core *core, u32 insns, u64 ticks)
{
	(void)core;
	(void)insns;
	(void)ticks;
}

const struct machine *model_machine(const struct model *model)
{
	static struct machine m = {.memory.line = 64, .core.width = 4};

	(void)model;
	return &m;
}

static void *zeroes(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static struct path_space *space;
static bool wanted_left; /* seen lacks what the filter leaves out */
static struct feed *feed;
static struct feed_thread feeding;

static void on_trace(struct guest *g, const u32 *words, u32 n, const u64 *slots, u64 nr_slots)
{
	feed_words(feed, &feeding, &core_told,
		   &(struct feed_input){.words = words,
					.nr_words = n,
					.slots = slots,
					.nr_slots = nr_slots,
					.records = (const struct path_record *)slots,
					.nr_records = filtered ? nr_slots / 2 : 0,
					.trace = g->trace_at});
}

static void tracing(struct guest *g)
{
	g->on_trace = on_trace;
	if (space)
		return;
	space = zeroes(sizeof(*space));
	feed = zeroes(sizeof(*feed));
	feed_init(feed, NULL, space, MODEL_CACHES, false);
	dbt_paths(g->t, space);
}

static bool is_last(const u64 *table, u64 line)
{
	return table[line % SETS] == line;
}

/* What a filter leaves out that knows all that came before goes from @list. */
static u64 leave_out(struct noted *list, u64 n)
{
	u64 load[SETS] = {0}, store[SETS] = {0}, left = 0;

	for (u64 i = 0; i < n; i++) {
		const struct noted *a = &list[i];
		u64 line = (a->addr >> LINE_SHIFT) + 1;
		u64 last = ((a->addr + a->size - 1) >> LINE_SHIFT) + 1;

		if (a->kind == 'p') {
			list[left++] = *a;
			continue;
		}
		if ((line == last || plain) &&
		    is_last(a->kind == 's' && !plain ? store : load, line) &&
		    is_last(a->kind == 's' && !plain ? store : load, last))
			continue;
		for (; line <= last; line++) {
			if (load[line % SETS] != line)
				store[line % SETS] = 0;
			load[line % SETS] = line;
			if (a->kind == 's')
				store[line % SETS] = line;
		}
		list[left++] = *a;
	}
	return left;
}

static bool same(const struct noted *a, const struct noted *b)
{
	return a->ip == b->ip && a->addr == b->addr && a->size == b->size && a->kind == b->kind;
}

static void compare(const char *name)
{
	static u64 wanted_all;

	if (filtered) {
		if (!wanted_left) {
			wanted_all = seen.n + (plain ? seen.twice : 0);
			if (plain)
				see_no_stores_back();
			seen.n = leave_out(seen.at, seen.n);
			wanted_left = true;
		}
		EXPECT_EQ(told.n + hits, wanted_all);
		told.n = leave_out(told.at, told.n);
	}
	for (u64 i = 0; i < told.n && i < seen.n; i++) {
		const struct noted *is = &told.at[i], *should = &seen.at[i];

		if (same(is, should))
			continue;
		TEST_FAIL("%s, access %llu of %llu: %c %#llx by %#llx, %u bytes; not %c %#llx by "
			  "%#llx, %u bytes",
			  name, (unsigned long long)i, (unsigned long long)seen.n, is->kind,
			  (unsigned long long)is->addr, (unsigned long long)is->ip, is->size,
			  should->kind, (unsigned long long)should->addr,
			  (unsigned long long)should->ip, should->size);
		return;
	}
	EXPECT_EQ(told.n, seen.n);
}

static void check_run(struct guest *g, const struct program *p, u64 period)
{
	dbt_trace_flush(g->t);
	feed_settle(feed, &feeding, &core_told);
	g->nr_traced = told.n = hits = 0;
	dbt_filter_forget(g->t);
	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	if (period)
		stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	if (period)
		stops_end(g);
	dbt_trace_flush(g->t);
	feed_settle(feed, &feeding, &core_told);
	EXPECT_EQ(feed->unknown, 0);
	compare(p->name);
}

static void want_program(struct guest *g, const struct program *p)
{
	tracing(g);
	see_program(g, p);
	feeding.fs_base = seen.fs_base;
	feeding.gs_base = seen.gs_base;
	wanted_left = false;
}

static void filter_on(struct guest *g, u64 mask)
{
	dbt_filter(LINE_SHIFT, SETS, plain);
	filtered = true;
	mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_NONE);
	dbt_set_mask(g->t, mask | DBT_MASK_FILTER);
}

static void filter_off(struct guest *g)
{
	dbt_set_mask(g->t, DBT_MASK_ALL);
	mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_READ | PROT_WRITE);
	filtered = false;
}

static const u64 periods[] = {1, 3, 10, 1009};

static void check_filter(struct guest *g, const struct program *p)
{
	filter_on(g, MASK);
	check_run(g, p, 0);
	check_run(g, p, 0);
	dbt_set_mask(g->t, guest_mask(MASK | DBT_MASK_FILTER | DBT_MASK_PATHS |
				      DBT_MASK_DEADLINES(METER_INSTRUCTIONS)));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, periods[i]);
	dbt_check(g->t);
	filter_off(g);
}

static void check_program(struct guest *g, const struct program *p)
{
	want_program(g, p);
	dbt_set_mask(g->t, MASK);
	check_run(g, p, 0);
	check_run(g, p, 0);
	dbt_set_mask(g->t,
		     guest_mask(MASK | DBT_MASK_PATHS | DBT_MASK_DEADLINES(METER_INSTRUCTIONS)));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, periods[i]);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	dbt_check(g->t);
	check_filter(g, p);
}

/* Not of what elements tell, which this filter takes for an access of the operand. */
static void check_plain(struct guest *g, const struct program *p)
{
	want_program(g, p);
	plain = true;
	check_filter(g, p);
	plain = false;
}

TEST(of_programs)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i]);
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_plain(guest_main(), &snip_programs[i]);
}

static u8 memory[12288] __attribute__((aligned(4096)));

static const struct program forms[] = {{"operands", snip_operands, {(u64)memory}},
				       {"strings", snip_strings, {(u64)memory}},
				       {"groups", snip_groups, {(u64)memory}},
				       {"emulated", snip_emulated, {(u64)memory}},
				       {"bit tests", snip_bit_tests, {(u64)memory}}};

TEST(of_each_kind_of_operand)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++)
		check_program(guest_main(), &forms[i]);
	for (u32 i = 0; i < 3; i++)
		check_plain(guest_main(), &forms[i]);
}

/* Of components that snippets do not use nothing is asked. */
TEST(of_extended_state)
{
	u32 a = 1, b, c = 0, d, features = 2;
	struct program p = {"xsave", snip_xsave, {(u64)memory}};

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(c & BIT(27)))
		return;
	if (c & BIT(28))
		features |= 4;
	p.abc[1] = features;
	memset(memory, 0, sizeof(memory));
	check_program(guest_main(), &p);
	a = 0xd;
	c = 1;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(a & BIT(1)))
		return;
	p.name = "xsavec";
	p.fn = snip_xsavec;
	memset(memory, 0, sizeof(memory));
	check_program(guest_main(), &p);
	p.name = "xsavec of initial state";
	p.fn = snip_xsavec_initial;
	memset(memory, 0, sizeof(memory));
	seen_initial_state = true;
	check_program(guest_main(), &p);
	seen_initial_state = false;
}

#define REQ_XCOMP_PERM  0x1023
#define XCOMP_TILE_DATA 18

TEST(of_rows_of_tiles)
{
	static const struct program p = {"tiles", snip_tiles, {(u64)memory}};
	u32 a = 7, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(d & BIT(24)) || syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XCOMP_TILE_DATA))
		return;
	memset(memory, 0, sizeof(memory));
	memory[0] = 1;
	for (u32 i = 0; i < ARRAY_SIZE(seen_tile_rows); i++) {
		memory[16 + 2 * i] = (u8)seen_tile_bytes[i];
		memory[48 + i] = seen_tile_rows[i];
	}
	check_program(guest_main(), &p);
}

/* Several buffers full. */
TEST(of_more_than_a_buffer)
{
	static const struct program p = {"table", snip_table, {9000}};
	struct guest *g = guest_main();

	want_program(g, &p);
	dbt_set_mask(g->t, MASK);
	check_run(g, &p, 0);
	EXPECT(g->nr_traced > 2 * PATH_TRACE_SIZE / 4 || g->nr_traced == g->max_traced);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	filter_on(g, MASK);
	check_run(g, &p, 0);
	filter_off(g);
}

TEST(in_a_storm_of_signals)
{
	static const struct program programs[] = {{"fib", snip_fib, {15}},
						  {"table", snip_table, {3000}},
						  {"operands", snip_operands, {(u64)memory}},
						  {"groups", snip_groups, {(u64)memory}},
						  {"strings", snip_strings, {(u64)memory}}};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		want_program(guest_main(), &programs[i]);
		for (u32 deadlines = 0; deadlines < 2; deadlines++) {
			dbt_set_mask(guest_main()->t,
				     MASK | (deadlines ? DBT_MASK_DEADLINES(0) : 0));
			setitimer(ITIMER_REAL, &tick, NULL);
			for (u32 k = 0; k < 20; k++)
				check_run(guest_main(), &programs[i], deadlines ? 500 + k * 37 : 0);
			setitimer(ITIMER_REAL, &off, NULL);
		}
		for (u32 deadlines = 0; deadlines < 2; deadlines++) {
			plain = programs[i].fn == snip_groups && deadlines;
			if (plain)
				want_program(guest_main(), &programs[i]);
			filter_on(guest_main(), MASK | (deadlines ? DBT_MASK_DEADLINES(0) : 0));
			setitimer(ITIMER_REAL, &tick, NULL);
			for (u32 k = 0; k < 20; k++)
				check_run(guest_main(), &programs[i], deadlines ? 500 + k * 37 : 0);
			setitimer(ITIMER_REAL, &off, NULL);
			filter_off(guest_main());
			plain = false;
		}
	}
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

TEST(wherever_a_signal_comes)
{
	const struct program programs[] = {{"loop", snip_loop, {3}},
					   {"deep", snip_deep, {2}},
					   {"spilled", snip_spilled, {0}},
					   {"longjmp", snip_longjmp, {0}},
					   forms[0],
					   forms[1]};
	struct guest *g = guest_main();

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		feeding.string_ends = 0;
		want_program(g, &programs[i]);
		dbt_set_mask(g->t, MASK);
		/* Operands and strings are long. */
		for (g->step = 1;; g->step += i < 4 ? 1 : 5) {
			check_run(g, &programs[i], 0);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		dbt_set_mask(g->t, DBT_MASK_ALL);
		filter_on(g, MASK);
		/* Its code is longer. */
		for (g->step = 1;; g->step += i < 4 ? 7 : 19) {
			check_run(g, &programs[i], 0);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		filter_off(g);
		/* One that repeats is left between its iterations. */
		EXPECT_EQ(feeding.string_ends > 0, programs[i].fn == snip_strings);
	}
}

/* Accesses behind an interrupted string are to be let through again, or the order is another. */
TEST(between_iterations_with_a_plain_filter)
{
	static const struct program p = {"strings", snip_strings_among, {(u64)memory}};
	struct guest *g = guest_main();
	u32 strings = 0;

	want_program(g, &p);
	plain = true;
	filter_on(g, MASK);
	for (g->step = 1;; g->step += 97) {
		feeding.string_ends = 0;
		check_run(g, &p, 0);
		strings += feeding.string_ends > 0;
		if (g->stepped < g->step || test_failures || strings == 4)
			break;
	}
	g->step = 0;
	filter_off(g);
	plain = false;
	/* Of the steps one in ten is an iteration. */
	EXPECT(strings);
}

/*
 * An access that faults has been recorded, and its line noted as accessed, when it has not retired.
 * The record is taken back; when the program executes it again it is no access to a known line.
 */
TEST(of_instructions_that_fault_first)
{
	static const struct program p = {"touch", snip_touch, {(u64)memory}};
	struct guest *g = guest_main();

	want_program(g, &p);
	for (u32 i = 0; i < 2; i++) {
		u32 faults = 0;

		dbt_set_mask(g->t, DBT_MASK_ALL);
		if (i)
			filter_on(g, MASK);
		else
			dbt_set_mask(g->t, MASK);
		dbt_trace_flush(g->t);
		feed_settle(feed, &feeding, &core_told);
		told.n = hits = 0;
		dbt_filter_forget(g->t);
		native_begin(g, p.fn, p.abc);
		/*
		 * To be read, then to be written: what it may not do is allowed when it has tried.
		 */
		mprotect(memory, sizeof(memory), PROT_NONE);
		while (guest_run(g) == SIGSEGV && faults < 2) {
			EXPECT_EQ(g->fault_addr & ~4095ull, (u64)memory);
			mprotect(memory, sizeof(memory),
				 faults++ ? PROT_READ | PROT_WRITE : PROT_READ);
		}
		EXPECT_EQ(faults, 2);
		EXPECT_EQ(g->t->regs.rip, GUEST_DONE);
		dbt_trace_flush(g->t);
		feed_settle(feed, &feeding, &core_told);
		compare(p.name);
	}
	filter_off(g);
}
