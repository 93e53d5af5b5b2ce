#include "rt/load/image-store.h"

#include "abi/tree-images.h"
#include "base/image-sum.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/poll.h>
#include <linux/socket.h>
#include <linux/stat.h>

#define CMSG_HEAD 16u /* of a control message, before its descriptors */

#define KEEPER_MS 250 /* who keeps images is waited for so long */

void store_begin(int fd, int keeper)
{
	if (fd >= 0)
		fd_adopt(FD_IMAGES, fd);
	if (keeper >= 0)
		fd_adopt(FD_KEEPER, keeper);
}

void store_end(void)
{
	fd_drop(FD_IMAGES);
	fd_drop(FD_KEEPER);
}

void store_close_on_exec(void)
{
	if (fd_get(FD_IMAGES) >= 0)
		sys_fcntl(fd_get(FD_IMAGES), F_SETFD, FD_CLOEXEC);
	if (fd_get(FD_KEEPER) >= 0)
		sys_fcntl(fd_get(FD_KEEPER), F_SETFD, FD_CLOEXEC);
}

bool store_is_tree(void)
{
	return fd_get(FD_KEEPER) >= 0;
}

/* False: there is nobody, or he has too much to do. */
static bool tell_keeper(u32 what, u64 name, u64 pieces, const int *fds, u32 n)
{
	struct tree_image_message message = {.what = what, .name = name, .pieces = pieces};
	struct {
		struct cmsghdr head;
		s32 fds[2];
	} control = {{CMSG_HEAD + n * sizeof(*fds), SOL_SOCKET, SCM_RIGHTS}, {0}};
	struct iovec iov = {&message, sizeof(message)};
	struct user_msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	for (u32 i = 0; i < n; i++)
		control.fds[i] = fds[i];
	if (n) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_HEAD + n * sizeof(*fds);
	}
	return raw_call3(__NR_sendmsg, fd_get(FD_KEEPER), (long)&m, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       sizeof(message);
}

/* Until the keeper has decided, so that what starts next finds it; but he may have been stopped. */
static void await_keeper(int fd)
{
	struct pollfd p = {.fd = fd};
	struct __kernel_timespec most = {.tv_nsec = KEEPER_MS * 1000000l};

	raw_call5(__NR_ppoll, (long)&p, 1, (long)&most, 0, 0);
}

/* With @fd, or @pieces if it is -1. */
static void ask_keeper(u32 what, u64 name, u64 pieces, int fd)
{
	int fds[2] = {fd, -1};
	u32 n = fd >= 0;
	s32 ends[2];
	bool waits = !raw_call2(__NR_pipe2, (long)ends, O_CLOEXEC), told;

	/* Other threads of the guest go on meanwhile, and open files. */
	if (waits) {
		ends[0] = fd_move_high(ends[0]);
		ends[1] = fd_move_high(ends[1]);
		fds[n++] = ends[1];
	}
	told = tell_keeper(what, name, pieces, fds, n);
	if (!waits)
		return;
	sys_close(ends[1]);
	if (told)
		await_keeper(ends[0]);
	sys_close(ends[0]);
}

/* A write beyond it would be a signal. */
static bool may_write(u64 upto)
{
	struct rlimit64 files;

	return !raw_call4(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&files) &&
	       files.rlim_cur >= upto;
}

/* Not sealed by the keeper it is none: he has another, or there is none. */
void store_need(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	long fd, got;

	if (!store_is_tree() || fd_get(FD_IMAGES) >= 0 || !may_write(TREE_IMAGES_SIZE))
		return;
	fd = fd_memfd("anyperf-translations", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return;
	fd = fd_move_high((int)fd);
	if (!raw_call2(__NR_ftruncate, fd, TREE_IMAGES_SIZE) &&
	    !sys_fcntl((int)fd, F_ADD_SEALS, seals))
		ask_keeper(TREE_IMAGE_BEGIN, 1, 0, (int)fd);
	got = sys_fcntl((int)fd, F_GET_SEALS, 0);
	if (got < 0 || !(got & F_SEAL_FUTURE_WRITE)) {
		sys_close((int)fd);
		fd_drop(FD_KEEPER);
		return;
	}
	sys_fcntl((int)fd, F_SETFD, 0);
	fd_adopt(FD_IMAGES, (int)fd);
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

	if (store_is_tree() || raw_call2(__NR_clock_gettime, CLOCK_REALTIME, (long)&times[1]))
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
	/* Not to wait for who opens the other end, should it be a FIFO. */
	image->fd = (int)fd_open(fd_get(FD_IMAGES), text,
				 O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (image->fd < 0)
		return false;
	if (is_ours(image))
		return true;
	sys_close(image->fd);
	return false;
}

static bool tree_read(struct tree_images *head)
{
	return raw_call4(__NR_pread64, fd_get(FD_IMAGES), (long)head, sizeof(*head), 0) ==
	       sizeof(*head);
}

static u64 tree_place(const struct tree_images *head, u64 name)
{
	u32 at = tree_images_slot(head, name);

	return at < TREE_IMAGES_SLOTS && head->slot[at].name == name ? head->slot[at].place : 0;
}

static bool tree_open(u64 name, struct stored_image *image)
{
	struct tree_images head;
	u64 place;

	if (!tree_read(&head))
		return false;
	place = tree_place(&head, name);
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
	return store_is_tree() ? tree_open(name, image) : file_open(name, image);
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

/* What is to be read of this process, and what of that does not stay where it was. */
struct store_pieces {
	struct tree_image_pieces all;
	u64 used;
	u8 heads[STORE_HEADS];
};

#define PIECES_USUAL (32u << 10)

static bool tree_make(struct stored_image *image)
{
	image->fd = -1;
	image->pieces = region_map(sizeof(*image->pieces));
	if (!image->pieces)
		return false;
	/* Whoever becomes another program still counts faults. */
	sys_madvise(image->pieces, PIECES_USUAL, MADV_POPULATE_WRITE);
	return true;
}

bool store_make(u64 name, u64 bytes, struct stored_image *image)
{
	*image = (struct stored_image){.name = name, .size = bytes};
	return fd_get(FD_IMAGES) >= 0 && bytes < TREE_IMAGES_MOST &&
	       (store_is_tree() ? tree_make(image) : file_make(bytes, image));
}

static bool file_write(const struct stored_image *image, const void *from, u64 len, u64 at)
{
	u64 done = 0;

	while (done < len) {
		long n = raw_call4(__NR_pwrite64, image->fd, (long)from + (long)done,
				   (long)(len - done), (long)(at + done));

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	return true;
}

static bool piece_add(struct store_pieces *p, u64 at, const void *from, u64 len, bool stays)
{
	if (p->all.n == TREE_IMAGE_PIECES || (!stays && len > STORE_HEADS - p->used))
		return false;
	if (!stays) {
		memcpy(p->heads + p->used, from, len);
		from = p->heads + p->used;
		p->used += len;
	}
	p->all.piece[p->all.n++] = (struct tree_image_piece){(u64)from, len, at};
	p->all.size = at + len;
	return true;
}

bool store_write(struct stored_image *image, const void *from, u64 len, bool stays)
{
	if (len > image->size)
		return false;
	return image->pieces ? piece_add(image->pieces, image->at, from, len, stays)
			     : file_write(image, from, len, image->at);
}

bool store_asked(u64 name)
{
	struct tree_images head;
	u32 at;

	if (!store_is_tree())
		return true;
	if (!tree_read(&head))
		return false;
	at = tree_images_slot(&head, name);
	if (at < TREE_IMAGES_SLOTS && head.slot[at].name == name)
		return true;
	(void)tell_keeper(TREE_IMAGE_ASK, name, 0, NULL, 0);
	return false;
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

/* All pieces, zeros between them, and the sum. */
static bool tree_write(const struct stored_image *image)
{
	const struct tree_image_pieces *all = &image->pieces->all;
	struct image_sum sum = {0};
	u64 at = 0, last;

	for (u64 i = 0; i + 1 < all->n; i++) {
		const struct tree_image_piece *p = &all->piece[i];

		image_sum_add(&sum, NULL, (p->at - at) / sizeof(u64));
		image_sum_add(&sum, (const u64 *)p->from, p->len / sizeof(u64));
		at = p->at + p->len;
		if (!file_write(image, (const void *)p->from, p->len, p->at))
			return false;
	}
	last = image_sum_of(&sum);
	return file_write(image, &last, sizeof(last), at);
}

static void tree_send(struct stored_image *image)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	if (!may_write(image->pieces->all.size))
		return;
	image->fd = (int)fd_memfd("anyperf-translated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (image->fd < 0)
		return;
	if (tree_write(image) && !sys_fcntl(image->fd, F_ADD_SEALS, seals))
		ask_keeper(TREE_IMAGE_KEEP, image->name, 0, image->fd);
	sys_close(image->fd);
}

/* The keeper reads it, if it may: that spares memory for it, two copies and the sum. */
static void tree_publish(struct stored_image *image)
{
	struct tree_image_pieces *all = &image->pieces->all;
	struct tree_images head;
	u64 before;

	if (!tree_read(&head))
		return;
	before = tree_place(&head, image->name);
	if (!head.unreadable) {
		__atomic_store_n(&all->name, image->name, __ATOMIC_RELEASE);
		ask_keeper(TREE_IMAGE_READ, image->name, (u64)all, -1);
		/* If it still reads it is to see this. */
		__atomic_store_n(&all->name, 0, __ATOMIC_SEQ_CST);
		if (!tree_read(&head) || tree_place(&head, image->name) != before)
			return;
	}
	if (head.unreadable)
		tree_send(image);
}

void store_publish(struct stored_image *image, bool whole)
{
	if (!store_is_tree()) {
		file_publish(image, whole);
		return;
	}
	if (whole)
		tree_publish(image);
	region_unmap(image->pieces, sizeof(*image->pieces));
}

void store_close(struct stored_image *image)
{
	if (image->fd != fd_get(FD_IMAGES))
		sys_close(image->fd);
}
