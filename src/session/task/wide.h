/*
 * PURPOSE: events of whole CPUs and of cgroups, which concern every guest, and events of a task on
 * one CPU: looking for guests, and where they are.
 *
 * Order: all but wide_tick() is called within an instant (task/instant.h).
 */
#ifndef SESSION_TASK_WIDE_H
#define SESSION_TASK_WIDE_H

#include "session/poll-source.h"

struct event;
struct guest_thread;
struct session;

struct wide {
	u32 events;              /* how many are open */
	u32 bound;               /* how many of a task on one CPU are */
	u32 cgroups;             /* how many sample cgroups: where tasks are that are known */
	u32 switching;           /* how many ask for switches, which each look tells */
	bool recording;          /* what the kernel records is looked for from here on */
	bool on;                 /* there are events, or were a moment ago: guests are looked for */
	int timer;               /* for wide_tick() */
	struct poll_source poll; /* of the timer */
	u64 looked;              /* session_now() when the guests were last looked for */
	u64 rest_until;          /* and before which guests do not have it look at all of them */
	u64 scan_after;          /* session_now() before which /proc is not looked through again */
	u32 next_meter;          /* where that look has stopped; 0: it has seen all */
	u32 strange;             /* meters for which it has found no guest so far */
	u32 unfound;             /* and when it had last seen all */
	bool looking;            /* a look is on: who gets a task is placed by it */
	bool unplaced;           /* the last one has left some for the next moment */
	bool moved;              /* a guest has said that tasks may have moved: all are asked */
	u32 turn;                /* of those that sleep, who is asked */
};

/* A thread's part: whether the kernel was asked on which CPU it is. */
struct thread_place {
	enum {
		PLACE_NEW,
		PLACE_MET,   /* not yet: it had executed so much when it was looked at first */
		PLACE_ASKED, /* it had executed so much then */
	} state;
	u64 executed;
};

/* @event, of any kind, was opened; is about to be closed. */
void wide_opened(struct session *s, const struct event *event);
void wide_closed(struct session *s, const struct event *event);
/* Something of a thread is recorded by the kernel, and told at each look. */
void wide_recording(struct session *s);
/* @event is about to be read or changed. */
void wide_look(struct session *s, const struct event *event);
/*
 * Tasks may have moved; so may @tid have. After a long look for all of them the next one comes as
 * much later, so that nobody has the session look all the time.
 */
void wide_moved(struct session *s);
void wide_moved_task(struct session *s, s32 tid);
/* The timer has fired. */
void wide_tick(struct session *s);
/* Whether it matters where tasks are. */
bool wide_wants_places(const struct session *s);
/* Tells the core where @th is, which has a task. */
void wide_place(struct guest_thread *th);

#endif
