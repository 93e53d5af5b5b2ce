/*
 * PURPOSE: the debug registers that a tracer gives a guest (PTRACE_POKEUSER of u_debugreg). The
 * kernel keeps them and judges what is written. Those that watch data work by themselves, since
 * data is where the program has it. Its code runs elsewhere, so those that stop execution are
 * places of the translator's (dbt_set_places()).
 *
 * Locking: a tracer writes to its tracee's while that stands still; else they are the thread's own.
 */
#ifndef RT_ARCH_X86_64_DEBUG_REGISTERS_H
#define RT_ARCH_X86_64_DEBUG_REGISTERS_H

#include "base/types.h"

#define DEBUG_REGISTERS 4u

struct thread;
struct ucontext;

struct debug_registers {
	u64 addr[DEBUG_REGISTERS];
	u32 execution; /* a bit for each that stops execution there */
	u32 changed;   /* not taken over yet */
	u32 met;       /* a bit for each that has stopped the thread, until the tracer is told */
	u32 trapping;  /* the thread is in signal_send_own() */
	/* Its addresses among the places of its memory. */
	u64 places[DEBUG_REGISTERS];
	u32 nr_places;
};

/* The thread's places are those of its registers from here on; or none, if it is @gone. */
void debug_take_over(struct thread *t, bool gone);
/* @t is all that a fork has left of its process, and inherits none. */
void debug_forked(struct thread *t);
/* The guest is about to execute the instruction at @pc. */
void debug_place(struct thread *t, u64 pc);

/*
 * The tracer's side: @tid is a tracee of the calling thread and stands still, or the kernel says so
 * by refusing. Before the kernel is asked, and after it has been asked with success; -EIO: the
 * tracee cannot be told.
 */
void debug_before_ptrace(u64 request, u32 tid, u64 at);
long debug_after_ptrace(u64 request, u32 tid, u64 at);
/*
 * The tracee, whose struct thread is at @thread, stands at a signal that it sends itself for what
 * the program has done, and in no call.
 */
bool debug_is_trapping(u32 tid, u64 thread);
enum debug_kicked {
	DEBUG_NOT_KICKED, /* no need of that */
	DEBUG_KICKED,     /* a kick is in the place of the signal that had stopped it */
	DEBUG_RUNS,       /* it has gone on already */
};
/*
 * The tracee is to go on with no signal. If it is in the code cache and has registers that it has
 * not taken over it has to come out.
 */
enum debug_kicked debug_kick(u32 tid);

#endif
