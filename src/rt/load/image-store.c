#include "rt/load/image-store.h"

#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/stat.h>

#define TREE_MOST (256ull << 20) /* of memory that a tree's images take */
#define SLOTS     255u

/* The first page of the memfd. Another process may write anything into it at any time. */
struct tree_head {
	u64 end; /* of what is taken; 0: nothing yet */
	u64 reserved;
	struct {
		u64 name;  /* 0: free */
		u64 place; /* first page, << 32, and number of pages; 0: not written yet */
	} slot[SLOTS];
};

_Static_assert(sizeof(struct tree_head) <= PAGE_SIZE, "the head of a tree's images is a page");

static struct {
	bool tree;
} store;

void store_begin(int fd, bool tree)
{
	store.tree = tree;
	if (fd >= 0)
		fd_adopt(FD_IMAGES, fd);
}

void store_need(void)
{
	long fd;

	if (!store.tree || fd_get(FD_IMAGES) >= 0)
		return;
	fd = fd_memfd("anyperf-translations", MFD_ALLOW_SEALING);
	if (fd < 0)
		return;
	/* It may be mapped, so it never becomes smaller. */
	if (sys_fcntl((int)fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL))
		sys_close((int)fd);
	else
		fd_adopt(FD_IMAGES, (int)fd);
}

void store_end(void)
{
	fd_drop(FD_IMAGES);
}

bool store_is_tree(void)
{
	return store.tree;
}

#define SECOND     1000000000ull
#define DAY        86400
#define UTIME_OMIT ((1l << 30) - 2) /* not in a header of the kernel's */

/*
 * The sum of a file is right if the fraction of the time when it was last written to is this: who
 * has seen that sets it, and who writes to the file sets another. Else an image would be read from
 * its beginning to its end each time.
 */
static u32 proof_of(const struct stored_image *image, s64 second)
{
	u64 x = (image->name ^ (u64)second) * 0x9e3779b97f4a7c15ull ^ image->size;

	return (u32)((x ^ x >> 32) * 0xd6e8feb86659fd93ull >> 24) % SECOND;
}

void store_prove(const struct stored_image *image)
{
	struct __kernel_timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

	if (store.tree || raw_call2(__NR_clock_gettime, CLOCK_REALTIME, (long)&times[1]))
		return;
	times[1].tv_nsec = proof_of(image, times[1].tv_sec);
	raw_call4(__NR_utimensat, image->fd, 0, (long)times, 0);
}

/* The least recently used go first (backend/translations.c); now and then is enough. */
static void use(const struct stored_image *image, s64 last)
{
	struct __kernel_timespec now;

	if (sys_getpid() % 16 == 0 && !raw_call2(__NR_clock_gettime, CLOCK_REALTIME, (long)&now) &&
	    now.tv_sec - last > DAY)
		store_prove(image);
}

/* Whoever could write to it could be this process as well. */
static bool is_ours(struct stored_image *image)
{
	struct statx st;

	if (sys_statx(image->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) ||
	    (st.stx_mode & (S_IFMT | 077)) != S_IFREG || st.stx_uid != (u32)raw_call0(__NR_geteuid))
		return false;
	image->size = st.stx_size;
	image->proven = st.stx_mtime.tv_nsec == proof_of(image, st.stx_mtime.tv_sec);
	if (image->proven)
		use(image, st.stx_mtime.tv_sec);
	return true;
}

static void file_name(char name[20], u64 of)
{
	fmt(name, 20, "%lx", of);
}

static bool file_open(u64 name, struct stored_image *image)
{
	char text[20];

	file_name(text, name);
	image->fd = (int)fd_open(fd_get(FD_IMAGES), text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (image->fd < 0)
		return false;
	if (is_ours(image))
		return true;
	sys_close(image->fd);
	return false;
}

/* Where @name is, or has its place if there is none. */
static u32 slot_of(const struct tree_head *head, u64 name)
{
	u32 at = (u32)(name % SLOTS);

	for (u32 i = 0; i < SLOTS; i++, at = at + 1 == SLOTS ? 0 : at + 1) {
		u64 there = __atomic_load_n(&head->slot[at].name, __ATOMIC_RELAXED);

		if (there == name || !there)
			return at;
	}
	return SLOTS;
}

static bool tree_open(u64 name, struct stored_image *image)
{
	struct tree_head head;
	u64 place = 0;
	u32 at;

	if (raw_call4(__NR_pread64, fd_get(FD_IMAGES), (long)&head, sizeof(head), 0) !=
	    sizeof(head))
		return false;
	at = slot_of(&head, name);
	if (at < SLOTS && head.slot[at].name == name)
		place = head.slot[at].place;
	image->fd = fd_get(FD_IMAGES);
	image->at = (place >> 32) * PAGE_SIZE;
	image->size = (u32)place * PAGE_SIZE;
	return place;
}

bool store_open(u64 name, struct stored_image *image)
{
	*image = (struct stored_image){.name = name};
	if (fd_get(FD_IMAGES) < 0)
		return false;
	return store.tree ? tree_open(name, image) : file_open(name, image);
}

/* A write beyond it would be a signal. */
static bool may_write(u64 upto)
{
	struct rlimit64 files;

	return !raw_call4(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&files) &&
	       files.rlim_cur >= upto;
}

/* Nobody may write to it by mistake once it is there: processes have it mapped and execute it. */
static bool file_make(u64 bytes, struct stored_image *image)
{
	char name[40];

	if (!may_write(bytes))
		return false;
	fmt(name, sizeof(name), "%lx.%d", image->name, sys_getpid());
	image->fd = (int)raw_call4(__NR_openat, fd_get(FD_IMAGES), (long)name,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
	return image->fd >= 0;
}

static struct tree_head *head_map(void)
{
	struct statx st;

	/* Two may make the file larger at once: to a page, which nobody makes smaller. */
	if (sys_statx(fd_get(FD_IMAGES), "", AT_EMPTY_PATH, STATX_SIZE, &st) ||
	    (st.stx_size < PAGE_SIZE && raw_call2(__NR_ftruncate, fd_get(FD_IMAGES), PAGE_SIZE)))
		return NULL;
	return region_map_file(PAGE_SIZE, fd_get(FD_IMAGES), 0);
}

static bool tree_make(u64 bytes, struct stored_image *image)
{
	struct tree_head *head;
	u64 end;

	if (!may_write(TREE_MOST))
		return false;
	head = head_map();
	if (!head)
		return false;
	bytes = ALIGN_UP(bytes, PAGE_SIZE);
	end = __atomic_fetch_add(&head->end, bytes, __ATOMIC_RELAXED);
	if (end > TREE_MOST || end + bytes + PAGE_SIZE > TREE_MOST)
		__atomic_fetch_sub(&head->end, bytes, __ATOMIC_RELAXED);
	else
		image->at = end + PAGE_SIZE;
	region_unmap_file(head, PAGE_SIZE);
	image->fd = fd_get(FD_IMAGES);
	image->size = bytes;
	return image->at;
}

bool store_make(u64 name, u64 bytes, struct stored_image *image)
{
	*image = (struct stored_image){.name = name, .size = bytes};
	return fd_get(FD_IMAGES) >= 0 && bytes < TREE_MOST &&
	       (store.tree ? tree_make(bytes, image) : file_make(bytes, image));
}

/* The slot of @name, which is taken for it; SLOTS: there is none left. */
static u32 slot_take(struct tree_head *head, u64 name, bool *was_there)
{
	u64 none;
	u32 at;

	do {
		none = 0;
		at = slot_of(head, name);
	} while (at < SLOTS &&
		 !__atomic_compare_exchange_n(&head->slot[at].name, &none, name, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		 none != name);
	*was_there = none == name;
	return at;
}

bool store_asked(u64 name)
{
	struct tree_head *head;
	bool was_there;

	if (!store.tree)
		return true;
	if (fd_get(FD_IMAGES) < 0 || !may_write(TREE_MOST) || !(head = head_map()))
		return false;
	slot_take(head, name, &was_there);
	region_unmap_file(head, PAGE_SIZE);
	return was_there;
}

static void file_publish(const struct stored_image *image, bool whole)
{
	char name[40], to[20];

	fmt(name, sizeof(name), "%lx.%d", image->name, sys_getpid());
	file_name(to, image->name);
	if (!whole ||
	    raw_call4(__NR_renameat, fd_get(FD_IMAGES), (long)name, fd_get(FD_IMAGES), (long)to))
		raw_call3(__NR_unlinkat, fd_get(FD_IMAGES), (long)name, 0);
	sys_close(image->fd);
}

static void tree_publish(const struct stored_image *image)
{
	u64 place = image->at / PAGE_SIZE << 32 | image->size / PAGE_SIZE;
	struct tree_head *head = head_map();
	bool was_there;
	u32 at;

	if (!head)
		return;
	at = slot_take(head, image->name, &was_there);
	/* What was written before is in the file for whoever reads this. */
	if (at < SLOTS)
		__atomic_store_n(&head->slot[at].place, place, __ATOMIC_RELEASE);
	region_unmap_file(head, PAGE_SIZE);
}

void store_publish(struct stored_image *image, bool whole)
{
	if (!store.tree)
		file_publish(image, whole);
	else if (whole)
		tree_publish(image);
}

void store_close(struct stored_image *image)
{
	if (image->fd != fd_get(FD_IMAGES))
		sys_close(image->fd);
}
