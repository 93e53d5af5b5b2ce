#include <anyperf/read.h>

#include <errno.h>
#include <string.h>

#include "abi/perf.h"
#include "base/cursor.h"
#include "record/coding.h"

#define KNOWN_FORMAT                                                                        \
	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | \
	 PERF_FORMAT_GROUP | PE_FORMAT_LOST)

size_t ap_read_size(uint64_t read_format, unsigned int n)
{
	return ap__record_read_size(read_format, n);
}

int ap_read_decode(const void *bytes, size_t len, uint64_t read_format, struct ap_value *values,
		   unsigned int max)
{
	struct cursor c = cursor_over(bytes, len);
	struct ap_value v = {0};
	bool group = read_format & PERF_FORMAT_GROUP;
	u64 nr = 1;

	if (read_format & ~(u64)KNOWN_FORMAT)
		return -EINVAL;
	if (!len)
		return 0;
	if (group)
		nr = cursor_u64(&c);
	else
		v.value = cursor_u64(&c);
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		v.enabled = cursor_u64(&c);
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		v.running = cursor_u64(&c);
	/* Also keeps a torn nr from being multiplied into something that fits. */
	if (c.torn || nr == 0 || nr > len / sizeof(u64) ||
	    ap_read_size(read_format, (unsigned int)nr) != len)
		return -EBADMSG;
	for (u64 i = 0; i < nr; i++) {
		if (group)
			v.value = cursor_u64(&c);
		if (read_format & PERF_FORMAT_ID)
			v.id = cursor_u64(&c);
		if (read_format & PE_FORMAT_LOST)
			v.lost = cursor_u64(&c);
		if (i < max)
			values[i] = v;
	}
	return (int)nr;
}

enum ap_scaled ap_value_scale(const struct ap_value *v, uint64_t *out)
{
	double estimate;

	if (!v->running) {
		*out = 0;
		return AP_NOT_COUNTED;
	}
	if (v->running >= v->enabled) {
		*out = v->value;
		return AP_EXACT;
	}
	estimate = (double)v->value * (double)v->enabled / (double)v->running;
	/* A double at or above 2^64 has no u64; the conversion would be undefined. */
	*out = estimate < 0x1p64 ? (uint64_t)estimate : UINT64_MAX;
	return AP_SCALED;
}

uint64_t ap_value_scale_int(const struct ap_value *v)
{
	unsigned __int128 scaled;

	if (!v->running)
		return 0;
	if (v->running >= v->enabled)
		return v->value;
	scaled = (unsigned __int128)(v->value / v->running) * v->enabled +
		 (unsigned __int128)(v->value % v->running) * v->enabled / v->running;
	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

double ap_value_percent(const struct ap_value *v)
{
	return v->enabled ? 100.0 * (double)v->running / (double)v->enabled : 0.0;
}

void ap_value_add(struct ap_value *a, const struct ap_value *b)
{
	a->value += b->value;
	a->enabled += b->enabled;
	a->running += b->running;
	a->lost += b->lost;
}

void ap_value_sub(struct ap_value *a, const struct ap_value *b)
{
	a->value -= b->value;
	a->enabled -= b->enabled;
	a->running -= b->running;
	a->lost -= b->lost;
}
