#include "rt/load/images.h"

#include "abi/control.h"
#include "base/image-sum.h"
#include "rt/load/image-store.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/process.h"
#include "rt/task/traces.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/random.h>
#include <linux/stat.h>

#define RANGES     256u
#define USED_MAX   (96ull << 20) /* larger caches are not kept */
#define USED_LEAST (32ull << 10) /* nor what is so little more than the image had */

/* Of a tree: to write an image costs as much as to translate a tenth of it, or this. */
#define USED_LEAST_TREE (256ull << 10)
#define RUNS_TO_KEEP    8u /* of so many runs one keeps what is less, on the average */

#define BASE_MOST (2ull << 20) /* the base of programs that have no image of their own yet */

/* If it is no larger what mostly runs once is kept all the same (is_once()). */
#define FIRST_MOST (4ull << 20)

/* Code that traces, with what it is described by, takes so many times what other code takes. */
#define TRACED 3u

/*
 * Everything that is shared lies in one window of addresses, below all that the kernel gives out by
 * itself, so that every file is within the reach of the cache in its middle. ThreadSanitizer ends a
 * program that has a file below 0x7e8000000000, but for places of its own choice.
 */
#define WINDOWS_START 0x7e8000000000ul
#define WINDOWS_END   0x7ee000000000ul
#define WINDOW        0xc0000000ul
#define WINDOW_CACHE  0x60000000ul
#define WINDOW_FIRST  0x20000000ul /* programs are below, libraries above */

struct image_range {
	struct dbt_image_range at;
	struct image_file file;
};

struct image_list {
	u32 n, reserved;
	struct image_range range[RANGES];
};

static struct {
	u64 seed, version;
	u64 own, base; /* names */
	u64 taken;     /* the size of the image that was taken */
	u64 loaded;    /* and how much of the cache it has brought */
	u64 forked;    /* of a fork: dbt_image_used() when it began; 0 */
	u64 known;     /* ranges of it that are there again */
	u64 to;        /* the name under which it is to be kept; 0: not */
	u32 root;      /* the first process of the tree */
	bool on, any;
	u8 *scratch;
	bool is_own; /* it was this program's own, not the base */
	u64 kind; /* of the translations it began with: others have no place in one of its names */
	bool dynamic;                  /* the program has a loader, as nearly all have */
	struct image_list *had, *have; /* the image's ranges, and what is mapped */
} images;

static u64 mix(u64 a, u64 b)
{
	u64 x = (a ^ b) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 29;
}

bool images_file(int fd, u64 offset, struct image_file *file)
{
	struct statx st;

	if (!images.on || sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) ||
	    (st.stx_mode & S_IFMT) != S_IFREG)
		return false;
	*file = (struct image_file){
		.device = (u64)st.stx_dev_major << 32 | st.stx_dev_minor,
		.inode = st.stx_ino,
		.size = st.stx_size,
		.changed = mix((u64)st.stx_mtime.tv_sec << 30 ^ st.stx_mtime.tv_nsec,
			       (u64)st.stx_ctime.tv_sec << 30 ^ st.stx_ctime.tv_nsec),
		.offset = offset,
	};
	return true;
}

static u64 file_hash(const struct image_file *f)
{
	return mix(mix(mix(f->device, f->inode), f->size), f->changed);
}

void images_init(const struct rt_control *control, bool wanted)
{
	struct image_file rt;

	if (control->images_fd < 0 && control->keeper_fd < 0)
		return;
	images.seed = control->images_seed;
	if (!images.seed && raw_call3(__NR_getrandom, (long)&images.seed, sizeof(images.seed),
				      GRND_NONBLOCK) != sizeof(images.seed))
		wanted = false;
	if (!wanted) {
		if (control->images_fd >= 0)
			sys_close(control->images_fd);
		if (control->keeper_fd >= 0)
			sys_close(control->keeper_fd);
		return;
	}
	store_begin(control->images_fd, control->keeper_fd);
	images.on = true;
	images.root = control->images_root ? control->images_root : (u32)sys_getpid();
	images.have = region_map(2 * sizeof(*images.have));
	images.had = images.have + 1;
	if (!images.have || !images_file(fd_get(FD_RT), 0, &rt)) {
		images.on = false;
		store_end();
		return;
	}
	images.version = file_hash(&rt);
}

void images_share(struct thread *t)
{
	/* A vfork's child has descriptors of its own, but our memory. */
	if (!images.on || t->proc->confined || !process_is_alone(t))
		return;
	mm_lock(t);
	store_need();
	mm_unlock(t);
}

void images_forked(void)
{
	images.forked = dbt_image_used();
}

void images_exec(struct thread *t, struct rt_control *control)
{
	bool shares = images.on && !t->proc->confined;

	if (shares)
		images_share(t);
	control->images_fd = shares ? fd_get(FD_IMAGES) : -1;
	control->keeper_fd = shares ? fd_get(FD_KEEPER) : -1;
	if (t->proc->confined)
		store_close_on_exec();
	if (!shares)
		return;
	control->images_seed = images.seed;
	control->images_root = images.root;
}

void images_leave(struct thread *t)
{
	t->proc->confined = true;
	/* A vfork's child has descriptors of its own, but our memory. */
	if (images.on && process_is_alone(t)) {
		images.own = 0;
		store_end();
	}
}

struct own_ids {
	u32 user[3], group[3];
};

static struct own_ids ids_now(void)
{
	struct own_ids i = {0};

	raw_call3(__NR_getresuid, (long)&i.user[0], (long)&i.user[1], (long)&i.user[2]);
	raw_call3(__NR_getresgid, (long)&i.group[0], (long)&i.group[1], (long)&i.group[2]);
	return i;
}

long guest_confine(struct thread *t)
{
	long ret = call_kernel(t);

	if (ret != CALL_REDO && !sys_failed(ret))
		images_leave(t);
	return ret;
}

long guest_set_ids(struct thread *t)
{
	struct own_ids before = ids_now(), after;
	long ret = call_kernel(t);

	if (ret == CALL_REDO || sys_failed(ret))
		return ret;
	/* make gives itself what it has before each program that it starts. */
	after = ids_now();
	if (memcmp(&before, &after, sizeof(after)) != 0)
		images_leave(t);
	return ret;
}

bool images_shared(void)
{
	return images.on;
}

u64 images_tables_step(void)
{
	return mix(images.seed, 1);
}

static u64 window(void)
{
	u64 room = (WINDOWS_END - WINDOWS_START - WINDOW) >> 21;

	return WINDOWS_START + (mix(images.seed, 2) % room << 21);
}

u64 images_cache_place(u64 size)
{
	return images.on && size <= WINDOW_CACHE / 2 ? window() + WINDOW_CACHE : 0;
}

static bool is_free(u64 at, u64 size)
{
	long p = sys_mmap((void *)at, size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (long)at)
		return false;
	sys_munmap((void *)at, size);
	return true;
}

/* Files that want the same place get another, the same in each process that has both. */
u64 images_place(const struct image_file *file, u64 size, bool program)
{
	u64 from = program ? 0 : WINDOW_FIRST, to = program ? WINDOW_FIRST : WINDOW, at;

	if (!images.on || !file->inode || size >= (to - from) / 4)
		return 0;
	for (u64 i = 0; i < 8; i++) {
		at = mix(mix(images.seed, file_hash(file)), i) % ((to - from - size) >> 12);
		at = window() + from + (at << 12);
		if (is_free(at, size))
			return at;
	}
	return 0;
}

/* An image while it is read or written, and the sum of what has gone through. */
struct stream {
	struct stored_image image;
	struct image_sum sum;
	bool summed; /* else it is not compared with what was */
};

/* @len bytes at @p, NULL: zeros, whole words. */
static void went(struct stream *s, const void *p, u64 len)
{
	s->image.at += len;
	s->image.size -= len;
	if (s->summed)
		image_sum_add(&s->sum, p, len / sizeof(u64));
}

/* Goes on at the next page. */
static bool align(struct stream *s)
{
	u64 over = s->image.at % PAGE_SIZE, rest = over ? PAGE_SIZE - over : 0;

	if (rest > s->image.size)
		return false;
	went(s, NULL, rest);
	return true;
}

static bool read_image(void *ctx, void *to, u64 len)
{
	struct stream *s = ctx;
	u64 done = 0;

	if (len > s->image.size)
		return false;
	while (done < len) {
		long n = raw_call4(__NR_pread64, s->image.fd, (long)to + (long)done,
				   (long)(len - done), (long)(s->image.at + done));

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	went(s, to, len);
	return true;
}

/*
 * What is most likely needed is there at once: a fault for each page would cost more, and count as
 * the program's.
 */
static bool map_image(void *ctx, void *at, u64 len, int prot)
{
	struct stream *s = ctx;

	if (!align(s) || len > s->image.size)
		return false;
	if (len && sys_failed(region_map_at((u64)at, len, prot, MAP_PRIVATE | MAP_FIXED,
					    s->image.fd, s->image.at)))
		return false;
	region_populate_file((u64)at, len);
	went(s, at, len);
	return true;
}

/* The sum stands at the end. */
static bool read_end(void *ctx)
{
	struct stream *s = ctx;
	u64 sum = image_sum_of(&s->sum), is = 0;

	return read_image(s, &is, sizeof(is)) && (!s->summed || sum == is);
}

/* Only those that there are. */
static u64 ranges_size(u32 n)
{
	return offsetof(struct image_list, range) + n * sizeof(struct image_range);
}

static bool read_ranges(struct stream *s)
{
	struct image_list *list = images.had;

	return read_image(s, list, ranges_size(0)) && list->n <= RANGES &&
	       read_image(s, list->range, ranges_size(list->n) - ranges_size(0));
}

static bool load(struct thread *t, u64 name)
{
	struct stored_image image;
	struct stream s;
	bool ok;

	if (!store_open(name, &image))
		return false;
	s = (struct stream){.image = image, .summed = !store_is_tree() && !image.proven};
	images.taken = image.size;
	ok = read_ranges(&s) &&
	     dbt_image_load(&t->dbt, images.version,
			    &(struct dbt_image_source){read_image, map_image, read_end, &s});
	if (ok && s.summed)
		store_prove(&image);
	if (!ok)
		images.had->n = 0; /* it may be anything */
	store_close(&image);
	return ok;
}

void images_load(struct thread *t, const struct image_file *exe, bool dynamic)
{
	if (!images.on || !exe->inode || !dbt_image_possible())
		return;
	images.kind = dbt_image_kind();
	images.version = mix(images.version, images.kind);
	images.own = mix(file_hash(exe), images.version) | 1;
	images.base = mix(images.version, 3) | 1;
	images.dynamic = dynamic;
	images.is_own = load(t, images.own);
	images.any = images.is_own || load(t, images.base);
	if (images.any)
		images.loaded = dbt_image_used();
}

/*
 * The image has a range that begins where @r does, and nothing else there. It may end earlier: a
 * library whose headers are in its code is mapped whole, and its data over that (drop()).
 */
static bool was_there(const struct image_range *r)
{
	bool found = false;

	for (u32 i = 0; images.any && i < images.had->n; i++) {
		const struct image_range *had = &images.had->range[i];

		if (had->at.start >= r->at.end || had->at.end <= r->at.start)
			continue;
		if (had->at.start != r->at.start || had->at.end > r->at.end ||
		    memcmp(&had->file, &r->file, sizeof(r->file)) != 0)
			return false;
		found = true;
	}
	return found;
}

/* Of a range that begins before @start what is in front of it stays. */
static void drop(struct image_list *list, u64 start, u64 end)
{
	u32 n = 0;

	for (u32 i = 0; i < list->n; i++) {
		struct image_range r = list->range[i];

		if (r.at.start < end && r.at.end > start) {
			if (r.at.start >= start)
				continue;
			r.at.end = start;
		}
		list->range[n++] = r;
	}
	list->n = n;
}

void images_forget(u64 start, u64 end)
{
	if (!images.on)
		return;
	drop(images.have, start, end);
	drop(images.had, start, end);
}

void images_add(struct thread *t, const struct mm_range *r, const struct image_file *file)
{
	struct image_range range = {.at = {r->start, r->end}};
	bool known;

	/* Where the kernel has put it by itself nothing is found again. */
	if (!file || !images.on || r->prot & PROT_WRITE || r->shared || r->grows ||
	    r->start >= WINDOWS_END) {
		if (images.on)
			drop(images.had, r->start, r->end);
		mm_exec_add(t, r);
		return;
	}
	range.file = *file;
	known = was_there(&range);
	images.known += known;
	mm_exec_add_known(t, r, known);
	if (images.have->n < RANGES)
		images.have->range[images.have->n++] = range;
}

static bool write_image(void *ctx, const void *from, u64 len)
{
	struct stream *s = ctx;

	if (!store_write(&s->image, from, len, false))
		return false;
	went(s, from, len);
	return true;
}

static bool write_pages(void *ctx, const void *from, u64 len)
{
	struct stream *s = ctx;

	if (!align(s) || !store_write(&s->image, from, len, true))
		return false;
	went(s, from, len);
	return true;
}

/*
 * What the image had of files that this process has not mapped goes on with it, so that an image
 * grows with what several programs execute.
 */
static void merge(void)
{
	if (!images.any || !images.known)
		images.had->n = 0;
	for (u32 i = 0; i < images.have->n; i++)
		drop(images.had, images.have->range[i].at.start, images.have->range[i].at.end);
	for (u32 i = 0; i < images.have->n && images.had->n < RANGES; i++)
		images.had->range[images.had->n++] = images.have->range[i];
}

static bool save(struct thread *t, struct stream *s)
{
	struct dbt_image_target to = {write_image, write_pages, s, images.scratch};
	struct dbt_image_range at[RANGES];
	bool ok;
	u64 sum;

	merge();
	for (u32 i = 0; i < images.had->n; i++)
		at[i] = images.had->range[i].at;
	ok = write_image(s, images.had, ranges_size(images.had->n));
	ok &= dbt_image_save(&t->dbt, images.version, at, images.had->n, &to);
	sum = image_sum_of(&s->sum);
	return ok && write_image(s, &sum, sizeof(sum));
}

/* @bytes of usual code, as of what this process has. */
static u64 sized(u64 bytes)
{
	return traces_mask() ? TRACED * bytes : bytes;
}

/*
 * What is little is not worth an image, unless the program runs many times: who keeps it after one
 * of several runs has kept it for the others, and for a program that runs once it costs nothing.
 */
static u64 least_new(const struct thread *t)
{
	if (!store_is_tree())
		return USED_LEAST;
	if (mix(t->proc->pid, (u64)sys_clock(CLOCK_MONOTONIC)) % RUNS_TO_KEEP == 0)
		return sized(USED_LEAST);
	return sized(USED_LEAST_TREE);
}

static u64 stored_size(u64 name)
{
	struct stored_image image;

	if (!store_open(name, &image))
		return 0;
	store_close(&image);
	return image.size;
}

/*
 * Under which name the image is to be kept; 0: it is not worth it. The base is for who has
 * none of its own: it grows by what each new program adds, until it is so large that taking it
 * would cost more than it gives. If somebody else has changed it meanwhile what is here goes to an
 * image of the program's own, so that nothing is lost. One that is of another time, with a loader
 * that has been replaced, begins anew.
 */
static u64 name_for(struct thread *t)
{
	struct dbt_image_range at[RANGES];
	u64 least = least_new(t);
	u64 bytes, own, base;

	/* Not even if all of it were of use. What a fork began with its parent keeps. */
	if (dbt_image_used() < max_u64(images.loaded, images.forked) + least)
		return 0;
	for (u32 i = 0; i < images.have->n; i++)
		at[i] = images.have->range[i].at;
	bytes = dbt_image_useful(&t->dbt, at, images.have->n);
	if (bytes < images.loaded + least)
		return 0;
	own = stored_size(images.own);
	if (own || images.is_own)
		/* A relative may have been here: each subshell of a shell ends with the same. */
		return bytes >= own + own / 8 + least ? images.own : 0;
	base = stored_size(images.base);
	if (images.any && !images.known && images.dynamic)
		return images.base;
	if (bytes <= sized(BASE_MOST) && (base == 0 || base == images.taken))
		return images.base;
	return images.own;
}

static u64 scratch_size(void)
{
	u64 start, end;

	dbt_code_range(&start, &end);
	return end - start;
}

static void scratch_drop(void)
{
	region_unmap(images.scratch, scratch_size());
	images.scratch = NULL;
}

/*
 * What the first process of a tree has started itself mostly runs once, as a compiler's passes do.
 * Of what others have started there, say the compilers of a make, there are mostly more.
 */
static bool is_once(void)
{
	return (u32)raw_call0(__NR_getppid) == images.root;
}

void images_complete(struct thread *t)
{
	u64 used = dbt_image_used(), mask = ~SIGNALS_SYNC;

	images.to = 0;
	/* When the first process ends, the others mostly have. */
	if (!images.on || !images.own || t->proc->confined || used > sized(USED_MAX) ||
	    images.kind != dbt_image_kind() || (store_is_tree() && t->proc->pid == images.root) ||
	    !process_is_alone(t))
		return;
	images.to = name_for(t);
	if (!images.to ||
	    (used > sized(FIRST_MOST) && !images.is_own && is_once() && !store_asked(images.to))) {
		images.to = 0;
		return;
	}
	/* What the guest may have unmapped is read. */
	sys_rt_sigprocmask(SIG_SETMASK, &mask, &mask);
	dbt_image_complete(&t->dbt);
	sys_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
}

bool images_save(struct thread *t)
{
	struct stream s = {.summed = !store_is_tree()};
	struct stored_image to;
	bool ok;

	if (!images.to)
		return false;
	images.scratch = region_map(scratch_size());
	if (!images.scratch)
		return false;
	if (!store_make(images.to, dbt_image_most() + STORE_HEADS, &to)) {
		scratch_drop();
		return false;
	}
	mm_lock(t);
	s.image = to;
	ok = save(t, &s);
	store_publish(&s.image, ok);
	images.any = false;
	return true;
}

void images_go_on(struct thread *t)
{
	dbt_forget(&t->dbt);
	mm_unlock(t);
	scratch_drop();
}
