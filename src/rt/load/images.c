#include "rt/load/images.h"

#include "abi/control.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/task/process.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/stat.h>

#define RANGES     256u
#define USED_MAX   (96ull << 20) /* larger caches are not kept */
#define USED_LEAST (16ull << 10) /* nor what is so little more than the image had */

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
	u64 seed, version, loaded;
	bool on, any;
	char name[40];
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
	fd_adopt(FD_IMAGES, control->images_fd);
	images.on = true;
	images.seed = control->images_seed;
	images.have = region_map(sizeof(*images.have));
	images.had = region_map(sizeof(*images.had));
	if (!images.have || !images.had || !images_file(fd_get(FD_RT), 0, &rt)) {
		images.on = false;
		return;
	}
	images.version = file_hash(&rt);
}

void images_exec(struct rt_control *control)
{
	control->images_fd = images.on ? fd_get(FD_IMAGES) : -1;
	control->images_seed = images.seed;
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

/* A file while it is read or written, and the sum of what has gone through. */
struct stream {
	int fd;
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

	while (done < len) {
		long n = sys_read(s->fd, (u8 *)to + done, len - done);

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	add_up(s, to, len);
	return true;
}

/* The sum stands at the end. */
static bool read_end(void *ctx)
{
	const struct stream *s = ctx;
	u64 sum;

	return sys_read(s->fd, &sum, sizeof(sum)) == sizeof(sum) && sum == s->sum;
}

/* Whoever could write to it could be this process as well. */
static bool is_ours(int fd)
{
	struct statx st;

	return !sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) &&
	       (st.stx_mode & (S_IFMT | 077)) == S_IFREG &&
	       st.stx_uid == (u32)raw_call0(__NR_geteuid);
}

void images_load(struct thread *t, int exe)
{
	struct image_file file;
	struct stream s = {0};
	int fd;

	if (!images_file(exe, 0, &file))
		return;
	fmt(images.name, sizeof(images.name), "%lx-%lx", file_hash(&file), images.version);
	fd = (int)fd_open(fd_get(FD_IMAGES), images.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	s.fd = fd;
	if (is_ours(fd) && read_image(&s, images.had, sizeof(*images.had)) &&
	    images.had->n <= RANGES &&
	    dbt_image_load(&t->dbt, images.version,
			   &(struct dbt_image_source){read_image, read_end, &s})) {
		images.any = true;
		images.loaded = dbt_image_used();
		/* The least recently used go first; backend/translations.c. */
		raw_call4(__NR_utimensat, fd, 0, 0, 0);
	}
	sys_close(fd);
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

	add_up(s, from, len);
	while (done < len) {
		long n = raw_call3(__NR_write, s->fd, (long)from + (long)done, (long)(len - done));

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	return true;
}

static bool save(struct thread *t, int fd)
{
	struct dbt_image_range at[RANGES];
	struct stream s = {.fd = fd};
	u64 sum;

	for (u32 i = 0; i < images.have->n; i++)
		at[i] = images.have->range[i].at;
	if (!write_image(&s, images.have, sizeof(*images.have)) ||
	    !dbt_image_save(&t->dbt, images.version, at, images.have->n, write_image, &s))
		return false;
	sum = s.sum;
	return write_image(&s, &sum, sizeof(sum));
}

/* A write beyond it would be a signal. */
static bool may_write(u64 bytes)
{
	struct rlimit64 files;

	return !raw_call4(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&files) &&
	       files.rlim_cur >= bytes + sizeof(*images.have) + PAGE_SIZE;
}

bool images_save(struct thread *t)
{
	u64 used = dbt_image_used();
	int dir = fd_get(FD_IMAGES);
	char name[64];
	long fd;

	if (!images.on || !images.name[0] || used > USED_MAX ||
	    used < images.loaded + images.loaded / 8 + USED_LEAST || !process_is_single(t) ||
	    !may_write(used))
		return false;
	fmt(name, sizeof(name), "%s.%d", images.name, sys_getpid());
	fd = raw_call4(__NR_openat, dir, (long)name,
		       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	if (!save(t, (int)fd) || raw_call4(__NR_renameat, dir, (long)name, dir, (long)images.name))
		raw_call3(__NR_unlinkat, dir, (long)name, 0);
	sys_close((int)fd);
	return true;
}
