/*
 * The code cache: its memory, its lock, its flush, and the tables of threads. Code and bookkeeping
 * are bump-allocated and freed together, in flush_all().
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

struct dbt_cache cache;

#define CACHE_DEFAULT (64ull << 20)
#define MEGABYTE      (1ull << 20)

/*
 * The thread that held the lock was killed in the middle of something. Of what the lock guards only
 * two things are kept: the list of threads, whose forward direction is right at every moment, and
 * the ranges, which can be repaired.
 */
static void cache_repair(u32 me)
{
	struct dbt_thread *prev = &cache.threads;

	do {
		prev->next->prev = prev;
		prev = prev->next;
	} while (prev != &cache.threads);
	exec_repair();
	flush_all(me);
}

void cache_lock_as(u32 me)
{
	if (unlikely(lock_acquire(&cache.lock, me, cache.ops.gone)))
		cache_repair(me);
}

void cache_lock(struct dbt_thread *t)
{
	cache_lock_as(t->id);
}

void cache_unlock(struct dbt_thread *t)
{
	lock_release(&cache.lock, t->id);
}

/*
 * @size bytes of addresses for us alone. At @hint nothing is mapped yet: the runtime keeps the
 * place free, and what is not mapped does not count against RLIMIT_AS. Without a hint all of it is
 * mapped.
 */
static void *reserve(u64 hint, u64 size)
{
	long p;

	if (hint)
		return (void *)hint;
	p = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return sys_failed(p) ? NULL : (void *)p;
}

long tables_map(void *at, u64 len)
{
	if (cache.ops.map)
		return cache.ops.map((u64)at, len);
	return sys_mmap(at, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

int dbt_init(const struct dbt_config *config)
{
	u64 size = config->cache_size ? config->cache_size : CACHE_DEFAULT;
	u32 shift = cache.filter_shift, sets = cache.filter_sets, plain = cache.filter_plain;
	int ret;

	size = min_u64(ALIGN_UP(size, MEGABYTE), 1024 * MEGABYTE);
	memset(&cache, 0, sizeof(cache));
	if (sets)
		dbt_filter(shift, sets, plain);
	cache.ops = *config->ops;
	cache.flags = config->flags;
	cache.mask = config->mask;
	cache.threads.next = cache.threads.prev = &cache.threads;
	cache.epoch = 1;

	ret = code_map(config, (u32)size);
	if (ret)
		return ret;
	cache.meta_size = size * 4;
	cache.ranges = reserve(config->tables_hint, RANGES_MAX * sizeof(*cache.ranges));
	cache.meta =
		reserve(config->tables_hint
				? ALIGN_UP(config->tables_hint + RANGES_MAX * sizeof(*cache.ranges),
					   MEGABYTE)
				: 0,
			cache.meta_size);
	if (!cache.ranges || !cache.meta)
		return -ENOMEM;
	cache.max_ranges = config->tables_hint ? 0 : RANGES_MAX;
	if (!ranges_map(RANGES_PIECE))
		return -ENOMEM;
	cache.meta_mapped = config->tables_hint ? 0 : cache.meta_size;
	arch_begin();
	return config->later || (code_thaw() && cache_reset()) ? 0 : -ENOMEM;
}

bool dbt_begin(struct dbt_thread *t)
{
	bool begun;

	cache_lock(t);
	begun = cache.exit_code || (code_thaw() && cache_reset());
	cache_unlock(t);
	return begun;
}

void dbt_code_range(u64 *start, u64 *end)
{
	*start = (u64)cache.code;
	*end = (u64)cache.code + cache.code_size;
}

/* Gives the memory of a mapping back to the kernel; it reads as zeroes then. */
static void drop(void *p, u64 size)
{
	sys_madvise(p, ALIGN_UP(size, PAGE_SIZE), MADV_DONTNEED);
}

/*
 * Memory is asked for in pieces, larger ones for larger programs. A fault for each page would cost
 * several times as much, and would be among the page faults that are counted for the program.
 */
#define FILL_MIN (32u << 10)
#define FILL_MAX (256u << 10)
#define FILL_LOW (16u << 10) /* hardly a block needs more */

static u32 fill_size(u64 used, u32 min)
{
	return (u32)min_u64(max_u64(ALIGN_DOWN(used / 8, min), min), FILL_MAX);
}

/* What a forked process, or its parent, makes of code of its own is little in most cases. */
#define FILL_FORKED     (8u << 10)
#define FILL_FORKED_LOW (2u << 10)

static void populate(u8 *from, u32 size)
{
	sys_madvise(from, size, MADV_POPULATE_WRITE);
}

void populate_own(void *p, u64 size)
{
	u8 *from = (u8 *)ALIGN_DOWN((u64)p, PAGE_SIZE);

	populate(from, (u32)(ALIGN_UP((u64)p + size, PAGE_SIZE) - (u64)from));
}

/* Both views. */
static void populate_code(u32 from, u32 size)
{
	populate(code_at(from), size);
	sys_madvise((void *)code_addr(from), size, MADV_POPULATE_READ);
}

void dbt_populate(u64 most)
{
	u32 cold = cache.code_size - cache.cold_filled;

	if (cache.hot_filled + cold + cache.meta_filled > most)
		return;
	if (!code_thaw())
		return;
	sys_madvise((void *)code_addr(0), cache.hot_filled, MADV_POPULATE_READ);
	sys_madvise((void *)code_addr(cache.cold_filled), cold, MADV_POPULATE_READ);
	cache_fill();
	populate(cache.meta, (u32)cache.meta_filled);
}

#define LARGE_PAGE (2u << 20)

/*
 * For a program that has so much code that the CPU's TLB for small pages does not cover it: what
 * fills a large page is collected into one. If the kernel has none the code stays where it is.
 */
static void use_large_page(void)
{
	u64 at = code_addr(cache.large_pages);

	cache.large_pages += LARGE_PAGE;
	if (at % LARGE_PAGE || code_is_shared(at - code_addr(0)))
		return;
	sys_madvise((void *)at, LARGE_PAGE, MADV_COLLAPSE);
	/* The kernel has taken the pages out of the other view. */
	populate(code_at(at - code_addr(0)), LARGE_PAGE);
}

static void meta_fill(u32 low)
{
	u32 min = cache.own_from || cache.meta_image ? 2 * FILL_FORKED : FILL_MIN;
	/* An image's last page may be used in part. */
	u64 own = cache.meta_used > cache.meta_image ? cache.meta_used - cache.meta_image : 0;
	u32 size = fill_size(cache.own_from ? 8ull * (cache.hot - cache.own_from) : own, min);

	while (cache.meta_used + low > cache.meta_filled &&
	       cache.meta_filled + size <= cache.meta_mapped) {
		populate(cache.meta + cache.meta_filled, size);
		cache.meta_filled += size;
	}
}

/* Has memory ready for the next block. */
void cache_fill(void)
{
	u32 size, low;

	CHECK(code_thaw());
	if (cache.hot >= cache.large_pages + LARGE_PAGE)
		use_large_page();
	if (cache.own_from) {
		size = fill_size(4ull * (cache.hot - cache.own_from), FILL_FORKED);
		low = FILL_FORKED_LOW;
	} else {
		size = fill_size(cache.hot + cache.code_size - cache.cold, FILL_MIN);
		low = FILL_LOW;
	}
	while (cache.hot + low > cache.hot_filled && cache.hot_filled + 2 * size < cache.cold) {
		populate_code(cache.hot_filled, size);
		cache.hot_filled += size;
	}
	while (cache.cold - low < cache.cold_filled && cache.hot + 2 * size < cache.cold_filled) {
		cache.cold_filled -= size;
		populate_code(cache.cold_filled, size);
	}
	meta_fill(low);
}

/* Maps the first @upto bytes of the bookkeeping, as far as they are not mapped yet. */
bool meta_map(u64 upto)
{
	if (upto > cache.meta_size)
		return false;
	while (cache.meta_mapped < upto) {
		long p = tables_map(cache.meta + cache.meta_mapped, MEGABYTE);

		if (p != (long)(cache.meta + cache.meta_mapped))
			return false;
		cache.meta_mapped += MEGABYTE;
	}
	return true;
}

void *meta_alloc(u64 size)
{
	void *p = cache.meta + cache.meta_used;

	size = ALIGN_UP(size, 16);
	CHECK(cache.meta_used + size <= cache.meta_mapped);
	cache.meta_used += size;
	return p;
}

void meta_shared(void)
{
	cache.meta_filled = min_u64(cache.meta_filled, ALIGN_DOWN(cache.meta_used, PAGE_SIZE));
}

void meta_own(const void *p)
{
	u64 page = ((u64)p - (u64)cache.meta) / PAGE_SIZE;

	if (likely((u64)p - (u64)cache.meta >= cache.meta_image) || page >= META_OWN ||
	    cache.meta_own[page / 64] & BIT(page % 64))
		return;
	cache.meta_own[page / 64] |= BIT(page % 64);
	populate(cache.meta + page * PAGE_SIZE, PAGE_SIZE);
}

void meta_ready(void)
{
	meta_fill(FILL_LOW);
}

void *meta_try(u64 size)
{
	void *p;

	if (!meta_map(cache.meta_used + size + META_SLACK))
		return NULL;
	p = meta_alloc(size);
	meta_ready();
	return p;
}

bool cache_reset(void)
{
	cache.meta_used = 16; /* so that nothing has the reference 0 */
	cache.full = 0;
	cache.verify_at = 0;
	cache.hot_filled = 0;
	cache.cold_filled = cache.code_size;
	cache.large_pages = 0;
	cache.meta_filled = 0;
	arch_forget_code();
	__atomic_store_n(&cache.nr_blocks, 0, __ATOMIC_RELEASE);
	cache.by_code = NULL;
	cache.max_blocks = 0;
	memset(&cache.by_pc, 0, sizeof(cache.by_pc));
	memset(&cache.pages, 0, sizeof(cache.pages));
	memset(cache.tables, 0, sizeof(cache.tables));
	memset(cache.plain_tables, 0, sizeof(cache.plain_tables));
	memset(cache.learnt_tables, 0, sizeof(cache.learnt_tables));
	cache.inherited = 0;
	memset(&cache.dormant, 0, sizeof(cache.dormant));
	if (!meta_map(2 * META_SLACK))
		return false;
	cache_fill();
	arch_init();
	cache.floor = cache.cold;
	return maps_begin();
}

bool cache_has_room(void)
{
	return !cache.full && cache.cold - cache.hot > CODE_SLACK && by_code_room() &&
	       meta_map(cache.meta_used + 2 * META_SLACK);
}

/*
 * Forgets everything. Called with the lock held by @me, which is not in the cache; returns with it
 * held. Threads that are about to enter the cache wait for the lock; those inside are kicked until
 * none is left. A thread in a system call or in the runtime has no address of the cache.
 */
void flush_all(u32 me)
{
	const struct __kernel_timespec pause = {.tv_nsec = 200000};
	u32 never = 0;

	__atomic_store_n(&cache.flushing, 1, __ATOMIC_SEQ_CST);
	for (struct dbt_thread *o = cache.threads.next; o != &cache.threads; o = o->next) {
		if (o->id == me)
			continue;
		for (u32 i = 0; __atomic_load_n(&o->in_cache, __ATOMIC_SEQ_CST); i++) {
			if (i % 16 == 0 && cache.ops.kick && !cache.ops.kick(o))
				__atomic_store_n(&o->in_cache, 0, __ATOMIC_SEQ_CST);
			if (i < 4)
				sys_sched_yield();
			else
				sys_futex(&never, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
		}
	}
	for (u32 i = 0; i < cache.pages.size; i++) {
		for (struct code_page *p = meta_at(cache.pages.heads[i]); p; p = meta_at(p->next)) {
			if (p->flags & PAGE_PROTECTED)
				cache.ops.protect(p->number << PAGE_SHIFT, PAGE_SIZE, false);
		}
	}
	if (cache.meta_image)
		CHECK(code_map_at(cache.meta, cache.meta_image, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	cache.meta_image = cache.image_used = cache.image_hot = 0;
	drop(cache.meta, cache.meta_used);
	CHECK(code_drop() && cache_reset());
	cache.epoch++;
	cache.stats.flushes++;
	__atomic_store_n(&cache.flushing, 0, __ATOMIC_SEQ_CST);
}

bool thread_reaches(struct dbt_thread *t, u32 upto)
{
	return !cache.ops.reach || upto <= t->reach || cache.ops.reach(t, upto);
}

static u32 table_size(const struct dbt_tables *tables)
{
	return (tables->jump_mask >> cache.index_shift) + 1;
}

/* Makes slots [from, to) of the table at @at lead to @code. */
static void table_clear(struct dbt_thread *t, u32 at, u32 from, u32 to, u32 code)
{
	u64 *table = thread_table(t, at);

	sys_madvise((void *)ALIGN_DOWN((u64)(table + from), PAGE_SIZE),
		    ALIGN_UP((to - from) * sizeof(u64), PAGE_SIZE), MADV_POPULATE_WRITE);
	for (u32 i = from; i < to; i++)
		table[i] = code_addr(code);
}

/*
 * A table that fills is made larger. An entry that has another number in the larger table is not
 * found there any more, which only means that the thread looks it up once more.
 */
static void table_resize(struct dbt_thread *t, u32 set, u32 from, u32 size)
{
	if (!thread_reaches(t, jumps_at(set) + size * (u32)sizeof(u64)))
		return;
	table_clear(t, jumps_at(set), from, size, cache.miss_code);
	t->tables[set].jump_mask = (size - 1) << cache.index_shift;
	t->tables[set].fills = 0;
}

static void set_clear(struct dbt_thread *t, u32 set)
{
	struct dbt_tables *tables = &t->tables[set];
	u32 ring = cache.fixed_tables  ? TABLE_SIZE
		   : tables->ring_mask ? (tables->ring_mask >> 3) + 1
				       : RING_FIRST;

	if (tables->ring_mask)
		drop(thread_table(t, jumps_at(set)), table_size(tables) * sizeof(u64));
	table_resize(t, set, 0, cache.fixed_tables ? TABLE_SIZE : TABLE_FIRST);
	table_clear(t, ring_at(set), 0, ring, cache.ret_miss_code[set]);
	tables->ring_mask = (ring - 1) << 3;
}

void thread_tables_clear(struct dbt_thread *t)
{
	if (cache.fixed_tables || table_sets() == 2)
		CHECK(thread_reaches(t, cache.fixed_tables
						? DBT_LOG_AT
						: DBT_WINDOW_JUMPS_AT + TABLE_FIRST * 8));
	for (u32 set = 0; set < table_sets(); set++)
		set_clear(t, set);
}

void thread_ring_fit(struct dbt_thread *t, u64 sp)
{
	const u32 small = (RING_FIRST - 1) << 3, set = table_set(form_of_thread(t));

	if (likely(t->tables[set].ring_mask != small))
		return;
	if (sp > t->stack_top)
		t->stack_top = sp;
	if (t->stack_top - sp <= RING_FIRST * sizeof(u64))
		return;
	table_clear(t, ring_at(set), RING_FIRST, RING_SIZE, cache.ret_miss_code[set]);
	t->tables[set].ring_mask = (RING_SIZE - 1) << 3;
}

void thread_table_fill(struct dbt_thread *t, const struct dbt_entry *e)
{
	u32 set = table_set(entry_block(e)->flags), size;
	struct dbt_tables *tables = &t->tables[set];

	size = table_size(tables);
	/*
	 * Early, since labels and functions are aligned to 16 bytes mostly, and then have a quarter
	 * of the slots: two that are used in turn and share one cost a comparison each time.
	 */
	if (++tables->fills > size / 8 && size < table_most(set))
		table_resize(t, set, size, size * 4);
	/* If what was there is of the same bucket, it comes after @e in the chain, or is dead. */
	thread_table(t, jumps_at(set))[(e->pc & tables->jump_mask) >> cache.index_shift] =
		code_addr(e->code);
}

void dbt_set_mask(struct dbt_thread *t, u64 mask)
{
	cache_lock(t);
	if (mask != cache.mask) {
		cache.mask = mask;
		flush_all(t->id);
	}
	cache_unlock(t);
}

void dbt_stats_read(struct dbt_stats *stats)
{
	*stats = cache.stats;
}
