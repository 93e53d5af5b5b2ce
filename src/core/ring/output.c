/*
 * Writing a record [RING-03..11]: room, the LOST record that was due, the bytes, and who is woken.
 *
 * There is one writer, so nothing is reserved and committed apart as in the kernel: when a record
 * has been written it is published. The head that counts is the buffer's own; data_head shows it.
 */
#include "core/core-priv.h"

#include <poll.h>
#include <string.h>

u64 event_clock(const struct event *event)
{
	const struct core *core = event->core;

	if (core->ops->record_clock)
		return core->ops->record_clock(core->ctx, event->clockid);
	return core_clock(core);
}

struct ap_layout event_layout(const struct event *event)
{
	const struct pe_attr *attr = &event->attr;

	return (struct ap_layout){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.branch_sample_type = attr->branch_sample_type,
		.sample_regs_user = attr->sample_regs_user,
		.sample_regs_intr = attr->sample_regs_intr,
		.sample_id_all = attr->sample_id_all,
	};
}

/* Of an inherited copy STREAM_ID alone is its own [SAMP-07]. */
static struct ap_sample_id id_of(const struct event *event, const struct task *task, u64 time)
{
	const struct core *core = event->core;
	struct ap_sample_id id = {
		.time = time ? time : event_clock(event),
		.id = event_primary_id(event),
		.stream_id = event->id,
		.cpu = event->cpu >= 0 ? (u32)event->cpu : 0,
	};

	if (!task)
		return id;
	id.cpu = task->cpu ? task->cpu->nr : task->last_cpu;
	id.pid = (u32)task->tgid;
	id.tid = (u32)task->tid;
	if (core->ops->record_ids)
		core->ops->record_ids(core->ctx, event, task, &id.pid, &id.tid);
	return id;
}

static void publish(struct buffer *buffer)
{
	/* Pairs with the reader's load of data_head, before it looks at the records. */
	__atomic_store_n(&buffer->page->data_head, buffer->head, __ATOMIC_RELEASE);
}

/* The reader may have written anything there: what comes of it is less than the buffer's size. */
static bool has_room(const struct buffer *buffer, u64 data_size, u64 size, bool backward)
{
	u64 tail;

	if (buffer->overwrite)
		return true;
	/* Pairs with the reader's barrier between its last look at a record and its new tail. */
	tail = __atomic_load_n(&buffer->page->data_tail, __ATOMIC_ACQUIRE);
	if (backward)
		return ((buffer->head - tail - 1) & (data_size - 1)) >= size;
	return ((tail - buffer->head - 1) & (data_size - 1)) >= size;
}

bool output_has_room(const struct core *core, const struct buffer *buffer, u64 len)
{
	return has_room(buffer, buffer->nr_pages * core->page_size, len, false);
}

/* From @at on, around the end. */
static void copy_in(struct buffer *buffer, u64 data_size, u64 at, const void *from, u64 len)
{
	u64 offset = at & (data_size - 1), first = min_u64(len, data_size - offset);

	memcpy(buffer->data + offset, from, first);
	memcpy(buffer->data, (const u8 *)from + first, len - first);
}

static void lose(struct event *event, struct buffer *buffer)
{
	buffer->lost++;
	event->lost_samples++;
	event_changed(event);
}

void output_wake(struct buffer *buffer)
{
	struct event *event;

	buffer->poll = POLLIN | POLLRDNORM;
	list_for_each_entry (event, &buffer->events, buffer_link)
		event_wake(event);
}

/* Samples are woken for by number, if the attr says so [RING-09]. */
static u32 samples_of_wakeup(const struct event *event, u32 type)
{
	return type != PERF_RECORD_SAMPLE || event->attr.watermark ? 0 : event->attr.wakeup_events;
}

static void count_sample(struct buffer *buffer, u32 every)
{
	if (!every || ++buffer->samples < every)
		return;
	buffer->samples -= every;
	buffer->wakeup++;
}

/* Room for @len bytes, which is there: where it begins. */
static u64 reserve(struct buffer *buffer, u64 len, bool backward)
{
	u64 at = backward ? buffer->head - len : buffer->head, position;

	buffer->head = backward ? at : at + len;
	position = backward ? -buffer->head : buffer->head;
	if (position - buffer->wakeup > buffer->watermark)
		buffer->wakeup += buffer->watermark;
	return at;
}

void output_put(const struct core *core, struct buffer *buffer, const void *bytes, u64 len,
		u32 every)
{
	u64 at = reserve(buffer, len, false);

	copy_in(buffer, buffer->nr_pages * core->page_size, at, bytes, len);
	count_sample(buffer, every);
	publish(buffer);
}

/* @event has a buffer. @len bytes at @bytes, 8 of which are the least. */
static void write_bytes(struct event *event, u32 type, const void *bytes, u64 len,
			const struct task *task, u64 time)
{
	struct buffer *buffer = event->buffer;
	struct core *core = event->core;
	u64 data_size = buffer->nr_pages * core->page_size, wakeup = buffer->wakeup, at;
	u32 every = samples_of_wakeup(event, type);
	bool backward = event->attr.write_backward;
	u8 lost_bytes[128] __attribute__((aligned(8)));
	int lost_len = 0;

	if (buffer->lossless && backlog_take(core, buffer, bytes, len, every))
		return;
	if (buffer->lost) {
		struct ap_layout layout = event_layout(event);
		struct ap_record lost = {
			.type = PERF_RECORD_LOST,
			.id = id_of(event, task, time),
			.lost = {.id = event->id, .lost = buffer->lost},
		};

		lost_len = ap__record_encode(&lost, &layout, lost_bytes, sizeof(lost_bytes));
		CHECK(lost_len > 0);
		len += (u64)lost_len;
	}
	if (!has_room(buffer, data_size, len, backward) || len > data_size) {
		lose(event, buffer);
		return;
	}
	at = reserve(buffer, len, backward);
	if (lost_len) {
		buffer->lost = 0;
		copy_in(buffer, data_size, at, lost_bytes, (u64)lost_len);
	}
	copy_in(buffer, data_size, at + (u64)lost_len, bytes, len - (u64)lost_len);
	count_sample(buffer, every);
	publish(buffer);
	if (buffer->wakeup == wakeup)
		return;
	output_wake(buffer);
	/* A sample's overflow sends its signal anyway. */
	if (type != PERF_RECORD_SAMPLE && core->ops->sigio)
		core->ops->sigio(core->ctx, event, false);
}

/* For inherited events all goes to the original. */
static struct event *writer_of(struct event *event)
{
	return event->parent ? event->parent : event;
}

bool output_wanted(struct event *event)
{
	const struct buffer *buffer = writer_of(event)->buffer;

	return buffer && buffer->nr_pages;
}

struct event *event_output(const struct event *event)
{
	const struct buffer *buffer = event->parent ? event->parent->buffer : event->buffer;

	return buffer && buffer->nr_pages ? buffer->owner : NULL;
}

void output_record(struct event *event, struct ap_record *rec, const struct task *task, u64 time)
{
	struct event *writer = writer_of(event);
	struct core *core = event->core;
	struct ap_layout layout = event_layout(event);
	int len;

	if (!output_wanted(event))
		return;
	if (writer->buffer->paused) {
		lose(writer, writer->buffer);
		return;
	}
	rec->id = id_of(event, task, time);
	len = ap__record_encode(rec, &layout, core->record, RECORD_MAX);
	/* Longer than a record can be. */
	if (len < 0) {
		lose(writer, writer->buffer);
		return;
	}
	write_bytes(writer, rec->type, core->record, (u64)len, task, time);
}
