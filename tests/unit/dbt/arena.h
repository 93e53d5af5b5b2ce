/*
 * PURPOSE: a place for a few instructions, what surrounds them, and running them natively and as
 * the guest. One thread.
 *
 * Around the slot: the landings, which the code may jump to (0 is where it ends by itself), four
 * before code that uses all flags and 2 and 4 before code that replaces them; 3 and 4 lie before
 * the slot. The data begins with 1 KB of numbers; ARENA_TABLE has the landings' addresses, and so
 * has every word of the stack, which rsp mostly points into. The rest is zero.
 */
#ifndef UNIT_DBT_ARENA_H
#define UNIT_DBT_ARENA_H

/* Offsets from the slot. */
#define ARENA_SLOT_SIZE 256
#define ARENA_LANDING_0 256
#define ARENA_LANDING_1 320
#define ARENA_LANDING_2 384
#define ARENA_LANDING_3 -64
#define ARENA_LANDING_4 -128
#define ARENA_DATA      3072

/* Offsets in the data. */
#define ARENA_TABLE     0x2f00
#define ARENA_STACK     0x3000
#define ARENA_DATA_SIZE 0x4000

#ifndef __ASSEMBLER__
#include "base/types.h"

struct arena;

/*
 * Code and data near @at (0: wherever); the first call also starts the translator. @exec_flags:
 * DBT_EXEC_* NULL if @at is lower than we may map anything.
 */
/*
 * Whether what code does natively is what a CPU does. A kernel that is itself a program of its
 * hypervisor's has ways of its own with GS bases, system calls and single steps: it forgets a base
 * in the upper half at the next call.
 */
bool arena_is_a_cpu(void);

struct arena *arena_new(u64 at, u32 exec_flags);
/* Where to write the code, at most ARENA_SLOT_SIZE bytes. */
u8 *arena_slot(struct arena *a);
u64 arena_data(const struct arena *a);
/* What is counted from now on: DBT_MASK_* */
void arena_mask(u32 mask);
/*
 * Runs the @len bytes in the slot natively, and @times as the guest, from a state that @seed
 * decides; GS base is the data if @gs, rcx and r9 are then 64, rdx and r10 16, and vectors with
 * even numbers hold small indexes. rbp and r13 are less than 256 and of either sign. Returns what
 * differs afterwards, or NULL. *@sig is the signal it gave natively, or 0.
 *
 * After a fault, flags that are dead are not compared: doc/translator.md.
 */
const char *arena_compare(struct arena *a, unsigned int len, u64 seed, bool gs, u32 times,
			  int *sig);
#endif

#endif
