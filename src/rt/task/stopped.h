/*
 * PURPOSE: threads of our memory that the calling thread traces and has stopped (LeakSanitizer's
 * way). They stand wherever they were, perhaps with a lock of the runtime or in the code cache, and
 * nobody else can make them go on. So whoever waits for such a thread lets them.
 */
#ifndef RT_TASK_STOPPED_H
#define RT_TASK_STOPPED_H

#include "base/types.h"

#include <linux/signal.h>

/* The calling guest is about to trace, or to be traced. Else the other call does nothing. */
void stopped_expect(void);

/*
 * Lets the stopped threads of our memory run for about a millisecond, and stops them again: all,
 * since one may wait for the other. Returns at once where the calling thread has stopped none.
 */
void stopped_run_on(void);

/*
 * @tid is about to go on with @sig. True: it has had that already, when it was let go, and is not
 * to get it twice.
 */
bool stopped_has_passed(u32 tid, u64 sig);

/* Whether a tracee goes on by this request of ptrace(2). */
bool tracee_goes_on(u64 request);

/* That is how @tid goes on, and has gone on last. */
void stopped_resume_by(u32 tid, u64 request);
u32 stopped_resumed_by(u32 tid);

/*
 * What the tracee @tid does next that its tracer is told of; it stays to be told. With WNOHANG in
 * @flags: what it has done. False: nothing, or its end, or it is not ours.
 */
bool tracee_next_stop(u32 tid, int flags, siginfo_t *info);

#endif
