/*
 * The AUX area [AUX-01..07]: memory behind the data pages into which a PMU writes a trace by
 * itself. The data buffer tells of it: each AUX record says which part is new.
 *
 * A driver writes between aux_output_begin() and aux_output_end(). The head that counts is ours;
 * aux_head shows it, and of the page aux_tail alone is read while it runs.
 */
#include "core/core-priv.h"

static u64 area_size(const struct event *event)
{
	return event->buffer->aux.nr_pages * event->core->page_size;
}

bool event_has_aux(const struct event *event)
{
	return event->pmu->setup_aux != NULL;
}

void aux_free(struct core *core, struct buffer *buffer)
{
	struct aux_area *aux = &buffer->aux;

	if (!aux->nr_pages)
		return;
	if (aux->pmu->free_aux)
		aux->pmu->free_aux(aux->priv);
	core->ops->memory_free(core->ctx, aux->memory, aux->nr_pages * core->page_size,
			       aux->memory_host);
	memlock_uncharge(core, &aux->charge);
	*aux = (struct aux_area){0};
}

/* What the caller asks for is what the two words of the page say, and what was mapped before. */
static int check_words(struct event *event, const struct map_call *call)
{
	const struct buffer *buffer = event->buffer;
	struct core *core = event->core;
	u64 pages = call->len / core->page_size, offset, size;

	if (!buffer)
		return core_refuse(core, -EINVAL, MAP_AUX_FIRST);
	offset = __atomic_load_n(&buffer->page->aux_offset, __ATOMIC_RELAXED);
	size = __atomic_load_n(&buffer->page->aux_size, __ATOMIC_RELAXED);
	if (offset < (buffer->nr_pages + 1) * core->page_size || offset != call->offset ||
	    size != call->len || pages & (pages - 1) || !buffer->maps)
		return core_refuse(core, -EINVAL, MAP_AUX_WORDS);
	if (buffer->aux.nr_pages && (buffer->aux.offset != offset || buffer->aux.nr_pages != pages))
		return core_refuse(core, -EINVAL, MAP_AUX_OTHER,
				   .number = {buffer->aux.offset, buffer->aux.nr_pages});
	return 0;
}

static int area_new(struct event *event, const struct map_call *call)
{
	struct core *core = event->core;
	struct aux_area aux = {
		.offset = call->offset,
		.nr_pages = call->len / core->page_size,
		.overwrite = !call->writable,
		.pmu = event->pmu,
	};
	int err = memlock_charge(event, call->caller, aux.nr_pages, &aux.charge);

	if (err)
		return err;
	if (!event_has_aux(event)) {
		err = core_refuse(core, -EOPNOTSUPP, MAP_NO_AUX, .name = {event->pmu->name});
		goto out_uncharge;
	}
	err = core->ops->memory_new(core->ctx, call->len, &aux.memory, &aux.memory_host);
	if (err) {
		err = core_refuse_default(core, err, NO_MEMORY, .name = {"an AUX area"});
		goto out_uncharge;
	}
	aux.priv = event->pmu->setup_aux(event, aux.memory, call->len, aux.overwrite);
	if (!aux.priv) {
		err = core_refuse_default(core, -ENOMEM, NO_MEMORY, .name = {"an AUX area"});
		goto out_memory;
	}
	/* Where old data gives way nobody is woken for it [AUX-06]. */
	if (!aux.overwrite)
		aux.watermark = event->attr.aux_watermark ? event->attr.aux_watermark
							  : min_u64(call->len / 2, 0xffffffff);
	event->buffer->aux = aux;
	return 0;

out_memory:
	core->ops->memory_free(core->ctx, aux.memory, call->len, aux.memory_host);
out_uncharge:
	memlock_uncharge(core, &aux.charge);
	return err;
}

int aux_map(struct event *event, const struct map_call *call)
{
	int err = check_words(event, call);

	if (err)
		return err;
	if (!event->buffer->aux.nr_pages) {
		err = area_new(event, call);
		if (err)
			return err;
	}
	event->buffer->aux.maps++;
	event->buffer->maps++;
	event->maps++;
	event_get(event);
	return 0;
}

static void stop_writer(struct event *event)
{
	if (event->state == EVENT_ACTIVE && event_has_aux(event))
		event->pmu->stop(event, PMU_EF_UPDATE);
}

void event_unmap_aux(struct event *event)
{
	struct buffer *buffer = event->buffer;
	struct event *writer;

	CHECK(event->maps && buffer && buffer->aux.maps);
	if (!--buffer->aux.maps) {
		/* Whoever still writes there stops; aux_output_begin() lets nobody start again. */
		list_for_each_entry (writer, &buffer->events, buffer_link)
			event_each_child(writer, stop_writer);
		aux_free(event->core, buffer);
	}
	event_unmap(event);
}

void *event_aux_memory(const struct event *event)
{
	return event->buffer ? event->buffer->aux.memory_host : NULL;
}

/* From one multiple of the watermark to the next. */
static bool wakeup_is_due(struct aux_area *aux)
{
	if (aux->overwrite || aux->head - aux->wakeup < aux->watermark)
		return false;
	aux->wakeup = aux->head - aux->head % aux->watermark;
	return true;
}

/* At the end of the operation: a driver's own could not do it. */
static void disable_soon(struct event *event)
{
	event->pending_disable = true;
	event->core->pending_disable = true;
}

void *aux_output_begin(struct aux_output *out, struct event *event)
{
	struct event *original = event->parent ? event->parent : event;
	struct buffer *buffer = original->buffer;
	struct aux_area *aux;
	u64 tail, size;

	if (!buffer || !buffer->aux.maps)
		return NULL;
	aux = &buffer->aux;
	CHECK(!aux->busy);
	size = area_size(original);
	*out = (struct aux_output){.event = event, .area = aux->memory, .head = aux->head};
	if (!aux->overwrite) {
		/* Pairs with the reader's barrier between its last look at data and the tail. */
		tail = __atomic_load_n(&buffer->page->aux_tail, __ATOMIC_ACQUIRE);
		out->wakeup = aux->wakeup + aux->watermark;
		if (aux->head - tail < size)
			out->room = (tail - aux->head - 1) & (size - 1);
		if (!out->room) {
			disable_soon(event);
			output_wake(buffer);
			return NULL;
		}
	}
	aux->busy = true;
	return aux->priv;
}

static void publish_head(struct buffer *buffer)
{
	/* Pairs with the reader's load of aux_head, before it looks at the data. */
	__atomic_store_n(&buffer->page->aux_head, buffer->aux.head, __ATOMIC_RELEASE);
}

void aux_output_end(struct aux_output *out, u64 size)
{
	struct event *event = out->event;
	struct buffer *buffer = (event->parent ? event->parent : event)->buffer;
	bool cut = out->flags & PERF_AUX_FLAG_TRUNCATED;
	struct ap_record rec = {.type = PERF_RECORD_AUX};
	struct aux_area *aux;

	CHECK(buffer && buffer->aux.busy);
	aux = &buffer->aux;
	aux->busy = false;
	out->flags &= ~(u64)PERF_AUX_FLAG_OVERWRITE;
	rec.aux.aux_offset = aux->head;
	if (aux->overwrite) {
		/* The driver's head says where the trace ends. */
		rec.aux.aux_offset = aux->head = out->head;
		out->flags |= PERF_AUX_FLAG_OVERWRITE;
	} else {
		CHECK(size <= out->room);
		aux->head += size;
	}
	rec.aux.aux_size = size;
	rec.aux.flags = out->flags;
	/* That it is overwritten is no news by itself. */
	if (size || out->flags & ~(u64)PERF_AUX_FLAG_OVERWRITE)
		output_record(event, &rec, event_on_task(event), 0);
	publish_head(buffer);
	if (cut)
		disable_soon(event);
	if (wakeup_is_due(aux) || cut)
		output_wake(buffer);
	out->event = NULL;
}

int aux_output_skip(struct aux_output *out, u64 size)
{
	struct event *event = out->event;
	struct buffer *buffer = (event->parent ? event->parent : event)->buffer;

	CHECK(buffer && buffer->aux.busy);
	if (size > out->room)
		return -ENOSPC;
	buffer->aux.head += size;
	publish_head(buffer);
	if (wakeup_is_due(&buffer->aux)) {
		output_wake(buffer);
		out->wakeup = buffer->aux.wakeup + buffer->aux.watermark;
	}
	out->head = buffer->aux.head;
	out->room -= size;
	return 0;
}

void aux_output_hw_id(struct event *event, u64 hw_id)
{
	struct ap_record rec = {
		.type = PERF_RECORD_AUX_OUTPUT_HW_ID,
		.aux_output_hw_id = {.hw_id = hw_id},
	};

	output_record(event, &rec, event_on_task(event), 0);
}

void itrace_start(struct event *event)
{
	struct event *original = event->parent ? event->parent : event;
	const struct task *task = event->ctx->task;
	struct ap_record rec = {.type = PERF_RECORD_ITRACE_START};
	const struct core *core = event->core;

	if (!(event->pmu->caps & PMU_CAP_ITRACE) || original->itrace_started)
		return;
	if (task) {
		rec.itrace_start.pid = (u32)task->tgid;
		rec.itrace_start.tid = (u32)task->tid;
		if (core->ops->record_ids)
			core->ops->record_ids(core->ctx, event, task, &rec.itrace_start.pid,
					      &rec.itrace_start.tid);
	}
	output_record(event, &rec, task, 0);
}

void event_itrace_started(struct event *event)
{
	(event->parent ? event->parent : event)->itrace_started = true;
}
