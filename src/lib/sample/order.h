/*
 * PURPOSE: the records of several buffers in the order of time.
 *
 * Each buffer is a lane. Within a lane records are nearly in order: an interrupt writes its record
 * before the one that it interrupted, which has the earlier time. So the next few of a lane are
 * looked at together, and the earliest of the earliest is the next one.
 *
 * A record that is not yet visible may be earlier than all that are: it is stamped first and
 * published afterwards, which takes a moment. So a pass marks what it sees, and gives it when a
 * later pass begins `horizon` after; whatever is earlier has been published by then and goes first.
 * It is perf's rule of finished rounds with a length of time for the round. A record that comes
 * later still is given out of order and counted, never dropped. A buffer that is three quarters
 * full is emptied at once: better out of order than lost.
 *
 * Held records stay in their buffers: nothing is allocated per record.
 */
#ifndef LIB_SAMPLE_ORDER_H
#define LIB_SAMPLE_ORDER_H

#include "lib/sample/ring-priv.h"

/* So many records of a lane are looked at together: more than contexts can nest. */
#define AP__LANE_DEPTH 16

struct ap__lane {
	struct ap_ring *ring; /* borrowed */
	struct {
		struct ap__found f;
		u64 time;
	} ahead[AP__LANE_DEPTH]; /* stepped over, not taken */
	unsigned int n;          /* of `ahead` */
	unsigned int best;       /* the one of `ahead` that is next */
	u64 time;                /* of the last record stepped over: for one that has none */
	u64 low;                 /* what is in front of it was taken */
	u64 mark;                /* what is in front of it was visible at order.marked_at */
	u64 safe;                /* what is in front of it may be given */
	bool due;                /* something that may be given has not been given */
	bool broken;             /* a step has failed, and nobody has been told */
};

struct ap__order {
	struct ap__lane *lanes; /* owned */
	unsigned int *heap;     /* lanes, the one with the next record first; owned */
	unsigned int n;
	u64 horizon;         /* ns */
	unsigned int due;    /* lanes that are */
	unsigned int broken; /* lanes that are */
	bool in_pass, hold, marked;
	u64 marked_at;
	u64 time; /* of the last record given */
	u64 late; /* records that were given after a later one */
};

/* Takes up @n rings, which are borrowed. -ENOMEM. */
int ap__order_init(struct ap__order *o, struct ap_ring *const *rings, unsigned int n, u64 horizon);
void ap__order_release(struct ap__order *o);

/*
 * Takes the next record; *@from is its ring. @now is the time by any steady clock. Without @hold
 * nothing is held back: the writers have stopped, or there is only one. As ap_ring_next(): 1, 0 at
 * the end of a pass, -errno for what was passed over.
 */
int ap__order_next(struct ap__order *o, bool hold, u64 now, struct ap_record *rec,
		   struct ap_ring **from, struct ap_error *err);

/* Whether records wait for their horizon; *@until is when it has passed. */
bool ap__order_waits(const struct ap__order *o, u64 *until);

/* Whether there is anything that has not been given, be it held back or not looked at yet. */
bool ap__order_left(const struct ap__order *o);

/* Forgets what was stepped over and not taken: a snapshot has replaced it. */
void ap__order_restart(struct ap__order *o);

#endif
