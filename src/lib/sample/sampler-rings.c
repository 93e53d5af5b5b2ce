/*
 * Which event writes into which buffer. The kernel lets events share one if they are on the same
 * CPU, or, on any CPU, on the same task [IOC-06]. So there is a buffer for each CPU, and one for
 * each place that is not bound to a CPU.
 */
#include "lib/sample/sampler-priv.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/refusal/fail.h"

void ap__sampler_unmap(struct ap_sampler *s)
{
	for (unsigned int i = 0; i < s->nrings; i++)
		ap_ring_unmap(s->rings[i]);
	s->nrings = 0;
}

/* NULL: it needs one of its own. */
static struct ap_ring *ring_for(const struct ap_sampler *s, const struct ap_event *e,
				struct ap_ring *of_place)
{
	if (of_place)
		return of_place;
	for (unsigned int i = 0; e->cpu >= 0 && i < s->nrings; i++)
		if (s->rings[i] && s->rings[i]->event->cpu == e->cpu)
			return s->rings[i];
	return NULL;
}

static int map_place(struct ap_sampler *s, unsigned int place, unsigned int pages,
		     struct ap_error *err)
{
	struct ap_ring *of_place = NULL;

	for (unsigned int i = 0; i < ap_specs_count(s->specs); i++) {
		struct ap_event *e = ap_counters_event(s->counters, i, place);
		struct ap_ring *r;
		int n = 0;

		if (!e)
			continue;
		r = ring_for(s, e, of_place);
		if (!r) {
			n = ap__ring_map(&r, e, pages, s->bounce, err);
			if (!n)
				s->rings[s->nrings++] = r;
		}
		if (!n)
			n = ap__ring_add(r, e, i, err);
		if (n)
			return n;
		of_place = r;
	}
	return 0;
}

static int map_all(struct ap_sampler *s, unsigned int pages, struct ap_error *err)
{
	for (unsigned int place = 0; place < ap_counters_places(s->counters); place++) {
		int n = map_place(s, place, pages, err);

		if (n) {
			ap__sampler_unmap(s);
			return n;
		}
	}
	s->pages = pages;
	return 0;
}

/* An event for sentences; there is one, or the counters would not have opened. */
static const struct ap_event *any_event(const struct ap_sampler *s)
{
	unsigned int places = ap_counters_places(s->counters);
	const struct ap_event *e = NULL;

	for (unsigned int at = 0; !e; at++)
		e = ap_counters_event(s->counters, at / places, at % places);
	return e;
}

/* How many buffers there would be. */
static unsigned int count_buffers(const struct ap_sampler *s)
{
	unsigned int places = ap_counters_places(s->counters), n = 0;

	for (unsigned int i = 0; i < places; i++) {
		int cpu = ap_counters_place(s->counters, i).cpu;
		bool shared = false;

		for (unsigned int j = 0; cpu >= 0 && j < i; j++)
			shared |= ap_counters_place(s->counters, j).cpu == cpu;
		n += !shared;
	}
	return n;
}

int ap__sampler_map(struct ap_sampler *s, unsigned int wanted, struct ap_error *err)
{
	unsigned int pages = wanted ? wanted : AP__RING_PAGES, asked = pages;
	bool shrink = !wanted || (s->flags & AP_SAMPLER_SHRINK);
	int n;

	s->rings = calloc(ap_counters_places(s->counters), sizeof(struct ap_ring *));
	s->bounce = malloc(RECORD_MAX);
	if (!s->rings || !s->bounce)
		return ap__fail_memory(err);
	n = map_all(s, pages, err);
	/* The largest that fits for all of them, be it to keep it or to tell. */
	while (n == -EPERM && pages > 1)
		n = map_all(s, pages /= 2, err);
	if (n == -EPERM)
		return ap__ring_over_limit(any_event(s), count_buffers(s), asked, 0, err);
	if (n)
		return n;
	if (pages < asked && !shrink) {
		ap__sampler_unmap(s);
		return ap__ring_over_limit(any_event(s), count_buffers(s), asked, pages, err);
	}
	if (pages < asked)
		ap__log(s->m, AP_LOG_WARN, "buffers of %u pages instead of %u", pages, asked);
	return 0;
}
