/*
 * PURPOSE: the exact profile: how often each path through translated code was taken. Shapes only.
 *
 * With it on, every path of a superblock has a number, and each thread a word of that number, to
 * which taking the path adds 1. What a path consists of is described once, in the order in which
 * code is translated. So a word is as cheap as that of a class (meter.h), and the count of every
 * single instruction follows from words and descriptions. Nothing is ever taken back or used again:
 * translated code that was thrown away has counted what it has counted.
 *
 *   struct path_space   of a program: descriptions. Threads and vfork children that share memory
 *                       share it; execve begins another one. The child of a fork goes on with the
 *                       numbers of its parent, whose descriptions it does not copy.
 *   struct path_thread  of a thread: its words, and what is not of a whole path: of a path that was
 *                       left by a signal or fault, and of instructions that C code has executed
 *
 * Who counts writes, and nobody else. All of it lies in shared memory, so who is killed leaves it
 * behind. A reader believes no number that it finds there.
 */
#ifndef ABI_PATH_PROFILE_H
#define ABI_PATH_PROFILE_H

#include "abi/meter.h"

#define PATH_MAGIC  0x33485441504e41ull /* "ANPATH3": changes with the shapes */
#define PATH_WORDS  (1u << 20)          /* most paths of a program */
#define PATH_LOG    (64u << 20)         /* most bytes of descriptions */
#define PATH_EXTRAS (1u << 16)
#define PATH_PROBES 64u /* places at most that an extra may lie behind its own */

/*
 * Paths below this number have no description: as many instructions as their number says were
 * executed, of code for which there was no room.
 */
#define PATH_FIRST 256u

/* A path: instructions [from, upto) of a block. All 0: not described yet. */
struct path_entry {
	u32 block; /* its place in the log, in units of 8 bytes */
	u8 from, upto;
	u8 taken; /* the last one is a conditional branch, which was taken */
	u8 known; /* 1 */
};

/* A contiguous run of instructions. */
struct path_frag {
	u64 pc;
	u32 first; /* index of its first instruction */
	u32 reserved;
};

/* A superblock: instructions in order of execution. The first fragment begins with the first. */
struct path_block {
	u16 nr_frags, nr_insns, nr_targets;
	u16 traced; /* enum path_traced: it was made for the trace of paths, path-trace.h */
		    /*
	 * Then: struct path_frag frag[nr_frags]; u64 target[nr_targets], of the direct branches in
	 * order; u8 insn[nr_insns], the length of each in its lower four bits and enum path_insn in
	 * the others. If it is traced, from a multiple of 4 on u32 cost[nr_insns], path_cost() of
	 * each. If its accesses are, from a multiple of 8 on struct path_accesses. Zeros up to a
	 * multiple of 8.
	 */
};

enum path_traced {
	PATH_TRACED = 1,
	PATH_TRACED_ACCESSES, /* as well */
	PATH_TRACED_RECORDS,  /* those that the filter lets through: there are no slots */
};

/*
 * Accesses of memory. Their addresses are made of slots, values of registers that a thread appends
 * to a list of its own when it has come to instruction slot_insn[] of the path; ascending.
 */
struct path_accesses {
	u16 nr_slots, nr_accesses;
	u32 reserved;
	/* Then: u8 slot_insn[nr_slots], up to a multiple of 8; struct path_access[nr_accesses]. */
};

enum path_access_kind {
	PATH_LOAD,
	PATH_STORE,
	PATH_PREFETCH,
	/* Of a string instruction, as many as lie between slots `base` and `index`. */
	PATH_LOADS,
	PATH_STORES,
	/*
	 * A load and a store of which an entry of the trace says where they are, and how large
	 * (PATH_TRACE_ELEMENT): this is for who does not read those.
	 */
	PATH_LOAD_ABOUT,
	PATH_STORE_ABOUT,
};

enum path_access_flags {
	PATH_ADDR32 = 1, /* the sum has 32 bits */
	PATH_FS = 2,     /* and the segment's base is added */
	PATH_GS = 4,
	PATH_BYTE_INDEX = 8, /* of the index only the lowest byte counts */
};

#define PATH_NO_SLOT 0xffffu

/*
 * At disp + slot[base] + (slot[index] << scale). In order; what is loaded and stored is both. With
 * PATH_TRACED_RECORDS `base` and `index` are no slots but the numbers of registers.
 */
struct path_access {
	u64 disp;
	u16 base, index; /* PATH_NO_SLOT: none */
	u16 size;        /* bytes; of a string instruction, of each */
	u8 insn;         /* which of the block */
	u8 kind;         /* enum path_access_kind */
	u8 flags, scale;
	u8 reserved[6];
};

#define PATH_SLOTS_MAX 512u /* of a block */

/*
 * What an instruction costs: enum cost_class of the model, how many loads and stores it has, and
 * what it does with floating-point numbers (floats_work() of the model).
 */
static inline u32 path_cost(u32 class, u32 loads, u32 stores, u32 floats)
{
	return class | loads << 8 | stores << 12 | floats << 16;
}

/* Where the costs of a traced block begin, and where they end, behind the first insn[]. */
static inline u64 path_costs_begin(u32 nr_insns)
{
	return ALIGN_UP((u64)nr_insns, sizeof(u32));
}

static inline u64 path_costs_end(u32 nr_insns)
{
	return path_costs_begin(nr_insns) + nr_insns * sizeof(u32);
}

enum path_insn {
	PATH_PLAIN,
	PATH_COND,
	PATH_JUMP,
	PATH_CALL,
	PATH_CALL_IND,
	PATH_JUMP_IND,
	PATH_RETURN,
	PATH_BRANCH, /* any other that counts as a branch */
};

/* Whether one of the @kind has a target in the description. */
static inline bool path_insn_is_direct(u8 kind)
{
	return kind == PATH_COND || kind == PATH_JUMP || kind == PATH_CALL;
}

/* Code was mapped at @time: blocks from @logged on were described later. Ascending. */
struct path_mark {
	u64 time;   /* CLOCK_MONOTONIC, ns */
	u32 logged; /* bytes of the log by then */
	u32 reserved;
};

#define PATH_MARKS (1u << 16)

struct path_space {
	u64 magic;
	u32 parent; /* index + 1 of the space that this one's process was forked from; 0: none */
	u32 run;    /* as in struct meter */
	/* Numbers and places in the log below these are the parent's. */
	u32 from_path, from_log;
	u32 paths;  /* numbers below this are described */
	u32 logged; /* bytes */
	u32 marks;  /* how many there are; above PATH_MARKS: there was no room for all */
	u32 reserved;
	u8 pad[4096 - 40];
	struct path_entry path[PATH_WORDS];
	u8 log[PATH_LOG];
	struct path_mark mark[PATH_MARKS];
};

/* Executions of one instruction, or of a part of a path, in addition; may be below 0. */
struct path_extra {
	u64 key; /* 0: free; else a pc, or with PATH_PART a path_part() */
	s64 count;
};
#define PATH_PART BIT(63)

/* Instructions [from, upto) of a block. */
static inline u64 path_part(u32 block, u32 from, u32 upto)
{
	return PATH_PART | (u64)block << 16 | from << 8 | upto;
}

struct path_thread {
	u64 magic;
	u32 space; /* its index */
	u32 run;   /* as in struct meter */
	u32 pid, tid;
	u64 start;    /* CLOCK_MONOTONIC, ns */
	s64 unplaced; /* instructions for which there was no room in extra[] */
	u8 pad[4096 - 40];
	struct path_extra extra[PATH_EXTRAS];
	u64 word[PATH_WORDS];
};

_Static_assert(offsetof(struct path_space, path) == 4096, "the head of a space");
_Static_assert(offsetof(struct path_thread, extra) == 4096, "the head of a thread");
_Static_assert(PATH_LOG / 8 <= 1u << 24, "a part fits a key");

/*
 * Where they lie in the counter segment, if it has them (SEGMENT_EXACT): behind the meters, threads
 * and then spaces. An index is given away once.
 */
#define PATH_THREADS     262144u
#define PATH_SPACES      262144u
#define PATH_THREAD_ROOM (16ull << 20)
#define PATH_SPACE_ROOM  (128ull << 20)

_Static_assert(sizeof(struct path_thread) <= PATH_THREAD_ROOM, "its place");
_Static_assert(sizeof(struct path_space) <= PATH_SPACE_ROOM, "its place");

static inline u64 path_thread_offset(u32 index)
{
	return ALIGN_UP(segment_offset(SEGMENT_SLOTS), PATH_THREAD_ROOM) + index * PATH_THREAD_ROOM;
}

/* That of index PATH_SPACES is the end. */
static inline u64 path_space_offset(u32 index)
{
	return path_thread_offset(PATH_THREADS) + index * PATH_SPACE_ROOM;
}

#endif
