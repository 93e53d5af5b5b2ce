/* perf_event_open(2), ioctl(2), read(2), mmap(2) and poll(2) on perf descriptors, in the guest. */
#include "rt/perf/perf-guest.h"

#include "abi/perf.h"
#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

#include <asm/ioctls.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/memfd.h>
#include <linux/perf_event.h>
#include <linux/poll.h>
#include <linux/prctl.h>

#define ATTR_SENT    256u        /* more than any version of the attr that the session knows */
#define MAX_RW_COUNT 0x7ffff000l /* the kernel's: what one call transfers at most */

/*
 * The attr as far as anybody can know it. Beyond that it matters only whether there is a byte that
 * is not zero, and whether all of it can be read [SIZE-10, SIZE-11, SIZE-14].
 */
static void put_attr(struct wire_slot *sl, u64 addr)
{
	u8 chunk[256];
	u32 size = 0;

	sl->args.open.attr_flags = 0;
	if (guest_read(&size, addr + 4, sizeof(size))) {
		sl->args.open.attr_flags = WIRE_ATTR_FAULT;
		/* The first word alone may be there: it does not help. */
		sl->len = 0;
		return;
	}
	sl->args.open.attr_size = size;
	sl->len = size == 0 ? 64 : size < 8 ? 8 : size > ATTR_SENT ? ATTR_SENT : size;
	if (guest_read(sl->data, addr, sl->len)) {
		u32 have = 8;

		/* As many as can be read: the session's answer may depend on the size alone. */
		while (have < sl->len && !guest_read(sl->data + have, addr + have, 1))
			have++;
		if (guest_read(sl->data, addr, 8))
			have = 0;
		sl->len = have;
		sl->args.open.attr_flags = WIRE_ATTR_FAULT;
		return;
	}
	for (u32 at = ATTR_SENT; at < size && size <= 4096; at += sizeof(chunk)) {
		u32 n = size - at < sizeof(chunk) ? size - at : sizeof(chunk);

		if (guest_read(chunk, addr + at, n)) {
			sl->args.open.attr_flags |= WIRE_ATTR_FAULT;
			return;
		}
		for (u32 i = 0; i < n; i++)
			if (chunk[i])
				sl->args.open.attr_flags |= WIRE_ATTR_TAIL;
	}
}

/* A PMU of the machine may have a path for config1: of those behind the attr, with its NUL. */
static void put_path(struct wire_slot *sl)
{
	const struct pe_attr *attr = (const struct pe_attr *)sl->data;
	long n;

	sl->args.open.path = 0;
	if (sl->args.open.attr_flags & WIRE_ATTR_FAULT || sl->len < PE_ATTR_SIZE_VER1 ||
	    attr->type < PERF_TYPE_MAX || !attr->config1)
		return;
	n = guest_string((char *)sl->data + sl->len, attr->config1, PATH_MAX);
	/* One that is too long is told as far as that can be seen. */
	if (n == -ENAMETOOLONG) {
		n = PATH_MAX;
		sl->data[sl->len + (u32)n] = '\0';
	}
	if (n < 0)
		return;
	sl->args.open.path = sl->len;
	sl->len += (u32)n + 1;
}

/*
 * Is there room for one more descriptor? The refusal for its lack comes before many others
 * [CALL-16].
 */
static bool fd_left(void)
{
	long fd = sys_fcntl(2, F_DUPFD_CLOEXEC, 0);

	if (fd == -EBADF) {
		fd = sys_memfd_create("", MFD_CLOEXEC);
	}
	if (sys_failed(fd))
		return fd != -EMFILE;
	sys_close((int)fd);
	return true;
}

/* A descriptor of an event that the kernel counts. */
static bool is_kernels(int fd)
{
	char path[32];

	return fd_path(fd, path, sizeof(path)) > 0 && str_eq(path, "anon_inode:[perf_event]");
}

/* Of tasks that are no guests the kernel counts what it can, and all of the event is its own. */
static long open_in_kernel(struct thread *t)
{
	return syscall_plain(t, __NR_perf_event_open);
}

static long open_event(struct thread *t)
{
	u64 attr = guest_arg(t, 0), flags = guest_arg(t, 4);
	s32 pid = (s32)guest_arg(t, 1), group = (s32)guest_arg(t, 3);
	struct wire_slot *sl;
	struct perf_fd *leader, entry = {.kind = PERF_FD_EVENT};
	long ret;
	int fd;

	leader = group == -1 ? NULL : perf_fd_find(t, group);
	if (!leader && group >= 0 && is_kernels(group))
		return open_in_kernel(t);
	sl = wire_begin(t);
	if (!sl)
		return -ENODEV;
	put_attr(sl, attr);
	put_path(sl);
	sl->args.open.pid = pid;
	sl->args.open.cpu = (s32)guest_arg(t, 2);
	sl->args.open.group = group == -1 ? WIRE_NO_EVENT
			      : leader    ? leader->handle
					  : WIRE_BAD_EVENT;
	sl->args.open.flags = flags;
	if (flags & PERF_FLAG_PID_CGROUP && pid >= 0 && !sys_failed(sys_fcntl(pid, F_GETFD, 0)) &&
	    wire_send_fd(t, sl, pid)) {
		wire_end(t, sl);
		return -ENODEV;
	}
	/* The task may be one that was just made and is about to say who it is. */
	sl->args.open.patient = 1;
	for (u32 tries = 0; (ret = wire_call(t, sl, WIRE_OP_OPEN)) < 0 &&
			    t->perf_reply.result.open_refusal.ask_again && tries < 2000;
	     tries++) {
		const struct __kernel_timespec moment = {0, 500000};

		sl->args.open.patient = tries + 1 < 2000;
		raw_call2(__NR_nanosleep, (long)&moment, 0);
	}
	if (ret < 0) {
		u32 store = t->perf_reply.result.open_refusal.attr_size;
		bool late = t->perf_reply.result.open_refusal.past_fd_check;
		bool ask_kernel = t->perf_reply.result.open_refusal.ask_kernel;

		wire_end(t, sl);
		if (ask_kernel)
			return open_in_kernel(t);
		if (store && guest_write(t, attr + 4, &store, sizeof(store)))
			return ret;
		return late && !fd_left() ? -EMFILE : ret;
	}
	entry.handle = t->perf_reply.result.event.handle;
	entry.snapshot = (u16)t->perf_reply.result.event.snapshot;
	fd = wire_take_fd(t, flags & PERF_FLAG_FD_CLOEXEC);
	wire_end(t, sl);
	if (fd >= 0)
		perf_fd_set(t, fd, &entry);
	return fd;
}

bool perf_on_open(struct thread *t, u64 nr, long *ret)
{
	(void)nr;
	*ret = open_event(t);
	return true;
}

bool perf_on_prctl(struct thread *t, u64 nr, long *ret)
{
	u32 op = (u32)guest_arg(t, 0);
	struct wire_slot *sl;

	(void)nr;
	if (op != PR_TASK_PERF_EVENTS_DISABLE && op != PR_TASK_PERF_EVENTS_ENABLE)
		return false;
	sl = wire_begin(t);
	if (sl) {
		sl->args.prctl.enable = op == PR_TASK_PERF_EVENTS_ENABLE;
		(void)wire_call(t, sl, WIRE_OP_PRCTL);
		wire_end(t, sl);
	}
	*ret = 0;
	return true;
}

bool perf_on_ioctl(struct thread *t, u64 nr, long *ret)
{
	struct perf_fd *pf = perf_fd_find(t, (int)guest_arg(t, 0));
	u32 cmd = (u32)guest_arg(t, 1);
	u64 arg = guest_arg(t, 2);
	struct wire_slot *sl;
	struct perf_fd *other = NULL;

	(void)nr;
	/* Some are the descriptor's own, answered by the kernel for any. */
	if (!pf || cmd == FIONBIO || cmd == FIONCLEX || cmd == FIOCLEX)
		return false;
	if (cmd == FIOASYNC) {
		const struct perf_fd entry = *pf;
		s32 on;

		*ret = guest_read(&on, arg, sizeof(on)) ? -EFAULT : 0;
		if (*ret)
			return true;
		/* An event that samples has it in the pipe, too. */
		return !(perf_async(t, &entry, on ? WIRE_ASYNC_ON : WIRE_ASYNC_OFF) &
			 WIRE_ASYNC_BYTES);
	}
	if (cmd == FIGETBSZ || cmd == FS_IOC_FIEMAP)
		return perf_as_anonymous(t, nr, 0, ret);
	/* All 64 bits: the (unsigned)-1 of a careless caller is a descriptor that is not open. */
	if (cmd == PERF_EVENT_IOC_SET_OUTPUT && arg != ~0ull)
		other = perf_fd_find(t, (s32)arg);
	sl = wire_begin(t);
	if (!sl) {
		*ret = -ENODEV;
		return true;
	}
	sl->args.ioctl.handle = pf->handle;
	sl->args.ioctl.cmd = cmd;
	sl->args.ioctl.arg = arg;
	if (cmd == PERF_EVENT_IOC_SET_OUTPUT)
		sl->args.ioctl.output = arg == ~0ull ? WIRE_NO_EVENT
					: other      ? other->handle
						     : WIRE_BAD_EVENT;
	sl->len = perf_ioctl_read(cmd, arg, sl->data);
	/* A program is the kernel's to know. What is not open is said by the number. */
	*ret = cmd == PERF_EVENT_IOC_SET_BPF && sys_fcntl((int)arg, F_GETFD, 0) >= 0
		       ? wire_send_fd(t, sl, (int)arg)
		       : 0;
	if (!*ret)
		*ret = wire_call(t, sl, WIRE_OP_IOCTL);
	if (*ret != -ENODEV && t->perf_reply.len &&
	    guest_write(t, arg + t->perf_reply.result.ioctl.offset, sl->data, t->perf_reply.len) &&
	    *ret >= 0)
		*ret = -EFAULT;
	wire_end(t, sl);
	return true;
}

/* What the argument of @cmd points to, as far as it can be read. */
u32 perf_ioctl_read(u32 cmd, u64 arg, u8 *data)
{
	u32 want = 0, have = 0, size;
	long n;

	switch (cmd) {
	case PERF_EVENT_IOC_PERIOD: want = 8; break;
	case PERF_EVENT_IOC_QUERY_BPF: want = 4; break;
	case PERF_EVENT_IOC_SET_FILTER:
		n = guest_string((char *)data, arg, 4096);
		return n < 0 ? 0 : (u32)n + 1;
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
		if (guest_read(&size, arg + 4, sizeof(size)))
			return 0;
		want = size == 0 ? 64 : size < 8 ? 8 : size > 4096 ? 4096 : size;
		break;
	default: return 0;
	}
	if (!guest_read(data, arg, want))
		return want;
	while (have < want && !guest_read(data + have, arg + have, 1))
		have++;
	return have;
}

/* One read(2) of @len bytes to @at. */
static long read_once(struct thread *t, const struct perf_fd *pf, u64 at, u64 len)
{
	u64 words[5];
	struct wire_slot *sl;
	long ret;

	if (pf->snapshot) {
		u32 n = perf_snapshot_read(t, pf, words);

		if (n && len < n * 8)
			return -ENOSPC;
		if (n)
			return guest_write(t, at, words, n * 8) ? -EFAULT : (long)n * 8;
	}
	sl = wire_begin(t);
	if (!sl)
		return -ENODEV;
	sl->args.read = (struct wire_read_args){.handle = pf->handle, .len = len};
	ret = wire_call(t, sl, WIRE_OP_READ);
	if (ret > 0 && ((u64)ret > len || guest_write(t, at, sl->data, (u64)ret)))
		ret = -EFAULT;
	wire_end(t, sl);
	return ret;
}

/* As access_ok() has it: the buffer, as long as it is said to be, lies in user space. */
static bool in_user_space(u64 at, u64 len)
{
	return at + len >= at && at + len <= TASK_SIZE;
}

/* What the kernel finds out of all pieces before it reads one: bytes in all, or -errno. */
static long check_vector(u64 at, u32 count)
{
	struct iovec v;
	u64 total = 0;

	for (u32 i = 0; i < count; i++) {
		if (guest_read(&v, at + i * sizeof(v), sizeof(v)))
			return -EFAULT;
		if ((s64)v.iov_len < 0)
			return -EINVAL;
		/* A single piece is cut to what one read can give before it is looked at. */
		if (!in_user_space((u64)v.iov_base,
				   count == 1 ? min_u64(v.iov_len, MAX_RW_COUNT) : v.iov_len))
			return -EFAULT;
		total += v.iov_len;
	}
	return total > (u64)MAX_RW_COUNT ? MAX_RW_COUNT : (long)total;
}

/*
 * The kernel reads once for each piece of a readv, and stops at one that is not filled. Empty ones
 * are passed over, but not the first.
 */
static long read_vector(struct thread *t, const struct perf_fd *pf, u64 at, u32 count)
{
	struct iovec v;
	long done = 0, n;

	if (count > UIO_MAXIOV)
		return -EINVAL;
	n = check_vector(at, count);
	if (n <= 0)
		return n;
	for (u32 i = 0; i < count; i++) {
		if (guest_read(&v, at + i * sizeof(v), sizeof(v)))
			return done ? done : -EFAULT;
		if (i && !v.iov_len)
			continue;
		n = read_once(t, pf, (u64)v.iov_base, v.iov_len);
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((u64)n < v.iov_len)
			break;
	}
	return done;
}

/*
 * preadv2 at "the current position" is readv; any other there is none, which the kernel finds out
 * itself.
 */
bool perf_on_read(struct thread *t, u64 nr, long *ret)
{
	const struct perf_fd *pf = perf_fd_find(t, (int)guest_arg(t, 0));
	struct perf_fd entry;

	if (!pf && nr == __NR_read)
		return perf_read_signals(t, nr, ret);
	if (!pf || (nr == __NR_preadv2 && (s64)guest_arg(t, 3) != -1))
		return false;
	/* Another thread may close it meanwhile. */
	entry = *pf;
	if (nr == __NR_read && !in_user_space(guest_arg(t, 1), guest_arg(t, 2)))
		*ret = -EFAULT;
	else if (nr == __NR_read)
		*ret = read_once(t, &entry, guest_arg(t, 1), guest_arg(t, 2));
	else if (nr == __NR_preadv2 && guest_arg(t, 5) & ~(u64)RWF_HIPRI)
		*ret = -EOPNOTSUPP;
	else
		*ret = read_vector(t, &entry, guest_arg(t, 1), (u32)guest_arg(t, 2));
	return true;
}

/*
 * An event of this thread, without asking: words stored, 0 if its snapshot does not say. The thread
 * is here and does not count, and leaves in its meter how late it is by its clock; who changes the
 * event's state invalidates the snapshot before he looks at either: so no later reading is less.
 */
u32 perf_snapshot_read(struct thread *t, const struct perf_fd *pf, u64 *words)
{
	const u64 times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	const struct wire_proc *page = t->proc->perf->wire.page;
	struct meter *m = dbt_meter(&t->dbt);
	const struct wire_snapshot *from;
	struct wire_snapshot c;
	u64 now = 0, clock, gate;
	u32 seq, n = 0;

	if (!page || pf->snapshot > WIRE_SNAPSHOTS || t->proc->perf->wire.dead)
		return 0;
	from = &page->snapshots[pf->snapshot - 1];
	do {
		if (__atomic_load_n(&from->read_format, __ATOMIC_RELAXED) & times) {
			now = perf_cpu_time();
			__atomic_store_n(&m->cpu_time, now, __ATOMIC_RELAXED);
		}
		/*
		 * After what is counted, and the clock; mate: snapshots_invalidate() in
		 * session/wire/snapshot.c.
		 */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		gate = __atomic_load_n(&m->snapshot_gate, __ATOMIC_ACQUIRE);
		seq = __atomic_load_n(&from->seq, __ATOMIC_ACQUIRE);
		c = *from;
		clock = __atomic_load_n(&m->snapshot_clock, __ATOMIC_RELAXED);
		/* Mates: write_snapshot() and open_gate() in session/wire/snapshot.c. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (gate & 1 || seq & 1 || (c.read_format & times && !now))
			return 0;
	} while (seq != __atomic_load_n(&from->seq, __ATOMIC_RELAXED) ||
		 gate != __atomic_load_n(&m->snapshot_gate, __ATOMIC_RELAXED));
	if (c.kind != WIRE_SNAPSHOT_METER || c.handle != pf->handle || c.meter != t->meter ||
	    c.quantity >= METER_QUANTITIES)
		return 0;
	words[n++] = c.flags & WIRE_SNAPSHOT_RUNNING ? c.base + perf_own_count(t, c.quantity)
						     : c.base;
	if (now < clock)
		now = clock;
	if (c.read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = c.enabled_base + (c.flags & WIRE_SNAPSHOT_ENABLED ? now : 0);
	if (c.read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = c.running_base + (c.flags & WIRE_SNAPSHOT_RUNNING ? now : 0);
	if (c.read_format & PERF_FORMAT_ID)
		words[n++] = c.id;
	if (c.read_format & PE_FORMAT_LOST)
		words[n++] = c.lost;
	return n;
}
