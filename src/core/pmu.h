/*
 * PURPOSE: the operations table of a PMU: the place where a driver, or an architecture, plugs into
 * the perf_event core [DES-10]. doc/howto-add-pmu.md adds a driver step by step.
 *
 * Adding a driver, in short:
 *   1. a struct pmu with name, type, class and capability flags;
 *   2. event_init(): is this attr mine, and can it ever be counted?
 *   3. add() and del(): give the event a counter, take it back; add() may say -ENOSPC;
 *   4. start(), stop() and read(): keep event->count, with hw.prev as the raw value last seen;
 *   5. files[]: what sysfs shows; 6. pmu_register(); 7. src/pmu/meson.build and a unit test.
 *
 * Lifetime: a struct pmu and its tables are the driver's and must outlive the core they are
 * registered with. Locking: none; the core and its drivers run in one thread, and a driver must not
 * call back into the core except for what this header and event.h mark as "for drivers".
 *
 * Where an event counts: a task event (event->ctx->task set) is on its task, wherever that runs; a
 * cpu-wide event is on event->ctx->cpu and counts every task that is there. Unlike on hardware
 * several tasks may be on one CPU at a time (every guest thread carries its own counters), so "the
 * counters of this CPU" for an event of task T are what the CPU's own events and T's leave free;
 * and a cpu-wide event needs a counter that is free beside each task on that CPU. With one task per
 * CPU this is what hardware does.
 */
#ifndef CORE_PMU_H
#define CORE_PMU_H

#include "abi/perf.h"
#include "base/list.h"
#include "base/types.h"
#include "core/refuse.h"

struct cgroup;
struct core;
struct cpu;
struct event;
struct task;

/* Which contexts a PMU's events live in, and with it how they are scheduled. */
enum pmu_class {
	PMU_HARDWARE, /* counters are scarce: groups may fail to go on, and rotate */
	PMU_SOFTWARE, /* never fails to be scheduled; may join any hardware group */
	/* like an uncore PMU: cpu-wide events only, task and cgroup events are EINVAL */
	PMU_CPU_ONLY,
};

/* Capability flags. */
#define PMU_CAP_NO_INTERRUPT BIT(0) /* cannot sample: sample_period != 0 is EOPNOTSUPP */
#define PMU_CAP_NO_NMI       BIT(1) /* its samples may use any clockid [ATTR-49] */
#define PMU_CAP_EXTENDED_REGS \
	BIT(3)                    /* knows the registers beyond the general ones; else EOPNOTSUPP */
#define PMU_CAP_EXCLUSIVE  BIT(4) /* one event per context or CPU: the second is EBUSY */
#define PMU_CAP_ITRACE     BIT(5) /* an instruction trace unit */
#define PMU_CAP_NO_EXCLUDE BIT(6) /* cannot filter by mode: any exclude_* bit is EINVAL */
#define PMU_CAP_AUX_OUTPUT \
	BIT(7) /* events may write into an AUX stream; else aux_output EOPNOTSUPP */
#define PMU_CAP_EXTENDED_HW_TYPE \
	BIT(8) /* generic ids may be sent here by bits 32-63 of config [TYPE-01] */

/* add(), del(), start(), stop(). */
#define PMU_EF_START  BIT(0) /* add: also start counting */
#define PMU_EF_RELOAD BIT(1) /* start: reload the counter from hw.period_left */
#define PMU_EF_UPDATE BIT(2) /* del, stop: fold the counter into event->count first */

/* One file of the PMU's sysfs directory, e.g. "format/event" with "config:0-7\n". */
struct pmu_file {
	const char *path; /* relative to the PMU's directory, one '/' at most */
	const char *text; /* with its final newline */
};

struct pmu {
	const char *name;     /* its directory's name; unique within a core */
	s32 type;             /* attr.type; -1: pmu_register() chooses one from 6 up */
	enum pmu_class class; /* how its events are scheduled */
	u32 caps;             /* PMU_CAP_* */
	/* perf_event_mux_interval_ms; pmu_register() makes 0 one tick [GRP-11] */
	u32 mux_interval_ms;
	void *priv; /* the driver's own */

	/*
	 * Is @event for this PMU, and could it ever be counted? Looks at event->attr, event->cpu,
	 * event->target and, for "could this group ever fit", at event->leader and its siblings
	 * (event is not among them yet). Fills event->hw. Says why not with core_refuse().
	 *	0		mine
	 *	-ENOENT		not for this PMU: the search goes on; nobody takes it: ENOENT
	 * anything else is final:
	 *	-EINVAL		mine, but a field is wrong, or the group can never fit
	 *	-EOPNOTSUPP	mine and valid, but a feature is missing (precise_ip, branch
	 *	stack...) -EACCES, -EPERM	not allowed to this caller (event_capable())
	 *	-ENOSPC		a resource of a fixed number is used up (breakpoints)
	 *	-ENODEV		the CPU or a unit of it is absent
	 *	-EBUSY		in use by someone else
	 */
	int (*event_init)(struct event *event);

	/* Optional: undoes event_init(), when the event is freed. */
	void (*destroy)(struct event *event);

	/*
	 * Puts @event on a counter: chooses hw.idx, sets hw.prev, and with PMU_EF_START counts. The
	 * context's time is up to date. -ENOSPC: no counter is free now (the core tries again when
	 * it rotates). Software PMUs do not fail. Any other errno counts as -ENOSPC does.
	 */
	int (*add)(struct event *event, u32 flags);

	/* Takes @event off; with PMU_EF_UPDATE its count is final. Must undo all that add() did. */
	void (*del)(struct event *event, u32 flags);

	/* Counting on and off while the counter is kept: throttling, PERIOD, del() itself. */
	void (*start)(struct event *event, u32 flags);
	void (*stop)(struct event *event, u32 flags);

	/* Brings event->count up to date: count += raw - hw.prev, modulo the counter's width. */
	void (*read)(struct event *event);

	/*
	 * Of a driver that gives events an hw.measure: are their counts estimates by now? Then a
	 * read tells them in proportion to what was executed, before as they are.
	 */
	bool (*estimates)(struct pmu *pmu);

	/*
	 * Optional, all three or none: a group goes on as one. Between start_txn() and commit_txn()
	 * add() may postpone its checks; commit_txn() then answers -EAGAIN or -ENOSPC for all of
	 * them and the core takes each off again with del() and calls cancel_txn().
	 */
	void (*start_txn)(struct pmu *pmu);
	int (*commit_txn)(struct pmu *pmu);
	void (*cancel_txn)(struct pmu *pmu);

	/*
	 * Optional: what the user page's index shows: counter + 1, or 0 for "use read" [PAGE-03].
	 */
	u32 (*event_idx)(struct event *event);

	/* Optional: the counter's width in bits, for the user page's pmc_width [PAGE-12]. */
	u16 (*event_width)(struct event *event);

	/* Optional: may @period be used (IOC_PERIOD)? 0 or -EINVAL. */
	int (*check_period)(struct event *event, u64 period);

	/*
	 * Optional: do this PMU's counters exist on CPU @cpu? Where not, events are left out there
	 * without a claim that there was no room (big and little cores).
	 */
	bool (*on_cpu)(struct pmu *pmu, u32 cpu);

	/*
	 * Optional: SET_FILTER's text for @event. Without it SET_FILTER is EINVAL [IOC-07].
	 */
	int (*set_filter)(struct event *event, const char *text);

	/*
	 * Optional: the PMU writes traces into an AUX area. @memory of @size bytes, a power of two,
	 * has been mapped for @event; with @overwrite old data gives way, else what the reader has
	 * not taken stays. What it gives back, the driver's own, goes to aux_output_begin() and
	 * free_aux(); NULL: it cannot, which is -ENOMEM.
	 */
	void *(*setup_aux)(struct event *event, void *memory, u64 size, bool overwrite);
	/* Nobody writes there any more. */
	void (*free_aux)(void *aux);
	/*
	 * Optional, beside setup_aux(): copies the newest bytes of the trace that @event, which is
	 * on and has an area, is writing, at most @size, to @to; how many. For samples of its group
	 * (attr.aux_sample_size) [SAMP-22].
	 */
	u64 (*snapshot_aux)(struct event *event, void *to, u64 size);

	/*
	 * Optional: MODIFY_ATTRIBUTES of @event, which is off meanwhile, and of each of its copies.
	 * Changes event->attr, or refuses. Without it that is EOPNOTSUPP [IOC-12].
	 */
	int (*modify)(struct event *event, const struct pe_attr *attr);

	/* Optional: SET_BPF. The program is the one that ops->fd_bpf() was asked about last. */
	int (*set_bpf)(struct event *event);

	/*
	 * Optional: @task comes to @cpu or is about to leave it. Called for every task, events or
	 * none, before its events go on and after they are off.
	 */
	void (*sched_task)(struct pmu *pmu, struct task *task, struct cpu *cpu, bool in);

	/*
	 * Zeroed memory the core keeps for the driver per task and per CPU: pmu_task(), pmu_cpu().
	 */
	size_t task_size, cpu_size;

	const struct pmu_file
		*files; /* ended by a NULL path; `type`, the interval and uevent are added */

	/* Set by pmu_register(). */
	struct core *core;
	struct list link;
	u32 slot;          /* of pmu_task() and pmu_cpu() */
	s32 exclusive_cnt; /* PMU_CAP_EXCLUSIVE: > 0 task events, < 0 cpu-wide ones */
};

/*
 * Makes @pmu known to @core; order matters only where two would accept one attr: first come, first
 * asked. -EEXIST: its type or name is taken. -EBUSY: tasks exist already and it has task_size or
 * sched_task (register drivers first).
 */
int must_check pmu_register(struct core *core, struct pmu *pmu);

/* By number or name, or NULL. */
struct pmu *pmu_by_type(struct core *core, u32 type);
struct pmu *pmu_by_name(struct core *core, const char *name);

/* The next one after @prev (NULL: the first), or NULL: to list them all. */
struct pmu *pmu_next(struct core *core, struct pmu *prev);

/* -EINVAL unless ms >= 1. Takes effect when the running period ends [GRP-11]. */
int must_check pmu_set_mux_interval(struct pmu *pmu, u32 ms);

/*
 * The sysfs view: calls @emit for every file of @pmu's directory, `type` and (hardware class)
 * perf_event_mux_interval_ms included. @text is borrowed for the call.
 */
void pmu_files(struct pmu *pmu, void (*emit)(void *arg, const char *path, const char *text),
	       void *arg);

/* For drivers. */

/* The driver's memory for @task or @cpu: pmu->task_size or cpu_size bytes, zeroed at first. */
void *pmu_task(struct pmu *pmu, struct task *task);
void *pmu_cpu(struct pmu *pmu, struct cpu *cpu);

/*
 * The driver's memory for the part of @cgroup on @cpu: pmu->cpu_size bytes, zeroed at first. NULL
 * until the driver has had an event of that cgroup there.
 */
void *pmu_cgroup(struct pmu *pmu, struct cgroup *cgroup, struct cpu *cpu);

/*
 * Writing a trace: between begin and end the driver has the area to itself, and writes up to `room`
 * bytes behind `head`, both taken modulo the area's size.
 */
struct aux_output {
	struct event *event;
	u8 *area;
	u64 head;   /* where it begins; where data is overwritten the driver moves it on */
	u64 room;   /* bytes; 0 where data is overwritten */
	u64 wakeup; /* the reader is to be woken when the head is there */
	u64 flags;  /* the driver's: PERF_AUX_FLAG_TRUNCATED and the like */
};

/*
 * What setup_aux() gave; NULL: nothing is mapped, or there is no room, in which case the event goes
 * off when the operation ends [AUX-04]. Called by start(); end by stop().
 */
void *aux_output_begin(struct aux_output *out, struct event *event);
/* @size bytes are new: the AUX record, aux_head, a wakeup. TRUNCATED: the event goes off. */
void aux_output_end(struct aux_output *out, u64 size);
/* Moves the head by @size bytes that mean nothing. -ENOSPC: there is not so much room. */
int must_check aux_output_skip(struct aux_output *out, u64 size);
/* AUX_OUTPUT_HW_ID: by which number the trace calls @event. */
void aux_output_hw_id(struct event *event, u64 hw_id);
/* For PMU_CAP_ITRACE: its trace has begun, so no further ITRACE_START is written for it. */
void event_itrace_started(struct event *event);

/* The cgroup of @task (NULL: none), and the one that encloses @cgroup. */
struct cgroup *task_cgroup(const struct task *task);
struct cgroup *cgroup_parent(const struct cgroup *cgroup);

/* Is @task in @cgroup or in a descendant of it? */
bool task_in_cgroup(const struct task *task, const struct cgroup *cgroup);

/* The tasks on @cpu, the first for @prev NULL; NULL after the last. */
struct task *cpu_next_task(struct cpu *cpu, struct task *prev);
u32 cpu_number(const struct cpu *cpu);
struct cpu *cpu_by_number(struct core *core, u32 nr);

#endif
