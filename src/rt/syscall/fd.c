#include "rt/syscall/fd.h"

#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/resource.h>

static int own[FD_OWN] = {-1, -1, -1, -1, -1, -1, -1, -1};

/* Ends with the program. */
static bool is_for_this_program(u32 which)
{
	return which == FD_WIRE || which == FD_EXE || which == FD_LOCKS;
}

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

/* Argument @n is one of ours, and the path in the next one relative to it. */
static bool dir_hidden(struct thread *t, u32 n)
{
	char c;

	return fd_is_own((int)guest_arg(t, n)) &&
	       !(!guest_read(&c, guest_arg(t, n + 1), 1) && c == '/');
}

/* One of ours, asked of ourselves by a pidfd? The numbers of another process are its own. */
static bool getfd_hidden(struct thread *t)
{
	char path[48], text[512];
	const char *pid;
	u64 number;

	if (!fd_is_own((int)guest_arg(t, 1)))
		return false;
	fmt(path, sizeof(path), "/proc/self/fdinfo/%d", (int)guest_arg(t, 0));
	if (fd_read_text(path, text, sizeof(text)) < 0)
		return false;
	pid = text;
	while (pid && !str_starts(pid, "Pid:\t")) {
		pid = str_chr(pid, '\n');
		pid = pid ? pid + 1 : NULL;
	}
	return pid && str_u64(pid + 5, 10, &number) && number == t->proc->pid;
}

bool fd_hidden(struct thread *t, u64 nr)
{
	const struct syscall_row *row = syscall_row(nr);

	for (u32 bits = row->fds; bits; bits &= bits - 1)
		if (fd_is_own((int)guest_arg(t, (u32)__builtin_ctz(bits))))
			return !(nr == __NR_mmap && guest_arg(t, 3) & MAP_ANONYMOUS);
	for (u32 bits = row->dirs; bits; bits &= bits - 1)
		if (dir_hidden(t, (u32)__builtin_ctz(bits)))
			return true;
	if (nr == __NR_pidfd_getfd)
		return getfd_hidden(t);
	if (row->steps & SYSCALL_SENDS)
		return fd_sends_hidden(t, guest_arg(t, 1), 1);
	return row->steps & SYSCALL_SENDS_MANY &&
	       fd_sends_hidden(t, guest_arg(t, 1), (u32)guest_arg(t, 2));
}

static long limits(struct rlimit64 *new, struct rlimit64 *old)
{
	return raw_call4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)new, (long)old);
}

/* Up to this limit ours lie above it: a fork copies the table up to the highest descriptor. */
#define ABOVE_LIMIT_MAX 4096

/* A copy of @fd by @how of fcntl(2), as high as the guest's limit and 1024 allow; or -errno. */
static long move_up(int fd, int how, u64 limit)
{
	for (u64 from = min_u64(limit, 1024); from > 3; from--) {
		long ret = sys_fcntl(fd, how, (long)from - 1);

		if (ret >= 0)
			return ret;
	}
	return -EMFILE;
}

static bool may_lie_above(const struct rlimit64 *limit)
{
	return limit->rlim_cur <= ABOVE_LIMIT_MAX && limit->rlim_cur + FD_OWN < limit->rlim_max;
}

/* The same at the best number, not close-on-exec. */
static long move_high(int fd)
{
	struct rlimit64 was, raised;
	long ret;

	if (limits(NULL, &was))
		return -EINVAL;
	if (may_lie_above(&was)) {
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
	return move_up(fd, F_DUPFD, was.rlim_cur);
}

/* Other threads of the guest run on, and see its limit and set it: that is not raised here. */
int fd_move_high(int fd)
{
	struct rlimit64 limit;
	long to = limits(NULL, &limit) ? -EINVAL : move_up(fd, F_DUPFD_CLOEXEC, limit.rlim_cur);

	if (to < fd) {
		if (to >= 0)
			sys_close((int)to);
		return fd;
	}
	sys_close(fd);
	return (int)to;
}

/* Whether @fd is about where move_high() would put it. */
static bool is_high(int fd)
{
	struct rlimit64 lim;
	u64 top;

	if (limits(NULL, &lim))
		return false;
	if (may_lie_above(&lim))
		return (u64)fd >= lim.rlim_cur;
	top = min_u64(lim.rlim_cur, 1024);
	return (u64)fd + FD_OWN + (top > 256 ? 64 : 0) >= top;
}

int fd_adopt(enum fd_own which, int fd)
{
	long to;

	own[which] = fd;
	/* An inherited one may be there. */
	if (is_high(fd))
		return fd;
	to = move_high(fd);
	if (to >= 0) {
		own[which] = (int)to;
		sys_close(fd);
	}
	return own[which];
}

/* Numbers below are for a program that has hardly any. */
#define EXE_LOWEST 48

void fd_keep_exe(int fd)
{
	long to = move_high(fd);

	sys_close(fd);
	if (to >= 0 && to < EXE_LOWEST) {
		sys_close((int)to);
		to = -1;
	}
	if (to >= 0)
		sys_fcntl((int)to, F_SETFD, FD_CLOEXEC);
	own[FD_EXE] = to < 0 ? -1 : (int)to;
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
		if (is_for_this_program(i))
			sys_fcntl((int)to, F_SETFD, FD_CLOEXEC);
	}
}

void fd_cloexec(bool on)
{
	for (u32 i = 0; i < FD_OWN; i++)
		if (own[i] >= 0 && !is_for_this_program(i))
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

long fd_eventfd(void)
{
	long ret = raw_call2(__NR_eventfd2, 0, O_CLOEXEC);
	struct rlimit64 was;

	if (ret == -EMFILE && raise_limit(&was)) {
		ret = raw_call2(__NR_eventfd2, 0, O_CLOEXEC);
		limits(&was, NULL);
	}
	return ret;
}

#define PIPE_BYTES 65536 /* that a new one holds */

static long pipe_with(const void *bytes, size_t len, int flags)
{
	s32 ends[2];
	long ret = raw_call2(__NR_pipe2, (long)ends, O_NONBLOCK | flags);

	if (ret)
		return ret;
	if (len > PIPE_BYTES)
		sys_fcntl(ends[1], F_SETPIPE_SZ, len);
	ret = sys_write(ends[1], bytes, len);
	sys_close(ends[1]);
	if (ret == (long)len)
		return ends[0];
	sys_close(ends[0]);
	return -ENOMEM;
}

/* A larger file would be answered by SIGXFSZ as well, which is the guest's to get. */
static bool is_beyond_files(size_t len)
{
	struct rlimit64 size;

	return !raw_call4(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&size) && size.rlim_cur < len;
}

/*
 * It is mapped executable and not executed, so vm.memfd_noexec is content with it. Kernels before
 * 6.3 do not know the flag.
 */
int fd_for_code(u64 size)
{
	long fd;

	if (is_beyond_files(size))
		return -EFBIG;
	fd = fd_memfd("anyperf-code", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd == -EINVAL)
		fd = fd_memfd("anyperf-code", MFD_CLOEXEC);
	if (fd >= 0 && raw_call2(__NR_ftruncate, fd, (long)size)) {
		sys_close((int)fd);
		return -ENOMEM;
	}
	return (int)fd;
}

/* @fd, a new memfd, or -errno: with the bytes in it. */
static long fill(long fd, const void *bytes, size_t len)
{
	long n;

	if (fd < 0)
		return fd;
	n = sys_write((int)fd, bytes, len);
	if (n == (long)len && !raw_call3(__NR_lseek, fd, 0, SEEK_SET))
		return fd;
	sys_close((int)fd);
	return n < 0 ? n : -ENOMEM;
}

long fd_with(const char *name, const void *bytes, size_t len)
{
	long fd;

	if (is_beyond_files(len))
		return pipe_with(bytes, len, 0);
	fd = fill(fd_memfd(name, MFD_ALLOW_SEALING), bytes, len);
	if (fd >= 0 && sys_fcntl((int)fd, F_ADD_SEALS,
				 F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)) {
		sys_close((int)fd);
		return -ENOMEM;
	}
	return fd;
}

long fd_for_guest(const char *name, const void *bytes, size_t len, bool cloexec)
{
	if (is_beyond_files(len))
		return pipe_with(bytes, len, cloexec ? O_CLOEXEC : 0);
	return fill(sys_memfd_create(name, cloexec ? MFD_CLOEXEC : 0), bytes, len);
}

long fd_read_text(const char *path, char *text, size_t size)
{
	long fd = fd_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n = 0, got;

	if (fd < 0)
		return fd;
	do {
		got = sys_read((int)fd, text + n, size - 1 - (size_t)n);
		n += got > 0 ? got : 0;
	} while (got > 0 && n < (long)size - 1);
	sys_close((int)fd);
	text[n] = '\0';
	return got < 0 && !n ? got : n;
}

long fd_path(int fd, char *path, size_t size)
{
	char name[40];
	long n;

	fmt(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = sys_readlinkat(AT_FDCWD, name, path, size - 1);
	path[n > 0 ? n : 0] = '\0';
	return n;
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
