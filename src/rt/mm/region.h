/*
 * PURPOSE: the runtime's region, the part of the address space where its own memory is. Programs do
 * not use it by themselves: it is far below mmap's top-down area, far above a PIE's heap, and clear
 * of the fixed addresses of the sanitizers: between MidAppMem of ThreadSanitizer (up to
 * 0x568000000000, 0x5a0000000000 in LLVM 18) and its traces, AddressSanitizer's allocator or
 * MemorySanitizer's origins (from 0x600000000000), inside the latter's app-2. compiler-rt's sources
 * on the platforms of each say so. The region is not reserved, which would count against the
 * guest's RLIMIT_AS; the system-call layer keeps guests from mapping into it and from seeing it.
 *
 * In the region the image is at its link address, since constants of it hold addresses; all else is
 * at a random place.
 *
 * Only where the code cache is executed lies elsewhere, in mmap's area, because translated code has
 * to reach the data of the program and its libraries with 32-bit displacements. It counts as part
 * of the region.
 */
#ifndef RT_MM_REGION_H
#define RT_MM_REGION_H

#include "base/types.h"
#include "rt/arch/x86_64/rt-arch.h"

#define REGION_START  0x5a0000000000ul /* the runtime's image; see rt/layout.ld */
#define REGION_TABLES 0x5a0010000000ul /* the translator's tables */
#define REGION_AREAS  0x5a2000000000ul /* thread areas */
#define REGION_OWN    0x5a8000000000ul /* what region_map() gives */
#define REGION_CODE   0x5ab000000000ul /* where translated code is written */
#define REGION_END    0x5b0000000000ul

extern u64 region_code_start, region_code_end; /* the code cache; set once, at the start */

static inline bool region_overlaps(u64 start, u64 len)
{
	return (start < REGION_END && start + len > REGION_START) ||
	       (start < region_code_end && start + len > region_code_start);
}

/*
 * Draws where the translator's tables, the code that it writes, areas of threads, and what
 * region_map() gives from now on will be. Without it they are at the same place in each run.
 */
void region_randomize(void);

/* Where the translator's tables are to be: @step is any number. */
void region_tables_at(u64 step);
/* Where the translator's tables belong, and where it writes code. */
u64 region_tables(void);
u64 region_code_write(void);

/* The lowest part of ours that reaches into [start, end); false if there is none. */
bool region_first(u64 start, u64 end, u64 *ours, u64 *ours_end);

/*
 * Maps @len bytes of zeroed private memory in the region. Addresses are not given out again before
 * the region has been used up once. NULL without memory.
 */
void *region_map(u64 len);
/* The same, which forks share with their parents. */
void *region_map_shared(u64 len);
/* What region_map() has given for @len. */
void region_unmap(void *at, u64 len);

/*
 * The same for the area of a thread, with @room bytes of addresses, as for all others, that nothing
 * else is given.
 */
void *region_map_area(u64 len, u64 room);

/* The same with @len bytes of @fd from @offset on, shared; and with no access if @fd is -1. */
void *region_map_file(u64 len, int fd, u64 offset);
void region_unmap_file(void *at, u64 len);

/*
 * Maps at @at, over whatever is there, with @flags of mmap(2) besides: for the runtime, which may
 * when the guest may not. As sys_mmap(); what it takes is to be told to limits_ours(). It is
 * dbt_ops.map_at, too.
 */
long region_map_at(u64 at, u64 len, int prot, int flags, int fd, u64 offset);
/* Of struct dbt_ops. */
void region_takes(s64 bytes);
/* dbt_ops.map: tables of the translator. */
long region_map_tables(u64 at, u64 len);

/*
 * Makes what is mapped of a file at [at, at + len) present, to be read: a fault for each page would
 * cost more, and count as the program's.
 */
void region_populate_file(u64 at, u64 len);

/* What of our image counts against the guest's limits: tells limits_ours(). */
void region_count_image(void);

/*
 * Makes present all of our image and the part of the first stack that is needed, at little more
 * than the cost of one fault. Faults that come later would be counted as the program's. A forked
 * child needs it too: of files' pages it has nothing, and what it writes is its parent's at first.
 */
void image_populate(void);

#endif
