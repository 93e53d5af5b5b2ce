/*
 * Periods: what is left of one, how a frequency moves it [OVF-10], and how an event that samples
 * too often is throttled until the next tick [OVF-09].
 *
 * A tick is 1 / HZ of wall time. It is a timer only while somebody waits for it: an event with a
 * frequency that is on, or one that is throttled.
 */
#include "core/core-priv.h"

#define NSEC_PER_SEC 1000000000ull

/* Eight of them are a count. Only times or counts that lie lead further. */
#define LONGEST_PERIOD ((u64)INT64_MAX / 8)

/* An event of a model that has counted nothing in so many was off, or its program. */
#define TICKS_TOGETHER 64u

static u64 tick_ns(const struct core *core)
{
	return NSEC_PER_SEC / core->hz;
}

/* To the next one, unless it is on its way. */
static void tick_start(struct core *core)
{
	u64 tick = tick_ns(core);

	if (core->tick == CORE_NO_TIMER)
		core->tick = (core_clock(core) / tick + 1) * tick;
}

bool event_set_period(struct event *event)
{
	struct hw_event *hw = &event->hw;
	s64 period = (s64)hw->sample_period;

	if (hw->period_left > 0)
		return false;
	/* More than a whole one behind: from here anew. */
	if (hw->period_left <= -period)
		hw->period_left = 0;
	hw->period_left += period;
	hw->last_period = hw->sample_period;
	return true;
}

/*
 * For events that are told of occurrences, period_left is negative and grows. The period that ends
 * is the one that was set when it began [IOC-05].
 */
u64 period_elapsed(struct event *event)
{
	struct hw_event *hw = &event->hw;
	u64 period = hw->last_period, nr;

	hw->last_period = hw->sample_period;
	if (hw->period_left < 0)
		return 0;
	nr = (period + (u64)hw->period_left) / period;
	/* Of two periods near 2^63 only the difference is a signed number. */
	hw->period_left = (s64)((u64)hw->period_left - nr * period);
	return nr;
}

void event_occurrences_start(struct event *event)
{
	if (!event_is_sampling(event))
		return;
	event->hw.last_period = event->hw.sample_period;
	(void)period_elapsed(event);
}

/* @count in @ns: an eighth of the way to the period that gives the frequency. */
static void adjust(struct event *event, u64 ns, u64 count, bool running)
{
	struct hw_event *hw = &event->hw;
	__extension__ typedef unsigned __int128 u128;
	u128 per_second = (u128)count * NSEC_PER_SEC, wanted = (u128)ns * event->attr.sample_freq;
	u128 period = wanted ? per_second / wanted : per_second;
	s64 delta;

	if (period > LONGEST_PERIOD)
		period = LONGEST_PERIOD;
	delta = (s64)((u64)period - hw->sample_period);
	delta = delta >= 0 ? delta + 7 : delta - 7;
	hw->sample_period += (u64)(delta / 8);
	if (!hw->sample_period)
		hw->sample_period = 1;
	if (hw->period_left <= (s64)(8 * hw->sample_period))
		return;
	if (running)
		event->pmu->stop(event, PMU_EF_UPDATE);
	hw->period_left = 0;
	hw->overdue = false;
	if (running)
		event->pmu->start(event, PMU_EF_RELOAD);
}

/*
 * A program of which a model is told takes about this for an instruction, and more than that where
 * it is sampled so often that samples take most of its time. If they did count as time of the
 * program a shorter period would make it slower, and that the period still shorter.
 */
#define SLOW_NS 50u
/* And this, where the model sees windows, for an instruction that these stand for. */
#define SLOW_IN_WINDOWS_NS 5u

/* Of @ns since *done what the program itself may have taken. */
static u64 time_of_program(const struct event *event, u64 ns, u64 *done)
{
	struct pmu *pmu = event->pmu;
	u64 executed = event->coverage.covered - *done;
	bool windows = event->hw.in_windows && pmu->estimates(pmu);

	*done = event->coverage.covered;
	if (!event->hw.measure.covered)
		return ns;
	return min_u64(ns, executed * (windows ? SLOW_IN_WINDOWS_NS : SLOW_NS));
}

/* An overflow @now, with which as much as @ended is over. */
static void adjust_at_overflow(struct event *event, u64 now, u64 ended, bool running)
{
	struct hw_event *hw = &event->hw;
	u64 since = now - hw->freq_time, ns;

	hw->freq_ended += ended;
	/* A model tells of several at once: how often they come shows from one time to the next. */
	if (hw->measure.covered && (hw->model.ns || event->coverage.covered == hw->freq_done))
		return;
	ended = hw->freq_ended;
	hw->freq_ended = 0;
	hw->freq_time = now;
	ns = time_of_program(event, since, &hw->freq_done);
	if (ns && since < 2 * tick_ns(event->core))
		adjust(event, ns, ended, running);
}

/*
 * @count more at a tick. A model counts in bursts where it sees windows, with ticks in between that
 * have nothing: so it is looked at the last ones together, of which the older count less.
 */
static void adjust_modeled(struct event *event, u64 count)
{
	struct hw_event *hw = &event->hw;
	u64 now = core_clock(event->core), since = now - hw->tick_time;

	if (hw->tick_time && !count)
		return;
	hw->tick_time = now;
	if (since > TICKS_TOGETHER * tick_ns(event->core))
		since = tick_ns(event->core);
	hw->model.ns -= hw->model.ns / 8;
	hw->model.ns += time_of_program(event, since, &hw->tick_done);
	hw->model.count += count - hw->model.count / 8;
	if (hw->model.ns)
		adjust(event, hw->model.ns, hw->model.count, false);
}

/* The group's leader alone says so (6.16). */
static void log_throttle(struct event *event, bool on)
{
	struct ap_record rec = {
		.type = on ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE,
		.throttle = {.time = event_clock(event),
			     .id = event_primary_id(event),
			     .stream_id = event->id},
	};

	if (event_is_leader(event))
		output_record(event, &rec, event_on_task(event), 0);
}

void event_throttled(struct event *event, bool on)
{
	log_throttle(event, !on);
}

static void throttle_one(struct event *event)
{
	event->hw.throttled = true;
	event->pmu->stop(event, PMU_EF_UPDATE);
	log_throttle(event, false);
}

static void throttle_group(struct event *event)
{
	struct event *leader = event->leader, *sibling;

	tick_start(event->core);
	if (leader->state == EVENT_ACTIVE)
		throttle_one(leader);
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		if (sibling->state == EVENT_ACTIVE)
			throttle_one(sibling);
}

static void unthrottle_one(struct event *event, bool start)
{
	if (event->state != EVENT_ACTIVE || !event->hw.throttled)
		return;
	event->hw.throttled = false;
	event->hw.interrupts = 0;
	if (start)
		event->pmu->start(event, 0);
	log_throttle(event, true);
}

/* @running: this one counts already. */
static void unthrottle_group(struct event *event, const struct event *running)
{
	struct event *leader = event->leader, *sibling;

	CHECK(leader);
	unthrottle_one(leader, leader != running);
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		unthrottle_one(sibling, sibling != running);
}

bool period_account(struct event *event, u64 ended, bool may_throttle)
{
	struct core *core = event->core;
	struct hw_event *hw = &event->hw;
	u64 now = core_clock(core), tick = tick_ns(core);
	u64 limit = ((u64)core->sysctl.max_sample_rate + core->hz - 1) / core->hz;
	bool stop = false;

	if (now / tick != hw->interrupts_tick) {
		hw->interrupts_tick = now / tick;
		hw->interrupts = 0;
	}
	hw->interrupts++;
	if (may_throttle && hw->interrupts >= limit) {
		throttle_group(event);
		stop = true;
	}
	if (event->attr.freq)
		adjust_at_overflow(event, now, ended, !stop);
	return stop;
}

void period_sched_in(struct event *event)
{
	if (event->hw.throttled) {
		event->hw.throttled = false;
		event->hw.interrupts = 0;
		log_throttle(event, true);
	}
	if (event->attr.freq && event_is_sampling(event) && !event->hw.host_periods)
		tick_start(event->core);
}

static void force(struct event *event, u64 value)
{
	bool active = event->state == EVENT_ACTIVE;

	if (event->attr.freq) {
		event->attr.sample_freq = value;
	} else {
		event->attr.sample_period = value;
		event->hw.sample_period = value;
	}
	if (active)
		event->pmu->stop(event, PMU_EF_UPDATE);
	event->hw.period_left = 0;
	event->hw.overdue = false;
	if (!active)
		return;
	event->pmu->start(event, PMU_EF_RELOAD);
	if (event->hw.throttled)
		unthrottle_group(event, event);
}

void period_force(struct event *event, u64 value)
{
	struct event *standin;

	force(event, value);
	list_for_each_entry (standin, &event->standins, child_link)
		force(standin, value);
}

/* What the frequency of an event that is on was in this tick. True: it wants the next one too. */
static bool tick_event(struct event *event)
{
	struct hw_event *hw = &event->hw;
	bool freq = event->attr.freq && event_is_sampling(event) && !hw->host_periods &&
		    !hw->by_tasks;
	s64 delta;

	if (event->state != EVENT_ACTIVE)
		return false;
	if (hw->throttled)
		unthrottle_group(event, freq ? event : NULL);
	if (!freq)
		return false;
	event->pmu->stop(event, PMU_EF_UPDATE);
	delta = (s64)((u64)event->count - (u64)hw->freq_count);
	hw->freq_count = event->count;
	if (hw->measure.covered)
		adjust_modeled(event, delta > 0 ? (u64)delta : 0);
	else if (delta > 0)
		adjust(event, tick_ns(event->core), (u64)delta, false);
	event->pmu->start(event, delta > 0 ? PMU_EF_RELOAD : 0);
	return true;
}

void period_tick(struct core *core)
{
	struct event *event;
	bool again = false;

	if (core_clock(core) < core->tick)
		return;
	core->tick = CORE_NO_TIMER;
	list_for_each_entry (event, &core->events, link)
		again |= tick_event(event);
	if (again)
		tick_start(core);
}
