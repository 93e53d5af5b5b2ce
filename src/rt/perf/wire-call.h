/*
 * PURPOSE: the guest's end of the wire (abi/wire.h): introducing the process to the session, making
 * calls, and noticing that the session is gone. What is asked and when is rt/perf/perf-guest.h's
 * business.
 *
 * Lifetime: one struct wire per process (a vfork child has its own); it connects at its first call,
 * and execve ends the connection. Locking: a call owns its slot; `lock` guards connecting and the
 * descriptors that arrive on the socket, and is held with all signals blocked.
 */
#ifndef RT_PERF_WIRE_CALL_H
#define RT_PERF_WIRE_CALL_H

#include "abi/wire.h"
#include "rt/task/thread.h"

struct wire {
	struct lock lock;
	s32 sock;        /* this process's own, fd_get(FD_WIRE); -1: not connected */
	bool guest_sock; /* of a process in shared memory: `sock` itself, in the guest's reach */
	bool dead;       /* the session is gone, or would not have us */
	struct wire_proc *page; /* the shared memory; NULL: not connected */
	u64 free;               /* slots that no call owns: bits */
	u64 present;            /* slots that have been used: likewise */
	s32 parked
		[WIRE_SLOTS]; /* descriptor that another thread has received for the slot, or -1 */
};

void wire_init(struct wire *w);

/*
 * A slot for a call, filled in but for op, args, len and data; NULL: there is no session (any
 * more). The caller may write to data, and must go on to wire_end().
 */
struct wire_slot *wire_begin(struct thread *t);

/* Sends @fd ahead of the request in @sl. 0 or -ENODEV. */
must_check int wire_send_fd(struct thread *t, struct wire_slot *sl, int fd);

/*
 * Makes the call and waits: its result, or -ENODEV when the session is gone. The reply is
 * t->perf_reply, checked, until the next call; of what else stands in the slot its data are to be
 * used alone, and once.
 */
long wire_call(struct thread *t, struct wire_slot *sl, u32 op);

/* The descriptor that came with the reply; -EMFILE if it could not be taken. */
must_check int wire_take_fd(struct thread *t, bool cloexec);

/*
 * Maps @len bytes at @offset of it at @at, if it is memory that has them and stays. No fork has the
 * descriptor.
 */
must_check bool wire_map_fd(struct thread *t, void *at, u64 len, u64 offset);

/* Whether @fd, which the session has sent, is memory of @size bytes that stays. */
must_check bool wire_memory_is(int fd, u64 size);

void wire_end(struct thread *t, struct wire_slot *sl);

/* Tells the session to drain @t's trace. False: there is no session (any more). */
bool wire_tell_trace(struct thread *t);
/* Context switches of the calling thread since it was made. */
u64 perf_switches(void);
/* What happened since perf_switches() said @before happened on our account. */
void perf_own_switches(struct thread *t, u64 before);

/* Whether the session has hung up. */
bool wire_is_lost(struct thread *t);

/*
 * A copy's, in a forked process: what it has of its parent's connection goes; its parent has @sock.
 */
void wire_forked(struct wire *w, int sock);

/* Says HELLO on @sock, which the session made for this new process (WIRE_OP_FORK). */
void wire_hello_child(struct thread *t, int sock);

/* Introduces a process that has become another program, or is the session's first. */
void wire_hello_exec(struct thread *t);

/* For those who keep something of their own under wire.lock. */
u64 wire_lock(struct thread *t);
void wire_unlock(struct thread *t, u64 mask);

/* Connects now, if it is not connected: true if it is. */
bool wire_connect(struct thread *t);

#endif
