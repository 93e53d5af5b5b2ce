/*
 * PURPOSE: a thread reading its own counters without a system call, from the event's user page and
 * the CPU's counter registers.
 *
 * Only the thread that the event counts may use these, on events opened for it (tid 0 or its own).
 * Where the kernel or the PMU does not allow it the same calls fall back to read(2), so a program
 * needs no second path; ap_event_self_direct() tells which it was. On arm64 the event must have
 * been opened with config1's rdpmc bit, which AP_OPEN_SELF_READ and the term rdpmc=1 set.
 */
#ifndef ANYPERF_SELF_H
#define ANYPERF_SELF_H

#include <anyperf/event.h>

AP_BEGIN_DECLS

/*
 * Maps @e's user page (one page, no data) unless a buffer of it is mapped already. -EINVAL if the
 * event inherits without being bound to a CPU, -EPERM over the mlock limit; reading still
 * works then, by read(2).
 */
AP_API AP_MUST_CHECK int ap_event_map_self(struct ap_event *e, struct ap_error *err);

/*
 * The event's count and times now. No system call if the page offers it, else ap_event_read() of
 * this one event. With PERF_FORMAT_GROUP the fallback gives this event's value out of its group.
 * 0, -errno, or -ENODATA if the event is in error state.
 */
AP_API AP_MUST_CHECK int ap_event_read_self(struct ap_event *e, struct ap_value *value);

/* Whether the next ap_event_read_self() would go without a system call. */
AP_API bool ap_event_self_direct(const struct ap_event *e);

AP_END_DECLS

#endif
