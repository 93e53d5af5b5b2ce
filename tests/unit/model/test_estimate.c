/* What a model estimates of programs that it sees in windows, against one that sees all. */
#include "unit/model/machines.h"
#include "unit/test.h"

#define FIRST  20000u
#define WINDOW 500u
#define EVERY  32000u

static struct model *whole, *windowed;
static u64 accesses;

static void begin(const struct machine *m)
{
	whole = model_new(m, 1, MODEL_CACHES | MODEL_TLBS);
	windowed = model_new(m, 1, MODEL_CACHES | MODEL_TLBS);
	model_window(model_core(windowed, 0), 1, false);
	accesses = 0;
}

static void end(void)
{
	model_weigh(model_core(windowed, 0));
}

static void done(void)
{
	model_free(whole);
	model_free(windowed);
}

static struct model_access access_to(struct model *model, u64 addr, bool stores)
{
	struct model_core *core = model_core(model, 0);

	return stores ? model_store(core, 1, addr, 8) : model_load(core, 1, addr, 8);
}

/* The windows lie at the end of their periods. */
static void use(u64 addr, bool stores)
{
	struct model_core *core = model_core(windowed, 0);
	u64 n = accesses++, at = n < FIRST ? 0 : (n - FIRST) % EVERY + 1;
	u64 warm = EVERY - 3 * WINDOW;

	access_to(whole, addr, stores);
	if (at == 1 || at == warm + 1 || at == EVERY - WINDOW + 1) {
		model_weigh(core);
		if (at != 1)
			model_window(core, at == warm + 1 ? 0 : EVERY / WINDOW, at == warm + 1);
	}
	if (!at || at > warm)
		access_to(windowed, addr, stores);
}

static void load(u64 addr)
{
	use(addr, false);
}

static u64 count_of(struct model *model, u32 id)
{
	return model_count(model_core(model, 0), model_cache_counter(id, MODEL_READ, true));
}

/* Percent of what is counted if all is seen. */
static u64 percent(u32 id)
{
	return count_of(windowed, id) * 100 / count_of(whole, id);
}

static struct machine large_machine(void)
{
	struct machine m = small_machine();

	set_cache(&m, MACHINE_LL, 4 << 20, 16);
	m.tlb[MACHINE_TLB2] = (struct machine_tlb){.entries = 1024, .ways = 8, .latency = 7};
	return m;
}

/* Most lines are first used in a gap, and once each is new. */
TEST(lines_that_are_used_again)
{
	struct machine m = large_machine();
	u64 state = 4711;

	begin(&m);
	for (u32 i = 0; i < 4000000; i++)
		load(random_number(&state) % (2 << 20) & ~7ull);
	end();
	EXPECT_EQ(count_of(whole, MODEL_LL), (2 << 20) / 64);
	EXPECT(percent(MODEL_LL) > 80 && percent(MODEL_LL) < 120);
	EXPECT_EQ(count_of(whole, MODEL_DTLB), (2 << 20) / 4096);
	EXPECT(percent(MODEL_DTLB) > 90 && percent(MODEL_DTLB) < 110);
	done();
}

/* Somebody has been told of what the half of a window has counted: none of it is taken back. */
TEST(what_has_been_told)
{
	struct machine m = large_machine();
	struct model_core *core;
	u64 state = 4711, begins = 0, told, kept = 0;

	begin(&m);
	core = model_core(windowed, 0);
	for (u32 i = 0; i < FIRST + 40 * EVERY; i++) {
		u64 at = i < FIRST ? 0 : (i - FIRST) % EVERY + 1;

		load(random_number(&state) % (2 << 20) & ~7ull);
		/* Weighed with the first access of the window, which may have been a miss. */
		if (at == EVERY - WINDOW + 1)
			begins = count_of(windowed, MODEL_LL);
		if (at != EVERY - WINDOW / 2)
			continue;
		told = begins + (count_of(windowed, MODEL_LL) - begins) * (EVERY / WINDOW);
		model_keep(core);
		model_weigh(core);
		EXPECT(count_of(windowed, MODEL_LL) >= told);
		kept += told > begins;
	}
	EXPECT(kept > 10);
	end();
	done();
}

TEST(lines_that_are_used_once)
{
	struct machine m = large_machine();

	begin(&m);
	for (u64 i = 0; i < 4000000; i++)
		load(i * 16);
	end();
	EXPECT(percent(MODEL_LL) > 97 && percent(MODEL_LL) < 103);
	EXPECT(percent(MODEL_DTLB) > 90 && percent(MODEL_DTLB) < 110);
	done();
}

/* Beside what is used again and again there are lines that are not. */
TEST(lines_of_both_kinds)
{
	struct machine m = large_machine();
	u64 state = 4711;

	begin(&m);
	for (u64 i = 0; i < 4000000; i++)
		load(i % 4 ? random_number(&state) % (1 << 20) & ~7ull : (1ull << 32) + i * 8);
	end();
	EXPECT(percent(MODEL_LL) > 90 && percent(MODEL_LL) < 110);
	done();
}

/* What is loaded has been stored before, though mostly in a gap. */
TEST(lines_that_are_stored_first)
{
	struct machine m = large_machine();
	u64 state = 4711, stored = 64, lines;

	begin(&m);
	for (u64 i = 0; i < 4000000; i++) {
		if (i % 64 == 0)
			stored += 64;
		use(i % 64 ? random_number(&state) % stored & ~7ull : stored - 64, i % 64 == 0);
	}
	end();
	lines = model_count(model_core(whole, 0), model_cache_counter(MODEL_LL, MODEL_WRITE, true));
	EXPECT(lines > 60000);
	EXPECT(count_of(whole, MODEL_LL) < 10);
	EXPECT(count_of(windowed, MODEL_LL) < lines / 10);
	done();
}

/* More lines than there is room for: what is not known of the rest is no hit. */
TEST(lines_that_do_not_fit)
{
	struct machine m = large_machine();
	u64 state = 4711;

	begin(&m);
	for (u32 i = 0; i < 4000000; i++)
		load(random_number(&state) % (16 << 20) & ~7ull);
	end();
	EXPECT(percent(MODEL_LL) > 90 && percent(MODEL_LL) < 110);
	done();
	begin(&m);
	for (u64 i = 0; i < 4000000; i++)
		load(i * 16 % (16 << 20));
	end();
	EXPECT(percent(MODEL_LL) > 80 && percent(MODEL_LL) < 105);
	done();
}
