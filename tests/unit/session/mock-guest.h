/*
 * PURPOSE: a guest without a runtime, for tests of the session: speaks abi/wire.h with libc, and
 * "counts" by adding to its meter page. In the test's own process or in a forked one.
 */
#ifndef UNIT_SESSION_MOCK_GUEST_H
#define UNIT_SESSION_MOCK_GUEST_H

#include <stdio.h>
#include <unistd.h>

#include "abi/meter.h"
#include "abi/perf.h"
#include "abi/trace.h"
#include "abi/wire.h"
#include "session/session.h"

struct mock {
	/* Run while waiting, when both are in one process; NULL: it runs elsewhere. */
	struct session *serve;
	struct counter_segment *segment;
	int bootstrap, sock;
	struct wire_proc *page;
	struct wire_slot *slot;
	struct trace *trace; /* of the meter that it had at HELLO; what a runtime asks for later */
	u32 meter;
	u32 token;
	bool patient; /* who waits for it ends it, and no call does after ten seconds */
	int cpu;      /* where it says that it is; -1: where it is */
	struct meter *m;
};

/* In a forked guest: exits with 1. */
#define NEED(cond)                                                                 \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1);                                                  \
		}                                                                  \
	} while (0)

/* A process that is a guest for as long as @body takes, some seconds at most, and exits with 0. */
pid_t mock_fork(struct session *s, void (*body)(struct mock *g));

/* Maps the segment and takes a meter; no contact yet. */
void mock_init(struct mock *g, int segment_fd, int bootstrap);
/* A meter for a task about to be made, and that task's beginning with it. */
u32 mock_take_meter(struct mock *g);
void mock_set_meter(struct mock *g, u32 meter);
/*
 * HELLO with @flags through the bootstrap socket, or on @sock >= 0. 0 or -errno of the session's.
 */
int mock_hello(struct mock *g, int sock, u32 flags);
void mock_release(struct mock *g);
void mock_count(struct mock *g, u64 instructions, u64 branches);

/* A call; arguments are in the slot. */
s64 mock_call(struct mock *g, u32 op);
/* The descriptor of the last reply, or -1. */
int mock_take_fd(struct mock *g);
void mock_send_fd(struct mock *g, int fd);
/* It @n times in one message. */
void mock_send_fds(struct mock *g, int fd, u32 n);

/* perf_event_open: the descriptor or -errno; *@handle is set. */
int mock_open(struct mock *g, const struct pe_attr *attr, s32 pid, s32 cpu, u64 group, u64 flags,
	      u64 *handle);
s64 mock_ioctl(struct mock *g, u64 handle, u32 cmd, u64 arg);
/* read: bytes or -errno, into @words of @len bytes. */
s64 mock_read(struct mock *g, u64 handle, u64 *words, size_t len);

/* An attr that counts instructions in user mode, disabled. */
struct pe_attr mock_attr(void);

#endif
