/*
 * PURPOSE: what a runtime is told at its start (abi/control.h), as it is read: who executes the
 * runtime's file by himself may tell it anything. Pure.
 */
#ifndef RT_LOAD_TOLD_H
#define RT_LOAD_TOLD_H

#include "abi/control.h"

/*
 * Whether @c, of which @size bytes were read with what is behind it, is one that this runtime
 * understands. Then all texts in it end, and each length lies within.
 */
bool told_check(struct rt_control *c, size_t size);

/* A seccomp filter behind it. */
struct told_filter {
	const u8 *code; /* struct sock_filter, not aligned */
	u32 insns;
	u32 flags; /* enum told_filter_flags */
};

enum told_filter_flags {
	TOLD_NOTIFIES = 1u << 31,
	TOLD_PRCTL = 1u << 30,
	TOLD_LOG = 1u << 29,
	TOLD_FLAGS = TOLD_NOTIFIES | TOLD_PRCTL | TOLD_LOG,
};

/*
 * The one at *@at of @len bytes at @filters, and *@at behind it. 1, 0: there is none left, or
 * -EINVAL: none can be.
 */
int told_filter(const u8 *filters, size_t len, size_t *at, struct told_filter *f);

#endif
