/* Mapping a ring buffer, and what to say when there is no memory to lock [RING-01, RING-13]. */
#include "lib/sample/ring-priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int ap__ring_over_limit(const struct ap_event *e, unsigned int n, unsigned int pages,
			unsigned int fewer, struct ap_error *err)
{
	char many[32] = "a buffer", limits[REFUSAL_NAME], sysctl[32] = "?", lock[32] = "?";
	u64 kb = page_size() / 1024;
	struct rlimit memlock;
	long long limit;

	if (n > 1)
		snprintf(many, sizeof(many), "each of %u buffers", n);
	if (ap__slurp_number(e->m, &limit, "/proc/sys/kernel/perf_event_mlock_kb") == 0)
		snprintf(sysctl, sizeof(sysctl), "%lld", limit);
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0)
		snprintf(lock, sizeof(lock), "%llu", (unsigned long long)memlock.rlim_cur / 1024);
	snprintf(limits, sizeof(limits),
		 "kernel.perf_event_mlock_kb (%s kB for each CPU) and, beyond it, RLIMIT_MEMLOCK "
		 "(%s kB)",
		 sysctl, lock);
	return ap__refuse(err, -EPERM, e->name, BUFFER_LIMIT,
			  .number = {pages, pages * kb, fewer, fewer * kb}, .name = {many, limits},
			  .remedy = {fewer ? REMEDY_FEWER_PAGES : REMEDY_RAISE_MLOCK});
}

static int explain_map(const struct ap_event *e, int r, struct ap_error *err)
{
	if (e->m->ops->refusal)
		return ap__tell(err, e->name, e->m->ops->refusal(e->m->be));
	if (r == -EINVAL && e->attr->inherit && e->cpu < 0)
		return ap__refuse(err, r, e->name, MAP_INHERITED);
	/* Of another size than its own, which it does not have. */
	if (r == -EINVAL || r == -EBUSY)
		return ap__refuse(err, r, e->name, MAP_REDIRECTED);
	return ap__refuse(err, r, e->name, CALL_ERRNO,
			  .name = {"mapping its buffer", strerror(-r)});
}

static int may_map(const struct ap_event *e, unsigned int pages, struct ap_error *err)
{
	if (!e->m->ops->mmap)
		return ap__refuse(err, -EOPNOTSUPP, e->name, MAP_OUTSIDE);
	if (!pages || pages & (pages - 1) || pages > INT32_MAX / page_size())
		return ap__refuse(err, -EINVAL, e->name, BUFFER_PAGES, .number = {pages});
	if (e->page_len > page_size())
		return ap__refuse(err, -EINVAL, e->name, BUFFER_TWICE);
	return 0;
}

static void attach(struct ap_ring *r, struct ap_event *e, void *base, size_t len)
{
	r->event = e;
	r->page = base;
	r->map_len = len;
	r->data = (u8 *)base + page_size();
	r->size = len - page_size();
	r->backward = e->attr->write_backward;
	r->alike = true;
	if (!r->backward)
		r->tail = r->seen = r->end = r->page->data_tail;
	/* ap_event_read_self() looks at the same page. */
	e->page = base;
	e->page_len = len;
}

/* Where snapshots go. Each page is touched now: a fault in the pause would be a lost sample. */
static int make_copy(struct ap_ring *r)
{
	r->copy = malloc(r->size);
	if (!r->copy)
		return -ENOMEM;
	memset(r->copy, 0xff, r->size);
	r->data = r->copy;
	return 0;
}

int ap__ring_map(struct ap_ring **out, struct ap_event *e, unsigned int pages, u64 *bounce,
		 struct ap_error *err)
{
	size_t len = (1 + (size_t)pages) * page_size();
	struct ap_ring *r;
	void *base;
	int n;

	n = may_map(e, pages, err);
	if (n)
		return n;
	/* The user page alone would fix the size of the mapping [RING-02]. */
	if (e->page) {
		e->m->ops->munmap(e->m->be, e->page, e->page_len);
		e->page = NULL;
		e->page_len = 0;
	}
	/* Without PROT_WRITE it is to be overwritten [RING-07]. */
	n = e->m->ops->mmap(e->m->be, e->handle, len, 0, !e->attr->write_backward, &base);
	if (n)
		return n == -EPERM ? n : explain_map(e, n, err);
	r = calloc(1, sizeof(*r));
	if (!r) {
		e->m->ops->munmap(e->m->be, base, len);
		return ap__fail_memory(err);
	}
	attach(r, e, base, len);
	r->bounce_shared = bounce;
	r->bounce = bounce ? bounce : malloc(RECORD_MAX);
	if (!r->bounce || (r->backward && make_copy(r))) {
		ap_ring_unmap(r);
		return ap__fail_memory(err);
	}
	*out = r;
	return 0;
}

int ap_ring_map(struct ap_ring **out, struct ap_event *e, const struct ap_ring_opts *opts,
		struct ap_error *err)
{
	struct ap_ring_opts o = {.size = sizeof(o)};
	unsigned int wanted, pages;
	struct ap_ring *r = NULL;
	int n;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	n = ap__flags_known(err, "ap_ring_opts.flags", o.flags, AP_RING_SHRINK);
	if (n)
		return n;
	pages = wanted = o.pages ? o.pages : AP__RING_PAGES;
	n = ap__ring_map(&r, e, pages, NULL, err);
	/* The largest that fits, be it to keep it or to tell. */
	while (n == -EPERM && pages > 1)
		n = ap__ring_map(&r, e, pages /= 2, NULL, err);
	if (n == -EPERM)
		return ap__ring_over_limit(e, 1, wanted, 0, err);
	if (n)
		return n;
	if (pages < wanted && o.pages && !(o.flags & AP_RING_SHRINK)) {
		ap_ring_unmap(r);
		return ap__ring_over_limit(e, 1, wanted, pages, err);
	}
	if (pages < wanted)
		ap__log(e->m, AP_LOG_WARN, "%s: a buffer of %u pages instead of %u", e->name, pages,
			wanted);
	n = ap__ring_add(r, e, 0, err);
	if (n) {
		ap_ring_unmap(r);
		return n;
	}
	*out = r;
	return 0;
}

void ap_ring_unmap(struct ap_ring *r)
{
	if (!r)
		return;
	r->event->m->ops->munmap(r->event->m->be, r->page, r->map_len);
	r->event->page = NULL;
	r->event->page_len = 0;
	if (!r->bounce_shared)
		free(r->bounce);
	free(r->sources);
	free(r->copy);
	free(r->starts);
	free(r);
}
