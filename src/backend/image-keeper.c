#include "backend/image-keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "abi/tree-images.h"
#include "base/image-sum.h"
#include "session/helper-thread.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define LARGE_PAGE    (2ull << 20)
#define LARGE_PAGE_NS 500000 /* it mostly takes 100,000; small ones take 1,500,000 */

#define FDS_MOST 253 /* the kernel's: in one message */

/* Memory that nobody can change any more. */
#define SEALED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct keeper {
	int sock;
	struct tree_images *head; /* with the images behind it; NULL: there is none yet */
	u64 taken; /* what that says is for others: its sender may still write there */
	u64 large; /* the first bytes of all of it, in large pages */
	bool no_large;
	uid_t user;
	gid_t group;
};

struct letter {
	struct tree_image_message message;
	int fds[FDS_MOST];
	u32 nr_fds;
	pid_t pid;
	bool trusted;
};

static void take_control(const struct keeper *k, struct msghdr *msg, struct letter *l)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			l->trusted = cred.uid == k->user && cred.gid == k->group;
			l->pid = cred.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			l->nr_fds = (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(l->fds, CMSG_DATA(c), l->nr_fds * sizeof(int));
		}
	}
}

/* False: nobody will ever write again. */
static bool receive(const struct keeper *k, struct letter *l)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FDS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&l->message, sizeof(l->message)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	memset(l, 0, sizeof(*l));
	do
		n = recvmsg(k->sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ENOMEM || errno == ENOBUFS;
	take_control(k, &msg, l);
	/* An empty message has a sender, the end of the stream has none. */
	if (!n && !msg.msg_controllen)
		return false;
	if (n != sizeof(l->message) || msg.msg_flags & MSG_TRUNC || !l->message.name)
		l->trusted = false;
	return true;
}

/* Its slot, which is taken for it; TREE_IMAGES_SLOTS: there is none left. */
static u32 slot_for(struct keeper *k, u64 name)
{
	u32 at = tree_images_slot(k->head, name);

	if (at < TREE_IMAGES_SLOTS)
		__atomic_store_n(&k->head->slot[at].name, name, __ATOMIC_RELAXED);
	return at;
}

static bool copy(int fd, u8 *to, u64 size)
{
	u64 done = 0;

	while (done < size) {
		ssize_t n = pread(fd, to + done, size - done, (off_t)done);

		if (n <= 0)
			return false;
		done += (u64)n;
	}
	return true;
}

/* What others can see of it is what its sender had, or nothing. */
static bool is_whole(const u8 *image, u64 size)
{
	const u64 *words = (const u64 *)image;
	struct image_sum sum = {0};
	u64 n = size / sizeof(u64);

	image_sum_add(&sum, words, n - 1);
	return words[n - 1] == image_sum_of(&sum);
}

static u64 thread_time(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
		       ? 0
		       : (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

/*
 * A large page costs less than a tenth of those that it is in place of, to make and to give back.
 * The kernel makes one, even if it has none by itself for such memory, around a page that is there.
 * But where memory is in pieces it may take long to free one.
 */
static void use_large_pages(struct keeper *k, u64 upto)
{
	while (k->large < upto && k->large + LARGE_PAGE <= TREE_IMAGES_SIZE && !k->no_large) {
		u8 *at = (u8 *)k->head + k->large;
		u64 before = thread_time();

		__atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
		k->no_large = madvise(at, LARGE_PAGE, MADV_COLLAPSE) ||
			      thread_time() - before > LARGE_PAGE_NS;
		k->large += LARGE_PAGE;
	}
}

/* Where an image of @size bytes goes; NULL: there is no room. */
static u8 *room_for(struct keeper *k, u64 size)
{
	u64 at = TREE_IMAGES_PAGE + k->taken;

	if (!size || size % sizeof(u64) || size > TREE_IMAGES_SIZE - at ||
	    ALIGN_UP(size, TREE_IMAGES_PAGE) > TREE_IMAGES_SIZE - at)
		return NULL;
	use_large_pages(k, at + size);
	return (u8 *)k->head + at;
}

/* What is in the room is the image @name. */
static void show(struct keeper *k, u64 name, u64 size)
{
	u64 at = TREE_IMAGES_PAGE + k->taken,
	    pages = ALIGN_UP(size, TREE_IMAGES_PAGE) / TREE_IMAGES_PAGE;
	u32 slot = slot_for(k, name);

	if (slot == TREE_IMAGES_SLOTS)
		return;
	k->taken += pages * TREE_IMAGES_PAGE;
	k->head->taken = k->taken;
	/* What was written before is there for whoever reads this. */
	__atomic_store_n(&k->head->slot[slot].place, at / TREE_IMAGES_PAGE << 32 | pages,
			 __ATOMIC_RELEASE);
}

static void keep(struct keeper *k, u64 name, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	u8 *to;

	/* Seals are asked for first: what has none could keep who reads it waiting. */
	if (seals < 0 || (seals & SEALED) != SEALED || fstat(fd, &st))
		return;
	to = room_for(k, (u64)st.st_size);
	if (to && copy(fd, to, (u64)st.st_size) && is_whole(to, (u64)st.st_size))
		show(k, name, (u64)st.st_size);
}

static int read_memory(pid_t pid, void *to, u64 from, u64 len)
{
	struct iovec here = {to, len}, there = {(void *)from, len};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	if (n < 0)
		return -errno;
	return (u64)n == len ? 0 : -EFAULT;
}

/*
 * The sender waits, but not for ever. If it still says the same when all has been read, it has
 * changed nothing meanwhile.
 */
static int read_image(struct keeper *k, const struct letter *l)
{
	struct tree_image_pieces pieces;
	u64 name;
	int ret = read_memory(l->pid, &pieces, l->message.pieces, sizeof(pieces));
	u8 *to;

	if (ret)
		return ret;
	if (pieces.name != l->message.name || pieces.n > TREE_IMAGE_PIECES)
		return -EINVAL;
	to = room_for(k, pieces.size);
	for (u64 i = 0; to && i < pieces.n; i++) {
		const struct tree_image_piece *p = &pieces.piece[i];

		if (p->at > pieces.size || p->len > pieces.size - p->at)
			return -EINVAL;
		ret = read_memory(l->pid, to + p->at, p->from, p->len);
		if (ret)
			return ret;
	}
	ret = read_memory(l->pid, &name, l->message.pieces, sizeof(name));
	if (to && !ret && name == pieces.name)
		show(k, name, pieces.size);
	return ret;
}

/* All of @fd, where large pages can be. */
static u8 *map_aligned(int fd)
{
	u64 room = TREE_IMAGES_SIZE + LARGE_PAGE, before;
	u8 *at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	u8 *map;

	if (at == MAP_FAILED)
		return NULL;
	before = ALIGN_UP((u64)at, LARGE_PAGE) - (u64)at;
	map = mmap(at + before, TREE_IMAGES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   fd, 0);
	if (map == MAP_FAILED) {
		munmap(at, room);
		return NULL;
	}
	if (before)
		munmap(at, before);
	munmap(map + TREE_IMAGES_SIZE, LARGE_PAGE - before);
	return map;
}

/*
 * The first that is sent becomes what all read: it is mapped so that it can be written to, which
 * nobody can ask for after that.
 */
static void begin(struct keeper *k, int fd)
{
	const int closed = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	u8 *map;

	if (k->head || seals < 0 || (seals & SEALED) != closed || fstat(fd, &st) ||
	    st.st_size != (off_t)TREE_IMAGES_SIZE)
		return;
	map = map_aligned(fd);
	if (!map)
		return;
	/* Nor does a child have it, or a core file. */
	if (madvise(map, TREE_IMAGES_SIZE, MADV_DONTFORK) ||
	    madvise(map, TREE_IMAGES_SIZE, MADV_DONTDUMP) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)) {
		munmap(map, TREE_IMAGES_SIZE);
		return;
	}
	memset(map, 0, TREE_IMAGES_PAGE);
	k->head = (struct tree_images *)map;
}

static void answer(struct keeper *k, const struct letter *l)
{
	if (!l->trusted)
		return;
	if (l->message.what == TREE_IMAGE_BEGIN && l->nr_fds)
		begin(k, l->fds[0]);
	if (k->head && l->message.what == TREE_IMAGE_KEEP && l->nr_fds)
		keep(k, l->message.name, l->fds[0]);
	if (k->head && l->message.what == TREE_IMAGE_READ) {
		int ret = read_image(k, l);

		if (ret == -EPERM || ret == -ENOSYS)
			k->head->unreadable = 1;
	}
	if (k->head && l->message.what == TREE_IMAGE_ASK)
		(void)slot_for(k, l->message.name);
}

static void *work(void *arg)
{
	struct keeper *k = arg;
	struct letter l;

	while (receive(k, &l)) {
		answer(k, &l);
		for (u32 i = 0; i < l.nr_fds; i++)
			close(l.fds[i]);
	}
	if (k->head)
		munmap(k->head, TREE_IMAGES_SIZE);
	close(k->sock);
	free(k);
	return NULL;
}

int ap__image_keeper_pair(int *inside, int *outside)
{
	int ends[2], one = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* Before a message is sent. */
	if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one))) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	*inside = ends[0];
	*outside = ends[1];
	return 0;
}

int ap__image_keeper_start(int inside)
{
	struct keeper *k = calloc(1, sizeof(*k));

	if (k)
		*k = (struct keeper){.sock = inside, .user = getuid(), .group = getgid()};
	if (k && helper_start(work, k))
		return 0;
	close(inside);
	free(k);
	return -EAGAIN;
}
