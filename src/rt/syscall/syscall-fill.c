/* The buffers of each call, by the numbers of its arguments. */
#include "rt/syscall/syscall-fill.h"

#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/window.h"

#include <linux/aio_abi.h>

#define VECTORS_MAX  1024u /* as the kernel's UIO_MAXIOV */
#define MESSAGES_MAX 1024u
#define IOCBS_MAX    4096u
#define ADDRESS_SIZE 128u /* struct sockaddr_storage */

struct vector {
	u64 base, len;
};

/* struct msghdr of 64-bit programs. */
struct message {
	u64 name;
	u32 name_len, pad;
	u64 vectors, nr_vectors, control, control_len;
	u64 flags;
};

static void release(struct thread *t, u64 at, u64 len)
{
	if (at && len && at < TASK_SIZE && at + len > at)
		dbt_unprotect(&t->dbt, at, min_u64(len, TASK_SIZE - at));
}

static void release_vectors(struct thread *t, u64 at, u64 n)
{
	struct vector v;

	for (u64 i = 0; i < n && i < VECTORS_MAX; i++) {
		if (guest_read(&v, at + i * sizeof(v), sizeof(v)))
			return;
		release(t, v.base, v.len);
	}
}

static void release_message(struct thread *t, u64 at)
{
	struct message m;

	if (guest_read(&m, at, sizeof(m)))
		return;
	release(t, at, sizeof(m));
	release(t, m.name, ADDRESS_SIZE);
	release(t, m.control, m.control_len);
	release_vectors(t, m.vectors, m.nr_vectors);
}

/* Reads that are only begun now: the kernel meets the buffers later, and tells nobody but the result. */
static void release_iocbs(struct thread *t, u64 at, u64 n)
{
	struct iocb cb;
	u64 where;

	for (u64 i = 0; i < n && i < IOCBS_MAX; i++) {
		if (guest_read(&where, at + i * sizeof(where), sizeof(where)) ||
		    guest_read(&cb, where, sizeof(cb)))
			return;
		if (cb.aio_lio_opcode == IOCB_CMD_PREAD)
			release(t, cb.aio_buf, cb.aio_nbytes);
		else if (cb.aio_lio_opcode == IOCB_CMD_PREADV)
			release_vectors(t, cb.aio_buf, cb.aio_nbytes);
	}
}

void fill_release(struct thread *t, u64 nr)
{
	u64 a[6];

	for (u32 i = 0; i < 6; i++)
		a[i] = guest_arg(t, i);
	switch (nr) {
	case __NR_read:
	case __NR_pread64:
	case __NR_getdents64:
	case __NR_getdents: release(t, a[1], a[2]); break;
	case __NR_getrandom: release(t, a[0], a[1]); break;
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_process_vm_readv: release_vectors(t, a[1], a[2]); break;
	case __NR_recvfrom:
		release(t, a[1], a[2]);
		release(t, a[4], ADDRESS_SIZE);
		release(t, a[5], 4);
		break;
	case __NR_recvmsg: release_message(t, a[1]); break;
	case __NR_recvmmsg:
		/* Each message is followed by its length, in 8 bytes. */
		for (u64 i = 0; i < (u32)a[2] && i < MESSAGES_MAX; i++)
			release_message(t, a[1] + i * (sizeof(struct message) + 8));
		release(t, a[1], min_u64((u32)a[2], MESSAGES_MAX) * (sizeof(struct message) + 8));
		break;
	case __NR_accept:
	case __NR_accept4:
		release(t, a[1], ADDRESS_SIZE);
		release(t, a[2], 4);
		break;
	case __NR_msgrcv: release(t, a[1], a[2] + 8); break;
	case __NR_mq_timedreceive:
		release(t, a[1], a[2]);
		release(t, a[3], 4);
		break;
	case __NR_io_submit: release_iocbs(t, a[2], a[1]); break;
	case __NR_io_getevents:
	case __NR_io_pgetevents: release(t, a[3], (u64)(u32)a[2] * 32); break;
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2: release(t, a[1], (u64)(u32)a[2] * 12); break;
	case __NR_wait4:
		release(t, a[1], 4);
		release(t, a[3], 144);
		break;
	case __NR_waitid:
		release(t, a[2], sizeof(siginfo_t));
		release(t, a[4], 144);
		break;
	case __NR_rt_sigtimedwait: release(t, a[1], sizeof(siginfo_t)); break;
	default: break;
	}
}
