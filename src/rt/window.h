/*
 * PURPOSE: where the runtime's own memory is. All of it lies in one window of the address space that
 * programs do not use by themselves: far below mmap's top-down area, far above a PIE's heap, clear of
 * the fixed regions of the sanitizers. The window is not reserved (that would count against the
 * guest's RLIMIT_AS); the system-call layer keeps guests from mapping into it and from seeing it.
 */
#ifndef RT_WINDOW_H
#define RT_WINDOW_H

#include "base/types.h"

#define TASK_SIZE    0x7ffffffff000ul /* 4-level paging; higher addresses only on request */
#define WINDOW_START 0x6a0000000000ul /* the runtime's image; see rt/layout.ld */
#define WINDOW_CACHE 0x6a0010000000ul /* code cache and the translator's tables */
#define WINDOW_OWN   0x6a0200000000ul /* thread areas and what window_map() gives */
#define WINDOW_END   0x6a8000000000ul

static inline bool window_overlaps(u64 start, u64 len)
{
	return start < WINDOW_END && start + len > WINDOW_START;
}

/*
 * Maps @len bytes of zeroed private memory in the window, PROT_NONE if @prot is. Addresses are
 * not given out again before the window has been used up once. NULL without memory.
 */
void *window_map(u64 len, int prot);

#endif
