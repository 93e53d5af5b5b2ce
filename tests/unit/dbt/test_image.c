/* What is translated goes into an image, and from there into an empty cache. */
#include "unit/dbt/guest.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct {
	u8 *bytes;
	u64 used, room, at;
	bool damaged;
} image;

static bool put(void *ctx, const void *from, u64 len)
{
	(void)ctx;
	if (image.used + len > image.room) {
		image.room = (image.used + len) * 2;
		image.bytes = realloc(image.bytes, image.room);
	}
	memcpy(image.bytes + image.used, from, len);
	image.used += len;
	return true;
}

/* Pages of it, which begin at a page's beginning. */
static bool put_pages(void *ctx, const void *from, u64 len)
{
	static const u8 zeroes[4096];

	return put(ctx, zeroes, -image.used & 4095) && put(ctx, from, len);
}

static bool get(void *ctx, void *to, u64 len)
{
	(void)ctx;
	if (image.at + len > image.used)
		return false;
	memcpy(to, image.bytes + image.at, len);
	image.at += len;
	return true;
}

static bool get_pages(void *ctx, void *at, u64 len, int prot)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		       0);

	EXPECT(p == at);
	image.at += -image.at & 4095;
	return get(ctx, at, len) && !mprotect(at, len, prot);
}

static bool whole(void *ctx)
{
	(void)ctx;
	return image.at == image.used && !image.damaged;
}

static const struct dbt_image_source source = {get, get_pages, whole, NULL};

/* Where the snippets are. */
static struct dbt_image_range snippets_range(void)
{
	u64 page = (u64)snip_loop & ~0xfffull;

	return (struct dbt_image_range){page - 0x1000, page + 0x4000};
}

static void save(struct guest *g)
{
	struct dbt_image_range r = snippets_range();
	u64 start, end;
	u8 *scratch;

	dbt_code_range(&start, &end);
	scratch = calloc(1, end - start);
	image.used = image.at = 0;
	EXPECT(dbt_image_save(g->t, 7, &r, 1,
			      &(struct dbt_image_target){put, put_pages, NULL, scratch}));
	dbt_forget(g->t);
	free(scratch);
	dbt_exec_remove(g->t, 0, 1ull << 47);
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

TEST(an_image_counts_as_what_it_was_made_from)
{
	struct dbt_image_range r = snippets_range();
	struct guest *g = begin();
	struct dbt_stats stats;

	for (u32 round = 0; round < 3; round++) {
		run_all(g);
		save(g);
		EXPECT(dbt_image_load(g->t, 7, &source));
		dbt_exec_adopt(g->t, r.start, r.end - r.start, 0);
		run_all(g);
		dbt_stats_read(&stats);
		EXPECT_EQ(stats.blocks, 0);
	}
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
		EXPECT(dbt_image_load(g->t, 7, &source));
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
	EXPECT(dbt_image_load(g->t, 7, &source));
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
	EXPECT(!dbt_image_load(g->t, 8, &source));
	for (u64 cut = 0; cut < used; cut += 1 + used / 50) {
		image.at = 0;
		image.used = cut;
		EXPECT(!dbt_image_load(g->t, 7, &source));
	}
	image.used = used;
	image.damaged = true;
	for (u32 i = 0; i < 200; i++) {
		u64 at = (u64)rand() % 8192; /* the heads and sizes */

		image.at = 0;
		image.bytes[at] ^= 1u << i % 8;
		EXPECT(!dbt_image_load(g->t, 7, &source));
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

	run_all(g);
	save(g);
	dbt_set_mask(g->t, DBT_MASK_COUNT);
	image.at = 0;
	EXPECT(!dbt_image_load(g->t, 7, &source));
	dbt_set_mask(g->t, DBT_MASK_ALL | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	EXPECT(!dbt_image_save(g->t, 7, &r, 1,
			       &(struct dbt_image_target){put, put_pages, NULL, NULL}));
	dbt_forget(g->t);
}
