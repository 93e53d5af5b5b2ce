/*
 * A period was reached [OVF-01..11]: REFRESH's limit, throttling, the sample, the signals. The
 * order is that of the kernel's __perf_event_overflow().
 */
#include "core/core-priv.h"

/* The last overflow that REFRESH allows [OVF-08]. */
static bool is_last(struct event *event)
{
	if (!event->event_limit)
		return false;
	/* Whoever refreshes it often enough has a negative one, which wraps as in the kernel. */
	event->event_limit = (s32)((u32)event->event_limit - 1);
	if (event->event_limit)
		return false;
	event->pending_disable = true;
	event->core->pending_disable = true;
	event->pmu->stop(event, PMU_EF_UPDATE);
	return true;
}

/* @ended: the period that is over. */
static bool overflow(struct event *event, const struct sample_facts *facts, u64 ended,
		     bool may_throttle)
{
	struct event *original = event->parent ? event->parent : event;
	const struct core *core = event->core;
	bool stop, last;

	if (!event_is_sampling(event))
		return false;
	stop = !event->hw.host_periods && period_account(event, ended, may_throttle);
	last = is_last(event);
	if (event->attr.sigtrap && core->ops->sigtrap)
		core->ops->sigtrap(core->ctx, event, facts->task,
				   facts->has & PERF_SAMPLE_ADDR ? facts->sample.addr : 0);
	sample_write(event, facts);
	/* One for each overflow, whatever the buffer says, and without one too [OVF-06]. */
	if (core->ops->sigio)
		core->ops->sigio(core->ctx, original, last);
	return stop || last;
}

bool event_overflow(struct event *event, const struct sample_facts *facts, bool may_throttle)
{
	return overflow(event, facts, event->hw.last_period, may_throttle);
}

bool event_period_reached(struct event *event, const struct sample_facts *facts, bool may_throttle)
{
	struct sample_facts mine = *facts;
	u64 ended;

	if (event->state != EVENT_ACTIVE)
		return false;
	event->pmu->read(event);
	if (!event_is_sampling(event) || event->hw.period_left > 0)
		return false;
	ended = event->hw.last_period;
	if (!(mine.has & PERF_SAMPLE_PERIOD)) {
		mine.has |= PERF_SAMPLE_PERIOD;
		mine.sample.period = ended;
	}
	(void)event_set_period(event);
	(void)overflow(event, &mine, ended, may_throttle);
	return true;
}

void event_occurred(struct event *event, u64 nr, const struct sample_facts *facts)
{
	struct hw_event *hw = &event->hw;
	struct sample_facts mine = *facts;
	u64 times = 1;

	if (!event_is_sampling(event))
		return;
	if (!(mine.has & PERF_SAMPLE_PERIOD)) {
		mine.has |= PERF_SAMPLE_PERIOD;
		mine.sample.period = hw->last_period;
	}
	if (event->attr.sample_type & PERF_SAMPLE_PERIOD && !event->attr.freq) {
		/* Whoever samples the period gets every occurrence [SAMP-09]. */
		mine.sample.period = nr;
	} else if (nr != 1 || hw->sample_period != 1 || event->attr.freq) {
		hw->period_left += (s64)nr;
		if (hw->period_left < 0)
			return;
		times = period_elapsed(event);
	}
	if (hw->throttled)
		return;
	/* The first of a burst is never throttled. */
	for (u64 i = 0; i < times; i++)
		if (event_overflow(event, &mine, i > 0))
			return;
}
