/*
 * PURPOSE: the operations that a guest's runtime asks of its session, each with the structure of
 * its request and of its reply. Shapes only; how a call travels is wire.h's.
 *
 * A request is `op`, its arguments, and `len` bytes of data. A reply is `ret`, a result and
 * `reply_len` bytes of data; with ret < 0, a negative errno, there is no result but OPEN's.
 * Operations without a structure of their own have no arguments, or no result. Nothing of a request
 * is believed.
 */
#ifndef ABI_WIRE_OP_H
#define ABI_WIRE_OP_H

#include "base/types.h"

enum wire_op {
	WIRE_OP_NONE = 0,
	/*
	 * perf_event_open(2). Data: the attr as far as it is known. A cgroup's descriptor is sent
	 * before. ret 0: struct wire_event_result and one fd; else struct wire_open_refusal.
	 */
	WIRE_OP_OPEN = 1,
	/* read(2). ret: bytes; data: what it gives. */
	WIRE_OP_READ = 2,
	/* ioctl(2). Data: what the argument points to; comes back: what is stored there. */
	WIRE_OP_IOCTL = 3,
	/* mmap(2). ret 0, or 1 if rdpmc reads it: one fd, to be mapped from its beginning. */
	WIRE_OP_MMAP = 4,
	/* struct wire_event_args: a mapping made with WIRE_OP_MMAP is gone. */
	WIRE_OP_MUNMAP = 5,
	/* struct wire_event_args. ret: the revents that a kernel's perf descriptor would show. */
	WIRE_OP_POLL = 6,
	/* prctl(2): enable or disable what this thread has opened [PRC-01]. */
	WIRE_OP_PRCTL = 7,
	/*
	 * A descriptor is sent before. ret 0: it is an event, struct wire_event_result; 1: it is a
	 * setting, struct wire_setting_result; -ENOENT: neither.
	 */
	WIRE_OP_LOOKUP = 8,
	/*
	 * A task is about to be made. ret: a token. A process (no CLONE_THREAD): one fd, the
	 * child's end of its own socket, on which it says HELLO; the parent closes its copy. A
	 * thread has the token in its first call.
	 */
	WIRE_OP_FORK = 9,
	/* The task of a token was not made after all. */
	WIRE_OP_UNFORK = 10,
	/* The calling thread ends, and its meter is final. */
	WIRE_OP_EXIT = 11,
	/* ret 0: struct wire_caller_result. */
	WIRE_OP_PING = 12,
	/*
	 * struct wire_event_args: its descriptors are to report to epoll what they should. ret 1:
	 * it is a POLLHUP, and lasts; 0: a byte in the pipe, once for each report.
	 */
	WIRE_OP_HANGUP = 13,
	/*
	 * ret 0; data: the path of a directory that stands in for the root of what guests are
	 * shown, with its NUL. Below it are /sys/bus/event_source/devices, /sys/devices/NAME and
	 * files of /proc/sys/kernel. It is told to each process by itself: where it stood for all,
	 * any guest could show the others files of its own.
	 */
	WIRE_OP_VIEW = 14,
	/*
	 * Tasks may have moved: the caller has written to a cgroup's file. Or one has, since the
	 * caller has said on which CPUs it may be.
	 */
	WIRE_OP_MOVED = 15,
	/*
	 * A setting. With WIRE_SYSCTL_OPEN data is the path, as shown, of a file that is about to
	 * be opened for writing: ret its number, or -EACCES. With a number data is what is written:
	 * ret bytes taken.
	 */
	WIRE_OP_SYSCTL = 16,
	/*
	 * A process is about to run a first program, and a guest from now on. Of a caller that is
	 * no guest itself. ret 0.
	 */
	WIRE_OP_ADOPT = 17,
	/* ret: enum wire_async_answer, from now on. */
	WIRE_OP_ASYNC = 18,
	/* The calling thread has another name, which its meter has already. ret 0. */
	WIRE_OP_NAMED = 19,
	/* The calling thread has mapped something, or changed its protection. ret 0. */
	WIRE_OP_MAPPED = 20,
	/*
	 * The caller is about to execve, or that has failed: the kernel's events and the session
	 * are to let its process be, or to stop it again (abi/trace.h). Data: the name of the
	 * program for which the kernel will execute the runtime and, of a script, of who
	 * interprets it, or the first again, both with their zero; or nothing. ret 0.
	 */
	WIRE_OP_STOPS = 21,
	/* The calling thread has been to other namespaces. ret 0. */
	WIRE_OP_NAMESPACES = 22,
	/* The calling thread has made a cgroup, whose directory is sent before. ret 0. */
	WIRE_OP_MADE_CGROUP = 23,
	/*
	 * struct wire_event_args: the caller reads all of the event's buffer; what finds no room
	 * there waits, and so do the threads that it is of. Of a caller that is no guest: two that
	 * wait for each other would do so for ever. ret: how many bytes have found room by now.
	 */
	WIRE_OP_LOSSLESS = 24,
	/* The calling thread is about to call bpf(2), or has. ret 0. */
	WIRE_OP_BPF = 25,
	/*
	 * Where the calling thread finds what is asked of it, and tells its samples (abi/trace.h).
	 * ret 0: one fd, the process's memory with the session; -ENOENT: nothing has been asked.
	 */
	WIRE_OP_TRACE = 26,
	WIRE_OP_COUNT
};

#define WIRE_NO_EVENT    0ull    /* in place of a handle: group_fd -1 */
#define WIRE_BAD_EVENT   (~0ull) /* a descriptor that is no perf event's: EBADF */
#define WIRE_SYSCTL_OPEN (~0ull)

enum wire_attr_flags {
	WIRE_ATTR_TAIL = 1,  /* a byte beyond what is sent and below attr.size is not zero */
	WIRE_ATTR_FAULT = 2, /* not all of attr.size could be read */
};

struct wire_open_args {
	s32 pid;
	s32 cpu;
	u64 group;      /* a handle, WIRE_NO_EVENT or WIRE_BAD_EVENT */
	u64 flags;      /* PERF_FLAG_* */
	u32 attr_size;  /* attr.size as the guest wrote it */
	u32 attr_flags; /* enum wire_attr_flags */
	u32 patient;    /* 1: will ask again if told to */
	u32 path;       /* not 0: where in the data the path begins that config1 points to */
};

/* Of the operations that are about one event and nothing else. */
struct wire_event_args {
	u64 handle;
};

struct wire_read_args {
	u64 handle;
	u64 len; /* of the guest's buffer */
};

struct wire_ioctl_args {
	u64 handle;
	u64 arg;
	/* SET_OUTPUT: a handle in place of the argument's descriptor, as wire_open_args.group */
	u64 output;
	u32 cmd;
};

struct wire_mmap_args {
	u64 handle;
	u64 len;
	u64 prot;      /* PROT_* */
	u64 flags;     /* MAP_* */
	u64 offset;    /* in the file, bytes */
	u64 inherited; /* 1: of an inheriting event of any CPU too; a guest has what a kernel has */
};

struct wire_mapped_args {
	u64 addr;
	u64 len;
	u32 prot;  /* PROT_*, as the guest sees it */
	u32 begun; /* 1: a program begins, and this is code of it */
};

struct wire_stops_args {
	u32 on;
};

struct wire_prctl_args {
	u32 enable; /* 1, or 0: disable */
};

struct wire_fork_args {
	u64 clone_flags;
	u32 meter; /* index in the segment of the task's */
};

struct wire_unfork_args {
	u32 token;
};

struct wire_exit_args {
	/* 1: by exit_group, and its last counts cannot be had later (WIRE_WATCH_END) */
	u32 process;
};

struct wire_sysctl_args {
	u64 setting; /* its number, or WIRE_SYSCTL_OPEN */
	u64 offset;  /* in the file, bytes */
};

struct wire_adopt_args {
	s32 pid; /* as the caller sees it */
};

struct wire_moved_args {
	s32 tid; /* who may have moved, as the caller sees it; 0: anybody */
};

enum wire_async {
	WIRE_ASYNC_OFF = 0,
	WIRE_ASYNC_ON = 1,
	WIRE_ASYNC_ASK = 2, /* as it is */
};

enum wire_async_answer {
	WIRE_ASYNC_HAS = 1,   /* the event's descriptors have O_ASYNC */
	WIRE_ASYNC_BYTES = 2, /* the event samples: each byte in its pipe is to be a signal */
	WIRE_ASYNC_HUP = 4,   /* the latest of them is to say POLL_HUP */
};

struct wire_async_args {
	u64 handle;
	u32 set; /* enum wire_async */
};

union wire_args {
	u64 words[6];
	struct wire_open_args open;
	struct wire_event_args event;
	struct wire_read_args read;
	struct wire_ioctl_args ioctl;
	struct wire_mmap_args mmap;
	struct wire_mapped_args mapped;
	struct wire_stops_args stops;
	struct wire_prctl_args prctl;
	struct wire_fork_args fork;
	struct wire_unfork_args unfork;
	struct wire_exit_args exit;
	struct wire_sysctl_args sysctl;
	struct wire_adopt_args adopt;
	struct wire_moved_args moved;
	struct wire_async_args async;
};

struct wire_event_result {
	u64 handle;
	u64 id;       /* PERF_EVENT_IOC_ID */
	u32 snapshot; /* index + 1 of the caller's own snapshot of it; 0: none */
};

struct wire_open_refusal {
	u32 attr_size;     /* not 0: what to store into attr.size [SIZE-09] */
	u32 past_fd_check; /* 1: a missing descriptor would have won [CALL-16] */
	u32 ask_again;     /* 1: the task is a guest that has not come far enough to be known */
	u32 ask_kernel;    /* 1: the task is no guest, and the event one that the kernel counts */
};

struct wire_ioctl_result {
	u64 offset; /* of the data that come back, from the argument */
};

struct wire_caller_result {
	u64 tid; /* in the session's PID namespace */
};

struct wire_setting_result {
	u64 setting; /* its number, for WIRE_OP_SYSCTL */
};

/*
 * Of the directory, as statx(2) has it: in a mount namespace, or below another root, its name may
 * lead to one that somebody else has made.
 */
struct wire_view_result {
	u64 ino;
	u32 dev_major, dev_minor;
};

union wire_result {
	u64 words[4];
	struct wire_event_result event;
	struct wire_open_refusal open_refusal;
	struct wire_ioctl_result ioctl;
	struct wire_caller_result caller;
	struct wire_setting_result setting;
	struct wire_view_result view;
};

/* They are copied as words. */
_Static_assert(sizeof(union wire_args) == 48, "arguments of an operation");
_Static_assert(sizeof(union wire_result) == 32, "result of an operation");

#endif
