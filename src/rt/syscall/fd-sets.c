/*
 * Descriptors in sets and messages (poll, select, SCM_RIGHTS). To the guest those of the runtime
 * are numbers that are not open.
 */
#include "rt/syscall/fd.h"

#include "rt/mm/guest-mem.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"

#include <linux/poll.h>
#include <linux/time_types.h>

#define CHUNK 64u

/*
 * How many of the entries at @at are ours. *@quiet: for how many of them nothing was reported yet.
 * With @patch they get POLLNVAL.
 */
static u32 look(struct thread *t, u64 at, u64 n, bool patch, u32 *quiet)
{
	struct pollfd e[CHUNK];
	u32 ours = 0;

	*quiet = 0;
	for (u64 i = 0; i < n; i += CHUNK) {
		u32 some = (u32)min_u64(n - i, CHUNK);

		if (guest_read(e, at + i * sizeof(*e), some * sizeof(*e)))
			return ours;
		for (u32 k = 0; k < some; k++) {
			if (!fd_is_own(e[k].fd))
				continue;
			ours++;
			*quiet += !e[k].revents;
			e[k].revents = POLLNVAL;
			if (patch && guest_write(t, at + (i + k) * sizeof(*e), &e[k], sizeof(*e)))
				return ours;
		}
	}
	return ours;
}

long guest_poll(struct thread *t)
{
	static const struct __kernel_timespec now;
	u64 at = guest_arg(t, 0), n = (u32)guest_arg(t, 1);
	u32 quiet;
	long ret;

	if (!look(t, at, n, false, &quiet))
		return guest_mask_call(t);
	/* A number that is not open is reported at once. */
	ret = call_kernel_with(t, __NR_ppoll, at, n, (u64)&now, 0, 0, 0);
	if (ret < 0)
		return ret;
	look(t, at, n, true, &quiet);
	return ret + quiet;
}

long guest_select(struct thread *t)
{
	s64 n = (int)guest_arg(t, 0);

	for (u32 which = 0; which < FD_OWN; which++) {
		int fd = fd_get(which);

		for (u32 set = 1; fd >= 0 && fd < n && set <= 3; set++) {
			u64 at = guest_arg(t, set);
			u8 byte;

			if (at && !guest_read(&byte, at + (u32)fd / 8, 1) && byte & BIT(fd % 8))
				return -EBADF;
		}
	}
	return guest_mask_call(t);
}

bool fd_of_message(struct thread *t, u64 at, bool (*each)(struct thread *t, int fd))
{
	struct user_msghdr m;
	struct cmsghdr c;

	if (guest_read(&m, at, sizeof(m)) || !m.msg_control)
		return false;
	for (u64 off = 0; off + sizeof(c) <= m.msg_controllen; off += ALIGN_UP(c.cmsg_len, 8)) {
		u64 head = (u64)m.msg_control + off;

		if (guest_read(&c, head, sizeof(c)) || c.cmsg_len < sizeof(c) ||
		    c.cmsg_len > m.msg_controllen - off)
			return false;
		if (c.cmsg_level != SOL_SOCKET || c.cmsg_type != SCM_RIGHTS)
			continue;
		for (u64 i = sizeof(c); i + sizeof(s32) <= c.cmsg_len; i += sizeof(s32)) {
			s32 fd;

			if (!guest_read(&fd, head + i, sizeof(fd)) && each(t, fd))
				return true;
		}
	}
	return false;
}

static bool is_hidden(struct thread *t, int fd)
{
	(void)t;
	return fd_is_own(fd);
}

bool fd_sends_hidden(struct thread *t, u64 at, u64 n)
{
	for (u64 i = 0; i < n && i < UIO_MAXIOV; i++)
		if (fd_of_message(t, at + i * sizeof(struct mmsghdr), is_hidden))
			return true;
	return false;
}
