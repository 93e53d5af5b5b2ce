/*
 * Forks that translate for one another. What a child translates ends with it, and a shell starts
 * one after the other that do the same. So each tells in memory that all of them share where it has
 * translated something, and who forks has that translated before the next one. The next one then
 * need not, nor have pages of the bookkeeping copied for it.
 *
 * What is told is a place in code, no more: others can write there too, and whoever reads it takes
 * it for what it is only where he may execute himself. Code that is traced is not told of, since
 * how it is cut into blocks has a say in what the model of a machine counts.
 *
 * Who has made a block for his children does not find it himself: memory may be written to by
 * others without our being told, and what has not been executed has to be executed as it is then.
 * For the same reason he looks before each fork whether the bytes are still those that he has
 * translated. Only code of files is made so: to read other memory may take a thread of the guest.
 */
#include "base/image-sum.h"
#include "dbt/arch-priv.h"
#include "sys/fill.h"
#include "sys/string.h"

#define ENTRY BIT(63) /* a lookup led there */
#define TOLD  (DBT_TOLD_SIZE / (u32)sizeof(u64) - 1)

struct dbt_told {
	u32 n; /* may be more than there is room for; atomic */
	u32 reserved;
	u64 at[TOLD]; /* 0: not written yet, or never */
};

_Static_assert(sizeof(struct dbt_told) == DBT_TOLD_SIZE, "what the runtime gives");

/* Blocks that were made for children, and the sum of their bytes. */
static struct lesson {
	meta_ref block;
	u32 reserved;
	u64 sum;
} lessons[TOLD] used_late;
static u32 nr_lessons, lessons_epoch;
static u64 lessons_filled;

/* Of the bytes at @pc; false: they cannot be read. */
static bool sum_add(struct image_sum *sum, u64 pc, u32 len)
{
	u64 words[32];

	while (len) {
		u32 n = (u32)min_u64(len, sizeof(words));

		words[(n - 1) / 8] = 0;
		if (dbt_fetch((u8 *)words, pc, n) != n)
			return false;
		image_sum_add(sum, words, (n + 7) / 8);
		pc += n;
		len -= n;
	}
	return true;
}

/* 0: not all of it can be read. */
static u64 sum_of(const struct dbt_block *b)
{
	struct image_sum sum = {0};

	for (u32 i = 0; i < b->nr_frags; i++) {
		const struct block_frag *f = &block_frags(b)[i];

		if (f->len)
			exec_touch(f->pc);
		if (!sum_add(&sum, f->pc, f->len))
			return 0;
	}
	return image_sum_of(&sum);
}

static void keep_lesson(const struct dbt_block *b)
{
	fill_ahead((u8 *)lessons, sizeof(lessons), &lessons_filled,
		   (nr_lessons + 1) * sizeof(*lessons));
	lessons[nr_lessons++] = (struct lesson){.block = meta_ref_of(b), .sum = sum_of(b)};
}

/* Whether it still is what it was. Else the block goes, as nobody has executed its code here. */
static bool holds(const struct lesson *l)
{
	struct dbt_block *b = meta_at(l->block);
	u64 sum;

	if (b->flags & BLOCK_DEAD)
		return false;
	sum = sum_of(b);
	if (sum && sum == l->sum)
		return true;
	block_kill(b);
	return false;
}

/* What is written to is copied for the next child: mostly nothing is. */
static void look_again(void)
{
	u32 n = 0;

	if (lessons_epoch != cache.epoch) {
		nr_lessons = 0;
		lessons_epoch = cache.epoch;
	}
	while (n < nr_lessons && holds(&lessons[n]))
		n++;
	for (u32 i = n + 1; i < nr_lessons; i++)
		if (holds(&lessons[i]))
			lessons[n++] = lessons[i];
	if (n < nr_lessons)
		nr_lessons = n;
}

void dbt_relatives(struct dbt_thread *t, struct dbt_told *told)
{
	cache_lock(t);
	cache.told = told;
	cache_unlock(t);
}

/* A fault there would count as the program's, and one where code is read for others. */
static struct dbt_told *told_ready(void)
{
	if (!cache.told_ready) {
		populate_own(cache.told, DBT_TOLD_SIZE);
		/* What was read before the fork is not mapped behind it, if it is a file's. */
		memset(cache.touched, 0, sizeof(cache.touched));
		cache.told_ready = true;
	}
	return cache.told;
}

void relatives_forked(void)
{
	cache.telling = cache.told;
	cache.inherited = cache.hot;
	cache.told_ready = false;
}

void relatives_tell(u64 pc, u32 flags, enum exit_kind why)
{
	struct dbt_told *told;
	u32 i;

	if (flags & (BLOCK_DEAD | BLOCK_CHECKED | BLOCK_EXACT | BLOCK_PASSES) ||
	    form_is_traced(flags & BLOCK_FORMS))
		return;
	told = told_ready();
	if (__atomic_load_n(&told->n, __ATOMIC_RELAXED) >= TOLD)
		return;
	i = __atomic_fetch_add(&told->n, 1, __ATOMIC_RELAXED);
	if (i < TOLD)
		__atomic_store_n(&told->at[i], pc | (why == EXIT_MISS ? ENTRY : 0),
				 __ATOMIC_RELAXED);
}

/* Code that is not traced, in this process. */
static u32 untraced_form(void)
{
	return form_is_traced(0) ? BLOCK_PLAIN : 0;
}

static struct dbt_block *make(u64 pc, enum exit_kind why, u32 form)
{
	struct dbt_block *b;
	u64 fault;

	if (nr_lessons == TOLD)
		return NULL;
	b = arch_translate(pc, why, form, NULL, &fault);
	if (!b || b->flags & (BLOCK_DEAD | BLOCK_CHECKED))
		return NULL;
	keep_lesson(b);
	return b;
}

static void learn(u64 what)
{
	enum exit_kind why = what & ENTRY ? EXIT_MISS : EXIT_JUMP;
	u64 pc = what & ~ENTRY;
	const struct exec_range *r = exec_find(pc);
	u32 form = untraced_form();
	struct dbt_block *b;

	if (!r || r->flags != DBT_EXEC_FILE || (why == EXIT_MISS && entry_known(pc, form)))
		return;
	b = block_find(pc, form);
	if (!b)
		b = block_find_learnt(pc, form);
	if (!b)
		b = make(pc, why, form | BLOCK_LEARNT);
	if (b && why == EXIT_MISS)
		(void)arch_entry(b);
}

/* Of blocks from number @from on, in order of their code. */
static void link_from(u32 from)
{
	for (u32 i = from; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);

		for (u32 j = 0; j < b->nr_exits && !(b->flags & BLOCK_DEAD); j++) {
			struct dbt_exit *x = &block_exits(b)[j];
			struct dbt_block *to;

			if (x->kind != EXIT_JUMP || !x->patch || x->to)
				continue;
			to = block_find(x->target, b->flags & BLOCK_PLAIN);
			if (!to)
				to = block_find_learnt(x->target, b->flags & BLOCK_PLAIN);
			if (to)
				exit_link(x, to);
		}
	}
}

void dbt_learn(struct dbt_thread *t)
{
	struct dbt_told *told;
	u32 n, first;

	if (!cache.told)
		return;
	cache_lock(t);
	told = told_ready();
	cache.learning = true;
	look_again();
	n = (u32)min_u64(__atomic_load_n(&told->n, __ATOMIC_RELAXED), TOLD);
	/* Somebody else has found it full. */
	if (n < cache.learnt)
		cache.learnt = 0;
	first = cache.nr_blocks;
	for (; cache.learnt < n && code_thaw() && cache_has_room(); cache.learnt++) {
		u64 what = __atomic_load_n(&told->at[cache.learnt], __ATOMIC_RELAXED);

		if (what)
			learn(what);
	}
	cache.learning = false;
	link_from(first);
	if (cache.learnt == TOLD) {
		cache.learnt = 0;
		__atomic_store_n(&told->n, 0, __ATOMIC_RELAXED);
	}
	cache_unlock(t);
}
