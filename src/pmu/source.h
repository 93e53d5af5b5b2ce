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

struct cpu;
struct event;
struct pmu;
struct task;

struct pmu_source {
	/*
	 * The value of @what (enum cpu_what, or a PERF_COUNT_SW_*) for @task now. For a task that
	 * waits in a call of its own this is exact; for one that runs it is a racy load; for a dead one
	 * it is the final value, until task_exit() returns.
	 */
	u64 (*read)(void *ctx, struct task *task, u32 what);
	void *ctx;
	u64 have; /* bit per @what that read() can answer; others are ENOENT at open */
};

/*
 * The sum of @what over the tasks of the CPU, past ones included: a free-running counter for cpu-wide
 * events. Each driver that has a source keeps one struct source_cpu in pmu_cpu() and one struct
 * source_task in pmu_task(), and passes sched_task() on.
 */
#define SOURCE_MAX 16 /* @what is below this */

struct source_cpu {
	u64 folded[SOURCE_MAX]; /* by tasks that left */
};

struct source_task {
	u64 base[SOURCE_MAX]; /* value when it came to its CPU */
};

/* The raw value an event of @pmu reads: its task's, or its CPU's sum. */
u64 source_raw(const struct pmu_source *source, struct pmu *pmu, struct event *event, u32 what);

/* To be called from the driver's sched_task(). */
void source_sched_task(const struct pmu_source *source, struct pmu *pmu, struct task *task,
		       struct cpu *cpu, bool in);

#endif
