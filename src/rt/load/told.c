#include "rt/load/told.h"

#include "abi/meter.h"

#include <linux/bpf_common.h>
#include <linux/errno.h>
#include <linux/filter.h>

#include "sys/string.h"

bool told_check(struct rt_control *c, size_t size)
{
	if (size < sizeof(*c) || c->magic != CONTROL_MAGIC || c->version != CONTROL_VERSION ||
	    c->seccomp_len > size - sizeof(*c) || c->seccomp_len > CONTROL_FILTERS ||
	    (c->meter >= SEGMENT_SLOTS && c->meter != ~0u))
		return false;
	c->comm[sizeof(c->comm) - 1] = '\0';
	c->exe[sizeof(c->exe) - 1] = '\0';
	c->execfn[sizeof(c->execfn) - 1] = '\0';
	return true;
}

int told_filter(const u8 *filters, size_t len, size_t *at, struct told_filter *f)
{
	size_t left = len - *at;
	u32 head;

	if (!left)
		return 0;
	if (left < sizeof(head))
		return -EINVAL;
	memcpy(&head, filters + *at, sizeof(head));
	left -= sizeof(head);
	f->insns = head & ~(u32)TOLD_FLAGS;
	f->flags = head & TOLD_FLAGS;
	if (!f->insns || f->insns > BPF_MAXINSNS || f->insns > left / sizeof(struct sock_filter))
		return -EINVAL;
	f->code = filters + *at + sizeof(head);
	*at += sizeof(head) + f->insns * sizeof(struct sock_filter);
	return 1;
}
