/* See order.h for the rule. The heap has the lane with the next record on top. */
#include "lib/sample/order.h"

#include <errno.h>
#include <stdlib.h>

int ap__order_init(struct ap__order *o, struct ap_ring *const *rings, unsigned int n, u64 horizon)
{
	*o = (struct ap__order){.n = n, .horizon = horizon};
	o->lanes = calloc(n, sizeof(*o->lanes));
	o->heap = calloc(n, sizeof(*o->heap));
	if (!o->lanes || !o->heap) {
		ap__order_release(o);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < n; i++) {
		struct ap__lane *l = &o->lanes[i];

		l->ring = rings[i];
		l->low = l->mark = l->safe = l->ring->seen;
		o->heap[i] = i;
	}
	return 0;
}

void ap__order_release(struct ap__order *o)
{
	free(o->lanes);
	free(o->heap);
	*o = (struct ap__order){0};
}

/* Takes note of what has become of a lane. A snapshot is complete: all of it may be given. */
static void lane_update(struct ap__order *o, struct ap__lane *l, bool broken)
{
	bool due = l->ring->backward ? l->n : (s64)(l->low - l->safe) < 0;

	o->due += (unsigned int)due - l->due;
	l->due = due;
	o->broken += (unsigned int)broken - l->broken;
	l->broken = broken;
}

/* Steps ahead as far as there is room, and finds which record is next. */
static void lane_fill(struct ap__order *o, struct ap__lane *l)
{
	int r = 0;

	while (l->n < AP__LANE_DEPTH && (r = ap__ring_step(l->ring, &l->ahead[l->n].f)) > 0) {
		/* One without a time stays behind the one in front of it. */
		ap__ring_time(l->ring, &l->ahead[l->n].f, &l->time);
		l->ahead[l->n++].time = l->time;
	}
	l->low = l->n ? l->ahead[0].f.pos : l->ring->seen;
	l->best = 0;
	for (unsigned int i = 1; i < l->n; i++)
		if (l->ahead[i].time < l->ahead[l->best].time)
			l->best = i;
	lane_update(o, l, l->broken || r < 0);
}

void ap__order_restart(struct ap__order *o)
{
	o->in_pass = false;
	o->time = 0;
	for (unsigned int i = 0; i < o->n; i++) {
		struct ap__lane *l = &o->lanes[i];

		l->n = 0;
		l->time = 0;
		lane_update(o, l, l->broken);
	}
}

static bool lane_before(const struct ap__order *o, unsigned int a, unsigned int b)
{
	const struct ap__lane *x = &o->lanes[a], *y = &o->lanes[b];

	if (!x->n || !y->n)
		return x->n;
	if (x->ahead[x->best].time != y->ahead[y->best].time)
		return x->ahead[x->best].time < y->ahead[y->best].time;
	return a < b;
}

static void sift_down(struct ap__order *o, unsigned int at)
{
	for (;;) {
		unsigned int child = 2 * at + 1, lane = o->heap[at];

		if (child >= o->n)
			return;
		if (child + 1 < o->n && lane_before(o, o->heap[child + 1], o->heap[child]))
			child++;
		if (!lane_before(o, o->heap[child], lane))
			return;
		o->heap[at] = o->heap[child];
		o->heap[child] = lane;
		at = child;
	}
}

/* Whether anything waits for the marks to age. */
static bool any_marked(const struct ap__order *o)
{
	for (unsigned int i = 0; o->marked && i < o->n; i++)
		if (!o->lanes[i].ring->backward && (s64)(o->lanes[i].low - o->lanes[i].mark) < 0)
			return true;
	return false;
}

/* What was visible `horizon` ago may be given from now on; else what is visible now is marked. */
static void move_marks(struct ap__order *o, bool hold, u64 now)
{
	bool waiting = any_marked(o), aged = waiting && now - o->marked_at >= o->horizon;

	for (unsigned int i = 0; i < o->n; i++) {
		struct ap__lane *l = &o->lanes[i];

		if (!hold)
			l->safe = l->ring->end;
		else if (aged)
			l->safe = l->mark;
		else if (!waiting)
			l->mark = l->ring->end;
	}
	if (hold && !waiting)
		o->marked_at = now;
	o->marked = hold && !aged;
}

/* Better out of order than lost: a writer soon has no room. */
static bool any_crowded(const struct ap__order *o)
{
	for (unsigned int i = 0; i < o->n; i++) {
		const struct ap__lane *l = &o->lanes[i];

		if (!l->ring->backward && l->ring->end - l->low > l->ring->size / 4 * 3)
			return true;
	}
	return false;
}

static void begin(struct ap__order *o, bool hold, u64 now)
{
	for (unsigned int i = 0; i < o->n; i++) {
		struct ap__lane *l = &o->lanes[i];

		if (ap__ring_begin(l->ring)) {
			/* What it had stepped over is not there any more. */
			l->n = 0;
			l->low = l->safe = l->mark = l->ring->end;
			lane_update(o, l, true);
		}
	}
	move_marks(o, hold && !any_crowded(o), now);
	for (unsigned int i = 0; i < o->n; i++)
		lane_fill(o, &o->lanes[i]);
	for (unsigned int i = o->n / 2; i-- > 0;)
		sift_down(o, i);
	o->hold = hold;
	o->in_pass = true;
}

static void end(struct ap__order *o)
{
	o->in_pass = false;
	for (unsigned int i = 0; i < o->n; i++)
		ap__ring_release(o->lanes[i].ring, o->lanes[i].low);
}

/* Takes the next record of a lane out of it. */
static int lane_take(struct ap__order *o, struct ap__lane *l, struct ap_record *rec,
		     struct ap_error *err)
{
	u64 time = l->ahead[l->best].time;
	int r = ap__ring_take(l->ring, &l->ahead[l->best].f, rec, err);

	l->n--;
	for (unsigned int i = l->best; i < l->n; i++)
		l->ahead[i] = l->ahead[i + 1];
	lane_fill(o, l);
	if (l->low - l->ring->tail >= l->ring->size / 8)
		ap__ring_release(l->ring, l->low);
	if (time < o->time)
		o->late++;
	else
		o->time = time;
	return r ? r : 1;
}

/* Tells of a lane in which something was passed over. */
static int complain(struct ap__order *o, struct ap_ring **from, struct ap_error *err)
{
	struct ap__lane *l = o->lanes;

	while (!l->broken)
		l++;
	lane_update(o, l, false);
	*from = l->ring;
	return ap__ring_explain(l->ring, err);
}

int ap__order_next(struct ap__order *o, bool hold, u64 now, struct ap_record *rec,
		   struct ap_ring **from, struct ap_error *err)
{
	struct ap__lane *l;
	int r;

	/* Who no longer holds back gives everything, also what this pass had decided to hold. */
	if (!o->in_pass || (o->hold && !hold))
		begin(o, hold, now);
	if (o->broken)
		return complain(o, from, err);
	if (!o->due) {
		end(o);
		return 0;
	}
	l = &o->lanes[o->heap[0]];
	*from = l->ring;
	r = lane_take(o, l, rec, err);
	sift_down(o, 0);
	return r;
}

bool ap__order_waits(const struct ap__order *o, u64 *until)
{
	*until = o->marked_at + o->horizon;
	return any_marked(o);
}

bool ap__order_left(const struct ap__order *o)
{
	for (unsigned int i = 0; i < o->n; i++)
		if (o->lanes[i].n || ap_ring_ready(o->lanes[i].ring))
			return true;
	return false;
}
