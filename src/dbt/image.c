/*
 * The cache as an image: what one process has translated, for the next one that runs the same files
 * at the same addresses. Code, bookkeeping and numbers of classes are taken as they are, so an
 * image belongs to one translator, one place of the cache and one mask.
 *
 * An image is mapped and not read, so that processes share its pages until they change them: the
 * code is what a fork finds frozen (code-memory.c), and the bookkeeping is copied page by page.
 *
 * Blocks that come from an image are dormant: they are in maps of their own, and whoever finds one
 * there asks whether its code may be executed. They stay there, so that nothing of the image has to
 * change: an entry that is sought again and again, since another one has its place in a thread's
 * table, is woken with its block, and then in the maps and chains that all others are in.
 *
 * Only blocks that lie in one range with all their code get into an image, and code leads only to
 * blocks and entries of the same range. So whoever gets to a block, awake or not, gets there from a
 * range that the runtime has found again (dbt_exec_adopt()).
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

#define IMAGE_MAGIC 0x31676d6974626479ull

/* What of the cache itself goes into an image. */
#define IMAGE_PART offsetof(struct dbt_cache, process)

/* What an image has besides the memory; of the cache it came from. */
struct image_head {
	u64 magic, version, mask;
	u64 code, meta;
	u32 code_size, flags;
};

/*
 * Code that traces all the time is not kept: who asks for that reads descriptions from elsewhere.
 * With windows it is what a model has seen a program execute, and the descriptions are with it.
 */
bool dbt_image_possible(void)
{
	const u64 traces = DBT_MASK_WINDOWS | DBT_MASK_TRACE | DBT_MASK_MEMORY | DBT_MASK_FILTER;
	u64 may = DBT_MASK_ALL | DBT_MASK_ANY_DEADLINES;

	if (cache.mask & DBT_MASK_WINDOWS)
		may |= traces;
	else if (cache.paths)
		return false;
	/* Else numbers of paths are described elsewhere, too. */
	if (cache.paths && cache.paths->from_path != PATH_FIRST)
		return false;
	return !(cache.mask & ~may) && !cache.full;
}

/*
 * Numbers of paths are given once, so an image that goes from one process to the next uses them up.
 * Before it does code that traces begins anew.
 */
static bool paths_run_out(void)
{
	return cache.nr_paths > PATH_WORDS / 2 || cache.path_log > PATH_LOG / 2;
}

const struct dbt_image_range *image_range(const struct dbt_image_range *r, u32 n, u64 pc)
{
	static u32 last; /* most are asked for many times in turn */

	if (last < n && pc >= r[last].start && pc < r[last].end)
		return &r[last];
	for (u32 i = 0; i < n; i++) {
		if (pc >= r[i].start && pc < r[i].end) {
			last = i;
			return &r[i];
		}
	}
	return NULL;
}

/* The range that all of @b's code is in, or NULL. */
static const struct dbt_image_range *home(const struct dbt_block *b,
					  const struct dbt_image_range *ranges, u32 n)
{
	const struct dbt_image_range *r = image_range(ranges, n, b->pc);

	if (!r || b->flags & (BLOCK_DEAD | BLOCK_CHECKED | (BLOCK_FORMS & ~BLOCK_PLAIN)) ||
	    (form_is_traced(b->flags & BLOCK_FORMS) && paths_run_out()))
		return NULL;
	for (u32 i = 0; i < b->nr_frags; i++) {
		const struct block_frag *f = &block_frags(b)[i];

		/* The last one, without instructions, says what follows: that may be anywhere. */
		if (f->len && (f->pc < r->start || f->pc + f->len > r->end))
			return NULL;
	}
	return r;
}

static void unlink_exit(struct dbt_exit *x)
{
	x->to = x->next = 0;
	arch_patch(x->patch, x->stub);
}

/* Bytes of code that links of an image may make. */
#define LINKS_MOST (64u << 10)

/* Also exits that nobody has taken often enough while their code was shared. */
static void link_all(const struct dbt_image_range *ranges, u32 n)
{
	u32 most = cache.hot + LINKS_MOST - EXIT_CODE_MOST;

	for (u32 i = 0; i < cache.nr_blocks; i++) {
		struct dbt_block *b = meta_at(cache.by_code[i]), *to;

		for (u32 j = 0; j < b->nr_exits && !(b->flags & BLOCK_DEAD); j++) {
			struct dbt_exit *x = &block_exits(b)[j];

			if (x->kind != EXIT_JUMP || !x->patch || x->to ||
			    (x->counts && (!was_sought(cache.taken_exits, x) || cache.hot > most)))
				continue;
			to = block_find_dormant(x->target, b->flags & BLOCK_PLAIN);
			if (to && image_range(ranges, n, to->pc) == image_range(ranges, n, b->pc))
				exit_link(x, to);
		}
	}
}

/* There are blocks left of pages only that cannot be written to. */
static void page_rest(struct code_page *p)
{
	if (p->flags & PAGE_PROTECTED)
		cache.ops.protect(p->number << PAGE_SHIFT, PAGE_SIZE, false);
	p->flags = p->churn = 0;
}

/* Leaves only what may go into an image. */
static bool strip(const struct dbt_image_range *ranges, u32 n)
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

		for (u32 j = 0; j < b->nr_exits; j++) {
			struct dbt_exit *x = &block_exits(b)[j];
			struct dbt_block *to = meta_at(x->to);

			if (!to)
				continue;
			if ((b->flags | to->flags) & BLOCK_DEAD ||
			    image_range(ranges, n, to->pc) != image_range(ranges, n, b->pc)) {
				unlink_exit(x);
				continue;
			}
			x->next = to->in;
			to->in = meta_ref_of(x);
		}
	}
	for (u32 i = 0; i < cache.pages.size; i++)
		for (struct code_page *p = meta_at(cache.pages.heads[i]); p; p = meta_at(p->next))
			page_rest(p);
	if (!maps_sleep(ranges, n))
		return false;
	link_all(ranges, n);
	return true;
}

/* The filter that code has, which traces accesses by records; 0: none. */
static u32 filter_kind(void)
{
	if (!(cache.mask & DBT_MASK_FILTER))
		return 0;
	return cache.filter_sets << 16 | (u32)cache.filter_plain << 8 | cache.filter_shift;
}

u64 dbt_image_kind(void)
{
	u64 kind = arch_cpu();

	kind = (kind ^ cache.mask) * 0x9e3779b97f4a7c15ull;
	kind = (kind ^ kind >> 32 ^ cache.flags) * 0x9e3779b97f4a7c15ull;
	kind = (kind ^ kind >> 32 ^ filter_kind()) * 0x9e3779b97f4a7c15ull;
	return (kind ^ kind >> 32 ^ cache.code_size) * 0x9e3779b97f4a7c15ull;
}

/* Descriptions of paths. */
static u64 paths_used(void)
{
	return cache.paths ? cache.nr_paths * sizeof(struct path_entry) + cache.path_log : 0;
}

u64 dbt_image_used(void)
{
	return cache.meta_used + cache.hot + (cache.code_size - cache.cold) + paths_used();
}

u64 dbt_image_useful(struct dbt_thread *t, const struct dbt_image_range *ranges, u32 n)
{
	u64 kept = 0, useful;

	cache_lock(t);
	/* Those of the image come first. */
	for (u32 i = cache.nr_blocks; i; i--) {
		const struct dbt_block *b = meta_at(cache.by_code[i - 1]);

		if (b->start < cache.image_hot)
			break;
		if (!(b->flags & BLOCK_DEAD) && home(b, ranges, n))
			kept += b->code_end - b->start;
	}
	/* Bookkeeping and cold code go with hot code. */
	useful = cache.image_used;
	if (kept)
		useful += (dbt_image_used() - useful) * kept / (cache.hot - cache.image_hot);
	cache_unlock(t);
	return useful;
}

void dbt_image_complete(struct dbt_thread *t)
{
	cache_lock(t);
	if (dbt_image_possible())
		arch_translate_once_more();
	cache_unlock(t);
}

u64 dbt_image_most(void)
{
	return dbt_image_used() + maps_sleep_most() + LINKS_MOST + 2 * PAGE_SIZE;
}

/* The code, whole pages of it. */
static u32 hot_pages(void)
{
	return (u32)ALIGN_UP(cache.hot, PAGE_SIZE);
}

static u32 cold_pages(void)
{
	return (u32)ALIGN_DOWN(cache.cold, PAGE_SIZE);
}

/* Nobody else executes the code, here or in a relative, and all of it can be written to. */
static bool is_code_ours(const struct dbt_thread *t)
{
	return cache.threads.next == t && t->next == &cache.threads && !cache.frozen &&
	       !cache.own_from && cache.own_to == cache.code_size;
}

/* Else it is a copy of it that is stripped. */
static void write_to_copy(u8 *scratch)
{
	sys_madvise(scratch, hot_pages(), MADV_POPULATE_WRITE);
	sys_madvise(scratch + cold_pages(), cache.code_size - cold_pages(), MADV_POPULATE_WRITE);
	memcpy(scratch, cache.code, cache.hot);
	memcpy(scratch + cache.cold, cache.code + cache.cold, cache.code_size - cache.cold);
	cache.write = scratch;
	cache.frozen = false;
	cache.own_from = 0;
	cache.own_to = cache.code_size;
}

static bool has_paths(void)
{
	return cache.paths && cache.nr_paths;
}

/* Of their entries and their log, which begin with pages. */
static u64 entries_pages(void)
{
	return ALIGN_UP(cache.nr_paths * sizeof(struct path_entry), PAGE_SIZE);
}

static u64 log_pages(void)
{
	return ALIGN_UP((u64)cache.path_log, PAGE_SIZE);
}

static bool write_paths(const struct dbt_image_target *to)
{
	return !has_paths() || (to->pages(to->ctx, cache.paths->path, entries_pages()) &&
				to->pages(to->ctx, cache.paths->log, log_pages()));
}

static bool write_all(const struct dbt_image_target *to, const struct image_head *head)
{
	return to->write(to->ctx, head, sizeof(*head)) && to->write(to->ctx, &cache, IMAGE_PART) &&
	       to->pages(to->ctx, cache.write, hot_pages()) &&
	       to->pages(to->ctx, cache.write + cold_pages(), cache.code_size - cold_pages()) &&
	       to->pages(to->ctx, cache.meta, ALIGN_UP(cache.meta_used, PAGE_SIZE)) &&
	       write_paths(to);
}

bool dbt_image_save(struct dbt_thread *t, u64 version, const struct dbt_image_range *ranges, u32 n,
		    const struct dbt_image_target *to)
{
	struct image_head head;
	u32 own_from, own_to, nr_paths, path_log;
	bool frozen, ok;
	u8 *write;

	cache_lock(t);
	if (!dbt_image_possible())
		return false;
	write = cache.write;
	frozen = cache.frozen;
	own_from = cache.own_from;
	own_to = cache.own_to;
	nr_paths = cache.nr_paths;
	path_log = cache.path_log;
	head = (struct image_head){
		.magic = IMAGE_MAGIC,
		.version = version,
		.mask = cache.mask,
		.code = (u64)cache.code,
		.meta = (u64)cache.meta,
		.code_size = cache.code_size,
		.flags = cache.flags,
	};
	if (!is_code_ours(t)) {
		write_to_copy(to->scratch);
		/* Nearly all of it changes, and a fault for each page costs more. */
		sys_madvise(cache.meta, ALIGN_UP(cache.meta_used, PAGE_SIZE), MADV_POPULATE_WRITE);
	}
	memset(cache.meta_own, 0xff, sizeof(cache.meta_own));
	ok = strip(ranges, n);
	if (paths_run_out())
		cache.nr_paths = cache.path_log = 0;
	ok = ok && write_all(to, &head);
	cache.nr_paths = nr_paths;
	cache.path_log = path_log;
	cache.write = write;
	cache.frozen = frozen;
	cache.own_from = own_from;
	cache.own_to = own_to;
	return ok;
}

void dbt_forget(struct dbt_thread *t)
{
	flush_all(t->id);
	cache_unlock(t);
}

/* Before it is known whether the image is whole. */
static bool fits(const struct dbt_cache *image)
{
	return image->code == cache.code && image->meta == cache.meta &&
	       image->code_size == cache.code_size && image->meta_size == cache.meta_size &&
	       image->hot + CODE_SLACK <= image->cold && image->cold <= image->code_size &&
	       image->meta_used <= cache.meta_size - 2 * META_SLACK &&
	       image->fixed_tables == cache.fixed_tables &&
	       (!image->nr_paths ||
		(cache.paths && image->nr_paths >= PATH_FIRST &&
		 image->nr_paths <= PATH_WORDS / 2 && image->path_log <= PATH_LOG / 2));
}

static bool map_paths(const struct dbt_image_source *from)
{
	const int prot = PROT_READ | PROT_WRITE;

	return !has_paths() || (from->pages(from->ctx, cache.paths->path, entries_pages(), prot) &&
				from->pages(from->ctx, cache.paths->log, log_pages(), prot));
}

/* In place of what is there. */
static bool map_pages(const struct dbt_image_source *from)
{
	u32 cold = cold_pages();
	u64 meta = ALIGN_UP(cache.meta_used, PAGE_SIZE);

	if (!meta_map(meta + 2 * META_SLACK))
		return false;
	code_freeze();
	cache.meta_image = meta;
	memset(cache.meta_own, 0, sizeof(cache.meta_own));
	return from->pages(from->ctx, (void *)cache.code, hot_pages(), PROT_READ | PROT_EXEC) &&
	       from->pages(from->ctx, (void *)(cache.code + cold), cache.code_size - cold,
			   PROT_READ | PROT_EXEC) &&
	       from->pages(from->ctx, cache.meta, meta, PROT_READ | PROT_WRITE) &&
	       map_paths(from) && from->end(from->ctx);
}

/* What the image knows of paths, or what is known without it, if that is nothing. */
static void take_paths(struct path_space *space, u32 nr_paths, u32 path_log)
{
	cache.paths = space;
	if (!cache.nr_paths) {
		cache.nr_paths = nr_paths;
		cache.path_log = path_log;
	}
	if (!space)
		return;
	cache.path_filled = ALIGN_UP((u64)cache.path_log, PAGE_SIZE) - space->from_log;
	space->logged = cache.path_log;
	__atomic_store_n(&space->paths, cache.nr_paths, __ATOMIC_RELEASE);
}

bool dbt_image_load(struct dbt_thread *t, u64 version, const struct dbt_image_source *from)
{
	static struct dbt_cache image used_late;
	struct path_space *space = cache.paths;
	u32 nr_paths = cache.nr_paths, path_log = cache.path_log;
	struct image_head head;
	bool ok;

	populate_own(&image, IMAGE_PART);
	if (!dbt_image_possible() || !from->read(from->ctx, &head, sizeof(head)) ||
	    head.magic != IMAGE_MAGIC || head.version != version || head.mask != cache.mask ||
	    head.code != (u64)cache.code || head.meta != (u64)cache.meta ||
	    head.code_size != cache.code_size || head.flags != cache.flags ||
	    !from->read(from->ctx, &image, IMAGE_PART) || !fits(&image))
		return false;
	cache_lock(t);
	cache.hot = image.hot;
	cache.cold = image.cold;
	cache.meta_used = image.meta_used;
	cache.nr_paths = image.nr_paths;
	cache.path_log = image.path_log;
	ok = map_pages(from);
	if (!ok) {
		cache.nr_paths = nr_paths;
		cache.path_log = path_log;
	} else {
		memcpy(&cache, &image, IMAGE_PART);
		take_paths(space, nr_paths, path_log);
		memset(&cache.stats, 0, sizeof(cache.stats));
		cache.verify_at = 0;
		cache.epoch++;
		cache.meta_filled = cache.meta_image;
		cache.image_used = dbt_image_used();
		cache.image_hot = cache.hot;
		cache.hot_filled = hot_pages();
		cache.cold_filled = cold_pages();
		ok = maps_init();
		arch_forget_code();
		meter_attach(t);
	}
	if (!ok)
		flush_all(t->id);
	cache_unlock(t);
	return ok;
}

bool dbt_image_has(u64 addr)
{
	return cache.meta_image &&
	       (addr - (u64)cache.meta < cache.meta_image || dbt_in_cache(addr));
}

void dbt_exec_adopt(struct dbt_thread *t, u64 start, u64 len, u32 flags)
{
	cache_lock(t);
	exec_range_add(start, start + len, flags);
	arch_forget_code();
	cache_unlock(t);
}
