/*
 * Which of a guest's system calls concern perf descriptors. As long as a process has none, none but
 * perf_event_open, prctl and those that receive descriptors is looked at.
 */
#include "rt/perf/perf.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

#include <linux/fcntl.h>

#define SOL_SOCKET 1
#define SCM_RIGHTS 1

/* statfs(2) */
#define CGROUP_V1 0x27e0ebul
#define CGROUP_V2 0x63677270ul

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
	case __NR_mremap: return perf_mremap(t, ret);
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

	if (perf_sysctl(t, nr, ret))
		return true;
	/* The rest is only for perf descriptors. */
	switch (nr) {
	case __NR_read:
	case __NR_readv:
	case __NR_preadv2:
	case __NR_ioctl:
	case __NR_fcntl:
	case __NR_write:
	case __NR_writev:
	case __NR_pwritev2:
	case __NR_fallocate:
	case __NR_fchmod:
	case __NR_fstatfs:
	case __NR_splice:
	case __NR_vmsplice:
	case __NR_tee:
	case __NR_epoll_ctl: break;
	default: return false;
	}
	if (nr == __NR_epoll_ctl)
		fd = (int)guest_arg(t, 2);
	pf = perf_fd_find(t, fd);
	if (!pf && nr == __NR_splice)
		pf = perf_fd_find(t, (int)guest_arg(t, 2));
	if (!pf)
		return false;
	switch (nr) {
	case __NR_read:
	case __NR_readv: return perf_read(t, nr, pf, ret);
	case __NR_preadv2:
	case __NR_pwritev2:
		/* At "the current position" they are readv and writev; any other there is none. */
		if ((s64)guest_arg(t, 3) != -1)
			return false;
		if (nr == __NR_preadv2 && !guest_arg(t, 5))
			return perf_read(t, __NR_readv, pf, ret);
		*ret = nr == __NR_preadv2 ? -EOPNOTSUPP : -EINVAL;
		return true;
	case __NR_ioctl: return perf_ioctl(t, pf, ret);
	case __NR_fcntl: *ret = perf_fcntl(t, pf); return true;
	case __NR_fallocate: *ret = -ENODEV; return true;
	case __NR_vmsplice: *ret = -EBADF; return true;
	case __NR_fchmod: *ret = -EOPNOTSUPP; return true;
	case __NR_fstatfs: return perf_fstat(t, nr, ret);
	case __NR_epoll_ctl: perf_epoll(t, pf); return false;
	default:
		*ret = -EINVAL; /* no way to write to it [CALL-15] */
		return true;
	}
}

/* Which argument is a path whose last link is followed, as far as we care; -1: none. */
static int path_arg(u64 nr)
{
	switch (nr) {
	case __NR_open:
	case __NR_creat:
	case __NR_stat:
	case __NR_lstat:
	case __NR_access:
	case __NR_readlink:
	case __NR_chdir:
	case __NR_statfs:
	case __NR_truncate: return 0;
	case __NR_openat:
	case __NR_openat2:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_faccessat:
	case __NR_faccessat2:
	case __NR_readlinkat: return 1;
	default: return -1;
	}
}

/* A path that leads to what the session shows, or to a perf descriptor. */
static bool on_path(struct thread *t, u64 nr, u32 n, long *ret)
{
	char path[CONTROL_PATH], out[CONTROL_PATH];
	const char *link;
	u64 a[6];

	/* Nearly every path ends here. */
	if (guest_read(path, guest_arg(t, n), 6) ||
	    !(path[0] == '/' &&
	      (path[1] == 's' || path[1] == 'p' || path[1] == 'd' || path[1] == '/')) ||
	    guest_string(path, guest_arg(t, n), sizeof(path)) < 0)
		return false;
	for (u32 i = 0; i < 6; i++)
		a[i] = guest_arg(t, i);
	if (perf_view_path(t, path, out)) {
		const char *shown = out + str_len(t->proc->perf->view->root);

		if (perf_sysctl_open(t, nr, a, out, shown, ret))
			return true;
		a[n] = (u64)out;
		*ret = call_kernel_with(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		return true;
	}
	link = perf_view_link(t, path);
	if (!link)
		return false;
	switch (nr) {
	case __NR_readlink:
	case __NR_readlinkat: {
		u64 len = min_u64(str_len(link), a[n + 2]);

		if ((s32)a[n + 2] <= 0)
			return false;
		*ret = guest_write(t, a[n + 1], link, len) ? -EFAULT : (long)len;
		return true;
	}
	case __NR_open:
	case __NR_openat:
		/* An anonymous file has no open; O_PATH needs none. */
		if (a[n + 1] & O_PATH)
			return false;
		*ret = -ENXIO;
		return true;
	default: return false;
	}
}

/*
 * A write to a file of a cgroup may move tasks, and somebody counts cgroups: the session looks
 * where tasks are before the writer goes on.
 */
static bool wrote_cgroup(struct thread *t, u64 nr, long *ret)
{
	u64 fs[16]; /* struct statfs: the type comes first */
	struct wire_slot *sl;

	if (sys_failed(raw_call2(__NR_fstatfs, (long)guest_arg(t, 0), (long)fs)) ||
	    (fs[0] != CGROUP_V1 && fs[0] != CGROUP_V2))
		return false;
	*ret = syscall_plain(t, nr);
	sl = failed(*ret) ? NULL : wire_begin(t);
	if (sl) {
		(void)wire_call(t, sl, WIRE_OP_CGROUPS);
		wire_end(t, sl);
	}
	return true;
}

bool perf_syscall(struct thread *t, u64 nr, long *ret)
{
	struct perf *p = t->proc->perf;
	int path = path_arg(nr);

	if (path >= 0 && on_path(t, nr, (u32)path, ret))
		return true;
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
	case __NR_write:
	case __NR_writev:
	case __NR_pwrite64:
		if (p->view->flags & WIRE_VIEW_CGROUPS && wrote_cgroup(t, nr, ret))
			return true;
		return p->nr_fds && on_fd(t, nr, ret);
	default: return p->nr_fds && on_fd(t, nr, ret);
	}
}
