/*
 * PURPOSE: memory that is used from its beginning on, one thing behind the other, is filled ahead.
 * A virtual machine may take 30 us for a page fault, and one and a half for each of many pages that
 * it is asked for at once; and faults would be counted as the program's.
 */
#ifndef SYS_FILL_H
#define SYS_FILL_H

#include "sys/kernel.h"

/* Of what is short little is filled for nothing, and of what is long a piece is large. */
#define FILL_MIN  (64ull << 10)
#define FILL_MOST (1ull << 20)

/* Kernels before 5.14 do not know it; then it is filled page by page. */
static inline void fill(const void *at, u64 len)
{
	u64 from = ALIGN_DOWN((u64)at, 4096ul);

	sys_madvise((void *)from, (u64)at + len - from, MADV_POPULATE_WRITE);
}

/* The first @used of @size bytes are about to be used. *@filled: how many are filled; first 0. */
static inline void fill_ahead(const u8 *memory, u64 size, u64 *filled, u64 used)
{
	u64 more = min_u64(max_u64(used / 2, FILL_MIN), FILL_MOST);

	if (used <= *filled)
		return;
	if (*filled + more <= size)
		fill(memory + *filled, more);
	*filled += more;
}

#endif
