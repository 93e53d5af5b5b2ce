#include "data/read-parts.h"

#include <stdlib.h>

#include "base/check.h"

/* What an event had counted; with inheritance each thread counts by itself, under one id. */
struct data_part_last {
	u64 id, value;
	u32 tid;
	bool used;
};

void data_parts_release(struct data_parts *p)
{
	free(p->value);
	free(p->last);
}

static struct data_part_last *slot_of(struct data_part_last *table, u32 room, u64 id, u32 tid)
{
	u64 hash = (id * 31 + tid) * 0x9e3779b97f4a7c15ull;
	u32 i = (u32)(hash >> 32);

	while (table[i & (room - 1)].used &&
	       (table[i & (room - 1)].id != id || table[i & (room - 1)].tid != tid))
		i++;
	return &table[i & (room - 1)];
}

static void grow(struct data_parts *p)
{
	u32 room = p->room_last ? p->room_last * 2 : 64;
	struct data_part_last *table = calloc(room, sizeof(*table));

	CHECK(table);
	for (u32 i = 0; i < p->room_last; i++)
		if (p->last[i].used)
			*slot_of(table, room, p->last[i].id, p->last[i].tid) = p->last[i];
	free(p->last);
	p->last = table;
	p->room_last = room;
}

/* How often it has happened since this was asked before. */
static u64 happened(struct data_parts *p, const struct ap_value *v, u32 tid)
{
	struct data_part_last *last;
	u64 before;

	if (p->nr_last * 2 >= p->room_last)
		grow(p);
	last = slot_of(p->last, p->room_last, v->id, tid);
	p->nr_last += !last->used;
	before = last->used ? last->value : 0;
	*last = (struct data_part_last){v->id, v->value, tid, true};
	/* It may have been set to 0 meanwhile (PERF_EVENT_IOC_RESET). */
	return v->value >= before ? v->value - before : v->value;
}

bool data_parts_begin(struct data_parts *p, const struct data_item *item)
{
	const struct ap_read_block *read = &item->record.sample.read;
	int n;

	if (!item->decoded || item->record.type != PERF_RECORD_SAMPLE || !read->len ||
	    !(read->format & PERF_FORMAT_ID))
		return false;
	n = ap_read_decode(read->bytes, read->len, read->format, p->value, p->room);
	if (n > (int)p->room) {
		p->value = realloc(p->value, (u32)n * sizeof(*p->value));
		CHECK(p->value);
		p->room = (u32)n;
		n = ap_read_decode(read->bytes, read->len, read->format, p->value, p->room);
	}
	if (n <= 0)
		return false;
	p->item = *item;
	p->at = 0;
	p->nr = (u32)n;
	p->known = false;
	return true;
}

bool data_parts_next(struct data_parts *p, struct data_reader *r, struct data_item *item)
{
	while (p->at < p->nr) {
		const struct ap_value *v = &p->value[p->at++];
		int event = data_reader_event_of(r, v->id);
		const struct data_event *e;
		u64 period;

		if (event < 0)
			continue;
		p->known = true;
		e = data_reader_event(r, (u32)event);
		period = happened(p, v, e->attr.inherit ? p->item.record.id.tid : 0);
		if (!period)
			continue;
		*item = p->item;
		item->event = event;
		item->record.id.id = v->id;
		item->record.sample.period = period;
		return true;
	}
	p->unknown += p->nr && !p->known;
	p->at = p->nr = 0;
	return false;
}
