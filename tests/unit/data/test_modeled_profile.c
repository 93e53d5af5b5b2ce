/* What a model counts is attributed to who has caused it, and read again, without remainder. */
#include "data/profile-reader.h"
#include "model/feed-tally.h"
#include "unit/model/machines.h"
#include "unit/test.h"

#include <sys/mman.h>

static void *zeroes(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static struct path_space *space;

static const struct path_space *space_at(u32 index, void *data)
{
	(void)data;
	return index ? NULL : space;
}

/* A block of three instructions of one, two and three bytes at 0x1000, at 8 of the log. */
static void describe(void)
{
	const struct path_block head = {.nr_frags = 1, .nr_insns = 3};
	const struct path_frag frag = {.pc = 0x1000};

	if (space)
		return;
	space = zeroes(sizeof(*space));
	space->magic = PATH_MAGIC;
	space->logged = 64;
	memcpy(space->log + 8, &head, sizeof(head));
	memcpy(space->log + 8 + sizeof(head), &frag, sizeof(frag));
	memcpy(space->log + 8 + sizeof(head) + sizeof(frag), "\1\2\3", 3);
}

static u64 sum_of(const struct profile_counts *c, u32 event)
{
	u64 sum = c->unplaced[event];

	for (u64 i = 0; i < c->nr; i++)
		sum += c->at[i].event == event ? c->at[i].count : 0;
	return sum;
}

static void expect(const struct profile_counts *c, u64 i, u32 event, u64 pc, u64 addr, u64 count)
{
	if (i >= c->nr) {
		TEST_FAIL("there are %llu places", (unsigned long long)c->nr);
		return;
	}
	EXPECT_EQ(c->at[i].event, event);
	EXPECT_EQ(c->at[i].pc, pc);
	EXPECT_EQ(c->at[i].addr, addr);
	EXPECT_EQ(c->at[i].count, count);
}

TEST(what_a_path_costs_is_its_instructions)
{
	struct modeled_profile *p = zeroes(sizeof(*p));
	struct profile_counts c;

	describe();
	p->place[0] = (struct modeled_place){.at = path_part(1, 0, 3), .count = 11};
	p->place[1] = (struct modeled_place){.at = 0x1001, .count = 100};
	p->place[2] = (struct modeled_place){.at = path_part(1, 1, 2), .count = 7};
	p->place[3] = (struct modeled_place){.at = 0x1003, .addr = 0x5008, .count = 1, .event = 1};
	p->place[4] = (struct modeled_place){.at = 0x1003, .addr = 0x5000, .count = 2, .event = 1};
	/* What makes no sense: a path that is not there, one that ends too late, an event. */
	p->place[5] = (struct modeled_place){.at = path_part(2, 0, 1), .count = 5};
	p->place[6] = (struct modeled_place){.at = path_part(1, 1, 4), .count = 6};
	p->place[7] = (struct modeled_place){.at = 0x1000, .count = 1, .event = 2};
	p->place[8] = (struct modeled_place){.at = 0x1000, .count = ~0ull, .event = 1};
	p->unplaced[1] = 3;
	p->used = 9;
	EXPECT_EQ(profile_counts_read(&c, p, 2, space_at, NULL), 0);
	EXPECT_EQ(c.nr, 5);
	expect(&c, 0, 0, 0x1000, 0, 4);
	expect(&c, 1, 0, 0x1001, 0, 4 + 100 + 7);
	expect(&c, 2, 0, 0x1003, 0, 3);
	expect(&c, 3, 1, 0x1003, 0x5000, 2);
	expect(&c, 4, 1, 0x1003, 0x5008, 1);
	EXPECT_EQ(c.bad, 4);
	EXPECT_EQ(c.unplaced[0], 11);
	EXPECT_EQ(c.total[0], 11 + 100 + 7 + 11);
	EXPECT_EQ(c.total[1], 6);
	profile_counts_release(&c);
	munmap(p, sizeof(*p));
}

/* A million paths of the same three instructions take no more memory than these. */
TEST(paths_are_merged_while_they_are_read)
{
	struct modeled_profile *p = zeroes(sizeof(*p));
	struct profile_counts c;

	describe();
	for (u32 i = 0; i < MODELED_PLACES; i++)
		p->place[i] = (struct modeled_place){.at = path_part(1, i % 3, 3), .count = 6};
	p->used = MODELED_PLACES;
	EXPECT_EQ(profile_counts_read(&c, p, 1, space_at, NULL), 0);
	EXPECT_EQ(c.nr, 3);
	EXPECT(c.room < 4096);
	EXPECT_EQ(sum_of(&c, 0), 6ull * MODELED_PLACES);
	profile_counts_release(&c);
	munmap(p, sizeof(*p));
}

static const u8 watched[] = {MODEL_CPU_CYCLES, MODEL_CACHE_MISSES,
			     MODEL_HW_CACHE + 1 /* L1D read misses */};

/* Loads of many lines by a few instructions. Returns what is read of them then. */
static struct profile_counts load_lines(struct modeled_profile *p, bool data, u64 *counted)
{
	const struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_PARTS);
	struct model_core *core = model_core(model, 0);
	struct feed_tally t = {.to = p, .nr = ARRAY_SIZE(watched), .data = data};
	struct profile_counts c;
	u64 random = 1;

	memcpy(t.counter, watched, sizeof(watched));
	/* What was counted before is nobody's. */
	model_load(core, 0x1000, 0x100, 8);
	for (u32 i = 0; i < t.nr; i++)
		counted[i] = 0 - model_count(core, watched[i]);
	feed_tally_begin(&t, core);
	for (u32 i = 0; i < 20000; i++) {
		u64 ip = 0x400000 + random_number(&random) % 7,
		    addr = random_number(&random) % 99999;

		model_load(core, ip, addr, 1);
		feed_tally_add(&t, core, ip, addr + 0x10000);
	}
	for (u32 i = 0; i < t.nr; i++)
		counted[i] += model_count(core, watched[i]);
	EXPECT_EQ(profile_counts_read(&c, p, t.nr, space_at, NULL), 0);
	for (u32 i = 0; i < t.nr; i++)
		EXPECT_EQ(c.total[i], counted[i]);
	EXPECT_EQ(c.bad, 0);
	model_free(model);
	return c;
}

TEST(everything_is_attributed)
{
	struct modeled_profile *p = zeroes(sizeof(*p));
	u64 counted[ARRAY_SIZE(watched)];
	struct profile_counts c = load_lines(p, false, counted);

	EXPECT_EQ(c.nr, 7 * 3);
	EXPECT_EQ(c.unplaced[0] + c.unplaced[1] + c.unplaced[2], 0);
	EXPECT(counted[1] > 1000 && counted[2] >= counted[1]);
	for (u64 i = 0; i < c.nr; i++)
		EXPECT(c.at[i].pc >= 0x400000 && c.at[i].pc < 0x400007 && !c.at[i].addr);
	profile_counts_release(&c);
	munmap(p, sizeof(*p));
}

/* With less room data is told apart by pages, then not at all, and at the end nothing is. */
TEST(room_for_data)
{
	static const u32 used[] = {0, MODELED_PLACES / 2, MODELED_PLACES / 4 * 3, MODELED_PLACES};
	static const u64 masks[] = {7, 4095, ~0ull, ~0ull};

	for (u32 i = 0; i < ARRAY_SIZE(used); i++) {
		struct modeled_profile *p = zeroes(sizeof(*p));
		u64 counted[ARRAY_SIZE(watched)];
		struct profile_counts c;
		u64 with = 0;

		p->used = used[i];
		c = load_lines(p, true, counted);
		for (u64 k = 0; k < c.nr; k++) {
			EXPECT_EQ(c.at[k].addr & masks[i], 0);
			with += c.at[k].addr != 0;
		}
		EXPECT(i < 2 ? with > 100 : !with);
		if (i == 3)
			EXPECT_EQ(c.unplaced[2], counted[2]);
		else
			EXPECT_EQ(c.unplaced[2], 0);
		profile_counts_release(&c);
		munmap(p, sizeof(*p));
	}
}
