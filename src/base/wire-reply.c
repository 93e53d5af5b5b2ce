#include "base/wire-reply.h"

#include <asm/errno.h>
#include <linux/perf_event.h>

#define ERRNO_MOST 4095

/* What an ioctl stores lies in the first words of what its argument points to. */
static bool is_stored(const struct wire_reply *r, u64 cmd)
{
	if (!r->len)
		return true;
	if (cmd != PERF_EVENT_IOC_ID && cmd != PERF_EVENT_IOC_QUERY_BPF &&
	    cmd != PERF_EVENT_IOC_MODIFY_ATTRIBUTES)
		return false;
	return r->len <= sizeof(u64) && r->result.ioctl.offset <= sizeof(u64) - r->len;
}

static bool is_event(const struct wire_event_result *e)
{
	return e->handle != WIRE_NO_EVENT && e->handle != WIRE_BAD_EVENT &&
	       e->snapshot <= WIRE_SNAPSHOTS;
}

/* What is no errno. */
static bool is_success(const struct wire_reply *r, u32 op, u64 asked)
{
	bool has_fd = r->flags & WIRE_REPLY_FD;

	switch (op) {
	case WIRE_OP_OPEN: return !r->ret && has_fd && is_event(&r->result.event);
	case WIRE_OP_LOOKUP: return r->ret == 1 || (!r->ret && is_event(&r->result.event));
	case WIRE_OP_READ:
		return r->ret <= (s64)WIRE_DATA && (u64)r->ret <= asked && (u64)r->ret == r->len;
	case WIRE_OP_IOCTL: return r->ret <= 0x7fffffff && is_stored(r, asked);
	case WIRE_OP_MMAP: return r->ret <= 1 && has_fd;
	case WIRE_OP_TRACE: return !r->ret && has_fd;
	case WIRE_OP_POLL: return r->ret <= 0xffff;
	case WIRE_OP_FORK: return r->ret >= 1 && r->ret <= 0x7fffffff;
	case WIRE_OP_VIEW: return !r->ret && r->len > 1 && r->len <= WIRE_ROOT;
	case WIRE_OP_SYSCTL: return r->ret <= (s64)WIRE_DATA;
	case WIRE_OP_ASYNC:
		return !(r->ret & ~(s64)(WIRE_ASYNC_HAS | WIRE_ASYNC_BYTES | WIRE_ASYNC_HUP));
	case WIRE_OP_HANGUP: return r->ret <= 1;
	default: return !r->ret;
	}
}

/* A call that failed may store something too: the size of an attr. */
static bool is_failure(const struct wire_reply *r, u32 op, u64 asked)
{
	if (r->ret < -ERRNO_MOST)
		return false;
	if (op == WIRE_OP_OPEN)
		return r->result.open_refusal.attr_size <= 4096;
	return op != WIRE_OP_IOCTL || is_stored(r, asked);
}

bool wire_reply_take(struct wire_reply *reply, const struct wire_slot *slot, u32 op, u64 asked)
{
	reply->ret = __atomic_load_n(&slot->ret, __ATOMIC_RELAXED);
	reply->flags = __atomic_load_n(&slot->reply_flags, __ATOMIC_RELAXED);
	reply->len = __atomic_load_n(&slot->reply_len, __ATOMIC_RELAXED);
	for (u32 i = 0; i < ARRAY_SIZE(reply->result.words); i++)
		reply->result.words[i] = __atomic_load_n(&slot->result.words[i], __ATOMIC_RELAXED);
	if (reply->len <= WIRE_DATA &&
	    (reply->ret < 0 ? is_failure(reply, op, asked) : is_success(reply, op, asked)))
		return true;
	*reply = (struct wire_reply){.ret = -EPROTO};
	return false;
}
