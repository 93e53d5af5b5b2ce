/*
 * PURPOSE: the records of a file in the order of time. A file has what each CPU's buffer held, one
 * buffer after the other, and tells when all have been emptied once more (FINISHED_ROUND): what
 * comes after a round is not older than the newest of the round before it. So at most two rounds
 * are held, as copies; what holds more than DATA_ROUNDS_MAX bytes is given by halves, as it stands.
 *
 * Lifetime: init .. release.
 */
#ifndef DATA_ROUNDS_H
#define DATA_ROUNDS_H

#include "data/reader.h"

#define DATA_ROUNDS_MAX (64ul << 20)

struct data_held;

struct data_rounds {
	u8 *bytes; /* copies of records, each on a multiple of 8; owned */
	size_t used, room;
	struct data_held *held; /* owned */
	u32 nr, held_room;
	u32 next, ready; /* held[next..ready] are given; sorted */
	bool unsorted;   /* one came that is older than the one in front of it */
	u64 newest;      /* of this round */
	u64 limit;       /* the newest of the round before */
	bool live;       /* each round is given at its end, which is then told; for who watches */
	bool at_end;     /* that is still to be told */
	bool over;       /* the reader has come to its end */
	int end;         /* what it said there */
	struct ap_error why;
};

void data_rounds_init(struct data_rounds *o);
void data_rounds_release(struct data_rounds *o);

/*
 * As data_reader_next(), in the order of time. Records without a time come where they stand; types
 * from 64 on are not given, but for a DATA_FINISHED_ROUND, without its header, if rounds are
 * `live`. Those are in order within each round alone: a round that is held until the next one has
 * ended would be shown late.
 */
int data_rounds_next(struct data_rounds *o, struct data_reader *r, struct data_item *item,
		     struct ap_error *err) must_check;

#endif
