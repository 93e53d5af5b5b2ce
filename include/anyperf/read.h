/*
 * PURPOSE: the bytes that read(2) gives for a perf event, and the arithmetic on them. Pure
 * functions: they can be used on recorded bytes and on the read blocks of samples.
 */
#ifndef ANYPERF_READ_H
#define ANYPERF_READ_H

#include <anyperf/api.h>

AP_BEGIN_DECLS

/* What one event has counted. Fields that the read_format did not ask for are 0. */
struct ap_value {
	uint64_t value;   /* the count as read, not scaled */
	uint64_t enabled; /* ns for which the event was enabled */
	uint64_t running; /* ns for which it was really counting */
	uint64_t id;      /* the event's id */
	uint64_t lost;    /* samples dropped for this event */
};

/*
 * Decodes @len bytes read from an event with @read_format into at most @max values. The two times
 * of a group are copied into each of its values. Returns the number of values the
 * bytes hold (for a group perhaps more than @max: only @max are written), or
 *   0         @len is 0: the event is in error state, its counter was taken away
 *   -EBADMSG  the bytes do not have the shape that @read_format says
 *   -EINVAL   @read_format has bits that this library does not know
 */
AP_API AP_MUST_CHECK int ap_read_decode(const void *bytes, size_t len, uint64_t read_format,
					struct ap_value *values, unsigned int max);

/* How many bytes a read with @read_format gives for a group of @n events; @n is 1 without GROUP. */
AP_API size_t ap_read_size(uint64_t read_format, unsigned int n);

enum ap_scaled {
	AP_NOT_COUNTED = -1, /* running was 0: the count is unknown, *@out is 0 */
	AP_EXACT = 0,        /* the event ran whenever it was enabled: the count is as read */
	AP_SCALED = 1,       /* multiplexed: the count is an estimate */
};

/*
 * The count that would have been read had the event run for all of its enabled time:
 * (uint64_t)((double)value * enabled / running), truncated, as perf computes it.
 */
AP_API enum ap_scaled ap_value_scale(const struct ap_value *v, uint64_t *out);

/*
 * The same estimate in integers, q * enabled + r * enabled / running with q and r of value /
 * running: exact where doubles are not, and usable where there are none. 0 if running is 0;
 * saturates at UINT64_MAX.
 */
AP_API uint64_t ap_value_scale_int(const struct ap_value *v);

/* How much of the enabled time was counted, in percent; 0 if never enabled. */
AP_API double ap_value_percent(const struct ap_value *v);

/* Adds @b's count, times and lost to @a: the sum over CPUs or threads. The id stays @a's. */
AP_API void ap_value_add(struct ap_value *a, const struct ap_value *b);

/* Takes @b's count, times and lost away from @a: what happened between two reads. */
AP_API void ap_value_sub(struct ap_value *a, const struct ap_value *b);

AP_END_DECLS

#endif
