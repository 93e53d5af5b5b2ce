/* What a perf descriptor looks like to who examines it: not like the pipe that it is. */
#include "rt/perf/perf.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/syscall.h"

/*
 * fstat and its relatives: all anonymous files look alike, so the kernel fills the guest's buffer
 * for an eventfd.
 */
bool perf_fstat(struct thread *t, u64 nr, long *ret)
{
	int fd = (int)guest_arg(t, 0);
	u64 flags = nr == __NR_fstat || nr == __NR_fstatfs ? AT_EMPTY_PATH
		    : nr == __NR_statx                     ? guest_arg(t, 2)
							   : guest_arg(t, 3);
	char first = 0;
	long anon;

	if (!(flags & AT_EMPTY_PATH) || !perf_fd_find(t, fd))
		return false;
	if (nr != __NR_fstat && nr != __NR_fstatfs && guest_arg(t, 1) &&
	    (guest_read(&first, guest_arg(t, 1), 1) || first))
		return false;
	anon = raw_call2(__NR_eventfd2, 0, O_CLOEXEC);
	if (sys_failed(anon))
		return false;
	*ret = call_kernel_with(t, nr, (u64)anon, guest_arg(t, 1), guest_arg(t, 2), guest_arg(t, 3),
				guest_arg(t, 4), 0);
	sys_close((int)anon);
	return true;
}

long perf_fcntl(struct thread *t, struct perf_fd *pf)
{
	int fd = (int)guest_arg(t, 0), cmd = (int)guest_arg(t, 1);
	long ret;

	(void)pf;
	if (cmd == F_GETPIPE_SZ || cmd == F_SETPIPE_SZ)
		return -EBADF; /* it is no pipe */
	ret = syscall_plain(t, __NR_fcntl);
	if (sys_failed(ret) || ret == CALL_REDO)
		return ret;
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC: perf_fd_copied(t, fd, (int)ret); break;
	case F_GETFL: ret = (ret & ~(long)O_ACCMODE) | O_RDWR; break;
	}
	return ret;
}
