#include "rt/load/images.h"

#include "abi/control.h"
#include "rt/load/image-store.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/process.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/stat.h>

#define RANGES     256u
#define USED_MAX   (96ull << 20) /* larger caches are not kept */
#define USED_LEAST (32ull << 10) /* nor what is so little more than the image had */

#define IMAGE_HEADS (64ull << 10) /* an image takes so much more at most than the cache */

/*
 * Everything that is shared lies in one window of addresses, below all that the kernel gives out by
 * itself, so that every file is within the reach of the cache in its middle.
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
	u64 seed, version, loaded, name;
	u32 root; /* the first process of the tree */
	bool on, any;
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

	if (control->images_fd < 0)
		return;
	if (!wanted) {
		sys_close(control->images_fd);
		return;
	}
	store_begin(fd_adopt(FD_IMAGES, control->images_fd));
	images.on = true;
	images.seed = control->images_seed;
	images.root = control->images_root ? control->images_root : (u32)sys_getpid();
	images.have = region_map(sizeof(*images.have));
	images.had = region_map(sizeof(*images.had));
	if (!images.have || !images.had || !images_file(fd_get(FD_RT), 0, &rt)) {
		images.on = false;
		return;
	}
	images.version = file_hash(&rt);
}

void images_exec(const struct thread *t, struct rt_control *control)
{
	int fd = fd_get(FD_IMAGES);

	if (fd >= 0 && t->proc->confined)
		sys_fcntl(fd, F_SETFD, FD_CLOEXEC);
	control->images_fd = images.on && !t->proc->confined ? fd : -1;
	control->images_seed = images.seed;
	control->images_root = images.root;
}

void images_leave(struct thread *t)
{
	bool alone = true;

	t->proc->confined = true;
	if (!images.on)
		return;
	/* A vfork's child has descriptors of its own, but our memory. */
	for (struct thread *other = threads_lock(t); other; other = other->all_next)
		alone &= other->proc == t->proc;
	if (alone) {
		images.name = 0;
		store_end();
		fd_drop(FD_IMAGES);
	}
	threads_unlock(t);
}

long guest_confine(struct thread *t)
{
	long ret = call_kernel(t);

	if (ret != CALL_REDO && !sys_failed(ret))
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
u64 images_place(int fd, u64 size, bool program)
{
	u64 from = program ? 0 : WINDOW_FIRST, to = program ? WINDOW_FIRST : WINDOW, at;
	struct image_file file;

	if (!images_file(fd, 0, &file) || size >= (to - from) / 4)
		return 0;
	for (u64 i = 0; i < 8; i++) {
		at = mix(mix(images.seed, file_hash(&file)), i) % ((to - from - size) >> 12);
		at = window() + from + (at << 12);
		if (is_free(at, size))
			return at;
	}
	return 0;
}

/* An image while it is read or written, and the sum of what has gone through. */
struct stream {
	struct stored_image image;
	u64 sum;
};

static void add_up(struct stream *s, const void *p, u64 len)
{
	u64 word = 0;

	for (u64 i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, (const u8 *)p + i, 8);
		s->sum = (s->sum ^ word) * 0x9e3779b97f4a7c15ull;
		s->sum ^= s->sum >> 29;
	}
	word = len;
	memcpy(&word, (const u8 *)p + len / 8 * 8, len % 8);
	s->sum = mix(s->sum, word);
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
	s->image.at += len;
	s->image.size -= len;
	add_up(s, to, len);
	return true;
}

/* The sum stands at the end. */
static bool read_end(void *ctx)
{
	struct stream *s = ctx;
	u64 sum = s->sum, is = 0;

	return read_image(s, &is, sizeof(is)) && sum == is;
}

void images_load(struct thread *t, int exe)
{
	struct image_file file;
	struct stream s = {0};

	if (!images_file(exe, 0, &file))
		return;
	images.name = mix(file_hash(&file), images.version) | 1;
	if (!store_open(images.name, &s.image))
		return;
	if (read_image(&s, images.had, sizeof(*images.had)) && images.had->n <= RANGES &&
	    dbt_image_load(&t->dbt, images.version,
			   &(struct dbt_image_source){read_image, read_end, &s})) {
		images.any = true;
		images.loaded = dbt_image_used();
	}
	store_close(&s.image);
}

static bool was_there(const struct image_range *r)
{
	for (u32 i = 0; images.any && i < images.had->n; i++)
		if (!memcmp(&images.had->range[i], r, sizeof(*r)))
			return true;
	return false;
}

void images_forget(u64 start, u64 end)
{
	u32 n = 0;

	if (!images.have)
		return;
	for (u32 i = 0; i < images.have->n; i++)
		if (images.have->range[i].at.start >= end || images.have->range[i].at.end <= start)
			images.have->range[n++] = images.have->range[i];
	images.have->n = n;
}

void images_add(struct thread *t, const struct mm_range *r, const struct image_file *file)
{
	struct image_range range = {.at = {r->start, r->end}};
	bool known;

	if (!file || !images.have || r->prot & PROT_WRITE || r->shared || r->grows) {
		mm_exec_add(t, r);
		return;
	}
	range.file = *file;
	known = was_there(&range);
	mm_exec_add_known(t, r, known);
	if (images.have->n < RANGES)
		images.have->range[images.have->n++] = range;
}

static bool write_image(void *ctx, const void *from, u64 len)
{
	struct stream *s = ctx;
	u64 done = 0;

	if (len > s->image.size)
		return false;
	add_up(s, from, len);
	while (done < len) {
		long n = raw_call4(__NR_pwrite64, s->image.fd, (long)from + (long)done,
				   (long)(len - done), (long)(s->image.at + done));

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	s->image.at += len;
	s->image.size -= len;
	return true;
}

static bool save(struct thread *t, struct stream *s)
{
	struct dbt_image_range at[RANGES];
	u64 sum;

	for (u32 i = 0; i < images.have->n; i++)
		at[i] = images.have->range[i].at;
	if (!write_image(s, images.have, sizeof(*images.have)) ||
	    !dbt_image_save(&t->dbt, images.version, at, images.have->n, write_image, s))
		return false;
	sum = s->sum;
	return write_image(s, &sum, sizeof(sum));
}

/* Whether an image of @bytes tells later programs enough that is new. */
static bool is_worth(const struct thread *t, u64 bytes)
{
	struct stored_image other;
	u64 there = images.loaded;

	/* When the first process ends, the others mostly have. */
	if (bytes > USED_MAX || (store_is_tree() && t->proc->pid == images.root))
		return false;
	/* A relative may have been here since: each subshell of a shell ends with the same. */
	if (store_open(images.name, &other)) {
		there = max_u64(there, other.size);
		store_close(&other);
	}
	return bytes >= there + there / 8 + USED_LEAST;
}

bool images_save(struct thread *t)
{
	u64 used = dbt_image_used();
	struct stream s = {0};
	struct stored_image to;

	if (!images.on || !images.name || t->proc->confined || !is_worth(t, used) ||
	    !process_is_single(t) || !store_make(images.name, used + IMAGE_HEADS, &to))
		return false;
	s.image = to;
	store_publish(&to, save(t, &s));
	return true;
}
