/*
 * PURPOSE: the exact profile of modeled events: how many of each event each instruction has caused,
 * and if that is wanted with which data. Shapes only.
 *
 * Each thread that feeds a model has one, beside its words of paths (path-profile.h) and like them
 * in the counter segment, so who is killed leaves it behind. Who counts writes, and nobody else. A
 * reader believes no number that it finds there.
 */
#ifndef ABI_MODELED_PROFILE_H
#define ABI_MODELED_PROFILE_H

#include "abi/path-profile.h"
#include "abi/run-config.h"

#define MODELED_PROFILE_MAGIC 0x3150444f4d4e41ull /* "ANMODP1": changes with the shapes */
#define MODELED_PLACES        (1u << 20)          /* most places of a thread */
#define MODELED_INDEX         (1u << 21)
#define MODELED_PROBES        4096u /* entries at most that a place may lie behind its own */

/*
 * Of an address of data: the data is in a block that the program has got from its allocator, and
 * the rest is where it has asked for that: where the function returns to that gave it.
 */
#define MODELED_SITE BIT(62)

/* Events of one kind at one place. */
struct modeled_place {
	u64 at;   /* the instruction; with PATH_PART a path_part(), whose cost is all of theirs */
	u64 addr; /* of the data, or of what it is near to; 0: not wanted, or none */
	u64 count;
	u32 event; /* which of run_config.profiled[] */
	u32 reserved;
};

struct modeled_profile {
	u64 magic;
	u32 space; /* whose paths are meant: its index */
	u32 run;   /* as in struct meter */
	u32 pid, tid;
	u64 start; /* CLOCK_MONOTONIC, ns */
	u64 stack; /* where the thread's stack pointer was at first */
	u32 used;  /* of place[] */
	u32 reserved;
	u64 unplaced[PROFILED_EVENTS]; /* of each event those for which there was no room */
	u8 pad[4096 - 48 - PROFILED_EVENTS * sizeof(u64)];
	u32 index[MODELED_INDEX]; /* of place[], + 1; 0: none */
	struct modeled_place place[MODELED_PLACES];
};

_Static_assert(offsetof(struct modeled_profile, index) == 4096, "the head of a profile");

/* They lie behind the spaces. An index is given away once. */
#define MODELED_PROFILES     PATH_THREADS
#define MODELED_PROFILE_ROOM (64ull << 20)

_Static_assert(sizeof(struct modeled_profile) <= MODELED_PROFILE_ROOM, "its place");

/* That of index MODELED_PROFILES is the end. */
static inline u64 modeled_profile_offset(u32 index)
{
	return path_space_offset(PATH_SPACES) + index * MODELED_PROFILE_ROOM;
}

#endif
