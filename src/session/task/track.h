/*
 * PURPOSE: what guests do besides counting, for the records of events that ask for it: names
 * (COMM), mappings (MMAP) and namespaces (NAMESPACES). Forks and ends are told anyway.
 *
 * A guest tells of a name or a mapping only once an event has asked for such (`watch`, bits of enum
 * wire_watch), so nobody else pays for it.
 */
#ifndef SESSION_TASK_TRACK_H
#define SESSION_TASK_TRACK_H

#include "abi/wire-op.h"
#include "abi/wire.h"

struct event;
struct guest_thread;
struct perf_ns_link_info;
struct session;
struct task;

/* @event is open: has guests tell what it asks for. */
void track_opened(struct session *s, const struct event *event);
/* @th has another name, @exec: as it runs another program. */
void track_named(struct guest_thread *th, bool exec);
/* @th has said that it is in other namespaces. */
void track_namespaces(struct guest_thread *th);
/* What @task's host thread is in: core_ops.namespaces. */
u32 track_links(void *ctx, struct task *task, struct perf_ns_link_info *links);
/* @th has mapped something, or made code of what was mapped. */
void track_mapped(struct guest_thread *th, const struct wire_mapped_args *args);

#endif
