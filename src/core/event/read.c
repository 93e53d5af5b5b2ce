/* read(2) and poll(2) of an event [READ, OVF-02..04]. */
#include "core/core-priv.h"

#include <poll.h>

static s64 event_count(const struct event *event)
{
	return (s64)((u64)event->count + (u64)event->child_count);
}

static u64 enabled_total(const struct event *event)
{
	return event->time_enabled + event->child_time_enabled;
}

static u64 running_total(const struct event *event)
{
	return event->time_running + event->child_time_running;
}

struct event_totals event_totals(struct event *event)
{
	struct event_totals total;
	struct event *child;

	event_refresh(event, false);
	total.count = (u64)event_count(event);
	total.enabled = enabled_total(event);
	total.running = running_total(event);
	list_for_each_entry (child, &event->children, child_link) {
		event_refresh(child, false);
		total.count += (u64)event_count(child);
		total.enabled += child->time_enabled;
		total.running += child->time_running;
	}
	total.count = coverage_told(event, total.count);
	return total;
}

static u32 read_single(struct event *event, u64 *words)
{
	const struct event_totals total = event_totals(event);
	u64 format = event->attr.read_format;
	u32 n = 0;

	words[n++] = total.count;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = total.enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = total.running;
	if (format & PERF_FORMAT_ID)
		words[n++] = event_primary_id(event);
	if (format & PE_FORMAT_LOST)
		words[n++] = event->lost_samples;
	return n;
}

static void add_entry(const struct event *event, u64 format, u64 *words, u32 *n)
{
	words[(*n)++] += (u64)event_count(event);
	if (format & PERF_FORMAT_ID)
		words[(*n)++] = event_primary_id(event);
	/*
	 * Assigned, not summed, as the kernel has it: a live child's 0 covers the original's
	 * [READ-17].
	 */
	if (format & PE_FORMAT_LOST)
		words[(*n)++] = event->lost_samples;
}

/* Adds one group, the original's or a child's, to @words. */
static int add_group(struct event *leader, u64 format, u64 *words)
{
	const struct event *parent = leader->parent;
	struct event *sibling;
	u32 n = 1;

	event_refresh(leader, true);
	if (parent && (parent->group_generation != leader->group_generation ||
		       parent->nr_siblings != leader->nr_siblings))
		return core_refuse(leader->core, -ECHILD, GROUP_CHILDREN);
	/* Members are on and off with their leader: one pair of times is enough. */
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] += enabled_total(leader);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] += running_total(leader);
	add_entry(leader, format, words, &n);
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		add_entry(sibling, format, words, &n);
	return 0;
}

/* The counts of @leader's group, which are complete, as they are told. */
static void tell_group(struct event *leader, u64 format, u64 *words)
{
	const u32 entry = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PE_FORMAT_LOST);
	struct event *sibling;
	u64 *count = words + 1;

	count += !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED);
	count += !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	*count = coverage_told(leader, *count);
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		count += entry;
		*count = coverage_told(sibling, *count);
	}
}

static int read_group(struct event *event, u64 *words, u64 size)
{
	struct event *leader = event->leader, *child;
	int err;

	for (u64 i = 0; i < size / 8; i++)
		words[i] = 0;
	words[0] = 1 + leader->nr_siblings;
	err = add_group(leader, event->attr.read_format, words);
	if (err)
		return err;
	list_for_each_entry (child, &leader->children, child_link) {
		err = add_group(child, event->attr.read_format, words);
		if (err)
			return err;
	}
	tell_group(leader, event->attr.read_format, words);
	return 0;
}

s64 event_read(struct event *event, u64 *words, u64 len)
{
	u64 size = group_read_size(event->attr.read_format, event->leader->nr_siblings);
	int err;

	core_refusal_clear(event->core);
	if (event->state == EVENT_ERROR)
		return 0;
	if (len < size)
		return core_refuse(event->core, -ENOSPC, READ_SPACE, .number = {len, size});
	CHECK(size <= EVENT_READ_MAX);
	if (!(event->attr.read_format & PERF_FORMAT_GROUP))
		return (s64)read_single(event, words) * 8;
	err = read_group(event, words, size);
	return err ? err : (s64)size;
}

bool event_target_gone(const struct event *event)
{
	return event->state <= EVENT_EXIT && list_empty(&event->children);
}

bool event_hangs_up(const struct event *event)
{
	return !event->buffer || (event_target_gone(event) && !buffer_has_backlog(event->buffer));
}

bool event_reports(const struct event *event)
{
	return (event->state == EVENT_ERROR && event->attr.pinned) ||
	       (event->buffer && event->buffer->poll);
}

u32 event_poll(struct event *event)
{
	u32 events = POLLHUP;

	if (event_target_gone(event) && event_hangs_up(event))
		return events;
	if (event->state == EVENT_ERROR && event->attr.pinned)
		return POLLERR;
	if (event->buffer) {
		events = event->buffer->poll;
		event->buffer->poll = 0;
	}
	return events;
}
