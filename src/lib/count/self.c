#include <anyperf/self.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"
#include "backend/virtual.h"
#include "lib/count/pmc.h"
#include "lib/count/selfpage.h"

/*
 * Orders our loads among each other. The page's only writer is the kernel on this very CPU (it
 * updates the page of an event that runs here, from a context switch or interrupt), so the compiler
 * is all that must be kept from moving them; pairs with the barriers around the update in the
 * kernel's perf_event_update_userpage().
 */
#define compiler_barrier() __asm__ volatile("" : : : "memory")

/*
 * ns since the page was written: quotient and remainder apart, so that it cannot overflow
 * [PAGE-13].
 */
static u64 time_delta(u64 cycles, u16 shift, u32 mult, u64 offset)
{
	u64 quot = cycles >> shift, rem = cycles & (((u64)1 << shift) - 1);

	return offset + quot * mult + ((rem * mult) >> shift);
}

bool ap__selfpage_read(const volatile struct perf_event_mmap_page *page,
		       const struct ap__pmc_ops *ops, struct ap_value *v)
{
	/* A page whose lock stays odd is broken; system calls must not hang on it. */
	for (int tries = 0; tries < 1000; tries++) {
		u64 enabled, running, cycles = 0, time_offset = 0, caps;
		u32 seq = page->lock, index, mult = 0;
		u16 shift = 0, width;
		s64 count;
		s64 pmc;

		compiler_barrier();
		caps = page->capabilities;
		index = page->index;
		enabled = page->time_enabled;
		running = page->time_running;
		count = page->offset;
		width = page->pmc_width;
		if (seq & 1)
			continue;
		/* cap_user_rdpmc; index 0: not on a counter just now [PAGE-03, PAGE-08]. */
		if (!(caps & BIT(2)) || !index || !width || width > 64)
			return false;
		/* cap_user_time: the times go on since the page was written [PAGE-22]. */
		if (caps & BIT(3)) {
			cycles = ops->clock();
			/* cap_user_time_short: a clock of fewer bits [PAGE-11] */
			if (caps & BIT(5))
				cycles = page->time_cycles +
					 ((cycles - page->time_cycles) & page->time_mask);
			shift = page->time_shift;
			mult = page->time_mult;
			time_offset = page->time_offset;
		}
		pmc = (s64)ops->read(index);
		compiler_barrier();
		if (page->lock != seq)
			continue;
		/* Sign extension from the counter's width [PAGE-12]. */
		pmc = (s64)((u64)pmc << (64 - width)) >> (64 - width);
		v->value = (u64)count + (u64)pmc;
		v->enabled = enabled;
		v->running = running;
		if (caps & BIT(3)) {
			u64 delta = time_delta(cycles, shift < 64 ? shift : 63, mult, time_offset);

			v->enabled += delta;
			v->running += delta; /* index is set: it is on the PMU */
		}
		v->id = 0;
		v->lost = 0;
		return true;
	}
	return false;
}

static const struct ap__pmc_ops pmc_ops = {.read = ap__pmc_read, .clock = ap__pmc_clock};

int ap_event_map_self(struct ap_event *e, struct ap_error *err)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page;
	int r;

	if (e->page)
		return 0;
	if (!e->m->ops->mmap || e->m->ops == &ap__backend_virtual)
		return ap__refuse(err, -EOPNOTSUPP, e->name, MAP_OUTSIDE);
	r = e->m->ops->mmap(e->m->be, e->handle, len, 0, false, &page);
	if (r < 0 && e->m->ops->refusal)
		return ap__tell(err, e->name, e->m->ops->refusal(e->m->be));
	if (r == -EINVAL && e->attr->inherit && e->cpu < 0)
		return ap__refuse(err, r, e->name, MAP_INHERITED);
	if (r == -EPERM)
		return ap__refuse(err, r, e->name, MAP_LIMIT);
	if (r)
		return ap__refuse(err, r, e->name, CALL_ERRNO,
				  .name = {"mapping its page", strerror(-r)});
	e->page = page;
	e->page_len = len;
	return 0;
}

bool ap_event_self_direct(const struct ap_event *e)
{
	struct ap_value v;

	return e->page && ap__pmc_usable() && e->m->ops == &ap__backend_kernel &&
	       ap__selfpage_read(e->page, &pmc_ops, &v);
}

/* This event's value out of its group, found by its id. */
static int read_in_group(struct ap_event *e, struct ap_value *value)
{
	struct ap_value values[128];
	u64 id = 0;
	int n = ap_event_read(e, values, ARRAY_SIZE(values));

	if (n <= 0)
		return n ? n : -ENODATA;
	if (!e->leader) {
		*value = values[0];
		return 0;
	}
	if (!(e->attr->read_format & PERF_FORMAT_ID) || ap_event_id(e, &id))
		return -EINVAL;
	for (int i = 0; i < n && i < (int)ARRAY_SIZE(values); i++)
		if (values[i].id == id) {
			*value = values[i];
			return 0;
		}
	return -ENODATA;
}

int ap_event_read_self(struct ap_event *e, struct ap_value *value)
{
	int n;

	if (e->page && ap__pmc_usable() && e->m->ops == &ap__backend_kernel &&
	    ap__selfpage_read(e->page, &pmc_ops, value))
		return 0;
	if (e->attr->read_format & PERF_FORMAT_GROUP)
		return read_in_group(e, value);
	n = ap_event_read(e, value, 1);
	return n < 0 ? n : n ? 0 : -ENODATA;
}
