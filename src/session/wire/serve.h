/*
 * PURPOSE: a call on its way, and serving call slots: taking a request out of guest memory,
 * answering it there, and watching the slots of recent callers for a moment (busy polling).
 *
 * Lifetime: one call at a time, session->call while it is carried out; calls do not nest.
 */
#ifndef SESSION_WIRE_SERVE_H
#define SESSION_WIRE_SERVE_H

#include "abi/wire.h"

struct guest_process;
struct guest_thread;
struct session;

struct call {
	struct session *s;
	struct guest_process *process;
	struct guest_thread *thread;
	u32 slot, seq;
	u32 cpu; /* where the thread says it is */

	/* The call's own copy of the request. */
	u32 op; /* enum wire_op */
	u32 len;
	union wire_args args;
	int fd_in;        /* came with the request, or -1; closed after the call */
	bool fd_in_known; /* a perf descriptor, a setting or a cgroup: to close it takes no time */

	/* What came up on the way of an open. */
	bool past_fd_check, ask_again, ask_kernel;

	/* The reply. */
	s64 ret;
	union wire_result result;
	u32 out_len;
	int fd_out; /* goes with the reply, or -1; closed then unless fd_out_keep */
	bool fd_out_keep;

	u8 in[WIRE_DATA + 1];    /* `len` bytes, with a NUL behind them */
	u64 data[WIRE_DATA / 8]; /* `out_len` bytes */
	struct refusal refusal;  /* if ret < 0 */
};

#define BUSY_POLL_SLOTS 4u

struct busy_poll {
	struct {
		struct guest_process *process;
		u32 slot;
	} slots[BUSY_POLL_SLOTS];
	u32 nr;
	bool ending; /* about to sleep: none is added */
	u64 until;   /* session_now() */
};

/* Answers what is posted in the slot, if anything. */
void serve_slot(struct guest_process *p, u32 slot);
/* Serves the slots of recent callers for as long as it pays. */
void serve_busy_poll(struct session *s);
/* @p's slots are not looked at any more. */
void serve_forget(struct session *s, struct guest_process *p);

#endif
