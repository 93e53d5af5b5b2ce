/*
 * PURPOSE: the perf_event subsystem as its host (the session, or a test) sees it: creating a core,
 * the operations it is handed, tasks and CPUs coming and going, the mux timer, sysctls. The calls
 * that a program makes on events are in core/call.h, drivers plug in through core/pmu.h.
 *
 * Lifetime: core_new() to core_free(). Tasks are made by task_new() or task_fork() and belong to
 * the core; the host's pointer is good until task_exit() returns, after which the core keeps the
 * object as long as an event refers to it.
 * Locking: none. Everything runs in one thread, and ops must not call back into the core, except
 * core_refuse().
 *
 * Time: two kinds. ops->clock() is wall time, used for cpu-wide events and for rotation. A task's
 * contexts live in that task's CPU time, ops->task_clock(): it stands still while the task sleeps
 * [READ-10]. Both in nanoseconds, neither may go back (the core treats a step back as no step).
 *
 * Counters: an event reads its driver's source, which answers with the value that is right *now*
 * for that task. For a thread's own call the host hands the snapshot that came with the call; for a
 * remote task it answers with a load of the running counter; see src/pmu/source.h.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "abi/perf.h"
#include "base/types.h"
#include "core/refuse.h"

struct cgroup;
struct core;
struct cpu;
struct event;
struct open_call;
struct perf_ns_link_info;
struct task;

#define CORE_NO_TIMER (~0ull)

enum core_cap {
	CORE_CAP_PERFMON,
	CORE_CAP_SYS_ADMIN,
	CORE_CAP_KILL,
	CORE_CAP_IPC_LOCK,
	CORE_CAP_INITIAL, /* none: to be in the machine's first user namespace, if that is known */
};

/* PTRACE_MODE_*_REALCREDS. */
enum core_access {
	CORE_ACCESS_READ,
	CORE_ACCESS_ATTACH, /* for sigtrap events */
};

/* What the core needs from its host. @ctx is what core_new() was given. */
struct core_ops {
	/* Wall time, ns, never back (CLOCK_MONOTONIC). */
	u64 (*clock)(void *ctx);

	/* CPU time @task has used, ns; for a dead task its last value. */
	u64 (*task_clock)(void *ctx, struct task *task);

	/*
	 * The earliest time at which core_timer_run() is wanted changed; CORE_NO_TIMER: not at all.
	 */
	void (*timer)(void *ctx, u64 deadline);

	/* Has @task the capability, in the namespace where the kernel would ask? */
	bool (*capable)(void *ctx, struct task *task, enum core_cap cap);

	/* Might @task ptrace @target in that way? Not asked for a task of the same process. */
	bool (*may_access)(void *ctx, struct task *task, struct task *target,
			   enum core_access access);

	/*
	 * Would one more descriptor fit? Called once per open, at its place in the order of checks
	 * [CALL-16]. 0 or -EMFILE, -ENFILE. If the open fails later the host gives up what it
	 * reserved. NULL: always room.
	 */
	int (*fd_reserve)(void *ctx, struct open_call *call);

	/*
	 * The event behind descriptor @fd of @caller's process, or NULL if it is closed or no perf
	 * event. Borrowed for the call.
	 */
	struct event *(*fd_event)(void *ctx, struct task *caller, int fd);

	/*
	 * The task that @caller calls @pid (> 0, or what else it passed but 0 and -1), or an errno:
	 * -ESRCH, or another one with core_refuse() for tasks that exist but are out of reach.
	 */
	int (*find_task)(void *ctx, struct task *caller, int pid, struct task **task);

	/*
	 * SET_BPF's descriptor: 0 a BPF program, -EBADF not open, -EINVAL something else.
	 * NULL: EBADF always.
	 */
	int (*fd_bpf)(void *ctx, struct task *caller, int fd);

	/* The cgroup behind directory descriptor @fd; -EBADF if it is none. NULL: EBADF always. */
	int (*fd_cgroup)(void *ctx, struct task *caller, int fd, struct cgroup **cgroup);

	/*
	 * Memory for a mapping of an event, that guests will map too: *@memory gets @size bytes of
	 * zeros, whole pages, *@host what the host knows them by (event_memory()). 0 or -ENOMEM, or
	 * another errno with core_refuse(). NULL: events cannot be mapped.
	 */
	int (*memory_new)(void *ctx, size_t size, void **memory, void **host);

	/* Nobody writes there any more; what guests still have mapped is theirs. */
	void (*memory_free)(void *ctx, void *memory, size_t size, void *host);

	/*
	 * Whom locked memory is charged to [RING-13]: @task's user, and in bytes how much its
	 * process may lock beyond what perf_event_mlock_kb gives the user (RLIMIT_MEMLOCK, ~0ull:
	 * no limit). NULL: nothing is charged.
	 */
	void (*mlock_limit)(void *ctx, struct task *task, u32 *uid, u64 *limit);

	/*
	 * The time of a record, in attr.clockid's clock, or for -1 in the core's own. NULL:
	 * clock().
	 */
	u64 (*record_clock)(void *ctx, s32 clockid);

	/*
	 * What who opened @event calls @task, in its own pid namespace. NULL: as task_new() was
	 * told.
	 */
	void (*record_ids)(void *ctx, const struct event *event, const struct task *task, u32 *pid,
			   u32 *tid);

	/*
	 * What @event's opener calls the parent process of @task, which ends. NULL: as task_fork()
	 * was told.
	 */
	u32 (*parent_pid)(void *ctx, const struct event *event, const struct task *task);

	/*
	 * The namespaces that @task is in, by NET_NS_INDEX and so on, of which there is room for
	 * NR_NAMESPACES: how many are told, 0 if that is not known. Asked after a fork and by
	 * task_namespaces(). NULL: never known.
	 */
	u32 (*namespaces)(void *ctx, struct task *task, struct perf_ns_link_info *links);

	/*
	 * What event_poll() answers changed for @event (its last target died, it went to ERROR):
	 * wake its pollers. May be NULL.
	 */
	void (*wake)(void *ctx, struct event *event);

	/*
	 * Whoever owns @event's descriptor and asked for signals (O_ASYNC) gets one: it reached its
	 * period, or its buffer woke for another record. @hup: POLL_HUP, as REFRESH's limit is used
	 * up and the event goes off; else POLL_IN. NULL: the host sends none.
	 */
	void (*sigio)(void *ctx, struct event *event, bool hup);

	/*
	 * attr.sigtrap: @task gets a SIGTRAP with attr.sig_data and @addr before it goes on
	 * [OVF-11]. One that is still on its way swallows it. May be NULL.
	 */
	void (*sigtrap)(void *ctx, struct event *event, struct task *task, u64 addr);

	/*
	 * What @event says changed in a way that does not follow from its last reading, its task's
	 * counters and its task's clock: its state, or whether its leader is on, its count, its
	 * children. Called before anything is read of the task for the sake of the change, or after
	 * its clock was asked. May be NULL.
	 */
	void (*event_changed)(void *ctx, struct event *event);

	/* The last reference went: the host forgets event->host. May be NULL. */
	void (*event_free)(void *ctx, struct event *event);
};

/*
 * /proc/sys/kernel/perf_*; the host fills it in and may change it at any time through the setters.
 */
struct core_sysctl {
	int paranoid;               /* perf_event_paranoid in force: what is shown and checked */
	u32 max_sample_rate;        /* perf_event_max_sample_rate, default 100000 */
	u32 cpu_time_max_percent;   /* perf_cpu_time_max_percent, default 25 */
	u32 max_stack;              /* perf_event_max_stack, default 127 */
	u32 max_contexts_per_stack; /* perf_event_max_contexts_per_stack, default 8 */
	int mlock_kb;               /* perf_event_mlock_kb, default 516 */
	/* Debian's kernels: 3 refuses all without CAP_SYS_ADMIN [FILE-02] */
	bool paranoid_3_refuses;
};

/* What the processor's architecture decides in an attr's checks. */
struct core_arch {
	u64 regs_valid;    /* sample_regs_*: any other bit is EINVAL [ATTR-47] */
	u64 regs_extended; /* of those, the ones that need PMU_CAP_EXTENDED_REGS */
	bool stack_dump;   /* STACK_USER can be had; else ENOSYS [ATTR-48] */
};

extern const struct core_arch core_arch_x86_64;
extern const struct core_arch core_arch_arm64;

struct core_config {
	const struct core_ops *ops;   /* borrowed for the core's life */
	void *ctx;                    /* handed to every op */
	u32 nr_cpus;                  /* nr_cpu_ids; all online at first */
	u32 hz;                       /* ticks a second, 250 if 0: the default mux interval */
	u32 page_size;                /* 4096 if 0 */
	const struct core_arch *arch; /* NULL: x86_64 */
	struct core_sysctl sysctl;    /* zeros in all but paranoid mean the defaults */
};

/* NULL only without memory. */
struct core *core_new(const struct core_config *config);

/* Frees every event, task and cgroup; fds that the host still maps to events are dead pointers. */
void core_free(struct core *core);

/*
 * Why the last call that failed did: valid until the next call into the core, with cause 0 after a
 * success. core_refusal_clear() is for hosts that refuse something before they come to the core.
 */
const struct refusal *core_refusal(const struct core *core);
void core_refusal_clear(struct core *core);

/* Walks everything and CHECK()s the invariants of doc/core.md; O(events), for tests and fuzzers. */
void core_check(struct core *core);

/* Sysctls: as a read shows them. */
const struct core_sysctl *core_sysctl(const struct core *core);

/* Like a write to the file: 0, or -EINVAL, -EBUSY [FILE-03..06] with a refusal. */
int must_check core_set_paranoid(struct core *core, int value);
int must_check core_set_max_sample_rate(struct core *core, int value);
int must_check core_set_cpu_time_max_percent(struct core *core, int value);
int must_check core_set_max_stack(struct core *core, int value);
int must_check core_set_max_contexts_per_stack(struct core *core, int value);
int must_check core_set_mlock_kb(struct core *core, int value);

/* CPUs: number of them, and hotplug: cpu-wide opens on an offline CPU are ENODEV [CALL-11]. */
u32 core_nr_cpus(const struct core *core);
void core_cpu_online(struct core *core, u32 cpu, bool online);

/*
 * The mux timer [GRP-11]: the host calls this at (or after) the deadline that ops->timer()
 * announced; earlier is harmless.
 */
void core_timer_run(struct core *core);

/*
 * Records that wait for room (event_lossless()): whether there are any; what fits by now is
 * written. To be called by the end of whatever may have written records.
 */
bool core_has_backlog(const struct core *core);
void core_backlogs_write(struct core *core);

/* Tasks: one per thread. */

/*
 * A task that nobody forked (the session's first). @tgid is the process's id; task_set_ids()
 * changes both (exec by another thread than the leader). @host is the host's pointer.
 * NULL only without memory.
 */
struct task *task_new(struct core *core, int tid, int tgid, void *host);

/*
 * @parent made a task: copies the events that inherit [INH-01..08]. @thread: CLONE_THREAD was set;
 * @clear_sighand: CLONE_CLEAR_SIGHAND. The child is on no CPU yet: task_sched_in() follows.
 * @tid 0: the kernel has not made it yet; its FORK record is written by task_set_ids(), and none at
 * all, nor an EXIT, if it never comes to be. 0 or -ENOMEM, or what a driver's event_init answered
 * for a copy; then there is no child.
 */
int must_check task_fork(struct task *parent, int tid, int tgid, bool thread, bool clear_sighand,
			 void *host, struct task **child);

/*
 * @task's execve succeeded: enable_on_exec and remove_on_exec. Its siblings have been ended by
 * task_exit() before. The host calls this when the old program's counts are complete.
 */
void task_exec(struct task *task);

/*
 * @task goes on without being counted: it execs a program out of the host's reach, or one with
 * set-id bits. Its events end as in task_exit(); those that it opened itself stay with their
 * descriptors.
 */
void task_uncount(struct task *task);

/*
 * @task is gone: takes its events off, folds inherited ones into their originals [INH-03], wakes
 * pollers. Its counters must be final and readable until this returns. Frees @task when no event
 * refers to it; the host must not use it again, and task_host() of what is left of it is NULL.
 */
void task_exit(struct task *task);

/*
 * @task is now on @cpu: its events and the CPU's go on, in the order of sched.c. On a CPU already:
 * leaves that first. A host that cannot see switches calls this whenever it learns of a new cpu and
 * lets the task stay "on" it while it sleeps: task_clock() stands still, so nothing is wrong.
 */
void task_sched_in(struct task *task, u32 cpu);

/* @task left its CPU; no-op if it is on none. Its counters must be readable as of this moment. */
void task_sched_out(struct task *task);

/* What the host learns of a task after it was made, or when exec makes it another. */
void task_set_ids(struct task *task, int tid, int tgid);
int task_tid(const struct task *task);
int task_tgid(const struct task *task);
void *task_host(const struct task *task);
struct core *task_core(const struct task *task);

/* The CPU it is on, or -1. */
int task_cpu(const struct task *task);
/* How many events are its own; a child inherits at most as many. */
u32 task_events(const struct task *task);

/*
 * What tasks do and some events want to be told of [REC]: each writes its record to the events of
 * the task's CPU and to its own that ask for such. FORK, EXIT and READ come with task_fork() and
 * task_exit(). Strings and arrays are borrowed for the call.
 */

struct task_map {
	u64 addr, len, offset; /* bytes */
	bool executable;
	u32 prot, flags;      /* as mmap(2) */
	const char *filename; /* or "//anon", "[heap]", "[stack]", "[vdso]" */
	u32 maj, min;
	u64 ino, ino_generation;
	const u8 *build_id; /* 20 bytes, of which build_id_size count; NULL and 0: none */
	u8 build_id_size;
};

/* MMAP or MMAP2. */
void task_mapped(struct task *task, const struct task_map *map);

/* COMM; @exec: by an execve, of which task_exec() was told before and mappings are told after. */
void task_named(struct task *task, const char *comm, bool exec);

/* NAMESPACES: @task may be in other ones, by what @current did (unshare, setns). */
void task_namespaces(struct task *current, struct task *task);

/* CGROUP: @task made one. */
void task_made_cgroup(struct task *task, u64 id, const char *path);

/* KSYMBOL, BPF_EVENT or TEXT_POKE: what @task has the kernel do to its code, as that tells it. */
struct ap_record;
void task_kernel_record(struct task *task, const struct ap_record *rec);

/* A task comes to its CPU, or leaves it. */
struct task_switch {
	bool out, preempted; /* it would have gone on */
	/* Who was there before, or is then, whether it is a task here or not; 0: not known. */
	u32 other_pid, other_tid;
};

/* SWITCH, or SWITCH_CPU_WIDE. */
void task_switched(struct task *task, const struct task_switch *sw);

/* Cgroups, as far as the host knows them. */

/*
 * @parent NULL: the root, of which there is one. Ids are the host's. The core's; NULL without
 * memory.
 */
struct cgroup *cgroup_new(struct core *core, struct cgroup *parent, u64 id);
/* NULL: there is none of that id. */
struct cgroup *cgroup_by_id(struct core *core, u64 id);
u64 cgroup_id(const struct cgroup *cgroup);

/* @task is in @cgroup from now on; new tasks are in their parent's, the first in none. */
void task_set_cgroup(struct task *task, struct cgroup *cgroup);

#endif
