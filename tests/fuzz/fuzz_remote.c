/*
 * The client's end of the wire against a session that lies: replies with any numbers, descriptors
 * of any kind, memory that could be cut, slots that change while they are read. Whatever it is
 * sent, the library ends each call with a result or an errno, writes nothing outside of what its
 * caller gave it, and keeps no descriptor.
 *
 * The session that lies is a process of its own, so that its deaths and descriptors are real.
 *
 *	fuzz_remote [SEED [ROUNDS]]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/remote.h"
#include "fuzz/any.h"

/* What the session that lies has. */
static struct {
	int bootstrap, sock;
	struct wire_proc *page;
	struct wire_slot *slot;
} liar;

static int memory(bool sealed, size_t size)
{
	int fd = memfd_create("any", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, (off_t)size))
		_exit(1);
	if (sealed)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

/* Of a kind that an honest one sends, or not. */
static int some_fd(bool honest)
{
	int ends[2], fd;

	switch (honest ? 5 + below(2) : below(8)) {
	case 0: return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 1: return eventfd(1, EFD_CLOEXEC);
	case 2: return memory(false, 65536);
	case 3: return memory(true, 4096);
	case 4: return open("/", O_RDONLY | O_CLOEXEC);
	case 5: return memory(true, 1 << 20);
	case 6:
		if (pipe2(ends, O_CLOEXEC))
			return -1;
		fd = ends[0];
		close(ends[1]);
		return fd;
	default: return -1;
	}
}

static void send_some(int sock, const void *bytes, size_t len, int nr_fds, bool honest)
{
	union {
		char buf[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[3], n = 0;

	for (int i = 0; i < nr_fds; i++) {
		fds[n] = some_fd(honest);
		n += fds[n] >= 0;
	}
	if (n) {
		struct cmsghdr *c = &control.align;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	}
	sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n)
		close(fds[--n]);
}

static void send_message(u32 slot, u32 seq, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct wire_fd_message message = {slot, seq};
	struct iovec iov = {&message, sizeof(message)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = &control.align;

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	sendmsg(liar.sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Changes what the client reads while it reads it. */
static void *scribble(void *arg)
{
	u64 mine = (u64)(uintptr_t)arg | 1;

	for (;;) {
		struct wire_slot *sl = liar.slot;

		mine = mine * 6364136223846793005ull + 1442695040888963407ull;
		switch (mine >> 61) {
		case 0: sl->ret = (s64)(mine >> 48) - 100; break;
		case 1: sl->reply_len = (u32)(mine >> 40); break;
		case 2: sl->result.words[mine >> 50 & 3] = mine >> 30 & 0xffff; break;
		case 3: sl->reply_flags ^= 1; break;
		case 4: sl->refusal.cause = (u16)mine; break;
		default:
			((u8 *)&sl->refusal)[(mine >> 32) % sizeof(sl->refusal)] = (u8)(mine >> 20);
		}
		if (mine >> 58 == 7)
			usleep(50);
	}
	return NULL;
}

/* HELLO, answered somehow; true: the client may go on to calls. */
static bool answer_hello(void)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct wire_kick kick;
	struct iovec iov = {&kick, sizeof(kick)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(liar.bootstrap, &m, MSG_CMSG_CLOEXEC) <= 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return false;
	memcpy(&liar.sock, CMSG_DATA(c), sizeof(int));
	if (below(8) == 0) {
		send_some(liar.sock, (u32[8]){(u32)odd(), (u32)odd()}, below(2) ? 8 : below(9),
			  (int)below(3), false);
		return false;
	}
	fd = memory(below(8) != 0, below(16) ? WIRE_SIZE : 4096 * below(64));
	if (below(16) == 0) {
		send_message(WIRE_FD_MESSAGE_HELLO, (u32)odd(), fd);
		return false;
	}
	liar.page = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (liar.page == MAP_FAILED || fcntl(fd, F_GET_SEALS) == 0 ||
	    lseek(fd, 0, SEEK_END) < (off_t)WIRE_SIZE) {
		send_message(WIRE_FD_MESSAGE_HELLO, 0, fd);
		return false;
	}
	liar.page->magic = below(16) ? WIRE_MAGIC : odd();
	liar.page->version = below(16) ? WIRE_VERSION : (u32)odd();
	liar.page->slots = below(16) ? WIRE_SLOTS : (u32)odd();
	liar.slot = (struct wire_slot *)((u8 *)liar.page + WIRE_SLOT_OFF(0));
	send_message(WIRE_FD_MESSAGE_HELLO, 0, fd);
	close(fd);
	return true;
}

/* A reply as it should be, more often than not with something wrong in it. */
static void reply(void)
{
	struct wire_slot *sl = liar.slot;
	bool fd = sl->op == WIRE_OP_OPEN || sl->op == WIRE_OP_MMAP || sl->op == WIRE_OP_TRACE;
	u32 seq = below(16) ? sl->seq : (u32)odd();

	sl->ret = 0;
	sl->reply_flags = 0;
	sl->reply_len = 0;
	memset(&sl->result, 0, sizeof(sl->result));
	switch (sl->op) {
	case WIRE_OP_OPEN: sl->result.event.handle = 1 + below(1000); break;
	case WIRE_OP_READ:
		sl->ret = (s64)min_u64(sl->args.read.len, 8 * below(6));
		sl->reply_len = (u32)sl->ret;
		break;
	case WIRE_OP_IOCTL:
		if (sl->args.ioctl.cmd == PERF_EVENT_IOC_ID)
			sl->reply_len = 8;
		break;
	case WIRE_OP_VIEW: memcpy(sl->data, "/tmp", 5), sl->reply_len = 5; break;
	default: break;
	}
	if (fd) {
		int kind = sl->op == WIRE_OP_OPEN ? 6 : 5, ends[2] = {-1, -1};

		sl->reply_flags = WIRE_REPLY_FD;
		if (below(4) == 0) {
			send_some(liar.sock, (u32[8]){(u32)below(3), seq}, below(8) ? 8 : below(20),
				  (int)below(4), below(2));
		} else if (kind == 5) {
			ends[0] = memory(true, 1 << 20);
			send_message(0, seq, ends[0]);
		} else if (pipe2(ends, O_CLOEXEC) == 0) {
			send_message(0, seq, ends[0]);
		}
		if (ends[0] >= 0)
			close(ends[0]);
		if (ends[1] >= 0)
			close(ends[1]);
	}
	if (below(3) == 0)
		sl->ret = (s64)odd();
	if (below(4) == 0)
		sl->reply_len = (u32)odd();
	if (below(4) == 0)
		sl->result.words[below(4)] = odd();
	if (below(16) == 0)
		sl->reply_flags ^= WIRE_REPLY_FD;
	for (u32 i = 0; i < sizeof(sl->refusal) / 8; i++)
		((u64 *)&sl->refusal)[i] = any();
	if (below(3) == 0)
		sl->data[below(256)] = (u8)any();
	__atomic_store_n(&sl->word, WIRE_DONE, __ATOMIC_RELEASE);
	syscall(SYS_futex, &sl->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void lie(void)
{
	pthread_t thread;
	struct wire_kick kick;

	alarm(60);
	if (!answer_hello())
		return;
	if (below(2))
		pthread_create(&thread, NULL, scribble, (void *)(uintptr_t)any());
	while (recv(liar.sock, &kick, sizeof(kick), 0) > 0) {
		if (kick.what != WIRE_KICK_CALL)
			continue;
		if (below(60) == 0)
			return;
		reply();
	}
}

#define EVENTS 8

static struct {
	struct remote_client *r;
	int fds[EVENTS];
	u32 nr;
	void *map;
	size_t map_len;
} client;

static int some_event(void)
{
	return client.nr && below(8) ? client.fds[below(client.nr)] : (int)below(64);
}

static void close_event(void)
{
	u32 i = (u32)below(client.nr ? client.nr : 1);

	if (!client.nr)
		return;
	(void)!ap__remote_event_close(client.r, client.fds[i]);
	client.fds[i] = client.fds[--client.nr];
}

/* Each buffer is exactly as long as the call says. */
static void one_call(void)
{
	struct pe_attr *attr = malloc(sizeof(*attr));
	size_t len = 8 * below(20);
	u8 *buf = malloc(len ? len : 1);
	u64 *word = malloc(sizeof(*word));
	char text[300];
	int fd;

	if (!attr || !buf || !word)
		abort();
	switch (below(8)) {
	case 0:
	case 1:
		memset(attr, 0, sizeof(*attr));
		attr->size = sizeof(*attr);
		if (client.nr == EVENTS)
			close_event();
		fd = ap__remote_event(client.r, attr, 0, -1, below(2) ? -1 : some_event(), 0);
		if (fd >= 0)
			client.fds[client.nr++] = fd;
		if (attr->size > 4096)
			abort();
		break;
	case 2:
	case 3:
		if (ap__remote_read(client.r, some_event(), buf, len) > (s64)len)
			abort();
		break;
	case 4:
		(void)!ap__remote_ioctl(client.r, some_event(),
					below(2) ? PERF_EVENT_IOC_ID : PERF_EVENT_IOC_PERIOD,
					(u64)(uintptr_t)word);
		(void)!ap__remote_ioctl(client.r, some_event(), PERF_EVENT_IOC_ENABLE, 0);
		break;
	case 5:
		if (client.map)
			(void)ap__remote_munmap(client.r, client.map, client.map_len);
		client.map = NULL;
		client.map_len = 4096 * (1 + (1u << below(10)));
		fd = some_event();
		if (!ap__remote_mmap(client.r, fd, client.map_len, 0, true, &client.map)) {
			/* All of it is there, and stays. */
			for (size_t at = 0; at < client.map_len; at += 4096)
				((volatile u8 *)client.map)[at] = 1;
			ap__remote_heard(client.r, fd);
		} else {
			client.map = NULL;
		}
		break;
	case 6: {
		const char *root = ap__remote_root(client.r);

		if (root && (*root != '/' || strlen(root) >= WIRE_ROOT))
			abort();
		break;
	}
	default: close_event(); break;
	}
	refusal_why(ap__remote_refusal(client.r), "event", text, sizeof(text));
	refusal_remedy(ap__remote_refusal(client.r), text, sizeof(text));
	free(attr);
	free(buf);
	free(word);
}

static u32 open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	u32 n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void ask(int bootstrap)
{
	memset(&client, 0, sizeof(client));
	if (ap__remote_open(bootstrap, &client.r))
		return;
	for (u32 i = 0; i < 60; i++)
		one_call();
	if (client.map)
		(void)ap__remote_munmap(client.r, client.map, client.map_len);
	ap__remote_close(client.r);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	u64 rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
	u32 before = open_fds();

	signal(SIGPIPE, SIG_IGN);
	for (u64 i = 0; i < rounds; i++) {
		int pair[2], status;
		pid_t pid;

		any_state = (seed + i) * 0x9e3779b97f4a7c15ull + 1;
		alarm(60);
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
			return 1;
		pid = fork();
		if (!pid) {
			close(pair[1]);
			liar.bootstrap = pair[0];
			any_state ^= 0x5555;
			lie();
			_exit(0);
		}
		close(pair[0]);
		ask(pair[1]);
		close(pair[1]);
		kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status)))
			return 1;
		if (open_fds() != before) {
			fprintf(stderr, "seed %llu: %u descriptors, not %u\n",
				(unsigned long long)(seed + i), open_fds(), before);
			return 1;
		}
	}
	return 0;
}
