/*
 * PURPOSE: what reading one's own counters needs of the CPU. src/lib/arch/<cpu>/pmc.c has the
 * instructions; arch/generic/ says that there are none, and read(2) is used.
 */
#ifndef LIB_COUNT_PMC_H
#define LIB_COUNT_PMC_H

#include "base/types.h"

/* Whether ap__pmc_read() can work at all on this CPU. */
bool ap__pmc_usable(void);

/*
 * Hardware counter @index - 1 as the user page numbers it; bits above pmc_width are anything.
 * Faults unless the page said, under an unchanged lock, that the counter may be read [PAGE-03,
 * ARM-13].
 */
u64 ap__pmc_read(u32 index);

/* The clock that the page's time fields are about: TSC, or arm64's virtual counter [PAGE-09]. */
u64 ap__pmc_clock(void);

#endif
