/*
 * PURPOSE: the instant: everything that one operation, one timer or one message does happens at one
 * moment of the threads that are counted, though these run on. instant_run() is the only way to do
 * something with events and tasks, and it does the same things in the same order for everybody:
 *
 *	1. Ends are drained: processes that died and descriptors that were closed. A parent that has
 *	   waited for its child, and a thread that has closed an event, find that done.
 *	2. The body runs.
 *	3. Event snapshots of what has changed are written anew, and those of the threads that were
 *	   looked at hold again.
 *
 * Before a thread is looked at for the first time, or one of its events is changed, its event
 * snapshots are invalidated (wire/snapshot.h): from there on it does not read an event by itself,
 * so it sees nothing of what happens half done. Its clock and what it has counted are read once
 * then, and are the same until the end: so the members of a group agree, an event that is enabled
 * runs as long as it is enabled, and a snapshot fits its event.
 *
 * Whoever needs an open instant, as the clocks, the counters and all that ends something, says so
 * with instant_check(). Instants do not nest: what may be needed inside and outside of one is two
 * functions.
 */
#ifndef SESSION_TASK_INSTANT_H
#define SESSION_TASK_INSTANT_H

#include "base/check.h"
#include "base/list.h"
#include "base/types.h"

struct guest_thread;
struct session;

struct instant {
	bool open;
	bool draining;       /* ends, each of which has a number of its own */
	u64 begun;           /* how many there have been */
	u64 number;          /* what was read under another one is read again */
	struct list invalid; /* struct guest_thread, those whose event snapshots do not hold */
	struct guest_thread *caller; /* in the call that is carried out; NULL: nobody is */
	u64 wall_time, wall_number;  /* CLOCK_MONOTONIC, as it was read under that number */
};

/* @body gets @arg; NULL: there is nothing to do but what has ended. */
void instant_run(struct session *s, void (*body)(struct session *s, void *arg), void *arg);

/* CLOCK_MONOTONIC, ns: the same all through the instant. */
u64 instant_wall_time(struct session *s);

#define instant_check(s) CHECK((s)->instant.open)

#endif
