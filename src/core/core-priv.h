/* The core's own structures and the functions that its files share; doc/core.md explains them. */
#ifndef CORE_CORE_PRIV_H
#define CORE_CORE_PRIV_H

#include <errno.h>

#include "abi/perf.h"
#include "base/check.h"
#include "base/list.h"
#include "core/call.h"
#include "core/core.h"
#include "core/event/event.h"
#include "core/pmu.h"
#include "core/refuse.h"
#include "core/sample/sample-facts.h"
#include "record/coding.h"

/* PMUs of one core. */
#define CORE_MAX_PMUS 32

/* What of a context is on; also what a reschedule is about. */
#define CTX_PINNED   BIT(0)
#define CTX_FLEXIBLE BIT(1)
#define CTX_ALL      (CTX_PINNED | CTX_FLEXIBLE)
#define CTX_TIME     BIT(2)
#define CTX_CPU      BIT(3) /* of a reschedule: caused by an event of the CPU's context */

/* attr.aux_action (6.13), in what struct pe_attr calls reserved_3. */
#define AUX_START_PAUSED BIT(0)
#define AUX_PAUSE        BIT(1)
#define AUX_RESUME       BIT(2)
#define AUX_ACTION_KNOWN (u32)(AUX_START_PAUSED | AUX_PAUSE | AUX_RESUME)

/* A context's part for one PMU: what is on, and whether it has to rotate. */
struct ctx_pmu {
	struct list link; /* ctx->pmus */
	struct ctx *ctx;
	struct pmu *pmu;
	struct list pinned_active, flexible_active; /* leaders that are on, in the order put on */
	u32 nr_events;                              /* in the context */
	u32 nr_active;                              /* hardware events on counters */
	bool exclusive;                             /* an attr.exclusive event is on */
	bool rotate_necessary;                      /* a flexible group had no room */
	u64 rotated_at;                             /* ctx->time at the last rotation */
};

/*
 * The events of a task or of a CPU. Groups are kept in the order of their group_index, pinned and
 * flexible apart; rotation moves one to the end and gives it a new index.
 */
struct ctx {
	struct core *core;
	u32 refs; /* its task or CPU, and every event that points here */
	struct task
		*task;   /* NULL in a CPU's context and after the task's exit (then dead is set) */
	struct cpu *cpu; /* the CPU that it is on; NULL while its task is on none */
	bool dead;
	struct list pinned, flexible; /* leaders */
	u64 next_index;
	struct list events; /* all, leaders and members, in the order added */
	struct list pmus;
	u32 nr_events, nr_cgroup;
	u32 is_active;   /* CTX_* */
	u64 time, stamp; /* context time, and the clock's value when it was last advanced */
};

/* A PMU on a CPU: the mux timer. */
struct cpu_pmu {
	bool mux_armed;
	u64 mux_expires; /* armed: the deadline; else the last one: expiries stay on one grid */
	void *data;      /* pmu_cpu() */
};

struct cpu {
	struct core *core;
	u32 nr;
	bool online;
	struct ctx *ctx;
	struct list tasks;    /* that are on it */
	struct cpu_pmu *pmus; /* by pmu->slot */
};

struct task {
	struct core *core;
	struct list link; /* core->tasks while alive */
	u32 refs;         /* 1 while alive, and every event's target or owner */
	int tid, tgid;
	struct task *forker; /* while its FORK is still to be told; holds a reference */
	int parent_tgid;     /* of the process that made its own; 0: nobody known */
	void *host;
	bool dead;
	struct cpu *cpu; /* NULL: on none */
	u32 last_cpu;    /* where it was last */
	struct list cpu_link;
	struct ctx *ctx;   /* NULL until it has an event */
	struct list owned; /* events opened by it, in the order opened */
	struct cgroup *cgroup;
	void **data; /* pmu_task() by slot; NULL where the driver wants none */
	u32 nr_data;
};

/* How a cgroup's time runs on one CPU: while a task of it or of a descendant is there. */
struct cgroup_cpu {
	u32 nr_tasks;
	u64 time, stamp;
	void **data; /* pmu_cgroup() by slot */
};

struct cgroup {
	struct core *core;
	struct list link;
	struct cgroup *parent; /* NULL: the root */
	u64 id;
	struct cgroup_cpu *cpus;
};

/* Pages that a user, or a process, has locked by mapping events [RING-13]. */
struct mlock_account {
	struct list link; /* core->mlock_accounts */
	bool process;     /* @id is a process; else a user */
	u32 id;
	u32 refs; /* buffers */
	u64 pages;
};

struct mlock_charge {
	struct mlock_account *user, *process; /* NULL: nothing was charged */
	u64 user_pages, process_pages;
};

/*
 * A mapping of an event: its user page, and the ring buffer behind it. Events that were redirected
 * into it with SET_OUTPUT share it; `page` describes the event that was mapped.
 *
 * The memory is the guests' as much as ours, so all that the core goes by is here; what the page
 * shows of it is a copy. Of the page only data_tail is read, and any value will do.
 */
/* What a PMU traces into, behind the data pages; without one all of it is 0. */
struct aux_area {
	u64 offset, nr_pages;
	u32 maps;       /* at 0 nobody writes there, and it is freed */
	bool overwrite; /* the first mapping cannot write aux_tail: old data gives way */
	bool busy;      /* between aux_output_begin() and aux_output_end() */
	void *memory;
	void *memory_host;
	struct mlock_charge charge;
	struct pmu *pmu; /* whose it is */
	void *priv;      /* what setup_aux() gave */
	u64 head;        /* aux_head */
	u64 watermark;   /* bytes */
	u64 wakeup;      /* up to where the last wakeup was */
};

/* Records that wait for room, whole, each behind a struct backlog_record. */
struct backlog {
	u8 *bytes;
	u64 begin, end, room; /* from `begin` to `end` of `room` bytes */
};

struct buffer {
	u32 refs; /* one per event in `events` */
	struct list events;
	struct event *owner; /* whose user page it is */
	u32 maps;            /* of all events; at 0 it is detached from every event */
	u64 nr_pages;        /* data pages */
	u32 poll;            /* POLL* since the last event_poll() */
	bool paused;
	bool overwrite; /* the first mapping cannot write data_tail: old records give way */
	bool foreign;   /* another process than the counted one has mapped it: no index */
	struct perf_event_mmap_page *page;
	u32 lock; /* what page->lock shows: ours is the truth */
	void *memory_host;
	struct mlock_charge charge;

	u8 *data;      /* nr_pages of them */
	u64 head;      /* data_head */
	u64 watermark; /* bytes */
	u64 wakeup;    /* up to where the last wakeup was, bytes, and one more for each by count */
	u64 lost;      /* records since the last LOST */
	u64 samples;   /* since the last wakeup by count */

	bool lossless; /* what finds no room waits in the backlog */
	struct backlog backlog;
	struct list backlog_link; /* core->backlogs while it has one */

	struct aux_area aux;
};

struct core {
	const struct core_ops *ops;
	void *ctx;
	const struct core_arch *arch;
	u32 nr_cpus, hz, page_size;
	struct core_sysctl sysctl;
	struct cpu *cpus;
	struct list pmus;
	u32 nr_pmus;
	s32 next_type;
	struct list tasks, events, cgroups;
	u64 next_id;
	u32 nr_callchain; /* originals with CALLCHAIN: FILE-05's EBUSY */
	u32 nr_mux_armed;
	u64 timer;              /* what ops->timer() was last told */
	bool pending_disable;   /* some event has it set */
	struct task *opener;    /* during event_init() */
	const char *opens_path; /* likewise */
	struct refusal refusal; /* why the last call that failed did; cause 0: none did */
	struct list mlock_accounts;
	u64 *record;                    /* RECORD_MAX bytes to put a record together in */
	struct sample_scratch *scratch; /* its parts */
	/* when period_tick() is wanted; CORE_NO_TIMER: nobody waits */
	u64 tick;
	struct list backlogs; /* buffers that have one */
	u64 backlog_look;     /* when to look whether there is room for them, or CORE_NO_TIMER */
};

/* perm.c: 0 or the errno. */
/* @cause: one of the PARANOID_* that are about the kernel's part. */
int must_check perm_kernel(struct core *core, struct task *task, enum refusal_cause cause);
int must_check perm_cpu(struct core *core, struct task *task);
int must_check perm_open(struct core *core, struct task *task);
int must_check perm_task(struct core *core, struct task *task, struct task *target, bool sigtrap);
bool perm_capable(struct core *core, struct task *task);
/* Likewise, of the machine: what its namespaces are is nothing for those within one. */
bool perm_namespaces(struct core *core, struct task *task);

/* attr.c: steps 2 to 7 of an open. @store gets what to store into attr.size, or 0. */
int must_check attr_copy(struct core *core, struct task *task, const void *bytes, size_t len,
			 struct pe_attr *attr, u32 *store);

/* event.c */
struct alloc_args {
	struct task *target; /* NULL: cpu-wide */
	s32 cpu;
	struct event *leader; /* NULL: its own */
	struct event *parent; /* the original, for a child */
	bool cgroup_flag;
	s32 cgroup_fd;
	struct task *opener; /* NULL for a child */
	const char *path;
};
/* Steps 18 and 19 of an open. The event has no context and no reference; event_free() undoes it. */
int must_check event_alloc(struct core *core, const struct pe_attr *attr,
			   const struct alloc_args *args, struct event **out);
void event_free(struct event *event);
void event_wake(struct event *event);
/* See core_ops.event_changed. */
void event_changed(struct event *event);
void event_disown(struct event *event);
void event_enable(struct event *event);
void event_disable(struct event *event);
void event_reset(struct event *event);
/* Reads the counter and the times now; @group: of the leader's members too. */
void event_refresh(struct event *event, bool group);

/* coverage.c */
/* @child leaves its to its original. */
void coverage_fold(struct event *child);
/* What a read tells of @count, which is that of @original and all its copies, read just now. */
u64 coverage_told(struct event *original, u64 count);

/* time.c */
void ctx_time_start(struct ctx *ctx);
void ctx_time_update(struct ctx *ctx);
enum event_state event_effective_state(const struct event *event);
void event_update_time(struct event *event);
void event_update_sibling_time(struct event *leader);
void event_set_state(struct event *event, enum event_state state);

/* context.c */
struct ctx *ctx_new(struct core *core, struct task *task, struct cpu *cpu);
void ctx_put(struct ctx *ctx);
struct ctx_pmu *ctx_pmu_get(struct ctx *ctx, struct pmu *pmu);
struct ctx_pmu *ctx_pmu_find(const struct ctx *ctx, const struct pmu *pmu);
void ctx_insert_group(struct ctx *ctx, struct event *leader);
void ctx_add_event(struct ctx *ctx, struct event *event);
/* @state: EVENT_EXIT, EVENT_DEAD, or EVENT_OFF to keep what it is. @ungroup: leave the group. */
void ctx_remove_event(struct event *event, enum event_state state, bool ungroup);
void ctx_install(struct ctx *ctx, struct event *event);
/* Moves a pure software group that a hardware event is about to join to @pmu's part. */
void ctx_move_group(struct event *leader, struct pmu *pmu);
struct list *ctx_groups(struct ctx *ctx, const struct event *leader);
struct list *event_active_list(struct event *leader);

/* group.c */
void group_attach(struct event *event);
void group_detach(struct event *event);
u64 group_read_size(u64 read_format, u32 nr_siblings);
bool group_size_valid(const struct event *event);
int must_check group_check(struct core *core, struct event *event, struct ctx *ctx,
			   struct pmu **sched_pmu, bool *move);

/* sched.c */
bool event_filter_match(const struct event *event);
void group_sched_out(struct event *leader);
void event_sched_out(struct event *event);
void ctx_sched_out(struct ctx *ctx, struct pmu *pmu, u32 what);
void ctx_pmu_sched_out(struct ctx_pmu *epc, u32 what);
void ctx_pmu_sched_in(struct ctx_pmu *epc, u32 what);
/* @pmu NULL: all. @task NULL: the CPU's context and every task that is there. */
void cpu_resched(struct cpu *cpu, struct task *task, struct pmu *pmu, u32 what);
u32 event_sched_type(const struct event *event);
/* @event is newly on, and its context is on a CPU: who is on a counter now? */
void event_resched(struct event *event);

/* rotate.c */
void mux_start(struct cpu *cpu, struct pmu *pmu);
void timer_update(struct core *core);

/* inherit.c */
void event_exit(struct event *event);
void ctx_exit(struct task *task);

/*
 * standin.c: when an event of a CPU has been opened, and its group moved by that; and when there is
 * a task more.
 */
void standins_of_event(struct event *original, bool moved);
void standins_of_task(struct task *task);
/* What all of @event's, a stand-in's, original have told with this, whose count is up to date. */
u64 standin_told(struct event *event);
/* event.c: closes all of @original's. */
void standins_close(struct event *original);

/* exec.c, prctl.c, sysctl.c and invariants.c have only what core.h and call.h declare. */

/* task.c */
struct task *task_get(struct task *task);
void task_put(struct task *task);

/* cgroup.c */
bool cgroup_active(const struct cgroup *cgroup, const struct cpu *cpu);
void cgroup_time_update(struct cpu *cpu);
void cgroup_enter(struct cgroup *cgroup, struct cpu *cpu);
/* The time of the CPU's context, and with it its cgroups', is up to date. */
void cgroup_leave(struct cgroup *cgroup, struct cpu *cpu);
/* Makes pmu_cgroup()'s memory; false: no memory. */
bool must_check cgroup_alloc_data(struct cgroup *cgroup, struct pmu *pmu, u32 cpu);
void cgroup_free_all(struct core *core);

/* ring/buffer.c */
int must_check buffer_set_output(struct event *event, struct event *target);
int must_check buffer_pause(struct event *event, bool pause);
void buffer_detach(struct event *event);

/* ring/aux.c */
bool event_has_aux(const struct event *event);
int must_check aux_map(struct event *event, const struct map_call *call);
void aux_free(struct core *core, struct buffer *buffer);
/* @event, of an instruction trace unit, goes on: ITRACE_START until its driver has started. */
void itrace_start(struct event *event);

/* ring/memlock.c */
int must_check memlock_charge(struct event *event, struct task *task, u64 pages,
			      struct mlock_charge *charge);
void memlock_uncharge(struct core *core, struct mlock_charge *charge);

/* ring/output.c */
u64 event_clock(const struct event *event);
struct ap_layout event_layout(const struct event *event);
/* All who write to the buffer are woken, since each may be whom somebody polls. */
void output_wake(struct buffer *buffer);
/* Has @event data pages to write to? */
bool output_wanted(struct event *event);
/* Of a buffer that is written forward: is there room for @len bytes? */
bool output_has_room(const struct core *core, const struct buffer *buffer, u64 len);
/*
 * Writes them there. @every: it is a sample, of which so many are a wakeup; 0: none is. Who is to
 * be woken is told by buffer->wakeup, which has changed then.
 */
void output_put(const struct core *core, struct buffer *buffer, const void *bytes, u64 len,
		u32 every);

/* ring/backlog.c */
/* What is about to be written has to wait, and does. False: there is room, or never will be. */
bool backlog_take(struct core *core, struct buffer *buffer, const void *bytes, u64 len, u32 every);
bool buffer_has_backlog(const struct buffer *buffer);
void backlog_drop(struct buffer *buffer);
/*
 * Writes a record of @event's to its buffer, if it has one, with pid, tid and cpu of @task (NULL:
 * none) and @time (0: now) in trailer or sample. What finds no room is counted as lost.
 */
void output_record(struct event *event, struct ap_record *rec, const struct task *task, u64 time);

/* sample/sample-record.c */
struct sample_scratch *sample_scratch_new(void);
void sample_write(struct event *event, const struct sample_facts *facts);
/* What @event's read_format tells of it or its group; in the core's scratch memory. */
struct ap_read_block sample_read_block(struct event *event);

/* sample/branch-filter.c */
#define BRANCHES_MAX 64
/* Those of @given that @event is about, in @entries. */
struct ap_branch_stack branches_of(const struct event *event, const struct ap_branch_stack *given,
				   struct perf_branch_entry *entries);

/* sample/sideband.c */
/* Once its tid is known. */
void sideband_fork(struct task *child);
/* To the events of its context while it has one, and to its CPU's when that is gone. */
void sideband_exit(struct task *task);
void sideband_read(struct event *event, struct task *task);

/* sample/period.c */
/* How many periods have ended by what was added to hw.period_left, which becomes negative. */
u64 period_elapsed(struct event *event);
/*
 * An overflow more in this tick; @ended, the period before it, is what its frequency goes by. True:
 * it was throttled and stopped.
 */
bool period_account(struct event *event, u64 ended, bool may_throttle);
/* @event is about to go on. */
void period_sched_in(struct event *event);
/* IOC_PERIOD's @value, a period or a frequency. */
void period_force(struct event *event, u64 value);
/* The tick, if it is due. */
void period_tick(struct core *core);

/* pmu.c */
int must_check pmu_init_event(struct event *event);
void pmu_start_txn(struct pmu *pmu);
int must_check pmu_commit_txn(struct pmu *pmu);
void pmu_cancel_txn(struct pmu *pmu);

static inline u64 core_clock(const struct core *core)
{
	return core->ops->clock(core->ctx);
}

#endif
