#include "rt/syscall/fd.h"

#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/close_range.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/resource.h>

static int own[FD_OWN] = {-1, -1, -1, -1};

int fd_get(enum fd_own which)
{
	return own[which];
}

void fd_drop(enum fd_own which)
{
	if (own[which] >= 0)
		sys_close(own[which]);
	own[which] = -1;
}

bool fd_is_own(s64 fd)
{
	if (fd < 0)
		return false;
	for (u32 i = 0; i < FD_OWN; i++)
		if (own[i] == fd)
			return true;
	return false;
}

/* Newer than the headers that we build with. */
#define __NR_cachestat_ 451
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

/* What calls take as descriptors: the arguments they are in, bit by bit; where a path follows it is DIR. */
#define FIRST  BIT(0)
#define SECOND BIT(1)
#define THIRD  BIT(2)
#define FOURTH BIT(3)
#define FIFTH  BIT(4)
#define DIR    BIT(6) /* first argument, path in the second */
#define DIR2   BIT(7) /* third argument, path in the fourth */

static const u8 takes[] = {
	[__NR_read] = FIRST,
	[__NR_write] = FIRST,
	[__NR_fstat] = FIRST,
	[__NR_lseek] = FIRST,
	[__NR_mmap] = FIFTH,
	[__NR_ioctl] = FIRST,
	[__NR_pread64] = FIRST,
	[__NR_pwrite64] = FIRST,
	[__NR_readv] = FIRST,
	[__NR_writev] = FIRST,
	[__NR_preadv] = FIRST,
	[__NR_pwritev] = FIRST,
	[__NR_preadv2] = FIRST,
	[__NR_pwritev2] = FIRST,
	[__NR_close] = FIRST,
	[__NR_dup] = FIRST,
	[__NR_dup2] = FIRST,
	[__NR_dup3] = FIRST,
	[__NR_fcntl] = FIRST,
	[__NR_sendfile] = FIRST | SECOND,
	[__NR_splice] = FIRST | THIRD,
	[__NR_tee] = FIRST | SECOND,
	[__NR_vmsplice] = FIRST,
	[__NR_copy_file_range] = FIRST | THIRD,
	[__NR_connect] = FIRST,
	[__NR_accept] = FIRST,
	[__NR_accept4] = FIRST,
	[__NR_bind] = FIRST,
	[__NR_listen] = FIRST,
	[__NR_shutdown] = FIRST,
	[__NR_sendto] = FIRST,
	[__NR_recvfrom] = FIRST,
	[__NR_sendmsg] = FIRST,
	[__NR_recvmsg] = FIRST,
	[__NR_sendmmsg] = FIRST,
	[__NR_recvmmsg] = FIRST,
	[__NR_getsockname] = FIRST,
	[__NR_getpeername] = FIRST,
	[__NR_setsockopt] = FIRST,
	[__NR_getsockopt] = FIRST,
	[__NR_flock] = FIRST,
	[__NR_fsync] = FIRST,
	[__NR_fdatasync] = FIRST,
	[__NR_ftruncate] = FIRST,
	[__NR_fallocate] = FIRST,
	[__NR_fadvise64] = FIRST,
	[__NR_readahead] = FIRST,
	[__NR_sync_file_range] = FIRST,
	[__NR_syncfs] = FIRST,
	[__NR_getdents] = FIRST,
	[__NR_getdents64] = FIRST,
	[__NR_fchdir] = FIRST,
	[__NR_fchmod] = FIRST,
	[__NR_fchown] = FIRST,
	[__NR_fstatfs] = FIRST,
	[__NR_fsetxattr] = FIRST,
	[__NR_fgetxattr] = FIRST,
	[__NR_flistxattr] = FIRST,
	[__NR_fremovexattr] = FIRST,
	[__NR_epoll_ctl] = FIRST | THIRD,
	[__NR_epoll_wait] = FIRST,
	[__NR_epoll_pwait] = FIRST,
	[__NR_epoll_pwait2] = FIRST,
	[__NR_openat] = DIR,
	[__NR_openat2] = DIR,
	[__NR_mkdirat] = DIR,
	[__NR_mknodat] = DIR,
	[__NR_fchownat] = DIR,
	[__NR_futimesat] = DIR,
	[__NR_newfstatat] = DIR,
	[__NR_statx] = DIR,
	[__NR_unlinkat] = DIR,
	[__NR_fchmodat] = DIR,
	[__NR_faccessat] = DIR,
	[__NR_faccessat2] = DIR,
	[__NR_readlinkat] = DIR,
	[__NR_utimensat] = DIR,
	[__NR_execveat] = DIR,
	[__NR_name_to_handle_at] = DIR,
	[__NR_renameat] = DIR | DIR2,
	[__NR_renameat2] = DIR | DIR2,
	[__NR_linkat] = DIR | DIR2,
	[__NR_fchmodat2] = DIR,
	[__NR_open_tree] = DIR,
	[__NR_mount_setattr] = DIR,
	[__NR_move_mount] = DIR | DIR2,
	[__NR_fspick] = DIR,
	[__NR_open_by_handle_at] = FIRST,
	[__NR_inotify_add_watch] = FIRST,
	[__NR_inotify_rm_watch] = FIRST,
	[__NR_fanotify_mark] = FIRST | FOURTH,
	[__NR_timerfd_settime] = FIRST,
	[__NR_timerfd_gettime] = FIRST,
	[__NR_mq_timedsend] = FIRST,
	[__NR_mq_timedreceive] = FIRST,
	[__NR_mq_notify] = FIRST,
	[__NR_mq_getsetattr] = FIRST,
	[__NR_finit_module] = FIRST,
	[__NR_setns] = FIRST,
	[__NR_pidfd_send_signal] = FIRST,
	[__NR_pidfd_getfd] = FIRST,
	[__NR_process_madvise] = FIRST,
	[__NR_process_mrelease] = FIRST,
	[__NR_io_uring_enter] = FIRST,
	[__NR_io_uring_register] = FIRST,
	[__NR_fsconfig] = FIRST,
	[__NR_fsmount] = FIRST,
	[__NR_quotactl_fd] = FIRST,
	[__NR_landlock_add_rule] = FIRST,
	[__NR_landlock_restrict_self] = FIRST,
	[__NR_cachestat_] = FIRST,
};

/* Argument @n is one of ours, and the path in the next one relative to it. */
static bool dir_hidden(struct thread *t, u32 n)
{
	char c;

	return fd_is_own((int)guest_arg(t, n)) &&
	       !(!guest_read(&c, guest_arg(t, n + 1), 1) && c == '/');
}

bool fd_hidden(struct thread *t, u64 nr)
{
	u32 bits = nr < ARRAY_SIZE(takes) ? takes[nr] : 0;

	if (bits & (DIR | DIR2))
		return dir_hidden(t, 0) || (bits & DIR2 && dir_hidden(t, 2));
	if (nr == __NR_symlinkat)
		return dir_hidden(t, 1);
	if (nr == __NR_sendmsg || nr == __NR_sendmmsg)
		return fd_is_own((int)guest_arg(t, 0)) || fd_sends_hidden(t, nr);
	if (nr == __NR_mmap && guest_arg(t, 3) & MAP_ANONYMOUS)
		return false;
	for (; bits; bits &= bits - 1)
		if (fd_is_own((int)guest_arg(t, (u32)__builtin_ctz(bits))))
			return true;
	return false;
}

static long limits(struct rlimit64 *new, struct rlimit64 *old)
{
	return raw_call4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)new, (long)old);
}

/* A limit that ours lie above, if they may: what copying the table up to there costs a fork is little. */
#define ABOVE_LIMIT_MAX 4096

/* A copy of @fd at the best number, not close-on-exec; or -errno. */
static long move_high(int fd)
{
	struct rlimit64 was, raised;
	long ret;

	if (limits(NULL, &was))
		return -EINVAL;
	if (was.rlim_cur <= ABOVE_LIMIT_MAX && was.rlim_cur + FD_OWN < was.rlim_max) {
		/* Just above what the guest may use. */
		raised = was;
		raised.rlim_cur += FD_OWN + 64;
		if (raised.rlim_cur > raised.rlim_max)
			raised.rlim_cur = raised.rlim_max;
		if (!limits(&raised, NULL)) {
			ret = sys_fcntl(fd, F_DUPFD, (long)was.rlim_cur);
			limits(&was, NULL);
			if (ret >= 0)
				return ret;
		}
	}
	for (u64 from = min_u64(was.rlim_cur, 1024); from > 3; from--) {
		ret = sys_fcntl(fd, F_DUPFD, (long)from - 1);
		if (ret >= 0)
			return ret;
	}
	return -EMFILE;
}

int fd_adopt(enum fd_own which, int fd)
{
	struct rlimit64 lim;
	long to;

	own[which] = fd;
	/* An inherited one that is where we would put it stays. */
	if (!limits(NULL, &lim) &&
	    (u64)fd + FD_OWN + 64 >= (lim.rlim_cur <= ABOVE_LIMIT_MAX ? lim.rlim_cur : 1024))
		return fd;
	to = move_high(fd);
	if (to >= 0) {
		own[which] = (int)to;
		sys_close(fd);
	}
	return own[which];
}

/* The guest wants the number @fd, which is ours. */
static void vacate(int fd)
{
	for (u32 i = 0; i < FD_OWN; i++) {
		long to;

		if (own[i] != fd)
			continue;
		/* Some way up, since who takes one number often takes the next too. */
		to = sys_fcntl(fd, F_DUPFD, fd + 64);
		if (to < 0)
			to = move_high(fd);
		if (to < 0)
			continue;
		own[i] = (int)to; /* the caller's dup2 closes the old one */
		if (i == FD_WIRE)
			sys_fcntl((int)to, F_SETFD, FD_CLOEXEC);
	}
}

void fd_cloexec(bool on)
{
	for (u32 i = 0; i < FD_OWN; i++)
		if (own[i] >= 0 && i != FD_WIRE)
			sys_fcntl(own[i], F_SETFD, on ? FD_CLOEXEC : 0);
}

/* Makes room for one more descriptor than the guest is allowed. */
static bool raise_limit(struct rlimit64 *was)
{
	struct rlimit64 more;

	if (limits(NULL, was))
		return false;
	more = *was;
	more.rlim_cur += 128;
	if (more.rlim_cur > more.rlim_max) {
		/* Only root may. */
		more.rlim_max = more.rlim_cur;
		if (!limits(&more, NULL))
			return true;
		more.rlim_max = was->rlim_max;
		more.rlim_cur = was->rlim_max;
	}
	return more.rlim_cur > was->rlim_cur && !limits(&more, NULL);
}

long fd_open(int dir, const char *path, int flags)
{
	long ret = sys_openat(dir, path, flags, 0);
	struct rlimit64 was;

	if (ret == -EMFILE && raise_limit(&was)) {
		ret = sys_openat(dir, path, flags, 0);
		limits(&was, NULL);
	}
	return ret;
}

long fd_memfd(const char *name, u32 flags)
{
	long ret = sys_memfd_create(name, flags);
	struct rlimit64 was;

	if (ret == -EMFILE && raise_limit(&was)) {
		ret = sys_memfd_create(name, flags);
		limits(&was, NULL);
	}
	return ret;
}

long guest_close_range(struct thread *t)
{
	u64 first = (u32)guest_arg(t, 0), last = (u32)guest_arg(t, 1);
	u32 flags = (u32)guest_arg(t, 2);

	if (first > last || flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC))
		return call_kernel(t);
	/* Piece by piece between ours, in ascending order. */
	while (first <= last) {
		u64 stop = last + 1;
		long ret;

		for (u32 i = 0; i < FD_OWN; i++)
			if (own[i] >= 0 && (u64)own[i] >= first && (u64)own[i] < stop)
				stop = (u64)own[i];
		if (stop > first) {
			ret = raw_call3(__NR_close_range, (long)first, (long)(stop - 1), flags);
			if (ret)
				return ret;
			/* Unshared only once; the rest is done in the copy. */
			flags &= ~CLOSE_RANGE_UNSHARE;
		}
		first = stop + 1;
	}
	return 0;
}

long guest_dup2(struct thread *t)
{
	int from = (int)guest_arg(t, 0), to = (int)guest_arg(t, 1);

	if (fd_is_own(to)) {
		struct rlimit64 lim;

		/* Beyond the limit the kernel refuses the number. */
		if (!limits(NULL, &lim) && (u64)to >= lim.rlim_cur)
			return -EBADF;
		if (sys_fcntl(from, F_GETFD, 0) < 0)
			return -EBADF;
		vacate(to);
	}
	return call_kernel(t);
}

/* Whether @fd is a directory of descriptors: /proc/PID/fd or fdinfo, also a thread's. */
static bool lists_descriptors(int fd)
{
	char name[40], path[128];
	u64 statfs[16];
	long n;

	if (raw_call2(__NR_fstatfs, fd, (long)statfs) || statfs[0] != PROC_SUPER_MAGIC)
		return false;
	fmt(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = sys_readlinkat(AT_FDCWD, name, path, sizeof(path) - 1);
	if (n < 8)
		return false;
	path[n] = '\0';
	return (str_starts(path + n - 3, "/fd") || str_starts(path + n - 7, "/fdinfo"));
}

struct dirent64 {
	u64 ino;
	s64 off;
	u16 len;
	u8 type;
	char name[];
};

/* Drops our descriptors from what the kernel has listed; returns how many bytes remain. */
static long filter(struct thread *t, u64 buf, long len)
{
	long in = 0, out = 0;

	while (in < len) {
		struct dirent64 head;
		char name[16] = "";
		u64 fd;
		long size;

		if (guest_read(&head, buf + (u64)in, sizeof(head)))
			return len;
		size = head.len;
		if (size < (long)sizeof(head) || in + size > len)
			return len;
		if (guest_read(
			    name, buf + (u64)in + offsetof(struct dirent64, name),
			    min_u64(sizeof(name) - 1, (u64)size - offsetof(struct dirent64, name))))
			return len;
		if (!(str_u64(name, 10, &fd) && fd_is_own((s64)fd))) {
			if (in != out) {
				u8 entry[320];

				if (size > (long)sizeof(entry) ||
				    guest_read(entry, buf + (u64)in, (size_t)size) ||
				    guest_write(t, buf + (u64)out, entry, (size_t)size))
					return len;
			}
			out += size;
		}
		in += size;
	}
	return out;
}

long guest_getdents64(struct thread *t)
{
	long ret;

	do {
		ret = call_kernel(t);
		if (ret <= 0 || ret == CALL_REDO || !lists_descriptors((int)guest_arg(t, 0)))
			return ret;
		ret = filter(t, guest_arg(t, 1), ret);
	} while (!ret); /* only ours were left in this part of the list */
	return ret;
}
