/*
 * PURPOSE: the event object: what drivers, tests and the core's own files see of it. The host
 * treats it as opaque and uses core/call.h.
 *
 * Lifetime: perf_open() makes it with one reference, event_put() of the last one closes it.
 * Inherited children have no descriptor; their originals and their task's context hold them.
 * Locking: none, one thread. Fields belong to the core unless said otherwise.
 */
#ifndef CORE_EVENT_EVENT_H
#define CORE_EVENT_EVENT_H

#include "abi/perf.h"
#include "base/list.h"
#include "core/pmu.h"
#include "core/sample/sample-facts.h"

struct buffer;
struct cgroup;
struct ctx;
struct ctx_pmu;

/* The order matters: "off" is <= OFF, "on" is >= INACTIVE. */
enum event_state {
	EVENT_DEAD = -4,  /* closed */
	EVENT_EXIT = -3,  /* its task is gone; still readable */
	EVENT_ERROR = -2, /* pinned and could not be scheduled; only ENABLE leaves it [GRP-08] */
	EVENT_OFF = -1,
	EVENT_INACTIVE = 0, /* on, but not on a counter right now */
	EVENT_ACTIVE = 1,
};

/*
 * Of an event that is estimated from a part of what happens: how much was executed, and how much
 * what was counted stands for. Who wants the best value takes the count times the one over the
 * other (coverage.c).
 */
struct coverage {
	u64 executed, covered;
};

/* The driver's part. Filled by its event_init() and add(); the core reads what is marked. */
struct hw_event {
	u64 what;   /* driver: what to count, in its own code */
	u64 config; /* driver: further selection bits */
	u64 prev;   /* driver: raw counter value at the last read or start */
	s32 idx;    /* driver: counter number, -1 while on none */
	u32 state;  /* HW_* */
	u64 priv[2];
	/*
	 * driver: of an event of a model two further `what`s; covered 0: it is of none, and exact.
	 * One that samples is exact, too, but told late, many periods at once.
	 */
	struct coverage measure;
	struct coverage measured; /* driver: as prev, of these */
	/* driver, which has estimates(): a model need not see all to sample it */
	bool in_windows;
	bool no_interrupt; /* driver: as PMU_CAP_NO_INTERRUPT, for this event */
	/* driver: of a CPU's event the tasks there have the samples, by stand-ins */
	bool by_tasks;
	bool host_periods; /* driver: it is told when a period is over, and nothing is kept here */
	/* driver: it was stopped before it was told that its period is over */
	bool overdue;

	/* Core: sampling. The period in force, the one last programmed, and what is left of it. */
	u64 sample_period;
	u64 last_period;
	s64 period_left;
	u64 interrupts_tick; /* the tick that `interrupts` counts overflows of */
	u64 interrupts;
	bool throttled; /* stopped until the next tick */
	/* Of a frequency: when the last overflow was, and the count at the last tick. */
	u64 freq_time;
	s64 freq_count;
	/* Of a model's frequency: what was counted since freq_time, and executed by then. */
	u64 freq_ended, freq_done;
	u64 tick_time, tick_done; /* when it had counted something, and executed */
	struct {
		u64 ns, count;
	} model; /* of the last of these ticks */
};

#define HW_STOPPED  BIT(0) /* not counting; driver sets it in stop(), clears it in start() */
#define HW_UPTODATE BIT(1) /* event->count includes everything up to the stop */

struct event {
	struct core *core;
	struct pe_attr attr; /* ours, complete, `size` = PE_ATTR_SIZE_VER8 or what we know */
	u64 id;              /* unique, never reused; see event_primary_id() */
	u32 refs;            /* descriptors and mappings, the host's */
	enum event_state state;
	void *host;       /* the host's own, set after perf_open(); NULL in inherited events */
	struct list link; /* in core->events */

	struct pmu *pmu; /* who counts it */
	struct hw_event hw;

	s32 cpu;             /* attr's filter, or -1 */
	s32 clockid;         /* what its times are in; -1: the core's clock */
	struct task *target; /* whose events are counted; NULL: cpu-wide. Holds a reference */
	struct task *owner;  /* who opened it; NULL once that is gone, and in inherited events */
	struct list owner_link;
	struct cgroup *cgroup; /* cpu-wide events of a cgroup, else NULL */

	/*
	 * Its place. After its task's exit ctx stays, and in_ctx is false; the lists are unlinked.
	 */
	struct ctx *ctx;         /* holds a reference; NULL while being opened */
	struct ctx_pmu *epc;     /* ctx's part for the PMU that schedules it (the leader's) */
	struct list ctx_link;    /* ctx->events */
	struct list group_link;  /* a leader: in ctx's pinned or flexible list, in group order */
	struct list active_link; /* a leader that is on: in epc's active list */
	u64 group_index;         /* order of groups in ctx; the greatest is the last */

	/* Group: a single event leads itself. */
	struct event *leader;
	struct list siblings;     /* a leader: members in the order opened */
	struct list sibling_link; /* a member */
	u32 nr_siblings;
	/* a leader: counts changes, to notice child groups of another shape */
	u32 group_generation;

	/* Inheritance. */
	struct event *parent; /* the original, never itself inherited; NULL in an original */
	struct list children;
	struct list child_link;
	struct list standins; /* of an event of a CPU, see standin.c: one per task, by child_link */

	/* Counts. Driver: only `count`, in read() and stop(). */
	s64 count;
	u64 time_enabled, time_running, tstamp;
	s64 child_count; /* of children that are gone */
	s64 told; /* a stand-in's: what its original has of its count; an original's: their sum */
	u64 child_time_enabled, child_time_running;
	struct coverage coverage, child_coverage; /* as count and child_count, of hw.measure */
	s64 told_most; /* an original's: the greatest count that a read has told */

	/* Sampling's place: who gets the records, and what was lost [READ-04]. */
	u64 lost_samples;        /* records that found no room */
	struct buffer *buffer;   /* its own or SET_OUTPUT's, with a reference; NULL: none */
	struct list buffer_link; /* buffer->events */
	u32 maps;                /* how often this event itself is mapped now */
	s32 event_limit;         /* REFRESH: overflows left, 0: no limit */

	bool standin;         /* samples for `parent`, an event of a CPU, and counts for nobody */
	bool in_ctx;          /* in ctx's lists */
	bool group_pure_sw;   /* a leader: leader and all members are software events */
	bool itrace_started;  /* an original: its instruction trace has begun */
	bool pending_disable; /* its limit is used up: off at the next schedule-out or settle */
};

static inline bool event_is_sampling(const struct event *event)
{
	return event->attr.sample_period != 0;
}

static inline bool event_is_leader(const struct event *event)
{
	return event->leader == event;
}

static inline bool event_is_software(const struct event *event)
{
	return event->pmu->class == PMU_SOFTWARE;
}

/* PERF_FORMAT_ID, IOC_ID, PERF_SAMPLE_ID: the original's id [SAMP-06]. */
static inline u64 event_primary_id(const struct event *event)
{
	return event->parent ? event->parent->id : event->id;
}

/* For drivers. */

/*
 * The event's own clock as of the running operation: its task's CPU time, its CPU's or cgroup's
 * time.
 */
u64 event_time(const struct event *event);

/* The task an event is counting on, NULL for a cpu-wide one; the CPU it is on, NULL while off. */
struct task *event_on_task(const struct event *event);
struct cpu *event_on_cpu(const struct event *event);

/* The task that opened the event and is asking: in event_init() only. */
struct task *event_opener(const struct event *event);
/* Whether that is of the process which the event counts; of a copy it is not. Likewise. */
bool event_counts_opener(const struct event *event);
bool event_capable(const struct event *event, int core_cap);
/* The string that attr.config1 points to, or NULL: in event_init() only. */
const char *event_path(const struct event *event);

/*
 * Sampling, for drivers that know how far a counter is from its period. hw.period_left is what is
 * left as of hw.prev: read() takes from it what it adds to count, with event_counted(), and start()
 * with PMU_EF_RELOAD calls event_set_period(), which begins a new period if one is over (true).
 */
void event_counted(struct event *event, u64 n);
/* Beside it, of an event with an hw.measure, which stands at @now. */
void event_covered(struct event *event, struct coverage now);
bool event_set_period(struct event *event);

/*
 * The counter may have reached the period: reads it, begins the next period, and overflows. False:
 * it had not. A driver whose sample belongs to an exact count has its read() give that count.
 */
bool event_period_reached(struct event *event, const struct sample_facts *facts, bool may_throttle);

/*
 * For drivers that are told of each occurrence: @nr more of what the event counts have happened.
 * Their add() begins with event_occurrences_start().
 */
void event_occurred(struct event *event, u64 nr, const struct sample_facts *facts);
void event_occurrences_start(struct event *event);

/*
 * A period is over, whatever hw.period_left says: REFRESH's limit, throttling, sample, signals.
 * True: the event has been stopped [OVF-08, OVF-09].
 */
bool event_overflow(struct event *event, const struct sample_facts *facts, bool may_throttle);

/* THROTTLE and UNTHROTTLE, of an event whose periods the host keeps. */
void event_throttled(struct event *event, bool on);

/* LOST_SAMPLES: the driver itself dropped some. */
void event_lost_samples(struct event *event, u64 lost);

/*
 * Carries out what overflows left to do (REFRESH's end). Every call into the core ends with it; a
 * host that feeds overflows from outside of one says so with this.
 */
void core_settle(struct core *core);

/* Writes the user page, if one is mapped; drivers call it when they move an event's counter. */
void event_page_update(struct event *event);

#endif
