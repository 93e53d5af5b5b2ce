/*
 * PURPOSE: struct ap_sampler, and its parts: what sampling asks of attrs (sampler-attr.c), which
 * event writes into which buffer (sampler-rings.c).
 */
#ifndef LIB_SAMPLE_SAMPLER_PRIV_H
#define LIB_SAMPLE_SAMPLER_PRIV_H

#include <anyperf/sampler.h>
#include <poll.h>

#include "lib/count/event-priv.h"
#include "lib/sample/order.h"

struct ap_sampler {
	struct ap_machine *m;   /* borrowed */
	struct ap_specs *specs; /* borrowed, but for own_specs */
	bool own_specs;         /* ap_sampler_open_text() made them */
	struct ap_counters *counters;
	unsigned int flags;

	struct ap_ring **rings; /* owned; each in the life of its event in `counters` */
	unsigned int nrings;
	unsigned int pages; /* of each */
	u64 *bounce;        /* shared by all rings */
	struct ap__order order;
	struct ap_ring *from; /* of the record that was taken last; NULL: none was */

	struct pollfd *fds; /* one for each place that has not ended; owned */
	unsigned int nfds;
	bool stopped; /* disabled, so that all there will be is there */
	bool woken;   /* poll(2) has told of a wakeup, and no pass has begun since */
};

/* Sets up the attrs of @specs; @cpus: they are opened on named CPUs. -EINVAL. */
int ap__sampler_prepare(struct ap_specs *specs, const struct ap_sampler_opts *o, bool cpus,
			struct ap_error *err);

/*
 * Maps the buffers and sends every event's records to one of them. @pages 0: the default, or what
 * is possible. On failure nothing stays mapped.
 */
int ap__sampler_map(struct ap_sampler *s, unsigned int pages, struct ap_error *err);
void ap__sampler_unmap(struct ap_sampler *s);

#endif
