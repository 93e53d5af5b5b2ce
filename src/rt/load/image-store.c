#include "rt/load/image-store.h"

#include "abi/tree-images.h"
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
static bool tell_keeper(u32 what, u64 name, const int *fds, u32 n)
{
	struct tree_image_message message = {.what = what, .name = name};
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

static void ask_keeper(u32 what, u64 name, int fd)
{
	int fds[2] = {fd, -1};
	s32 ends[2];
	bool waits = !raw_call2(__NR_pipe2, (long)ends, O_CLOEXEC), told;

	/* Other threads of the guest go on meanwhile, and open files. */
	if (waits) {
		ends[0] = fd_move_high(ends[0]);
		ends[1] = fd_move_high(ends[1]);
		fds[1] = ends[1];
	}
	told = tell_keeper(what, name, fds, waits ? 2 : 1);
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
		ask_keeper(TREE_IMAGE_BEGIN, 1, (int)fd);
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
	image->fd = (int)fd_open(fd_get(FD_IMAGES), text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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

static bool tree_open(u64 name, struct stored_image *image)
{
	struct tree_images head;
	u64 place = 0;
	u32 at;

	if (!tree_read(&head))
		return false;
	at = tree_images_slot(&head, name);
	if (at < TREE_IMAGES_SLOTS && head.slot[at].name == name)
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

static bool tree_make(u64 bytes, struct stored_image *image)
{
	if (!may_write(bytes))
		return false;
	image->fd = (int)fd_memfd("anyperf-translated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return image->fd >= 0;
}

bool store_make(u64 name, u64 bytes, struct stored_image *image)
{
	*image = (struct stored_image){.name = name, .size = bytes};
	return fd_get(FD_IMAGES) >= 0 && bytes < TREE_IMAGES_MOST &&
	       (store_is_tree() ? tree_make(bytes, image) : file_make(bytes, image));
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
	(void)tell_keeper(TREE_IMAGE_ASK, name, NULL, 0);
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

static void tree_publish(const struct stored_image *image)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	if (!sys_fcntl(image->fd, F_ADD_SEALS, seals))
		ask_keeper(TREE_IMAGE_KEEP, image->name, image->fd);
}

void store_publish(struct stored_image *image, bool whole)
{
	if (!store_is_tree()) {
		file_publish(image, whole);
		return;
	}
	if (whole)
		tree_publish(image);
	sys_close(image->fd);
}

void store_close(struct stored_image *image)
{
	if (image->fd != fd_get(FD_IMAGES))
		sys_close(image->fd);
}
