/*
 * PURPOSE: blocks of memory that a program has got from its allocator, by address, and where it has
 * asked for each. A treap: a search tree by address and a heap by a hash of it, so it is balanced
 * whatever comes, and the same each time.
 *
 * Pure. The caller has the memory, and whoever shares it has the caller's lock.
 */
#ifndef RT_TASK_ALLOC_BLOCKS_H
#define RT_TASK_ALLOC_BLOCKS_H

#include "base/types.h"

struct alloc_block {
	u64 start, size, site;
	u32 left, right; /* indices of others; 0: none */
	u32 number;      /* that of no other block in this tree */
};

struct alloc_blocks {
	struct alloc_block *block; /* [0] is not used */
	u32 room, used;            /* of block[] */
	u32 root, unused;          /* the first of those that are not used any more, by `right` */
	u32 numbers;
};

/*
 * The program has it from here on. What overlaps it has been given back without our knowledge, and
 * is dropped. False: there is no room. @size 0 counts as 1.
 */
bool alloc_blocks_add(struct alloc_blocks *b, u64 start, u64 size, u64 site);

/* That in which @addr is, until something is added or removed; NULL: none. */
const struct alloc_block *alloc_blocks_find(const struct alloc_blocks *b, u64 addr);

/* That which begins at @start, if there is one, and it has this number (0: whichever). */
void alloc_blocks_remove(struct alloc_blocks *b, u64 start, u32 number);

/* All of it goes on in memory that is larger. */
void alloc_blocks_move(struct alloc_blocks *b, struct alloc_block *to, u32 room);

#endif
