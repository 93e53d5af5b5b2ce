/* What a perf descriptor looks like to who examines it: not like the pipe that it is. */
#include "rt/perf/perf-guest.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/proc/shown-text.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/poll.h>
#include <linux/signalfd.h>

bool perf_as_anonymous(struct thread *t, u64 nr, u32 n, long *ret)
{
	long anon = perf_anonymous(t);
	u64 a[6];

	if (sys_failed(anon))
		return false;
	for (u32 i = 0; i < 6; i++)
		a[i] = guest_arg(t, i);
	a[n] = (u64)anon;
	*ret = call_kernel_with(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	perf_anonymous_end(t, anon);
	return true;
}

/* A path relative to argument 0 that names the descriptor itself. */
static bool names_itself(struct thread *t, u64 nr)
{
	u64 path = guest_arg(t, 1), flags;
	char first;

	switch (nr) {
	case __NR_statx: flags = guest_arg(t, 2); break;
	case __NR_fchownat: flags = guest_arg(t, 4); break;
	case __NR_utimensat:
		if (!path)
			return true;
		flags = guest_arg(t, 3);
		break;
	default: flags = guest_arg(t, 3); break;
	}
	return flags & AT_EMPTY_PATH && (!path || (!guest_read(&first, path, 1) && !first));
}

/* fstat, fchown and the like; names_itself() knows those that take a path. */
bool perf_on_anonymous(struct thread *t, u64 nr, long *ret)
{
	bool by_path = nr == __NR_newfstatat || nr == __NR_statx || nr == __NR_fchownat ||
		       nr == __NR_fchmodat2 || nr == __NR_utimensat;

	if (!perf_fd_find(t, (int)guest_arg(t, 0)) || (by_path && !names_itself(t, nr)))
		return false;
	return perf_as_anonymous(t, nr, 0, ret);
}

u32 perf_async(struct thread *t, const struct perf_fd *pf, u32 set)
{
	struct wire_slot *sl = wire_begin(t);
	long ret = 0;

	if (sl) {
		sl->args.async = (struct wire_async_args){.handle = pf->handle, .set = set};
		ret = wire_call(t, sl, WIRE_OP_ASYNC);
		wire_end(t, sl);
	}
	return ret > 0 ? (u32)ret : 0;
}

void perf_signal(struct thread *t, siginfo_t *info)
{
	const struct perf_fd *pf;
	struct perf_fd entry;

	if (info->si_code != POLL_IN || info->si_band != (POLLIN | POLLRDNORM) ||
	    SIG(info->si_signo) & (SIGNALS_SYNC | SIG(SIGCHLD)) || !t->proc->perf)
		return;
	pf = perf_fd_find(t, info->si_fd);
	if (!pf)
		return;
	entry = *pf;
	if (!(perf_async(t, &entry, WIRE_ASYNC_ASK) & WIRE_ASYNC_HUP))
		return;
	info->si_code = POLL_HUP;
	info->si_band = POLLHUP | POLLERR;
}

static bool is_signalfd(int fd)
{
	static const char want[] = "anon_inode:[signalfd]";
	char path[32], link[sizeof(want)];
	long n;

	fmt(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = raw_call3(__NR_readlink, (long)path, (long)link, sizeof(link));
	return n == sizeof(want) - 1 && !memcmp(link, want, sizeof(want) - 1);
}

/* False: the program has unmapped what it has read. */
static bool fix_signal(struct thread *t, u64 at, struct signalfd_siginfo *si)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = (int)si->ssi_signo;
	info.si_code = si->ssi_code;
	info.si_band = (int)si->ssi_band;
	info.si_fd = si->ssi_fd;
	perf_signal(t, &info);
	if (info.si_code == si->ssi_code)
		return true;
	si->ssi_code = info.si_code;
	si->ssi_band = (u32)info.si_band;
	return !guest_write(t, at, si, sizeof(*si));
}

/* What a signalfd gives is what a handler would see; the latest of a descriptor is to say so. */
bool perf_read_signals(struct thread *t, u64 nr, long *ret)
{
	const u64 at = guest_arg(t, 1), each = sizeof(struct signalfd_siginfo);
	struct signalfd_siginfo si;
	s32 last = -1;

	if (guest_arg(t, 2) < each)
		return false;
	*ret = syscall_plain(t, nr);
	if (sys_failed(*ret) || *ret == CALL_REDO || (u64)*ret % each)
		return true;
	for (u64 n = (u64)*ret / each; n--;) {
		if (guest_read(&si, at + n * each, each) || si.ssi_code != POLL_IN ||
		    si.ssi_fd == last || !perf_fd_find(t, si.ssi_fd))
			continue;
		if (last < 0 && !is_signalfd((int)guest_arg(t, 0)))
			return true;
		last = si.ssi_fd;
		if (!fix_signal(t, at + n * each, &si))
			return true;
	}
	return true;
}

/*
 * The pipe itself has O_ASYNC if the event samples: each overflow is a byte then, and the kernel
 * makes signals of bytes. It does so too when an end of a pipe is opened or closed, and an event
 * that only counts never signals [OVF-01].
 */
static long set_flags(struct thread *t, u64 nr, const struct perf_fd *pf)
{
	u64 flags = guest_arg(t, 2), real = flags;
	long ret;

	/* For a pipe it means packets. */
	if (flags & O_DIRECT)
		return -EINVAL;
	if (!(perf_async(t, pf, WIRE_ASYNC_ASK) & WIRE_ASYNC_BYTES))
		real &= ~(u64)FASYNC;
	ret = call_kernel_with(t, nr, guest_arg(t, 0), F_SETFL, real, 0, 0, 0);
	if (!ret)
		perf_async(t, pf, flags & FASYNC ? WIRE_ASYNC_ON : WIRE_ASYNC_OFF);
	return ret;
}

static size_t octal(u64 value, char *out)
{
	size_t digits = 1;

	while (value >> (3 * digits))
		digits++;
	for (size_t i = 0; i < digits; i++)
		out[i] = (char)('0' + (value >> 3 * (digits - 1 - i) & 7));
	return digits;
}

/* The flags are the event's own, the rest is as for another anonymous file. */
long perf_fdinfo_open(struct thread *t, int fd, u32 flags)
{
	long own = sys_fcntl(fd, F_GETFL, 0), cloexec = sys_fcntl(fd, F_GETFD, 0);
	long anon = perf_anonymous(t), n;
	struct shown_text out = {0};
	const struct perf_fd *pf = perf_fd_find(t, fd);
	char path[64], text[512], *line, *end;
	struct perf_fd entry;

	if (anon < 0)
		return anon;
	fmt(path, sizeof(path), "/proc/self/fdinfo/%u", (u32)anon);
	n = fd_read_text(path, text, sizeof(text));
	perf_anonymous_end(t, anon);
	if (own < 0 || !pf || n < 0)
		return -ENOENT;
	entry = *pf;
	own = (own & ~(long)O_ACCMODE) | O_RDWR | (cloexec & FD_CLOEXEC ? O_CLOEXEC : 0);
	if (perf_async(t, &entry, WIRE_ASYNC_ASK))
		own |= FASYNC;
	for (line = text; (end = str_chr(line, '\n')); line = end + 1) {
		char shown[64] = "flags:\t0";

		if (str_starts(line, "flags:")) {
			size_t len = str_len(shown);

			len += octal((u64)own, shown + len);
			shown[len] = '\n';
			shown_put(&out, shown, len + 1);
		} else if (!str_starts(line, "eventfd")) {
			shown_put(&out, line, (size_t)(end + 1 - line));
		}
	}
	return shown_open(&out, "fdinfo", flags & O_CLOEXEC);
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
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		if (perf_lock(t, nr, ret))
			return true;
		break;
	}
	*ret = syscall_plain(t, nr);
	if (sys_failed(*ret) || *ret == CALL_REDO)
		return true;
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC: perf_fd_copied(t, fd, (int)*ret); break;
	case F_SETOWN:
	case F_SETOWN_EX:
	case F_SETSIG: perf_owner_set(t, fd, cmd, guest_arg(t, 2)); break;
	case F_GETOWN:
	case F_GETOWN_EX:
		if (entry.owner)
			*ret = perf_owner_shown(t, &entry, cmd, guest_arg(t, 2));
		break;
	case F_GETFL:
		*ret = (*ret & ~(long)O_ACCMODE) | O_RDWR;
		if (perf_async(t, &entry, WIRE_ASYNC_ASK) & WIRE_ASYNC_HAS)
			*ret |= FASYNC;
		break;
	}
	return true;
}
