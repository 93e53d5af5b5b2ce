/*
 * PURPOSE: where the runtime's own memory is. All of it lies in one window of the address space that
 * programs do not use by themselves: far below mmap's top-down area, far above a PIE's heap, clear of
 * the fixed regions of the sanitizers. The window is not reserved (that would count against the
 * guest's RLIMIT_AS); the system-call layer keeps guests from mapping into it and from seeing it.
 *
 * All but the code cache: that lies in mmap's area, because translated code has to reach the data of the
 * program and its libraries with 32-bit displacements. It counts as a second window.
 */
#ifndef RT_MM_WINDOW_H
#define RT_MM_WINDOW_H

#include "base/types.h"

#define TASK_SIZE    0x7ffffffff000ul /* 4-level paging; higher addresses only on request */
#define WINDOW_START 0x6a0000000000ul /* the runtime's image; see rt/layout.ld */
#define WINDOW_CACHE 0x6a0010000000ul /* the translator's tables */
#define WINDOW_OWN   0x6a0200000000ul /* thread areas and what window_map() gives */
#define WINDOW_END   0x6a8000000000ul

extern u64 window_code_start, window_code_end; /* the code cache; set once, at the start */

static inline bool window_overlaps(u64 start, u64 len)
{
	return (start < WINDOW_END && start + len > WINDOW_START) ||
	       (start < window_code_end && start + len > window_code_start);
}

/* The lowest part of ours that reaches into [start, end); false if there is none. */
bool window_first(u64 start, u64 end, u64 *ours, u64 *ours_end);

/*
 * Maps @len bytes of zeroed private memory in the window, PROT_NONE if @prot is. Addresses are
 * not given out again before the window has been used up once. NULL without memory.
 */
void *window_map(u64 len, int prot);

#endif
