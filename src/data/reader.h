/*
 * PURPOSE: reading a perf.data file or stream, record by record, as it comes: anyperf's and perf's,
 * compressed or not. Nothing is kept of a record; what is kept of the file (events, features) is
 * bounded by its size.
 *
 *   data_reader_open(&r, fd, name, &err);
 *   while ((n = data_reader_next(r, &item, &err)) > 0)
 *           if (item.record.type == PERF_RECORD_SAMPLE) ...
 *   if (n < 0)    the file ends before its end, or is broken: err says where
 *
 * The bytes may be anybody's: no length in them is believed. A stream names its events as it goes:
 * they are known when the first record of theirs comes.
 *
 * Lifetime: open .. close; the descriptor stays the caller's. An item lives until the next call.
 */
#ifndef DATA_READER_H
#define DATA_READER_H

#include <anyperf/record.h>

#include "data/feature.h"

struct data_reader;

struct data_item {
	u64 offset;      /* in the file; of a compressed record, of what holds it */
	bool unpacked;   /* it was compressed */
	int event;       /* number of the event that wrote it; -1: nobody knows, or none did */
	bool decoded;    /* types from 64 on, and what fits no event's layout, are not */
	const char *why; /* why it is not decoded; NULL: there is nothing to decode */
	const struct perf_event_header *header; /* the whole record, on a multiple of 8 */
	struct ap_record record;                /* if decoded; else type, misc, size, bytes */
};

/*
 * Begins to read @fd, which may be a pipe; @name is for sentences.
 *   -EBADMSG  it is not a perf.data file, or not one that can be read
 *   -EOPNOTSUPP  of a machine with the other byte order
 *   -ENOMEM, and of read(2)
 */
int data_reader_open(struct data_reader **out, int fd, const char *name,
		     struct ap_error *err) must_check;
void data_reader_close(struct data_reader *r);

/*
 * The next record.
 *   1         *@item is filled in
 *   0         the end
 *   -ENODATA  the file ends in the middle of a record; what came before is good
 *   -EBADMSG  what stands there is no record; what came before is good
 *   -ENOENT   libzstd is needed and not installed
 * After an error there is nothing more: 0.
 */
int data_reader_next(struct data_reader *r, struct data_item *item,
		     struct ap_error *err) must_check;

/* Decodes @h, a copy of a record that @r has given, into @item as data_reader_next() does. */
void data_reader_decode(struct data_reader *r, struct data_item *item,
			const struct perf_event_header *h);

/*
 * From now on @wait is called before more is read, for what else there is to do until something can
 * be read.
 */
void data_reader_on_wait(struct data_reader *r, void (*wait)(void *data), void *data);

/* The events that are known so far. */
u32 data_reader_events(const struct data_reader *r);
const struct data_event *data_reader_event(const struct data_reader *r, u32 i);

/* The number of the event whose records carry @id; -1: none. */
int data_reader_event_of(struct data_reader *r, u64 id);

/* A feature's bytes, *@len of them; NULL: there is none. */
const void *data_reader_feature(struct data_reader *r, enum data_feature feature, size_t *len);

/* Whether it was read as a stream. */
bool data_reader_is_pipe(const struct data_reader *r);

#endif
