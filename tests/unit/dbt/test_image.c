/* What is translated goes into an image, and from there into an empty cache. */
#include "unit/dbt/guest.h"
#include "unit/dbt/held_image.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct held_image image;

/* Where the snippets are. */
static struct dbt_image_range snippets_range(void)
{
	u64 page = (u64)snip_loop & ~0xfffull;

	return (struct dbt_image_range){page - 0x1000, page + 0x4000};
}

static bool load(struct guest *g, u64 version)
{
	return held_image_load(&image, g->t, version);
}

static void save_ranges(struct guest *g, const struct dbt_image_range *r, u32 n)
{
	EXPECT(held_image_save(&image, g->t, 7, r, n));
	dbt_exec_remove(g->t, 0, 1ull << 47);
}

static void save(struct guest *g)
{
	struct dbt_image_range r = snippets_range();

	save_ranges(g, &r, 1);
}

static struct native_step *steps[ARRAY_SIZE(snip_programs)];
static u64 counts[ARRAY_SIZE(snip_programs)];

static void run_all(struct guest *g)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++) {
		const struct program *p = &snip_programs[i];
		u64 before = guest_count(g, METER_INSTRUCTIONS);

		guest_call(g, p->fn, p->abc[0], p->abc[1], p->abc[2]);
		EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, counts[i]);
	}
}

static struct guest *begin(void)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = guest_main();

	dbt_set_mask(g->t, DBT_MASK_ALL);
	dbt_exec_add(g->t, r.start, r.end - r.start, 0);
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs) && !steps[i]; i++)
		counts[i] = native_steps(g, snip_programs[i].fn, snip_programs[i].abc, 1000000,
					 &steps[i]);
	return g;
}

/* What was translated of it comes from an image then, and all of it. */
static void run_all_from_image(struct guest *g)
{
	struct dbt_image_range r = snippets_range();
	struct dbt_stats stats;

	run_all(g);
	save(g);
	EXPECT(load(g, 7));
	dbt_exec_adopt(g->t, r.start, r.end - r.start, 0);
	run_all(g);
	dbt_stats_read(&stats);
	EXPECT_EQ(stats.blocks, 0);
	EXPECT_EQ(stats.woken, 0);
}

TEST(an_image_counts_as_what_it_was_made_from)
{
	struct guest *g = begin();

	for (u32 round = 0; round < 3; round++)
		run_all_from_image(g);
	/* So its pages stay those that other processes have too. */
	for (u32 i = 0; i < image.nr_mapped; i++)
		EXPECT(!memcmp(image.mapped[i].at, image.bytes + image.mapped[i].from,
			       image.mapped[i].len));
}

/* Most programs that take an image add little. */
TEST(little_memory_is_asked_for_behind_an_image)
{
	enum { PAGES = 256 };
	struct guest *g = begin();
	unsigned char resident[PAGES];
	u32 n = 0;
	u8 *end;

	run_all(g);
	save(g);
	EXPECT(load(g, 7));
	end = (u8 *)(((u64)image.mapped[2].at + image.mapped[2].len + 0xfff) & ~0xfffull);
	/* Where an earlier cache has been is nothing any more. */
	dbt_set_mask(g->t, 0);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	EXPECT_EQ(madvise(end, PAGES * 4096, MADV_DONTNEED), 0);
	image.at = 0;
	EXPECT(load(g, 7));
	EXPECT_EQ(mincore(end, PAGES * 4096, resident), 0);
	for (u32 i = 0; i < PAGES; i++)
		n += resident[i] & 1;
	EXPECT(n <= 16);
	dbt_exec_remove(g->t, 0, 1ull << 47);
}

/* Two functions that have one place in a thread's table, however large it is, and their caller. */
static u8 *two_functions(u64 apart)
{
	static const u8 caller[] = {
		0xff, 0xd7,       /* call rdi */
		0xff, 0xd6,       /* call rsi */
		0x48, 0xff, 0xca, /* dec rdx */
		0x75, 0xf7,       /* jnz caller */
		0xc3,
	};
	static const u8 function[] = {0x8d, 0x40, 0x01, 0xc3}; /* lea eax, [rax + 1]; ret */
	u8 *at = mmap(NULL, apart + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);

	memcpy(at, function, sizeof(function));
	memcpy(at + apart, function, sizeof(function));
	memcpy(at + 64, caller, sizeof(caller));
	return at;
}

/* No code leads from one range to another, so those who share a place are woken after a while. */
TEST(who_has_the_place_of_another_range_wakes)
{
	u64 apart = 1 << 20;
	u8 *at = two_functions(apart);
	struct dbt_image_range r[] = {{(u64)at, (u64)at + 4096},
				      {(u64)at + apart, (u64)at + apart + 4096}};
	struct guest *g = begin();
	u64 before = guest_count(g, METER_INSTRUCTIONS);
	struct dbt_stats stats;

	for (u32 i = 0; i < 2; i++)
		dbt_exec_add(g->t, r[i].start, 4096, 0);
	guest_call(g, at + 64, (u64)at, (u64)at + apart, 100);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, 801);
	save_ranges(g, r, 2);
	EXPECT(load(g, 7));
	for (u32 i = 0; i < 2; i++)
		dbt_exec_adopt(g->t, r[i].start, 4096, 0);
	before = guest_count(g, METER_INSTRUCTIONS);
	guest_call(g, at + 64, (u64)at, (u64)at + apart, 5);
	dbt_check(g->t);
	dbt_stats_read(&stats);
	EXPECT_EQ(stats.woken, 0);
	guest_call(g, at + 64, (u64)at, (u64)at + apart, 100);
	EXPECT_EQ(guest_count(g, METER_INSTRUCTIONS) - before, 801 + 41);
	dbt_check(g->t);
	dbt_stats_read(&stats);
	EXPECT_EQ(stats.blocks, 0);
	EXPECT_EQ(stats.woken, 2);
	munmap(at, apart + 4096);
}

/* What an image has brought and nobody has looked for goes on into the next one. */
TEST(images_grow)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = begin();
	struct dbt_stats stats;

	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++) {
		const struct program *p = &snip_programs[i];

		guest_call(g, p->fn, p->abc[0], p->abc[1], p->abc[2]);
		dbt_check(g->t);
		save(g);
		EXPECT(load(g, 7));
		dbt_check(g->t);
		dbt_exec_adopt(g->t, r.start, r.end - r.start, 0);
	}
	run_all(g);
	dbt_check(g->t);
	dbt_stats_read(&stats);
	EXPECT_EQ(stats.blocks, 0);
	/* Gone with their range, whether they were found or not. */
	dbt_exec_remove(g->t, r.start, r.end - r.start);
	g->t->regs.rip = (u64)snip_loop;
	EXPECT_EQ(dbt_run(g->t), DBT_NO_EXEC);
	dbt_check(g->t);
	dbt_exec_add(g->t, r.start, r.end - r.start, 0);
	run_all(g);
	dbt_check(g->t);
}

/* Before that its addresses are as good as not mapped. */
TEST(what_is_not_mapped_again_is_not_executed)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = begin();
	struct dbt_stats stats;

	run_all(g);
	save(g);
	EXPECT(load(g, 7));
	g->t->regs.rip = (u64)snip_loop;
	EXPECT_EQ(dbt_run(g->t), DBT_NO_EXEC);
	/* Something else is there now. */
	dbt_exec_add(g->t, r.start, r.end - r.start, 0);
	run_all(g);
	dbt_stats_read(&stats);
	EXPECT(stats.blocks > 0);
}

TEST(an_image_of_another_translator_or_a_damaged_one_is_none)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = begin();
	u64 used;

	run_all(g);
	save(g);
	used = image.used;
	EXPECT(!load(g, 8));
	for (u64 cut = 0; cut < used; cut += 1 + used / 50) {
		image.at = 0;
		image.used = cut;
		EXPECT(!load(g, 7));
	}
	image.used = used;
	image.damaged = true;
	for (u32 i = 0; i < 200; i++) {
		u64 at = (u64)rand() % 8192; /* the heads and sizes */

		image.at = 0;
		image.bytes[at] ^= 1u << i % 8;
		EXPECT(!load(g, 7));
		image.bytes[at] ^= 1u << i % 8;
	}
	image.damaged = false;
	dbt_exec_add(g->t, r.start, r.end - r.start, 0);
	run_all(g);
}

TEST(not_with_other_counting)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = begin();
	u64 kind;

	run_all(g);
	save(g);
	kind = dbt_image_kind();
	EXPECT_EQ(dbt_image_kind(), kind);
	dbt_set_mask(g->t, DBT_MASK_COUNT);
	EXPECT(dbt_image_kind() != kind);
	image.at = 0;
	EXPECT(!load(g, 7));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	EXPECT(dbt_image_kind() != kind);
	image.at = 0;
	EXPECT(!load(g, 7));
	/* What is logged of branches is not the code's alone. */
	dbt_set_mask(g->t, DBT_MASK_ALL | (DBT_MASK_BRANCHES & ~(DBT_MASK_BRANCHES << 1)));
	EXPECT(!held_image_save(&image, g->t, 7, &r, 1));
}

/* With deadlines, as who is to be seen by a model later has them (test_deadline.c: all of them). */
TEST(with_deadlines)
{
	struct guest *g = begin();

	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	run_all_from_image(g);
	dbt_exec_remove(g->t, 0, 1ull << 47);
}
