/*
 * PURPOSE: the instant: everything that one operation, one timer or one message does happens at one
 * moment of the threads that are counted, though these run on. instant_run() is the only way to do
 * something with events and tasks, and it does the same things in the same order for everybody:
 *
 *	1. Event snapshots are invalidated (wire/snapshot.c): from here on a guest's thread does not
 *	   read an event by itself, so it sees nothing of what happens half done.
 *	2. Ends are drained: processes that died and descriptors that were closed. A parent that has
 *	   waited for its child, and a thread that has closed an event, find that done.
 *	3. @body runs. What it looks at of a thread, its clock and what it has counted, is read when it
 *	   is first looked at and is the same until the end: so the members of a group agree, an event
 *	   that is enabled runs as long as it is enabled, and a snapshot fits its event.
 *	4. Event snapshots are revalidated: those whose events have changed are written anew.
 *
 * Whoever needs an open instant, as the clocks, the counters and all that ends something, says so
 * with instant_check(). Instants do not nest: what may be needed inside and outside of one is two
 * functions.
 */
#ifndef SESSION_TASK_INSTANT_H
#define SESSION_TASK_INSTANT_H

#include "base/check.h"
#include "base/types.h"

struct session;

struct instant {
	bool open;
	bool draining;              /* ends, each of which has a number of its own */
	u64 number;                 /* what was read under another one is read again */
	u64 wall_time, wall_number; /* CLOCK_MONOTONIC, as it was read under that number */
};

/* @body gets @arg; NULL: there is nothing to do but what has ended. */
void instant_run(struct session *s, void (*body)(struct session *s, void *arg), void *arg);

/* CLOCK_MONOTONIC, ns: the same all through the instant. */
u64 instant_wall_time(struct session *s);

#define instant_check(s) CHECK((s)->instant.open)

#endif
