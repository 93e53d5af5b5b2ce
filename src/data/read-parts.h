/*
 * PURPOSE: what a sample with PERF_SAMPLE_READ says of each event of its group. Of `{a,b}:S` only
 * the leader samples; how often the others have happened is in what it has read, as counts since
 * their beginning. So such a sample is one of each of them that has happened since the last one.
 *
 * Lifetime: all zero .. release.
 */
#ifndef DATA_READ_PARTS_H
#define DATA_READ_PARTS_H

#include <anyperf/read.h>

#include "data/reader.h"

struct data_part_last;

struct data_parts {
	struct data_item item; /* the sample */
	struct ap_value *value;
	u32 at, nr, room;            /* value[at..nr] are to be told */
	bool known;                  /* one of them is of an event of the file */
	u64 unknown;                 /* samples of which none was: nothing has been told of them */
	struct data_part_last *last; /* what each event had counted then: a table by hash; owned */
	u32 nr_last, room_last;
};

void data_parts_release(struct data_parts *p);

/*
 * Whether @item is such a sample. Then its parts come by data_parts_next() in place of it, before
 * another record is read. Samples have to come in the order of time.
 */
bool data_parts_begin(struct data_parts *p, const struct data_item *item);

/* The next part, with `event` and sample.period of its own; false: there is none. */
bool data_parts_next(struct data_parts *p, struct data_reader *r, struct data_item *item);

#endif
