/*
 * Assigning events to counters: augmenting paths in the graph of events and the counters they
 * allow.
 */
#include "pmu/counters.h"

#include <errno.h>

#include "base/check.h"

u64 counters_used(const struct counters *counters)
{
	u64 used = 0;

	for (u32 i = 0; i < COUNTERS_MAX; i++)
		if (counters->events[i])
			used |= BIT(i);
	return used;
}

/*
 * Looks for a counter in @allowed that is free, or else one whose owner can go elsewhere. On
 * success `from[i]` leads back from the free counter, @end, along those that have to move. Each
 * counter is looked at once (@seen), which bounds the depth.
 */
static bool find_path(const struct counters *counters, u64 allowed, u64 *seen, s8 from[], s8 origin,
		      u32 *end)
{
	for (u32 i = 0; i < COUNTERS_MAX; i++) {
		if (!(allowed & ~*seen & BIT(i)) || counters->events[i])
			continue;
		from[i] = origin;
		*end = i;
		return true;
	}
	for (u32 i = 0; i < COUNTERS_MAX; i++) {
		if (!(allowed & ~*seen & BIT(i)))
			continue;
		*seen |= BIT(i);
		from[i] = origin;
		if (find_path(counters, counters->allowed[i], seen, from, (s8)i, end))
			return true;
	}
	return false;
}

int counters_add(struct counters *counters, struct event *event, u64 allowed, u64 taken,
		 void (*moved)(struct event *event, u32 counter))
{
	s8 from[COUNTERS_MAX];
	u64 seen = taken;
	u32 end;

	if (!find_path(counters, allowed, &seen, from, -1, &end))
		return -ENOSPC;
	/* From the free end backwards, so that nobody's place is overwritten. */
	while (from[end] >= 0) {
		u32 prev = (u32)from[end];

		counters->events[end] = counters->events[prev];
		counters->allowed[end] = counters->allowed[prev];
		moved(counters->events[end], end);
		end = prev;
	}
	counters->events[end] = event;
	counters->allowed[end] = allowed;
	moved(event, end);
	return 0;
}

void counters_del(struct counters *counters, const struct event *event)
{
	for (u32 i = 0; i < COUNTERS_MAX; i++) {
		if (counters->events[i] != event)
			continue;
		counters->events[i] = NULL;
		counters->allowed[i] = 0;
		return;
	}
	CHECK(!"the event is on a counter");
}

static void nobody_moved(struct event *event, u32 counter)
{
	(void)event;
	(void)counter;
}

bool counters_fit(const u64 *allowed, u32 n)
{
	struct counters trial = {0};

	if (n > COUNTERS_MAX)
		return false;
	for (u32 i = 0; i < n; i++)
		/* Any address tells them apart: nothing is done with the events here. */
		if (counters_add(&trial, (struct event *)(void *)&allowed[i], allowed[i], 0,
				 nobody_moved))
			return false;
	return true;
}
