/*
 * PURPOSE: what the files of the translator share of a thread that runs: the deadlines and places
 * at which it stops, the paths and branches that it tells of. What it executes is in cache-priv.h,
 * with the lock that guards this, too.
 */
#ifndef DBT_RUN_PRIV_H
#define DBT_RUN_PRIV_H

#include "dbt/cache-priv.h"

/*
 * deadline.c. Deadlines of threads: how much a thread may still run is measured at its meter, and
 * granted to the classes of paths that it takes. Near a deadline the thread executes exact code, in
 * which each instruction looks whether it may begin.
 */
enum deadline_state {
	DEADLINE_STALE,    /* something else has been counted, or a deadline set: measure */
	DEADLINE_MEASURED, /* `remaining` holds */
	DEADLINE_GRANTED,  /* the grants hold */
	DEADLINE_EXACT,    /* `left` holds: exact code is to be executed */
};

/*
 * With deadlines superblocks are shorter, so that exact code, which has to be translated as well,
 * begins later.
 */
#define DEADLINE_INSNS_MAX 64u
/* The longest path, and some more: flags that were dead where a path was counted are not then. */
#define DEADLINE_SLACK (DEADLINE_INSNS_MAX + 32u)

/* `index` of a thread's deadline: what comes next is the target of an exit. */
#define DEADLINE_TAKEN 0xffffu

static inline bool cache_has_deadlines(void)
{
	return __atomic_load_n(&cache.mask, __ATOMIC_RELAXED) & DBT_MASK_ANY_DEADLINES;
}

/* The quantity that is granted. */
static inline u32 deadline_quantity(void)
{
	return ((cache.mask & DBT_MASK_ANY_DEADLINES) >> 8) - 1;
}

/* Calls ops.deadline() if one has been reached. Out of the cache, the registers and meter exact. */
void deadline_tell(struct dbt_thread *t);
/* Its meter has nothing that was granted any more. */
void grants_forget(struct dbt_thread *t);
/* With the lock, by any thread, before code counts by it: @class is a new one. */
void grants_new_class(struct dbt_thread *t, u32 class);
/*
 * With the lock, before the thread enters the cache: decides how it goes on, and has the grants or
 * `left` ready. False: a deadline has been reached, which is to be told first.
 */
bool deadline_settle(struct dbt_thread *t);
/*
 * Out of the cache by EXIT_ID_POOL or EXIT_ID_EXACT, before leave_cache(): the registers are
 * exact then. The meter is too, unless `resuming` says that it is ahead, for the thread to go on at
 * resume_pc.
 */
void deadline_left(struct dbt_thread *t);
/* It does not go on there: makes the meter exact. Async-signal-safe. */
void deadline_no_resume(struct dbt_thread *t);

/* With the lock, the thread being out of the cache: CHECK()s what its grants rely on. */
void deadline_verify(const struct dbt_thread *t);

/* With the lock: however much remains, one instruction is executed and then one looks again. */
void deadline_one(struct dbt_thread *t);

/* C code has executed the instruction at @pc, which counts. */
static inline void deadline_retired(struct dbt_thread *t, u64 pc)
{
	t->deadline.from = pc;
	t->deadline.state = DEADLINE_STALE;
}

/*
 * place.c. Places: addresses at which a thread stops before each execution of the instruction
 * there, to tell of it. The block at a place has no instruction, and leaves at once; the dispatcher
 * goes on with another one that passes the place, which no exit leads to.
 */
struct dbt_places {
	u32 nr;
	u64 pc[DBT_PLACES]; /* ascending */
};

extern struct dbt_places places;

bool place_search(u64 pc);

/* With the lock. */
static inline bool place_at(u64 pc)
{
	return unlikely(places.nr) && place_search(pc);
}

/* Out of the cache, at a place: tells of it, unless a deadline is to be told of first. */
void place_reached(struct dbt_thread *t);
/* The thread is out of the cache, which it had entered to pass a place perhaps. */
void place_left(struct dbt_thread *t);
/* With the lock: the form of the block with which the thread goes on, @form otherwise. */
u32 place_form(struct dbt_thread *t, u32 form);

/* path-class.c */
/*
 * The class of paths that add byte q of @weight to quantity q, for each q; ~0u if all classes are
 * taken. The same weight has up to four classes, given in turn, so that paths in a row rarely count
 * in the same word. @part: the weight is one of two that a path adds, because no class is left for
 * their sum.
 */
u32 meter_class(u64 weight, bool part);
void meter_attach(struct dbt_thread *t);

/*
 * path-word.c. Describes a block, with the lock: its place, 0 if there is none or nobody asks; with
 * @details for the trace. Then the number of a path through it.
 */
static inline bool cache_describes_paths(void)
{
	return cache.mask & (DBT_MASK_PATHS | DBT_MASK_TRACE);
}

/* The same of the block that is being translated. */
static inline bool form_describes_paths(void)
{
	return cache.form_mask & (DBT_MASK_PATHS | DBT_MASK_TRACE);
}

/* Whether blocks of @form, of BLOCK_FORMS, describe their paths. */
static inline bool form_is_traced(u32 form)
{
	return !(form & BLOCK_PLAIN) && cache_describes_paths();
}

/* Of the code that @t executes now. */
static inline u32 form_of_thread(const struct dbt_thread *t)
{
	return unlikely(t->untraced) ? BLOCK_PLAIN : 0;
}

/* What the trace wants to know of a block. */
struct path_details {
	const u32 *costs; /* path_cost() of each instruction */
	const u8 *slot_insn;
	const struct path_access *accesses;
	u32 nr_slots, nr_accesses;
	bool memory;  /* accesses are traced */
	bool records; /* by records */
};

u32 path_block_add(const struct block_frag *frags, u32 nr_frags, const struct block_insn *insns,
		   u32 nr_insns, const u64 *targets, u32 nr_targets,
		   const struct path_details *details);
u32 path_add(u32 block, u32 from, u32 upto, bool taken);
/*
 * The thread's words lack instructions [from, upto) of a block (@sign 1), or have them though they
 * have not retired (-1). Async-signal-safe, as the two that follow: the last correction is none
 * yet; it is one now.
 */
void path_correct(struct dbt_thread *t, u32 block, u32 from, u32 upto, s32 sign);
/*
 * The instruction at @pc, which comes next, accesses memory at places that code does not tell: each
 * of them.
 */
void path_elements(struct dbt_thread *t, u64 pc);
void path_element(struct dbt_thread *t, u32 kind, u32 size, u64 addr);
/* @ends elements come next, of one string or of two that the instruction at @pc goes over. */
void path_strings(struct dbt_thread *t, u64 pc, u32 ends, u32 flags);
void path_take_back(struct dbt_thread *t);
void path_correct_again(struct dbt_thread *t);
/* The instruction at @pc has retired, so many times, and is of no path. */
void path_retired(struct dbt_thread *t, u64 pc, s32 times);

/*
 * Instructions from @insn on of the path that goes on, or with @counted that was told last, are not
 * to retire: their records go, and the filter forgets all. Async-signal-safe.
 */
void path_records_drop(struct dbt_thread *t, u32 insn, bool counted);
/* A store to @addr has faulted: where the next record goes if they are full, else 0. */
u64 path_records_full(struct dbt_thread *t, u64 addr);

/* Before @t enters the cache: it can trace. */
void path_trace_begin(struct dbt_thread *t);
/*
 * Code could not write to @addr. If that is behind the trace, hands it over, and returns where the
 * next word goes; else 0. Async-signal-safe.
 */
u64 path_trace_full(struct dbt_thread *t, u64 addr);

/* A value of dbt_thread.handed: dbt_run() goes on without coming back. */
#define DBT_HANDED_RESUME 1u

/* Values of dbt_thread.traced. In TRACE_ENTERING and TRACE_INSIDE the CPU is single-stepping. */
enum trace_state {
	TRACE_NONE,
	TRACE_ENTERING, /* no instruction of the guest has begun since */
	TRACE_INSIDE,   /* one has begun: the next boundary is to be reported */
	TRACE_LEFT,     /* out of the cache, an instruction has retired and has not been reported */
	TRACE_SILENT,   /* out of the cache, with nothing to report */
};

/*
 * branch-ring.c. A ring has pairs of words: where a branch was, with its type in the top byte, and
 * where it went. Code writes it (arch/.../branch-log.c), and numbers of words wrap by their width.
 */
#define BRANCH_RING_AT(i) (DBT_LOG_AT + (i)*256u * 8u)
#define BRANCH_OPEN_AT    BRANCH_RING_AT(DBT_BRANCH_RINGS)
#define BRANCH_TYPE_SHIFT 56

_Static_assert(BRANCH_OPEN_AT + 65536 * 8 == DBT_LOG_AT + DBT_LOG_SIZE, "the log of a thread");

/* What ring @i is of, or with TRACE_OPEN_CALLS whether calls are kept until they return. */
static inline u32 branch_kinds(u64 mask, u32 i)
{
	return (u32)(mask >> (16 + 8 * i)) & 0xfe;
}

static inline bool branch_open_calls(u64 mask)
{
	return mask >> 16 & TRACE_OPEN_CALLS;
}

/* With the lock, before @t enters the cache: its rings are of what is logged now. */
void branch_rings_catch_up(struct dbt_thread *t);
/* A branch that was taken outside of the cache. Async-signal-safe. */
void branch_taken(struct dbt_thread *t, u64 from, u64 to, enum trace_branch_type type);

#endif
