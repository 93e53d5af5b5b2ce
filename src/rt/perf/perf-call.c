/*
 * What perf makes of a guest's system calls: the perf_on_NAME of syscall.tbl that are not with what
 * they are about. A process pays for perf when it has a perf descriptor, or may be about to receive
 * one; the paths that lead to what the session shows are looked at in any.
 */
#include "rt/perf/perf-guest.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "sys/string.h"

#include <asm/statfs.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/magic.h>

static bool failed(long ret)
{
	return sys_failed(ret) || ret == CALL_REDO || ret == CALL_SET;
}

/* With fcntl(F_DUPFD): the cache follows the copy. */
bool perf_on_dup(struct thread *t, u64 nr, long *ret)
{
	*ret = syscall_plain(t, nr);
	if (!failed(*ret))
		perf_fd_copied(t, (int)guest_arg(t, 0), (int)*ret);
	return true;
}

bool perf_on_close(struct thread *t, u64 nr, long *ret)
{
	int fd = (int)guest_arg(t, 0);

	(void)nr, (void)ret;
	/* Before: once it is closed another thread may be given the number. */
	if (perf_fd_slot(t->proc->perf, fd, false))
		perf_fd_closed(t, fd);
	return false;
}

bool perf_on_close_range(struct thread *t, u64 nr, long *ret)
{
	u32 first = (u32)guest_arg(t, 0), last = (u32)guest_arg(t, 1);

	*ret = syscall_plain(t, nr);
	if (!failed(*ret) && !(guest_arg(t, 2) & CLOSE_RANGE_CLOEXEC))
		perf_fd_closed_range(t, first, last);
	return true;
}

static bool received(struct thread *t, int fd)
{
	perf_fd_received(t, fd);
	return false;
}

bool perf_on_receive(struct thread *t, u64 nr, long *ret)
{
	*ret = syscall_plain(t, nr);
	/* After the call: the tree's first event may have been opened while it waited. */
	if (failed(*ret) || !__atomic_load_n(&t->proc->perf->view->any_event, __ATOMIC_ACQUIRE))
		return true;
	if (nr == __NR_recvmsg)
		(void)fd_of_message(t, guest_arg(t, 1), received);
	else if (nr == __NR_recvmmsg)
		for (long i = 0; i < *ret; i++)
			(void)fd_of_message(t, guest_arg(t, 1) + (u64)i * sizeof(struct mmsghdr),
					    received);
	else
		perf_fd_received(t, (int)*ret); /* pidfd_getfd */
	return true;
}

/* What argument @n of the call is: PERF_FD_NONE, PERF_FD_EVENT or PERF_FD_SYSCTL. */
static enum perf_fd_kind kind_of(struct thread *t, u32 n)
{
	const struct perf_fd *pf = perf_fd_known(t, (int)guest_arg(t, n));

	return pf ? (enum perf_fd_kind)pf->kind : PERF_FD_NONE;
}

static bool answer(long *ret, long value)
{
	*ret = value;
	return true;
}

bool perf_on_fallocate(struct thread *t, u64 nr, long *ret)
{
	enum perf_fd_kind kind = kind_of(t, 0);

	if (kind == PERF_FD_SYSCTL)
		return answer(ret, -EOPNOTSUPP);
	return kind == PERF_FD_EVENT && perf_as_anonymous(t, nr, 0, ret);
}

bool perf_on_ftruncate(struct thread *t, u64 nr, long *ret)
{
	(void)nr;
	return kind_of(t, 0) == PERF_FD_SYSCTL && answer(ret, 0);
}

bool perf_on_vmsplice(struct thread *t, u64 nr, long *ret)
{
	(void)nr;
	return kind_of(t, 0) == PERF_FD_EVENT && answer(ret, -EBADF);
}

/* splice, tee, sendfile, copy_file_range: whoever copies goes on with write(2). */
bool perf_on_splice(struct thread *t, u64 nr, long *ret)
{
	u32 to = nr == __NR_tee ? 1 : nr == __NR_sendfile ? 0 : 2;
	enum perf_fd_kind kind = kind_of(t, to);
	bool pipes = nr == __NR_splice || nr == __NR_tee;

	if (kind == PERF_FD_SYSCTL && nr != __NR_tee)
		return answer(ret, -EINVAL);
	if (kind == PERF_FD_EVENT && nr == __NR_sendfile)
		return perf_as_anonymous(t, nr, 0, ret);
	return pipes && (kind == PERF_FD_EVENT || kind_of(t, 0) == PERF_FD_EVENT) &&
	       answer(ret, -EINVAL);
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
	if (perf_overlay_path(t, path, out)) {
		const char *shown = out + str_len(t->proc->perf->root);

		if (!out[0])
			return answer(ret, t->proc->perf->no_root);
		if (perf_sysctl_open(t, nr, a, out, shown, ret))
			return true;
		a[n] = (u64)out;
		*ret = call_kernel_with(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		return true;
	}
	if (nr == __NR_open || nr == __NR_openat) {
		int fd = perf_fd_info(t, path);

		if (fd >= 0 && !(a[n + 1] & (O_ACCMODE | O_PATH | O_DIRECTORY)))
			return answer(ret, perf_fdinfo_open(t, fd, (u32)a[n + 1]));
	}
	link = perf_fd_link(t, path);
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
	case __NR_chmod:
	case __NR_fchmodat:
	case __NR_fchmodat2:
	case __NR_chown:
	case __NR_fchownat:
	case __NR_utime:
	case __NR_utimes:
	case __NR_futimesat:
	case __NR_utimensat:
		/* The link itself is there. */
		if (syscall_row(nr)->steps & SYSCALL_ATFLAGS &&
		    a[syscall_row(nr)->atflags] & AT_SYMLINK_NOFOLLOW)
			return false;
		*ret = -EOPNOTSUPP;
		return true;
	default: return false;
	}
}

static void say(struct thread *t, enum wire_op op)
{
	struct wire_slot *sl = wire_begin(t);

	if (!sl)
		return;
	(void)wire_call(t, sl, op);
	wire_end(t, sl);
}

/* The session looks where @tid is, or with 0 all tasks, before the caller goes on. */
static void moved(struct thread *t, s32 tid)
{
	struct wire_slot *sl = wire_begin(t);

	if (!sl)
		return;
	sl->args.moved.tid = tid;
	(void)wire_call(t, sl, WIRE_OP_MOVED);
	wire_end(t, sl);
}

static bool watched_for(struct thread *t, u32 what)
{
	return __atomic_load_n(&dbt_meter(&t->dbt)->watch, __ATOMIC_RELAXED) & what;
}

/* Programs that it loads change the kernel's code, and the kernel tells of that. */
bool perf_on_bpf(struct thread *t, u64 nr, long *ret)
{
	if (!watched_for(t, WIRE_WATCH_BPF))
		return false;
	say(t, WIRE_OP_BPF);
	*ret = syscall_plain(t, nr);
	say(t, WIRE_OP_BPF);
	return true;
}

static bool in_cgroupfs(int fd)
{
	struct statfs fs;

	return !sys_failed(raw_call2(__NR_fstatfs, fd, (long)&fs)) &&
	       (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

/* What was made is found by its name, as it cannot be had otherwise. */
static void made_directory(struct thread *t, u64 nr)
{
	u32 path = nr == __NR_mkdirat;
	long dir = path ? (long)(int)guest_arg(t, 0) : AT_FDCWD;
	long fd = raw_call4(__NR_openat, dir, (long)guest_arg(t, path),
			    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct wire_slot *sl;

	if (sys_failed(fd))
		return;
	sl = in_cgroupfs((int)fd) ? wire_begin(t) : NULL;
	if (sl) {
		if (!wire_send_fd(t, sl, (int)fd))
			(void)wire_call(t, sl, WIRE_OP_MADE_CGROUP);
		wire_end(t, sl);
	}
	sys_close((int)fd);
}

bool perf_on_mkdir(struct thread *t, u64 nr, long *ret)
{
	if (!watched_for(t, WIRE_WATCH_CGROUPS))
		return false;
	*ret = syscall_plain(t, nr);
	if (!failed(*ret))
		made_directory(t, nr);
	return true;
}

/*
 * A write to a file of a cgroup may move tasks, and somebody counts cgroups: the session looks
 * where tasks are before the writer goes on.
 */
static bool wrote_cgroup(struct thread *t, u64 nr, long *ret)
{
	if (!in_cgroupfs((int)guest_arg(t, 0)))
		return false;
	*ret = syscall_plain(t, nr);
	if (!failed(*ret))
		moved(t, 0);
	return true;
}

/* Somebody counts on a CPU, and the task is there when the call returns, or is not any more. */
bool perf_on_setaffinity(struct thread *t, u64 nr, long *ret)
{
	s32 tid = (s32)guest_arg(t, 0);

	/* Before anybody looks: mate: starts_bound() in session/task/wide.c. */
	meter_bound();
	if (!(t->proc->perf->view->flags & WIRE_VIEW_PLACES))
		return false;
	*ret = syscall_plain(t, nr);
	if (!failed(*ret))
		moved(t, tid ? tid : (s32)t->tid);
	return true;
}

/* There is no way to write to an event [CALL-15]; pwrite is left to the kernel, as pread is. */
bool perf_on_write(struct thread *t, u64 nr, long *ret)
{
	struct perf *p = t->proc->perf;
	const struct perf_fd *pf;

	if (nr != __NR_pwritev2 && p->view->flags & WIRE_VIEW_CGROUPS && wrote_cgroup(t, nr, ret))
		return true;
	if (!p->nr_fds)
		return false;
	pf = perf_fd_known(t, (int)guest_arg(t, 0));
	if (!pf)
		return false;
	if (pf->kind == PERF_FD_SYSCTL) {
		if (nr == __NR_pwritev2)
			return false;
		*ret = perf_sysctl_write(t, nr, pf->handle);
		return true;
	}
	/* pwritev2 at "the current position" is writev. */
	return nr != __NR_pwrite64 && !(nr == __NR_pwritev2 && (s64)guest_arg(t, 3) != -1) &&
	       answer(ret, -EINVAL);
}

bool perf_syscall(struct thread *t, u64 nr, const struct syscall_row *row, long *ret)
{
	if (row->steps & SYSCALL_PATH && on_path(t, nr, row->path, ret))
		return true;
	/* A mapping outlives its descriptor. */
	return row->perf_call &&
	       (row->steps & SYSCALL_PERF_ALWAYS || t->proc->perf->nr_fds ||
		t->proc->perf->nr_maps) &&
	       row->perf_call(t, nr, ret);
}
