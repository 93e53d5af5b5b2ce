/*
 * PURPOSE: one perf event: one attr on one thread and/or CPU, one file descriptor. All that the
 * kernel offers on such a descriptor has a function here. Most programs want counters.h, which
 * opens the events of a list on all the places of a target.
 *
 * Lifetime: open .. close; a leader is closed after its members, which point to it and which its
 * closing would turn into single events. An event keeps a pointer to its machine.
 */
#ifndef ANYPERF_EVENT_H
#define ANYPERF_EVENT_H

#include <anyperf/error.h>
#include <anyperf/read.h>
#include <linux/perf_event.h>

AP_BEGIN_DECLS

struct ap_machine;
struct ap_event;

/*
 * What an event counts: a thread, a CPU, or a thread as long as it is on a CPU, as the arguments
 * pid and cpu of perf_event_open(2) say it. A cgroup's event has tid -1.
 */
struct ap_place {
	pid_t tid; /* 0: the calling thread; -1: whatever runs on @cpu */
	int cpu;   /* a CPU's number; -1: any */
};

struct ap_event_opts {
	size_t size;
	const struct ap_place *place; /* NULL: the calling thread on whatever CPU. Borrowed */
	struct ap_event *leader; /* join its group; NULL: lead a group of one's own. Borrowed */
	struct ap_event *output; /* send records to this event's buffer; NULL: none. Borrowed */
	const char *cgroup; /* count only this cgroup's threads: a path, or relative to the mount */
	const char *name;   /* how reasons call the event; NULL: made from the attr */
};

/*
 * Opens @attr, close-on-exec. @attr->size says how much of it is meant (0: VER0). If the kernel is
 * too old for fields that are not essential they are dropped and the log says so (PERF_FORMAT_LOST,
 * CLOEXEC, side-band records such as ksymbol, and exclude_guest, which some PMUs refuse too); if a
 * needed field is unknown to it the open fails. The soft RLIMIT_NOFILE is raised when it is
 * reached. @opts may be NULL: this thread, every CPU. Returns 0 or the errno of perf_event_open(2)
 * with the reason worked out.
 */
AP_API AP_MUST_CHECK int ap_event_open(struct ap_event **out, struct ap_machine *m,
				       const struct perf_event_attr *attr,
				       const struct ap_event_opts *opts, struct ap_error *err);

/* Unmaps, closes and frees. NULL is fine. */
AP_API void ap_event_close(struct ap_event *e);

/* The descriptor: for poll, fcntl and ioctls that are not here. Owned by @e. */
AP_API int ap_event_fd(const struct ap_event *e);

/* The attr as the kernel accepted it, after any fields were dropped. */
AP_API const struct perf_event_attr *ap_event_attr(const struct ap_event *e);

enum ap_scope {
	AP_EVENT =
		0, /* the event; for a leader, enabling and disabling act on its group in effect */
	AP_GROUP = 1, /* leader and members, also when called on a member */
};

/* Starts counting; the only way out of the error state of a pinned event. -errno. */
AP_API int ap_event_enable(struct ap_event *e, enum ap_scope scope);

/* Stops counting; the count is kept and the times stop. -errno. */
AP_API int ap_event_disable(struct ap_event *e, enum ap_scope scope);

/* Sets the count to 0; not the times, and not what dead children left. -errno. */
AP_API int ap_event_reset(struct ap_event *e, enum ap_scope scope);

/*
 * Enables a sampling event for @overflows more overflows. -EINVAL for a counting or
 * inherited event, or for 0, which the kernel leaves undefined.
 */
AP_API AP_MUST_CHECK int ap_event_refresh(struct ap_event *e, int overflows, struct ap_error *err);

/* New period, or frequency of a freq event. -EINVAL with the reason. */
AP_API AP_MUST_CHECK int ap_event_set_period(struct ap_event *e, uint64_t period,
					     struct ap_error *err);

/* The id that samples and group reads carry. Falls back to a read with PERF_FORMAT_ID. -errno. */
AP_API AP_MUST_CHECK int ap_event_id(struct ap_event *e, uint64_t *id);

/* Sets an ftrace filter on a tracepoint, or address filters on a tracing PMU. */
AP_API AP_MUST_CHECK int ap_event_set_filter(struct ap_event *e, const char *filter,
					     struct ap_error *err);

/* Attaches the BPF program @prog_fd to a probe or tracepoint, or as overflow handler. */
AP_API AP_MUST_CHECK int ap_event_set_bpf(struct ap_event *e, int prog_fd, struct ap_error *err);

/*
 * The ids of the BPF programs on a tracepoint: up to @max into @ids, their number into *@n.
 * -ENOSPC if there are more, *@n tells.
 */
AP_API AP_MUST_CHECK int ap_event_query_bpf(struct ap_event *e, uint32_t *ids, unsigned int max,
					    unsigned int *n, struct ap_error *err);

/* Moves a breakpoint: only its address, length and type may differ from what was opened. */
AP_API AP_MUST_CHECK int ap_event_modify(struct ap_event *e, const struct perf_event_attr *attr,
					 struct ap_error *err);

/* Sends @e's records to @to's buffer; NULL: no longer. */
AP_API AP_MUST_CHECK int ap_event_set_output(struct ap_event *e, struct ap_event *to,
					     struct ap_error *err);

/* Pauses or resumes writing into the buffer; samples in between are lost. */
AP_API AP_MUST_CHECK int ap_event_pause_output(struct ap_event *e, bool pause,
					       struct ap_error *err);

/*
 * Reads the event by its own read_format; with PERF_FORMAT_GROUP the whole group, leader first.
 * Returns the number of values (only @max are written), 0 if the event is in error state, or
 * -errno.
 */
AP_API AP_MUST_CHECK int ap_event_read(struct ap_event *e, struct ap_value *values,
				       unsigned int max);

AP_END_DECLS

#endif
