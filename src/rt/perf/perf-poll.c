/*
 * poll and select on perf descriptors. The pipe that carries one tells the kernel when something
 * may have happened; what it is the session knows: without a ring a perf descriptor answers POLLHUP
 * for ever [OVF-03], and a report is consumed by who gets it [OVF-02].
 */
#include "rt/perf/perf-guest.h"

#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/syscall.h"

#include <linux/eventpoll.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/time.h>

#define POLL_MAX 4096u /* descriptors; those beyond are the kernel's alone */

/* What a kernel perf descriptor would show. */
static u32 event_revents(struct thread *t, struct perf_fd *pf)
{
	struct wire_slot *sl = wire_begin(t);
	long ret = -ENODEV;

	if (sl) {
		sl->args.event.handle = pf->handle;
		ret = wire_call(t, sl, WIRE_OP_POLL);
		wire_end(t, sl);
	}
	return ret < 0 ? POLLHUP : (u32)ret;
}

/*
 * epoll is the kernel's altogether, so the pipe itself must show what the event does: the session
 * has it hang up for as long as there is no ring. With one each report is a byte more, which nobody
 * takes out; so the set is to tell of new ones alone, as an event's reports are told once [OVF-02].
 */
bool perf_on_epoll_ctl(struct thread *t, u64 nr, long *ret)
{
	const struct perf_fd *pf = perf_fd_find(t, (int)guest_arg(t, 2));
	struct wire_slot *sl = pf ? wire_begin(t) : NULL;
	struct epoll_event event;
	long hangs_up;

	if (!sl)
		return false;
	sl->args.event.handle = pf->handle;
	hangs_up = wire_call(t, sl, WIRE_OP_HANGUP);
	wire_end(t, sl);
	if (hangs_up || guest_arg(t, 1) == EPOLL_CTL_DEL ||
	    guest_read(&event, guest_arg(t, 3), sizeof(event)))
		return false;
	event.events |= EPOLLET;
	*ret = call_kernel_with(t, nr, guest_arg(t, 0), guest_arg(t, 1), guest_arg(t, 2),
				(u64)&event, 0, 0);
	return true;
}

/* The bytes in the pipe only say "ask". Without waiting: another thread may have taken them. */
static void drain(int fd)
{
	u8 bytes[64];
	struct iovec v = {bytes, sizeof(bytes)};

	while (raw_call6(__NR_preadv2, fd, (long)&v, 1, -1, 0, RWF_NOWAIT) == sizeof(bytes))
		;
}

/* How many of the entries are perf descriptors, and for how many there is something to report. */
static u32 look(struct thread *t, u64 at, u32 n, u32 *ready)
{
	struct pollfd e;
	u32 ours = 0;

	*ready = 0;
	for (u32 i = 0; i < n; i++) {
		struct perf_fd *pf;
		u32 revents;

		if (guest_read(&e, at + i * sizeof(e), sizeof(e)) || e.fd < 0)
			continue;
		pf = perf_fd_find(t, e.fd);
		if (!pf)
			continue;
		ours++;
		revents = event_revents(t, pf) & ((u32)(u16)e.events | POLLHUP | POLLERR);
		pf->ready = (u16)revents;
		*ready += revents != 0;
	}
	return ours;
}

/* Puts what look() found into the entries; the kernel has filled in the others. */
static long patch(struct thread *t, u64 at, u32 n, long ret)
{
	struct pollfd e;

	for (u32 i = 0; i < n; i++) {
		struct perf_fd *pf;

		if (guest_read(&e, at + i * sizeof(e), sizeof(e)) || e.fd < 0)
			continue;
		pf = perf_fd_find(t, e.fd);
		if (!pf)
			continue;
		ret += (pf->ready != 0) - (e.revents != 0);
		e.revents = (s16)pf->ready;
		if (guest_write(t, at + i * sizeof(e), &e, sizeof(e)))
			return -EFAULT;
	}
	return ret;
}

static bool any_report(struct thread *t, u64 at, u32 n)
{
	struct pollfd e;
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		if (!guest_read(&e, at + i * sizeof(e), sizeof(e)) && e.fd >= 0 && e.revents &&
		    perf_fd_find(t, e.fd)) {
			drain(e.fd);
			any = true;
		}
	}
	return any;
}

bool perf_on_poll(struct thread *t, u64 nr, long *ret)
{
	u64 at = guest_arg(t, 0), deadline = ~0ull, start = sys_clock(CLOCK_MONOTONIC);
	u32 n = guest_arg(t, 1) < POLL_MAX ? (u32)guest_arg(t, 1) : POLL_MAX, ready;
	struct __kernel_timespec ts = {0, 0};

	if (!look(t, at, n, &ready))
		return false;
	if (nr == __NR_poll && (s32)guest_arg(t, 2) >= 0) {
		deadline = start + (u64)(s32)guest_arg(t, 2) * 1000000;
	} else if (nr == __NR_ppoll && guest_arg(t, 2)) {
		if (guest_read(&ts, guest_arg(t, 2), sizeof(ts))) {
			*ret = -EFAULT;
			return true;
		}
		deadline = start + (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
	}
	for (;;) {
		u64 now = sys_clock(CLOCK_MONOTONIC),
		    left = ready || deadline <= now ? 0 : deadline - now;

		ts.tv_sec = (s64)(left / 1000000000);
		ts.tv_nsec = (s64)(left % 1000000000);
		*ret = call_kernel_with(t, __NR_ppoll, at, guest_arg(t, 1),
					!ready && deadline == ~0ull ? 0 : (u64)&ts,
					nr == __NR_ppoll ? guest_arg(t, 3) : 0, SIGSET_SIZE, 0);
		if (sys_failed(*ret) || *ret == CALL_REDO)
			return true;
		if (any_report(t, at, n) || ready) {
			if (!ready)
				look(t, at, n, &ready);
			*ret = patch(t, at, n, *ret);
			/* The report was another event's, or has been taken: go on waiting. */
			if (*ret == 0 && deadline > sys_clock(CLOCK_MONOTONIC) && !sys_failed(*ret))
				continue;
		}
		return true;
	}
}

/*
 * select: a descriptor that hangs up counts as readable, one in error as readable and writable.
 * When there is nothing to report the kernel's answer stands, since the pipe becomes readable when
 * there is.
 */
bool perf_on_select(struct thread *t, u64 nr, long *ret)
{
	u32 n = (u32)guest_arg(t, 0), bytes = ALIGN_UP(n, 64) / 8;
	u64 in[16], hung[16] = {0}, out, zero[2] = {0, 0};
	bool any = false;

	if (!guest_arg(t, 1) || n > 1024 || guest_read(in, guest_arg(t, 1), bytes))
		return false;
	for (u32 fd = 0; fd < n; fd++) {
		struct perf_fd *pf;

		if (!(in[fd / 64] & BIT(fd % 64)))
			continue;
		pf = perf_fd_find(t, (int)fd);
		if (pf && event_revents(t, pf) & (POLLHUP | POLLERR | POLLIN)) {
			hung[fd / 64] |= BIT(fd % 64);
			any = true;
		}
	}
	if (!any)
		return false;
	*ret = call_kernel_with(t, nr, n, guest_arg(t, 1), guest_arg(t, 2), guest_arg(t, 3),
				(u64)zero, nr == __NR_pselect6 ? guest_arg(t, 5) : 0);
	if (sys_failed(*ret) || *ret == CALL_REDO)
		return true;
	for (u32 i = 0; i < bytes / 8; i++) {
		u64 at = guest_arg(t, 1) + i * 8;

		if (!hung[i])
			continue;
		if (guest_read(&out, at, 8)) {
			*ret = -EFAULT;
			return true;
		}
		for (u64 more = hung[i] & ~out; more; more &= more - 1)
			++*ret;
		out |= hung[i];
		if (guest_write(t, at, &out, 8)) {
			*ret = -EFAULT;
			return true;
		}
	}
	return true;
}
