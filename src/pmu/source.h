/*
 * PURPOSE: where a driver's numbers come from. A source answers "how much of X has this task done so
 * far", as a counter that never goes back over the task's whole life, execve included. The session
 * answers from meter pages and thread clocks, a test from an array of integers.
 *
 * Lifetime: borrowed by the driver for its own life. Locking: none. A source must not call the core.
 */
#ifndef PMU_SOURCE_H
#define PMU_SOURCE_H

#include "base/types.h"

struct core;
struct cpu;
struct event;
struct pmu;
struct task;

#define SOURCE_MAX 48 /* every @what is below this */

struct pmu_source {
	/*
	 * The value of @what (enum cpu_what, or SW_WHAT()) for @task now. For a task that waits in a
	 * call of its own this is exact; for one that runs it is a racy load; for a dead one it is the
	 * final value, until task_exit() returns.
	 */
	u64 (*read)(void *ctx, struct task *task, u32 what);
	void *ctx;
	u64 have; /* bit per @what that read() can answer */
};

/*
 * For cpu-wide events: free-running counters of a CPU, the sum over the tasks that are or were there.
 * A driver with a source begins its pmu_cpu() with a struct source_cpu and its pmu_task() with a struct
 * source_task, keeps one struct source_watch, and passes sched_task() on. Nothing is read, and nothing
 * summed, while there is no cpu-wide event.
 */
struct source_cpu {
	u64 folded[SOURCE_MAX]; /* by tasks that left */
};

struct source_task {
	u64 base[SOURCE_MAX]; /* its value when it came to its CPU, or when the watch began */
};

struct source_watch {
	u32 users; /* cpu-wide events */
};

/* Around the life of a cpu-wide event: in event_init() and destroy(). */
void source_watch(struct source_watch *watch, const struct pmu_source *source, struct pmu *pmu);
void source_unwatch(struct source_watch *watch);

/* To be called from the driver's sched_task(). */
void source_sched_task(const struct source_watch *watch, const struct pmu_source *source,
		       struct pmu *pmu, struct task *task, struct cpu *cpu, bool in);

/*
 * What drivers of free-running counters do with an event: bring its count up to date by what @raw has
 * counted since, begin, end.
 */
void source_event_read(struct event *event, u64 (*raw)(struct event *event));
void source_event_start(struct event *event, u64 (*raw)(struct event *event));
void source_event_stop(struct event *event, u64 (*raw)(struct event *event));

/* The raw value that an event which is on reads: its task's, or its CPU's (and cgroup's) sum. */
u64 source_raw(const struct pmu_source *source, struct pmu *pmu, struct event *event, u32 what);

#endif
