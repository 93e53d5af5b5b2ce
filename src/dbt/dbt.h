/*
 * PURPOSE: the interface of the translator. It runs guest code, which is user-mode code of the same
 * CPU, from a code cache and counts what retires. It knows nothing of processes, files, perf, or
 * what a signal means.
 *
 * There is one translator per address space, and one struct dbt_thread per thread that runs guest
 * code. The caller (src/rt, or a unit test) hands in what the translator needs of the world (struct
 * dbt_ops).
 *
 * Locking: one lock guards the code cache, its maps and the executable ranges. Every function here
 * takes it as needed unless its comment says otherwise. None may be called from a signal handler
 * unless it says "async-signal-safe". The holder of the lock must not be interrupted by a handler
 * that calls into the translator. So the runtime calls with its signals blocked, or its handlers
 * only note that a signal is pending while the thread is not in the cache; dbt_recover() is made
 * for that.
 *
 * doc/translator.md states the invariants and which function checks each.
 */
#ifndef DBT_DBT_H
#define DBT_DBT_H

#include "abi/meter.h"
#include "abi/path-profile.h"
#include "abi/path-trace.h"
#include "abi/trace.h"
#include "base/types.h"
#include "dbt/arch/x86_64/dbt-arch.h"

/*
 * The memory of one thread. A register that native code addresses it by holds its base while the
 * thread runs; on x86-64 that is the base of GS:
 *   base - DBT_METER_BELOW   the meter page(s): shared memory, see abi/meter.h
 *   base                     struct dbt_thread, then whatever the runtime keeps for the thread
 *   base + DBT_RING_AT       return addresses, DBT_RING_SIZE bytes, anonymous
 *   base + DBT_GRANTS_AT     what a thread with deadlines was granted, likewise
 *   base + DBT_JUMPS_AT      the jump table, DBT_JUMPS_SIZE bytes, likewise; it grows
 *   base + DBT_WIDE_RING_AT  of CPUs without fast pext: return addresses, as many; of others, what
 *                            a thread that traces in windows has for its windows: a ring and a
 *                            jump table of DBT_WINDOW_JUMPS_SIZE bytes behind it
 *   base + DBT_LOG_AT        taken branches, DBT_LOG_SIZE bytes, likewise
 *   base + DBT_PATHS_AT      words of paths, DBT_PATHS_SIZE bytes: shared memory, see
 *                            abi/path-profile.h; for DBT_MASK_PATHS only
 * The caller maps what lies below DBT_AREA_FIRST at least (NORESERVE suffices behind the base),
 * keeps the rest free for dbt_ops.reach, and sets the register.
 */
#define DBT_METER_BELOW       0x10000
#define DBT_RING_AT           0x10000 /* so the runtime's own part of the block ends here */
#define DBT_RING_SIZE         0x8000
#define DBT_GRANTS_AT         (DBT_RING_AT + DBT_RING_SIZE)
#define DBT_GRANTS_SIZE       0x4000
#define DBT_JUMPS_AT          (DBT_GRANTS_AT + DBT_GRANTS_SIZE)
#define DBT_JUMPS_SIZE        0x80000
#define DBT_WIDE_RING_AT      (DBT_JUMPS_AT + DBT_JUMPS_SIZE)
#define DBT_WINDOW_JUMPS_AT   (DBT_WIDE_RING_AT + DBT_RING_SIZE)
#define DBT_WINDOW_JUMPS_SIZE 0x20000
#define DBT_LOG_AT            (DBT_WIDE_RING_AT + DBT_JUMPS_SIZE)
#define DBT_LOG_SIZE          0x82000
#define DBT_PATHS_AT          (DBT_LOG_AT + DBT_LOG_SIZE)
#define DBT_PATHS_SIZE        sizeof(struct path_thread)
#define DBT_AREA_FIRST        (DBT_JUMPS_AT + 0x4000)

/* Instrumentation mask: a property of the whole code cache. */
#define DBT_MASK_COUNT  BIT(0) /* METER_INSTRUCTIONS and METER_BRANCHES */
#define DBT_MASK_SPLIT  BIT(1) /* the other quantities too */
#define DBT_MASK_ALL    (DBT_MASK_COUNT | DBT_MASK_SPLIT)
#define DBT_MASK_PATHS  BIT(2) /* each path has a word as well; dbt_paths() comes before */
#define DBT_MASK_TRACE  BIT(3) /* paths are traced, in order; dbt_paths() comes before */
#define DBT_MASK_MEMORY BIT(4) /* with DBT_MASK_TRACE: and what addresses of memory are made of */
/*
 * With both, dbt_filter() comes before: records (abi/path-trace.h) in place of slots, of accesses
 * that the filter does not leave out.
 */
#define DBT_MASK_FILTER BIT(7)
/*
 * With DBT_MASK_TRACE: a thread can execute code that traces nothing, from one dbt_trace_on() to
 * the next. Without DBT_MASK_PATHS.
 */
#define DBT_MASK_WINDOWS BIT(5)
/*
 * Threads can be given deadlines (dbt_deadlines()), of quantity @q or, with METER_INSTRUCTIONS, of
 * any. With DBT_MASK_COUNT, and with DBT_MASK_SPLIT if @q is of those.
 */
#define DBT_MASK_DEADLINES(q)  (((u32)(q) + 1) << 8)
#define DBT_MASK_ANY_DEADLINES 0xff00u
/*
 * Taken branches are logged, so that dbt_branches() can tell the last ones of some kinds. There are
 * as many choices of kinds at once as there are rings; dbt_mask_branches() adds one.
 */
#define DBT_BRANCH_RINGS  4u
#define DBT_MASK_BRANCHES 0xffffffff0000ull

/* Flags of dbt_init(). */
#define DBT_VIRTUAL_TIME   BIT(0) /* instructions that read the CPU's clock stop */
#define DBT_VIRTUAL_RANDOM BIT(1) /* instructions that give random numbers stop */
#define DBT_CHECKS         BIT(2) /* what dbt_check() does, every now and then; slow */
#define DBT_BASELINE       BIT(3) /* our own code uses only what every CPU of this kind has */
#define DBT_REQUESTS       BIT(4) /* client requests of Valgrind's stop */
#define DBT_WHOLE_JUMPS    BIT(5) /* jumps keep off ends of lines, as some CPUs like it */
#define DBT_LONG_PATHS     BIT(6) /* where paths alone are traced: they are long, and fewer */

/* Why dbt_run() came back. t->regs is then the exact state at an instruction boundary. */
enum dbt_stop {
	/* The system call has retired and is counted: the pc is after it. */
	DBT_SYSCALL,
	/*
	 * dbt_interrupt() was called or the runtime redirected a signal; nothing else is implied.
	 */
	DBT_INTERRUPTED,
	/*
	 * The pc is not in executable guest memory, or the instruction runs out of it: t->stop_addr
	 * is the first byte that could not be fetched. To be answered as a page fault on fetch is.
	 */
	DBT_NO_EXEC,
	/*
	 * The instruction raises a general protection fault, or we do not run it because it would
	 * leave 64-bit user mode. To be answered with SIGSEGV at it.
	 */
	DBT_REFUSED,
	/*
	 * An instruction that is done in C could not access its memory operand: t->stop_addr, a
	 * write if t->stop_size is not 0. The pc is at it.
	 */
	DBT_PAGE_FAULT,
	/* The same for an address that is not canonical and belongs to the stack: SIGBUS at it. */
	DBT_STACK_FAULT,
	/* For dbt_run() itself: the pc is at a place, dbt_set_places(). */
	DBT_PLACE,
	/* The guest single-steps itself and an instruction has retired: SIGTRAP, TRAP_TRACE. */
	DBT_TRACED,
	/*
	 * Instructions that only this kind of CPU has. The pc is *at* a virtualized one, which is
	 * not counted; the caller sets the registers and calls dbt_retire(), or raises a fault at
	 * it.
	 */
	DBT_ARCH_STOPS,
};

struct dbt_cache;
struct dbt_block;

#define DBT_NO_DEADLINE (~0ull)

/* A thread on its way to a deadline; deadline.c. */
struct dbt_deadline {
	u64 pool;        /* minus what may be taken without a grant; not below 0: look */
	u64 kept;        /* what more may be executed when pool and grants are used up */
	u64 left;        /* instructions that exact code still executes before it leaves */
	u64 from;        /* the last branch of exact code, or instruction done in C */
	u64 resume_pc;   /* where code goes on that has left for the pool */
	u64 target;      /* the guest pc that it is about to branch to, if it has loaded that */
	u32 at;          /* cache offset of the code that has left */
	u32 index;       /* and the instruction of its block that comes next */
	u32 resuming;    /* the meter is ahead of what is at `at` until it goes on */
	u32 resume_code; /* cache offset of the way there */
	u32 granted;     /* how many classes have grants */
	bool at_rest;    /* classes without grants have words that say so */
	bool seen;       /* it is known what each had when they were made */
	u32 state;       /* enum deadline_state */
	u32 quantity;    /* of all its deadlines; METER_QUANTITIES: they are of several */
	bool tracked;    /* `remaining` is exact without a look at the meter */
	bool undone;     /* the path that comes next takes more than can be granted */
	u64 ahead[METER_QUANTITIES];  /* by so much */
	u64 remaining;                /* until the nearest deadline, if the state says so */
	u64 at_sum[METER_QUANTITIES]; /* DBT_NO_DEADLINE: none */
};

/* The last correction of the words of paths; path-word.c. */
struct path_correction {
	u32 block;
	u8 from, upto;
	s8 sign;     /* 0: there was none */
	bool traced; /* the trace has it as its last entry, or is to have it again */
	s16 slots;   /* by which slots_at has moved */
};

#define DBT_FILTER_SETS 512u /* most */

/* The filter of accesses, and what its code is told; arch/.../filter.c. */
struct dbt_filtering {
	u64 addr, upto, what, back, flags;
	u64 saved[5];
	u64 from[2];   /* where a string instruction has begun, also without a filter */
	u64 fs_base;   /* of the CPU's kind; arch_filter_begin() */
	bool is_stale; /* code other than the cache's may have changed it since */
	/*
	 * Of each set minus the line that was accessed, or stored to, last; 0: none. Where two are
	 * known store[] has the last but one, and bit 0 if records say that it is the last one.
	 */
	u64 load[DBT_FILTER_SETS], store[DBT_FILTER_SETS];
};

struct dbt_thread {
	struct dbt_thread *self; /* at the base, so that C code finds the thread */
	struct dbt_regs regs;    /* the guest's, exact while not in the cache */
	struct dbt_arch_thread arch;

	/* Not 0: do not (re-)enter the cache, return DBT_INTERRUPTED. Set by dbt_interrupt(). */
	u32 interrupt;
	/* Set by dbt_recover() when it needs the thread stepped: the next SIGTRAP is ours. */
	u32 stepping;

	/* Of the last stop; see enum dbt_stop. */
	u64 stop_addr;
	u8 stop_len; /* length of the virtualized instruction */
	u8 stop_reg;
	u8 stop_size;
	/* Of DBT_REFUSED: the selector that it is about; 0: about none. Who takes it clears it. */
	u16 stop_selector;

	/* From here on the fields are the translator's own. */
	u64 rt_sp;    /* stack pointer of the C code that entered the cache */
	u64 enter_pc; /* where dbt_enter() jumps to */
	u64 exit_pc;  /* the generated exit path, a constant */
	u64 exit_id;  /* which exit was taken */
	u64 miss_pc;  /* guest target that a lookup did not find */
	u64 jump_pc;  /* where C code enters the cache by an entry */
	u64 pass_pc;  /* a place that was told of and whose instruction comes next; 0: none */
	/* Guest registers that native code uses for something else, by number. */
	u64 spill[DBT_SPILLS] __attribute__((aligned(64)));
	u32 reach;     /* up to where from its base the area is mapped; the caller's at first */
	u64 stack_top; /* the highest stack pointer seen outside, while the ring is small */
	/* One of its ways to find code by addresses; the second one is for windows of a trace. */
	struct dbt_tables {
		u32 jump_mask; /* the bits of a pc that number its slot in the jump table */
		u32 ring_mask; /* the bits of a stack pointer that number its slot in the ring */
		u32 fills;     /* how many slots of the jump table were filled */
	} tables[2];
	u32 in_cache; /* 1 from before the last look at `interrupt` until out of the cache */
	u32 epoch;    /* the cache's epoch that this thread's tables belong to */
	u32 id;       /* for the lock; not 0 */
	u32 handed;   /* what a handler that has redirected the thread asks of dbt_run() */
	u32 traced;   /* enum trace_state: of a guest that steps itself */
	struct dbt_thread *next, *prev; /* all threads, under the lock */
	struct dbt_deadline deadline;
	struct path_correction correction;
	u64 trace_start; /* what ops.trace_map() gave */
	u64 trace_begin; /* in it, where what has not been handed over begins */
	u64 trace_at;    /* address of the next word of the trace; 0: nothing has been traced */
	/* Words after which it is handed over; 0: when it is full. Set by ops.trace(). */
	u32 trace_room;
	bool untraced;   /* dbt_trace_on() */
	u64 slots_start; /* what ops.slots_map() gave */
	u64 slots_at;    /* address of the first slot of the path that the thread is on */
	struct dbt_filtering filter; /* and with it both are of records */
	/* Taken branches; branch-ring.c. */
	u64 logged;                     /* the part of the mask that the rings are of */
	u16 open_calls;                 /* the next word of the ring of open calls */
	u8 branch_at[DBT_BRANCH_RINGS]; /* the next word of each ring */
};

/*
 * What the translator needs of the world. All but kick are called with the translator's lock held.
 */
struct dbt_ops {
	/*
	 * Makes the guest pages [start, start + len) not writable because translated code was read
	 * from them (@protect), or gives them their guest protection back. The pages lie in one
	 * range that was added with DBT_EXEC_WRITABLE. Returns 0 or -errno; on an error the pages'
	 * blocks are checked at each entry instead.
	 */
	int (*protect)(u64 start, u64 len, bool protect);
	/*
	 * Interrupts a thread that may be in the cache with a signal whose handler calls
	 * dbt_recover(). False: it will never run again in this memory. May be NULL when there is
	 * one thread only.
	 */
	bool (*kick)(struct dbt_thread *t);
	/*
	 * Whether the thread with this id will never run again in this memory, as one of another
	 * process that was killed. May be NULL when there are no others.
	 */
	bool (*gone)(u32 id);
	/*
	 * Without the lock, by the thread itself: its meter has just reached a deadline. t->regs is
	 * the state after the instruction that has retired last; that is at dbt_deadline_ip(). Sets
	 * other deadlines. May be NULL if nobody sets any.
	 */
	void (*deadline)(struct dbt_thread *t);
	/*
	 * Without the lock, by the thread itself: it is about to execute the instruction at a
	 * place. May be NULL if there are none.
	 */
	void (*place)(struct dbt_thread *t);
	/*
	 * By the thread itself, which may be in the cache and in a signal handler; the lock may be
	 * held by anybody and is not to be taken: @n words of its trace, to be copied out. Not for
	 * the thread's end; see dbt_trace_flush(). The slots of these words lie from slots_start to
	 * before slots_at; or their records, with those of the path that goes on. May be NULL if
	 * nobody traces.
	 */
	void (*trace)(struct dbt_thread *t, const u32 *words, u32 n);
	/*
	 * By the thread itself, before it traces for the first time: where its trace goes,
	 * PATH_TRACE_SIZE bytes, and a page behind them that cannot be accessed. The memory is the
	 * caller's, who gives it back after dbt_thread_remove(). 0, only with DBT_MASK_WINDOWS:
	 * there is none, and the thread traces nothing until the next dbt_trace_on().
	 */
	u64 (*trace_map)(struct dbt_thread *t);
	/*
	 * Likewise, for DBT_MASK_MEMORY: PATH_SLOTS_SIZE bytes, of which few are ever touched. With
	 * DBT_MASK_FILTER the page PATH_RECORDS_SIZE bytes behind their begin cannot be accessed.
	 */
	u64 (*slots_map)(struct dbt_thread *t);
	/*
	 * The byte at @pc in the file that it is mapped from, if the guest cannot have changed it:
	 * what the guest's code has where the kernel has put a breakpoint instruction. May be NULL.
	 */
	bool (*file_byte)(u64 pc, u8 *byte);
	/*
	 * Maps zeroed memory for the bookkeeping at @at, behind dbt_config.tables_hint, where
	 * nothing is yet: @at or -errno. May be NULL: the translator does it.
	 */
	long (*map)(u64 at, u64 len);
	/*
	 * Maps zeroed memory at the end of @t's area, so that it reaches @upto from the base; true,
	 * and t->reach says so. May be NULL: all of each area is mapped.
	 */
	bool (*reach)(struct dbt_thread *t, u32 upto);
	/*
	 * A new file in memory of @size bytes for code, or -errno; and what maps it: as mmap(2)
	 * with MAP_FIXED. May be NULL, both: the translator does it.
	 */
	int (*code_file)(u64 size);
	long (*map_at)(u64 at, u64 len, int prot, int flags, int fd, u64 offset);
	/* So many more bytes of address space are the translator's. May be NULL. */
	void (*takes)(s64 bytes);
	struct dbt_arch_ops arch;
};

struct dbt_config {
	const struct dbt_ops *ops;
	u64 cache_size; /* bytes of code, 0: 64 MB. Rounded up to 1 MB, at most 1 GB */
	/*
	 * Where to put it, 0: where the kernel likes. Operands that guest code addresses relative
	 * to its pc are reached directly if they are near (x86-64: within 2 GB); others cost a
	 * register.
	 */
	u64 cache_hint;
	/*
	 * Where code is written, in twice as many bytes of addresses that nobody else uses, 0:
	 * where the kernel likes.
	 */
	u64 write_hint;
	u64 tables_hint; /* where to put the bookkeeping, 0: where the kernel likes */
	u32 flags;       /* DBT_VIRTUAL_*, DBT_CHECKS */
	u64 mask;        /* DBT_MASK_* */
	bool later;      /* there may be an image: the cache is made by dbt_begin() */
};

/* Once per address space. -ENOMEM: the cache cannot be mapped. */
must_check int dbt_init(const struct dbt_config *config);
/*
 * After dbt_init() with `later`: makes the cache if no image has. False: there is no memory for it.
 */
must_check bool dbt_begin(struct dbt_thread *t);

/*
 * Makes @t, zero-filled but for what the caller owns, a thread that can run; @id is unique among
 * living threads and not 0 (the tid). The caller has mapped its area. Whoever calls dbt_run() sets
 * the register that holds the base to @t before.
 */
void dbt_thread_add(struct dbt_thread *t, u32 id);
/* @t is not in the cache and never will be again; @me is the id of the calling thread. */
void dbt_thread_remove(struct dbt_thread *t, u32 me);
/*
 * Makes @t, which was removed and has never traced, what dbt_thread_add() takes, as zeroed memory
 * is; but the next thread goes on with its tables, if the cache is still the same.
 */
void dbt_thread_clear(struct dbt_thread *t);
/* Whether the thread with this id has, or has left behind, the lock of the translator. */
bool dbt_lock_held_by(u32 id);

/*
 * Around fork(2): the lock is held from prepare to the parent's or child's call, so the child finds
 * the cache whole. In the child @t is the only thread. (vfork and CLONE_VM children share the
 * translator: they are further threads, to be removed by the parent if they die.)
 */
void dbt_fork_prepare(struct dbt_thread *t);
/* Right before the fork: from now on parent and child can only execute what is in the cache. */
void dbt_fork_share(void);
void dbt_fork_parent(struct dbt_thread *t);
void dbt_fork_child(struct dbt_thread *t, u32 id);
/*
 * Forks tell each other in @told what they have translated: DBT_TOLD_SIZE bytes of zeroed memory
 * that parent and children share, from before the first fork on.
 */
struct dbt_told;
#define DBT_TOLD_SIZE 0x8000u
void dbt_relatives(struct dbt_thread *t, struct dbt_told *told);
/* Before a fork, without the lock: translates that, for the child. */
void dbt_learn(struct dbt_thread *t);
/*
 * Makes the code and its bookkeeping writable now, as far as they are no more than @most bytes:
 * after a fork each page that a new block is put into would be a fault, in both processes.
 */
void dbt_populate(u64 most);

/*
 * Runs the guest from t->regs until the runtime is needed. Called on a stack of the runtime, with
 * the base register set to @t. All state of the guest that is not in t->regs and t->arch is in the
 * CPU, such as the vector registers.
 */
enum dbt_stop dbt_run(struct dbt_thread *t);

/*
 * The system call at @pc, which dbt_run() has counted, is to be executed again and did not count.
 */
void dbt_call_again(struct dbt_thread *t, u64 pc);

/* Counts the virtualized instruction that dbt_run() stopped at, and moves the pc past it. */
void dbt_retire(struct dbt_thread *t);

/*
 * Lets dbt_run() return DBT_INTERRUPTED before the thread executes another guest instruction. If
 * the thread is in the cache a signal must follow whose handler calls dbt_recover(). dbt_run()
 * clears t->interrupt when it returns so. Async-signal-safe, from any thread.
 */
void dbt_interrupt(struct dbt_thread *t);

/*
 * Signals. @uc in the following functions is the struct ucontext_t of a handler that runs on the
 * interrupted thread, on a stack of the runtime, with all signals blocked. Only its general
 * registers, its pc and its flags are touched. All of them are async-signal-safe.
 */
enum dbt_where {
	/*
	 * Not in the cache: the runtime was interrupted. If a signal for the guest is now pending,
	 * call dbt_interrupt() and it will be noticed before the next guest instruction.
	 */
	DBT_IN_RUNTIME,
	/*
	 * t->regs is the guest's state at an instruction boundary. Everything before it is counted
	 * and nothing after it. @uc now resumes in the runtime, where dbt_run() returns
	 * DBT_INTERRUPTED.
	 */
	DBT_AT_BOUNDARY,
	/*
	 * In the middle of a native sequence. @uc now single-steps: return from the handler, and
	 * call again at the SIGTRAP that follows (t->stepping says that it is ours).
	 */
	DBT_STEP,
	/* The write fault was ours and has been dealt with: return from the handler. */
	DBT_RESUME,
};

/* For a signal that is to be delivered to the guest at the next boundary. */
enum dbt_where dbt_recover(struct dbt_thread *t, void *uc);

/*
 * The same for one that the kernel sends on its way back from a page fault of the guest's which it
 * has dealt with: the boundary is in front of the instruction that is to be executed again.
 */
enum dbt_where dbt_touched(struct dbt_thread *t, void *uc);

/*
 * And for one that the CPU has raised behind an access of the guest's: the boundary is the first
 * behind the instruction that has made it.
 */
enum dbt_where dbt_accessed(struct dbt_thread *t, void *uc);

/*
 * Whether what was accessed in front of @uc's pc was so by the translation alone: by a return, of
 * which the reads are the guest's and the writes are not, or by the comparison of a checked block.
 */
bool dbt_is_in_return(const void *uc);
bool dbt_is_in_check(const void *uc);

/*
 * For a synchronous fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP of a breakpoint instruction).
 * @addr is si_addr; @write says whether a write was refused. DBT_AT_BOUNDARY: the pc in t->regs is
 * that of the guest instruction at fault (after it for traps), which is not counted. *@guest_addr
 * is the address to report, which is @addr except where the fault is on the instruction itself.
 * DBT_IN_RUNTIME: a bug, or an access of the runtime's that it guards itself.
 */
enum dbt_where dbt_fault(struct dbt_thread *t, void *uc, u64 addr, bool write, u64 *guest_addr);

/*
 * For a SIGTRAP with TRAP_TRACE while !t->stepping: the guest single-steps itself, and the CPU has
 * trapped after one of our instructions. DBT_AT_BOUNDARY: an instruction of the guest has retired,
 * and t->regs is the state after it. Otherwise there is nothing to report yet: return from the
 * handler.
 */
enum dbt_where dbt_trace(struct dbt_thread *t, void *uc);

/*
 * Whether the guest, which single-steps itself, is to be told of an instruction that has retired on
 * the way out: once. For who has come to a boundary by dbt_recover(); else dbt_run() says so.
 */
bool dbt_take_trace(struct dbt_thread *t);

/*
 * The guest's address of the instruction at @pc of the cache; @pc itself if it lies elsewhere, 0 if
 * the cache has been flushed since. For addresses that the CPU remembers and shows, as the x87 unit
 * does. Called by @t, in a handler or not.
 */
u64 dbt_guest_pc(struct dbt_thread *t, u64 pc);

/* Another process's memory: read() is false if what is asked for is not there. */
struct dbt_foreign {
	bool (*read)(void *ctx, const void *addr, void *to, u64 len);
	void *ctx;
};

/*
 * For a thread of another process that stands still, and whose translator is the same code at the
 * same address: from its native registers in @regs to the guest's. @base is where its struct
 * dbt_thread lies, *@gs what the guest has of it. In the middle of an instruction's native form
 * they are those before the instruction, but for what it has written so far; of a branch rcx, r11
 * and the flags may be those that it uses. False: it is no such thread, or is between two blocks.
 * Takes no lock.
 */
must_check bool dbt_foreign_regs(const struct dbt_foreign *memory, u64 base, struct dbt_regs *regs,
				 u64 *gs);

/*
 * Whether such a thread has faulted at @addr since there is no room for what it traces: dbt_fault()
 * makes some.
 */
bool dbt_foreign_trace_full(const struct dbt_foreign *memory, u64 base, u64 addr);

/* Whether the CPU steps such a thread for its translator (DBT_STEP), and not for the guest. */
bool dbt_foreign_is_stepped(const struct dbt_foreign *memory, u64 base);

/*
 * Whether such a thread, which is at @pc natively, is not amid an instruction's native form, so
 * that dbt_recover() has no need of steps.
 */
bool dbt_foreign_at_boundary(const struct dbt_foreign *memory, u64 base, u64 pc);

/* Whether @pc lies in the code cache. Async-signal-safe. */
bool dbt_in_cache(u64 pc);
/* Where it is; constant after dbt_init(). */
void dbt_code_range(u64 *start, u64 *end);

/*
 * What has been translated, for another process with the same files at the same addresses: image.c.
 * Ranges are private mappings of files that nobody has written to; what they are of is the
 * caller's to know, and stands in the image as it is handed in.
 */
struct dbt_image_range {
	u64 start, end;
};

/* A number for what makes translations differ besides the translator: CPU, flags, mask, size. */
u64 dbt_image_kind(void);

/* Whether what is translated with this mask can be in one. */
bool dbt_image_possible(void);

/* How much an image would take, about, and at most. */
u64 dbt_image_used(void);
/* The same without what is new and is not of @ranges, which lies in the image and is of no use. */
u64 dbt_image_useful(struct dbt_thread *t, const struct dbt_image_range *ranges, u32 n);
u64 dbt_image_most(void);
/*
 * Before it is saved, while @t counts still: has in it what the process has executed and could not
 * keep. Reads code of the guest.
 */
void dbt_image_complete(struct dbt_thread *t);

struct dbt_image_target {
	bool (*write)(void *ctx, const void *from, u64 len);
	/* Likewise whole pages, which begin where a page of the file does. */
	bool (*pages)(void *ctx, const void *from, u64 len);
	void *ctx;
	u8 *scratch; /* as many zeroed bytes as the cache has */
};

/*
 * Hands all of it to @to, in pieces. @version: whatever makes translators differ. @t never runs
 * again. With what traces in windows go the descriptions of its paths (dbt_paths()). False: there
 * cannot be one, as of code that traces all the time, or it could not be written. The lock is held
 * afterwards, so that other threads wait for what comes: the end, or dbt_forget().
 */
bool dbt_image_save(struct dbt_thread *t, u64 version, const struct dbt_image_range *ranges, u32 n,
		    const struct dbt_image_target *to);

/* What was written, in its order. */
struct dbt_image_source {
	bool (*read)(void *ctx, void *to, u64 len);
	/* Maps them at @at, over what is there, private; changes are this process's own. */
	bool (*pages)(void *ctx, void *at, u64 len, int prot);
	bool (*end)(void *ctx); /* all was taken: was that what was written? */
	void *ctx;
};

/*
 * Before anything is executable. False: it is another translator's, or could not be read; the cache
 * is empty then.
 */
bool dbt_image_load(struct dbt_thread *t, u64 version, const struct dbt_image_source *from);
/* Whether @addr is of the image, so that a fault there says that it was cut off. */
bool dbt_image_has(u64 addr);
/* Forgets all that was translated, after dbt_image_save(). */
void dbt_forget(struct dbt_thread *t);
/* dbt_exec_add() for a range of the image, with the same bytes at the same place. */
void dbt_exec_adopt(struct dbt_thread *t, u64 start, u64 len, u32 flags);

/*
 * Executable guest memory. The runtime maps it without PROT_EXEC and says here what the guest may
 * execute. We must be able to read it. Adding a known range and removing one both invalidate the
 * blocks that were made from it.
 */
/* The guest may write it: pages that were translated are to be protected. */
#define DBT_EXEC_WRITABLE BIT(0)
/* It may change unseen, as a shared mapping does: the bytes are to be compared each time. */
#define DBT_EXEC_CHECKED BIT(1)
/*
 * It is a file's, without the two above. To read it is as good as to execute it: no other thread of
 * the guest has to do something for that, as of memory that it gives by userfaultfd(2).
 */
#define DBT_EXEC_FILE BIT(2)
/* Whether there is memory for what one call of either adds. To be asked right before the call. */
must_check bool dbt_exec_room(struct dbt_thread *t);
void dbt_exec_add(struct dbt_thread *t, u64 start, u64 len, u32 flags);
void dbt_exec_remove(struct dbt_thread *t, u64 start, u64 len);

/* Forgets every translation made from [start, start + len): its bytes may have changed. */
void dbt_invalidate(struct dbt_thread *t, u64 start, u64 len);

/*
 * For when the kernel was to write to [start, start + len) for the guest and answered EFAULT:
 * forgets what was translated from there and makes it writable again. True if anything was
 * protected: try again.
 */
bool dbt_unprotect(struct dbt_thread *t, u64 start, u64 len);

/* Changes the instrumentation mask; flushes the cache if it is another one. */
void dbt_set_mask(struct dbt_thread *t, u64 mask);

/*
 * From now on paths are described in @space, which is zeroed shared memory but for what the caller
 * says of itself: once before the mask has DBT_MASK_PATHS or DBT_MASK_TRACE, and in the child of a
 * fork, which goes on with its parent's numbers. With DBT_MASK_PATHS each thread then has a struct
 * path_thread at DBT_PATHS_AT.
 */
void dbt_paths(struct dbt_thread *t, struct path_space *space);
/*
 * What DBT_MASK_FILTER means from dbt_init() or the next dbt_set_mask() on: lines of 1 << @shift
 * bytes in @sets sets, a power of two of at most DBT_FILTER_SETS. @plain: for caches as Valgrind
 * has them, 0 if not. A store is as good as a load; a prefetch is nothing, nor is a store to what
 * the same instruction has loaded, and what is in two lines is left out if both were the last ones.
 * What is larger than a line is as large as one, and so is what elements tell (abi/path-trace.h),
 * by its operand. What is done to memory at once, but by cmpxchg, loads twice.
 *
 * If @plain is 2 what is of the last line but one of a set is left out as well, so a cache has to
 * have these sets, and two lines in each. Records say which of both was accessed last, by
 * PATH_RECORD_SWAPPED and PATH_RECORD_AGAIN, when that matters and is not what records before say.
 */
void dbt_filter(u32 shift, u32 sets, u32 plain);
/* Nothing is known of what @t has accessed. */
void dbt_filter_forget(struct dbt_thread *t);

/* Hands over what has been traced so far. By the thread itself, not in the cache. */
void dbt_trace_flush(struct dbt_thread *t);
/*
 * With DBT_MASK_WINDOWS: whether @t traces what it executes from now on, as it does until it is
 * told. By the thread itself, not in the cache, after dbt_trace_flush().
 */
void dbt_trace_on(struct dbt_thread *t, bool on);

/*
 * @mask with branches of @kinds logged as well: bits of enum trace_branch_type, or of
 * TRACE_OPEN_CALLS alone. Beyond DBT_BRANCH_RINGS choices the last ring has several, and may tell
 * fewer of each.
 */
u64 dbt_mask_branches(u64 mask, u32 kinds);
/*
 * The last taken branches of @kinds, at most @max, the last one first, since the mask has them.
 * Returns how many. By the thread itself, not in the cache.
 */
u32 dbt_branches(const struct dbt_thread *t, u32 kinds, struct trace_branch *out, u32 max);

#define DBT_PLACES 4096u
/*
 * Threads tell by ops.place() before each execution of an instruction at one of @pcs, which are @n
 * addresses in ascending order, at most DBT_PLACES. By a thread that is not in the cache.
 */
void dbt_set_places(struct dbt_thread *t, const u64 *pcs, u32 n);
/*
 * The same with @pc besides, which is none of them; there is room. Translates anew what is on its
 * page only.
 */
void dbt_add_place(struct dbt_thread *t, u64 pc);

/*
 * The sums of the thread's meter at which it is to stop, by quantity; DBT_NO_DEADLINE: none. By the
 * thread itself, not in the cache. A deadline that has passed is reached at once.
 */
void dbt_deadlines(struct dbt_thread *t, const u64 *sums);
/*
 * In ops.deadline(): the sum of @q. Cheaper than meter_sum() if the thread's deadlines are all of
 * @q.
 */
u64 dbt_deadline_sum(struct dbt_thread *t, enum meter_quantity q);
/* In ops.deadline(): the instruction that has reached it; the pc if that is not known. */
u64 dbt_deadline_ip(const struct dbt_thread *t);

/*
 * Another meter has been mapped below @t, in the child of a fork: tells it the classes of paths
 * that this process counts by. What its last owner counted by other classes is kept, in its lanes.
 */
void dbt_meter_attach(struct dbt_thread *t);

/* The meter of a thread. */
static inline struct meter *dbt_meter(struct dbt_thread *t)
{
	return (struct meter *)((char *)t - DBT_METER_BELOW);
}

/* Verifies every invariant of doc/translator.md; CHECK() fails with the one that does not hold. */
void dbt_check(struct dbt_thread *t);

/* What the translator has done since dbt_init(). */
struct dbt_stats {
	u64 blocks, guest_insns, code_bytes, links, invalidations, flushes, write_faults, woken;
};
void dbt_stats_read(struct dbt_stats *stats);

#endif
