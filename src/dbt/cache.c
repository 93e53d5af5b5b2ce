/*
 * The code cache and its maps: guest pc to block, page to blocks, code address to block, lookup tables.
 * Code and bookkeeping are bump-allocated and die together in flush_all(); a single block dies by
 * becoming unreachable (block_kill), so nobody who is inside ever loses the ground under its feet.
 */
#include "dbt/cache-priv.h"
#include "sys/call.h"
#include "sys/string.h"

struct dbt_cache cache;

#define CACHE_DEFAULT (64ull << 20)
#define MEGABYTE      (1ull << 20)

void cache_lock(struct dbt_thread *t)
{
	lock_acquire(&cache.lock, t->id);
}

void cache_unlock(struct dbt_thread *t)
{
	lock_release(&cache.lock, t->id);
}

static u64 map_hint; /* where the next table goes, 0: where the kernel likes */

static void *map_pages(u64 size)
{
	long p = sys_mmap((void *)map_hint, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(p))
		return NULL;
	if (map_hint)
		map_hint = (u64)p + ALIGN_UP(size, PAGE_SIZE);
	return (void *)p;
}

int dbt_init(const struct dbt_config *config)
{
	u64 size = config->cache_size ? config->cache_size : CACHE_DEFAULT;
	long p;

	size = min_u64(ALIGN_UP(size, MEGABYTE), 1024 * MEGABYTE);
	memset(&cache, 0, sizeof(cache));
	cache.ops = *config->ops;
	cache.flags = config->flags;
	cache.mask = config->mask;
	cache.threads.next = cache.threads.prev = &cache.threads;
	cache.epoch = 1;

	p = sys_mmap((void *)config->cache_hint, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(p))
		return (int)p;
	map_hint = config->tables_hint;
	cache.code = (u8 *)p;
	cache.code_size = (u32)size;
	cache.meta_size = size * 4;
	cache.max_blocks = (u32)(size / 32);
	cache.max_ranges = 65536;
	cache.meta = map_pages(cache.meta_size);
	cache.by_pc = map_pages(BLOCK_BUCKETS * sizeof(void *));
	cache.pages = map_pages(PAGE_BUCKETS * sizeof(void *));
	cache.by_code = map_pages(cache.max_blocks * sizeof(void *));
	cache.ranges = map_pages(cache.max_ranges * sizeof(*cache.ranges));
	for (u32 i = 0; i < TABLES; i++) {
		cache.tables[i] = map_pages(TABLE_SIZE * sizeof(void *));
		if (!cache.tables[i])
			return -ENOMEM;
	}
	if (!cache.meta || !cache.by_pc || !cache.pages || !cache.by_code || !cache.ranges)
		return -ENOMEM;
	cache_reset();
	return 0;
}

void dbt_code_range(u64 *start, u64 *end)
{
	*start = (u64)cache.code;
	*end = (u64)cache.code + cache.code_size;
}

/* Zeroes a mapping, giving its memory back to the kernel. */
static void drop(void *p, u64 size)
{
	sys_madvise(p, ALIGN_UP(size, PAGE_SIZE), MADV_DONTNEED);
}

/* An empty cache, with nothing but its own stubs. */
void cache_reset(void)
{
	cache.hot = 0;
	cache.cold = cache.code_size;
	cache.meta_used = 16; /* so that nothing has the reference 0 */
	cache.full = 0;
	cache.verify_at = 0;
	cache.hot_filled = 0;
	cache.cold_filled = cache.code_size;
	cache.meta_filled = 0;
	plan_forget();
	__atomic_store_n(&cache.nr_blocks, 0, __ATOMIC_RELEASE);
	arch_init();
	cache.floor = cache.cold;
}

void *meta_alloc(u64 size)
{
	void *p = cache.meta + cache.meta_used;

	size = ALIGN_UP(size, 16);
	CHECK(cache.meta_used + size <= cache.meta_size);
	cache.meta_used += size;
	return p;
}

/* Memory is asked for in pieces: a fault for each page costs several times as much. */
#define FILL (64u << 10)

static void fill(u8 *from)
{
	sys_madvise((void *)ALIGN_DOWN((u64)from, PAGE_SIZE), FILL, MADV_POPULATE_WRITE);
}

/* Sees to it that the next block finds memory. */
void cache_fill(void)
{
	while (cache.hot + FILL / 4 > cache.hot_filled &&
	       cache.hot_filled + 2 * FILL < cache.cold) {
		fill(code_at(cache.hot_filled));
		cache.hot_filled += FILL;
	}
	while (cache.cold - FILL / 4 < cache.cold_filled &&
	       cache.hot + 2 * FILL < cache.cold_filled) {
		cache.cold_filled -= FILL;
		fill(code_at(cache.cold_filled));
	}
	while (cache.meta_used + FILL / 4 > cache.meta_filled &&
	       cache.meta_filled + FILL <= cache.meta_size) {
		fill(cache.meta + cache.meta_filled);
		cache.meta_filled += FILL;
	}
}

bool cache_has_room(void)
{
	return !cache.full && cache.cold - cache.hot > CODE_SLACK &&
	       cache.meta_size - cache.meta_used > META_SLACK && cache.nr_blocks < cache.max_blocks;
}

/*
 * Forgets everything. Called with the lock held by @t, which is not in the cache; returns with it held.
 * New entries into the cache see `flushing` and wait for the lock (dbt_run); those inside are kicked
 * out until none is left. A thread in a system call or in the runtime has no address of the cache.
 */
void flush_all(struct dbt_thread *t)
{
	const struct __kernel_timespec pause = {.tv_nsec = 200000};
	u32 never = 0;

	__atomic_store_n(&cache.flushing, 1, __ATOMIC_SEQ_CST);
	for (struct dbt_thread *o = cache.threads.next; o != &cache.threads; o = o->next) {
		if (o == t)
			continue;
		for (u32 i = 0; __atomic_load_n(&o->in_cache, __ATOMIC_SEQ_CST); i++) {
			if (i % 16 == 0 && cache.ops.kick)
				cache.ops.kick(o);
			if (i < 4)
				sys_sched_yield();
			else
				sys_futex(&never, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
		}
	}
	for (u32 i = 0; i < PAGE_BUCKETS; i++) {
		for (struct code_page *p = cache.pages[i]; p; p = p->next) {
			if (p->flags & PAGE_PROTECTED)
				cache.ops.protect(p->number << PAGE_SHIFT, PAGE_SIZE, false);
		}
	}
	drop(cache.meta, cache.meta_used);
	drop(cache.by_pc, BLOCK_BUCKETS * sizeof(void *));
	drop(cache.pages, PAGE_BUCKETS * sizeof(void *));
	for (u32 i = 0; i < TABLES; i++)
		drop(cache.tables[i], TABLE_SIZE * sizeof(void *));
	drop(cache.code, cache.code_size);
	cache_reset();
	cache.epoch++;
	cache.stats.flushes++;
	__atomic_store_n(&cache.flushing, 0, __ATOMIC_SEQ_CST);
}

/* Neighbours in code are neighbours in the table, so that a small program touches few of its pages. */
static u32 block_hash(u64 pc)
{
	return (u32)((pc >> 4) ^ ((pc >> 20) * 0x9e3779b97f4a7c15ull >> 48)) & (BLOCK_BUCKETS - 1);
}

struct dbt_block *block_find(u64 pc)
{
	struct dbt_block *b = cache.by_pc[block_hash(pc)];

	while (b && b->pc != pc)
		b = b->next;
	return b;
}

static u32 page_hash(u64 number)
{
	return (u32)((number * 0x9e3779b97f4a7c15ull) >> 52);
}

struct code_page *page_find(u64 number)
{
	struct code_page *p = cache.pages[page_hash(number)];

	while (p && p->number != number)
		p = p->next;
	return p;
}

struct code_page *page_get(u64 number)
{
	struct code_page *p = page_find(number);
	u32 h = page_hash(number);

	if (!p) {
		p = meta_alloc(sizeof(*p));
		p->number = number;
		p->next = cache.pages[h];
		cache.pages[h] = p;
	}
	return p;
}

void block_insert(struct dbt_block *b, const u64 *pages, u32 nr_pages)
{
	u32 h = block_hash(b->pc);

	b->next = cache.by_pc[h];
	cache.by_pc[h] = b;
	for (u32 i = 0; i < nr_pages; i++) {
		struct code_page *p = page_get(pages[i]);
		struct page_ref *ref = meta_alloc(sizeof(*ref));

		ref->block = b;
		ref->next = p->blocks;
		p->blocks = ref;
	}
	cache.by_code[cache.nr_blocks] = b;
	/* Pairs with block_by_code(), which may run in a signal handler of another thread. */
	__atomic_store_n(&cache.nr_blocks, cache.nr_blocks + 1, __ATOMIC_RELEASE);
	cache.stats.blocks++;
	cache.stats.guest_insns += b->nr_insns;
	cache.stats.code_bytes += b->code_end - b->start;
}

struct dbt_block *block_by_code(u64 pc)
{
	u32 lo = 0, hi = __atomic_load_n(&cache.nr_blocks, __ATOMIC_ACQUIRE);
	u32 off = (u32)(pc - (u64)cache.code);

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;
		struct dbt_block *b = cache.by_code[mid];

		if (off < b->start)
			hi = mid;
		else if (off >= b->code_end)
			lo = mid + 1;
		else
			return b;
	}
	return NULL;
}

static u64 *jump_table(struct dbt_thread *t)
{
	return (u64 *)((char *)t + TABLE_JUMP_GS);
}

static struct ret_slot *ret_table(struct dbt_thread *t)
{
	return (struct ret_slot *)((char *)t + TABLE_RET_GS);
}

void thread_tables_clear(struct dbt_thread *t)
{
	drop((char *)t + DBT_TABLES_AT, DBT_TABLES_SIZE);
	ret_table(t)[0].minus_pc = ret_table(t)[1].minus_pc = RET_SLOT_FREE;
}

void thread_table_fill(struct dbt_thread *t, const struct dbt_entry *e)
{
	u32 i = table_index(e->table, e->pc);
	struct ret_slot *slot;

	if (e->table == TABLE_JUMP) {
		jump_table(t)[i] = code_addr(cache.tables[TABLE_JUMP][i]->code);
		return;
	}
	slot = &ret_table(t)[i];
	if (slot->minus_pc == -e->pc)
		return;
	slot[1] = slot[0];
	slot->code = code_addr(e->code);
	slot->minus_pc = -e->pc;
}

/* A thread that has just compared the pc may still get to the code: it is inside a dying block then. */
static void ret_forget(const struct dbt_entry *e)
{
	for (struct dbt_thread *t = cache.threads.next; t != &cache.threads; t = t->next) {
		struct ret_slot *slot = &ret_table(t)[table_index(TABLE_RET, e->pc)];

		for (u32 way = 0; way < 2; way++)
			if (slot[way].minus_pc == -e->pc)
				__atomic_store_n(&slot[way].minus_pc, RET_SLOT_FREE,
						 __ATOMIC_RELEASE);
	}
}

/* Becomes the first of its chain. Threads learn of it when they miss, each for its own table. */
void entry_add(struct dbt_entry *e)
{
	struct dbt_entry **head = &cache.tables[e->table][table_index(e->table, e->pc)];

	e->next = *head;
	if (e->link)
		arch_patch(e->link, e->next ? e->next->code : cache.miss_code[e->table]);
	*head = e;
	e->sibling = e->block->entries;
	e->block->entries = e;
}

struct dbt_entry *entry_find(enum entry_table table, u64 pc)
{
	struct dbt_entry *e = cache.tables[table][table_index(table, pc)];

	while (e && e->pc != pc)
		e = e->next;
	return e;
}

/*
 * The entry matches nothing from now on and is bypassed by the chain. A thread's own table may still
 * lead to it; then it passes on to the next, since its link stays as it is.
 */
static void entry_kill(struct dbt_entry *e)
{
	struct dbt_entry **head = &cache.tables[e->table][table_index(e->table, e->pc)];
	struct dbt_entry *pred = *head;

	e->dead = true;
	if (e->word)
		__atomic_store_n((u64 *)code_at(e->word), ENTRY_DEAD_WORD, __ATOMIC_RELEASE);
	else
		ret_forget(e);
	if (pred == e) {
		*head = e->next;
		return;
	}
	while (pred->next != e)
		pred = pred->next;
	pred->next = e->next;
	if (pred->link)
		arch_patch(pred->link, e->next ? e->next->code : cache.miss_code[e->table]);
}

/*
 * No way leads into the block any more when this returns: not by lookup, link, return or call. Threads
 * that are inside run on until its next exit; its own exits stay linked, and in their targets' lists,
 * for their sake.
 */
void block_kill(struct dbt_block *b)
{
	struct dbt_block **p = &cache.by_pc[block_hash(b->pc)];
	struct dbt_exit *x;
	meta_ref next;

	CHECK(!(b->flags & BLOCK_DEAD));
	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	b->flags |= BLOCK_DEAD;
	for (x = meta_at(b->in); x; x = meta_at(next)) {
		next = x->next;
		x->to = x->next = 0;
		arch_patch(x->patch, x->stub);
	}
	b->in = 0;
	for (struct dbt_entry *e = b->entries; e; e = e->sibling)
		entry_kill(e);
	cache.stats.invalidations++;
}

void dbt_set_mask(struct dbt_thread *t, u32 mask)
{
	cache_lock(t);
	if (mask != cache.mask) {
		cache.mask = mask;
		flush_all(t);
	}
	cache_unlock(t);
}

void dbt_stats_read(struct dbt_stats *stats)
{
	*stats = cache.stats;
}
