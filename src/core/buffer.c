/*
 * What mmap of an event makes [PAGE-01..20, RING-01]: the user page, and the object that SET_OUTPUT
 * and poll are about. Data pages would be the ring buffer's: nothing here samples, so a mapping that
 * wants some is refused.
 *
 * The page is the guest's as much as ours. It is only ever written; `lock` is our copy of the sequence
 * count, odd while the page changes, and the guest retries until it has seen one even value twice.
 */
#include "core/core-priv.h"

#include <stdlib.h>
#include <string.h>

static void buffer_attach(struct event *event, struct buffer *buffer)
{
	event->buffer = buffer;
	buffer->refs++;
	list_add_tail(&event->buffer_link, &buffer->events);
}

void buffer_detach(struct event *event)
{
	struct buffer *buffer = event->buffer;

	if (!buffer)
		return;
	event->buffer = NULL;
	list_del(&event->buffer_link);
	if (buffer->owner == event)
		buffer->owner = NULL;
	if (!--buffer->refs)
		free(buffer);
}

int buffer_set_output(struct event *event, struct event *target)
{
	struct core *core = event->core;

	if (target) {
		if (target == event)
			return core_refuse(core, -EINVAL,
					   "an event cannot be its own output target");
		if (target->cpu != event->cpu)
			return core_refuse(
				core, -EINVAL,
				"the output target is on cpu %d, this event on %d; they must be "
				"equal",
				target->cpu, event->cpu);
		if (target->cpu == -1 && target->target != event->target)
			return core_refuse(
				core, -EINVAL,
				"with cpu -1 the output target must count the same task");
		if (target->clockid != event->clockid)
			return core_refuse(
				core, -EINVAL,
				"the output target has another clock; records would not sort");
		if (target->attr.write_backward != event->attr.write_backward)
			return core_refuse(core, -EINVAL,
					   "the output target is written in the other direction");
	}
	if (event->maps)
		return core_refuse(
			core, -EINVAL,
			"this event is mapped itself; unmap it before its output is redirected");
	if (target && (!target->buffer || !target->buffer->maps))
		return core_refuse(
			core, -EINVAL,
			"the output target is not mapped; mmap it before events are redirected "
			"to it");
	buffer_detach(event);
	if (target)
		buffer_attach(event, target->buffer);
	return 0;
}

int buffer_pause(struct event *event, bool pause)
{
	if (!event->buffer || !event->buffer->nr_pages)
		return core_refuse(event->core, -EINVAL,
				   "PAUSE_OUTPUT: this event has no data buffer");
	event->buffer->paused = pause;
	return 0;
}

static void page_init(struct buffer *buffer, u32 page_size)
{
	struct perf_event_mmap_page *page = buffer->page;

	page->version = 0;
	page->compat_version = 0;
	page->cap_bit0_is_deprecated = 1;
	page->size = offsetof(struct perf_event_mmap_page, __reserved);
	page->data_offset = page_size;
	page->data_size = buffer->nr_pages * page_size;
}

/* The times are as of the last update: the page is not touched while the event just runs [PAGE-05]. */
void event_page_update(struct event *event)
{
	struct buffer *buffer = event->buffer;
	struct perf_event_mmap_page *page;
	u32 index = 0;
	u16 width;

	if (!buffer || buffer->owner != event)
		return;
	page = buffer->page;
	event_update_time(event);
	width = event->pmu->event_width ? event->pmu->event_width(event) : 0;
	if (event->state == EVENT_ACTIVE && event->pmu->event_idx)
		index = event->pmu->event_idx(event);

	/* Odd: whoever reads now reads again. */
	__atomic_store_n(&page->lock, ++buffer->lock, __ATOMIC_RELAXED);
	/* Pairs with the reader's barrier after its first look at the lock [PAGE-02]. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	page->cap_user_rdpmc = width != 0;
	page->pmc_width = width;
	page->index = index;
	page->offset = event->count + event->child_count;
	if (index)
		page->offset -= (s64)event->hw.prev;
	page->time_enabled = event->time_enabled + event->child_time_enabled;
	page->time_running = event->time_running + event->child_time_running;
	/* Pairs with the reader's barrier before its second look. */
	__atomic_store_n(&page->lock, ++buffer->lock, __ATOMIC_RELEASE);
}

struct perf_event_mmap_page *event_page(const struct event *event)
{
	return event->maps ? event->buffer->page : NULL;
}

static int check_geometry(struct event *event, u64 len, u64 offset, bool shared, u64 *nr_pages)
{
	struct core *core = event->core;
	u64 pages = len / core->page_size;

	if (event->cpu == -1 && event->attr.inherit)
		return core_refuse(
			core, -EINVAL,
			"an inherited event on all CPUs cannot be mapped: too many would write "
			"there; open it for each CPU, or without attr.inherit");
	if (!shared)
		return core_refuse(core, -EINVAL, "the mapping must be MAP_SHARED");
	if (len % core->page_size || !pages)
		return core_refuse(core, -EINVAL, "the length must be a multiple of the page size");
	if (offset) {
		if (!event->buffer)
			return core_refuse(
				core, -EINVAL,
				"an offset maps the AUX area, which needs a data buffer first");
		return core_refuse(core, -EOPNOTSUPP, "%s has no AUX area", event->pmu->name);
	}
	*nr_pages = pages - 1;
	if (*nr_pages & (*nr_pages - 1))
		return core_refuse(
			core, -EINVAL,
			"the length must be one page, or one and a power of two; it is %llu "
			"pages",
			(unsigned long long)pages);
	return 0;
}

int event_map(struct event *event, u64 len, u64 offset, bool shared, bool writable,
	      struct perf_event_mmap_page *page)
{
	struct core *core = event->core;
	struct buffer *buffer = event->buffer;
	u64 nr_pages = 0;
	int err;

	reason_clear(core);
	err = check_geometry(event, len, offset, shared, &nr_pages);
	if (err)
		return err;
	if (buffer) {
		if (buffer->nr_pages != nr_pages)
			return core_refuse(
				core, -EINVAL,
				"the event is mapped with %llu pages already; map as many",
				(unsigned long long)buffer->nr_pages + 1);
		if (!event->maps)
			return core_refuse(
				core, -EBUSY,
				"the event's output goes to another one's buffer; map that one");
		event->maps++;
		buffer->maps++;
		event_get(event);
		return 0;
	}
	if (nr_pages)
		return core_refuse(
			core, -EOPNOTSUPP,
			"data pages are for samples and other records, and events here only count; map "
			"one page, for the counter's values");
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return core_refuse(core, -ENOMEM, "no memory for a buffer");
	CHECK(page);
	list_init(&buffer->events);
	buffer->maps = 1;
	buffer->page = page;
	buffer->writable = writable;
	buffer->owner = event;
	buffer_attach(event, buffer);
	event->maps = 1;
	event_get(event);
	page_init(buffer, core->page_size);
	if (event->in_ctx)
		event_refresh(event, false);
	event_page_update(event);
	return 0;
}

void event_unmap(struct event *event)
{
	struct buffer *buffer = event->buffer;

	CHECK(event->maps && buffer && buffer->maps);
	buffer->maps--;
	/* Unreachable memory: whoever was redirected there writes nowhere from now on [RING-15]. */
	if (!buffer->maps)
		while (buffer->refs > 1) {
			struct event *other = list_first(&buffer->events, struct event,
							 buffer_link);

			if (other == event)
				other = list_entry(other->buffer_link.next, struct event,
						   buffer_link);
			buffer_detach(other);
			event_wake(other);
		}
	if (!--event->maps)
		buffer_detach(event);
	event_put(event);
}
