/*
 * PURPOSE: a buffer step by step, for ring.c and for order.c, which brings several into the order
 * of time. A pass takes the head once; what is in front of it is found (`step`), taken (`take`) in
 * any order, and given back (`release`) in the order of the buffer.
 *
 * Nothing in the shared memory is believed: a head that cannot be and a record that cannot be end
 * the pass; a size is read once. Positions are the kernel's: bytes since the mapping, never
 * wrapped.
 */
#ifndef LIB_SAMPLE_RING_PRIV_H
#define LIB_SAMPLE_RING_PRIV_H

#include <anyperf/ring.h>
#include <anyperf/sampler.h>

#include "abi/perf.h"
#include "record/codec.h"

/* What ap_ring_map() takes if the caller does not say. */
#define AP__RING_PAGES 128

/* An event that writes into a buffer. */
struct ap__source {
	struct ap_event *event; /* borrowed */
	struct ap_layout layout;
	u64 id;           /* 0 until somebody needs it */
	unsigned int tag; /* whatever helps the one who added it */
};

struct ap_ring {
	struct ap_event *event; /* whose buffer it is; borrowed */
	struct perf_event_mmap_page *page;
	size_t map_len;
	const u8 *data; /* the records: in the mapping, or in `copy` */
	u64 size;       /* of the records, a power of two */
	u64 seen;       /* the next step begins here */
	u64 end;        /* the pass ends here */
	u64 tail;       /* as published */
	u64 broken;     /* so many bytes were passed over by the last step that failed */
	bool in_pass;   /* ap_ring_next() has not come to the end of it */
	u64 lost;

	struct ap__source *sources; /* by id once the ids are known; owned */
	unsigned int nsources;
	bool alike; /* all sources have one layout */
	bool ids_known;

	u64 *bounce; /* RECORD_MAX bytes: the record that was taken last; owned unless shared */
	bool bounce_shared;

	/* write_backward */
	bool backward;
	u8 *copy;       /* `size` bytes, of the last snapshot; owned */
	u64 head;       /* at the last snapshot */
	u64 fresh;      /* so many bytes from there on are new in it */
	u64 *starts;    /* where its records begin, the newest first; owned */
	size_t nstarts; /* those not stepped over yet */
};

/* A record that is in a buffer. */
struct ap__found {
	u64 pos;
	u32 type;
	u32 size;
};

/*
 * As ap_ring_map() with exactly @pages, and with a bounce buffer that rings share (NULL: one of its
 * own). -EPERM comes without a reason: who knows what else was tried calls ap__ring_over_limit().
 */
int ap__ring_map(struct ap_ring **out, struct ap_event *e, unsigned int pages, u64 *bounce,
		 struct ap_error *err);

/* -EPERM with its reason: @n buffers of @pages each are too much; @fewer (0: none) would do. */
int ap__ring_over_limit(const struct ap_event *e, unsigned int n, unsigned int pages,
			unsigned int fewer, struct ap_error *err);

/*
 * As ap_ring_add(), and for the event whose buffer it is, which must come first. ap__ring_tag()
 * gives @tag back for a record that the event wrote; -1 if no event of @r did.
 */
int ap__ring_add(struct ap_ring *r, struct ap_event *e, unsigned int tag, struct ap_error *err);
int ap__ring_tag(struct ap_ring *r, const struct ap_record *rec);

/*
 * Begins a pass: what the writer has published by now belongs to it. -EBADMSG if that is more than
 * the buffer holds; it is passed over.
 */
int ap__ring_begin(struct ap_ring *r);

/*
 * Finds the next record of the pass: 1, 0 at its end, -EBADMSG if what stands there is no record;
 * the rest of the pass is passed over.
 */
int ap__ring_step(struct ap_ring *r, struct ap__found *f);

/* The reason for the -EBADMSG of one of these two. Returns it. */
int ap__ring_explain(const struct ap_ring *r, struct ap_error *err);

/* The time of a record. False: it has none, or nobody knows whose it is. */
bool ap__ring_time(struct ap_ring *r, const struct ap__found *f, u64 *time);

/* Copies a record to the bounce buffer and decodes it there. 0 or -errno. */
int ap__ring_take(struct ap_ring *r, const struct ap__found *f, struct ap_record *rec,
		  struct ap_error *err);

/* Gives back what is in front of @pos: all of it has been taken. */
void ap__ring_release(struct ap_ring *r, u64 pos);

/*
 * Hands what is in the buffer to @fn as it stands, in pieces of whole records, and gives the room
 * back. 0, @fn's value, or -EBADMSG for what is no record and was passed over.
 */
int ap__ring_drain(struct ap_ring *r, ap_records_fn *fn, void *data);

/* Copies @len bytes at @pos out of the buffer, round its end if need be. */
void ap__ring_copy(const struct ap_ring *r, u64 pos, void *to, size_t len);

/*
 * The two halves of ap_ring_snapshot(): while the output is paused, copies what is new; afterwards
 * finds the records in the copy. -ENOMEM.
 */
void ap__ring_copy_new(struct ap_ring *r);
int ap__ring_divide(struct ap_ring *r, struct ap_error *err);

/* "the buffer of page-faults on CPU 3" in @buf, for sentences. Returns @buf. */
char *ap__ring_name(const struct ap_ring *r, char *buf, size_t len);

#endif
