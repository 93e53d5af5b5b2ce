/*
 * What mmap of an event makes [PAGE-01..20, RING-01]: the user page, and the object that SET_OUTPUT
 * and poll are about. output.c writes records into its data pages; aux.c has the AUX area behind.
 *
 * The page is the guest's as much as ours. Of it data_tail is read, and where an AUX area is to be;
 * for the rest it is only ever written; `lock` is our copy of the sequence count, odd while the
 * page changes, and the guest retries until it has seen one even value twice.
 */
#include "core/core-priv.h"

#include <stdlib.h>

static void buffer_attach(struct event *event, struct buffer *buffer)
{
	event->buffer = buffer;
	buffer->refs++;
	list_add_tail(&event->buffer_link, &buffer->events);
}

static size_t buffer_size(const struct core *core, const struct buffer *buffer)
{
	return (1 + buffer->nr_pages) * core->page_size;
}

void buffer_detach(struct event *event)
{
	struct buffer *buffer = event->buffer;
	struct core *core = event->core;

	if (!buffer)
		return;
	event->buffer = NULL;
	list_del(&event->buffer_link);
	if (buffer->owner == event)
		buffer->owner = NULL;
	if (--buffer->refs)
		return;
	aux_free(core, buffer);
	backlog_drop(buffer);
	core->ops->memory_free(core->ctx, buffer->page, buffer_size(core, buffer),
			       buffer->memory_host);
	memlock_uncharge(core, &buffer->charge);
	free(buffer);
}

int buffer_set_output(struct event *event, struct event *target)
{
	struct core *core = event->core;

	if (target) {
		if (target == event)
			return core_refuse(core, -EINVAL, OUTPUT_SELF);
		if (target->cpu != event->cpu)
			return core_refuse(core, -EINVAL, OUTPUT_CPU,
					   .number = {target->cpu, event->cpu});
		if (target->cpu == -1 && target->target != event->target)
			return core_refuse(core, -EINVAL, OUTPUT_TASK);
		if (target->clockid != event->clockid)
			return core_refuse(core, -EINVAL, OUTPUT_CLOCK);
		if (target->attr.write_backward != event->attr.write_backward)
			return core_refuse(core, -EINVAL, OUTPUT_DIRECTION);
		if (event_has_aux(event) && event_has_aux(target) && event->pmu != target->pmu)
			return core_refuse(core, -EINVAL, OUTPUT_AUX,
					   .name = {event->pmu->name, target->pmu->name});
	}
	if (event->maps)
		return core_refuse(core, -EINVAL, OUTPUT_MAPPED);
	if (target && (!target->buffer || !target->buffer->maps))
		return core_refuse(core, -EINVAL, OUTPUT_UNMAPPED);
	buffer_detach(event);
	if (target)
		buffer_attach(event, target->buffer);
	return 0;
}

int buffer_pause(struct event *event, bool pause)
{
	if (!event->buffer || !event->buffer->nr_pages)
		return core_refuse(event->core, -EINVAL, PAUSE_NO_BUFFER);
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

/*
 * The times are as of the last update: the page is not touched while the event just runs [PAGE-05].
 */
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
	/*
	 * A kernel's event is off whenever its task sleeps, and then has no index. Ours is on: only
	 * the task itself runs for certain while it reads the page.
	 */
	if (event->state == EVENT_ACTIVE && event->pmu->event_idx && !buffer->foreign)
		index = event->pmu->event_idx(event);

	/* Odd: whoever reads now reads again. */
	__atomic_store_n(&page->lock, ++buffer->lock, __ATOMIC_RELAXED);
	/* Pairs with the reader's barrier after its first look at the lock [PAGE-02]. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	page->cap_user_rdpmc = width != 0;
	page->pmc_width = width;
	page->index = index;
	/* All of it modulo 2^64. */
	page->offset = (s64)((u64)event->count + (u64)event->child_count -
			     (index ? (u64)event->hw.prev : 0));
	page->time_enabled = event->time_enabled + event->child_time_enabled;
	page->time_running = event->time_running + event->child_time_running;
	/* Pairs with the reader's barrier before its second look. */
	__atomic_store_n(&page->lock, ++buffer->lock, __ATOMIC_RELEASE);
}

struct perf_event_mmap_page *event_page(const struct event *event)
{
	return event->maps ? event->buffer->page : NULL;
}

void *event_memory(const struct event *event)
{
	return event->maps ? event->buffer->memory_host : NULL;
}

static int check_geometry(struct event *event, const struct map_call *call, u64 *nr_pages)
{
	struct core *core = event->core;
	u64 pages = call->len / core->page_size;

	if (event->cpu == -1 && event->attr.inherit && !call->inherited)
		return core_refuse(core, -EINVAL, MAP_INHERITED);
	if (!call->shared)
		return core_refuse(core, -EINVAL, MAP_PRIVATE);
	if (call->len % core->page_size || !pages)
		return core_refuse(core, -EINVAL, MAP_LENGTH);
	if (call->offset)
		return 0;
	*nr_pages = pages - 1;
	if (*nr_pages & (*nr_pages - 1))
		return core_refuse(core, -EINVAL, MAP_PAGES, .number = {pages});
	return 0;
}

/* Half the buffer, unless the attr asks for another [RING-10, RING-11]. */
static u64 watermark(const struct event *event, u64 data_size)
{
	u64 wanted = event->attr.watermark ? event->attr.wakeup_watermark : 0;

	wanted = min_u64(wanted, data_size);
	return wanted ? wanted : data_size / 2;
}

static int buffer_new(struct event *event, const struct map_call *call, u64 nr_pages,
		      struct buffer **out)
{
	struct core *core = event->core;
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	void *memory;
	int err;

	if (!buffer)
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a buffer"});
	err = memlock_charge(event, call->caller, 1 + nr_pages, &buffer->charge);
	if (err)
		goto out_free;
	buffer->nr_pages = nr_pages;
	err = core->ops->memory_new(core->ctx, buffer_size(core, buffer), &memory,
				    &buffer->memory_host);
	if (err) {
		err = core_refuse_default(core, err, NO_MEMORY, .name = {"a buffer"});
		goto out_uncharge;
	}
	list_init(&buffer->events);
	list_init(&buffer->backlog_link);
	buffer->maps = 1;
	buffer->page = memory;
	buffer->data = (u8 *)memory + core->page_size;
	buffer->overwrite = !call->writable;
	buffer->watermark = watermark(event, nr_pages * core->page_size);
	buffer->owner = event;
	*out = buffer;
	return 0;

out_uncharge:
	memlock_uncharge(core, &buffer->charge);
out_free:
	free(buffer);
	return err;
}

/* @event has been mapped by @caller. */
static void mapped_by(struct event *event, const struct task *caller)
{
	if (!caller || !event->target || caller->tgid == event->target->tgid)
		return;
	event->buffer->foreign = true;
	event_page_update(event);
}

int event_map(struct event *event, const struct map_call *call)
{
	struct core *core = event->core;
	struct buffer *buffer = event->buffer;
	u64 nr_pages = 0;
	int err;

	core_refusal_clear(core);
	err = check_geometry(event, call, &nr_pages);
	if (err)
		return err;
	if (call->offset)
		return aux_map(event, call);
	if (buffer) {
		if (buffer->nr_pages != nr_pages)
			return core_refuse(core, -EINVAL, MAP_OTHER_SIZE,
					   .number = {buffer->nr_pages + 1});
		if (!event->maps)
			return core_refuse(core, -EBUSY, MAP_REDIRECTED);
		event->maps++;
		buffer->maps++;
		event_get(event);
		mapped_by(event, call->caller);
		return 0;
	}
	err = buffer_new(event, call, nr_pages, &buffer);
	if (err)
		return err;
	CHECK(buffer);
	buffer_attach(event, buffer);
	event->maps = 1;
	event_get(event);
	page_init(buffer, core->page_size);
	if (event->in_ctx)
		event_refresh(event, false);
	event_page_update(event);
	mapped_by(event, call->caller);
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
