/*
 * Reading a buffer that is written backward [RING-08]. Head goes down from 0; the newest record
 * begins at it and older ones follow upward, the last of which is overwritten in part. There is no
 * tail, so the writer has to be stopped while somebody reads, and is stopped no longer than copying
 * takes.
 */
#include "lib/sample/ring-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"

void ap__ring_copy_new(struct ap_ring *r)
{
	const u8 *live = (const u8 *)r->page + (r->map_len - r->size);
	u64 head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	size_t at = head & (r->size - 1), first = r->size - at;

	/* Upward from head, to where the last snapshot began or as far as it is still there. */
	r->fresh = min_u64(r->head - head, r->size);
	r->head = head;
	if (first > r->fresh)
		first = r->fresh;
	memcpy(r->copy + at, live + at, first);
	memcpy(r->copy, live, r->fresh - first);
}

/* The header of the record at @done bytes from head. False: there is none, or not all of it. */
static bool record_at(const struct ap_ring *r, u64 done, u32 *size)
{
	struct perf_event_header h;

	if (r->fresh - done < sizeof(h))
		return false;
	ap__ring_copy(r, r->head + done, &h, sizeof(h));
	*size = h.size;
	return h.size >= sizeof(h) && h.size % 8 == 0 && h.size <= r->fresh - done;
}

int ap__ring_divide(struct ap_ring *r, struct ap_error *err)
{
	size_t n = 0;
	u64 *starts;
	u32 size;

	for (u64 done = 0; record_at(r, done, &size); done += size)
		n++;
	starts = realloc(r->starts, (n + 1) * sizeof(*starts));
	if (!starts)
		return ap__fail_memory(err);
	r->starts = starts;
	r->nstarts = n;
	n = 0;
	for (u64 done = 0; record_at(r, done, &size); done += size)
		starts[n++] = r->head + done;
	return 0;
}

int ap_ring_snapshot(struct ap_ring *r, struct ap_error *err)
{
	int n;

	if (!r->backward)
		return ap__refuse(err, -EINVAL, r->event->name, SNAPSHOT_FORWARD);
	n = ap_event_pause_output(r->event, true, err);
	if (n)
		return n;
	ap__ring_copy_new(r);
	n = ap_event_pause_output(r->event, false, err);
	return n ? n : ap__ring_divide(r, err);
}
