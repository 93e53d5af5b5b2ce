/*
 * PURPOSE: perf in the guest: what a program sees when it opens perf events and uses their
 * descriptors, and what its runtime tells the session about tasks that are made, run other
 * programs, and end.
 *
 * A perf descriptor is a real one, the read end of a pipe whose writer the session has; so close,
 * dup, fork, exec and SCM_RIGHTS are the kernel's. What a pipe does not do as a perf event does is
 * answered here. struct perf_fds remembers which descriptors are perf events; it is a cache, kept
 * right by the calls that make, copy and close descriptors, and where it does not know it asks the
 * session.
 *
 * Lifetime: one struct perf per process, made with it; NULL in struct proc: there is no session and
 * none of this costs anything. A vfork child has a copy. Locking: lookups take none (an entry is
 * one u64, written whole); growing takes wire.lock.
 */
#ifndef RT_PERF_PERF_GUEST_H
#define RT_PERF_PERF_GUEST_H

#include "rt/perf/wire-call.h"

struct syscall_row;

/* Descriptors by number: two levels, so that the usual few cost one page. */
#define PERF_FDS_PAGE  256u
#define PERF_FDS_PAGES 4096u

enum perf_fd_kind {
	PERF_FD_NONE,  /* not a perf event */
	PERF_FD_MAYBE, /* received from somewhere: the session knows */
	PERF_FD_EVENT,
	PERF_FD_SYSCTL, /* a setting, open for writing: `handle` is its number */
};

struct perf_fd {
	u64 handle;   /* the session's name for the event */
	u16 kind;     /* enum perf_fd_kind */
	u16 snapshot; /* index + 1 of its snapshot, or 0 */
	u16 ready;    /* found by the poll under way */
	u32 owner;    /* as F_SETOWN has named it, 0: none or otherwise; rt/perf/perf-owner.c */
};

/* A user page that is mapped: munmap tells the session. */
struct perf_map {
	u64 start, len;
	u64 handle;
	bool counter; /* rdpmc reads it */
};
#define PERF_MAPS 255u
struct perf_maps {
	struct perf_maps *next;
	struct perf_map map[PERF_MAPS]; /* a free one has no length */
};

struct perf {
	struct wire wire;
	const struct wire_view *view;
	u32 pid, ppid;        /* what the session calls the process and its parent; 0: not told */
	char root[WIRE_ROOT]; /* of what we are shown, as the session has told us; "": not yet */
	struct wire_view_result root_is; /* what is to be found there */
	s32 no_root;                     /* -errno: the session has none */
	u32 nr_fds; /* entries that are not NONE: 0 and most calls are not even looked at */
	u32 nr_maps;
	u32 nr_counters;      /* of those, the ones that rdpmc reads */
	struct perf_fd **fds; /* PERF_FDS_PAGES of them; NULL: there never was an entry */
	struct perf_maps *maps;
};

/*
 * The first thing of a process's runtime, before the first guest instruction; t->proc->perf is set
 * if there is a session. @fds: PERF_FDS_SAVED words, which descriptors the program before this one
 * had as perf events. @watch: what the session wants to be told of a program that is sampled (enum
 * wire_watch), as that one knew it. @launch: the first program of a tree.
 */
#define PERF_FDS_SAVED 17u
void perf_start(struct thread *t, const u64 *fds, u32 watch, bool launch);

/*
 * A guest's system call whose @row has SYSCALL_PATH or SYSCALL_PERF. True: *@ret is the answer.
 * Only called in a session.
 */
bool perf_syscall(struct thread *t, u64 nr, const struct syscall_row *row, long *ret);

/* What a fork carries from before the clone to after it. */
struct perf_fork {
	u32 token;   /* 0: nobody watches */
	s32 sock;    /* the child's own, or -1 */
	bool faults; /* somebody counts page faults */
};

/*
 * Tasks. Before one is made with @flags, to count in @meter; perf_made() in its maker, with what
 * clone answered. 0, or the -errno that fork is to give.
 */
must_check int perf_fork(struct thread *t, u64 flags, u32 meter, struct perf_fork *f);
void perf_made(struct thread *t, u64 flags, struct perf_fork *f, long ret);

/* In a new process, whose thread is @t; its struct perf is a copy of its parent's. */
void perf_forked(struct thread *t, const struct perf_fork *f);

/* The first thing of a thread that somebody watches. */
void perf_thread_begin(struct thread *t);

/*
 * What records call the calling thread and its process: in a PID namespace of its own it has other
 * numbers than in that of the session. What the program itself sees, as long as the session has not
 * told.
 */
void perf_ids(const struct thread *t, u32 *pid, u32 *tid);
/* Likewise its process's parent; 0: nobody has told. */
u32 perf_parent(const struct thread *t);

/* For a process that shares memory with its parent but not descriptors; NULL without memory. */
struct perf *perf_copy(const struct perf *p);
void perf_free(struct perf *p);

/*
 * The calling thread has another name; has mapped [addr, addr + len), which its program sees with
 * @prot, or given it that. For whoever wants records of it.
 */
void perf_named(struct thread *t);
void perf_mapped(struct thread *t, u64 addr, u64 len, u32 prot);
/* The calling thread's unshare or setns has succeeded, whatever it was about. */
void perf_namespaces(struct thread *t);

/* The calling thread ends, alone or with all others; nothing is counted for it any more. */
void perf_thread_exit(struct thread *t, bool process);

/*
 * Whether the kernel's events are to stop @t, which is the calling thread (abi/trace.h). @name as
 * for sample_exec_prepare().
 */
void perf_stops(struct thread *t, bool on, const char *name, const char *interp);

/*
 * Maps what the session asks of the calling thread, and where it answers, at @at, TRACE_SIZE bytes
 * (abi/trace.h). False: it asks nothing.
 */
must_check bool perf_trace(struct thread *t, void *at);

/*
 * For execve: what the next program's perf_start() gets. An exec ends all threads of the process,
 * so the new program is to tell of it if one of them is watched. Returns what perf_start() gets as
 * @watch.
 */
u32 perf_exec(struct thread *t, u64 *fds);

/*
 * @info is about to be delivered. A kernel made it of a byte in a pipe, as POLL_IN. Where it tells
 * of the last overflow that PERF_EVENT_IOC_REFRESH allows, it is POLL_HUP from here on. Only at a
 * boundary, since the session is asked.
 */
void perf_signal(struct thread *t, siginfo_t *info);
/* @t blocks a signal of its owned_signals, or does so no more. */
void perf_owner_masked(struct thread *t);

/* Descriptors. */
struct perf_fd *perf_fd_find(struct thread *t, int fd);
void perf_fd_set(struct thread *t, int fd, const struct perf_fd *entry);

/*
 * The overlay, files that the session shows in place of the machine's: the one for @path, in @out
 * of CONTROL_PATH bytes; false: the machine's own. "" in @out: there should be one, and it could
 * not be made (no_root says why).
 */
bool perf_overlay_path(struct thread *t, const char *path, char *out);
/* A descriptor named by /proc/self/fd/N is a perf event: its link's text, else NULL. */
const char *perf_fd_link(struct thread *t, const char *path);
/* @path is /proc/self/fdinfo/N of a perf event: N, else -1. */
int perf_fd_info(struct thread *t, const char *path);

#endif
