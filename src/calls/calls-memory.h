/*
 * PURPOSE: where spans, cells, edges and what is worked out of code lie, of which there are many.
 * Nothing is given back by itself.
 */
#ifndef CALLS_CALLS_MEMORY_H
#define CALLS_CALLS_MEMORY_H

#include <stddef.h>

#include "base/types.h"

/* All zero: empty. */
struct calls_memory {
	struct calls_chunk *chunks; /* the newest first; owned */
	u8 *at;
	size_t left;
};

/* All 0, in lines of the cache of its own. */
void *calls_memory_take(struct calls_memory *m, size_t size);
/* Copies @size bytes to @*at, which is a multiple of 8 and is moved behind them to the next one. */
void *calls_memory_put(u8 **at, const void *from, size_t size);
void calls_memory_release(struct calls_memory *m);
/* A table that is looked at all over, all 0; the caller's, for free(). */
void *calls_memory_table(size_t size);

#endif
