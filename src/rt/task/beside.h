/*
 * PURPOSE: simulation beside the program, on a second core: a thread of the runtime's that goes
 * through the pieces of traces (trace-pieces.h) which the program's threads hand over. It begins
 * with the first buffer that is full, and ends before any call that would tell of it or treat it as
 * one of the program's; the next full buffer has another one begin. Where it cannot be begun the
 * program's threads simulate by themselves, and so they do with pieces that they have to wait for.
 *
 * Locking: simulate-priv.h.
 */
#ifndef RT_TASK_BESIDE_H
#define RT_TASK_BESIDE_H

#include "rt/task/other-guest.h"
#include "rt/task/trace-pieces.h"

#define BESIDE_FIRST 16384u /* paths of a piece for which a thread is begun */
#define BESIDE_PACE  4096u  /* paths after which it gets the next piece */

extern u32 beside_on; /* pieces are handed over */

/* Begins the thread if there is a core for it; by @t, which traces. */
void beside_begin(struct thread *t);
/* Ends it, by @t out of the translator, when all is simulated. False: there was none. */
bool beside_end(struct thread *t);
/* The same, and none begins before beside_go(). */
bool beside_stop(struct thread *t);
void beside_go(struct thread *t);
/* What thread @id held that is gone, while it is still known. */
void beside_inherit(struct thread *t, u32 id);

/* Hands @p of @t over; false: there is no room now. Under the lock, while beside_on. */
must_check bool beside_put(const struct trace_piece *p);
/* And without the lock. */
void beside_wake(void);

/* Its tid; 0: it is not there. Any thread may ask. */
u32 beside_tid(void);
/* The same of another guest, in its pid namespace. */
u32 beside_tid_of(const struct other_guest *other);

/* How many pieces have been simulated. */
u32 beside_finished(void);
/* @t does a part of what is to be done, or waits until more than @seen have been simulated. */
void beside_help(struct thread *t, u32 seen);

/* Until all that @of has handed over is simulated, and shown; NULL: that anybody has by now. */
void beside_finish(struct thread *t, const struct thread *of);

/*
 * Before @t makes the program's call @nr: all of its own is simulated, and the thread has ended if
 * need be. A call that nobody can learn anything by is not waited for.
 */
void beside_before_call(struct thread *t, u64 nr);

/*
 * Simulates what is left, under all locks: others hand over as fast as it is done, so that nobody
 * may wait for the end of it.
 */
void beside_drain(void);

/* Another process gets our memory, or its parent has it for itself again. */
void beside_shared(struct thread *t, bool with);

/* In the child of a fork. */
void beside_forked(void);

#endif
