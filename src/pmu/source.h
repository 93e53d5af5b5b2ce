/*
 * PURPOSE: where a driver's numbers come from. A source answers "how much of X has this task done
 * so far", as a counter that never goes back over the task's whole life, execve included. The
 * session answers from meter pages and thread clocks, a test from an array of integers.
 *
 * Lifetime: borrowed by the driver for its own life. Locking: none. A source must not call the
 * core.
 */
#ifndef PMU_SOURCE_H
#define PMU_SOURCE_H

#include "core/pmu.h"
#include "core/sample/sample-facts.h"

#define SOURCE_MAX 208 /* every @what is below this */

struct pmu_source {
	/*
	 * The value of @what (CPU_* of drivers.h, or SW_WHAT()) for @task now. For a task that
	 * waits in a call of its own this is exact; for one that runs it is a racy load; for a dead
	 * one it is the final value, until task_exit() returns.
	 */
	u64 (*read)(void *ctx, struct task *task, u32 what);
	void *ctx;
	u64 have; /* software: bit per @what that read() can answer */

	/*
	 * Optional. An event that is opened, if @open, needs these parts of the model and how they
	 * are fed (MODEL_WANTS of abi/modeled.h), before it is told to count; or one is closed.
	 * @task: whose it is, if somebody has opened it for a task; else NULL.
	 */
	void (*want)(void *ctx, struct task *task, u32 parts, bool open);

	/*
	 * Optional: has anything been left out of what the model was to see, so that its counters
	 * stand at estimates? Without it none ever do.
	 */
	bool (*estimated)(void *ctx);

	/*
	 * Samples; both or none. @event's @task is to stop where its @what reaches @next, and from
	 * there on each time after another @period, until it is armed anew or disarmed; each time
	 * the host calls source_period_reached(). What is late is told late, never twice.
	 */
	void (*arm)(void *ctx, struct event *event, struct task *task, u32 what, u64 next,
		    u64 period);
	void (*disarm)(void *ctx, struct event *event, struct task *task);

	/*
	 * What the host's own kernel stops tasks for, which keeps the periods and throttles: from
	 * listen() to unlisten() the host calls source_stopped() each time that one of @event's is
	 * over. @forced: IOC_PERIOD has ended the one under way. forget() is for good. All three or
	 * none; `stops` has a bit per attr.config.
	 */
	void (*listen)(void *ctx, struct event *event, struct task *task, bool forced);
	void (*unlisten)(void *ctx, struct event *event, struct task *task);
	void (*forget)(void *ctx, struct event *event, struct task *task);
	u64 stops;
};

/* What an event can count without asking the source: hw.what beside its @what. */
enum {
	SOURCE_CLOCK = SOURCE_MAX, /* the time for which it was on, event_time() */
	SOURCE_NOTHING,            /* it is valid, and nothing of the kind happens here */
};

/*
 * What all drivers of free-running counters have in common. A driver begins its own struct with
 * this, fills in `pmu` with SOURCE_PMU_OPS among the rest, and sets hw.what in its event_init().
 *
 * An event of a task reads the source. A cpu-wide event reads a counter of the CPU, which is the
 * sum over the tasks that are or were there; only what a cpu-wide event counts is summed. For that
 * sum the driver's pmu_cpu() begins with a struct source_cpu. A task needs no memory of its own.
 */
struct source_pmu {
	struct pmu pmu;
	const struct pmu_source *source;
	/* Optional: in place of the source's, which it asks. */
	u64 (*read)(struct pmu *pmu, struct task *task, u32 what);
	u32 watchers;            /* cpu-wide events */
	u32 watched[SOURCE_MAX]; /* of these, by what they count */
};

/*
 * What tasks that left had, less what those that came had by then, modulo 2^64: with the values of
 * those that are there it is what has been done on this CPU, but for a constant. It means nothing
 * while nobody watches.
 */
struct source_cpu {
	u64 folded[SOURCE_MAX];
};

/* The last step of event_init(): the event has its place. source_destroy() undoes it. */
void source_opened(struct event *event);

/*
 * Last of all in event_init(), of an event that could sample: of those of tasks, each that counts
 * something does if the source can arm it.
 */
void source_sampling(struct event *event);

/*
 * For the host: @event's task was where it was to stop. The source's read() gives the counts of
 * that moment during the call, ops->task_clock() its time. False: the event is no longer there, or
 * waits for another count by now.
 */
bool source_period_reached(struct event *event, const struct sample_facts *facts,
			   bool may_throttle);

/* For the host: as it was listening for. Of a stopped or switched off event it is nothing. */
void source_stopped(struct event *event, const struct sample_facts *facts);

/* Of struct pmu. A driver with counters to give away has an add() and del() around these. */
void source_destroy(struct event *event); /* or a driver's around it; not of SOURCE_PMU_OPS */
int source_add(struct event *event, u32 flags);
void source_start(struct event *event, u32 flags);
void source_stop(struct event *event, u32 flags); /* del() too */
void source_read(struct event *event);
void source_sched_task(struct pmu *pmu, struct task *task, struct cpu *cpu, bool in);

#define SOURCE_PMU_OPS                                                   \
	.start = source_start, .stop = source_stop, .read = source_read, \
	.sched_task = source_sched_task

#endif
