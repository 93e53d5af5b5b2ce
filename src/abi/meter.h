/*
 * PURPOSE: the registers of the virtual PMU: a few pages of shared memory per thread, in which
 * translated code counts what it retires. The thread is the only writer of its page; a session
 * reads along with plain loads and trusts nothing it finds there. Shapes only. The page outlives
 * its thread, so a thread that is killed leaves its counts behind.
 *
 * A path through translated code has a class: the vector of what it adds to each quantity. Taking
 * the path adds 1 to the word of its class, so one increment serves all quantities, and words are
 * many, because back-to-back increments of one word wait for each other in the store buffer. What
 * is not counted by class is added to the lanes, of which METER_QUANTITIES words share a cache
 * line. The value of a quantity is the sum of lanes and hits times weights, modulo 2^64.
 *
 * Where a thread has deadlines its words count up from below 0, from minus as much as the thread
 * may execute of the class before it must look at its meter; granted[] is what they are behind.
 * From then on the word is -1, and granted[] counts.
 *
 * Counters run free: a page is never zeroed while its memory exists. A thread that takes over the
 * page of one that has exited goes on counting from there; who wants its share subtracts the values
 * at its start, which the page keeps in base[].
 */
#ifndef ABI_METER_H
#define ABI_METER_H

#include "base/types.h"

#define METER_LANES   16u
#define METER_CLASSES 1024u
#define METER_MODELED 128u
#define METER_SIZE    32768u

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
	u32 run; /* to which command of the tree its thread belongs; runs.h */
	u32 ppid;
	u32 watch;     /* the session's: enum wire_watch, what it wants to be told; see wire.h */
	u64 start;     /* CLOCK_MONOTONIC ns when the thread took the page */
	u64 end;       /* when it left; 0 while it runs or if it was killed */
	u32 exit_code; /* as wait(2) encodes it, once the thread's process left by exit(2) */
	u32 exited;    /* exit_code is valid */
	u32 execs;     /* how many programs the process has become before this one */
	/* CLOCK_THREAD_CPUTIME_ID when it last read an event's times by itself, or ended */
	u64 cpu_time;
	u64 own_switches; /* context switches within calls to the session: not the program's */
	char comm[16];    /* of the thread, as PR_GET_NAME says */
	char exe[2048];   /* what /proc/PID/exe must say: of the first thread; "" in others */

	/* Odd while hits are moved: into the lanes when a new owner comes, by grants. */
	u32 folding;
	u32 traced;  /* a guest of the tree is its process's tracer (ptrace) */
	u32 classes; /* how many classes are in use; weights below are set before that says so */
	/*
	 * Not 0 while the thread is in a system call and so counts nothing, in all quantities; a
	 * number of its own each time: of `parks`, which only grows.
	 */
	u64 parked;
	u64 parks;
	/* The session's, for event snapshots of this thread: wire.h. */
	u64 snapshot_gate;  /* odd while they do not hold */
	u64 snapshot_clock; /* what the thread's clock is at least, for them */
	/*
	 * The session's, of a process that has no memory with it yet: changes when the thread is
	 * to look what is asked of it; trace.h.
	 */
	u32 asked;
	u32 kickable; /* the thread can be made to look by a signal (TRACE_KICK); G */
	u32 grants;   /* not 0: granted[] is to be added to hits[] */
	/*
	 * This class + 1 is being granted something; what it has counted. So a reader of a thread
	 * that was killed meanwhile finds it.
	 */
	u32 moving;
	u64 moving_hits;
	u32 chosen; /* the session's: an event of the model was opened for this thread */
	/* As the session has them, not in a PID namespace of the program's own; 0: not told. */
	u32 told_pid, told_tid, told_ppid;
	u64 hits[METER_CLASSES] __attribute__((aligned(4096)));
	u64 weight[METER_CLASSES]; /* byte q: what one hit adds to quantity q */
	u64 granted[METER_CLASSES];
	/*
	 * What a model of a machine has counted for the thread: enum model_counter of
	 * model/model.h. Runs free as well. Of a thread that runs it is what had been counted by
	 * its last system call, or later.
	 */
	u64 modeled[METER_MODELED] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct meter) == METER_SIZE, "the pages of a meter");
_Static_assert(METER_QUANTITIES <= 8, "a weight has one byte for each");

/* What a report calls the thread. */
struct meter_ids {
	u32 pid, tid, ppid;
};

static inline struct meter_ids meter_ids(const struct meter *m)
{
	if (!__atomic_load_n(&m->told_pid, __ATOMIC_ACQUIRE))
		return (struct meter_ids){m->pid, m->tid, m->ppid};
	return (struct meter_ids){m->told_pid, m->told_tid, m->told_ppid};
}

/* What was counted by class. */
static inline u64 meter_hits(const struct meter *m, u32 class)
{
	u64 hits = __atomic_load_n(&m->hits[class], __ATOMIC_RELAXED);

	if (!__atomic_load_n(&m->grants, __ATOMIC_RELAXED))
		return hits;
	if (__atomic_load_n(&m->moving, __ATOMIC_RELAXED) == class + 1)
		return __atomic_load_n(&m->moving_hits, __ATOMIC_RELAXED);
	return hits + __atomic_load_n(&m->granted[class], __ATOMIC_RELAXED);
}

static inline u64 meter_sum_once(const struct meter *m, enum meter_quantity q)
{
	u32 classes = __atomic_load_n(&m->classes, __ATOMIC_ACQUIRE);
	u64 sum = 0;

	for (u32 lane = 0; lane < METER_LANES; lane++)
		sum += __atomic_load_n(&m->count[lane][q], __ATOMIC_RELAXED);
	for (u32 i = 0; i < classes && i < METER_CLASSES; i++) {
		u64 hits = meter_hits(m, i);

		/* Most threads take few of all paths, and who adds up thousands reads memory. */
		if (hits)
			sum += hits *
			       (__atomic_load_n(&m->weight[i], __ATOMIC_RELAXED) >> (8 * q) & 0xff);
	}
	return sum;
}

/*
 * How long a reader waits for the owner to have moved hits, in looks at one word; how often it
 * begins anew because they were moved meanwhile. An owner moves them for some thousand instructions
 * and counts for many more in between. One that was killed while doing so is not waited for, and
 * one that only pretends costs its reader no more than this.
 */
#define METER_FOLD_LOOKS 4096u
#define METER_FOLD_TRIES 16u

/* A value of `folding` at which nothing is being moved, if one comes soon. */
static inline u32 meter_fold_wait(const struct meter *m, u32 *looks)
{
	u32 folding = __atomic_load_n(&m->folding, __ATOMIC_ACQUIRE);

	while (folding & 1 && *looks) {
		--*looks;
		folding = __atomic_load_n(&m->folding, __ATOMIC_ACQUIRE);
	}
	return folding;
}

/* Since @before was read nothing has been moved. */
static inline bool meter_fold_same(const struct meter *m, u32 before)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with meter_fold_begin() */
	return before == __atomic_load_n(&m->folding, __ATOMIC_RELAXED);
}

static inline u64 meter_sum(const struct meter *m, enum meter_quantity q)
{
	u32 looks = METER_FOLD_LOOKS;
	u64 sum = 0;

	for (u32 tries = 0; tries < METER_FOLD_TRIES; tries++) {
		u32 before = meter_fold_wait(m, &looks);

		sum = meter_sum_once(m, q);
		if (meter_fold_same(m, before))
			break;
	}
	return sum;
}

/*
 * The first @n quantities of a thread that runs. Each word is read once, and a path through code
 * adds to one word for all quantities; so what is counted by class is of the same paths in all
 * sums, whole.
 */
static inline void meter_sums(const struct meter *m, u32 n, u64 *sums)
{
	u32 looks = METER_FOLD_LOOKS;

	for (u32 tries = 0; tries < METER_FOLD_TRIES; tries++) {
		u32 before = meter_fold_wait(m, &looks);
		u32 classes = __atomic_load_n(&m->classes, __ATOMIC_ACQUIRE);

		for (u32 q = 0; q < n; q++) {
			sums[q] = 0;
			for (u32 lane = 0; lane < METER_LANES; lane++)
				sums[q] += __atomic_load_n(&m->count[lane][q], __ATOMIC_RELAXED);
		}
		for (u32 i = 0; i < classes && i < METER_CLASSES; i++) {
			u64 hits = meter_hits(m, i);
			u64 weight;

			if (!hits)
				continue;
			weight = __atomic_load_n(&m->weight[i], __ATOMIC_RELAXED);
			for (u32 q = 0; q < n; q++)
				sums[q] += hits * (weight >> (8 * q) & 0xff);
		}
		if (meter_fold_same(m, before))
			return;
	}
}

/*
 * The owner, around what it does to hits that were counted. An owner before, which was killed
 * meanwhile, may have left the number odd.
 */
static inline void meter_fold_begin(struct meter *m)
{
	__atomic_store_n(&m->folding, (m->folding + 1) | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void meter_fold_end(struct meter *m)
{
	__atomic_store_n(&m->folding, m->folding + 1, __ATOMIC_RELEASE);
}

/* The owner counts nothing from here on; and it may count again. */
static inline void meter_park(struct meter *m)
{
	m->parks++;
	__atomic_store_n(&m->parked, m->parks, __ATOMIC_RELEASE);
}

static inline void meter_unpark(struct meter *m)
{
	__atomic_store_n(&m->parked, 0, __ATOMIC_RELAXED);
	/* Before it counts; mate: guest_thread_sum() in session/task/meters.c. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The owner, which is folding: from now on the word of @class counts up from @hits. */
static inline void meter_set_hits(struct meter *m, u32 class, u64 hits)
{
	u64 was = m->hits[class] + m->granted[class];

	__atomic_store_n(&m->moving_hits, was, __ATOMIC_RELAXED);
	__atomic_store_n(&m->moving, class + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&m->hits[class], hits, __ATOMIC_RELEASE);
	__atomic_store_n(&m->granted[class], was - hits, __ATOMIC_RELEASE);
	__atomic_store_n(&m->moving, 0, __ATOMIC_RELEASE);
}

/*
 * The counter segment of the processes below an `anyperf run`: a sealed sparse memfd that all their
 * runtimes inherit: METER_SIZE bytes of this header, then meter after meter. All of them can write
 * to it, so what is decided beforehand stands elsewhere: run-config.h; and what one is asked for,
 * with what it answers: trace.h.
 */
#define SEGMENT_MAGIC     0x4345525450414eull /* "NAPTREC": changes with the layout */
#define SEGMENT_SLOTS     262144u
#define SEGMENT_SLOTS_MIN 512u

/* `flags` of a struct run_config. */
enum counter_segment_flags {
	SEGMENT_STRICT = 1,        /* programs that cannot be run are refused, not run uncounted */
	SEGMENT_VERIFY = 2,        /* translator and session verify their invariants */
	SEGMENT_DETERMINISTIC = 4, /* what varies from run to run is fixed; see below */
	SEGMENT_EXACT = 8,         /* words of paths lie behind the meters; path-profile.h */
	SEGMENT_TRACED = 16,       /* what is executed is handed out in order; path-trace.h */
	SEGMENT_REQUESTS = 32,     /* client requests of Valgrind's are answered */
	SEGMENT_ACCESSES = 64,     /* with SEGMENT_TRACED: and what it accesses */
	SEGMENT_DATA = 128,        /* modeled events are attributed to data as well */
	SEGMENT_SITES = 256,       /* likewise, and to where that was allocated */
};

/*
 * Nondeterministic sources: what a deterministic run cannot make the same in each run. A runtime
 * sets the bit of those that its program has made use of; the counts of a run without any are those
 * of every other run.
 */
enum nondet_source {
	NONDET_PIDS = 1,       /* getpid(2) and the like */
	NONDET_TIME = 2,       /* the wall clock, or time since boot */
	NONDET_CPU_TIME = 4,   /* CPU clocks, getrusage(2) */
	NONDET_THREADS = 8,    /* tasks that share memory and run side by side */
	NONDET_PROCESSES = 16, /* which of several processes was first */
	NONDET_IO = 32,        /* what came from a socket, pipe, terminal, and how much at a time */
	NONDET_SIGNALS = 64,   /* that arrived while something else was being executed */
	NONDET_MACHINE = 128,  /* what is going on in the machine: /proc, sysinfo(2) */
	NONDET_ADDRESSES = 256,    /* randomization could not be switched off */
	NONDET_CPUS = 512,         /* how many CPUs there are, or may be used */
	NONDET_DIRECTORIES = 1024, /* in what order a directory that is large lists its files */
	NONDET_SOURCES = 11,
};

/* What CPUID shows in a deterministic run. */
enum meter_cpu {
	METER_CPU_HOST, /* the machine's, but for the number of the CPU */
	METER_CPU_V2,   /* the psABI's levels, with caches of a fixed size */
	METER_CPU_V3,
};

enum meter_uncounted_state {
	METER_UNCOUNTED_NONE,
	METER_UNCOUNTED_READY,
	METER_UNCOUNTED_WRITING,
};

/* A program that ran natively; what it and its children did is in no count. */
struct meter_uncounted {
	u32 pid;
	u32 run;   /* as in struct meter; of one that is not open another may take the entry */
	u32 state; /* enum meter_uncounted_state; who makes it WRITING has it */
	char path[200];
	char why[48];
};

#define SEGMENT_UNCOUNTED 12u
#define SEGMENT_FREED     64u

struct counter_segment {
	u64 magic;
	u32 used;   /* atomic: no meter at or above this index was ever taken */
	u32 lost;   /* atomic: threads that found no free meter, and so are not counted */
	u32 nondet; /* atomic: enum nondet_source */
	/*
	 * Atomic: `used` at which to look again for meters whose threads were killed, and whether a
	 * guest has asked for a PID namespace, after which pids in meters say nothing about that.
	 */
	u32 collect_at, namespaces;
	u32 bound;    /* atomic: a guest has called sched_setaffinity(2) */
	u32 measured; /* atomic: a guest has opened a perf event; set by the session */
	/*
	 * Atomic: index + 1 of meters that are METER_FREE, 0: none; hints. Who makes one RUNNING
	 * has it.
	 */
	u32 freed[SEGMENT_FREED];
	struct meter_uncounted uncounted[SEGMENT_UNCOUNTED];
	/* With SEGMENT_EXACT or _TRACED, atomic: the next index of each; how many found none. */
	u32 path_threads, path_spaces, path_lost;
	u32 modeled_profiles; /* likewise, of modeled-profile.h */
	/* With SEGMENT_SITES, atomic: programs in which no allocator is known; the first one's. */
	u32 no_allocator;
	char no_allocator_in[16];
};

_Static_assert(sizeof(struct counter_segment) <= METER_SIZE, "the header has the place of a meter");

/*
 * Notes that page @index is METER_FREE. Where there is no room it is found by its state when many
 * are in use.
 */
static inline void meter_note_freed(struct counter_segment *segment, u32 index)
{
	for (u32 i = 0; i < SEGMENT_FREED; i++) {
		u32 none = 0;

		if (__atomic_compare_exchange_n(&segment->freed[i], &none, index + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
}

static inline u64 segment_offset(u32 index)
{
	return ((u64)index + 1) * METER_SIZE;
}

#endif
