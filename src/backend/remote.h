/*
 * PURPOSE: a remote client of a session: a process that asks it over the wire (abi/wire.h), as a
 * guest does, but is no guest and counted by nobody. Events of the virtual PMU are opened and read
 * through it.
 *
 * Lifetime: ap__remote_open() to ap__remote_close(). Locking: none; one thread at a time. Calls
 * wait for the session. A process that was forked cannot use its parent's. Errors: 0 or -errno;
 * -ENODEV: the session is gone.
 */
#ifndef BACKEND_REMOTE_H
#define BACKEND_REMOTE_H

#include <sys/types.h>

#include "abi/perf.h"
#include "base/refusal.h"

struct remote_client;

/*
 * Introduces this process on @bootstrap, the guests' end of a session's bootstrap socket, which
 * stays the caller's. *@out is the caller's.
 */
int must_check ap__remote_open(int bootstrap, struct remote_client **out);

/* Events that are still open are closed. NULL is fine. */
void ap__remote_close(struct remote_client *r);

/*
 * perf_event_open(2), read(2), ioctl(2), close(2). What the first one returns is a descriptor,
 * which the others and poll(2) take. @leader is one as well, or -1; so is SET_OUTPUT's argument.
 */
int must_check ap__remote_event(struct remote_client *r, struct pe_attr *attr, int pid, int cpu,
				int leader, u64 flags);
s64 must_check ap__remote_read(struct remote_client *r, int fd, void *buf, size_t len);
int must_check ap__remote_ioctl(struct remote_client *r, int fd, u64 cmd, u64 arg);

/*
 * mmap(2) of an event, MAP_SHARED, and munmap(2). One that inherits may be of any CPU, which a
 * kernel refuses: one buffer for all. From then on poll(2) tells of its descriptor: POLLIN for a
 * wakeup, until ap__remote_heard(); POLLHUP when its tasks have ended.
 */
int must_check ap__remote_mmap(struct remote_client *r, int fd, size_t len, u64 offset,
			       bool writable, void **out);
int ap__remote_munmap(struct remote_client *r, void *base, size_t len);
void ap__remote_heard(const struct remote_client *r, int fd);

/*
 * From now on what finds no room in the event's buffer waits, and the threads that write there wait
 * with it: the caller reads until the end. How many bytes have found room by now, or -errno.
 */
s64 must_check ap__remote_lossless(struct remote_client *r, int fd);

int ap__remote_event_close(struct remote_client *r, int fd);

/*
 * @pid, a child of ours that is about to run a first program (the runtime with CONTROL_LAUNCH), is
 * a guest from now on: events can be opened on it, and its start is its execve.
 */
int must_check ap__remote_adopt(struct remote_client *r, pid_t pid);

/*
 * Returns when the session has taken notice of all deaths up to now: where the kernel tells nothing
 * of a process that has been waited for, it is to be asked before that.
 */
void ap__remote_sync(struct remote_client *r);

/* Why the last call was refused. Valid until the next call. */
const struct refusal *ap__remote_refusal(const struct remote_client *r);

/* The directory that stands in for the root of what guests see; NULL: it cannot be made. */
const char *ap__remote_root(struct remote_client *r);

#endif
