/*
 * PURPOSE: what a session (which plays the kernel) and the runtimes inside its guests say to each
 * other. Shapes only. doc/session.md tells the life of a call; this file is the authority on
 * layout.
 *
 * Every runtime of a session inherits two descriptors: the counter segment (meter.h), in which
 * threads count, and the *bootstrap socket*, of the type SEQPACKET, on which a process introduces
 * itself when it first has something to say. A process that makes no perf call and that nobody
 * watches never does.
 *
 * To introduce itself a process makes a pair of SEQPACKET sockets and sends one end through the
 * bootstrap socket with a struct wire_kick HELLO; the session learns its pid from the kernel
 * (SCM_CREDENTIALS) and answers on the pair with a struct wire_fd_message and a memfd:
 *
 *   offset 0           struct wire_proc   the process
 *   WIRE_SLOT_OFF(i)   struct wire_slot   a call under way; a thread takes a free slot for each
 *   trace_offset(m)    struct trace       what is asked of the thread with meter m, and its
 *                                         samples (trace.h). Only who is sampled maps it.
 *
 * The memfd is sealed against resizing, so neither end can be hit by SIGBUS. Each word below says
 * who writes it: S the session, G the guest's runtime. Guest memory is not trusted: the session
 * copies a request out once, checks it, and never follows an index or length that it has not
 * checked; what S has written is for the guest to read, and the session never reads it back.
 *
 * A call: the thread fills a slot's request, stores WIRE_POSTED in `word` (release) and, unless
 * `awake` is set, sends a struct wire_kick CALL. The session answers in the slot and stores
 * WIRE_DONE (release), waking the futex `word` if the thread had made it WIRE_WAITED. A descriptor
 * that belongs to a request is sent before the request is posted, and one that belongs to a reply
 * before the reply. The socket's hang-up means that the session is gone: from then on every perf
 * call of the guest answers ENODEV and everything else runs on.
 */
#ifndef ABI_WIRE_H
#define ABI_WIRE_H

#include "abi/wire-op.h"
#include "base/refusal.h"
#include "base/types.h"

#define WIRE_MAGIC   0x52495759584e41ull /* "ANXYWIR" */
#define WIRE_VERSION 8

#define WIRE_PROC_SIZE   0x10000u
#define WIRE_SLOT_SIZE   0x8000u
#define WIRE_SLOTS       64u /* calls of one process under way at a time */
#define WIRE_SLOT_OFF(i) (WIRE_PROC_SIZE + (u64)(i)*WIRE_SLOT_SIZE)
#define WIRE_SIZE        WIRE_SLOT_OFF(WIRE_SLOTS)

enum wire_snapshot_kind {
	WIRE_SNAPSHOT_NONE = 0,  /* ask the session */
	WIRE_SNAPSHOT_METER = 1, /* value = base + the meter's quantity while running */
};

enum wire_snapshot_flags {
	WIRE_SNAPSHOT_ENABLED = 1, /* time_enabled advances with the thread's CPU time */
	WIRE_SNAPSHOT_RUNNING = 2, /* time_running and the count advance */
};

/*
 * One event of this process as the thread whose events it counts may read it without asking. value
 * = base + quantity if RUNNING, else base; time enabled = enabled_base + CPU time if ENABLED, else
 * enabled_base; time running alike with RUNNING. The bases are modulo 2^64. CPU time is the
 * thread's own clock, but not less than `snapshot_clock` of its meter: what the kernel tells S of
 * another task's time includes what a hypervisor has stolen of it.
 *
 * A snapshot holds if neither its own `seq`, which is odd while S writes it, nor `snapshot_gate` of
 * the thread's meter is odd or changes while it is read. The gate is odd while S looks at a thread
 * that is not in a call, and may change its events. Before it reads the gate the thread leaves its
 * clock in `cpu_time` of its meter.
 */
struct wire_snapshot {
	u32 seq;
	u32 kind;
	u32 flags;
	u32 meter;    /* whose; exact only for that thread itself */
	u32 quantity; /* enum meter_quantity */
	u32 reserved;
	u64 handle;
	u64 base;
	u64 enabled_base;
	u64 running_base;
	u64 id;
	u64 lost;
	u64 read_format;
	u64 pad[6];
};

#define WIRE_SNAPSHOTS 256u

#define WIRE_ASKED 4096u

enum wire_rdpmc {
	WIRE_RDPMC_MAPPED = 1, /* rdpmc executes if the process has a counter mapped */
	WIRE_RDPMC_ALL = 2,    /* and if it has not */
};

/* S: the head before HELLO is answered, the rest at any time. */
struct wire_proc {
	u64 magic;
	u32 version;
	u32 slots;
	u32 rdpmc; /* enum wire_rdpmc */
	u32 pid;   /* of the process, in the session's PID namespace */
	u32 ppid;  /* likewise, of who has forked it; 0: not known */
	u32 reserved;
	u64 pad[12];
	struct wire_snapshot snapshots[WIRE_SNAPSHOTS];
	/* By meter, whose number is taken modulo that: changes when it gets a trace; trace.h. */
	u32 asked[WIRE_ASKED];
};

/* `watch` of a struct meter; S. What its thread has to tell before it happens. */
enum wire_watch {
	WIRE_WATCH_TASKS = 1, /* making threads and processes (WIRE_OP_FORK) */
	WIRE_WATCH_EXIT = 2,  /* its end (WIRE_OP_EXIT), but that by exit_group or a signal */
	WIRE_WATCH_END = 8,   /* that by exit_group as well: something of it cannot wait */
	WIRE_WATCH_EXEC = 4,  /* a new program, before its first instruction: HELLO with the flag */
	/* after it: other names (WIRE_OP_NAMED), and code that it maps (WIRE_OP_MAPPED) */
	WIRE_WATCH_RECORDS = 16,
	WIRE_WATCH_DATA = 32, /* and all else that it maps */
	/* nothing, but a fork is to leave few faults of the runtime's own */
	WIRE_WATCH_FAULTS = 64,
	/* after it: unshare and setns (WIRE_OP_NAMESPACES) */
	WIRE_WATCH_NAMESPACES = 128,
	/* after it: a directory of cgroupfs that it makes (WIRE_OP_MADE_CGROUP) */
	WIRE_WATCH_CGROUPS = 256,
	/* bpf(2), before and after it (WIRE_OP_BPF) */
	WIRE_WATCH_BPF = 512,
};

enum wire_word {
	WIRE_IDLE = 0,
	WIRE_POSTED = 1, /* G: a request is there */
	WIRE_WAITED = 2, /* G: the same, and the thread sleeps on the futex */
	WIRE_DONE = 3,   /* S: the reply is there */
};

#define WIRE_DATA 0x5000u /* the largest read(2), 16 KiB, and what goes with it fit */

#define WIRE_NO_METER (~0u) /* nowhere in the segment */

enum wire_reply_flags {
	WIRE_REPLY_FD = 1, /* a struct wire_fd_message with one fd was sent before */
};

/* One call of one thread. All G but the reply and `awake`. */
struct wire_slot {
	s32 tid;      /* as the thread sees it */
	u32 meter;    /* its index in the segment */
	u32 cpu;      /* where it is */
	u32 token;    /* of a thread made after WIRE_OP_FORK, until its first call is answered */
	u64 cpu_time; /* ns of CLOCK_THREAD_CPUTIME_ID */
	u64 switches; /* context switches so far without own_switches */
	u64 pad0[4];

	u32 word;  /* enum wire_word; in a line of its own for the waiter */
	u32 seq;   /* counts the requests; comes back in fd messages */
	u32 awake; /* S: looking at `word`; no kick is needed */
	u32 pad1[13];

	u32 op; /* request */
	u32 len;
	union wire_args args;
	u64 pad2;

	s64 ret; /* reply: 0 or more, or -errno */
	u32 reply_flags;
	u32 reply_len;
	union wire_result result;
	u64 pad3[2];
	struct refusal refusal; /* why ret is negative */
	u8 data[WIRE_DATA];
};

/* Guest to session, on the bootstrap socket or its own socket. */
enum wire_kick_what {
	WIRE_KICK_CALL = 1,  /* `slot` has posted */
	WIRE_KICK_FD = 2,    /* carries one fd for the next request of `slot` */
	WIRE_KICK_HELLO = 3, /* a process introduces itself */
	WIRE_KICK_TRACE = 4, /* the trace of `meter` wants to be drained; abi/trace.h */
};

enum wire_hello_flags {
	/* A new program in a process: only the thread with `meter` lives on, as the leader. */
	WIRE_HELLO_EXEC = 1,
	/* On the socket that WIRE_OP_FORK gave. */
	WIRE_HELLO_CHILD = 2,
};

struct wire_kick {
	u32 what;
	u32 version;  /* HELLO */
	u32 slot;     /* CALL, FD */
	u32 flags;    /* HELLO: enum wire_hello_flags */
	u32 meter;    /* HELLO, TRACE: of the calling thread */
	s32 tid;      /* HELLO: of the calling thread, as it sees it */
	u64 cpu_time; /* HELLO: of the calling thread */
};

/*
 * Session to guest: one fd for request `seq` of `slot`; or, with WIRE_FD_MESSAGE_HELLO for `slot`,
 * the memfd (`seq` 0) or the errno in `seq` with which the session refuses the process.
 */
#define WIRE_FD_MESSAGE_HELLO (~0u)
struct wire_fd_message {
	u32 slot;
	u32 seq;
};

/*
 * What the session wants to be told, and has to say to all: the last bytes of the counter segment's
 * first page, which every process has mapped before it executes its first instruction. S; but every
 * guest can write to it, so it decides about counts alone. What a program is shown stands in struct
 * run_config and struct wire_proc.
 */
#define WIRE_ROOT    256u  /* bytes of the path of what guests are shown, with its NUL */
#define WIRE_VIEW_IN 3776u /* offset in the page */
struct wire_view {
	u32 any_event; /* this session has had an event: descriptors received may be perf fds */
	u32 flags;     /* enum wire_view_flags */
};

enum wire_view_flags {
	WIRE_VIEW_LAUNCH = 2,  /* the first program says HELLO with WIRE_HELLO_EXEC */
	WIRE_VIEW_CGROUPS = 4, /* somebody counts cgroups: WIRE_OP_MOVED is wanted of writers */
	/*
	 * Page faults come from /proc, since the kernel refuses its event for them: those of all
	 * modes together, and those of user mode. There the runtime's own are among them.
	 */
	WIRE_VIEW_PROC_ALL = 8,
	WIRE_VIEW_PROC_USER = 16,
	WIRE_VIEW_PLACES = 32, /* somebody counts on a CPU: of who calls sched_setaffinity(2) */
};

_Static_assert(sizeof(struct wire_snapshot) == 128, "snapshots do not share cache lines");
_Static_assert(sizeof(struct wire_view) <= 4096 - WIRE_VIEW_IN, "wire_view fits");
_Static_assert(sizeof(struct wire_proc) <= WIRE_PROC_SIZE, "wire_proc fits");
_Static_assert(sizeof(struct wire_slot) <= WIRE_SLOT_SIZE, "wire_slot fits");
_Static_assert(__builtin_offsetof(struct wire_slot, word) == 64, "word begins a cache line");
_Static_assert(__builtin_offsetof(struct wire_slot, op) == 128, "so does the request");

#endif
