/*
 * PURPOSE: one pass over the fields of a record, in either direction. A description such as
 *
 *	code_u64(c, &lost->id);
 *	code_u64(c, &lost->lost);
 *
 * reads the two fields from bytes, writes them to bytes, or adds up their size, as the codec is
 * set. So each layout is written down once, and the encoder cannot but be the decoder's inverse.
 *
 * Decoding never steps over the end: a codec that runs short becomes and stays torn, and gives
 * zeros. Encoding changes nothing in the record.
 */
#ifndef RECORD_CODEC_H
#define RECORD_CODEC_H

#include "abi/perf.h"
#include "base/cursor.h"

/* The longest record: header.size has 16 bits, and it is a multiple of 8 [SAMP-23]. */
#define RECORD_MAX 65528

enum codec_op { CODEC_DECODE, CODEC_ENCODE, CODEC_SIZE };

struct codec {
	enum codec_op op;
	struct cursor in; /* DECODE */
	u8 *out;     /* ENCODE: where the next byte goes; SIZE has seen to it that there is room */
	size_t size; /* SIZE: bytes so far */
	const char *part; /* DECODE: what to say if the field at hand does not fit */
	const char *why;  /* DECODE: the first thing found wrong; NULL: nothing so far */
};

#define CODEC_PART(c, what) ((c)->part = what " does not fit into it")

/* How many are set. Not the builtin, which is libgcc's on old CPUs: the guest world has none. */
static inline u32 count_bits(u64 bits)
{
	u32 n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

/* DECODE: gives up; everything that follows gives zeros. */
static inline void codec_fail(struct codec *c, const char *why)
{
	if (!c->why)
		c->why = why;
	c->in.torn = true;
}

/* The next @len bytes of the input, or NULL. */
static inline const void *codec_take(struct codec *c, size_t len)
{
	const void *p = cursor_bytes(&c->in, len);

	if (!p)
		codec_fail(c, c->part);
	return p;
}

static inline void codec_put(struct codec *c, const void *from, size_t len)
{
	if (len)
		__builtin_memcpy(c->out, from, len);
	c->out += len;
}

/* @n elements of @each bytes; a number beyond all reason must not wrap round to a small size. */
static inline void codec_grow(struct codec *c, u64 n, size_t each)
{
	c->size += min_u64(n, RECORD_MAX + 1) * each;
}

/* One number. */
#define CODEC_NUMBER(type)                                              \
	static inline void code_##type(struct codec *c, type *v)        \
	{                                                               \
		const void *p;                                          \
                                                                        \
		switch (c->op) {                                        \
		case CODEC_DECODE:                                      \
			p = codec_take(c, sizeof(*v));                  \
			if (p)                                          \
				__builtin_memcpy(v, p, sizeof(*v));     \
			return;                                         \
		case CODEC_ENCODE: codec_put(c, v, sizeof(*v)); return; \
		case CODEC_SIZE: codec_grow(c, 1, sizeof(*v)); return;  \
		}                                                       \
	}

/* @n elements that the record only points to. */
#define CODEC_ELEMENTS(name, type)                                             \
	static inline void code_##name(struct codec *c, const type **p, u64 n) \
	{                                                                      \
		switch (c->op) {                                               \
		case CODEC_DECODE:                                             \
			if (n <= cursor_left(&c->in) / sizeof(**p))            \
				*p = codec_take(c, n * sizeof(**p));           \
			else                                                   \
				codec_fail(c, c->part);                        \
			return;                                                \
		case CODEC_ENCODE: codec_put(c, *p, n * sizeof(**p)); return;  \
		case CODEC_SIZE: codec_grow(c, n, sizeof(**p)); return;        \
		}                                                              \
	}

CODEC_NUMBER(u8)
CODEC_NUMBER(u16)
CODEC_NUMBER(u32)
CODEC_NUMBER(u64)
CODEC_ELEMENTS(bytes, u8)
CODEC_ELEMENTS(words, u64)
CODEC_ELEMENTS(branches, struct perf_branch_entry)
CODEC_ELEMENTS(links, struct perf_ns_link_info)
#undef CODEC_NUMBER
#undef CODEC_ELEMENTS

/* Fewer than 8 bytes that nobody reads and that are written as zeros. */
static inline void code_padding(struct codec *c, size_t len)
{
	static const u8 zeros[8];
	const u8 *skipped = zeros;

	code_bytes(c, &skipped, len);
}

#endif
