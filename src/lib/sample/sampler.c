/*
 * Counters that sample, their buffers, and the order of what is in them. What the pieces do is said
 * with them: counters.h, ring.h, order.h; doc/sampling.md tells the whole.
 */
#include "lib/sample/sampler-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/refusal/fail.h"
#include "lib/spec/spec-priv.h"

#define DEFAULT_HORIZON 10000000 /* ns */

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

/* One descriptor for each place: its first event's. All that write into a buffer wake together. */
static int collect_fds(struct ap_sampler *s)
{
	unsigned int places = ap_counters_places(s->counters), n = ap_specs_count(s->specs);

	s->fds = calloc(places, sizeof(*s->fds));
	if (!s->fds)
		return -ENOMEM;
	for (unsigned int place = 0; place < places; place++)
		for (unsigned int i = 0; i < n; i++) {
			struct ap_event *e = ap_counters_event(s->counters, i, place);

			if (!e)
				continue;
			s->fds[s->nfds++] = (struct pollfd){.fd = ap_event_fd(e), .events = POLLIN};
			break;
		}
	return 0;
}

static bool is_lossless(const struct ap_sampler *s)
{
	return s->flags & AP_SAMPLER_LOSSLESS && s->m->ops->lossless;
}

/* The order in which they are needed; ap_sampler_close() undoes what was done. */
static int open_parts(struct ap_sampler *s, const struct ap_target *target,
		      const struct ap_sampler_opts *o, struct ap_error *err)
{
	struct ap_target t = {.size = sizeof(t)};
	struct ap_open_opts open = {.size = sizeof(open), .flags = o->open_flags | AP_OPEN_LOST};
	int r;

	if (target)
		memcpy(&t, target, target->size < sizeof(t) ? target->size : sizeof(t));
	if ((open.flags & AP_OPEN_INHERIT) && !t.cpus && !s->m->ops->maps_inherited)
		t.cpus = "all";
	r = ap__sampler_prepare(s->specs, o, t.cpus || t.cgroup, err);
	if (!r)
		r = ap_counters_open(&s->counters, s->m, s->specs, &t, &open, err);
	if (!r)
		r = ap__sampler_map(s, o->pages, err);
	if (r)
		return r;
	for (unsigned int i = 0; is_lossless(s) && i < s->nrings; i++)
		(void)s->m->ops->lossless(s->m->be, s->rings[i]->event->handle);
	if (collect_fds(s) || ap__order_init(&s->order, s->rings, s->nrings,
					     o->horizon ? o->horizon : DEFAULT_HORIZON))
		return ap__fail_memory(err);
	return 0;
}

int ap_sampler_open(struct ap_sampler **out, struct ap_machine *m, struct ap_specs *specs,
		    const struct ap_target *target, const struct ap_sampler_opts *opts,
		    struct ap_error *err)
{
	struct ap_sampler_opts o = {.size = sizeof(o)};
	struct ap_sampler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return ap__fail_memory(err);
	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	s->m = m;
	s->specs = specs;
	s->flags = o.flags;
	r = ap__flags_known(err, "ap_sampler_opts.flags", o.flags, 2 * AP_SAMPLER_BUILD_IDS - 1);
	if (!r)
		r = open_parts(s, target, &o, err);
	if (r) {
		ap_sampler_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int ap_sampler_open_text(struct ap_sampler **out, const char *text,
			 const struct ap_sampler_opts *opts, struct ap_error *err)
{
	struct ap_specs *specs;
	int r = ap__specs_alone(&specs, text, err);

	if (r)
		return r;
	r = ap_sampler_open(out, specs->own, specs, NULL, opts, err);
	if (r)
		ap_specs_free(specs);
	else
		(*out)->own_specs = true;
	return r;
}

void ap_sampler_close(struct ap_sampler *s)
{
	if (!s)
		return;
	ap__order_release(&s->order);
	ap__sampler_unmap(s);
	ap_counters_close(s->counters);
	if (s->own_specs)
		ap_specs_free(s->specs);
	free(s->rings);
	free(s->bounce);
	free(s->fds);
	free(s);
}

struct ap_counters *ap_sampler_counters(const struct ap_sampler *s)
{
	return s->counters;
}

unsigned int ap_sampler_pages(const struct ap_sampler *s)
{
	return s->pages;
}

int ap_sampler_enable(struct ap_sampler *s)
{
	s->stopped = false;
	return ap_counters_enable(s->counters);
}

int ap_sampler_disable(struct ap_sampler *s)
{
	int r = ap_counters_disable(s->counters);

	s->stopped = !r;
	return r;
}

bool ap_sampler_ended(const struct ap_sampler *s)
{
	return !s->nfds;
}

unsigned int ap_sampler_fds(const struct ap_sampler *s, int *fds, unsigned int max)
{
	for (unsigned int i = 0; i < s->nfds && i < max; i++)
		fds[i] = s->fds[i].fd;
	return s->nfds;
}

/* One buffer is in order by itself, and writers that have stopped have nothing to publish. */
static bool holds_back(const struct ap_sampler *s)
{
	return s->nrings > 1 && !s->stopped && s->nfds;
}

/* Leaves out places whose task has ended: poll() would not wait for the others. True: one had. */
static bool drop_ended(struct ap_sampler *s)
{
	unsigned int left = 0, before = s->nfds;

	for (unsigned int i = 0; i < s->nfds; i++)
		if (!(s->fds[i].revents & (POLLHUP | POLLERR | POLLNVAL)))
			s->fds[left++] = s->fds[i];
	s->nfds = left;
	return left < before;
}

/* Milliseconds, rounded up; UINT64_MAX is for ever. */
static int sleep_ms(u64 now, u64 until)
{
	u64 ms = until > now ? (until - now + 999999) / 1000000 : 0;

	if (until == UINT64_MAX)
		return -1;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

int ap_sampler_timeout(const struct ap_sampler *s)
{
	u64 until;

	return ap__order_waits(&s->order, &until) ? sleep_ms(now_ns(), until) : -1;
}

/*
 * What there is need not be worth waking up for: below the kernel's wakeup only the end, and the
 * end of the caller's time, make it so. `woken` stands for a wakeup that poll(2) has told of, which
 * it does once [OVF-02], until somebody begins to take.
 */
int ap_sampler_poll(struct ap_sampler *s, int timeout_ms)
{
	u64 now = now_ns(), due = 0;
	u64 deadline = timeout_ms < 0 ? UINT64_MAX : now + (u64)timeout_ms * 1000000;
	bool looked = false;

	for (;;) {
		bool waits = ap__order_waits(&s->order, &due);
		int r;

		if (s->woken || s->order.in_pass || (waits && due <= now))
			return 1;
		/* At least one look, or who never waits would not see that all have ended. */
		if (!s->nfds || s->stopped || (looked && now >= deadline))
			return ap__order_left(&s->order);
		looked = true;
		r = poll(s->fds, s->nfds, sleep_ms(now, waits && due < deadline ? due : deadline));
		if (r < 0)
			return -errno;
		if (r > 0 && drop_ended(s))
			return 1;
		s->woken = r > 0;
		now = now_ns();
	}
}

/* Before the buffers are looked at, or a wakeup that comes meanwhile would be forgotten. */
static void hear(struct ap_sampler *s)
{
	s->woken = false;
	for (unsigned int i = 0; s->m->ops->heard && i < s->nfds; i++)
		s->m->ops->heard(s->m->be, s->fds[i].fd);
}

/*
 * Where writers have stopped nobody else looks after what has waited for room: has it found some?
 * While they run the backend does.
 */
static bool more_came(struct ap_sampler *s)
{
	bool more = false;

	for (unsigned int i = 0; is_lossless(s) && s->stopped && i < s->nrings; i++)
		more |= s->m->ops->lossless(s->m->be, s->rings[i]->event->handle) > 0;
	return more;
}

int ap_sampler_next(struct ap_sampler *s, struct ap_record *rec, struct ap_error *err)
{
	int r;

	do {
		if (!s->order.in_pass)
			hear(s);
		r = ap__order_next(&s->order, holds_back(s), now_ns(), rec, &s->from, err);
	} while (!r && more_came(s));
	return r;
}

int ap_sampler_drain(struct ap_sampler *s, ap_records_fn *fn, void *data, struct ap_error *err)
{
	int broken = 0;

	if (s->flags & AP_SAMPLER_OVERWRITE)
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"buffers that overwrite are read by a snapshot");
	do {
		hear(s);
		for (unsigned int i = 0; i < s->nrings; i++) {
			int r = ap__ring_drain(s->rings[i], fn, data);

			if (r == -EBADMSG)
				broken = ap__ring_explain(s->rings[i], err);
			else if (r)
				return r;
		}
	} while (more_came(s));
	return broken;
}

int ap_sampler_spec(struct ap_sampler *s, const struct ap_record *rec)
{
	if (!s->from)
		return -1;
	return ap_specs_count(s->specs) == 1 ? 0 : ap__ring_tag(s->from, rec);
}

static int pause_all(struct ap_sampler *s, bool pause, struct ap_error *err)
{
	int first = 0;

	for (unsigned int i = 0; i < s->nrings; i++) {
		int r = ap_event_pause_output(s->rings[i]->event, pause, first ? NULL : err);

		if (r && !first)
			first = r;
	}
	return first;
}

int ap_sampler_snapshot(struct ap_sampler *s, struct ap_error *err)
{
	int r, resumed;

	if (!(s->flags & AP_SAMPLER_OVERWRITE))
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"only with AP_SAMPLER_OVERWRITE is there something to snapshot");
	r = pause_all(s, true, err);
	for (unsigned int i = 0; i < s->nrings && !r; i++)
		ap__ring_copy_new(s->rings[i]);
	resumed = pause_all(s, false, r ? NULL : err);
	if (!r)
		r = resumed;
	for (unsigned int i = 0; i < s->nrings && !r; i++)
		r = ap__ring_divide(s->rings[i], err);
	ap__order_restart(&s->order);
	return r;
}

/* Whether the event counts its losses itself, and how many they are. */
static bool lost_of(const struct ap_sampler *s, unsigned int spec, unsigned int place, u64 *lost)
{
	struct ap_event *e = ap_counters_event(s->counters, spec, place);

	if (!e)
		return true;
	if (!(e->attr->read_format & PE_FORMAT_LOST))
		return false;
	*lost += ap_counters_value(s->counters, spec, place)->lost;
	return true;
}

int ap_sampler_lost(struct ap_sampler *s, uint64_t *lost)
{
	u64 counted = 0, told = 0;
	bool counts = true;
	int r = ap_counters_read(s->counters);

	if (r)
		return r;
	for (unsigned int i = 0; i < ap_specs_count(s->specs); i++)
		for (unsigned int place = 0; place < ap_counters_places(s->counters); place++)
			counts = counts && lost_of(s, i, place, &counted);
	for (unsigned int i = 0; i < s->nrings; i++)
		told += ap_ring_lost(s->rings[i]);
	*lost = counts ? counted : told;
	return 0;
}

uint64_t ap_sampler_late(const struct ap_sampler *s)
{
	return s->order.late;
}
