/*
 * PURPOSE: functions that give memory to a program or take it back, by their names, and what their
 * arguments mean.
 */
#ifndef RT_TASK_ALLOC_NAMES_H
#define RT_TASK_ALLOC_NAMES_H

#include "base/types.h"

enum alloc_kind {
	ALLOC_NONE,
	ALLOC_WRAPS,         /* calls another of these */
	ALLOC_SIZE,          /* (size): malloc */
	ALLOC_ITEMS,         /* (number, size): calloc */
	ALLOC_ALIGNED,       /* (alignment, size): aligned_alloc */
	ALLOC_OUT,           /* (where to put the address, alignment, size): posix_memalign */
	ALLOC_AGAIN,         /* (block, size): realloc */
	ALLOC_AGAIN_OF,      /* (block, number, size): reallocarray */
	ALLOC_AGAIN_ALIGNED, /* (block, its size, alignment, size): __rust_realloc */
	ALLOC_FREES,         /* (block): free */
};

enum alloc_kind alloc_kind_of(const char *name);

#endif
