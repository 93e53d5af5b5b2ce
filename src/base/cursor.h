/*
 * PURPOSE: reading outside bytes without ever stepping over their end. A cursor that runs short
 * becomes and stays "torn" and every further take gives zeros, so a decoder checks once, at its
 * end.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include "base/types.h"

struct cursor {
	const u8 *pos;
	const u8 *end; /* one past the last byte; borrowed from the caller */
	bool torn;     /* something was asked for that is not there */
};

static inline struct cursor cursor_over(const void *bytes, size_t len)
{
	/* Nothing may be nowhere, and C has no sum of that. */
	return (struct cursor){.pos = bytes, .end = len ? (const u8 *)bytes + len : bytes};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->pos);
}

/* The next @len bytes in place, or NULL. */
static inline const void *cursor_bytes(struct cursor *c, size_t len)
{
	const u8 *p = c->pos;

	if (c->torn || len > cursor_left(c)) {
		c->torn = true;
		return NULL;
	}
	c->pos += len;
	return p;
}

#define CURSOR_TAKE(bits)                                      \
	static inline u##bits cursor_u##bits(struct cursor *c) \
	{                                                      \
		u##bits v = 0;                                 \
		const void *p = cursor_bytes(c, sizeof(v));    \
                                                               \
		if (p)                                         \
			__builtin_memcpy(&v, p, sizeof(v));    \
		return v;                                      \
	}

CURSOR_TAKE(8)
CURSOR_TAKE(16)
CURSOR_TAKE(32)
CURSOR_TAKE(64)
#undef CURSOR_TAKE

#endif
