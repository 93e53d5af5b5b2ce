/*
 * Caches against a simulator that is slow and obvious: every line has the time of its last use, and
 * PLRU's tree is walked as it is drawn. Streams are sequential, strided and random.
 */
#include "unit/model/machines.h"
#include "unit/test.h"

/* The reference. A cache is a list of lines for each set. */
struct place {
	u64 line;
	u64 used; /* when, 0: empty */
	bool dirty;
};

struct plain {
	u32 sets, ways;
	bool plru;
	struct place *place;
	bool *tree; /* of each set 64 nodes, true: the victim is to the right */
	u64 now;
};

static void plain_make(struct plain *c, const struct machine *m, enum machine_cache_id id)
{
	*c = (struct plain){.sets = machine_sets(m, id),
			    .ways = m->cache[id].ways,
			    .plru = m->cache[id].policy == MACHINE_PLRU};
	c->place = calloc((size_t)c->sets * c->ways + 1, sizeof(*c->place));
	c->tree = calloc((size_t)c->sets * 128 + 1, 1);
}

static struct place *plain_find(struct plain *c, u64 line)
{
	struct place *set = c->place + line % c->sets * c->ways;

	for (u32 i = 0; i < c->ways; i++)
		if (set[i].used && set[i].line == line)
			return set + i;
	return NULL;
}

static u32 leaves(const struct plain *c)
{
	u32 n = 1;

	while (n < c->ways)
		n *= 2;
	return n;
}

/* Leaves are numbered from the left; a node's children are 2n and 2n + 1. */
static void plain_use(struct plain *c, struct place *p)
{
	u32 set = (u32)(p->line % c->sets), way = (u32)(p - (c->place + (size_t)set * c->ways));

	p->used = ++c->now;
	for (u32 node = leaves(c) + way; node > 1; node /= 2)
		c->tree[set * 128 + node / 2] = !(node & 1);
}

static struct place *plain_victim(struct plain *c, u32 set)
{
	struct place *s = c->place + (size_t)set * c->ways, *oldest = s;
	u32 node = 1, n = leaves(c), width = n, left = 0;

	for (u32 i = 0; i < c->ways; i++)
		if (!s[i].used)
			return s + i;
	for (u32 i = 0; i < c->ways; i++)
		if (s[i].used < oldest->used)
			oldest = s + i;
	if (!c->plru)
		return oldest;
	while (node < n) {
		bool right = c->tree[set * 128 + node];

		width /= 2;
		if (left + width >= c->ways)
			right = false;
		left += right ? width : 0;
		node = node * 2 + right;
	}
	return s + (node - n);
}

/* True: something had to go, which is *old. */
static bool plain_put(struct plain *c, u64 line, bool dirty, struct place *old)
{
	struct place *p = plain_victim(c, (u32)(line % c->sets));
	bool gone = p->used;

	*old = *p;
	*p = (struct place){.line = line, .dirty = dirty};
	plain_use(c, p);
	return gone;
}

static bool plain_drop(struct plain *c, u64 line)
{
	struct place *p = c->sets ? plain_find(c, line) : NULL;
	bool dirty = p && p->dirty;

	if (p)
		*p = (struct place){0};
	return dirty;
}

struct reference {
	const struct machine *m;
	struct plain l1, l2, ll;
	u64 *last; /* of each set of L1 the line that the program accessed last, + 1 */
	u64 l1_misses, l2_misses, ll_misses, written;
};

static void reference_make(struct reference *r, const struct machine *m)
{
	*r = (struct reference){.m = m};
	plain_make(&r->l1, m, MACHINE_L1D);
	plain_make(&r->l2, m, MACHINE_L2);
	plain_make(&r->ll, m, MACHINE_LL);
	r->last = calloc(r->l1.sets, sizeof(*r->last));
}

static void reference_free(struct reference *r)
{
	struct plain *all[] = {&r->l1, &r->l2, &r->ll};

	for (u32 i = 0; i < 3; i++) {
		free(all[i]->place);
		free(all[i]->tree);
	}
	free(r->last);
}

static void dirty_below(struct reference *r, u64 line, bool from_l1)
{
	struct place *p = from_l1 && r->l2.sets ? plain_find(&r->l2, line) : NULL;

	if (!p)
		p = plain_find(&r->ll, line);
	if (p)
		p->dirty = true;
	else
		r->written++;
}

/* A farther cache that includes L1 has lost a line. L1 keeps it if it is in use. */
static bool drop_l1(struct reference *r, u64 line)
{
	return r->last[line % r->l1.sets] != line + 1 && plain_drop(&r->l1, line);
}

static void put_ll(struct reference *r, u64 line, bool dirty)
{
	struct place old, *p = plain_find(&r->ll, line);

	if (p) {
		p->dirty |= dirty;
		return;
	}
	if (!plain_put(&r->ll, line, dirty, &old))
		return;
	if (r->m->cache[MACHINE_LL].inclusion == MACHINE_INCLUSIVE) {
		old.dirty |= drop_l1(r, old.line);
		old.dirty |= plain_drop(&r->l2, old.line);
	}
	r->written += old.dirty;
}

static bool reference_line(struct reference *r, u64 line, bool store)
{
	struct place *p = plain_find(&r->l1, line), old;
	bool victim = r->m->cache[MACHINE_LL].inclusion == MACHINE_VICTIM, had = false;

	if (p) {
		plain_use(&r->l1, p);
		p->dirty |= store;
		return true;
	}
	r->l1_misses++;
	p = r->l2.sets ? plain_find(&r->l2, line) : NULL;
	if (p) {
		plain_use(&r->l2, p);
	} else {
		r->l2_misses++;
		p = plain_find(&r->ll, line);
		if (p && victim)
			had = plain_drop(&r->ll, line);
		else if (p)
			plain_use(&r->ll, p);
		r->ll_misses += !p;
		if (!p && !victim)
			put_ll(r, line, false);
		if (r->l2.sets && plain_put(&r->l2, line, had, &old)) {
			if (r->m->cache[MACHINE_L2].inclusion == MACHINE_INCLUSIVE)
				old.dirty |= drop_l1(r, old.line);
			if (victim)
				put_ll(r, old.line, old.dirty);
			else if (old.dirty)
				dirty_below(r, old.line, false);
		}
	}
	if (store && r->m->cache[MACHINE_L1D].no_allocate)
		return false;
	if (plain_put(&r->l1, line, store, &old) && old.dirty)
		dirty_below(r, old.line, true);
	return false;
}

static u64 total(const struct model_core *c, enum model_cache_id id, bool miss)
{
	return model_count(c, model_cache_counter(id, MODEL_READ, miss)) +
	       model_count(c, model_cache_counter(id, MODEL_WRITE, miss));
}

enum stream {
	SEQUENTIAL,
	STRIDED,
	RANDOM,
	LOCAL, /* mostly near the last one */
	STREAMS,
};

static u64 next_address(enum stream s, u64 last, u64 i, u64 reach, u64 *state)
{
	u64 n = random_number(state);

	switch (s) {
	case SEQUENTIAL: return i * 8 % reach;
	case STRIDED: return i * 192 % reach;
	case RANDOM: return n % reach;
	default: return n & 7 ? (last + (n >> 8) % 128) % reach : (n >> 8) % reach;
	}
}

static void compare(const struct machine *m, enum stream s, u64 reach, u32 rounds)
{
	struct model *model = model_new(m, 1, MODEL_CACHES);
	struct model_core *core = model_core(model, 0);
	struct reference r;
	u64 state = 88172645463325252ull + s, addr = 0, accesses = 0;

	reference_make(&r, m);
	for (u32 i = 0; i < rounds; i++) {
		bool store = random_number(&state) % 3 == 0;
		u32 size = 1u << random_number(&state) % 4, misses = 0;
		struct model_access a;

		addr = 0x10000 + next_address(s, addr, i, reach, &state);
		for (u64 line = addr / m->memory.line; line <= (addr + size - 1) / m->memory.line;
		     line++)
			r.last[line % r.l1.sets] = store && m->cache[MACHINE_L1D].no_allocate
							   ? 0
							   : line + 1;
		for (u64 line = addr / m->memory.line; line <= (addr + size - 1) / m->memory.line;
		     line++)
			misses += !reference_line(&r, line, store);
		a = store ? model_store(core, 1, addr, size) : model_load(core, 1, addr, size);
		accesses++;
		if (a.misses != misses) {
			TEST_FAIL("access %u of stream %u at %#llx: %u misses, expected %u", i, s,
				  (unsigned long long)addr, a.misses, misses);
			break;
		}
	}
	EXPECT_EQ(total(core, MODEL_L1D, false), accesses);
	EXPECT_EQ(total(core, MODEL_L1D, true), r.l1_misses);
	if (r.l2.sets) {
		EXPECT_EQ(model_count(core, MODEL_L2_ACCESSES), r.l1_misses);
		EXPECT_EQ(model_count(core, MODEL_L2_MISSES), r.l2_misses);
	}
	EXPECT_EQ(total(core, MODEL_LL, false), r.l2_misses);
	EXPECT_EQ(total(core, MODEL_LL, true), r.ll_misses);
	EXPECT_EQ(model_count(core, MODEL_CACHE_REFERENCES), r.l2_misses);
	EXPECT_EQ(model_count(core, MODEL_CACHE_MISSES), r.ll_misses);
	EXPECT_EQ(model_count(core, MODEL_WRITEBACKS), r.written);
	reference_free(&r);
	model_free(model);
}

static void compare_streams(const struct machine *m)
{
	u64 ll = m->cache[MACHINE_LL].size;

	for (u32 s = 0; s < STREAMS; s++) {
		compare(m, s, ll / 2, 4000);
		compare(m, s, ll * 3, 12000);
	}
}

TEST(one_level_of_any_geometry)
{
	static const struct {
		u32 sets, ways;
	} shapes[] = {{1, 1}, {1, 2},   {1, 64}, {64, 1},  {64, 8}, {3, 1},
		      {3, 5}, {48, 11}, {7, 16}, {1, 100}, {2, 33}, {128, 12}};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (u32 policy = 0; policy < 2; policy++)
			for (u32 line = 16; line <= 128; line *= 2) {
				struct machine m = small_machine();

				if (policy == MACHINE_PLRU && shapes[i].ways > 64)
					continue;
				m.memory.line = line;
				m.cache[MACHINE_L1D].policy = (u8)policy;
				set_cache(&m, MACHINE_L1D,
					  (u64)shapes[i].sets * shapes[i].ways * line,
					  shapes[i].ways);
				compare(&m, RANDOM, m.cache[MACHINE_L1D].size * 2, 3000);
				compare(&m, LOCAL, m.cache[MACHINE_L1D].size * 3, 3000);
			}
}

TEST(levels_and_inclusion)
{
	static const struct {
		u64 l2;
		u8 l2_inclusion, ll_inclusion;
	} cases[] = {
		{0, MACHINE_NEITHER, MACHINE_NEITHER},
		{0, MACHINE_NEITHER, MACHINE_INCLUSIVE},
		{16384, MACHINE_NEITHER, MACHINE_NEITHER},
		{16384, MACHINE_INCLUSIVE, MACHINE_INCLUSIVE},
		{16384, MACHINE_NEITHER, MACHINE_VICTIM},
		{16384, MACHINE_INCLUSIVE, MACHINE_VICTIM},
		{4096, MACHINE_NEITHER, MACHINE_VICTIM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (u32 policy = 0; policy < 2; policy++) {
			struct machine m = small_machine();

			set_cache(&m, MACHINE_L2, cases[i].l2, 4);
			m.cache[MACHINE_L2].inclusion = cases[i].l2_inclusion;
			m.cache[MACHINE_LL].inclusion = cases[i].ll_inclusion;
			for (u32 id = 0; id < MACHINE_CACHES; id++)
				m.cache[id].policy = (u8)policy;
			compare_streams(&m);
			m.cache[MACHINE_L1D].no_allocate = 1;
			compare_streams(&m);
			set_cache(&m, MACHINE_LL, 33 * 1024, 11);
			compare_streams(&m);
		}
}

/* What theory says of a stream that is read over and over. */
TEST(a_loop_that_fits_and_one_that_does_not)
{
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_CACHES);
	struct model_core *core = model_core(model, 0);

	for (u32 round = 0; round < 10; round++)
		for (u64 a = 0; a < 4096; a += 64)
			model_load(core, 1, a, 8);
	EXPECT_EQ(total(core, MODEL_L1D, true), 64);
	/* One line more in each set than there are ways: LRU misses each time. */
	for (u32 round = 0; round < 10; round++)
		for (u64 a = 0; a < 5120; a += 64)
			model_load(core, 1, 0x100000 + a, 8);
	EXPECT_EQ(total(core, MODEL_L1D, true), 64 + 800);
	EXPECT_EQ(total(core, MODEL_LL, true), 64 + 80);
	model_free(model);
}

TEST(where_an_access_ends)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;
	struct model_access a;

	set_cache(&m, MACHINE_L2, 16384, 4);
	m.cache[MACHINE_L2].latency = 12;
	model = model_new(&m, 1, MODEL_CACHES);
	core = model_core(model, 0);
	a = model_load(core, 1, 0x1000, 8);
	EXPECT_EQ(a.source, MODEL_FROM_MEMORY);
	EXPECT_EQ(a.latency, 100);
	a = model_load(core, 1, 0x1038, 8);
	EXPECT_EQ(a.source, MODEL_FROM_L1);
	EXPECT_EQ(a.latency, 4);
	EXPECT_EQ(a.misses, 0);
	for (u64 n = 1; n <= 4; n++)
		model_load(core, 1, 0x1000 + n * 1024, 8);
	a = model_load(core, 1, 0x1000, 8);
	EXPECT_EQ(a.source, MODEL_FROM_L2);
	EXPECT_EQ(a.latency, 12);
	for (u64 n = 1; n <= 5; n++)
		model_load(core, 1, 0x1000 + n * 4096, 8);
	a = model_load(core, 1, 0x1000, 8);
	EXPECT_EQ(a.source, MODEL_FROM_LL);
	EXPECT_EQ(a.latency, 30);
	/* Two lines: each may miss. */
	a = model_load(core, 1, 0x103c, 8);
	EXPECT_EQ(a.misses, 1);
	EXPECT_EQ(a.source, MODEL_FROM_MEMORY);
	a = model_load(core, 1, 0x80000 - 4, 8);
	EXPECT_EQ(a.misses, 2);
	model_free(model);
}

/* As cachegrind: a miss if either line is missing, and then both are looked for in LL. */
TEST(crossing_once)
{
	struct machine m = small_machine();
	struct model *model;
	struct model_core *core;

	m.memory.crossing = MACHINE_ONCE;
	model = model_new(&m, 1, MODEL_CACHES);
	core = model_core(model, 0);
	EXPECT_EQ(model_load(core, 1, 0x103c, 8).misses, 1);
	EXPECT_EQ(model_load(core, 1, 0x1000, 8).misses, 0);
	EXPECT_EQ(model_load(core, 1, 0x1040, 8).misses, 0);
	EXPECT_EQ(model_store(core, 1, 0x107c, 8).misses, 1);
	EXPECT_EQ(total(core, MODEL_LL, false), 2);
	EXPECT_EQ(total(core, MODEL_LL, true), 2);
	model_fetch(core, 0x203c, 8);
	model_fetch(core, 0x203c, 8);
	model_fetch(core, 0x2044, 8);
	EXPECT_EQ(model_count(core, model_cache_counter(MODEL_L1I, MODEL_READ, true)), 1);
	EXPECT_EQ(model_count(core, MODEL_LL_FETCH_MISSES), 1);
	model_free(model);
}

TEST(fetches)
{
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_CACHES | MODEL_TLBS);
	struct model_core *core = model_core(model, 0);
	u32 misses = model_cache_counter(MODEL_L1I, MODEL_READ, true);
	u32 accesses = model_cache_counter(MODEL_L1I, MODEL_READ, false);

	for (u64 a = 0; a < 640; a += 4)
		model_fetch(core, 0x4000 + a, 4);
	EXPECT_EQ(model_count(core, misses), 10);
	EXPECT_EQ(model_count(core, accesses), 10);
	/* A run of instructions over three lines, the first of which is the last one's. */
	model_fetch(core, 0x4000 + 636, 4 + 128);
	EXPECT_EQ(model_count(core, misses), 12);
	EXPECT_EQ(model_count(core, accesses), 12);
	EXPECT_EQ(model_count(core, MODEL_LL_FETCHES), 12);
	EXPECT_EQ(model_count(core, model_cache_counter(MODEL_ITLB, MODEL_READ, true)), 1);
	/* Data and instructions share LL, not L1. */
	EXPECT_EQ(model_load(core, 1, 0x4000, 4).source, MODEL_FROM_LL);
	model_free(model);
}
