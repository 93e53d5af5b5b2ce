/*
 * PURPOSE: a process of the hosted world that asks a running session, as a guest does, but is not
 * counted itself: `anyperf stat --session NAME -p PID`.
 *
 * Lifetime: observer_open() to observer_close(). Locking: none; one thread. Calls wait for the
 * session. Errors: 0 or -errno; -ENODEV: the session is gone.
 */
#ifndef SESSION_OBSERVER_H
#define SESSION_OBSERVER_H

#include "abi/perf.h"
#include "base/types.h"

struct observer;
struct refusal;

/*
 * Joins the session of that name of the same user. *@o is the caller's. -ECONNREFUSED: there is none; any error
 * with a sentence in @why, which has room for @len bytes.
 */
int must_check observer_open(const char *name, struct observer **o, char *why, size_t len);
void observer_close(struct observer *o);

/* perf_event_open(2), read(2), ioctl(2), close(2); handles are small numbers. */
int must_check observer_event(struct observer *o, struct pe_attr *attr, int pid, int cpu,
			      int leader, u64 flags);
s64 must_check observer_read(struct observer *o, int handle, void *buf, size_t len);
int must_check observer_ioctl(struct observer *o, int handle, u64 cmd, u64 arg);
int observer_release(struct observer *o, int handle);

/* Why the last call was refused. Valid until the next call. */
const struct refusal *observer_refusal(const struct observer *o);
/* The directory that stands in for the root of what guests see; NULL: it cannot be made. */
const char *observer_root(struct observer *o);

#endif
