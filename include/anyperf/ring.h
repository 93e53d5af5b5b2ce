/*
 * PURPOSE: the ring buffer of an event: mapping it, and taking the records out in the order in
 * which they were written. sampler.h does this for the events of a list on many CPUs and threads,
 * in the order of time; this is the piece below it, for whoever opens his events singly.
 *
 * A record is copied out of the buffer before it is looked at, so what others write there meanwhile
 * cannot change what has been checked. The room in the buffer is given back as records are taken.
 *
 * An event whose attr has write_backward overwrites the oldest records when its buffer is full, and
 * is read by ap_ring_snapshot(); all others drop new records then, and say so in a LOST record.
 *
 * Lifetime: map .. unmap, within the life of the event; ap_event_map_self() uses the same mapping.
 */
#ifndef ANYPERF_RING_H
#define ANYPERF_RING_H

#include <anyperf/event.h>
#include <anyperf/record.h>

AP_BEGIN_DECLS

struct ap_ring;

enum ap_ring_flags {
	AP_RING_SHRINK =
		1 << 0, /* over the limit for locked memory take the largest size within it */
};

struct ap_ring_opts {
	size_t size;
	unsigned int
		pages; /* for records, a power of two; 0: 128, or as many as the limit allows */
	unsigned int flags; /* enum ap_ring_flags */
};

/*
 * Maps a buffer for @e; @opts may be NULL. A counting event may have one too: it gets the side-band
 * records that its attr asks for.
 *   -EPERM   over kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK; the reason names the largest size
 *            that would do
 *   -EINVAL  @pages is no power of two; an event that inherits must be bound to a CPU; the event
 *            writes into another one's buffer
 *   -ENOMEM
 */
AP_API AP_MUST_CHECK int ap_ring_map(struct ap_ring **out, struct ap_event *e,
				     const struct ap_ring_opts *opts, struct ap_error *err);

/* Unmaps and frees. Records got from @r are gone. NULL is fine. */
AP_API void ap_ring_unmap(struct ap_ring *r);

/* How many pages it has for records. */
AP_API unsigned int ap_ring_pages(const struct ap_ring *r);

/*
 * Sends @e's records to @r as well. @e must be on the same CPU or, for any CPU, on the same task.
 * If its records are laid out differently both need PERF_SAMPLE_IDENTIFIER and sample_id_all
 * (-EINVAL); else as ap_event_set_output(). @e must live as long as @r.
 */
AP_API AP_MUST_CHECK int ap_ring_add(struct ap_ring *r, struct ap_event *e, struct ap_error *err);

/* Whether there are records that have not been taken. No system call. */
AP_API bool ap_ring_ready(const struct ap_ring *r);

/*
 * Takes the next record. To wait for one, poll(2) ap_event_fd() for POLLIN: it is reported once for
 * each wakeup, not for as long as there is something to read, so take until 0 first. POLLHUP means
 * that the task has ended.
 *   1         *@rec is written; it is valid until the next call
 *   0         what was there when the round began has been taken; the next call begins another
 *   -EBADMSG, -EOPNOTSUPP  something that is no record, or cannot be decoded, was passed over; the
 *             next call goes on behind it
 */
AP_API AP_MUST_CHECK int ap_ring_next(struct ap_ring *r, struct ap_record *rec,
				      struct ap_error *err);

/*
 * For write_backward: pauses the output, copies what was written since the last snapshot as far as
 * it was not overwritten, and resumes. ap_ring_next() then gives it, the oldest record first. What
 * was not taken of the last snapshot is gone; records dropped during the pause count as lost.
 * -ENOMEM, -EINVAL without write_backward, or as ap_event_pause_output().
 */
AP_API AP_MUST_CHECK int ap_ring_snapshot(struct ap_ring *r, struct ap_error *err);

/* The event that wrote a record taken from @r; NULL if no event of @r has its id. */
AP_API struct ap_event *ap_ring_event(struct ap_ring *r, const struct ap_record *rec);

/*
 * How many records the LOST records taken so far have told of. What was lost after the last record
 * that fitted is told by nobody but a read with PERF_FORMAT_LOST (Linux 6.0).
 */
AP_API uint64_t ap_ring_lost(const struct ap_ring *r);

AP_END_DECLS

#endif
