/*
 * What memory the guest may execute, and what happens when it changes. Ranges are what the runtime
 * has told. Pages are kept for ourselves: a page enters the map when a block is made from it, and
 * stays there with what was learnt of it.
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

/* Index of the first range that ends after @pc. */
static u32 range_after(u64 pc)
{
	u32 lo = 0, hi = cache.nr_ranges;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (cache.ranges[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct exec_range *exec_find(u64 pc)
{
	/* Mostly the last one is asked for again. Any number will do, as it is compared. */
	static u32 last;
	u32 i = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (i < cache.nr_ranges && cache.ranges[i].start <= pc && pc < cache.ranges[i].end)
		return &cache.ranges[i];
	i = range_after(pc);
	__atomic_store_n(&last, i, __ATOMIC_RELAXED);
	return i < cache.nr_ranges && cache.ranges[i].start <= pc ? &cache.ranges[i] : NULL;
}

#define AROUND 0x10000ull /* what the kernel maps of a file at a fault */

/*
 * The CPU executes the translation and never the code, so what an image has brought was never read
 * here, nor what only children execute. A fault while more of it is translated would count as the
 * program's, where natively there is none: it has been there before.
 */
void exec_touch(u64 pc)
{
	const struct exec_range *r;
	u64 start = ALIGN_DOWN(pc, AROUND), end = start + AROUND;
	u32 number = (u32)(start / AROUND), *touched = &cache.touched[number % TOUCHED];

	if (likely(!cache.meta_image && !cache.learning) || *touched == number)
		return;
	*touched = number;
	r = exec_find(pc);
	if (r && exec_is_constant(r)) {
		start = max_u64(start, r->start);
		sys_madvise((void *)start, min_u64(end, r->end) - start, MADV_POPULATE_READ);
	}
}

bool ranges_map(u32 n)
{
	if (n > RANGES_MAX)
		return false;
	while (n > cache.max_ranges) {
		u8 *at = (u8 *)cache.ranges + cache.max_ranges * sizeof(*cache.ranges);
		long p = tables_map(at, RANGES_PIECE * sizeof(*cache.ranges));

		if (p != (long)at)
			return false;
		cache.max_ranges += RANGES_PIECE;
	}
	return true;
}

/* What one call adds at most: a range, and one more by dividing another. */
#define RANGES_MORE 2

bool dbt_exec_room(struct dbt_thread *t)
{
	bool room;

	cache_lock(t);
	room = ranges_map(cache.nr_ranges + RANGES_MORE);
	cache_unlock(t);
	return room;
}

static void range_insert(u32 at, u64 start, u64 end, u32 flags)
{
	const struct exec_range r = {start, end, flags};
	u32 n = cache.nr_ranges;

	CHECK(n < cache.max_ranges);
	cache.ranges[n] = at == n ? r : cache.ranges[n - 1];
	/* Before the others move, so that the last one is not lost (exec_repair()). */
	__atomic_store_n(&cache.nr_ranges, n + 1, __ATOMIC_RELEASE);
	memmove(&cache.ranges[at + 1], &cache.ranges[at], (n - at) * sizeof(*cache.ranges));
	cache.ranges[at] = r;
}

static void ranges_delete(u32 at, u32 n)
{
	u32 left = cache.nr_ranges - n;

	memmove(&cache.ranges[at], &cache.ranges[at + n], (left - at) * sizeof(*cache.ranges));
	__atomic_store_n(&cache.nr_ranges, left, __ATOMIC_RELEASE);
}

static void ranges_clear(u64 start, u64 end)
{
	u32 i = range_after(start), last;
	struct exec_range *r = &cache.ranges[i];

	if (i == cache.nr_ranges || r->start >= end)
		return;
	if (r->start < start && r->end > end) {
		range_insert(i + 1, end, r->end, r->flags);
		r->end = start;
		return;
	}
	if (r->start < start) {
		r->end = start;
		i++;
	}
	for (last = i; last < cache.nr_ranges && cache.ranges[last].end <= end; last++)
		;
	if (last < cache.nr_ranges && cache.ranges[last].start < end)
		cache.ranges[last].start = end;
	ranges_delete(i, last - i);
}

void exec_repair(void)
{
	u64 end = 0;
	u32 n = 0;

	for (u32 i = 0; i < cache.nr_ranges; i++) {
		struct exec_range r = cache.ranges[i];

		if (r.start < end || r.start >= r.end)
			continue;
		end = r.end;
		cache.ranges[n++] = r;
		/* A page may have been protected without being marked so yet. */
		if ((r.flags & (DBT_EXEC_WRITABLE | DBT_EXEC_CHECKED)) == DBT_EXEC_WRITABLE)
			cache.ops.protect(r.start, r.end - r.start, false);
	}
	cache.nr_ranges = n;
}

static void page_forget(struct code_page *p)
{
	arch_forget_code();
	for (struct page_ref *ref = page_ref_at(p->blocks); ref; ref = page_ref_at(ref->next)) {
		struct dbt_block *b = meta_at(ref->block);

		if (!(b->flags & BLOCK_DEAD))
			block_kill(b);
	}
	p->blocks = 0;
}

/* Calls @visit for all pages of [start, end); walks the range or the map, whichever is smaller. */
static void pages_each(u64 start, u64 end, void (*visit)(struct code_page *p))
{
	u64 first = start >> PAGE_SHIFT, last = (end + PAGE_SIZE - 1) >> PAGE_SHIFT;

	if (last - first <= cache.pages.size) {
		for (u64 n = first; n < last; n++) {
			struct code_page *p = page_find(n);

			if (p)
				visit(p);
		}
		return;
	}
	for (u32 i = 0; i < cache.pages.size; i++)
		for (struct code_page *p = meta_at(cache.pages.heads[i]); p; p = meta_at(p->next))
			if (p->number >= first && p->number < last)
				visit(p);
}

/* The runtime changes the page's protection itself: ours is undone, and what we learnt is void. */
static void page_gone(struct code_page *p)
{
	page_forget(p);
	p->flags = 0;
	p->churn = 0;
}

static void page_changed(struct code_page *p)
{
	page_forget(p);
}

static bool released;

static void page_release(struct code_page *p)
{
	page_forget(p);
	if (p->flags & PAGE_PROTECTED) {
		p->flags &= (u16)~PAGE_PROTECTED;
		cache.ops.protect(p->number << PAGE_SHIFT, PAGE_SIZE, false);
		released = true;
	}
}

void exec_range_add(u64 start, u64 end, u32 flags)
{
	bool before, after;
	u32 i;

	ranges_clear(start, end);
	i = range_after(start);
	before = i > 0 && cache.ranges[i - 1].end == start && cache.ranges[i - 1].flags == flags;
	after = i < cache.nr_ranges && cache.ranges[i].start == end &&
		cache.ranges[i].flags == flags;
	if (before && after) {
		cache.ranges[i - 1].end = cache.ranges[i].end;
		ranges_delete(i, 1);
	} else if (before) {
		cache.ranges[i - 1].end = end;
	} else if (after) {
		cache.ranges[i].start = start;
	} else {
		range_insert(i, start, end, flags);
	}
}

void dbt_exec_add(struct dbt_thread *t, u64 start, u64 len, u32 flags)
{
	cache_lock(t);
	pages_each(start, start + len, page_gone);
	arch_forget_code();
	exec_range_add(start, start + len, flags);
	cache_unlock(t);
}

void dbt_exec_remove(struct dbt_thread *t, u64 start, u64 len)
{
	cache_lock(t);
	pages_each(start, start + len, page_gone);
	arch_forget_code();
	ranges_clear(start, start + len);
	/* What comes there next has not been read. */
	for (u64 at = ALIGN_DOWN(start, AROUND), n = 0; at < start + len && n < TOUCHED;
	     at += AROUND, n++)
		cache.touched[at / AROUND % TOUCHED] = 0;
	cache_unlock(t);
}

void dbt_invalidate(struct dbt_thread *t, u64 start, u64 len)
{
	cache_lock(t);
	pages_each(start, start + len, page_changed);
	cache_unlock(t);
}

bool dbt_unprotect(struct dbt_thread *t, u64 start, u64 len)
{
	bool any;

	cache_lock(t);
	released = false;
	pages_each(start, start + len, page_release);
	any = released;
	cache_unlock(t);
	return any;
}

/*
 * A page that is written this often after having been translated holds data too. From then on its
 * bytes are compared at every block, which is slow, so a JIT that fills a page bit by bit must not
 * get there: with 8 a JVM took 2.5 times as long as with 64.
 */
#define CHURN_MAX 64

bool page_written(u64 addr, bool own)
{
	struct code_page *p = page_find(addr >> PAGE_SHIFT);
	const struct exec_range *r = exec_find(addr);

	/*
	 * Another thread may have been here first. Then the write succeeds when it is repeated, or
	 * faults for the guest; it must not come here again and again.
	 */
	if (!p || !(p->flags & PAGE_PROTECTED))
		return r && r->start <= addr && r->flags & DBT_EXEC_WRITABLE &&
		       !cache.ops.protect(ALIGN_DOWN(addr, PAGE_SIZE), PAGE_SIZE, false);
	if (own || ++p->churn >= CHURN_MAX)
		p->flags |= PAGE_CHECKED;
	page_release(p);
	cache.stats.write_faults++;
	return true;
}
