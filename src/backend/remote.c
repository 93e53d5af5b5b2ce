#include "backend/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/wire-reply.h"
#include "session/sealed-memory.h"
#include "session/wire/fd-message.h"

#define HELLO_SECONDS 10

/* What is mapped of an event. */
struct remote_map {
	void *base;
	u64 handle;
	struct remote_map *next;
};

struct remote_client {
	int sock;
	struct wire_proc *page; /* NULL: not introduced */
	struct wire_slot *slot; /* in the page; one is enough for one call at a time */
	u32 seq;                /* of the latest request */
	/* To that: what is believed of the slot, but for the data. */
	struct wire_reply reply;
	char root[WIRE_ROOT];
	u64 *handles; /* the session's, by descriptor; 0: none of ours. Owned */
	u32 nr_handles;
	struct remote_map *maps; /* owned */
	struct refusal refusal;  /* of the last call that failed */
};

#define refuse(r, err, id, ...) \
	refusal_set(&(r)->refusal, err, CAUSE_##id, &(const struct refusal_args){__VA_ARGS__})

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

/* Who does not answer a HELLO never will: it takes milliseconds. */
static void be_patient(int sock)
{
	const struct timeval patience = {.tv_sec = HELLO_SECONDS};

	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

/* The memory that came with the answer to HELLO, mapped; what it says of itself must be ours. */
static int map_slots(struct remote_client *r, int fd)
{
	struct wire_proc *page;

	if (!sealed_memory_is(fd, WIRE_SIZE))
		return -EPROTO;
	page = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	r->page = page;
	r->slot = (struct wire_slot *)((u8 *)page + WIRE_SLOT_OFF(0));
	return page->magic == WIRE_MAGIC && page->version == WIRE_VERSION &&
			       page->slots == WIRE_SLOTS
		       ? 0
		       : -EPROTO;
}

static int introduce(struct remote_client *r, int bootstrap)
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
	r->sock = pair[0];
	be_patient(r->sock);
	err = send_kick(bootstrap, &hello, pair[1]);
	close(pair[1]);
	if (!err)
		err = receive_fd(r->sock, &message, sizeof(message), &fd);
	if (err)
		return err;
	if (message.slot != WIRE_FD_MESSAGE_HELLO || message.seq || fd < 0)
		err = message.seq && message.seq < 4096 ? -(int)message.seq : -EPROTO;
	if (!err)
		err = map_slots(r, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

int ap__remote_open(int bootstrap, struct remote_client **out)
{
	struct remote_client *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->sock = -1;
	err = introduce(r, bootstrap);
	if (err)
		ap__remote_close(r);
	else
		*out = r;
	return err;
}

void ap__remote_close(struct remote_client *r)
{
	if (!r)
		return;
	for (u32 fd = 0; fd < r->nr_handles; fd++)
		if (r->handles[fd])
			close((int)fd);
	free(r->handles);
	while (r->maps) {
		struct remote_map *map = r->maps;

		r->maps = map->next;
		free(map);
	}
	if (r->page)
		munmap(r->page, WIRE_SIZE);
	if (r->sock >= 0)
		close(r->sock);
	free(r);
}

static s64 gone(struct remote_client *r)
{
	r->reply = (struct wire_reply){.ret = -ENODEV};
	return refuse(r, -ENODEV, SESSION_GONE);
}

/*
 * The request is in the slot; @asked as for wire_reply_take(). The result, which is r->reply's with
 * all that it says.
 */
static s64 call_for(struct remote_client *r, u32 op, u64 asked)
{
	const struct timespec patience = {0, 100000000};
	struct wire_kick kick = {.what = WIRE_KICK_CALL};
	struct wire_slot *sl = r->slot;

	sl->tid = gettid();
	sl->meter = WIRE_NO_METER;
	sl->cpu = (u32)sched_getcpu();
	sl->cpu_time = cpu_time();
	sl->seq = ++r->seq;
	sl->op = op;
	__atomic_store_n(&sl->word, WIRE_WAITED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sl->awake, __ATOMIC_RELAXED) && send_kick(r->sock, &kick, -1))
		return gone(r);
	while (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) != WIRE_DONE) {
		struct pollfd p = {.fd = r->sock};

		syscall(SYS_futex, &sl->word, FUTEX_WAIT, WIRE_WAITED, &patience, NULL, 0);
		if (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) != WIRE_DONE &&
		    poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
			return gone(r);
	}
	if (!wire_reply_take(&r->reply, sl, op, asked))
		return refuse(r, -EPROTO, SESSION_ERRNO, .name = {strerror(EPROTO)});
	if (r->reply.ret < 0) {
		r->refusal = sl->refusal;
		/* Any bytes make a sentence; the errno is what the caller gets. */
		r->refusal.err = (s32)r->reply.ret;
	}
	return r->reply.ret;
}

static s64 call(struct remote_client *r, u32 op)
{
	return call_for(r, op, 0);
}

/* The descriptor that belongs to the reply, or -errno. */
static int take_fd(struct remote_client *r)
{
	struct wire_fd_message message;
	int fd, err = receive_fd(r->sock, &message, sizeof(message), &fd);

	if (err)
		return err;
	if (fd < 0)
		return -EMFILE;
	if (!message.slot && message.seq == r->seq)
		return fd;
	close(fd);
	return -EPROTO;
}

/* The session's handle of the event behind @fd; 0: there is none. */
static u64 handle_of(const struct remote_client *r, int fd)
{
	return fd >= 0 && (u32)fd < r->nr_handles ? r->handles[fd] : 0;
}

static int note_handle(struct remote_client *r, int fd, u64 handle)
{
	u32 more = (u32)fd * 2 + 16;
	u64 *grown;

	if ((u32)fd >= r->nr_handles) {
		grown = reallocarray(r->handles, more, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + r->nr_handles, 0, (more - r->nr_handles) * sizeof(*grown));
		r->handles = grown;
		r->nr_handles = more;
	}
	r->handles[fd] = handle;
	return 0;
}

/* Of the bytes of @attr beyond those that are sent: is one of them not 0? */
static bool has_tail(const struct pe_attr *attr)
{
	const u8 *bytes = (const u8 *)attr;

	for (u32 i = sizeof(*attr); i < attr->size; i++)
		if (bytes[i])
			return true;
	return false;
}

/* Of other PMUs config1 is a number. */
static bool is_uprobe(const struct pe_attr *attr)
{
	char text[16] = "";
	int fd;

	if (attr->type < PERF_TYPE_MAX || attr->size < PE_ATTR_SIZE_VER1 || !attr->uprobe_path)
		return false;
	fd = open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtoul(text, NULL, 10) == attr->type;
}

/* Behind the attr: what it points to. */
static void put_path(struct wire_slot *sl, const char *path)
{
	size_t len = strnlen(path, PATH_MAX);

	sl->args.open.path = sl->len;
	memcpy(sl->data + sl->len, path, len);
	sl->data[sl->len + len] = '\0';
	sl->len += (u32)len + 1;
}

int ap__remote_event(struct remote_client *r, struct pe_attr *attr, int pid, int cpu, int leader,
		     u64 flags)
{
	const struct wire_kick carries = {.what = WIRE_KICK_FD};
	struct wire_slot *sl = r->slot;
	struct stat st;
	int fd, err = 0;
	s64 ret;

	if (flags & PERF_FLAG_PID_CGROUP && send_kick(r->sock, &carries, pid))
		return refuse(r, -ENODEV, SESSION_GONE);
	sl->args.open = (struct wire_open_args){
		.pid = pid,
		.cpu = cpu,
		.group = leader < 0 ? WIRE_NO_EVENT : handle_of(r, leader),
		.flags = flags,
		.attr_size = attr->size,
		.attr_flags = has_tail(attr) ? WIRE_ATTR_TAIL : 0,
	};
	sl->len = (u32)min_u64(attr->size, sizeof(*attr));
	memcpy(sl->data, attr, sl->len);
	if (is_uprobe(attr))
		put_path(sl, (const char *)(uintptr_t)attr->uprobe_path);
	ret = call(r, WIRE_OP_OPEN);
	if (ret < 0) {
		if (ret == -E2BIG && r->reply.result.open_refusal.attr_size)
			attr->size = r->reply.result.open_refusal.attr_size;
		return (int)ret;
	}
	fd = take_fd(r);
	/* What we poll and read is a pipe: of anything else it could go on for ever. */
	if (fd < 0)
		err = fd;
	else if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		err = -EPROTO;
	if (!err)
		err = note_handle(r, fd, r->reply.result.event.handle);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return refuse(r, err, SESSION_ERRNO, .name = {strerror(-err)});
}

s64 ap__remote_read(struct remote_client *r, int fd, void *buf, size_t len)
{
	u64 handle = handle_of(r, fd);
	s64 n;

	if (!handle)
		return refuse(r, -EBADF, NO_EVENT);
	r->slot->args.read = (struct wire_read_args){.handle = handle, .len = len};
	r->slot->len = 0;
	n = call_for(r, WIRE_OP_READ, len);
	if (n > 0)
		memcpy(buf, r->slot->data, (size_t)n);
	return n;
}

/*
 * How many bytes the argument of an ioctl points to, for the session to read; 0: it is no address.
 */
static size_t ioctl_takes(u64 cmd, u64 arg)
{
	switch (cmd) {
	case PERF_EVENT_IOC_SET_FILTER: return strnlen((const char *)arg, WIRE_DATA - 1) + 1;
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
		return (size_t)min_u64(((const struct pe_attr *)arg)->size, WIRE_DATA);
	case PERF_EVENT_IOC_PERIOD:
	case PERF_EVENT_IOC_QUERY_BPF: return sizeof(u64);
	default: return 0;
	}
}

int ap__remote_ioctl(struct remote_client *r, int fd, u64 cmd, u64 arg)
{
	struct wire_slot *sl = r->slot;
	u64 handle = handle_of(r, fd);
	s64 ret;

	if (!handle)
		return refuse(r, -EBADF, NO_EVENT);
	sl->args.ioctl = (struct wire_ioctl_args){
		.handle = handle,
		.arg = arg,
		.output = WIRE_NO_EVENT,
		.cmd = (u32)cmd,
	};
	if (cmd == PERF_EVENT_IOC_SET_OUTPUT && (int)arg >= 0)
		sl->args.ioctl.output = handle_of(r, (int)arg) ? handle_of(r, (int)arg)
							       : WIRE_BAD_EVENT;
	sl->len = (u32)ioctl_takes(cmd, arg);
	if (sl->len)
		memcpy(sl->data, (const void *)arg, sl->len);
	ret = call_for(r, WIRE_OP_IOCTL, cmd);
	if (ret >= 0 && r->reply.len)
		memcpy((u8 *)arg + r->reply.result.ioctl.offset, sl->data, r->reply.len);
	return (int)ret;
}

static void forget_map(struct remote_client *r, u64 handle)
{
	r->slot->args.event.handle = handle;
	r->slot->len = 0;
	(void)call(r, WIRE_OP_MUNMAP);
}

/* From now on the descriptor reports: a byte for each wakeup, and the end [OVF-02, OVF-03]. */
static void want_reports(struct remote_client *r, int fd, u64 handle)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	r->slot->args.event.handle = handle;
	r->slot->len = 0;
	(void)call(r, WIRE_OP_HANGUP);
}

static int map_memory(int memory, size_t len, int prot, void **out)
{
	void *base;

	if (!sealed_memory_is(memory, len))
		return -EPROTO;
	base = mmap(NULL, len, prot, MAP_SHARED, memory, 0);
	if (base == MAP_FAILED)
		return -errno;
	/* As a kernel's [RING-14]. */
	madvise(base, len, MADV_DONTFORK);
	madvise(base, len, MADV_DONTDUMP);
	*out = base;
	return 0;
}

int ap__remote_mmap(struct remote_client *r, int fd, size_t len, u64 offset, bool writable,
		    void **out)
{
	struct remote_map *map = calloc(1, sizeof(*map));
	int prot = PROT_READ | (writable ? PROT_WRITE : 0), memory, err;
	u64 handle = handle_of(r, fd);
	s64 ret;

	if (!handle || !map) {
		free(map);
		return handle ? refuse(r, -ENOMEM, NO_MEMORY, .name = {"a mapping"})
			      : refuse(r, -EBADF, NO_EVENT);
	}
	r->slot->args.mmap = (struct wire_mmap_args){
		.handle = handle,
		.len = len,
		.prot = (u64)prot,
		.flags = MAP_SHARED,
		.offset = offset,
		.inherited = 1,
	};
	r->slot->len = 0;
	ret = call(r, WIRE_OP_MMAP);
	if (ret < 0) {
		free(map);
		return (int)ret;
	}
	memory = take_fd(r);
	err = memory < 0 ? memory : map_memory(memory, len, prot, out);
	if (memory >= 0)
		close(memory);
	if (err) {
		free(map);
		forget_map(r, handle);
		return refuse(r, err, SESSION_ERRNO, .name = {strerror(-err)});
	}
	*map = (struct remote_map){.base = *out, .handle = handle, .next = r->maps};
	r->maps = map;
	want_reports(r, fd, handle);
	return 0;
}

int ap__remote_munmap(struct remote_client *r, void *base, size_t len)
{
	for (struct remote_map **at = &r->maps; *at; at = &(*at)->next) {
		struct remote_map *map = *at;

		if (map->base != base)
			continue;
		*at = map->next;
		forget_map(r, map->handle);
		free(map);
		break;
	}
	return munmap(base, len) ? -errno : 0;
}

s64 ap__remote_lossless(struct remote_client *r, int fd)
{
	u64 handle = handle_of(r, fd);

	if (!handle)
		return refuse(r, -EBADF, NO_EVENT);
	r->slot->args.event.handle = handle;
	r->slot->len = 0;
	return call(r, WIRE_OP_LOSSLESS);
}

void ap__remote_heard(const struct remote_client *r, int fd)
{
	char bytes[4096];

	/* Without a mapping nothing is written there, and to read would wait. */
	if (handle_of(r, fd) && fcntl(fd, F_GETFL) & O_NONBLOCK)
		while (read(fd, bytes, sizeof(bytes)) == sizeof(bytes))
			;
}

int ap__remote_event_close(struct remote_client *r, int fd)
{
	if (!handle_of(r, fd))
		return refuse(r, -EBADF, NO_EVENT);
	r->handles[fd] = 0;
	return close(fd) ? -errno : 0;
}

int ap__remote_adopt(struct remote_client *r, pid_t pid)
{
	r->slot->args.adopt = (struct wire_adopt_args){.pid = pid};
	r->slot->len = 0;
	return (int)call(r, WIRE_OP_ADOPT);
}

void ap__remote_sync(struct remote_client *r)
{
	r->slot->len = 0;
	(void)call(r, WIRE_OP_PING);
}

const struct refusal *ap__remote_refusal(const struct remote_client *r)
{
	return &r->refusal;
}

const char *ap__remote_root(struct remote_client *r)
{
	if (!r->root[0]) {
		r->slot->len = 0;
		if (call(r, WIRE_OP_VIEW))
			return NULL;
		memcpy(r->root, r->slot->data, r->reply.len);
		r->root[r->reply.len - 1] = '\0';
	}
	return r->root[0] == '/' ? r->root : NULL;
}
