/* What a perf descriptor looks like to who examines it: not like the pipe that it is. */
#include "rt/perf/perf-guest.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"

/*
 * fstat and its relatives: all anonymous files look alike, so the kernel fills the guest's buffer
 * for an eventfd.
 */
bool perf_on_stat(struct thread *t, u64 nr, long *ret)
{
	int fd = (int)guest_arg(t, 0);
	const struct syscall_row *row = syscall_row(nr);
	bool by_path = row->steps & SYSCALL_PATH;
	char first = 0;
	long anon;

	if ((by_path && !(guest_arg(t, row->atflags) & AT_EMPTY_PATH)) || !perf_fd_find(t, fd))
		return false;
	if (by_path && guest_arg(t, row->path) &&
	    (guest_read(&first, guest_arg(t, row->path), 1) || first))
		return false;
	anon = raw_call2(__NR_eventfd2, 0, O_CLOEXEC);
	if (sys_failed(anon))
		return false;
	*ret = call_kernel_with(t, nr, (u64)anon, guest_arg(t, 1), guest_arg(t, 2), guest_arg(t, 3),
				guest_arg(t, 4), 0);
	sys_close((int)anon);
	return true;
}

bool perf_async(struct thread *t, const struct perf_fd *pf, u32 set)
{
	struct wire_slot *sl = wire_begin(t);
	long ret = 0;

	if (sl) {
		sl->args.async = (struct wire_async_args){.handle = pf->handle, .set = set};
		ret = wire_call(t, sl, WIRE_OP_ASYNC);
		wire_end(t, sl);
	}
	return ret > 0;
}

/*
 * The pipe itself never has O_ASYNC: the kernel signals for a pipe whenever one of its ends is
 * opened or closed, and an event that only counts never does [OVF-01].
 */
static long set_flags(struct thread *t, u64 nr, const struct perf_fd *pf)
{
	u64 flags = guest_arg(t, 2);
	long ret;

	/* For a pipe it means packets. */
	if (flags & O_DIRECT)
		return -EINVAL;
	ret = call_kernel_with(t, nr, guest_arg(t, 0), F_SETFL, flags & ~(u64)FASYNC, 0, 0, 0);
	if (!ret)
		perf_async(t, pf, flags & FASYNC ? WIRE_ASYNC_ON : WIRE_ASYNC_OFF);
	return ret;
}

bool perf_on_fcntl(struct thread *t, u64 nr, long *ret)
{
	int fd = (int)guest_arg(t, 0), cmd = (int)guest_arg(t, 1);
	struct perf_fd *pf = perf_fd_find(t, fd), entry;

	if (!pf)
		return false;
	/* Another thread may close it meanwhile. */
	entry = *pf;
	switch (cmd) {
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ: *ret = -EBADF; return true; /* it is no pipe */
	case F_ADD_SEALS: *ret = -EINVAL; return true;
	case F_SETFL: *ret = set_flags(t, nr, &entry); return true;
	}
	*ret = syscall_plain(t, nr);
	if (sys_failed(*ret) || *ret == CALL_REDO)
		return true;
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC: perf_fd_copied(t, fd, (int)*ret); break;
	case F_GETFL:
		*ret = (*ret & ~(long)O_ACCMODE) | O_RDWR;
		if (perf_async(t, &entry, WIRE_ASYNC_ASK))
			*ret |= FASYNC;
		break;
	}
	return true;
}
