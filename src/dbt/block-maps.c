/*
 * What is found in the code cache, and how: guest pc to block, page to blocks, code address to
 * block, guest pc to entry; each of blocks that are awake, and of those that an image has brought
 * and that sleep. A block dies by becoming unreachable (block_kill()), so what a thread inside it
 * executes stays there.
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

#define MAP_FIRST 1024u
#define MAP_MAX   (1u << 20)

/* Gives @m a larger array, which is empty; the caller moves there what is in *@old. */
static bool map_grow(struct hash_map *m, struct hash_map *old, u32 max)
{
	u32 size = m->size ? m->size * 4 : MAP_FIRST;
	meta_ref *heads;

	*old = *m;
	if (size > max)
		return false;
	heads = meta_try(size * sizeof(*heads));
	if (!heads)
		return false;
	m->heads = heads;
	m->size = size;
	return true;
}

static void map_init(struct hash_map *m)
{
	m->size = MAP_FIRST;
	m->heads = meta_alloc(m->size * sizeof(*m->heads));
}

bool maps_init(void)
{
	if (!meta_map(cache.meta_used + 2 * META_SLACK))
		return false;
	meta_ready();
	map_init(&cache.by_pc);
	for (u32 i = 0; i < TABLES; i++)
		map_init(&cache.tables[i]);
	return true;
}

/* Makes room for one more in by_code, if need be by a copy of twice the size. */
bool by_code_room(void)
{
	u32 room = cache.max_blocks ? cache.max_blocks * 2 : 1024;
	meta_ref *to;

	if (cache.nr_blocks < cache.max_blocks)
		return true;
	to = meta_try(room * sizeof(*to));
	if (!to)
		return false;
	memcpy(to, cache.by_code, cache.nr_blocks * sizeof(*to));
	/* Pairs with block_by_code(). */
	__atomic_store_n(&cache.by_code, to, __ATOMIC_RELEASE);
	cache.max_blocks = room;
	return true;
}

bool maps_begin(void)
{
	map_init(&cache.pages);
	return maps_init() && by_code_room();
}

/*
 * Neighbours in code are neighbours in the table, so that a small program touches few of its pages.
 */
static u32 block_hash(const struct hash_map *m, u64 pc)
{
	return (u32)((pc >> 4) ^ ((pc >> 20) * 0x9e3779b97f4a7c15ull >> 48)) & (m->size - 1);
}

static struct dbt_block *find_in(const struct hash_map *m, u64 pc, u32 form)
{
	struct dbt_block *b = m->size ? meta_at(m->heads[block_hash(m, pc)]) : NULL;

	while (b && (b->pc != pc || (b->flags & BLOCK_FORMS) != form))
		b = meta_at(b->next);
	return b;
}

struct dbt_block *block_find_awake(u64 pc, u32 form)
{
	return find_in(&cache.by_pc, pc, form);
}

struct dbt_block *block_find_learnt(u64 pc, u32 form)
{
	return find_in(&cache.by_pc, pc, form | BLOCK_LEARNT);
}

struct dbt_block *block_find_dormant(u64 pc, u32 form)
{
	return find_in(&cache.dormant.by_pc, pc, form);
}

static void by_pc_add(struct hash_map *m, struct dbt_block *b)
{
	meta_ref *head = &m->heads[block_hash(m, b->pc)];

	b->next = *head;
	*head = meta_ref_of(b);
}

static void by_pc_remove(struct hash_map *m, const struct dbt_block *b)
{
	meta_ref *p = &m->heads[block_hash(m, b->pc)];

	while (*p != meta_ref_of(b))
		p = &((struct dbt_block *)meta_at(*p))->next;
	meta_own(p);
	*p = b->next;
	m->count--;
}

static void by_pc_grow(void)
{
	struct dbt_block *b, *next;
	struct hash_map old;

	if (!map_grow(&cache.by_pc, &old, MAP_MAX))
		return;
	for (u32 i = 0; i < old.size; i++) {
		for (b = meta_at(old.heads[i]); b; b = next) {
			next = meta_at(b->next);
			by_pc_add(&cache.by_pc, b);
		}
	}
}

static u32 page_hash(const struct hash_map *m, u64 number)
{
	return (u32)((number * 0x9e3779b97f4a7c15ull) >> 40) & (m->size - 1);
}

struct code_page *page_find(u64 number)
{
	struct code_page *p = meta_at(cache.pages.heads[page_hash(&cache.pages, number)]);

	while (p && p->number != number)
		p = meta_at(p->next);
	return p;
}

static void page_add(struct code_page *p)
{
	meta_ref *head = &cache.pages.heads[page_hash(&cache.pages, p->number)];

	meta_own(head);
	p->next = *head;
	*head = meta_ref_of(p);
}

static void pages_grow(void)
{
	struct code_page *p, *next;
	struct hash_map old;

	if (!map_grow(&cache.pages, &old, MAP_MAX))
		return;
	for (u32 i = 0; i < old.size; i++) {
		for (p = meta_at(old.heads[i]); p; p = next) {
			next = meta_at(p->next);
			page_add(p);
		}
	}
}

struct code_page *page_get(u64 number)
{
	struct code_page *p = page_find(number);

	if (p)
		return p;
	if (map_is_crowded(&cache.pages))
		pages_grow();
	p = meta_alloc(sizeof(*p));
	p->number = number;
	cache.pages.count++;
	page_add(p);
	return p;
}

void block_insert(struct dbt_block *b, const u64 *pages, u32 nr_pages, struct page_ref *refs)
{
	if (map_is_crowded(&cache.by_pc))
		by_pc_grow();
	cache.by_pc.count++;
	by_pc_add(&cache.by_pc, b);
	for (u32 i = 0; i < nr_pages; i++) {
		struct code_page *p = page_get(pages[i]);

		refs[i].block = meta_ref_of(b);
		meta_own(&p->blocks);
		refs[i].next = p->blocks;
		p->blocks = (u32)(((u64)&refs[i] - (u64)cache.meta) / sizeof(*refs));
	}
	meta_own(&cache.by_code[cache.nr_blocks]);
	cache.by_code[cache.nr_blocks] = meta_ref_of(b);
	/* Pairs with block_by_code(), which may run in a signal handler of another thread. */
	__atomic_store_n(&cache.nr_blocks, cache.nr_blocks + 1, __ATOMIC_RELEASE);
	cache.stats.blocks++;
	cache.stats.guest_insns += b->nr_insns;
	cache.stats.code_bytes += b->code_end - b->start;
}

struct dbt_block *block_by_code(u64 pc)
{
	u32 lo = 0, hi = __atomic_load_n(&cache.nr_blocks, __ATOMIC_ACQUIRE);
	const meta_ref *by_code = __atomic_load_n(&cache.by_code, __ATOMIC_ACQUIRE);
	u32 off = (u32)(pc - (u64)cache.code);

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;
		struct dbt_block *b = meta_at(by_code[mid]);

		if (off < b->start)
			hi = mid;
		else if (off >= b->code_end)
			lo = mid + 1;
		else
			return b;
	}
	return NULL;
}

u32 entry_hash(const struct hash_map *m, u64 pc)
{
	return (u32)(pc >> cache.index_shift) & (m->size - 1);
}

/* Of those that are awake. */
static struct hash_map *map_of(enum entry_table table, u32 form)
{
	if (unlikely(form & BLOCK_LEARNT))
		return &cache.learnt_tables[table];
	return form & BLOCK_PLAIN ? &cache.plain_tables[table] : &cache.tables[table];
}

/* Of those that sleep. */
static struct hash_map *dormant_of(enum entry_table table, u32 form)
{
	return form & BLOCK_PLAIN ? &cache.dormant.plain_tables[table]
				  : &cache.dormant.tables[table];
}

/* Becomes the first of its chain. */
static void entry_push(struct hash_map *m, struct dbt_entry *e)
{
	meta_ref *head = &m->heads[entry_hash(m, e->pc)];
	const struct dbt_entry *next = meta_at(*head);

	e->next = *head;
	if (entry_link(e))
		arch_patch(e->link, next ? next->code : cache.miss_code);
	*head = meta_ref_of(e);
}

/*
 * Threads may be on their way through the chains meanwhile. From each entry they get to the next
 * one of the old chain or, once it has been patched, to one that was patched before it. So they get
 * to the end of a chain, and what they have missed they find when they hold the lock.
 */
static void entries_grow(struct hash_map *m, enum entry_table table)
{
	struct dbt_entry *e, *next;
	/*
	 * What shares a slot of a thread's table must be of one chain, or it would be replaced in
	 * turn.
	 */
	u32 max = table == TABLE_JUMP ? TABLE_SIZE : MAP_MAX;
	struct hash_map old;

	if (!map_grow(m, &old, max))
		return;
	for (u32 i = 0; i < old.size; i++) {
		for (e = meta_at(old.heads[i]); e; e = next) {
			next = meta_at(e->next);
			entry_push(m, e);
		}
	}
}

/* A thread's own table gets the entry when a lookup of the thread misses it. */
void entry_add(struct dbt_entry *e)
{
	struct dbt_block *b = entry_block(e);
	struct hash_map *m = map_of((enum entry_table)e->table, entry_block(e)->flags);

	if (map_is_crowded(m))
		entries_grow(m, (enum entry_table)e->table);
	m->count++;
	entry_push(m, e);
	meta_own(&b->entries);
	e->sibling = b->entries;
	b->entries = meta_ref_of(e);
}

static struct dbt_entry *entry_in(const struct hash_map *m, u64 pc)
{
	struct dbt_entry *e = m->size ? meta_at(m->heads[entry_hash(m, pc)]) : NULL;

	while (e && e->pc != pc)
		e = meta_at(e->next);
	return e;
}

/* It comes to be in no chain; nothing leads to one that sleeps, so no code changes. */
static void sleeper_remove(struct dbt_entry *e)
{
	struct hash_map *m = dormant_of((enum entry_table)e->table, entry_block(e)->flags);
	meta_ref *p = &m->heads[entry_hash(m, e->pc)];

	while (*p != meta_ref_of(e))
		p = &((struct dbt_entry *)meta_at(*p))->next;
	meta_own(p);
	*p = e->next;
	m->count--;
}

static void wake(struct dbt_block *b)
{
	struct dbt_entry *e;

	by_pc_remove(&cache.dormant.by_pc, b);
	meta_own(&b->flags);
	meta_own(&b->next);
	b->flags &= (u16)~BLOCK_DORMANT;
	cache.stats.woken++;
	if (map_is_crowded(&cache.by_pc))
		by_pc_grow();
	cache.by_pc.count++;
	by_pc_add(&cache.by_pc, b);
	block_for_each_entry (b, e) {
		struct hash_map *m = map_of((enum entry_table)e->table, b->flags);
		meta_ref *head;

		if (!e->dormant)
			continue;
		sleeper_remove(e);
		meta_own(&e->next);
		meta_own(&e->resume); /* beside which the flags are */
		e->dormant = false;
		if (map_is_crowded(m))
			entries_grow(m, (enum entry_table)e->table);
		m->count++;
		head = &m->heads[entry_hash(m, e->pc)];
		e->next = *head;
		if (entry_link(e))
			arch_patch(e->link, e->next ? ((struct dbt_entry *)meta_at(e->next))->code
						    : cache.miss_code);
		*head = meta_ref_of(e);
	}
}

/* Of those that were made for children only these find them. */
static bool is_inherited(const struct dbt_block *b)
{
	return b->start < cache.inherited;
}

/* Of those that sleep only what may be executed is there again. */
struct dbt_block *block_find(u64 pc, u32 form)
{
	struct dbt_block *b = block_find_awake(pc, form);

	if (!b && !(form & ~BLOCK_PLAIN)) {
		b = block_find_dormant(pc, form);
		if (b && !exec_find(pc))
			b = NULL;
	}
	if (b || likely(!cache.inherited))
		return b;
	b = block_find_learnt(pc, form);
	return b && is_inherited(b) ? b : NULL;
}

struct dbt_entry *entry_find(enum entry_table table, u64 pc, u32 form)
{
	struct dbt_entry *e = entry_in(map_of(table, form), pc);
	const struct dbt_block *b;

	if (!e && !(form & BLOCK_LEARNT)) {
		e = entry_in(dormant_of(table, form), pc);
		if (e && !exec_find(pc))
			e = NULL;
	}
	if (e || likely(!cache.inherited) || form & BLOCK_LEARNT)
		return e;
	e = entry_in(&cache.learnt_tables[table], pc);
	if (!e)
		return NULL;
	b = entry_block(e);
	return is_inherited(b) && (b->flags & BLOCK_FORMS) == (form | BLOCK_LEARNT) ? e : NULL;
}

/*
 * What shares the place of one that sleeps in a thread's table may be of another range, to which no
 * code leads: if they are sought in turns each time is one for the lock.
 */
#define SOUGHT_OFTEN 16u

void entry_missed(struct dbt_entry *e)
{
	if (unlikely(e->dormant) && sought_again(cache.sought, e) == SOUGHT_OFTEN)
		wake(entry_block(e));
}

/* An empty map for @count of what is in @a or @b now: one of their arrays, or a larger one. */
static bool map_again(struct hash_map *to, const struct hash_map *a, const struct hash_map *b,
		      u32 max)
{
	u32 count = a->count + b->count, size = MAP_FIRST;

	while (size / 2 <= count && size < max)
		size *= 4;
	*to = a->size > b->size ? *a : *b;
	to->count = 0;
	if (!count && !to->size)
		return true;
	if (to->size >= size) {
		memset(to->heads, 0, to->size * sizeof(*to->heads));
		return true;
	}
	to->size = size;
	to->heads = meta_try(size * sizeof(*to->heads));
	return to->heads;
}

/* Before the first of the same range, which it leads to. */
static void entry_sleep(struct dbt_entry *e, const struct dbt_image_range *ranges, u32 n)
{
	struct hash_map *m = dormant_of((enum entry_table)e->table, entry_block(e)->flags);
	const struct dbt_image_range *range = image_range(ranges, n, entry_block(e)->pc);
	meta_ref *at = &m->heads[entry_hash(m, e->pc)], *head = at;
	struct dbt_entry *next = meta_at(*at);

	while (next && image_range(ranges, n, entry_block(next)->pc) != range) {
		at = &next->next;
		next = meta_at(*at);
	}
	if (!next)
		at = head;
	e->next = *at;
	*at = meta_ref_of(e);
	e->dormant = true;
	m->count++;
	if (entry_link(e))
		arch_patch(e->link, next ? next->code : cache.miss_code);
}

u64 maps_sleep_most(void)
{
	u64 count = cache.by_pc.count + cache.dormant.by_pc.count;

	for (u32 i = 0; i < TABLES; i++) {
		count += cache.tables[i].count + cache.dormant.tables[i].count;
		count += cache.plain_tables[i].count + cache.dormant.plain_tables[i].count;
	}
	return (8 * count + (1 + 2 * TABLES) * MAP_FIRST) * sizeof(meta_ref);
}

static bool tables_again(struct hash_map *dormant, const struct hash_map *awake)
{
	for (u32 i = 0; i < TABLES; i++)
		if (!map_again(&dormant[i], &dormant[i], &awake[i],
			       i == TABLE_JUMP ? TABLE_SIZE : MAP_MAX))
			return false;
	return true;
}

bool maps_sleep(const struct dbt_image_range *ranges, u32 n)
{
	if (!map_again(&cache.dormant.by_pc, &cache.dormant.by_pc, &cache.by_pc, MAP_MAX) ||
	    !tables_again(cache.dormant.tables, cache.tables) ||
	    !tables_again(cache.dormant.plain_tables, cache.plain_tables))
		return false;
	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]);
		struct dbt_entry *e;

		if (b->flags & BLOCK_DEAD)
			continue;
		b->flags |= BLOCK_DORMANT;
		by_pc_add(&cache.dormant.by_pc, b);
		cache.dormant.by_pc.count++;
		block_for_each_entry (b, e)
			entry_sleep(e, ranges, n);
	}
	memset(&cache.by_pc, 0, sizeof(cache.by_pc));
	memset(cache.tables, 0, sizeof(cache.tables));
	memset(cache.plain_tables, 0, sizeof(cache.plain_tables));
	return true;
}

/*
 * The entry matches nothing from now on and is no longer in the chain. A thread's own table may
 * still lead to it; it passes the thread on to the next entry then, since its link stays as it is.
 */
static void entry_kill(struct dbt_entry *e)
{
	struct hash_map *m = map_of((enum entry_table)e->table, entry_block(e)->flags);
	meta_ref *head = &m->heads[entry_hash(m, e->pc)];
	struct dbt_entry *pred = meta_at(*head);
	const struct dbt_entry *next = meta_at(e->next);

	e->dead = true;
	m->count--;
	arch_entry_kill(e);
	if (pred == e) {
		*head = e->next;
		return;
	}
	while (meta_at(pred->next) != e)
		pred = meta_at(pred->next);
	pred->next = e->next;
	if (entry_link(pred))
		arch_patch(pred->link, next ? next->code : cache.miss_code);
}

/*
 * When this returns nothing leads into the block any more: no lookup, link, return or call. Threads
 * that are inside run on to its next exit. For their sake its own exits stay linked, and in the
 * lists of their targets.
 */
void block_kill(struct dbt_block *b)
{
	struct dbt_entry *e;
	struct dbt_exit *x;
	meta_ref next;

	CHECK(!(b->flags & BLOCK_DEAD));
	by_pc_remove(b->flags & BLOCK_DORMANT ? &cache.dormant.by_pc : &cache.by_pc, b);
	b->flags |= BLOCK_DEAD;
	for (x = meta_at(b->in); x; x = meta_at(next)) {
		next = x->next;
		x->to = x->next = 0;
		arch_patch(x->patch, x->stub);
	}
	b->in = 0;
	block_for_each_entry (b, e) {
		if (!e->dormant) {
			entry_kill(e);
			continue;
		}
		/* Others of its image may have called it, and return there. */
		sleeper_remove(e);
		e->dead = true;
		arch_entry_kill(e);
	}
	cache.stats.invalidations++;
}
