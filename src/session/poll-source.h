/*
 * PURPOSE: what epoll hands back to the session's loop (session.c) and to the drain of ends
 * (task/instant.c): a struct poll_source inside of the object that it is about.
 *
 * Lifetime: its object's. An object that ends while a batch of epoll events is being worked on may
 * be named in the rest of the batch: it says `gone` and is freed after the batch (deferred free).
 */
#ifndef SESSION_POLL_SOURCE_H
#define SESSION_POLL_SOURCE_H

#include "base/types.h"

enum poll_source_kind {
	POLL_SOURCE_BOOTSTRAP, /* struct bootstrap */
	POLL_SOURCE_SOCK,      /* struct guest_process: sock_poll */
	POLL_SOURCE_LISTEN,
	POLL_SOURCE_TIMER,   /* the core's */
	POLL_SOURCE_LOOK,    /* the timer of task/wide.c */
	POLL_SOURCE_RECORDS, /* the kernel's of any thread, task/thread-records.c */
	POLL_SOURCE_ENDS,    /* the nested epoll of ends */
	POLL_SOURCE_PIDFD, /* in the nested one, as the following: struct guest_process: pid_poll */
	POLL_SOURCE_PERF_FILE, /* struct perf_file */
};

struct poll_source {
	enum poll_source_kind kind;
	bool gone; /* its owner has ended within this batch */
};

/* Has @epoll watch @fd: 0 or -errno. */
int must_check poll_source_add(int epoll, int fd, struct poll_source *p, enum poll_source_kind kind,
			       u32 events);

#endif
