/*
 * PURPOSE: guests as the session knows them: processes, their threads, and how one is found.
 *
 * Ownership: the session owns its processes, a process its threads. A thread has a core task from
 * the moment somebody has to do with it: it called, or an event was opened on it, or its parent's
 * events were inherited. Order: processes and threads end, and get tasks, within an instant
 * (task/instant.h); the memory of a process is freed after the batch of epoll events.
 */
#ifndef SESSION_TASK_GUESTS_H
#define SESSION_TASK_GUESTS_H

#include <sys/types.h>

#include "abi/wire.h"
#include "base/list.h"
#include "session/hash.h"
#include "session/poll-source.h"
#include "session/task/allowance.h"
#include "session/task/clock.h"
#include "session/task/meters.h"
#include "session/task/wide.h"
#include "session/wire/snapshot.h"

struct guests {
	struct list processes; /* struct guest_process */
	struct list dead;      /* those to be freed after the batch */
	/*
	 * Live processes by pid, and their threads by what else they are known by, unless that is
	 * 0.
	 */
	struct hash by_pid, by_tid, by_meter, by_token;
	u32 last_token; /* of WIRE_OP_FORK */
	pid_t own_pid;  /* of the session, which is no guest */
};

/* Descriptors of a process that was announced: its memory twice, and its socket. */
#define ANNOUNCED 3u

struct guest_process {
	struct poll_source sock_poll, pid_poll;
	struct session *s;
	struct list link; /* in guests.processes or guests.dead */
	struct hash_link by_pid;
	pid_t pid;              /* in the session's namespace; 0 while it has not said HELLO */
	int pidfd;              /* -1 until it is known */
	int sock;               /* -1: it has not introduced itself */
	int memfd;              /* -1 as well */
	u64 memory_size;        /* of memfd, bytes */
	int spare;              /* kept for pidfd by guest_process_reserve(); -1: none */
	u32 token;              /* of the WIRE_OP_FORK that announced it, until HELLO; else 0 */
	pid_t forker;           /* who announced it; 0: nobody */
	bool searched_in_vain;  /* a file that it named was not found within the time */
	bool watched;           /* its threads tell of an exec */
	u32 execing;            /* threads of it that are about to execve */
	char *program;          /* for which the kernel executes the runtime; NULL: not known */
	char *interp;           /* who interprets it, or the same; NULL: likewise */
	s8 same_ns;             /* pid namespace is the session's: 1, 0, or -1 not asked yet */
	struct wire_proc *page; /* the memfd, all of it; NULL without one */
	struct guest_thread *callers[WIRE_SLOTS]; /* who used the slot last; NULL: nobody */
	int fds[WIRE_SLOTS];                      /* received for the slot's next request, or -1 */
	struct allowance *allowance;              /* its own; NULL: it has opened nothing yet */
	struct allowance *announced;              /* its forker's, until HELLO; NULL: nobody's */
	struct closer *closer; /* of what it has sent; NULL: nothing to close yet. Owned */
	struct process_snapshots snapshots;
	struct list threads;  /* struct guest_thread */
	struct list mappings; /* struct mapping, wire/perf-file.h */
};

struct guest_thread {
	struct list link; /* in process->threads */
	struct hash_link by_tid, by_meter, by_token;
	struct guest_process *process;
	s32 tid;           /* in the session's namespace; 0 while not known */
	s32 guest_tid;     /* as the guest says */
	u32 meter;         /* index in the segment, or WIRE_NO_METER */
	u32 token;         /* of the WIRE_OP_FORK that announced it, until its first call; else 0 */
	struct task *task; /* NULL: nobody has to do with it */
	struct list invalid_link; /* in instant.invalid while its event snapshots do not hold */
	struct thread_counts counts;
	struct thread_clock clock;
	struct thread_place place;
	struct allowance_memory memory; /* its announcer's */
	struct thread_trace *trace;     /* NULL: no sampling event has counted it */
	struct thread_records *records; /* NULL: nobody asks when it is switched */
};

void guests_init(struct guests *g);
void guests_release(struct guests *g);

/* guest-process.c. @pid 0: one that WIRE_OP_FORK announces. NULL without memory. */
struct guest_process *guest_process_new(struct session *s, pid_t pid);
struct guest_process *guest_process_by_pid(struct session *s, pid_t pid);
/* What it is in the session's namespace; 0: not known any more. */
void guest_process_set_pid(struct guest_process *p, pid_t pid);
/* Its end will be noticed from now on. -ESRCH: it is over already. */
int must_check guest_process_watch_end(struct guest_process *p);
/* The memfd with its call slots; does nothing if it is there. */
int must_check guest_process_make_memory(struct guest_process *p);
/*
 * It is about to be made: whatever descriptors others take until it introduces itself, there is
 * enough for it, so that its counts are not lost. -EMFILE: it is better not made.
 */
int must_check guest_process_reserve(struct guest_process *p);
/* NULL: no such slot. */
struct wire_slot *guest_process_slot(struct guest_process *p, u32 slot);
/*
 * @pid is about to run a first program (the runtime with CONTROL_LAUNCH), and is a guest from now
 * on: events can be opened on it, and its start is its execve. 0, -ESRCH, -ENOMEM or another errno.
 */
int must_check guest_process_adopt(struct session *s, pid_t pid, s8 same_ns);
/* The kernel is about to execute the runtime for @program, which @interp interprets; NULL: none. */
void guest_process_executes(struct guest_process *p, const char *program, const char *interp);
/* @survivor has become the leader with a new program; its siblings died of it. */
void guest_process_exec(struct guest_process *p, struct guest_thread *survivor);
/* It is gone, or never came to be. Freed after the batch. */
void guest_process_end(struct guest_process *p);
void guest_process_free(struct guest_process *p);

/* guest-thread.c. NULL without memory. */
struct guest_thread *guest_thread_new(struct guest_process *p, s32 tid, u32 meter);
struct guest_thread *guest_thread_by_tid(struct guest_process *p, s32 tid);
struct guest_thread *guest_thread_by_meter(struct guest_process *p, u32 meter);
struct guest_thread *guest_thread_by_token(struct guest_process *p, u32 token);
/* Its number while it is announced; 0: it is there. */
void guest_thread_set_token(struct guest_thread *th, u32 token);
/* A thread that was announced has come to be. */
void guest_thread_set_tid(struct guest_thread *th, s32 tid);
/* The same as its meter tells it; threads that make no call do not say it otherwise. */
void guest_thread_learn_tid(struct guest_thread *th);
/* @th says that it is on @cpu, in an entry of its trace. */
void guest_thread_told_cpu(struct guest_thread *th, u32 cpu);
/* enum wire_watch: its forks, its exec, its end, and what else somebody wants to know. */
u32 guest_thread_to_tell(const struct guest_thread *th);
/* Has its runtime tell of these from now on. */
void guest_thread_watch(struct guest_thread *th);
/* From here on its forks, its end and its exec concern the session. -ESRCH: it has just ended. */
int must_check guest_thread_need_task(struct guest_thread *th);
void guest_thread_end(struct guest_thread *th);

/*
 * guest-find.c. The guest thread @tid of the session's namespace, connected or not: one that is
 * known, or one whose meter names it. NULL: there is none.
 */
struct guest_thread *guest_find(struct session *s, s32 tid);
/* Makes threads of all that run with a meter of the segment and have not been met. */
void guests_meet(struct session *s);

#endif
