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

#include "abi/wire.h"
#include "base/bitmap.h"
#include "base/list.h"

struct event;
struct guest_process;
struct guest_thread;
struct perf_file;
struct session;

/* A process's. */
struct process_snapshots {
	struct list files;                      /* struct perf_file that have one */
	u64 used[BITMAP_WORDS(WIRE_SNAPSHOTS)]; /* by index */
	u32 seq[WIRE_SNAPSHOTS];                /* as it was last written */
};

/* A perf file's. */
struct event_snapshot {
	struct guest_process *owner; /* who reads it; NULL: nobody */
	struct list link;            /* in owner->snapshots.files */
	struct list changed_link;    /* in perf_files.changed */
	u32 index;                   /* in its owner's, + 1; 0: none */
};

void snapshot_init(struct event_snapshot *snapshot);
/* @owner has opened @file: gives it a snapshot if there is one left. */
void snapshot_take(struct perf_file *file, struct guest_process *owner);
void snapshot_drop(struct perf_file *file);
/* All of a process that ends. */
void snapshots_drop(struct guest_process *owner);

/* core_ops.event_changed: what is in its snapshot holds no longer. */
void snapshot_event_changed(void *ctx, struct event *event);

/*
 * Before anything is looked at of @th, or changed of its events: until the end of the instant who
 * reads one of its snapshots has to ask. The caller of the call that is carried out reads none.
 */
void snapshots_invalidate(struct guest_thread *th);
/* At the end of the instant: writes those of events that have changed; then lets all be read. */
void snapshots_revalidate(struct session *s);
void snapshots_allow(struct session *s);
/* @th has its meter no longer: nothing is left behind in it. */
void snapshots_thread_leaves(struct guest_thread *th);
/* @th counts in another meter, which its events' snapshots are to name. */
void snapshots_thread_moved(struct guest_thread *th);

/* CHECK()s that every snapshot is what would be written now. Between the two. */
void snapshots_check(struct session *s);

#endif
