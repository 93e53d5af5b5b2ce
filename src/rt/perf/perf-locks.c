/*
 * Record locks on perf descriptors. A kernel's perf events are files of the one inode that all its
 * anonymous files share, and locks are of an inode: an eventfd of ours is locked in place of the
 * pipe. Closing any descriptor of that inode ends the process's locks, so it stays open meanwhile.
 */
#include "rt/perf/perf-priv.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

#include <linux/fcntl.h>

/* The table of own descriptors is not that of a process in its parent's memory. */
static bool has_own_table(const struct thread *t)
{
	return !t->vfork_child && !t->own_proc;
}

static long locked(const struct thread *t)
{
	return has_own_table(t) ? fd_get(FD_LOCKS) : -1;
}

long perf_anonymous(struct thread *t)
{
	long fd = locked(t);

	return fd >= 0 ? fd : fd_eventfd();
}

void perf_anonymous_end(struct thread *t, long fd)
{
	if (fd != locked(t))
		sys_close((int)fd);
}

bool perf_lock(struct thread *t, u64 nr, long *ret)
{
	u64 mask;
	long fd;

	if (!has_own_table(t))
		return false;
	mask = wire_lock(t);
	fd = perf_anonymous(t);
	if (fd >= 0 && fd != fd_get(FD_LOCKS)) {
		fd = fd_adopt(FD_LOCKS, (int)fd);
		sys_fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	}
	wire_unlock(t, mask);
	*ret = fd < 0 ? -ENOLCK
		      : call_kernel_with(t, nr, (u64)fd, guest_arg(t, 1), guest_arg(t, 2), 0, 0, 0);
	return true;
}

void perf_locks_end(struct thread *t, bool last)
{
	struct flock all = {.l_type = F_UNLCK};
	long fd = locked(t);

	if (fd < 0)
		return;
	if (last)
		fd_drop(FD_LOCKS);
	else
		sys_fcntl((int)fd, F_SETLK, (long)&all);
}
