/*
 * What is simulated of instructions that were made up: caches by their geometry, branches by the
 * predictors of cachegrind, and whose each event is.
 */
#include <stdlib.h>
#include <string.h>

#include "calls/calls.h"
#include "model/model.h"
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

/* What accesses that are made up have their addresses by. */
struct values {
	const u64 *slot;
	u64 fs_base, gs_base;
};

static u64 address_of(const struct path_access *a, const struct values *v)
{
	u64 at = a->disp + (a->base != PATH_NO_SLOT ? v->slot[a->base] : 0);

	if (a->index != PATH_NO_SLOT && a->kind < PATH_LOADS)
		at += (a->flags & PATH_BYTE_INDEX ? (u8)v->slot[a->index] : v->slot[a->index])
		      << a->scale;
	if (a->flags & PATH_ADDR32)
		at = (u32)at;
	return at + (a->flags & PATH_FS ? v->fs_base : 0) + (a->flags & PATH_GS ? v->gs_base : 0);
}

/*
 * A filter as the translator's, of which two lines of each set are known, or one if the cache has
 * no more. It does not leave out all that it could.
 */
static struct {
	u32 sets; /* 0: leaves out nothing */
	bool two;
	u64 last[64], before[64];
	bool other[64]; /* records say that it is the other one that was accessed last */
	u64 state;
	u32 word; /* the last one that anything was told of */
} filter;

static u64 random_below(u64 *state, u64 n)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % n;
}

static void filter_begin(const struct machine *m)
{
	u32 sets = machine_sets(m, MACHINE_L1D);

	memset(&filter, 0, sizeof(filter));
	filter.sets = sets & -sets;
	filter.two = m->cache[MACHINE_L1D].ways > 1 && sets == filter.sets;
}

static struct path_record *say_order(struct path_record *to, u64 set, u32 word)
{
	if (filter.other[set])
		*to++ = (struct path_record){(filter.last[set] - 1) * 64, word, PATH_RECORD_AGAIN};
	filter.other[set] = false;
	return to;
}

static struct path_record *filter_forget(struct path_record *to, u32 word)
{
	for (u32 i = 0; i < filter.sets; i++)
		to = say_order(to, i, word);
	memset(filter.last, 0, sizeof(filter.last));
	memset(filter.before, 0, sizeof(filter.before));
	return to;
}

/* @r, or what is told in its place. */
static struct path_record *filter_access(struct path_record *to, struct path_record r, u32 size)
{
	u64 first = r.addr / 64 + 1, last = (r.addr + size - 1) / 64 + 1;

	for (u64 line = first; filter.sets && line <= last; line++) {
		u64 set = line % filter.sets;

		if (first == last && (filter.last[set] == line || filter.before[set] == line)) {
			if (filter.last[set] != line) {
				filter.before[set] = filter.last[set];
				filter.last[set] = line;
				filter.other[set] ^= true;
			}
			if (random_below(&filter.state, 8))
				return to;
			filter.other[set] = false;
			break;
		}
		if (first != last)
			to = say_order(to, set, r.at);
		else if (filter.other[set])
			r.what |= PATH_RECORD_SWAPPED;
		filter.other[set] = false;
		if (filter.two && first == last)
			filter.before[set] = filter.last[set];
		else
			filter.before[set] = 0;
		filter.last[set] = line;
	}
	*to++ = r;
	return to;
}

enum { RECORDS = 4096 };

/* What a thread that executes word @word, or a part of it, says of its accesses. */
static struct path_record *put_records(struct path_record *to, const struct path_step *step, u32 n,
				       const struct values *v, u32 word)
{
	/* As when it hands over what it has, mostly between two words. */
	if (filter.sets && !random_below(&filter.state, 16))
		to = filter_forget(to, word - (word != filter.word));
	filter.word = word;
	for (u32 i = 0; i < n; i++) {
		for (u32 k = 0; k < step[i].nr_accesses; k++) {
			const struct path_access *a = &step[i].access[k];
			u32 what = path_record_what(step[i].first_access + k, i, false, 0);
			u64 at = address_of(a, v);

			if (a->kind < PATH_LOADS) {
				to = filter_access(to, (struct path_record){at, word, what},
						   a->size);
				continue;
			}
			to = filter_forget(to, word);
			*to++ = (struct path_record){at, word, what};
			/* It may come between where a string began and where it stopped. */
			if (filter.sets && !random_below(&filter.state, 4))
				*to++ = (struct path_record){0x123456, word, PATH_RECORD_AGAIN};
			*to++ = (struct path_record){v->slot[a->index], word, what};
		}
	}
	return to;
}

/* One instruction with the accesses, executed with @slots; what it has met. */
static struct event_counts met(struct event_simulation *s, const struct path_access *a, u32 n,
			       const u64 *slots)
{
	struct path_step step = {.pc = A, .len = 4, .nr_accesses = n, .access = a};
	const struct values v = {.slot = slots, .fs_base = 0x7000000};
	struct simulated_code *c = simulated_code_new(s, &step, 1);
	struct path_record record[8];
	struct path_records records = {record, put_records(record, &step, 1, &v, 7), 7, s};
	struct event_counts sum = {0};

	filter.sets = 0;
	simulate(s, c, &records, NULL, &sum);
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
	struct event_counts e = met(s, &load, 1, slots);

	EXPECT_EQ(e.n[SIMULATED_FETCH][1], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][2], 1);
	/* The same line. */
	e = met(s, &scaled, 1, slots);
	EXPECT_EQ(e.n[SIMULATED_FETCH][1], 0);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 1);
	EXPECT_EQ(e.n[SIMULATED_WRITE][1], 0);
	e = met(s, &fs, 1, NULL);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	/* Across two lines it is one miss. */
	load.disp = 0x1000 - 4;
	e = met(s, &load, 1, slots);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 1);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 1);
	/* A modification is one access, of callgrind a write, of cachegrind a read. */
	both[1].kind = PATH_STORE;
	e = met(s, both, 2, slots);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 0);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 1);
	simulation_free(s);
	s = new_simulation(true);
	e = met(s, both, 2, slots);
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
	struct event_counts e = met(s, a, 2, slots);

	EXPECT_EQ(e.n[SIMULATED_READ][0], 100);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 13);
	EXPECT_EQ(e.n[SIMULATED_WRITE][0], 100);
	EXPECT_EQ(e.n[SIMULATED_WRITE][1], 13);
	/* Downwards. */
	a[0].base = 2;
	a[0].index = 4;
	e = met(s, a, 1, slots);
	EXPECT_EQ(e.n[SIMULATED_READ][0], 100);
	EXPECT_EQ(e.n[SIMULATED_READ][1], 0);
	simulation_free(s);
}

enum {
	CODES = 60,
	INSNS = 6,
	ACCESSES = 3,
	SLOTS = 4,
	RUNS = 20000,
	BEHIND = INSNS * ACCESSES, /* the first access of code that another may come before */
};

/* Code made up at random. */
struct random_code {
	u32 n;
	struct path_step step[INSNS];
	struct path_access access[INSNS][ACCESSES];
	struct simulated_code *code;
};

/* No store is where a load is: nothing is modified. Some go by one register, in a line or not. */
static struct path_access random_access(u64 *state)
{
	u32 kind = random_below(state, 16) ? (u32)random_below(state, 2)
					   : PATH_LOADS + (u32)random_below(state, 2);
	struct path_access a = {.kind = (u8)kind,
				.disp = random_below(state, 80) * 2 + (kind & 1),
				.size = (u16)(1u << random_below(state, 4)),
				.base = (u16)random_below(state, 2),
				.index = PATH_NO_SLOT};

	if (kind == PATH_LOADS || kind == PATH_STORES) {
		a.disp = 0;
		a.base = 2;
		a.index = 3;
	} else if (!random_below(state, 3)) {
		a.index = (u16)random_below(state, 2);
		a.scale = (u8)random_below(state, 4);
	}
	if (kind < PATH_LOADS && !random_below(state, 8)) {
		static const u8 flags[] = {PATH_FS, PATH_GS, PATH_ADDR32, PATH_BYTE_INDEX};

		a.flags = flags[random_below(state, 4)];
	}
	return a;
}

static void make_code(struct random_code *c, struct event_simulation *s, u64 *state)
{
	u64 pc = A + random_below(state, 4096);
	u32 number = (u32)random_below(state, 2) * BEHIND;

	memset(c, 0, sizeof(*c));
	c->n = 1 + (u32)random_below(state, INSNS);
	for (u32 i = 0; i < c->n; i++) {
		struct path_step *at = &c->step[i];

		*at = (struct path_step){.pc = pc,
					 .len = (u8)(1 + random_below(state, 15)),
					 .nr_accesses = (u32)random_below(state, ACCESSES + 1),
					 .first_access = number,
					 .access = c->access[i]};
		for (u32 k = 0; k < at->nr_accesses; k++)
			c->access[i][k] = random_access(state);
		/* No instruction has three strings. */
		if (at->nr_accesses == 3 && at->access[2].kind >= PATH_LOADS)
			at->nr_accesses = 2;
		number += at->nr_accesses;
		pc = random_below(state, 5) ? pc + at->len : A + random_below(state, 4096);
	}
	c->step[c->n - 1].kind = (u8[]){PATH_PLAIN, PATH_COND,
					PATH_JUMP_IND}[random_below(state, 3)];
	c->step[c->n - 1].taken = random_below(state, 2);
	c->code = simulated_code_new(s, c->step, c->n);
}

struct met_by_insns {
	u64 n[INSNS][SIMULATED_GROUPS][3];
};

static bool is_write(const struct path_access *a)
{
	return a->kind == PATH_STORE || a->kind == PATH_STORES;
}

static void access_model(struct model_core *core, const struct path_access *a, u64 addr, u64 *met)
{
	struct model_access m = is_write(a) ? model_store(core, 0, addr, a->size)
					    : model_load(core, 0, addr, a->size);

	met[0]++;
	met[1] += m.misses != 0;
	met[2] += m.source == MODEL_FROM_MEMORY;
}

static bool goes_along(const struct path_step *at, u32 k)
{
	return k < at->nr_accesses && at->access[k].kind >= PATH_LOADS;
}

/* One instruction: its fetch, then what it accesses. Strings that stand together go along. */
static void run_model(struct model_core *core, const struct path_step *at, const struct values *v,
		      u64 (*met)[3])
{
	u32 miss = model_cache_counter(MODEL_L1I, MODEL_READ, true);
	u64 first = model_count(core, (enum model_counter)miss);
	u64 last = model_count(core, MODEL_LL_FETCH_MISSES);

	model_fetch(core, at->pc, at->len);
	met[SIMULATED_FETCH][1] += model_count(core, (enum model_counter)miss) - first;
	met[SIMULATED_FETCH][2] += model_count(core, MODEL_LL_FETCH_MISSES) - last;
	for (u32 k = 0; k < at->nr_accesses; k++) {
		const struct path_access *a = &at->access[k];
		bool both = goes_along(at, k) && goes_along(at, k + 1);
		u64 n = 1;

		if (goes_along(at, k))
			n = (v->slot[3] - v->slot[2]) / a->size;
		for (u64 i = 0; i < n; i++)
			for (u32 j = 0; j <= both; j++)
				access_model(
					core, &a[j], address_of(&a[j], v) + i * a->size,
					met[is_write(&a[j]) ? SIMULATED_WRITE : SIMULATED_READ]);
		k += both;
	}
}

static void run_code(struct event_simulation *s, const struct random_code *c,
		     const struct values *v, struct met_by_insns *met)
{
	u64 counts[(INSNS * (ACCESSES + 1)) * 3] = {0};
	struct event_counts sum = {0}, all = {0};
	static struct path_record record[RECORDS];
	struct path_records records = {.next = record, .word = filter.word + 1, .simulation = s};

	records.end = put_records(record, c->step, c->n, v, records.word);
	path_records_pass(&records, 0);
	EXPECT(!simulate(s, c->code, &records, counts, &sum));
	EXPECT(records.next == records.end);
	for (u32 i = 0; i < simulated_places(c->code); i++) {
		enum simulated what;
		bool counted;
		u32 insn = simulated_insn(c->code, i, &what, &counted);

		met->n[insn][what][0] += !counted;
		for (u32 k = 0; k < 3; k++)
			met->n[insn][what][k] += counts[i * 3 + k];
	}
	for (u32 i = 0; i < INSNS; i++)
		for (u32 g = 0; g < SIMULATED_GROUPS; g++)
			for (u32 k = 0; k < 3; k++)
				all.n[g][k] += met->n[i][g][k];
	EXPECT(!memcmp(&all, &sum, sizeof(all)));
}

static void compare_with_model(struct machine *m, u64 seed)
{
	static struct random_code code[CODES];
	u64 state = seed, size = model_size(m, 1, MODEL_CACHES);
	void *memory = aligned_alloc(64, size);
	struct model_core *core =
		model_core(model_init(memset(memory, 0, size), m, 1, MODEL_CACHES), 0);
	struct event_simulation *s = simulation_new(
		&(struct simulation_opts){.machine = m, .caches = true, .modified_is_read = true});

	filter_begin(m);
	for (u32 i = 0; i < CODES; i++)
		make_code(&code[i], s, &state);
	for (u32 i = 0; i < RUNS; i++) {
		const struct random_code *c = &code[random_below(&state, CODES)];
		u64 at = 0x100000 + random_below(&state, 0x800);
		const u64 slot[SLOTS] = {at, 0x200000 + random_below(&state, 0x400), at,
					 at + random_below(&state, 40) * 8};
		const struct values v = {slot, 0x7000, 0x9000};
		struct met_by_insns ours = {0}, theirs = {0};

		run_code(s, c, &v, &ours);
		for (u32 k = 0; k < c->n; k++)
			run_model(core, &c->step[k], &v, theirs.n[k]);
		ASSERT(!memcmp(&ours, &theirs, sizeof(ours)));
	}
	simulation_free(s);
	free(memory);
}

TEST(caches_are_those_of_the_model)
{
	struct machine m = machine_of();

	for (u64 seed = 1; seed <= 4; seed++) {
		m.cache[MACHINE_L1I] = (struct machine_cache){1 << 10, .ways = 2};
		m.cache[MACHINE_L1D] = (struct machine_cache){1 << 10, .ways = 4};
		m.cache[MACHINE_LL] = (struct machine_cache){4 << 10, .ways = 4};
		compare_with_model(&m, seed);
		/* Direct-mapped; not a power of two. */
		m.cache[MACHINE_L1I] = (struct machine_cache){1 << 10, .ways = 1};
		m.cache[MACHINE_L1D] = (struct machine_cache){3 << 9, .ways = 2};
		m.cache[MACHINE_LL] = (struct machine_cache){3 << 10, .ways = 16};
		compare_with_model(&m, seed);
	}
}

enum { JOINED = 50, PARTS = 8 };

/* What code was joined of, in two simulations. */
struct random_parts {
	u32 n;
	u32 of[PARTS], word[PARTS];
	const struct simulated_code *joined; /* in the first */
};

static void join_code(struct random_parts *p, const struct random_code *code,
		      struct calls_memory *m, u64 *state)
{
	struct simulated_part part[PARTS];

	do {
		p->n = 1 + (u32)random_below(state, PARTS);
		for (u32 i = 0; i < p->n; i++) {
			const struct random_code *c =
				&code[p->of[i] = (u32)random_below(state, CODES)];

			p->word[i] = i ? p->word[i - 1] + 1 : 0;
			/* Both are of one path. */
			if (i && c->step[0].first_access == BEHIND &&
			    !code[p->of[i - 1]].step[0].first_access && random_below(state, 2))
				p->word[i]--;
			part[i] = (struct simulated_part){c->code, p->word[i], c->step[c->n - 1].pc,
							  A};
			if (i)
				part[i - 1].after = c->step[0].pc;
		}
		p->joined = simulated_join(part, p->n, m);
	} while (!p->joined);
}

/* The same in the second simulation, part by part; what it has met beyond what @miss says. */
static void run_parts(struct event_simulation *s, const struct random_parts *p,
		      const struct random_code *code, struct path_records *records,
		      const struct simulated_miss *miss, u32 n)
{
	for (u32 i = 0; i < p->n; i++) {
		const struct random_code *c = &code[p->of[i]];
		u64 counts[(INSNS * (ACCESSES + 2)) * 3] = {0}, told[ARRAY_SIZE(counts)] = {0};
		struct event_counts sum = {0};
		u32 places = simulated_places(c->code);

		if (i && p->word[i] != p->word[i - 1])
			path_records_pass(records, 1);
		if (simulate(s, c->code, records, counts, &sum) && i + 1 < p->n)
			counts[places * 3 - 2] += simulate_target(s, c->step[c->n - 1].pc,
								  code[p->of[i + 1]].step[0].pc);
		for (; n && miss->part == i; miss++, n--)
			told[miss->place * 3u + miss->level]++;
		ASSERT(!memcmp(counts, told, sizeof(counts)));
	}
	EXPECT_EQ(n, 0);
	EXPECT(records->next == records->end);
}

static void compare_joined(const struct machine *m, u64 seed)
{
	const struct simulation_opts opts = {.machine = m, .caches = true, .branches = true};
	static struct random_code code[2][CODES];
	struct event_simulation *s[2] = {simulation_new(&opts), simulation_new(&opts)};
	static struct random_parts parts[JOINED];
	static struct simulated_miss miss[SIMULATED_MISSES];
	struct calls_memory memory = {0};
	u64 state;

	for (u32 i = 0; i < 2; i++) {
		state = seed;
		for (u32 k = 0; k < CODES; k++)
			make_code(&code[i][k], s[i], &state);
	}
	filter_begin(m);
	for (u32 i = 0; i < JOINED; i++)
		join_code(&parts[i], code[0], &memory, &state);
	for (u32 i = 0; i < RUNS; i++) {
		/* Mostly few, so that all that they fetch is there. */
		const struct random_parts *p =
			&parts[random_below(&state, random_below(&state, 8) ? 3 : JOINED)];
		static struct path_record record[RECORDS];
		struct path_record *end = record;
		struct path_records at[2];
		u32 word = (u32)random_below(&state, 2) - 1, n;

		for (u32 k = 0; k < p->n; k++) {
			const struct random_code *c = &code[0][p->of[k]];
			u64 slot[SLOTS];
			const struct values v = {slot, 0x7000, 0x9000};

			for (u32 j = 0; j < SLOTS; j++)
				slot[j] = 0x100000 + random_below(&state, 0x800);
			end = put_records(end, c->step, c->n, &v, word + p->word[k]);
		}
		for (u32 h = 0; h < 2; h++) {
			at[h] = (struct path_records){record, end, word, s[h]};
			path_records_pass(&at[h], 0);
		}
		n = simulate_joined(s[0], p->joined, &at[0], miss);
		run_parts(s[1], p, code[1], &at[1], miss, n);
	}
	simulation_free(s[0]);
	simulation_free(s[1]);
	calls_memory_release(&memory);
}

TEST(joined_code_is_its_parts)
{
	struct machine m = machine_of();

	compare_joined(&m, 1);
	m.cache[MACHINE_L1I] = (struct machine_cache){.size = 1024, .ways = 4, .latency = 1};
	m.cache[MACHINE_L1D] = (struct machine_cache){.size = 512, .ways = 2, .latency = 1};
	m.cache[MACHINE_LL] = (struct machine_cache){.size = 2048, .ways = 4, .latency = 1};
	for (u64 seed = 2; seed < 6; seed++)
		compare_joined(&m, seed);
}

/* A guest can write its records itself. */
TEST(more_misses_than_there_can_be)
{
	static const struct path_access load = {.base = 0, .index = PATH_NO_SLOT, .size = 8};
	const struct path_step step = {.pc = A, .len = 4, .nr_accesses = 1, .access = &load};
	struct event_simulation *s = new_simulation(false);
	struct calls_memory memory = {0};
	const struct simulated_part part = {simulated_code_new(s, &step, 1), 0, A, A + 4};
	const struct simulated_code *c = simulated_join(&part, 1, &memory);
	struct simulated_miss *miss = malloc(SIMULATED_MISSES * sizeof(*miss));
	static struct path_record record[3 * SIMULATED_MISSES];

	for (u32 i = 0; i < ARRAY_SIZE(record); i++)
		record[i].addr = 0x100000 + i * 64ull;
	EXPECT_EQ(simulate_joined(s, c,
				  &(struct path_records){record, record + ARRAY_SIZE(record), 0, s},
				  miss),
		  SIMULATED_MISSES);
	free(miss);
	calls_memory_release(&memory);
	simulation_free(s);
}

/* As often as it went round, and each time by itself: both meet the same. */
static void compare_rounds(const struct machine *m, u64 seed)
{
	const struct simulation_opts opts = {.machine = m, .caches = true, .branches = true};
	static struct random_code code[2][CODES];
	static struct path_record record[RECORDS];
	struct event_simulation *s[2] = {simulation_new(&opts), simulation_new(&opts)};
	u64 state, rounds = 0;

	for (u32 i = 0; i < 2; i++) {
		state = seed;
		for (u32 k = 0; k < CODES; k++)
			make_code(&code[i][k], s[i], &state);
	}
	filter_begin(m);
	for (u32 i = 0; i < RUNS; i++) {
		u32 which = (u32)random_below(&state, CODES), n = 1 + (u32)random_below(&state, 20);
		const struct random_code *c = &code[0][which];
		u64 counts[2][(INSNS * (ACCESSES + 2)) * 3] = {{0}};
		struct event_counts sum[2] = {{{{0}}}};
		struct path_record *end = record;
		struct path_records at[2];

		for (u32 k = 0; k < n; k++) {
			u64 slot[SLOTS];
			const struct values v = {slot, 0x7000, 0x9000};

			for (u32 j = 0; j < SLOTS; j++)
				slot[j] = 0x100000 + random_below(&state, 0x200);
			end = put_records(end, c->step, c->n, &v, k);
		}
		for (u32 h = 0; h < 2; h++) {
			at[h] = (struct path_records){record, end, 0, s[h]};
			path_records_pass(&at[h], 0);
		}
		if (simulate_round(s[0], c->code, n, &at[0], counts[0], &sum[0])) {
			rounds++;
			path_records_pass(&at[0], n);
		}
		for (u32 h = at[0].word == n; h < 2; h++) {
			for (u32 k = 0; k < n; k++) {
				simulate(s[h], code[h][which].code, &at[h], counts[h], &sum[h]);
				path_records_pass(&at[h], 1);
			}
		}
		EXPECT(at[0].next == end && at[1].next == end);
		ASSERT(!memcmp(counts[0], counts[1], sizeof(counts[0])));
		ASSERT(!memcmp(&sum[0], &sum[1], sizeof(sum[0])));
	}
	EXPECT(rounds > RUNS / 20);
	simulation_free(s[0]);
	simulation_free(s[1]);
}

TEST(rounds_of_a_loop)
{
	struct machine m = machine_of();

	compare_rounds(&m, 1);
	m.cache[MACHINE_L1I] = (struct machine_cache){.size = 1024, .ways = 4, .latency = 1};
	m.cache[MACHINE_L1D] = (struct machine_cache){.size = 512, .ways = 2, .latency = 1};
	m.cache[MACHINE_LL] = (struct machine_cache){.size = 2048, .ways = 4, .latency = 1};
	for (u64 seed = 2; seed < 6; seed++)
		compare_rounds(&m, seed);
}

/* Runs a branch that goes by @pattern; how many of the last 100 were not foreseen. */
static u64 not_foreseen(u32 pattern, u32 length)
{
	struct event_simulation *s = new_simulation(false);
	struct path_records none = {NULL, NULL, 0};
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
		const struct path_record record[] = {{at, 0, 0}, {at, 1, 0}, {at, 2, 0}};
		struct path_records records = {record, record + 3, 0, NULL};

		calls_run_simulated(t, span(g, A + 4, PATH_CALL_IND), &records, false);
		path_records_pass(&records, 1);
		calls_run_simulated(t, span(g, B, PATH_RETURN), &records, take_back);
		path_records_pass(&records, 1);
		if (take_back)
			calls_uncount(t);
		calls_run_simulated(t, span(g, A + 6, PATH_JUMP), &records, false);
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
