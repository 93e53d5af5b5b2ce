/*
 * PURPOSE: which event is on which counter, for PMUs that have few. Finds a place for everyone if
 * there is one at all: events that could go elsewhere move over (a matching, as x86 does it), so a
 * group fails only if it could not be counted by any assignment.
 *
 * There is one struct counters per task and one per CPU (pmu_task(), pmu_cpu()); a task's events
 * must not use a counter that the CPU's own use, and the other way round for every task on that
 * CPU: the caller says which are taken by others. Not locked, no allocation.
 */
#ifndef PMU_COUNTERS_H
#define PMU_COUNTERS_H

#include "base/types.h"

struct event;

#define COUNTERS_MAX 64

struct counters {
	struct event *events[COUNTERS_MAX]; /* who is on counter i; NULL: free */
	u64 allowed[COUNTERS_MAX];          /* where that event may be: bit per counter */
};

/* The counters in use. */
u64 counters_used(const struct counters *counters);

/*
 * Puts @event on one of @allowed, moving others within what they allow, never to one of @taken.
 * `moved` is called for everyone whose counter is new, @event included. -ENOSPC: it cannot be done,
 * and nothing has changed.
 */
int must_check counters_add(struct counters *counters, struct event *event, u64 allowed, u64 taken,
			    void (*moved)(struct event *event, u32 counter));

/* Frees the counter that @event is on. */
void counters_del(struct counters *counters, const struct event *event);

/* Could @n events with these masks be on at once? For event_init()'s "can this group ever fit". */
bool counters_fit(const u64 *allowed, u32 n);

#endif
