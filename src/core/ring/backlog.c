/*
 * The backlog of a buffer whose reader wants everything: records that have found no room. The host
 * sees to it that those who make them wait (event_has_backlog()), so it stays small, and it looks
 * now and then whether the reader has made room (core_backlogs_write()), of which nobody tells.
 *
 * Once one record waits all that come later wait behind it, so the order stays.
 */
#include "core/core-priv.h"

#include <stdlib.h>
#include <string.h>

/* Who reads much later than everybody else waits is told what he has lost, as by a kernel. */
#define BACKLOG_MAX (256ull << 20)
#define LOOK_NS     1000000u

struct backlog_record {
	u32 len;
	u32 every; /* of output_put() */
};

bool buffer_has_backlog(const struct buffer *buffer)
{
	return buffer->backlog.begin != buffer->backlog.end;
}

static bool make_room(struct backlog *b, u64 len)
{
	u64 used = b->end - b->begin, room = b->room ? b->room : 65536;
	u8 *grown;

	if (b->end + len <= b->room)
		return true;
	if (used + len > BACKLOG_MAX)
		return false;
	if (b->begin && used)
		memmove(b->bytes, b->bytes + b->begin, used);
	b->begin = 0;
	b->end = used;
	while (room < used + len)
		room *= 2;
	if (room == b->room)
		return true;
	grown = realloc(b->bytes, room);
	if (!grown)
		return false;
	b->bytes = grown;
	b->room = room;
	return true;
}

/* Records are multiples of 8 bytes long, and so stay aligned. */
static bool append(struct core *core, struct buffer *buffer, const void *bytes, u64 len, u32 every)
{
	const struct backlog_record record = {.len = (u32)len, .every = every};
	struct backlog *b = &buffer->backlog;

	if (!make_room(b, sizeof(record) + len))
		return false;
	if (!buffer_has_backlog(buffer))
		list_add_tail(&buffer->backlog_link, &core->backlogs);
	memcpy(b->bytes + b->end, &record, sizeof(record));
	memcpy(b->bytes + b->end + sizeof(record), bytes, len);
	b->end += sizeof(record) + len;
	return true;
}

void backlog_drop(struct buffer *buffer)
{
	struct backlog *b = &buffer->backlog;

	list_del(&buffer->backlog_link);
	free(b->bytes);
	*b = (struct backlog){0};
}

/* As much as there is room for; how many bytes that were. */
static u64 write_some(const struct core *core, struct buffer *buffer)
{
	struct backlog *b = &buffer->backlog;
	u64 wakeup = buffer->wakeup, written = 0;
	struct event *event;

	if (!buffer_has_backlog(buffer))
		return 0;
	while (b->begin != b->end) {
		struct backlog_record record;

		memcpy(&record, b->bytes + b->begin, sizeof(record));
		if (!output_has_room(core, buffer, record.len))
			break;
		output_put(core, buffer, b->bytes + b->begin + sizeof(record), record.len,
			   record.every);
		b->begin += sizeof(record) + record.len;
		written += record.len;
	}
	if (buffer->wakeup != wakeup)
		output_wake(buffer);
	if (b->begin != b->end)
		return written;
	backlog_drop(buffer);
	/* What has ended says so now. */
	list_for_each_entry (event, &buffer->events, buffer_link)
		event_wake(event);
	return written;
}

bool backlog_take(struct core *core, struct buffer *buffer, const void *bytes, u64 len, u32 every)
{
	if (len > buffer->nr_pages * core->page_size)
		return false;
	(void)write_some(core, buffer);
	if (!buffer_has_backlog(buffer) && output_has_room(core, buffer, len))
		return false;
	return append(core, buffer, bytes, len, every);
}

void event_lossless(struct event *event)
{
	struct buffer *buffer = event->buffer;

	if (buffer && buffer->nr_pages && !buffer->overwrite && !event->attr.write_backward)
		buffer->lossless = true;
}

u64 event_backlog_write(struct event *event)
{
	return event->buffer ? write_some(event->core, event->buffer) : 0;
}

bool event_has_backlog(const struct event *event)
{
	const struct buffer *buffer = event->parent ? event->parent->buffer : event->buffer;

	return buffer && buffer_has_backlog(buffer);
}

bool core_has_backlog(const struct core *core)
{
	return !list_empty(&core->backlogs);
}

void core_backlogs_write(struct core *core)
{
	struct buffer *buffer, *tmp;

	list_for_each_entry_safe (buffer, tmp, &core->backlogs, backlog_link)
		(void)write_some(core, buffer);
	core->backlog_look = list_empty(&core->backlogs) ? CORE_NO_TIMER
							 : core_clock(core) + LOOK_NS;
	core_settle(core);
}
