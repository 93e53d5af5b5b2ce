/*
 * Writing to perf's settings. The file that a guest opens is the session's own; what is written
 * goes over the wire instead, so that the session can refuse it, and changes the file before the
 * write returns.
 */
#include "rt/perf/perf-guest.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/fs.h>

#define TEXT_MAX 4096u

/* What open(2) and the like are asked for: flags and, where it is given, mode. */
static bool open_flags(u64 nr, const u64 a[6], u64 *flags)
{
	switch (nr) {
	case __NR_open: *flags = a[1]; return true;
	case __NR_openat: *flags = a[2]; return true;
	case __NR_creat: *flags = O_CREAT | O_WRONLY | O_TRUNC; return true;
	case __NR_openat2: return !guest_read(flags, a[2], sizeof(*flags));
	default: return false;
	}
}

/*
 * @path, the session's file, is about to be opened or truncated; @shown is its name below the root.
 * True: *@ret is the answer.
 */
bool perf_sysctl_open(struct thread *t, u64 nr, const u64 a[6], const char *path, const char *shown,
		      long *ret)
{
	struct perf_fd entry = {.kind = PERF_FD_SYSCTL};
	struct wire_slot *sl;
	u64 flags = O_WRONLY;

	if (nr != __NR_truncate &&
	    (!open_flags(nr, a, &flags) || (flags & O_ACCMODE) == O_RDONLY || flags & O_PATH))
		return false;
	if (flags & O_CREAT && flags & O_EXCL) {
		*ret = -EEXIST;
		return true;
	}
	sl = wire_begin(t);
	if (!sl)
		return false;
	sl->args.sysctl.setting = WIRE_SYSCTL_OPEN;
	sl->len = (u32)str_len(shown) + 1;
	memcpy(sl->data, shown, sl->len);
	*ret = wire_call(t, sl, WIRE_OP_SYSCTL);
	wire_end(t, sl);
	if (*ret < 0)
		return true;
	entry.handle = (u64)*ret;
	/* There is nothing to truncate, and the file is the session's to change. */
	*ret = nr == __NR_truncate ? 0
				   : raw_call4(__NR_openat, AT_FDCWD, (long)path,
					       (long)(flags & ~(u64)(O_TRUNC | O_CREAT)), 0);
	if (nr != __NR_truncate && !sys_failed(*ret))
		perf_fd_set(t, (int)*ret, &entry);
	return true;
}

/* The text of a write: its length, or -errno. */
static long gather(struct thread *t, u64 nr, u8 *text)
{
	u64 at = guest_arg(t, 1), count = guest_arg(t, 2), len = 0;
	struct iovec v;

	if (nr != __NR_writev) {
		if (count >= TEXT_MAX)
			return -EINVAL;
		return guest_read(text, at, count) ? -EFAULT : (long)count;
	}
	if (count > UIO_MAXIOV)
		return -EINVAL;
	for (u64 i = 0; i < count; i++) {
		if (guest_read(&v, at + i * sizeof(v), sizeof(v)))
			return -EFAULT;
		if (v.iov_len >= TEXT_MAX - len)
			return -EINVAL;
		if (guest_read(text + len, (u64)v.iov_base, v.iov_len))
			return -EFAULT;
		len += v.iov_len;
	}
	return (long)len;
}

long perf_sysctl_write(struct thread *t, u64 nr, u64 handle)
{
	int fd = (int)guest_arg(t, 0);
	long mode = sys_fcntl(fd, F_GETFL, 0), pos, len, ret;
	struct wire_slot *sl;

	if ((mode & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	pos = nr == __NR_pwrite64 ? (long)guest_arg(t, 3) : sys_lseek(fd, 0, SEEK_CUR);
	if (pos < 0)
		return -EINVAL;
	sl = wire_begin(t);
	if (!sl)
		return -ENODEV;
	len = gather(t, nr, sl->data);
	if (len < 0) {
		ret = len;
	} else {
		sl->args.sysctl.setting = handle;
		sl->args.sysctl.offset = (u64)pos;
		sl->len = (u32)len;
		ret = len ? wire_call(t, sl, WIRE_OP_SYSCTL) : 0;
	}
	wire_end(t, sl);
	if (ret > 0 && nr != __NR_pwrite64)
		sys_lseek(fd, pos + ret, SEEK_SET);
	return ret;
}
