/*
 * PURPOSE: the ring of a thread's trace (abi/trace.h): gets entries in whole, waits while it is
 * full, and tells the session. By the thread itself, out of the cache.
 */
#ifndef RT_SAMPLE_TRACE_RING_H
#define RT_SAMPLE_TRACE_RING_H

#include "abi/trace.h"
#include "rt/task/thread.h"

/*
 * Writes @entry. With @answer it waits until the session has drained it. If the session is gone
 * nothing is written, and nobody waits.
 */
void trace_put(struct thread *t, struct trace *trace, const struct trace_entry *entry, bool answer);

/*
 * Before the guest runs on: waits while what the thread has told waits for its reader, unless a
 * signal comes. Nothing that another thread waits for is held.
 */
void trace_wait_room(struct thread *t, struct trace *trace);

/* Waits until all entries are drained, unless the session is gone. */
void trace_flush(struct thread *t, struct trace *trace);

#endif
