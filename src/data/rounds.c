#include "data/rounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/refusal/fail.h"

struct data_held {
	u64 time;
	u64 offset; /* in the file */
	u32 seq;    /* the order in which they were read decides between equal times */
	bool unpacked;
	size_t at; /* in `bytes` */
};

void data_rounds_init(struct data_rounds *o)
{
	*o = (struct data_rounds){0};
}

void data_rounds_release(struct data_rounds *o)
{
	free(o->bytes);
	free(o->held);
	*o = (struct data_rounds){0};
}

static int by_time(const void *a, const void *b)
{
	const struct data_held *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static bool hold(struct data_rounds *o, const struct data_item *item)
{
	size_t size = ALIGN_UP(item->header->size, 8);
	bool timed = item->decoded && (item->record.id.has & PERF_SAMPLE_TIME);
	u64 time;

	if (o->used + size > o->room) {
		size_t room = o->room ? o->room * 2 : 1 << 18;
		u8 *more = realloc(o->bytes, room);

		if (!more)
			return false;
		o->bytes = more;
		o->room = room;
	}
	if (o->nr == o->held_room) {
		u32 room = o->held_room ? o->held_room * 2 : 4096;
		struct data_held *more = realloc(o->held, room * sizeof(*more));

		if (!more)
			return false;
		o->held = more;
		o->held_room = room;
	}
	/* A LOST record and the like have the time of what they were read behind. */
	time = timed ? item->record.id.time : o->nr ? o->newest : 0;
	o->unsorted |= o->nr && time < o->held[o->nr - 1].time;
	o->held[o->nr] = (struct data_held){time, item->offset, o->nr, item->unpacked, o->used};
	memcpy(o->bytes + o->used, item->header, item->header->size);
	o->used += size;
	o->nr++;
	if (timed && item->record.id.time > o->newest)
		o->newest = item->record.id.time;
	return true;
}

/* Forgets what was given, and moves the rest together. */
static void drop_given(struct data_rounds *o)
{
	u8 *rest;
	size_t at = 0;

	if (!o->next)
		return;
	/* The held are sorted, their bytes are not: they are copied once more, in order. */
	rest = o->nr > o->next ? malloc(o->room) : NULL;
	if (o->nr > o->next && !rest)
		return; /* it stays, and costs memory only */
	for (u32 i = o->next; i < o->nr; i++) {
		const struct perf_event_header *h = (const void *)(o->bytes + o->held[i].at);
		size_t size = ALIGN_UP(h->size, 8);

		memcpy(rest + at, h, h->size);
		o->held[i - o->next] = o->held[i];
		o->held[i - o->next].at = at;
		o->held[i - o->next].seq = i - o->next;
		at += size;
	}
	if (rest) {
		free(o->bytes);
		o->bytes = rest;
	}
	o->nr -= o->next;
	o->used = at;
	o->next = o->ready = 0;
}

/* What is not newer than @limit can be given. */
static void make_ready(struct data_rounds *o, u64 limit)
{
	/* What comes from one buffer is in order already. */
	if (o->unsorted)
		qsort(o->held, o->nr, sizeof(*o->held), by_time);
	o->unsorted = false;
	for (u32 i = 0; i < o->nr; i++)
		o->held[i].seq = i;
	o->next = o->ready = 0;
	while (o->ready < o->nr && o->held[o->ready].time <= limit)
		o->ready++;
}

static void give(struct data_rounds *o, struct data_reader *r, struct data_item *item)
{
	const struct data_held *h = &o->held[o->next++];

	*item = (struct data_item){.offset = h->offset, .unpacked = h->unpacked};
	data_reader_decode(r, item, (const struct perf_event_header *)(o->bytes + h->at));
}

int data_rounds_next(struct data_rounds *o, struct data_reader *r, struct data_item *item,
		     struct ap_error *err)
{
	for (;;) {
		if (o->next < o->ready) {
			give(o, r, item);
			return 1;
		}
		if (o->at_end) {
			o->at_end = false;
			*item = (struct data_item){.event = -1,
						   .record = {.type = DATA_FINISHED_ROUND}};
			return 1;
		}
		drop_given(o);
		if (o->over) {
			if (err && o->end)
				*err = o->why;
			return o->end;
		}
		o->end = data_reader_next(r, item, &o->why);
		if (o->end <= 0) {
			o->over = true;
			make_ready(o, UINT64_MAX);
		} else if (item->header->type == DATA_FINISHED_ROUND) {
			make_ready(o, o->live ? UINT64_MAX : o->limit);
			o->limit = o->newest;
			o->at_end = o->live;
		} else if (item->header->type < 64) {
			if (!hold(o, item))
				return ap__fail_memory(err);
			if (o->used > DATA_ROUNDS_MAX) {
				make_ready(o, UINT64_MAX);
				o->ready = o->nr / 2;
			}
		}
	}
}
