/*
 * PURPOSE: the registers of the virtual PMU: one page of shared memory per thread, in which translated
 * code counts what it retires. The thread is the only writer of its page; whoever started it (a
 * session, or `anyperf run --count`) reads along with plain loads and trusts nothing it finds there.
 * Shapes only. The page outlives its thread, so a thread that is killed leaves its counts behind.
 *
 * A quantity is spread over METER_LANES words: blocks take lanes in turn, because back-to-back
 * increments of one word wait for each other in the store buffer. Its value is the sum over the lanes,
 * modulo 2^64; METER_QUANTITIES words of one lane share a cache line.
 *
 * Counters run free: a page is never zeroed while its memory exists. A thread that takes over the
 * page of one that has exited goes on counting from there, so the sum over all pages is the truth at
 * every instant, whatever dies when; who wants one thread's share subtracts the values at its start,
 * which the page keeps in base[].
 */
#ifndef ABI_METER_H
#define ABI_METER_H

#include "base/types.h"

#define METER_LANES 16u
#define METER_SIZE  4096u

enum meter_quantity {
	METER_INSTRUCTIONS, /* user instructions retired; a REP string instruction is one */
	METER_BRANCHES,     /* all retired branch instructions */
	METER_CONDITIONAL,  /* jcc, loop, jrcxz */
	METER_TAKEN,        /* conditional ones that were taken */
	METER_CALLS,
	METER_RETURNS,
	METER_INDIRECT, /* jumps and calls through a register or memory; returns are not */
	METER_SPARE,    /* keeps a lane one cache line; always 0 */
	METER_QUANTITIES,
};

enum meter_state {
	METER_FREE,    /* never used, or its thread exited and another may take it over */
	METER_RUNNING, /* its thread exists, as far as the page's writer could tell */
	METER_EXITED,  /* its thread exited and the page is kept for the report */
};

struct meter {
	u64 count[METER_LANES][METER_QUANTITIES];

	u64 base[METER_QUANTITIES]; /* sums when this thread took the page */
	u32 state;                  /* enum meter_state */
	u32 pid;                    /* thread group id, in the pid namespace of the thread */
	u32 tid;
	u32 ppid;
	u64 start;      /* CLOCK_MONOTONIC ns when the thread took the page */
	u64 end;        /* when it left; 0 while it runs or if it was killed */
	u32 exit_code;  /* as wait(2) encodes it, once the thread's process left by exit(2) */
	u32 exited;     /* exit_code is valid */
	u32 execs;      /* how many programs the process has become before this one */
	u32 watch;      /* the session's: enum wire_watch, what it wants to be told; see wire.h */
	u64 cpu_time;   /* CLOCK_THREAD_CPUTIME_ID at its end, if it was watched */
	char comm[16];  /* of the thread, as PR_GET_NAME says */
	char exe[2048]; /* what /proc/PID/exe must say: of the first thread; "" in others */
};

_Static_assert(sizeof(struct meter) <= METER_SIZE, "a meter is one page");

static inline u64 meter_sum(const struct meter *m, enum meter_quantity q)
{
	u64 sum = 0;

	for (u32 lane = 0; lane < METER_LANES; lane++)
		sum += __atomic_load_n(&m->count[lane][q], __ATOMIC_RELAXED);
	return sum;
}

/*
 * The tree of processes below one `anyperf run`: a sealed sparse memfd that every runtime of the tree
 * inherits. Page 0 is this header, page 1 + i is meter i.
 */
#define METER_TREE_MAGIC 0x4545525450414eull /* "NAPTREE" */
#define METER_TREE_SLOTS 262144u

enum meter_tree_flags {
	METER_TREE_KEEP = 1,   /* an exited thread's page stays its own: per-thread report wanted */
	METER_TREE_STRICT = 2, /* programs that cannot be run are refused, not run uncounted */
	METER_TREE_CHECK = 4,  /* the translator verifies its invariants */
	METER_TREE_VERBOSE = 8,
};

/* A program that ran natively; what it and its children did is in no count. */
struct meter_uncounted {
	u32 pid;
	u32 ready; /* written last */
	char path[200];
	char why[48];
};

#define METER_TREE_UNCOUNTED 12u
#define METER_TREE_FREED     64u

struct meter_tree {
	u64 magic;
	u32 flags;    /* enum meter_tree_flags; set by the creator */
	u32 cache_mb; /* limit of a process's code cache; set by the creator */
	u32 used;     /* atomic: no meter at or above this index was ever taken */
	u32 lost;     /* atomic: threads that found no free meter and counted into meter 0 */
	u32 uncounted_total;
	u32 reserved;
	u32 freed
		[METER_TREE_FREED]; /* atomic: index + 1 of meters that may be taken over; 0: none */
	s32 launch_error;           /* the first program could not be started: -errno */
	char launch_text[256];      /* a sentence why, where the errno says too little */
	struct meter_uncounted uncounted[METER_TREE_UNCOUNTED];
};

_Static_assert(sizeof(struct meter_tree) <= METER_SIZE, "the header is one page");

static inline u64 meter_tree_offset(u32 index)
{
	return ((u64)index + 1) * METER_SIZE;
}

#endif
