/*
 * Memory for what a graph has by the hundred thousand: spans, cells, edges. Lines that are used by
 * turns lie in few pages: with pages of 4 KiB the reader of a compiler's paths waits for
 * translations of addresses more than for anything else. Nothing is given back before the graph is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "calls/calls-memory.h"

#define LINE  64u
#define FIRST (256u << 10) /* of a small program: nobody asks for huge pages */
#define HUGE  (2ul << 20)
#define NEXT  (8ul << 20)

struct calls_chunk {
	struct calls_chunk *next;
};

static void add_chunk(struct calls_memory *m)
{
	size_t size = m->chunks ? NEXT : FIRST;
	struct calls_chunk *c = aligned_alloc(m->chunks ? HUGE : LINE, size);

	CHECK(c);
	/* Without them it is slower. */
	if (m->chunks)
		(void)madvise(c, size, MADV_HUGEPAGE);
	c->next = m->chunks;
	m->chunks = c;
	m->at = (u8 *)c + LINE;
	m->left = size - LINE;
}

void *calls_memory_take(struct calls_memory *m, size_t size)
{
	void *p;

	size = ALIGN_UP(size, (size_t)LINE);
	CHECK(size <= FIRST - LINE);
	if (size > m->left)
		add_chunk(m);
	p = m->at;
	m->at += size;
	m->left -= size;
	return memset(p, 0, size);
}

void *calls_memory_put(u8 **at, const void *from, size_t size)
{
	void *to = memcpy(*at, from, size);

	*at += ALIGN_UP(size, (size_t)8);
	return to;
}

void *calls_memory_table(size_t size)
{
	void *p;

	if (size < HUGE) {
		p = calloc(1, size);
		CHECK(p);
		return p;
	}
	size = ALIGN_UP(size, HUGE);
	p = aligned_alloc(HUGE, size);
	CHECK(p);
	(void)madvise(p, size, MADV_HUGEPAGE);
	return memset(p, 0, size);
}

void calls_memory_release(struct calls_memory *m)
{
	while (m->chunks) {
		struct calls_chunk *c = m->chunks;

		m->chunks = c->next;
		free(c);
	}
	*m = (struct calls_memory){0};
}
