/*
 * Who keeps a run's images takes whole ones of memory that nobody can change any more, whatever
 * else is sent, and nobody but he can write to what he shows.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/tree-images.h"
#include "backend/image-keeper.h"
#include "base/image-sum.h"

#define FUTURE_WRITE 0x0010 /* F_SEAL_FUTURE_WRITE */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int images, sock;

/* Memory for all, as whoever first needs it makes it. */
static int memory(u64 size, int seals)
{
	int fd = memfd_create("images", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	EXPECT_EQ(ftruncate(fd, (off_t)size), 0);
	EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void tell(u32 what, u64 name, int fd);

static bool start(void)
{
	int inside;

	EXPECT_EQ(ap__image_keeper_pair(&inside, &sock), 0);
	EXPECT_EQ(ap__image_keeper_start(inside), 0);
	images = memory(TREE_IMAGES_SIZE, F_SEAL_SHRINK | F_SEAL_GROW);
	tell(TREE_IMAGE_BEGIN, 1, dup(images));
	if (fcntl(images, F_GET_SEALS) & FUTURE_WRITE)
		return true;
	fprintf(stderr, "this kernel does not seal memory against further writers\n");
	return false;
}

static void end(void)
{
	close(images);
	close(sock);
}

/* @words words that are @word, the sum included. */
static int image_fd(u64 word, u64 words, int seals, u64 wrong)
{
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	u64 *all = calloc(words, sizeof(*all));
	struct image_sum sum = {0};

	for (u64 i = 0; i + 1 < words; i++)
		all[i] = word;
	image_sum_add(&sum, all, words - 1);
	all[words - 1] = image_sum_of(&sum) ^ wrong;
	EXPECT_EQ(write(fd, all, words * sizeof(*all)), words * sizeof(*all));
	free(all);
	fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

/* Sends @len bytes with @fd, which goes, and waits until all that came with it has been closed. */
static void send_bytes(const void *bytes, size_t len, int fd)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control};
	struct cmsghdr *c = &control.align;
	int ends[2], fds[2], n = 0;
	struct pollfd p;

	EXPECT_EQ(pipe(ends), 0);
	if (fd >= 0)
		fds[n++] = fd;
	fds[n++] = ends[1];
	msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	EXPECT_EQ(sendmsg(sock, &msg, MSG_NOSIGNAL), len);
	if (fd >= 0)
		close(fd);
	close(ends[1]);
	p = (struct pollfd){.fd = ends[0]};
	EXPECT_EQ(poll(&p, 1, 60000), 1);
	close(ends[0]);
}

static void tell(u32 what, u64 name, int fd)
{
	struct tree_image_message m = {.what = what, .name = name};

	send_bytes(&m, sizeof(m), fd);
}

static void tell_pieces(u64 name, const struct tree_image_pieces *p)
{
	struct tree_image_message m = {TREE_IMAGE_READ, 0, name, (u64)p};

	send_bytes(&m, sizeof(m), -1);
}

/* The first word of image @name and its pages; 0: there is none. */
static u64 shown(u64 name, u64 *pages)
{
	struct tree_images head;
	u64 word = 0, place;
	u32 at;

	EXPECT_EQ(pread(images, &head, sizeof(head), 0), sizeof(head));
	at = tree_images_slot(&head, name);
	if (at == TREE_IMAGES_SLOTS || head.slot[at].name != name)
		return 0;
	place = head.slot[at].place;
	*pages = (u32)place;
	if (place)
		EXPECT_EQ(pread(images, &word, 8, (off_t)((place >> 32) * TREE_IMAGES_PAGE)), 8);
	return word;
}

TEST(what_is_whole_is_shown)
{
	u64 pages = 0;

	if (!start())
		return;
	EXPECT_EQ(shown(5, &pages), 0);
	tell(TREE_IMAGE_KEEP, 5, image_fd(77, 1000, SEALS, 0));
	EXPECT_EQ(shown(5, &pages), 77);
	EXPECT_EQ(pages, 2);
	/* Another of the same slot, and of the same name. */
	tell(TREE_IMAGE_KEEP, 5 + TREE_IMAGES_SLOTS, image_fd(78, 512, SEALS, 0));
	tell(TREE_IMAGE_KEEP, 5, image_fd(79, 513, SEALS | F_SEAL_SEAL, 0));
	EXPECT_EQ(shown(5, &pages), 79);
	EXPECT_EQ(pages, 2);
	EXPECT_EQ(shown(5 + TREE_IMAGES_SLOTS, &pages), 78);
	EXPECT_EQ(pages, 1);
	end();
}

TEST(what_all_read_is_there_once)
{
	int second;
	u64 pages = 0;

	if (!start())
		return;
	tell(TREE_IMAGE_KEEP, 5, image_fd(77, 1000, SEALS, 0));
	second = memory(TREE_IMAGES_SIZE, F_SEAL_SHRINK | F_SEAL_GROW);
	tell(TREE_IMAGE_BEGIN, 1, dup(second));
	EXPECT_EQ(fcntl(second, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW);
	EXPECT_EQ(shown(5, &pages), 77);
	close(second);
	end();
}

TEST(not_all_memory_is_fit_for_it)
{
	static const struct {
		u64 size;
		int seals;
	} wrong[] = {{TREE_IMAGES_SIZE - 4096, F_SEAL_SHRINK | F_SEAL_GROW},
		     {TREE_IMAGES_SIZE, F_SEAL_SHRINK},
		     {TREE_IMAGES_SIZE, F_SEAL_GROW},
		     {TREE_IMAGES_SIZE, SEALS}};
	int inside;

	EXPECT_EQ(ap__image_keeper_pair(&inside, &sock), 0);
	EXPECT_EQ(ap__image_keeper_start(inside), 0);
	/* Nothing to keep it in. */
	tell(TREE_IMAGE_KEEP, 5, image_fd(77, 1000, SEALS, 0));
	tell(TREE_IMAGE_ASK, 5, -1);
	for (u32 i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int fd = memory(wrong[i].size, wrong[i].seals);

		tell(TREE_IMAGE_BEGIN, 1, dup(fd));
		EXPECT_EQ(fcntl(fd, F_GET_SEALS), wrong[i].seals);
		close(fd);
	}
	close(sock);
}

TEST(who_is_asked_for_has_a_slot)
{
	u64 pages = 9;

	if (!start())
		return;
	tell(TREE_IMAGE_ASK, 6, -1);
	EXPECT_EQ(shown(6, &pages), 0);
	EXPECT_EQ(pages, 0);
	/* No more than there are. */
	for (u64 i = 0; i < 2 * TREE_IMAGES_SLOTS; i++)
		tell(TREE_IMAGE_ASK, 1000 + i, -1);
	tell(TREE_IMAGE_KEEP, 9999, image_fd(77, 1000, SEALS, 0));
	pages = 9;
	EXPECT_EQ(shown(9999, &pages), 0);
	EXPECT_EQ(pages, 9);
	tell(TREE_IMAGE_KEEP, 6, image_fd(77, 1000, SEALS, 0));
	EXPECT_EQ(shown(6, &pages), 77);
	end();
}

TEST(nothing_else_is)
{
	static const struct tree_image_message good = {TREE_IMAGE_KEEP, 0, 7, 0};
	char garbage[sizeof(good) + 8];
	u64 pages = 0;
	int odd, pair[2];

	if (!start())
		return;
	tell(TREE_IMAGE_KEEP, 7, image_fd(77, 1000, SEALS & ~F_SEAL_WRITE, 0));
	tell(TREE_IMAGE_KEEP, 7, image_fd(77, 1000, SEALS & ~F_SEAL_SHRINK, 0));
	tell(TREE_IMAGE_KEEP, 7, image_fd(77, 1000, SEALS, 1));
	tell(TREE_IMAGE_KEEP, 7, image_fd(0, 1000, SEALS, ~0ull));
	tell(TREE_IMAGE_KEEP, 0, image_fd(77, 1000, SEALS, 0));
	tell(TREE_IMAGE_KEEP, 7, -1);
	tell(99, 7, image_fd(77, 1000, SEALS, 0));
	/* Too large, of no length, and of a length that is none. */
	odd = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT_EQ(ftruncate(odd, (off_t)TREE_IMAGES_MOST + 8), 0);
	fcntl(odd, F_ADD_SEALS, SEALS);
	tell(TREE_IMAGE_KEEP, 7, odd);
	odd = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fcntl(odd, F_ADD_SEALS, SEALS);
	tell(TREE_IMAGE_KEEP, 7, odd);
	odd = memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT_EQ(write(odd, "123", 3), 3);
	fcntl(odd, F_ADD_SEALS, SEALS);
	tell(TREE_IMAGE_KEEP, 7, odd);
	/* What a read waits for. */
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tell(TREE_IMAGE_KEEP, 7, pair[0]);
	close(pair[1]);
	/* Messages of any length. */
	memset(garbage, 0x5a, sizeof(garbage));
	memcpy(garbage, &good, sizeof(good));
	for (size_t len = 1; len <= sizeof(garbage); len++)
		if (len != sizeof(good))
			send_bytes(garbage, len, image_fd(77, 1000, SEALS, 0));
	EXPECT_EQ(shown(7, &pages), 0);
	EXPECT_EQ(pages, 0);
	tell(TREE_IMAGE_KEEP, 7, image_fd(77, 1000, SEALS, 0));
	EXPECT_EQ(shown(7, &pages), 77);
	end();
}

/* A word of image @name, as shown; behind what its sender has not given there is nothing. */
static u64 shown_at(u64 name, u64 at)
{
	struct tree_images head;
	u64 word = 0, place;

	EXPECT_EQ(pread(images, &head, sizeof(head), 0), sizeof(head));
	place = head.slot[tree_images_slot(&head, name)].place >> 32;
	EXPECT_EQ(pread(images, &word, 8, (off_t)(place * TREE_IMAGES_PAGE + at)), 8);
	return word;
}

TEST(what_lies_in_memory_is_read)
{
	static u64 first[] = {77, 2, 3}, second[1000];
	struct tree_image_pieces p = {
		7,
		4096 + sizeof(second),
		2,
		{{(u64)first, sizeof(first), 0}, {(u64)second, sizeof(second), 4096}}};
	u64 pages = 0;
	int status;
	pid_t pid;

	if (!start())
		return;
	second[999] = 78;
	/* A child's, as the runtime is one mostly. */
	pid = fork();
	if (!pid) {
		tell_pieces(7, &p);
		_exit(test_failures > 0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT_EQ(shown(7, &pages), 77);
	EXPECT_EQ(pages, 3);
	EXPECT_EQ(shown_at(7, 16), 3);
	EXPECT_EQ(shown_at(7, 4096 + 999 * 8), 78);
	end();
}

TEST(what_is_not_whole_in_memory_is_not_read)
{
	static u64 words[1000] = {77};
	const struct tree_image_piece good = {(u64)words, sizeof(words), 0};
	const struct tree_image_pieces right = {7, sizeof(words), 1, {good}};
	struct tree_image_pieces p;
	u64 pages = 0;

	if (!start())
		return;
	/* Withdrawn, as the sender does not wait any more. */
	p = right;
	p.name = 0;
	tell_pieces(7, &p);
	p = right;
	p.n = TREE_IMAGE_PIECES + 1;
	tell_pieces(7, &p);
	p = right;
	p.size = 0;
	tell_pieces(7, &p);
	p.size = sizeof(words) + 1;
	tell_pieces(7, &p);
	p.size = TREE_IMAGES_MOST + 8;
	tell_pieces(7, &p);
	p.size = ~7ull;
	tell_pieces(7, &p);
	p = right;
	p.piece[0].at = 8;
	tell_pieces(7, &p);
	p.piece[0].at = ~7ull;
	tell_pieces(7, &p);
	p.piece[0] = good;
	p.piece[0].len = ~0ull;
	tell_pieces(7, &p);
	p.piece[0] = good;
	p.piece[0].from = 8;
	tell_pieces(7, &p);
	tell_pieces(7, NULL);
	EXPECT_EQ(shown(7, &pages), 0);
	EXPECT_EQ(pages, 0);
	tell_pieces(7, &right);
	EXPECT_EQ(shown(7, &pages), 77);
	end();
}

TEST(another_user_is_not_believed)
{
	u64 pages = 0;
	int status;
	pid_t pid;

	if (geteuid() || !start())
		return;
	for (int who = 0; who < 2; who++) {
		pid = fork();
		if (!pid) {
			if (who ? setresgid(1234, 1234, 1234) : setresuid(1234, 1234, 1234))
				_exit(1);
			tell(TREE_IMAGE_KEEP, 8, image_fd(77, 1000, SEALS, 0));
			_exit(test_failures > 0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	}
	EXPECT_EQ(shown(8, &pages), 0);
	tell(TREE_IMAGE_KEEP, 8, image_fd(77, 1000, SEALS, 0));
	EXPECT_EQ(shown(8, &pages), 77);
	end();
}

TEST(nobody_writes_to_what_is_shown)
{
	char path[64];
	int again;

	if (!start())
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", images);
	again = open(path, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		int fd = i ? again : images;

		EXPECT(pwrite(fd, "x", 1, 0) == -1 && errno == (fd < 0 ? EBADF : EPERM));
		EXPECT(ftruncate(fd, 0) == -1);
		EXPECT(ftruncate(fd, (off_t)(2 * TREE_IMAGES_SIZE)) == -1);
		EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
		EXPECT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
		EXPECT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
	}
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, images, 0) !=
	       MAP_FAILED);
	close(again);
	end();
}
