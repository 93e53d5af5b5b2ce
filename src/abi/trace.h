/*
 * PURPOSE: samples on their way from a thread under the translator to the session. Shapes only.
 *
 * Every meter (meter.h) has a place for a *trace* in the memory that the thread's process shares
 * with the session alone (wire.h), behind the slots. It is memory from the moment somebody writes
 * there: the session, when the first sampling event counts the thread. It is two things:
 *
 *   the deadlines   which the session sets: at which count of which quantity the thread is to stop
 *                   and tell what it finds there, and what it is to tell
 *   the ring        which the thread's runtime writes and the session drains
 *
 * Who writes a word: S the session, G the thread's runtime. The session believes nothing: it reads
 * positions and lengths once, checks them against its own, and copies an entry out before it looks
 * at it. It never waits for a guest; a guest waits for the session while the ring is full, since
 * nothing of what it tells may be lost. When the session is gone nobody waits and nothing is told.
 *
 * Deadlines are changed under `seq`: S makes it odd, writes, and makes it even and larger. The
 * thread takes them over before it executes another instruction if it is in a call or in the
 * runtime, and else within TRACE_NOTICE instructions; then `taken` is what `seq` was. It fires each
 * time when its count reaches `next` of its own, and adds the period, without asking. What it has
 * of its own is in `armed`, so a new program in the process goes on with it. An event whose
 * generation is another than before begins anew with the `next` that S has set.
 *
 * A thread that has no trace asks for it (WIRE_OP_TRACE) when its word of wire_proc.asked changes;
 * one of a process that has not introduced itself does so first, when `asked` of its meter changes.
 * To that all guests can write, and have the process introduce itself for nothing.
 *
 * An instruction at which several events fire has one entry for each, in the order of their ids.
 *
 * What the host's kernel counts, as time and page faults, it stops the thread for by itself: the
 * session has an event of the kernel's on the thread, whose records it reads, and which sends the
 * thread a SIGTRAP (attr.sigtrap). The thread says where it was then, in one entry for all that the
 * kernel has recorded before. The table says what such entries are to tell (TRACE_BY_KERNEL).
 *
 * Tracepoints of the kernel with attr.sigtrap stop the thread likewise. What they have counted
 * stands elsewhere (session/task/kernel-probes.h): the entry says that the thread is back from the
 * kernel and waits for its signal.
 *
 * Breakpoints on data are the kernel's as well. Such a stop is behind the instruction that has made
 * the access, and whose code of the translator's may have made it more than once.
 *
 * Beside the deadlines S says which *occurrences* it wants to be told of, under the same seq:
 * system calls (struct trace_calls) and executions of an instruction (struct trace_place). Each is
 * one entry (struct trace_hit), however many events wait for it: S knows which.
 */
#ifndef ABI_TRACE_H
#define ABI_TRACE_H

#include "abi/meter.h"
#include "abi/wire.h"

#define TRACE_EVENTS 64u      /* of one thread */
#define TRACE_HEAD   0x4000u  /* struct trace; the ring follows */
#define TRACE_RING   0x40000u /* bytes, a power of two */
#define TRACE_SIZE   (TRACE_HEAD + TRACE_RING)
#define TRACE_CHAIN  1024u      /* return addresses that an entry has at most */
#define TRACE_LBR    32u        /* branches, likewise */
#define TRACE_STACK  65528u     /* bytes of stack */
#define TRACE_NOTICE (1u << 20) /* instructions within which a running thread takes notice */

/* What an event wants to be told besides registers. */
enum trace_wants {
	TRACE_WANT_CHAIN = 1,    /* the chain of frame pointers */
	TRACE_WANT_STACK = 2,    /* the stack from its pointer up */
	TRACE_WANT_BRANCHES = 4, /* the last taken branches */
	/*
	 * The thread does not go on before the session has drained the entry: for events that
	 * somebody is told of at once, by a signal or a wakeup, or that stop after some overflows.
	 */
	TRACE_WANT_ANSWER = 8,
	TRACE_WANT_SUMS = 16, /* of all quantities, and of a model; else only of the event's */
	/* By the kernel, which refuses perf events: the thread is to set itself a timer. */
	TRACE_WANT_TIMER = 32,
	TRACE_WANT_SAMPLE = 64, /* of occurrences: what a sample has besides */
	/*
	 * Of what a model counts, which is known late: registers, or what follows from them. So the
	 * thread is to look more often when the event is near.
	 */
	TRACE_WANT_REGS = 128,
};

#define TRACE_CALLS 512u /* system calls have lower numbers */

/* S. Which system calls are to be told, a bit each, before they are made and when they return. */
struct trace_calls {
	u64 enter[TRACE_CALLS / 64], exit[TRACE_CALLS / 64];
	u32 wants;                 /* enum trace_wants, of each of them */
	u32 stack_size, chain_max; /* as in struct trace_event */
	u32 any;                   /* enum trace_any_call */
};

/* Somebody wants every call, and so those of other numbers, too. */
enum trace_any_call {
	TRACE_ANY_ENTER = 1,
	TRACE_ANY_EXIT = 2,
};

#define TRACE_PLACES 128u

enum trace_place_kinds {
	TRACE_PLACE_EXECUTED = 1,
	TRACE_PLACE_RETURN = 2, /* it begins a function, whose return is to be told */
};

/* S. An instruction of which each execution is to be told, before it; addr 0: a free place. */
struct trace_place {
	u64 addr;
	u32 wants; /* and the rest, as in struct trace_calls */
	u32 stack_size, chain_max;
	u32 kinds; /* enum trace_place_kinds */
};

/*
 * S. What the thread is to tell when it has accessed data that an event watches; or when it comes
 * from the kernel, where a tracepoint that is to send it a signal has fired.
 */
struct trace_watch {
	u32 on;    /* some event does */
	u32 wants; /* and the rest, as in struct trace_calls */
	u32 stack_size, chain_max;
};

enum trace_branch_type {
	TRACE_BRANCH_COND = 1,
	TRACE_BRANCH_JUMP,
	TRACE_BRANCH_JUMP_IND,
	TRACE_BRANCH_CALL,
	TRACE_BRANCH_CALL_IND,
	TRACE_BRANCH_RETURN,
	TRACE_BRANCH_OTHER,
};

/* Calls that have not returned, instead of kinds of branches. */
#define TRACE_OPEN_CALLS 1u

/* As the quantity of an event that the kernel stops the thread for: it has no deadline. */
#define TRACE_BY_KERNEL METER_QUANTITIES
/* + enum model_counter: what a model counts, meter.modeled[]. It has no deadline either. */
#define TRACE_MODELED 64u
/* attr.sig_data of the kernel's events, and so si_perf_data of their signals; of page faults */
#define TRACE_SIG_DATA  0x616e797065726600ull
#define TRACE_SIG_FAULT 0x616e797065726601ull
/* Likewise; of breakpoints on data */
#define TRACE_SIG_WATCH 0x616e797065726602ull
/*
 * si_value of the SIGSYS by which the session, or a thread of the process, has a thread look. Not a
 * secret: it does no harm.
 */
#define TRACE_KICK 0x616e797065724b00ull
/* And the event's place in the table: si_value of the timers that stand in for cpu-clock. */
#define TRACE_SIG_TIMER 0x616e797065727000ull

/* S. One event that counts the thread; period 0: a free place. */
struct trace_event {
	u64 next; /* the sum of the thread's meter at which it fires first */
	u64 period;
	u32 generation; /* another one whenever `next` is set */
	u32 quantity;   /* enum meter_quantity, or TRACE_BY_KERNEL */
	u32 wants;      /* enum trace_wants */
	u32 id;         /* what entries call it */
	u32 stack_size; /* bytes of stack that are wanted, at most TRACE_STACK */
	u32 chain_max;  /* return addresses that are wanted, at most TRACE_CHAIN */
	u32 branches;   /* bits of enum trace_branch_type; or TRACE_OPEN_CALLS */
	u32 reserved[3];
};

/* G. How far an event is. */
struct trace_armed {
	u64 next;
	u32 generation;
	u32 reserved;
};

/*
 * S. The SIGTRAP that an event with attr.sigtrap sends: the thread, which waits for the answer to
 * its entry, gets it before it goes on.
 */
struct trace_trap {
	u64 addr, data;
	u32 type;
	u32 reserved;
};

struct trace {
	/* S */
	u64 tail;    /* entries before this position have been drained */
	u32 drained; /* changes with tail: the futex that a thread sleeps on */
	u32 wake_at; /* bytes in the ring at which S is to be told that there are some */
	u32 traps;   /* how many signals S has asked for, before the tail of their entries */
	/* What was drained waits for its reader: before it goes on the thread waits for 0. */
	u32 hold; /* `drained` changes with it */
	u32 seq;  /* odd while S writes what follows G's words */
	/* enum wire_watch, in addition to what the meter says, from which others can take it. */
	u32 to_tell;
	u32 pad0[8];

	/* G */
	u64 head;    /* end of the entries; positions grow, and are taken modulo TRACE_RING */
	u32 bell;    /* the thread has told; S makes it 0 before it looks at head */
	u32 waiting; /* the thread sleeps on `drained` */
	u32 taken;   /* the `seq` whose deadlines are in force */
	u32 pad1;
	u64 own[2][2]; /* the runtime's memory, from and to: faults there are not the program's */
	u32 pad2[2];
	u64 copy[2]; /* the runtime's instruction for the guest's memory, from and to */

	struct trace_event event[TRACE_EVENTS]; /* S */
	struct trace_armed armed[TRACE_EVENTS]; /* G */
	struct trace_trap trap;                 /* S, the first since the thread has waited */
	struct trace_calls calls;               /* S */
	struct trace_watch watch, fired;        /* S */
	struct trace_place place[TRACE_PLACES]; /* S; those in use come first */
};

enum trace_kind {
	TRACE_SAMPLE = 1, /* struct trace_sample */
	/*
	 * The same, of all that the kernel has recorded up to its time, without an id; or of a
	 * timer, with its event's id.
	 */
	TRACE_STOP = 2,
	/* struct trace_entry: what the kernel has recorded up to its time the runtime did. */
	TRACE_OWN = 3,
	TRACE_HIT = 4, /* struct trace_hit */
};

/* How each entry begins. The next one follows after `size` bytes, a multiple of 8. */
struct trace_entry {
	u32 size; /* with this */
	u16 kind; /* enum trace_kind */
	u16 flags;
	u64 time; /* CLOCK_MONOTONIC, ns; of a hit without a sample 0 */
};

/* Registers, numbered as perf does on x86-64 (PERF_REG_X86_AX ... R15). */
#define TRACE_REGS   24u
#define TRACE_REG_PC 8u

enum trace_sample_flags {
	TRACE_SAMPLE_LATE = 1, /* the deadline had passed when it was set; ip is pc */
	/* Of a stop: behind a return, whose writes are the translator's. */
	TRACE_STOP_RETURNED = 2,
	/* Of what a model counts: `hit` is filled in, and registers are those of a bit later. */
	TRACE_SAMPLE_MODELED = 4,
};

/* What has made a modeled event reach its period. */
struct trace_modeled {
	u64 count; /* of meter.modeled[], behind it */
	u64 addr;
	u32 latency;
	u8 kind;                       /* enum feed_hit_kind */
	u8 source, tlb, snoop, misses; /* as in struct model_access */
	u8 locked;                     /* the instruction is atomic */
	u8 reserved[6];
};

struct trace_sample {
	struct trace_entry entry;
	u64 cpu_time; /* the thread's, ns */
	u32 id;       /* of the event */
	u32 cpu;
	u64 periods; /* of the event that have passed since its last entry: 1 unless it is late */
	u64 sums[METER_QUANTITIES]; /* of the thread's meter; 0 if it is not wanted */
	u64 ip;                     /* the instruction whose retirement reached the deadline */
	u64 pc;                     /* the next one; the registers are those in front of it */
	u64 regs[TRACE_REGS];
	u32 nr_chain;
	u32 nr_branches;
	u32 stack_size; /* bytes of stack in the entry, a multiple of 8 */
	u32 stack_used; /* those that could be read */
	struct trace_modeled hit;
	u32 nr_modeled; /* with TRACE_WANT_SUMS, if there is a model: METER_MODELED */
	u32 reserved;
	/*
	 * Then: u64 modeled[nr_modeled], as in the meter; u64 chain[nr_chain], without pc,
	 * innermost first; struct trace_branch branch[nr_branches], the last one first; the stack.
	 */
};

struct trace_branch {
	u64 from, to;
	u64 type; /* enum trace_branch_type */
};

enum trace_hit_kind {
	TRACE_CALL_ENTER = 1,
	TRACE_CALL_EXIT,
	TRACE_EXECUTED,
	TRACE_RETURNED,
	TRACE_OTHER_ENTER, /* a call by another CPU mode's numbers (int $0x80 on x86-64) */
	TRACE_OTHER_EXIT,
};

/* Something has happened that was to be told. */
struct trace_hit {
	struct trace_entry entry;
	u32 kind; /* enum trace_hit_kind */
	u32 cpu;
	s64 nr;      /* of the system call; -1: of one that has given its thread other registers */
	u64 args[6]; /* CALL_EXIT: the result; RETURNED: where it has returned to */
	u64 addr;    /* EXECUTED, RETURNED: of the instruction */
		     /*
	 * If it is longer: a struct trace_sample with all that belongs to it, whose own size is the
	 * rest.
	 */
};

#define TRACE_ENTRY_MAX                                                               \
	(sizeof(struct trace_hit) + sizeof(struct trace_sample) + METER_MODELED * 8 + \
	 TRACE_CHAIN * 8 + TRACE_LBR * sizeof(struct trace_branch) + TRACE_STACK)

_Static_assert(sizeof(struct trace) <= TRACE_HEAD, "the head of a trace");
_Static_assert(2 * TRACE_ENTRY_MAX <= TRACE_RING, "a ring holds the largest entry");

/*
 * Where the trace of meter @index lies in the memory of its process; that of index SEGMENT_SLOTS is
 * its end.
 */
static inline u64 trace_offset(u32 index)
{
	return WIRE_SIZE + (u64)index * TRACE_SIZE;
}

#define WIRE_MEMORY trace_offset(SEGMENT_SLOTS)

#endif
