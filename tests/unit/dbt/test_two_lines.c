/*
 * With a filter that knows the last two lines of each set, caches that are told of what it lets
 * through miss what they miss if they are told of all accesses, in that order. All accesses are
 * those that Zydis sees in native single steps.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit/dbt/seen_accesses.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#define MASK       (DBT_MASK_ALL | DBT_MASK_TRACE | DBT_MASK_MEMORY | DBT_MASK_FILTER)
#define LINE_SHIFT 6u

u64 snip_operands(void *memory), snip_strings(void *memory), snip_groups(void *memory);

/* LRU, the line that was used last first. */
#define CACHE_SETS 32u
#define CACHE_WAYS 3u

struct cache_of {
	u32 sets, ways;
	u64 line[CACHE_SETS][CACHE_WAYS];
};

/* False: it was not there; and is not now if it is only used @again. */
static bool use(struct cache_of *c, u64 line, bool again)
{
	u64 *set = c->line[line % c->sets];
	u32 at = 0;
	bool hit;

	while (at < c->ways - 1 && set[at] != line)
		at++;
	hit = set[at] == line;
	if (hit || !again) {
		memmove(set + 1, set, at * sizeof(*set));
		set[0] = line;
	}
	return hit;
}

struct lines {
	u64 at[1 << 20];
	u64 n;
};

static void miss(struct lines *missed, struct cache_of *c, u64 addr, u32 size)
{
	for (u64 line = addr >> LINE_SHIFT; line <= (addr + size - 1) >> LINE_SHIFT; line++)
		if (!use(c, line, false) && missed->n < ARRAY_SIZE(missed->at))
			missed->at[missed->n++] = line;
}

/* What the thread has told, each with the number of its word since the run began. */
static struct {
	struct path_record at[1 << 20];
	u64 n, accesses, agains;
	u32 words;
} told;

static u32 words_at_once; /* that are handed over; 0: as many as there is room for */

static void on_trace(struct guest *g, const u32 *words, u32 n, const u64 *slots, u64 nr_slots)
{
	const struct path_record *r = (const struct path_record *)slots, *end = r + nr_slots / 2;

	(void)words;
	for (; r < end && path_record_word(r, g->t->trace_begin) < (s32)n; r++) {
		struct path_record *to = &told.at[told.n];

		if (told.n == ARRAY_SIZE(told.at) - 1)
			break;
		*to = *r;
		to->at = told.words + (u32)path_record_word(r, g->t->trace_begin);
		told.n++;
	}
	told.words += n;
	g->t->trace_room = words_at_once;
}

static bool same_access(const struct path_record *a, const struct path_record *b, u32 apart)
{
	return b && a->at == b->at && path_record_insn(a) == path_record_insn(b) &&
	       path_record_access(a) + apart == path_record_access(b);
}

/* The next access that is told of. */
static const struct path_record *next_told(const struct path_record *r)
{
	while (r < told.at + told.n && path_record_is_again(r))
		r++;
	return r < told.at + told.n ? r : NULL;
}

/* What is told of the order, up to @upto; NULL: to the end. */
static void use_again(struct cache_of *c, const struct path_record *r,
		      const struct path_record *upto)
{
	for (; r < (upto ? upto : told.at + told.n); r++) {
		if (!path_record_is_again(r))
			continue;
		told.agains++;
		use(c, r->addr >> LINE_SHIFT, true);
	}
}

static u32 size_of(const struct path_record *r)
{
	return ((r->what & ~PATH_RECORD_SWAPPED) >> PATH_RECORD_MORE_AT) + 1;
}

/* In front of @r. */
static void swap(struct cache_of *c, const struct path_record *r)
{
	u64 *set = c->line[(r->addr >> LINE_SHIFT) % c->sets], was = set[0];

	if (!(r->what & PATH_RECORD_SWAPPED))
		return;
	told.agains++;
	set[0] = set[1];
	set[1] = was;
}

/* One string from @from to @stop, and another one from @from2 on, or NULL. */
static void miss_strings(struct lines *missed, struct cache_of *c, const struct path_record *from,
			 const struct path_record *stop, const struct path_record *from2)
{
	s64 size = size_of(from), step = (s64)(stop->addr - from->addr) < 0 ? -size : size;
	u64 at = from->addr, at2 = from2 ? from2->addr : 0;

	for (; at != stop->addr; at += (u64)step, at2 += (u64)step) {
		miss(missed, c, at, (u32)size);
		if (from2)
			miss(missed, c, at2, (u32)size);
	}
}

static void miss_told(struct lines *missed, struct cache_of *c)
{
	const struct path_record *r, *upto, *from2, *stop2;

	use_again(c, told.at, next_told(told.at));
	for (r = next_told(told.at); r; r = upto) {
		told.accesses++;
		upto = next_told(r + 1);
		if (!same_access(r, upto, 0)) {
			swap(c, r);
			miss(missed, c, r->addr, size_of(r));
			use_again(c, r, upto);
			continue;
		}
		from2 = next_told(upto + 1);
		stop2 = same_access(r, from2, 1) ? next_told(from2 + 1) : NULL;
		if (!stop2 || !same_access(from2, stop2, 0))
			from2 = stop2 = NULL;
		use_again(c, r, stop2 ? stop2 : upto);
		miss_strings(missed, c, r, upto, from2);
		r = stop2 ? stop2 : upto;
		upto = next_told(r + 1);
		use_again(c, r, upto);
	}
}

static void check_cache(const struct program *p, u32 sets, u32 ways)
{
	static struct lines should, is;
	struct cache_of a = {.sets = sets, .ways = ways}, b = a;

	should.n = is.n = told.accesses = told.agains = 0;
	for (u64 i = 0; i < seen.n; i++)
		miss(&should, &a, seen.at[i].addr,
		     seen.at[i].size > 1u << LINE_SHIFT ? 1u << LINE_SHIFT : seen.at[i].size);
	miss_told(&is, &b);
	for (u64 i = 0; i < should.n && i < is.n; i++) {
		if (should.at[i] == is.at[i])
			continue;
		TEST_FAIL("%s, %u sets of %u: miss %llu of %llu is of line %#llx, not %#llx",
			  p->name, sets, ways, (unsigned long long)i, (unsigned long long)should.n,
			  (unsigned long long)is.at[i], (unsigned long long)should.at[i]);
		return;
	}
	EXPECT_EQ(is.n, should.n);
}

static void run(struct guest *g, const struct program *p, u64 period)
{
	g->t->trace_room = words_at_once;
	told.n = told.words = 0;
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
	/* Others may use the cache now. */
	for (u32 i = 0; i < DBT_FILTER_SETS; i++)
		EXPECT(!g->t->filter.load[i] && !g->t->filter.store[i]);
	g->t->slots_at = g->t->slots_start;
}

static u8 memory[12288] __attribute__((aligned(4096)));

static const struct program forms[] = {{"operands", snip_operands, {(u64)memory}},
				       {"groups", snip_groups, {(u64)memory}},
				       {"strings", snip_strings, {(u64)memory}}};

static u64 accesses, agains;

static void check_program(struct guest *g, const struct program *p, u32 filter_sets)
{
	static const u64 periods[] = {0, 1, 10, 1009};
	static struct path_space *space;

	if (!space) {
		space = mmap(NULL, sizeof(*space), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		dbt_paths(g->t, space);
	}
	g->on_trace = on_trace;
	see_program(g, p);
	see_no_stores_back();
	for (u32 lines = 1; lines <= 2; lines++) {
		u64 before = accesses;

		dbt_filter(LINE_SHIFT, filter_sets, lines);
		mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_NONE);
		for (u32 i = 0; i < ARRAY_SIZE(periods); i++) {
			dbt_set_mask(g->t, MASK | (periods[i] ? DBT_MASK_PATHS |
									DBT_MASK_DEADLINES(stops.q)
							      : 0));
			for (words_at_once = 0; words_at_once <= 7; words_at_once += 7) {
				run(g, p, periods[i]);
				check_cache(p, filter_sets, 2);
				check_cache(p, filter_sets * (lines == 1 ? 2 : 1), 3);
			}
			accesses += told.accesses;
			agains += told.agains;
		}
		dbt_set_mask(g->t, DBT_MASK_ALL);
		mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_READ | PROT_WRITE);
		if (lines == 1)
			accesses = before;
	}
}

static void check_programs(u32 filter_sets)
{
	accesses = agains = 0;
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i], filter_sets);
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++)
		check_program(guest_main(), &forms[i], filter_sets);
	EXPECT(accesses);
	EXPECT(agains > accesses / 1000);
}

TEST(misses_are_the_same_with_16_sets)
{
	check_programs(16);
}

TEST(with_two)
{
	check_programs(2);
}

/* What crosses a line comes into one set twice. */
TEST(with_one)
{
	check_programs(1);
}
