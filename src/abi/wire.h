/*
 * PURPOSE: what a session (which plays the kernel) and the runtimes inside its guests say to each
 * other. Shapes only. doc/session.md tells the life of a call; this file is the authority on layout.
 *
 * One guest process has one SEQPACKET socket and one memfd, both made by the session:
 *
 *   offset 0               struct wire_proc         the process
 *   WIRE_SLOT_OFF(i)       struct meter (meter.h)   thread slot i: what the thread has retired
 *   WIRE_CALL_OFF(i)       struct wire_slot         thread slot i: its calls
 *
 * The memfd is sealed against resizing, so neither end can be hit by SIGBUS, and it is sparse: only
 * the slots of threads that exist cost memory. Each word below says who writes it: S the session, G
 * the guest's runtime. Guest memory is not trusted: the session copies a request out once, checks it,
 * and never follows an index or length that it has not checked; what S has written there is for the
 * guest to read, and the session never reads it back.
 *
 * A call: the thread fills its slot's request, stores WIRE_POSTED in `word` (release) and, unless
 * wire_proc.awake is set, sends a struct wire_kick. The session answers in the slot and stores
 * WIRE_DONE (release), waking the futex `word` if the thread had made it WIRE_WAITED. File descriptors
 * and the first contact travel on the socket. The socket's hang-up means that the session is gone:
 * from then on every perf call of the guest answers ENODEV and everything else runs on.
 */
#ifndef ABI_WIRE_H
#define ABI_WIRE_H

#include "base/types.h"

#define WIRE_MAGIC   0x52495759584e41ull /* "ANXYWIR" */
#define WIRE_VERSION 1

#define WIRE_PROC_SIZE   0x10000u
#define WIRE_SLOT_SIZE   0x10000u /* stride; the first half is the meter's */
#define WIRE_CALL_IN     0x8000u  /* where struct wire_slot begins in a slot */
#define WIRE_SLOTS_MAX   4096u
#define WIRE_SLOT_OFF(i) (WIRE_PROC_SIZE + (u64)(i)*WIRE_SLOT_SIZE)
#define WIRE_CALL_OFF(i) (WIRE_SLOT_OFF(i) + WIRE_CALL_IN)

/* One event of this process as the process may read it without asking; see wire_card_read(). */
#define WIRE_CARDS 256u

enum wire_card_kind {
	WIRE_CARD_NONE = 0,  /* ask the session */
	WIRE_CARD_METER = 1, /* value = base + the slot's meter quantity while running */
};

enum wire_card_flags {
	WIRE_CARD_ENABLED = 1, /* time_enabled advances with the slot's CPU time */
	WIRE_CARD_RUNNING = 2, /* time_running and the count advance */
	WIRE_CARD_READABLE = 4 /* in the user page: index is not 0, rdpmc works */
};

/*
 * Written by S under a sequence count: `seq` is odd while it changes. value = base + quantity if
 * RUNNING, else base; enabled = enabled_base + cpu_time if ENABLED, else enabled_base; running alike.
 * The bases are modulo 2^64.
 */
struct wire_card {
	u32 seq;
	u32 kind;
	u32 flags;
	u32 slot;     /* whose meter; exact only for a reader that is this thread */
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

enum wire_watch {
	WIRE_WATCH_THREADS = 1, /* threads' start and exit must be told (some event is inherited) */
	WIRE_WATCH_EXIT = 2,    /* threads' exit must be told (some thread has events) */
};

/* What the session has been told to show; S writes it before the guest is answered the first time. */
struct wire_proc {
	u64 magic;
	u32 version;
	u32 slots;     /* how many the memfd holds, <= WIRE_SLOTS_MAX */
	u32 awake;     /* S: looking at the slots; no kick needed */
	u32 watch;     /* S: enum wire_watch */
	u32 any_event; /* S: this session has had an event, so received descriptors may be perf fds */
	u32 paranoid;  /* S: the perf_event_paranoid in force + 1 */
	u32 cpu_model; /* S: CPUID leaf 1 EAX to show, 0: the CPU's own */
	u32 counters; /* S: counters to show in CPUID leaf 0xA, 0: as many as a model usually has */
	u32 rdpmc;    /* S: rdpmc executes in this process */
	u32 pad0;
	u64 key;        /* S: of the session; names it in messages */
	char root[192]; /* S: directory that holds the files guests are shown; "" none */
	u64 pad1[32];
	u64 perf_fds[16];  /* G: descriptors 0..1023 that may be perf fds; a cache */
	u32 perf_fds_high; /* G: 1: some perf fd is above 1023 */
	u32 slots_used;    /* G: no slot at or above this index was ever used */
	u64 pad2[64];
	struct wire_card cards[WIRE_CARDS]; /* S */
};

enum wire_word {
	WIRE_IDLE = 0,
	WIRE_POSTED = 1, /* G: a request is there */
	WIRE_WAITED = 2, /* G: the same, and the thread sleeps on the futex */
	WIRE_DONE = 3,   /* S: the reply is there */
};

enum wire_run {
	WIRE_RUN_NONE = 0,    /* no thread here */
	WIRE_RUN_GUEST = 1,   /* executing translated code */
	WIRE_RUN_RUNTIME = 2, /* in the runtime; will look at the doorbell before going back */
	WIRE_RUN_KERNEL = 3,  /* in a system call of the guest; the same */
	WIRE_RUN_EXITED = 4,  /* gone; the meter is final */
};

#define WIRE_DATA 0x5000u /* the largest read(2), 16 KiB, and a header fit */

enum wire_op {
	WIRE_OP_NONE = 0,
	/* arg0 pid, arg1 cpu, arg2 group handle (WIRE_NO_EVENT: -1, WIRE_BAD_EVENT: no perf fd), arg3
	 * flags, arg4 attr.size as the guest wrote it, arg5 1: the attr has non-zero bytes beyond what
	 * is sent; data: attr. A cgroup's fd goes with the kick. ret 0: out0 handle, out1 card index
	 * + 1 or 0, out2 the id; one fd. ret -E2BIG: out0 is the size to store [SIZE-09]. */
	WIRE_OP_OPEN = 1,
	/* arg0 handle, arg1 buffer length; ret bytes; data: what read(2) gives */
	WIRE_OP_READ = 2,
	/* arg0 handle, arg1 command, arg2 argument, or a handle for SET_OUTPUT; data: what the argument
	 * points to. ret as ioctl(2); data: what goes back. */
	WIRE_OP_IOCTL = 3,
	/* arg0 handle, arg1 length, arg2 PROT_*, arg3 MAP_*, arg4 file offset; ret 0: one fd to map in
	 * its place, out0 the offset in it */
	WIRE_OP_MMAP = 4,
	/* arg0 handle: a mapping made with WIRE_OP_MMAP is gone (arg1 its file offset) */
	WIRE_OP_MUNMAP = 5,
	/* arg0 handle; ret: the revents a kernel perf fd would show, out0 1: a ring is mapped */
	WIRE_OP_POLL = 6,
	/* arg0 PR_TASK_PERF_EVENTS_{DISABLE,ENABLE} [PRC-01] */
	WIRE_OP_PRCTL = 7,
	/* a descriptor goes with the kick; ret 0: out0, out1, out2 as of OPEN; -ENOENT: not a perf fd */
	WIRE_OP_LOOKUP = 8,
	/* arg0 clone flags: before a process is made; one fd, the child's socket, on which it says HELLO */
	WIRE_OP_FORK = 9,
	/* arg0 slot, arg1 clone flags: before a thread is made */
	WIRE_OP_THREAD = 10,
	/* the calling thread ends (arg0 0), or slot arg1's thread was not made after all (arg0 1) */
	WIRE_OP_EXIT = 11,
	/* nothing; ret 0. Measures the wire. */
	WIRE_OP_PING = 12,
	WIRE_OP_COUNT
};

#define WIRE_NO_EVENT  0ull    /* group_fd -1 */
#define WIRE_BAD_EVENT (~0ull) /* a descriptor that is not a perf fd: EBADF */

enum wire_reply_flags {
	WIRE_REPLY_FD = 1, /* a struct wire_parcel with one fd was sent before the reply */
};

/* Slot of a thread. All G but the reply and `doorbell`. */
struct wire_slot {
	u32 run;      /* enum wire_run */
	s32 tid;      /* as the thread sees it; 0 until known */
	u32 cpu;      /* where it last entered the runtime */
	u32 doorbell; /* S: a request to the thread; acted on at its next safe point */
	u64 cpu_time; /* ns of CLOCK_THREAD_CPUTIME_ID, when the last request was made or at exit */
	u64 trips;    /* requests made that slept: context switches that are ours (mechanisms 5) */
	u64 pad0[4];

	u32 word; /* enum wire_word; a line of its own for the waiter */
	u32 seq;  /* G: counts the requests, returned in parcels */
	u64 pad1[7];

	u32 op; /* request */
	u32 len;
	u64 arg[6];

	s64 ret; /* reply: 0 or more, or -errno */
	u32 reply_flags;
	u32 reply_len;
	u64 out[4];
	char reason[232]; /* why ret is negative: a sentence; "" if there is nothing to say */
	u8 data[WIRE_DATA];
};

/* On the socket, guest to session. */
enum wire_kick_what {
	WIRE_KICK_CALL = 1,  /* slot `slot` has posted; may carry one fd */
	WIRE_KICK_HELLO = 2, /* first words of a process, or of its new image after exec */
};

#define WIRE_HELLO_EXEC 1u /* `flags`: this process has said HELLO before; slot `slot` lives on */

struct wire_kick {
	u32 what;
	u32 version;
	u32 slot; /* HELLO: the slot of the calling thread */
	u32 flags;
	u64 cpu_time;
	s32 tid;
	u32 seq; /* CALL with an fd: of the request */
};

/* On the socket, session to guest: one fd for the request `seq` of `slot`, or the reply to HELLO (slot
 * WIRE_PARCEL_HELLO, the fd is the memfd; seq is an errno, 0 for welcome). */
#define WIRE_PARCEL_HELLO 0xffffffffu
struct wire_parcel {
	u32 slot;
	u32 seq;
};

_Static_assert(sizeof(struct wire_card) == 128, "cards do not share cache lines");
_Static_assert(sizeof(struct wire_proc) <= WIRE_PROC_SIZE, "wire_proc fits");
_Static_assert(sizeof(struct wire_slot) <= WIRE_SLOT_SIZE - WIRE_CALL_IN, "wire_slot fits");
_Static_assert(__builtin_offsetof(struct wire_slot, word) % 64 == 0, "word begins a cache line");

#endif
