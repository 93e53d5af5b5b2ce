/*
 * PURPOSE: memory behind which nothing is mapped, so that a target that reads or writes too far
 * faults. It is kept from one input to the next.
 */
#ifndef FUZZ_AT_THE_END_H
#define FUZZ_AT_THE_END_H

#include <sys/mman.h>

#include "base/check.h"
#include "base/types.h"

/* @size bytes of 0, most of which take no memory until they are written to. */
static inline void *at_the_end(size_t size)
{
	size_t page = 4096, room = ALIGN_UP(size, page);
	u8 *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK(!munmap(p + room, page));
	return p + room - size;
}

#endif
