/*
 * Which of a guest's system calls concern perf descriptors. As long as a process has none, none but
 * perf_event_open, prctl and those that receive descriptors is looked at.
 */
#include "rt/perf.h"

#include "rt/guest-mem.h"
#include "rt/perf-priv.h"
#include "rt/syscall.h"

#include <linux/fcntl.h>

#define SOL_SOCKET 1
#define SCM_RIGHTS 1

static bool failed(long ret)
{
	return sys_failed(ret) || ret == CALL_REDO || ret == CALL_SET;
}

/* dup, dup2, dup3, fcntl(F_DUPFD): the cache follows the copy. */
static long copied(struct thread *t, u64 nr, int from)
{
	long ret = syscall_plain(t, nr);

	if (!failed(ret))
		perf_fd_copied(t, from, (int)ret);
	return ret;
}

static long closed(struct thread *t, u64 nr)
{
	int fd = (int)guest_arg(t, 0);
	long ret;

	/* Before: once it is closed another thread may be given the number. */
	if (perf_fd_slot(t->proc->perf, fd, false))
		perf_fd_closed(t, fd);
	ret = syscall_plain(t, nr);
	return ret;
}

static long closed_range(struct thread *t, u64 nr)
{
	u32 first = (u32)guest_arg(t, 0), last = (u32)guest_arg(t, 1);
	long ret = syscall_plain(t, nr);

	if (!failed(ret) && !(guest_arg(t, 2) & 4 /* CLOSE_RANGE_CLOEXEC */))
		perf_fd_closed_range(t, first, last);
	return ret;
}

/* What recvmsg(2) may have brought in the msghdr at @addr. */
static void received(struct thread *t, u64 addr)
{
	struct {
		u64 name;
		u32 name_len, pad;
		u64 iov, iov_len, control, control_len;
	} m;
	struct {
		u64 len;
		s32 level, type;
	} c;

	if (guest_read(&m, addr, sizeof(m)))
		return;
	for (u64 at = 0; at + sizeof(c) <= m.control_len; at += ALIGN_UP(c.len, 8)) {
		if (guest_read(&c, m.control + at, sizeof(c)) || c.len < sizeof(c) ||
		    c.len > m.control_len - at)
			return;
		if (c.level != SOL_SOCKET || c.type != SCM_RIGHTS)
			continue;
		for (u64 i = sizeof(c); i + 4 <= c.len; i += 4) {
			s32 fd;

			if (!guest_read(&fd, m.control + at + i, sizeof(fd)))
				perf_fd_received(t, fd);
		}
	}
}

static long receive(struct thread *t, u64 nr)
{
	long ret = syscall_plain(t, nr);

	if (failed(ret))
		return ret;
	if (nr == __NR_recvmsg)
		received(t, guest_arg(t, 1));
	else if (nr == __NR_recvmmsg)
		for (long i = 0; i < ret; i++)
			received(t, guest_arg(t, 1) + (u64)i * 64);
	else
		perf_fd_received(t, (int)ret); /* pidfd_getfd */
	return ret;
}

/* Calls on descriptors, while the process has a perf descriptor at all. */
static bool on_fd(struct thread *t, u64 nr, long *ret)
{
	int fd = (int)guest_arg(t, 0);
	struct perf_fd *pf;

	switch (nr) {
	case __NR_close: *ret = closed(t, nr); return true;
	case __NR_close_range: *ret = closed_range(t, nr); return true;
	case __NR_dup:
	case __NR_dup2:
	case __NR_dup3: *ret = copied(t, nr, fd); return true;
	case __NR_poll:
	case __NR_ppoll: return perf_poll(t, nr, ret);
	case __NR_select:
	case __NR_pselect6: return perf_select(t, nr, ret);
	case __NR_fstat:
	case __NR_newfstatat:
	case __NR_statx: return perf_fstat(t, nr, ret);
	case __NR_munmap: perf_unmapped(t, guest_arg(t, 0), guest_arg(t, 1)); return false;
	case __NR_mmap:
		fd = (int)guest_arg(t, 4);
		if (guest_arg(t, 3) & MAP_FIXED)
			perf_unmapped(t, guest_arg(t, 0), guest_arg(t, 1));
		if (guest_arg(t, 3) & MAP_ANONYMOUS)
			return false;
		pf = perf_fd_find(t, fd);
		return pf && perf_mmap(t, pf, ret);
	default: break;
	}

	/* The rest is only for perf descriptors. */
	switch (nr) {
	case __NR_read:
	case __NR_readv:
	case __NR_ioctl:
	case __NR_fcntl:
	case __NR_write:
	case __NR_writev: break;
	default: return false;
	}
	pf = perf_fd_find(t, fd);
	if (!pf)
		return false;
	switch (nr) {
	case __NR_read:
	case __NR_readv: return perf_read(t, nr, pf, ret);
	case __NR_ioctl: return perf_ioctl(t, pf, ret);
	case __NR_fcntl: *ret = perf_fcntl(t, pf); return true;
	default:
		*ret = -EINVAL; /* no way to write to it [CALL-15] */
		return true;
	}
}

bool perf_syscall(struct thread *t, u64 nr, long *ret)
{
	struct perf *p = t->proc->perf;

	switch (nr) {
	case __NR_perf_event_open: *ret = perf_open(t); return true;
	case __NR_prctl:
		if ((u32)guest_arg(t, 0) != 31 && (u32)guest_arg(t, 0) != 32)
			return false;
		*ret = perf_prctl(t);
		return true;
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_pidfd_getfd:
		if (!p->view->any_event)
			return false;
		*ret = receive(t, nr);
		return true;
	default: return p->nr_fds && on_fd(t, nr, ret);
	}
}
