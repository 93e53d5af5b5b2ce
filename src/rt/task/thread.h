/*
 * PURPOSE: the runtime's picture of what runs: the thread that a CPU executes, the process it
 * belongs to, and the signal handlers they share. Nothing here is guest memory, and no guest
 * pointer is ever stored as a typed one.
 *
 * Lifetime: a struct thread lives in the thread area that arch_self() is in and goes when its
 * thread exits; the runtime of a vfork child is a further thread area in its parent's memory, which
 * the parent releases. struct proc and struct sighand are counted. Locking: fields of struct thread
 * belong to their own thread unless they say otherwise.
 */
#ifndef RT_TASK_THREAD_H
#define RT_TASK_THREAD_H

#include <linux/signal.h>

#include "abi/control.h"
#include "abi/meter.h"
#include "base/wire-reply.h"
#include "dbt/dbt.h"
#include "rt/arch/x86_64/debug-registers.h"
#include "rt/arch/x86_64/rt-arch.h"
#include "rt/task/limits.h"
#include "sys/kernel.h"
#include "sys/lock.h"

/*
 * The area of one thread, from low to high; arch_self() is at AREA_SELF. Guards are pages that
 * cannot be accessed. AREA_FIRST bytes are mapped at first, and nothing else is in the rest.
 */
#define AREA_GUARD      0x1000ul
#define AREA_STACK_AT   AREA_GUARD
#define AREA_STACK_SIZE 0x20000ul
#define AREA_ALT_AT     (AREA_STACK_AT + AREA_STACK_SIZE + AREA_GUARD)
#define AREA_ALT_SIZE   0x20000ul
#define AREA_METER_AT   (AREA_ALT_AT + AREA_ALT_SIZE)
#define AREA_SELF       (AREA_METER_AT + DBT_METER_BELOW)
#define AREA_FIRST      (AREA_SELF + DBT_AREA_FIRST)
#define AREA_STACK_TOP  (AREA_STACK_AT + AREA_STACK_SIZE)
#define AREA_PATHS_AT   (AREA_SELF + DBT_PATHS_AT) /* of an exact profile only; path-pages.h */
#define AREA_ROOM       0x200000ul                 /* but for that */

#define SIGNALS 64
#define SIG(n)  BIT((n)-1)

/*
 * Signals that the CPU raises in a program; the kernel must always be able to deliver them to us.
 */
#define SIGNALS_SYNC \
	(SIG(SIGILL) | SIG(SIGTRAP) | SIG(SIGBUS) | SIG(SIGFPE) | SIG(SIGSEGV) | SIG(SIGSYS))
#define SIGNALS_KILL (SIG(SIGKILL) | SIG(SIGSTOP))

/* The guest's dispositions, shared by the threads that share them (CLONE_SIGHAND). */
struct sighand {
	struct lock lock;
	u32 refs;
	struct sys_sigaction act[SIGNALS + 1];
};

/* A signal that the kernel has handed to us and the guest has not seen yet. */
struct pending {
	siginfo_t info;
	struct cpu_fault fault;
};
#define PENDING_MAX 8

/* What a task of a deterministic run has of its own; see rt/deterministic/deterministic-run.h. */
struct deterministic_task {
	u64 key;      /* of its random numbers */
	u64 drawn;    /* how many there were */
	u64 made;     /* children */
	u64 ended;    /* those of them whose end it was told by a wait */
	u64 tsc;      /* what the time stamp counter was when it began */
	u64 affinity; /* with --cpus: those that it may run on */
};

struct feed_thread;
struct modeled_watching;
struct thread_tally;
struct perf;
struct sampler;
struct seccomp_filter;

struct proc {
	u32 refs;
	u32 pid;
	u32 execs;
	u32 meter;                /* index of the first thread's page */
	u32 threads;              /* that were made beside the first one; atomic */
	struct model_place place; /* rt/task/windows-draw.h */
	bool read_implies_exec;
	bool confined; /* keeps translations for itself: images_leave() */
	/* A filter was added with TSYNC by some thread: the others take it at their next call. */
	struct seccomp_filter *filters;
	struct lock lock;
	struct guest_limits limits;
	struct perf *perf; /* rt/perf/perf-guest.h; NULL: there is no session */
	char exe[CONTROL_PATH];
};

struct thread {
	struct dbt_thread dbt; /* first: arch_self() */
	struct arch_thread arch;

	struct proc *proc;
	struct sighand *sighand;
	u32 id;           /* unique in this address space, not 0; names the thread to locks */
	u32 tid;          /* the kernel's name of it */
	u32 meter;        /* index of its page in the segment */
	bool vfork_child; /* shares its parent's memory; the parent releases this area */
	bool own_proc; /* CLONE_VM without CLONE_THREAD: the first of a process in shared memory */
	bool begun;    /* its meter says whose it is */
	bool execing;  /* in execve: the meter page goes on to the new program */
	/*
	 * Mapped for its execve under way. If that succeeds whoever releases the thread unmaps
	 * them.
	 */
	struct {
		void *at;
		size_t size;
	} exec_maps[2];
	bool install_handlers; /* dispositions differ from the parent's: tell the kernel */

	/* Signals. */
	u64 sigmask;   /* as the guest believes; the kernel's is this without SIGNALS_SYNC */
	u64 call_mask; /* in force during sigsuspend, ppoll and the like */
	bool in_mask_call;
	u64 owned_signals; /* of descriptors that it owns; rt/perf/perf-owner.c */
	/* Not 0: no guest call is begun. Written by the handler and this thread. */
	u32 pending_count;
	struct pending pending[PENDING_MAX];
	struct pending own; /* what signal_send_own() sends */
	bool traced;        /* it has asked for a tracer (PTRACE_TRACEME) */
	u64 held;           /* synchronous signals sent by somebody while the guest blocks them */
	siginfo_t held_info[8];
	u64 alt_sp, alt_size;
	u64 min_altstack; /* AT_MINSIGSTKSZ: what a frame with all features takes; 0 unknown */
	u32 alt_flags;
	bool in_sigreturn; /* the kernel is reading a frame for signal_return() */
	struct {
		int sig, code;
	} copy_fault; /* what has ended the last guest_copy() that did not copy all */

	/* The guest call that is to be redone has been executed: the kernel restarts it. */
	bool call_restarts;
	bool call_refused; /* the kernel has no such way in */
	bool call_again;   /* it was interrupted by something that the guest must not notice */

	/* rt/perf/wire-call.h: the slot of its last call, what the session calls it until then. */
	u32 perf_slot, perf_token;
	u32 perf_tid;  /* what the session calls it; 0: not told, or as its process */
	s32 perf_sock; /* of a process in shared memory: its own socket until it has said HELLO */
	struct wire_reply perf_reply; /* to the latest call */
	u64 perf_switches;            /* context switches when the call under way began */

	struct deterministic_task deterministic;

	/* rt/sample/sample.h; all 0 for a thread that nobody samples. */
	struct {
		struct sampler *own;
		u32 seq;          /* sample_asked() that it has taken over */
		const u32 *asked; /* of its trace; NULL: it has none */
		u32 watch;        /* what its trace said at last, when that has gone */
		bool on;          /* it has some */
		/* An event of the kernel's has stopped it; written by the handler too. */
		bool stopped;
		bool telling;  /* it is telling of a stop */
		bool watched;  /* breakpoints on data are set */
		bool returned; /* by the handler: one was met at a return */
		/* Likewise: when the translation has last read what is watched, and how often. */
		u64 own_until;
		u32 own_times;
		u32 traps;      /* signals of events that it has got */
		bool lost;      /* the session is gone: nothing is told any more */
		bool calls;     /* system calls are to be told */
		u32 made_by;    /* the system call that has made the thread */
		u64 call_pc;    /* where the last call that was told returns to */
		bool unmade;    /* it was not made, since a signal came first */
		bool told_exec; /* the session knows of the execve under way */
	} sampling;

	/* rt/task/simulate.h; all 0 for a thread that no model has been fed with. */
	struct {
		struct feed_thread *feed;
		/* rt/sample/modeled-samples.h; NULL: nobody samples what it counts. */
		struct modeled_watching *watching;
		struct thread_tally *tally; /* rt/task/modeled-tally.h; NULL: none */
		u8 core;
		bool on;    /* the core is its own */
		u64 handed; /* up to where it has handed pieces over (rt/task/beside.h) */
	} modeled;

	struct alloc_frames *alloc_frames; /* rt/task/alloc-sites.h; NULL: none */

	/* rt/task/windows.h */
	struct {
		u64 next;   /* sum of instructions at which the phase ends */
		u64 begun;  /* sum of instructions up to which nothing is seen at first; or 0 */
		u64 done;   /* instructions of all periods so far */
		u64 rest;   /* of the last one, behind its window */
		u64 number; /* of the period */
		u64 early, warm, window;
		u32 weight, weight_of; /* now, and of the window */
		u32 times;             /* and for how many processes */
		u32 turn;
		u32 nth;  /* of its process's threads; 0 is the first one */
		u8 phase; /* 0: there are no windows */
		bool apart;
	} windows;

	/* rt/task/path-stream.h; NULL: nobody reads the thread's trace. */
	struct path_stream *stream;
	u32 stream_busy;
	u32 stream_words; /* of its trace that were handed over */
	bool stream_lost;

	struct debug_registers debug; /* a tracer writes to it */

	/* System-call user dispatch; see rt/syscall/user-dispatch.h. */
	struct {
		bool on;
		u64 start, len, selector;
	} dispatch;

	struct seccomp_filter *filters;
	u32 seccomp_mode;
	u64 area;      /* address of the thread area */
	bool left_out; /* that is in no child of a fork; rt/task/fork-areas.h */
	struct thread *offered_next;
	struct thread *all_next, *all_prev; /* under list_lock of process.c */
};

_Static_assert(sizeof(struct thread) <= DBT_RING_AT, "the runtime's part of the thread area");
_Static_assert(AREA_PATHS_AT <= AREA_ROOM, "an area has room");

/* The running thread. Only once it is installed. */
static inline struct thread *this_thread(void)
{
	return arch_self();
}

/* The guest's system call. */
static inline u64 guest_nr(const struct thread *t)
{
	return regs_nr(&t->dbt.regs);
}

static inline u64 guest_arg(const struct thread *t, u32 n)
{
	return regs_arg(&t->dbt.regs, n);
}

/*
 * Maps a thread area with a meter page; NULL without memory. The thread in it is zeroed but for
 * ids.
 */
struct thread *thread_alloc(void);
/* The same with page @meter of the segment, which is the caller's already; ~0: a new one. */
struct thread *thread_alloc_with(u32 meter);

/* How much of @t's area is mapped. */
u64 thread_area_size(const struct thread *t);
/* dbt_ops.reach */
bool thread_reach(struct dbt_thread *dbt, u32 upto);

/* Keeps @t's area for another thread, or unmaps it; not from a thread that stands on it. */
void thread_free(struct thread *t);
/* Unmaps it in the child of a fork, where @t is not. */
void thread_free_copy(struct thread *t);
/* In the child of a fork: spare areas, and @size bytes of @threads others, are not there. */
void threads_areas_gone(u32 threads, u64 size);

/* The same from @t itself, which ends, without touching memory again. */
__attribute__((noreturn)) void thread_exit_free(struct thread *t, int status);

/* @t becomes this_thread() of the calling one, and the runtime's signal stack is its own. */
void thread_install(struct thread *t);

/* Runs the guest from its registers, for ever. */
__attribute__((noreturn)) void thread_loop(struct thread *t);

#endif
