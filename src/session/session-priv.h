/*
 * PURPOSE: what the session's files share: the session, its guests, events' descriptors, and a call
 * on its way.
 *
 * Ownership: the session owns its processes, a process its threads; a perf_file belongs to the
 * event whose host pointer it is. Objects that the current batch of epoll events may still name are
 * put on `dead_processes` and freed after it. A thread has a core task from the moment somebody has
 * to do with it: it called, or an event was opened on it, or its parent's events were inherited.
 */
#ifndef SESSION_SESSION_PRIV_H
#define SESSION_SESSION_PRIV_H

#include <sys/types.h>

#include "abi/meter.h"
#include "abi/wire.h"
#include "base/list.h"
#include "core/call.h"
#include "core/event.h"
#include "pmu/drivers.h"
#include "session/session.h"
#include "session/task/instant.h"

_Static_assert(sizeof(struct meter_tree) <= WIRE_VIEW_IN, "the view is behind the tree's header");

enum poll_source_kind {
	POLL_SOURCE_BOOTSTRAP,
	POLL_SOURCE_SOCK,
	POLL_SOURCE_LISTEN,
	POLL_SOURCE_TIMER,
	POLL_SOURCE_LOOK,
	POLL_SOURCE_ENDS,  /* the nested epoll of ends */
	POLL_SOURCE_PIDFD, /* in the nested one, as the following */
	POLL_SOURCE_PERF_FILE,
};

/* What epoll hands back. */
struct poll_source {
	enum poll_source_kind kind;
	bool gone; /* its owner died within this batch */
};

/*
 * The session's end of a socket that guests inherit; each who joins by name gets one for his tree.
 */
struct bootstrap {
	struct poll_source poll;
	struct list link; /* in session->bootstraps or, closed, in session->dead_bootstraps */
	int sock;
};

#define BUSY_POLL_SLOTS 4u

struct guest_process {
	struct poll_source sock_poll, pid_poll;
	struct session *s;
	struct list link;
	pid_t pid;              /* in the session's namespace; 0 while it has not said HELLO */
	int pidfd;              /* -1 until it is known */
	int sock;               /* -1: it has not introduced itself */
	int memfd;              /* -1 as well */
	u64 token;              /* of the WIRE_OP_FORK that announced it, until HELLO; else 0 */
	pid_t forker;           /* who announced it; 0: nobody */
	bool watched;           /* its threads tell of an exec, see watch_process() */
	s8 same_ns;             /* pid namespace is the session's: 1, 0, or -1 not asked yet */
	struct wire_proc *page; /* the memfd, all of it; NULL without one */
	struct guest_thread *callers[WIRE_SLOTS]; /* who used the slot last; NULL: nobody */
	int fds[WIRE_SLOTS];                      /* received for the slot's next request, or -1 */
	struct list threads;
	struct list mappings;
};

struct guest_thread {
	struct list link; /* in process->threads */
	struct guest_process *process;
	s32 tid;       /* in the session's namespace; 0 while not known */
	s32 guest_tid; /* as the guest says */
	u32 meter;     /* index in the tree, or WIRE_NO_METER */
	u64 token;     /* of the WIRE_OP_FORK that announced it, until its first call; else 0 */
	u64 before[METER_QUANTITIES]; /* counted in other meters than this, if it ever changed */
	u64 seen[METER_QUANTITIES];   /* guest_thread_sum() at the instant below, if seen_have */
	u64 seen_instant;
	u32 seen_meter;
	bool seen_have;
	struct task *task; /* NULL: nobody has to do with it */

	/* Clocks: clock.c. */
	u64 cpu_time; /* last known; never back */
	int clock_fd; /* the kernel's own event on it, or -1 */
	u64 clock_offset;
	u64 clock_instant; /* instant.number when it was last asked */
	bool clock_tried;
	int sw_fd[SOURCE_MAX]; /* by SW_WHAT(): kernel events for software counts, or -1 */
	u64 sw_last[SOURCE_MAX];
	u64 switches; /* context switches of the program before its last call, as the guest says */
	u64 switches_base; /* those of the thread that the kernel's event has not counted */
	u64 sw_wanted;     /* bit per SW_WHAT() that somebody reads */
};

struct snapshot_state {
	s64 state, leader, child_count;
	u64 lost, has_children;
};

/* A guest's perf descriptor: the write end of the pipe of which it has the read end. */
struct perf_file {
	struct poll_source poll;
	struct session *s;
	struct list link;
	struct event *event;
	int wfd;
	u64 ino, dev;
	u64 handle;
	u32 index;                    /* in session->files */
	struct guest_process *opener; /* who has the snapshot; NULL: nobody */
	u32 snapshot;                 /* index + 1; 0: none */
	u32 snapshot_seq;
	bool snapshot_stale;
	bool snapshot_invalid; /* its reader asks until it is revalidated */
	struct snapshot_state snapshot_state;
	int page_fd;                       /* memfd of the user page, or -1 */
	struct perf_event_mmap_page *page; /* that memory here; NULL without it */
	u32 maps;                          /* by guests; each keeps the event open */
	bool closed;                       /* no descriptor is left */
	int hung_fd; /* O_PATH of the pipe while its writer is closed so that it hangs up, or -1 */
};

/* What one process has mapped of one event. */
struct mapping {
	struct list link; /* in process->mappings */
	struct perf_file *file;
	u32 times;
};

struct call {
	struct session *s;
	struct guest_process *process;
	struct guest_thread *thread;
	u32 slot, seq;
	u32 cpu; /* where the thread says it is */
	u32 op;
	u32 len;
	union wire_args args;
	int fd_in; /* came with the request, or -1; closed after the call */
	bool past_fd_check, ask_again;

	s64 ret;
	union wire_result result;
	u32 out_len;
	int fd_out; /* goes with the reply, or -1 */
	bool fd_out_keep;
	u8 in[WIRE_DATA + 1]; /* NUL behind the data */
	u64 data[WIRE_DATA / 8];
};

struct session {
	struct session_config config;
	struct core *core;
	struct pmu *cpu_pmu, *sw_pmu;
	struct absent_pmus *absent_pmus;
	struct pmu_source cpu_source, sw_source;
	int paranoid;

	int epoll; /* all */
	int ends;  /* nested: deaths and closes */
	int timer;
	int listen;
	int guest_bootstrap;    /* the guests' end of the first one; -1 once given up */
	struct list bootstraps; /* struct bootstrap, those that some guest still holds */
	struct poll_source ends_poll, timer_poll, look_poll, listen_poll;

	int tree_fd;
	struct meter_tree *tree;
	u32 slots; /* that are mapped; the header's number is only believed before there are guests */
	struct wire_view *view;
	char root[256]; /* view.c; "": not made */
	int root_lock;  /* root, locked while it is used */

	bool wide;           /* there are events of CPUs or cgroups: wide.c */
	int look_timer;      /* for wide_tick() */
	u32 strangers;       /* meters for which no guest was found then */
	u64 wide_looked;     /* when the guests were last looked for */
	struct list cgroups; /* those that somebody counts, and what they are in: cgroups.c */

	struct list processes;
	struct list dead_processes; /* processes to be freed after the batch */
	struct list files;
	struct list dead_files;
	struct list dead_bootstraps;
	struct perf_file **handles;
	u32 nr_handles, handle_hint;
	u64 last_token;
	u32 nr_hung;
	struct event **direct; /* by handle; NULL: free */
	u32 nr_direct;
	struct event *direct_leader; /* of the direct call in progress */
	struct guest_process *self_process;
	struct guest_thread *self;

	struct call *call; /* in progress; NULL: a direct call */
	struct {
		struct guest_process *process;
		u32 slot;
	} busy_poll[BUSY_POLL_SLOTS];
	u32 nr_busy_poll;
	bool busy_poll_ending; /* about to sleep: none is added */
	u64 busy_poll_until;
	u32 nr_cpus;
	bool inherit_seen;
	struct instant instant;
};

/* session.c: CLOCK_MONOTONIC, ns */
u64 session_now(void);

/* meters.c */
/* What @th has counted in the meter it has now. */
u64 guest_thread_sum(struct guest_thread *th, enum meter_quantity q);
/* NULL: it has none. Written by its thread at any time. */
struct meter *guest_thread_meter(const struct guest_thread *th);
void guest_thread_set_meter(struct guest_thread *th, u32 meter);
/*
 * What an event of the cpu PMU counts, and how much of it the task has done: a source for that PMU.
 */
enum meter_quantity meters_quantity(enum cpu_what what);
u64 meters_read(void *ctx, struct task *task, u32 what);

/* fd-message.c: a message of exactly @len bytes with up to one descriptor, else -1. 0 or -errno */
int send_fd(int sock, const void *bytes, size_t len, int fd, int flags);
int must_check receive_fd(int sock, void *bytes, size_t len, int *fd);
/* The same to a guest, without waiting for room. */
int fd_message_send(int sock, u32 slot, u32 seq, int fd);

/* bootstrap.c: sockets and first contacts */
int must_check bootstrap_open(struct session *s, int *guest_end);
/*
 * The session reads @sock, its end of a bootstrap socket, from now on; takes it, also on failure.
 */
int must_check bootstrap_add(struct session *s, int sock);
void bootstrap_free(struct bootstrap *bootstrap);
void bootstrap_read(struct session *s, struct bootstrap *bootstrap);
int must_check guest_process_make_socket(struct guest_process *p, int *guest_end);
void sock_read(struct guest_process *p);
void listen_accept(struct session *s);
int must_check listen_open(struct session *s, const char *name, char *why, size_t len);
int must_check listen_connect(const char *name, int *sock);

/* guest-process.c: processes and threads */
struct guest_process *guest_process_new(struct session *s, pid_t pid);
struct guest_process *guest_process_by_pid(struct session *s, pid_t pid);
int must_check guest_process_watch_end(struct guest_process *p);
int must_check guest_process_make_memory(struct guest_process *p);
void guest_process_end(struct guest_process *p);
void guest_process_free(struct guest_process *p);
struct wire_slot *guest_process_slot(struct guest_process *p, u32 slot);
struct guest_thread *guest_thread_new(struct guest_process *p, s32 tid, u32 meter);
struct guest_thread *guest_thread_by_tid(struct guest_process *p, s32 tid);
struct guest_thread *guest_thread_by_meter(struct guest_process *p, u32 meter);
struct guest_thread *guest_thread_by_token(struct guest_process *p, u64 token);
void guest_thread_watch(struct guest_thread *th);
void guest_thread_set_tid(struct guest_thread *th, s32 tid);
void guest_thread_learn_tid(struct guest_thread *th);
int must_check guest_thread_need_task(struct guest_thread *th);
void guest_thread_end(struct guest_thread *th);
struct guest_thread *guest_find(struct session *s, s32 tid);
/* Makes threads of all that run with a meter of the tree and have not been met. */
void guests_meet(struct session *s);
void guest_process_exec(struct guest_process *p, struct guest_thread *survivor);

/* pids.c: what /proc tells */
bool pid_has_tid(pid_t pid, s32 tid);
s32 pid_translate(pid_t pid, s32 tid, bool *same);
bool pid_exists(pid_t pid);
bool pid_same_exe(pid_t a, pid_t b);
s32 pid_from_guest(struct guest_process *p, s32 pid);
/* What a thread's own pid namespace calls it and its process. */
struct pid_inside {
	pid_t tgid; /* in the session's namespace */
	pid_t pid;  /* of its process, inside */
	s32 tid;    /* inside */
	bool same;  /* it is the session's namespace */
};
bool pid_inside(s32 tid, struct pid_inside *in);
/* Has process @pid the file of @fd open? True where that cannot be looked at. */
bool pid_has_file(pid_t pid, int fd);
/* ~0u: not known */
u32 cred_euid(pid_t pid, s32 tid);
bool cred_capable(pid_t pid, s32 tid, enum core_cap cap);
bool cred_may_access(struct guest_thread *who, struct guest_thread *target, enum core_access how);

/* clock.c: CPU time and software counts of a thread */
void clock_init(struct guest_thread *th);
void clock_attach(struct guest_thread *th);
void clock_release(struct guest_thread *th);
void clock_told(struct guest_thread *th, u64 cpu_time);
u64 clock_read(struct guest_thread *th);
/*
 * Whether the kernel tells of a thread after its end; if not, clock_last() is to be called before.
 */
bool clock_outlives(void);
void clock_last(struct guest_thread *th);
/* For the instant that has begun, what is known of it will do. */
void clock_skip(struct guest_thread *th);
u64 software_read(void *ctx, struct task *task, u32 what);
u64 software_have(void);

/* serve.c: slots */
void serve_slot(struct guest_process *p, u32 slot);
void serve_forget(struct session *s, struct guest_process *p);
void serve_busy_poll(struct session *s);

/*
 * ops.c, ops-event.c, settings.c: the calls (enum wire_op). Each has the call's own copy of the
 * request and returns what `ret` of the reply says.
 */
s64 must_check op_run(struct call *c);
s64 op_open(struct call *c);
s64 op_read(struct call *c);
s64 op_ioctl(struct call *c);
s64 op_mmap(struct call *c);
s64 op_munmap(struct call *c);
s64 op_poll(struct call *c);
s64 op_lookup(struct call *c);
s64 op_hangup(struct call *c);
s64 op_sysctl(struct call *c);
extern const struct core_ops session_core_ops;

/* perf-file.c: descriptors */
int must_check perf_file_new(struct session *s, struct event *event, struct perf_file **out,
			     int *guest_fd);
struct perf_file *perf_file_by_handle(struct session *s, u64 handle);
struct perf_file *perf_file_by_fd(struct session *s, int fd);
void perf_file_closed(struct perf_file *file);
void perf_file_end(struct perf_file *file);
void perf_file_hang_up(struct perf_file *file, bool hung);
void perf_files_probe(struct session *s);
int map_note(struct guest_process *p, struct perf_file *file, int times);
void maps_drop(struct guest_process *p);
void perf_file_free(struct perf_file *file);

/* snapshot.c: what a process may read without asking */
void snapshot_take(struct perf_file *file, struct guest_process *opener);
void snapshot_drop(struct perf_file *file);
void snapshots_invalidate(struct session *s);
void snapshots_revalidate(struct session *s);
void direct_release(struct session *s);
void snapshots_stale(struct session *s, const struct event *event);

/*
 * cgroups.c. By fd: 0, -EBADF no cgroup's directory, -ENOENT one that perf does not count, -ENOMEM.
 * cgroup_place() tells the core where @th is now.
 */
int must_check cgroup_by_fd(struct session *s, int fd, struct cgroup **cgroup);
void cgroup_place(struct guest_thread *th);
void cgroups_forget(struct session *s);

/*
 * wide.c: after an open; before what reads or changes @event; when tasks may have moved; the
 * timer's
 */
void wide_opened(struct session *s, const struct event *event);
void wide_look(struct session *s, const struct event *event);
void wide_moved(struct session *s);
void wide_tick(struct session *s);
/* Where a thread is, which has a task since now. */
void wide_place(struct guest_thread *th);

/* view.c: the files that guests see; view_make() does nothing if they are there */
int must_check view_make(struct session *s, char *why, size_t len);
void view_remove(struct session *s);
/* What guests are shown from the beginning; all but the magic. */
void view_show(struct wire_view *view, const struct session_config *config,
	       const struct session_model *model);
/* The file @path, as shown, says @text from now on. */
void view_change(struct session *s, const char *path, const char *text);

/*
 * sysctl.c: the settings. Show gives the @index'th one's path and, in @text, its value; NULL: no
 * more. By fd: which one, or -ENOENT.
 */
const char *sysctl_show(struct session *s, u32 index, char *text, size_t size);
s64 sysctl_by_fd(struct session *s, int fd);

#endif
