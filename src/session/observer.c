#include "session/observer.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "session/session-priv.h"

#define HANDLES 4096

struct observer {
	int sock;
	struct wire_proc *page;
	struct wire_slot *slot;
	char root[256];
	u64 handles[HANDLES];   /* the session's; 0: free */
	int fds[HANDLES];       /* what keeps the event open */
	struct refusal refusal; /* of the last call that failed */
};

static int send_kick(int sock, const struct wire_kick *kick, int fd)
{
	return send_fd(sock, kick, sizeof(*kick), fd, 0) ? -ENODEV : 0;
}

static u64 cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

static int introduce(struct observer *o, int bootstrap)
{
	struct wire_kick hello = {.what = WIRE_KICK_HELLO,
				  .version = WIRE_VERSION,
				  .meter = WIRE_NO_METER,
				  .tid = gettid(),
				  .cpu_time = cpu_time()};
	struct wire_fd_message message;
	int pair[2], fd, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	o->sock = pair[0];
	err = send_kick(bootstrap, &hello, pair[1]);
	close(pair[1]);
	if (!err)
		err = receive_fd(o->sock, &message, sizeof(message), &fd);
	if (err)
		return err;
	if (message.slot != WIRE_FD_MESSAGE_HELLO || message.seq || fd < 0)
		return message.seq ? -(int)message.seq : -EPROTO;
	o->page = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (o->page == MAP_FAILED) {
		o->page = NULL;
		return -errno;
	}
	o->slot = (struct wire_slot *)((u8 *)o->page + WIRE_SLOT_OFF(0));
	return 0;
}

int observer_open(const char *name, struct observer **out, char *why, size_t len)
{
	struct observer *o;
	int tree_fd, bootstrap, err = session_join(name, &tree_fd, &bootstrap, why, len);

	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	err = -ENOMEM;
	if (o) {
		o->sock = -1;
		err = introduce(o, bootstrap);
	}
	close(tree_fd);
	close(bootstrap);
	if (err) {
		snprintf(why, len, "the session \"%s\" does not answer: %s", name, strerror(-err));
		observer_close(o);
		return err;
	}
	*out = o;
	return 0;
}

void observer_close(struct observer *o)
{
	if (!o)
		return;
	for (u32 i = 0; i < HANDLES; i++)
		if (o->handles[i])
			close(o->fds[i]);
	if (o->page)
		munmap(o->page, WIRE_SIZE);
	if (o->sock >= 0)
		close(o->sock);
	free(o);
}

#define refuse(o, err, id, ...) \
	refusal_set(&(o)->refusal, err, CAUSE_##id, &(const struct refusal_args){__VA_ARGS__})

/* What the session has answered, with why if it refuses. */
static s64 answer(struct observer *o)
{
	if (o->slot->ret < 0)
		o->refusal = o->slot->refusal;
	return o->slot->ret;
}

/* The request is in the slot. */
static s64 call(struct observer *o, u32 op)
{
	const struct timespec patience = {0, 100000000};
	struct wire_kick kick = {.what = WIRE_KICK_CALL};
	struct wire_slot *sl = o->slot;

	sl->tid = gettid();
	sl->meter = WIRE_NO_METER;
	sl->cpu = (u32)sched_getcpu();
	sl->cpu_time = cpu_time();
	sl->seq++;
	sl->op = op;
	__atomic_store_n(&sl->word, WIRE_WAITED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sl->awake, __ATOMIC_RELAXED) && send_kick(o->sock, &kick, -1))
		return refuse(o, -ENODEV, SESSION_GONE);
	while (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) != WIRE_DONE) {
		struct pollfd p = {.fd = o->sock};

		syscall(SYS_futex, &sl->word, FUTEX_WAIT, WIRE_WAITED, &patience, NULL, 0);
		if (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) != WIRE_DONE &&
		    poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
			return refuse(o, -ENODEV, SESSION_GONE);
	}
	return answer(o);
}

int observer_event(struct observer *o, struct pe_attr *attr, int pid, int cpu, int leader,
		   u64 flags)
{
	struct wire_slot *sl = o->slot;
	struct wire_fd_message message;
	int i, err;
	s64 ret;

	for (i = 0; i < HANDLES && o->handles[i]; i++)
		;
	if (i == HANDLES)
		return refuse(o, -EMFILE, SESSION_HANDLES, .number = {HANDLES});
	sl->args.open = (struct wire_open_args){
		.pid = pid,
		.cpu = cpu,
		.group = leader < 0 ? WIRE_NO_EVENT : o->handles[leader],
		.flags = flags,
		.attr_size = attr->size,
	};
	sl->len = (u32)min_u64(attr->size, sizeof(*attr));
	memcpy(sl->data, attr, sl->len);
	ret = call(o, WIRE_OP_OPEN);
	if (ret < 0) {
		if (ret == -E2BIG && sl->result.open_refusal.attr_size)
			attr->size = sl->result.open_refusal.attr_size;
		return (int)ret;
	}
	err = sl->reply_flags & WIRE_REPLY_FD
		      ? receive_fd(o->sock, &message, sizeof(message), &o->fds[i])
		      : -EPROTO;
	if (!err && o->fds[i] < 0)
		err = -EMFILE;
	if (err)
		return refuse(o, err, SESSION_ERRNO, .name = {strerror(-err)});
	o->handles[i] = sl->result.event.handle;
	return i;
}

static bool known(const struct observer *o, int handle)
{
	return handle >= 0 && handle < HANDLES && o->handles[handle];
}

s64 observer_read(struct observer *o, int handle, void *buf, size_t len)
{
	s64 n;

	if (!known(o, handle))
		return refuse(o, -EBADF, NO_EVENT);
	o->slot->args.read = (struct wire_read_args){.handle = o->handles[handle], .len = len};
	o->slot->len = 0;
	n = call(o, WIRE_OP_READ);
	if (n > 0 && (size_t)n <= len && (u64)n <= WIRE_DATA)
		memcpy(buf, o->slot->data, (size_t)n);
	return n;
}

int observer_ioctl(struct observer *o, int handle, u64 cmd, u64 arg)
{
	struct wire_slot *sl = o->slot;
	size_t reads = ioctl_reads((u32)cmd);
	s64 ret;

	if (!known(o, handle))
		return refuse(o, -EBADF, NO_EVENT);
	sl->args.ioctl = (struct wire_ioctl_args){
		.handle = o->handles[handle],
		.arg = arg,
		.output = cmd == PERF_EVENT_IOC_SET_OUTPUT && known(o, (int)arg) ? o->handles[arg]
										 : 0,
		.cmd = (u32)cmd,
	};
	sl->len = reads <= sizeof(u64) ? (u32)reads : 0;
	if (sl->len)
		memcpy(sl->data, (const void *)arg, sl->len);
	ret = call(o, WIRE_OP_IOCTL);
	if (ret >= 0 && sl->reply_len && sl->reply_len <= sizeof(u64) &&
	    sl->result.ioctl.offset <= sizeof(u64))
		memcpy((u8 *)arg + sl->result.ioctl.offset, sl->data, sl->reply_len);
	return (int)ret;
}

int observer_release(struct observer *o, int handle)
{
	if (!known(o, handle))
		return refuse(o, -EBADF, NO_EVENT);
	close(o->fds[handle]);
	o->handles[handle] = 0;
	return 0;
}

const struct refusal *observer_refusal(const struct observer *o)
{
	return &o->refusal;
}

const char *observer_root(struct observer *o)
{
	struct wire_slot *sl = o->slot;

	if (!o->root[0]) {
		sl->len = 0;
		if (call(o, WIRE_OP_VIEW) || sl->reply_len > sizeof(o->root))
			return NULL;
		memcpy(o->root, sl->data, sl->reply_len);
		o->root[sizeof(o->root) - 1] = 0;
	}
	return o->root;
}
