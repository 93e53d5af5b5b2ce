#include "unit/session/mock-guest.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"

void mock_init(struct mock *g, int segment_fd, int bootstrap)
{
	size_t size = segment_offset(SEGMENT_SLOTS);

	memset(g, 0, sizeof(*g));
	g->bootstrap = bootstrap;
	g->sock = g->cpu = -1;
	g->segment = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			  segment_fd, 0);
	if (g->segment == MAP_FAILED)
		abort();
	g->meter = mock_take_meter(g);
	mock_set_meter(g, g->meter);
}

u32 mock_take_meter(struct mock *g)
{
	/* Other guests may have written anything there. */
	return __atomic_fetch_add(&g->segment->used, 1, __ATOMIC_RELAXED) % SEGMENT_SLOTS;
}

void mock_set_meter(struct mock *g, u32 meter)
{
	g->meter = meter;
	g->m = (struct meter *)((u8 *)g->segment + segment_offset(g->meter));
	g->m->pid = (u32)getpid();
	g->m->tid = (u32)gettid();
	g->m->state = METER_RUNNING;
}

void mock_release(struct mock *g)
{
	if (g->sock >= 0)
		close(g->sock);
	if (g->page)
		munmap(g->page, WIRE_SIZE);
	if (g->trace)
		munmap(g->trace, TRACE_SIZE);
	munmap(g->segment, segment_offset(SEGMENT_SLOTS));
}

void mock_count(struct mock *g, u64 instructions, u64 branches)
{
	__atomic_fetch_add(&g->m->count[1][METER_INSTRUCTIONS], instructions, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->m->count[3][METER_BRANCHES], branches, __ATOMIC_RELAXED);
}

static u64 cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

#define FDS_MOST 253 /* the kernel's: in one message */

/* @n times @fd, if that is not -1. */
static int send_with_fds(int sock, const void *bytes, size_t len, int fd, u32 n)
{
	union {
		char buf[CMSG_SPACE(FDS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0 && n <= FDS_MOST) {
		struct cmsghdr *c = &control.align;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (u32 i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_with_fd(int sock, const void *bytes, size_t len, int fd)
{
	return send_with_fds(sock, bytes, len, fd, 1);
}

static int receive(struct mock *g, struct wire_fd_message *message, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {message, sizeof(*message)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n = -1;

	for (int i = 0; i < 200; i++) {
		if (g->serve)
			session_run(g->serve, 0);
		n = recvmsg(g->sock, &m, g->serve ? MSG_DONTWAIT : 0);
		if (n >= 0 || errno != EAGAIN)
			break;
	}
	*fd = -1;
	c = CMSG_FIRSTHDR(&m);
	if (n > 0 && c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n == sizeof(*message) ? 0 : -ENODEV;
}

int mock_hello(struct mock *g, int sock, u32 flags)
{
	struct wire_kick k = {.what = WIRE_KICK_HELLO,
			      .version = WIRE_VERSION,
			      .flags = flags,
			      .meter = g->meter,
			      .tid = gettid(),
			      .cpu_time = cpu_time()};
	struct wire_fd_message message;
	int pair[2], fd, err;

	if (sock >= 0) {
		g->sock = sock;
		err = send_with_fd(sock, &k, sizeof(k), -1);
	} else {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
			return -errno;
		g->sock = pair[0];
		err = send_with_fd(g->bootstrap, &k, sizeof(k), pair[1]);
		close(pair[1]);
	}
	if (!err)
		err = receive(g, &message, &fd);
	if (err)
		return err;
	if (message.slot != WIRE_FD_MESSAGE_HELLO || message.seq || fd < 0)
		return -(int)message.seq;
	g->page = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	g->trace = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)trace_offset(g->meter));
	close(fd);
	if (g->page == MAP_FAILED || g->trace == MAP_FAILED)
		abort();
	g->slot = (struct wire_slot *)((u8 *)g->page + WIRE_SLOT_OFF(0));
	return 0;
}

void mock_send_fd(struct mock *g, int fd)
{
	struct wire_kick k = {.what = WIRE_KICK_FD};

	send_with_fd(g->sock, &k, sizeof(k), fd);
}

void mock_send_fds(struct mock *g, int fd, u32 n)
{
	struct wire_kick k = {.what = WIRE_KICK_FD};

	send_with_fds(g->sock, &k, sizeof(k), fd, n);
}

s64 mock_call(struct mock *g, u32 op)
{
	struct wire_slot *sl = g->slot;
	struct wire_kick k = {.what = WIRE_KICK_CALL};

	sl->tid = gettid();
	sl->meter = g->meter;
	sl->token = g->token;
	sl->cpu = (u32)(g->cpu < 0 ? sched_getcpu() : g->cpu);
	sl->cpu_time = cpu_time();
	sl->seq++;
	sl->op = op;
	__atomic_store_n(&sl->word, WIRE_POSTED, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sl->awake, __ATOMIC_SEQ_CST) &&
	    send_with_fd(g->sock, &k, sizeof(k), -1))
		return -ENODEV;
	for (int i = 0; __atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) != WIRE_DONE; i++) {
		const struct timespec wait = {0, 10000000};
		u32 posted = WIRE_POSTED;

		if (g->serve) {
			if (i == 100)
				return -ETIMEDOUT;
			session_run(g->serve, 0);
			continue;
		}
		if (i == 1000 && !g->patient)
			return -ETIMEDOUT;
		__atomic_compare_exchange_n(&sl->word, &posted, WIRE_WAITED, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &sl->word, FUTEX_WAIT, WIRE_WAITED, &wait, NULL, 0);
		if (poll(&(struct pollfd){.fd = g->sock}, 1, 0) > 0)
			return -ENODEV; /* hung up */
	}
	g->token = 0;
	sl->word = WIRE_IDLE;
	return sl->ret;
}

int mock_take_fd(struct mock *g)
{
	struct wire_fd_message message;
	int fd;

	if (!(g->slot->reply_flags & WIRE_REPLY_FD) || receive(g, &message, &fd))
		return -1;
	return fd;
}

struct pe_attr mock_attr(void)
{
	return (struct pe_attr){.type = PERF_TYPE_HARDWARE,
				.size = PE_ATTR_SIZE_VER5,
				.config = PERF_COUNT_HW_INSTRUCTIONS,
				.disabled = 1,
				.exclude_kernel = 1,
				.exclude_hv = 1};
}

int mock_open(struct mock *g, const struct pe_attr *attr, s32 pid, s32 cpu, u64 group, u64 flags,
	      u64 *handle)
{
	struct wire_slot *sl = g->slot;
	s64 ret;

	sl->args.open = (struct wire_open_args){
		.pid = pid, .cpu = cpu, .group = group, .flags = flags, .attr_size = attr->size};
	sl->len = sizeof(*attr);
	memcpy(sl->data, attr, sizeof(*attr));
	ret = mock_call(g, WIRE_OP_OPEN);
	if (ret < 0)
		return (int)ret;
	*handle = sl->result.event.handle;
	return mock_take_fd(g);
}

s64 mock_ioctl(struct mock *g, u64 handle, u32 cmd, u64 arg)
{
	g->slot->args.ioctl = (struct wire_ioctl_args){.handle = handle, .cmd = cmd, .arg = arg};
	g->slot->len = 0;
	return mock_call(g, WIRE_OP_IOCTL);
}

s64 mock_read(struct mock *g, u64 handle, u64 *words, size_t len)
{
	s64 n;

	g->slot->args.read = (struct wire_read_args){.handle = handle, .len = len};
	n = mock_call(g, WIRE_OP_READ);
	if (n > 0 && (size_t)n <= len)
		memcpy(words, g->slot->data, (size_t)n);
	return n;
}

pid_t mock_fork(struct session *s, void (*body)(struct mock *g))
{
	int segment = session_segment_fd(s), bootstrap = session_bootstrap_fd(s);
	pid_t pid = fork();

	if (pid == 0) {
		struct mock g;

		alarm(20);
		mock_init(&g, segment, bootstrap);
		body(&g);
		_exit(0);
	}
	return pid;
}
