/*
 * PURPOSE: event snapshots (struct wire_snapshot): from one, the thread that an event counts reads
 * the event without asking the session.
 *
 * Ownership: a process has WIRE_SNAPSHOTS of them in the memory that it shares with the session;
 * one that is taken belongs to a perf file until that ends or the process does. Order:
 * instant_run() invalidates and revalidates them.
 */
#ifndef SESSION_WIRE_SNAPSHOT_H
#define SESSION_WIRE_SNAPSHOT_H

#include "base/types.h"

struct event;
struct guest_process;
struct perf_file;
struct session;

/* What a snapshot depends on besides what the guest can see for itself. */
struct snapshot_state {
	s64 state, leader, child_count;
	u64 lost, has_children;
};

/* The session's side of one, in the perf file of its event. */
struct event_snapshot {
	struct guest_process *owner; /* who reads it; NULL: nobody */
	u32 index;                   /* in its memory, + 1; 0: none */
	u32 seq;
	bool stale;                  /* the event has changed in a way that no state shows */
	bool invalid;                /* its reader asks until it is revalidated */
	struct snapshot_state state; /* what it was written for */
};

/* @owner has opened @file: gives it a snapshot if there is one left. */
void snapshot_take(struct perf_file *file, struct guest_process *owner);
void snapshot_drop(struct perf_file *file);
/* A call changed what no state shows: a count, a period. */
void snapshots_stale(struct session *s, const struct event *event);

/* Before events are changed: from here on who reads one by himself has to ask. */
void snapshots_invalidate(struct session *s);
/* After that: writes those of events that have changed, and lets their readers look again. */
void snapshots_revalidate(struct session *s);

#endif
