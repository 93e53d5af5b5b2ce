/* What syscall.tbl calls fill=. */
#include "rt/syscall/syscall-fill.h"

#include "rt/mm/guest-mem.h"

#include <linux/aio_abi.h>
#include <linux/socket.h>

#define IOCBS_MAX 4096u

static void release(struct thread *t, u64 at, u64 len)
{
	if (at && len && at < TASK_SIZE && at + len > at)
		dbt_unprotect(&t->dbt, at, min_u64(len, TASK_SIZE - at));
}

static void release_vectors(struct thread *t, u64 at, u64 n)
{
	struct iovec v;

	for (u64 i = 0; i < n && i < UIO_MAXIOV; i++) {
		if (guest_read(&v, at + i * sizeof(v), sizeof(v)))
			return;
		release(t, (u64)v.iov_base, v.iov_len);
	}
}

static void release_message(struct thread *t, u64 at)
{
	struct user_msghdr m;

	if (guest_read(&m, at, sizeof(m)))
		return;
	release(t, at, sizeof(m));
	release(t, (u64)m.msg_name, sizeof(struct __kernel_sockaddr_storage));
	release(t, (u64)m.msg_control, m.msg_controllen);
	release_vectors(t, (u64)m.msg_iov, m.msg_iovlen);
}

static void release_messages(struct thread *t, u64 at, u32 n)
{
	u32 some = (u32)min_u64(n, UIO_MAXIOV);

	for (u32 i = 0; i < some; i++)
		release_message(t, at + i * sizeof(struct mmsghdr));
	release(t, at, some * sizeof(struct mmsghdr));
}

/*
 * These reads are only begun by the call. When the kernel meets the buffers later it can only
 * report EFAULT as the result.
 */
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

static u64 bytes(struct thread *t, const struct syscall_fill *f)
{
	u64 n = f->counted ? guest_arg(t, f->count) : 1;

	/* A number of bytes is a size_t; one of things is an int. */
	return f->more + (f->unit > 1 ? (u32)n : n) * f->unit;
}

void fill_release(struct thread *t, const struct syscall_row *row)
{
	for (u32 i = 0; i < SYSCALL_FILLS; i++) {
		const struct syscall_fill *f = &row->fill[i];
		u64 at = guest_arg(t, f->arg), n = guest_arg(t, f->count);

		switch ((enum syscall_fill_kind)f->kind) {
		case FILL_NONE: return;
		case FILL_BYTES: release(t, at, bytes(t, f)); break;
		case FILL_IOVEC: release_vectors(t, at, n); break;
		case FILL_MSGHDR: release_message(t, at); break;
		case FILL_MMSGHDR: release_messages(t, at, (u32)n); break;
		case FILL_IOCB: release_iocbs(t, at, n); break;
		}
	}
}
