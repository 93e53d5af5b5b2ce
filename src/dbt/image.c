/*
 * The cache as an image: what one process has translated, for the next one that runs the same files
 * at the same addresses. Code, bookkeeping and numbers of classes are taken as they are, so an
 * image belongs to one translator, one place of the cache and one mask.
 *
 * Blocks that come from an image are dormant: they are in no map, and nothing leads to them, until
 * the runtime says that the range they were made from is there again (dbt_exec_adopt()). Only
 * blocks that lie in one such range with all their code get into an image, and only links between
 * blocks of one range.
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

#define IMAGE_MAGIC 0x31676d6974626479ull

/* What an image has besides the memory; of the cache it came from. */
struct image_head {
	u64 magic, version, mask;
	u64 code, meta;
	u32 code_size, flags;
};

static bool image_possible(void)
{
	return !(cache.mask & ~(u64)DBT_MASK_ALL) && !cache.paths && !cache.full;
}

static const struct dbt_image_range *range_of(const struct dbt_image_range *r, u32 n, u64 pc)
{
	for (u32 i = 0; i < n; i++)
		if (pc >= r[i].start && pc < r[i].end)
			return &r[i];
	return NULL;
}

/* The range that all of @b's code is in, or NULL. */
static const struct dbt_image_range *home(const struct dbt_block *b,
					  const struct dbt_image_range *ranges, u32 n)
{
	const struct dbt_image_range *r = range_of(ranges, n, b->pc);

	if (!r || b->flags & (BLOCK_DEAD | BLOCK_CHECKED | BLOCK_FORMS))
		return NULL;
	for (u32 i = 0; i < b->nr_frags; i++)
		if (b->frags[i].pc < r->start || b->frags[i].pc + b->frags[i].len > r->end)
			return NULL;
	return r;
}

static void unlink_exit(struct dbt_exit *x)
{
	x->to = x->next = 0;
	arch_patch(x->patch, x->stub);
}

/* Leaves only what may go into an image; the cache is not used after that. */
static void strip(const struct dbt_image_range *ranges, u32 n)
{
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);

		if (!(b->flags & BLOCK_DEAD) && !home(b, ranges, n))
			block_kill(b);
	}
	for (u32 i = 0; i < cache.nr_blocks; i++)
		((struct dbt_block *)meta_at(cache.by_code[i]))->in = 0;
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);

		b->flags |= BLOCK_DORMANT;
		for (u32 j = 0; j < b->nr_exits; j++) {
			struct dbt_exit *x = &b->exits[j];
			struct dbt_block *to = meta_at(x->to);

			if (!to)
				continue;
			if ((b->flags | to->flags) & BLOCK_DEAD ||
			    range_of(ranges, n, to->pc) != range_of(ranges, n, b->pc)) {
				unlink_exit(x);
				continue;
			}
			x->next = to->in;
			to->in = meta_ref_of(x);
		}
	}
}

u64 dbt_image_used(void)
{
	return cache.meta_used + cache.hot + (cache.code_size - cache.cold);
}

bool dbt_image_save(struct dbt_thread *t, u64 version, const struct dbt_image_range *ranges, u32 n,
		    bool (*write)(void *ctx, const void *from, u64 len), void *ctx)
{
	struct image_head head = {
		.magic = IMAGE_MAGIC,
		.version = version,
		.mask = cache.mask,
		.code = (u64)cache.code,
		.meta = (u64)cache.meta,
		.code_size = cache.code_size,
		.flags = cache.flags,
	};
	bool ok;

	cache_lock(t);
	ok = image_possible();
	if (ok) {
		strip(ranges, n);
		ok = write(ctx, &head, sizeof(head)) && write(ctx, &cache, sizeof(cache)) &&
		     write(ctx, cache.code, cache.hot) &&
		     write(ctx, (const void *)code_addr(cache.cold),
			   cache.code_size - cache.cold) &&
		     write(ctx, cache.meta, cache.meta_used);
	}
	cache_unlock(t);
	return ok;
}

/* What of the cache is this process's and not the image's. */
static void keep(const struct dbt_cache *was)
{
	cache.lock = was->lock;
	cache.ranges = was->ranges;
	cache.nr_ranges = was->nr_ranges;
	cache.max_ranges = was->max_ranges;
	cache.threads = was->threads;
	cache.ops = was->ops;
	cache.epoch = was->epoch + 1;
	cache.flushing = 0;
	cache.meta_mapped = was->meta_mapped;
	cache.hot_filled = was->hot_filled;
	cache.cold_filled = was->cold_filled;
	cache.meta_filled = was->meta_filled;
	cache.large_pages = was->large_pages;
	cache.write = was->write;
	cache.frozen = was->frozen;
	cache.copies = was->copies;
	cache.own_from = was->own_from;
	cache.own_to = was->own_to;
	cache.piece = was->piece;
	memcpy(cache.copied, was->copied, sizeof(cache.copied));
	cache.taken = was->taken;
	memset(&cache.stats, 0, sizeof(cache.stats));
	cache.verify_at = 0;
}

static void forget_maps(void)
{
	cache.by_pc.count = 0;
	memset(cache.by_pc.heads, 0, cache.by_pc.size * sizeof(meta_ref));
	for (u32 i = 0; i < TABLES; i++) {
		cache.tables[i].count = 0;
		memset(cache.tables[i].heads, 0, cache.tables[i].size * sizeof(meta_ref));
	}
}

/* Before it is known whether the image is whole. */
static bool sizes_fit(const struct dbt_cache *was)
{
	return cache.code == was->code && cache.meta == was->meta &&
	       cache.code_size == was->code_size && cache.meta_size == was->meta_size &&
	       cache.hot <= cache.cold && cache.cold <= cache.code_size &&
	       cache.meta_used <= cache.meta_size - 2 * META_SLACK;
}

bool dbt_image_load(struct dbt_thread *t, u64 version, const struct dbt_image_source *from)
{
	static struct dbt_cache was;
	struct image_head head;
	bool fits, ok;

	if (!image_possible() || !from->read(from->ctx, &head, sizeof(head)) ||
	    head.magic != IMAGE_MAGIC || head.version != version || head.mask != cache.mask ||
	    head.code != (u64)cache.code || head.meta != (u64)cache.meta ||
	    head.code_size != cache.code_size || head.flags != cache.flags)
		return false;
	cache_lock(t);
	was = cache;
	ok = fits = from->read(from->ctx, &cache, sizeof(cache)) && sizes_fit(&was);
	if (fits) {
		keep(&was);
		ok = cache_fill_upto(cache.meta_used) &&
		     from->read(from->ctx, code_at(0), cache.hot) &&
		     from->read(from->ctx, code_at(cache.cold), cache.code_size - cache.cold) &&
		     from->read(from->ctx, cache.meta, cache.meta_used) && from->end(from->ctx);
	}
	if (ok) {
		forget_maps();
		arch_forget_code();
		meter_attach(t);
	} else {
		/* What has been read is to be zeroes again. */
		was.meta_mapped = fits ? cache.meta_mapped : was.meta_mapped;
		was.meta_used = fits ? max_u64(cache.meta_used, was.meta_used) : was.meta_used;
		cache = was;
		flush_all(t->id);
	}
	cache_unlock(t);
	return ok;
}

static void wake(struct dbt_block *b)
{
	b->flags &= (u16)~BLOCK_DORMANT;
	block_again(b);
}

void dbt_exec_adopt(struct dbt_thread *t, u64 start, u64 len, u32 flags)
{
	cache_lock(t);
	exec_range_add(start, start + len, flags);
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);

		if (b->flags & BLOCK_DORMANT && !(b->flags & BLOCK_DEAD) && b->pc - start < len)
			wake(b);
	}
	cache_unlock(t);
}
