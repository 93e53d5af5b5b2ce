/* PURPOSE: a place for one instruction, what surrounds it, and running it natively and as the guest. One thread. */
#ifndef UNIT_DBT_ARENA_H
#define UNIT_DBT_ARENA_H

#include "base/types.h"

struct arena;

/* Code and data near @at (0: wherever); the first call also starts the translator. */
struct arena *arena_new(u64 at);
/* Where to write the instruction, at most 15 bytes. */
u8 *arena_slot(struct arena *a);
/* 1 KB of data within reach of the slot. */
u64 arena_data(const struct arena *a);
/*
 * Runs the @len bytes in the slot both ways from a state that @seed decides; GS base is the data if
 * @gs, rcx and r9 are then 64, rdx and r10 16, and vectors with even numbers hold small indexes. @replaced: flags
 * that do not matter after a fault. Returns what differs afterwards, or NULL. *@sig is the signal it gave natively, or 0.
 */
const char *arena_compare(struct arena *a, unsigned int len, u16 replaced, u64 seed, bool gs,
			  int *sig);

#endif
