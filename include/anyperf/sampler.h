/*
 * PURPOSE: sampling: the events of a list on a target, their buffers, and the records of all of
 * them in the order of time.
 *
 *   struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .freq = 1000,
 *                                         .sample_type = PERF_SAMPLE_CALLCHAIN);
 *
 *   ap_sampler_open_text(&s, "cpu-clock:u", &opts, &err);
 *   ap_sampler_enable(s);
 *   ... the region ...
 *   ap_sampler_disable(s);
 *   while (ap_sampler_next(s, &rec, &err) > 0)
 *           if (rec.type == PERF_RECORD_SAMPLE)
 *                   ... rec.sample.ip, rec.id.tid, rec.id.time, rec.sample.callchain ...
 *   ap_sampler_close(s);
 *
 * examples/sample.c is the whole program. A target that goes on is followed with ap_sampler_poll().
 *
 * There is one buffer for each CPU, or for each thread where no CPUs are named. Records of
 * different buffers are brought into order by their times; each is held back for `horizon` for
 * that.
 *
 * Lifetime: open, then the rest in any order, then close; specs and machine must live as long. A
 * record lives until the next call that gets or snapshots records.
 */
#ifndef ANYPERF_SAMPLER_H
#define ANYPERF_SAMPLER_H

#include <anyperf/counters.h>
#include <anyperf/record.h>

AP_BEGIN_DECLS

struct ap_sampler;

enum ap_sampler_flags {
	AP_SAMPLER_TASKS = 1 << 0,     /* MMAP2, COMM, FORK and EXIT records too */
	AP_SAMPLER_OVERWRITE = 1 << 1, /* keep the newest records: see ap_sampler_snapshot() */
	AP_SAMPLER_SHRINK = 1 << 2,    /* over the limit for locked memory take smaller buffers */
	/*
	 * On the virtual PMU threads wait for room in a buffer rather than lose anything, until it
	 * is read, or sampling disabled. Who wants that must not wait for these threads himself
	 * without reading. A kernel's events are not changed by it.
	 */
	AP_SAMPLER_LOSSLESS = 1 << 3,
	/*
	 * With AP_SAMPLER_TASKS: MMAP2 records have the build id that a file had when it was
	 * mapped, in place of its device and inode, if it has one. No effect before Linux 5.12.
	 */
	AP_SAMPLER_BUILD_IDS = 1 << 4,
};

struct ap_sampler_opts {
	size_t size;
	/*
	 * How often, for specs that do not say it themselves: after so many events, or so many
	 * times a second. Not both; neither: 999 times a second.
	 */
	uint64_t period;
	uint64_t freq;
	/*
	 * PERF_SAMPLE_* beyond IP, TID and TIME, which every sample has. What belongs to a bit is
	 * set in the specs' attrs: branch_sample_type, sample_regs_user, sample_stack_user,
	 * sample_max_stack.
	 */
	uint64_t sample_type;
	unsigned int flags;      /* enum ap_sampler_flags */
	unsigned int open_flags; /* enum ap_open_flags, as for ap_counters_open() */
	unsigned int pages;     /* of each buffer, a power of two; 0: 128, or as the limit allows */
	uint32_t wakeup_events; /* wake ap_sampler_poll() after so many samples; 0: half a buffer */
	/*
	 * ns; 0: 10 ms. A record that is published within it after it was stamped comes in its
	 * place; ap_sampler_late() counts the others.
	 */
	uint64_t horizon;
};

/*
 * Opens @specs on @target (NULL: the calling thread) for sampling, disabled, with their buffers.
 * The attrs of the specs are changed: period, sample_type, sample_id_all. With AP_OPEN_INHERIT and
 * no CPUs in @target each thread is opened on every CPU, as the kernel demands.
 *   -EPERM   the buffers go over kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK; the reason names
 *            the largest size that would do
 *   -EINVAL  options that exclude each other
 * and as ap_counters_open().
 */
AP_API AP_MUST_CHECK int ap_sampler_open(struct ap_sampler **out, struct ap_machine *m,
					 struct ap_specs *specs, const struct ap_target *target,
					 const struct ap_sampler_opts *opts, struct ap_error *err);

/* All in one, for sampling the calling thread: a machine, the events of @text, and their buffer. */
AP_API AP_MUST_CHECK int ap_sampler_open_text(struct ap_sampler **out, const char *text,
					      const struct ap_sampler_opts *opts,
					      struct ap_error *err);

/* Unmaps and closes everything. NULL is fine. */
AP_API void ap_sampler_close(struct ap_sampler *s);

/* The events: to read what they have counted, and to do more with them. Owned by @s. */
AP_API struct ap_counters *ap_sampler_counters(const struct ap_sampler *s);

/* How many pages each buffer has. */
AP_API unsigned int ap_sampler_pages(const struct ap_sampler *s);

/* Start and stop. After a disable nothing is held back any more. First -errno. */
AP_API int ap_sampler_enable(struct ap_sampler *s);
AP_API int ap_sampler_disable(struct ap_sampler *s);

/*
 * Waits for a wakeup, which comes when half of a buffer is written or after wakeup_events; for the
 * end of all threads; or for records that were held back until now. At most @timeout_ms (-1: for
 * ever).
 *   1        call ap_sampler_next() until it gives 0
 *   0        there is nothing to take, and the time is over, all threads have ended, or
 *            ap_sampler_disable() was called. Events that were never enabled are waited for: an
 *            execve or their own descriptors may enable them
 *   -EINTR   a signal came
 * In these cases whatever there is counts, also below a wakeup. Snapshots are not waited for.
 */
AP_API AP_MUST_CHECK int ap_sampler_poll(struct ap_sampler *s, int timeout_ms);

/* Whether all threads that are sampled have ended, as far as ap_sampler_poll() has seen. */
AP_API bool ap_sampler_ended(const struct ap_sampler *s);

/*
 * For a program with a poll loop of its own: up to @max descriptors to wait on for POLLIN and
 * POLLHUP, at most for ap_sampler_timeout(), in ms (-1: for ever). Then call ap_sampler_poll(s, 0).
 * Returns how many there are.
 */
AP_API unsigned int ap_sampler_fds(const struct ap_sampler *s, int *fds, unsigned int max);
AP_API int ap_sampler_timeout(const struct ap_sampler *s);

/*
 * Takes the next record, the earliest first.
 *   1         *@rec is written
 *   0         what there is has been taken, or is still held back; poll and try again
 *   -EBADMSG, -EOPNOTSUPP  something that is no record, or cannot be decoded, was passed over; the
 *             next call goes on behind it
 */
AP_API AP_MUST_CHECK int ap_sampler_next(struct ap_sampler *s, struct ap_record *rec,
					 struct ap_error *err);

/* Takes whole records as the buffers have them. A non-zero return ends it. */
typedef int ap_records_fn(const void *records, size_t len, void *data);

/*
 * Instead of ap_sampler_next(), for whoever keeps records to look at them later: hands all that the
 * buffers hold now to @fn, one buffer after the other, neither decoded nor ordered. What one call
 * gives is not older than the newest of two calls before.
 *   0         all was handed over
 *   -EBADMSG  something that is no record was passed over, in one buffer at least
 *   -EINVAL   with AP_SAMPLER_OVERWRITE
 * or @fn's value; what it was given is gone from the buffers, the rest is not.
 */
AP_API AP_MUST_CHECK int ap_sampler_drain(struct ap_sampler *s, ap_records_fn *fn, void *data,
					  struct ap_error *err);

/*
 * With AP_SAMPLER_OVERWRITE: copies what all buffers hold at this moment and did not hold at the
 * last snapshot. ap_sampler_next() gives it. Sampling goes on; records during the copying are lost.
 * -EINVAL without AP_SAMPLER_OVERWRITE, -ENOMEM.
 */
AP_API AP_MUST_CHECK int ap_sampler_snapshot(struct ap_sampler *s, struct ap_error *err);

/* The number of the spec whose event wrote the record that was taken last; -1 if nobody knows. */
AP_API int ap_sampler_spec(struct ap_sampler *s, const struct ap_record *rec);

/*
 * How many records were lost because a buffer was full, or paused for a snapshot: by asking the
 * events where the kernel counts it (Linux 6.0), else what LOST records have told so far. 0 or
 * -errno.
 */
AP_API int ap_sampler_lost(struct ap_sampler *s, uint64_t *lost);

/* How many records were published too late for the horizon, and so came out of order. */
AP_API uint64_t ap_sampler_late(const struct ap_sampler *s);

AP_END_DECLS

#endif
