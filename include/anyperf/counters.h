/*
 * PURPOSE: the events of a list, opened on every place of a target, as one object: what a program
 * needs to measure a region, a command, a process, CPUs or a cgroup.
 *
 * A place is one thread and/or one CPU. There is one cell per spec and place; a cell may be empty
 * when the spec's PMU does not count there. Groups are opened as groups in each place.
 *
 * Lifetime: open, then enable/disable/read in any order, then close; the specs and the machine must
 * live as long.
 */
#ifndef ANYPERF_COUNTERS_H
#define ANYPERF_COUNTERS_H

#include <anyperf/event.h>
#include <anyperf/spec.h>

AP_BEGIN_DECLS

struct ap_command;
struct ap_counters;

/* What to measure. All zero: the calling thread, on whatever CPU it runs. */
struct ap_target {
	size_t size;
	const pid_t *tids;  /* these threads (or processes' first threads), each once ... */
	unsigned int ntids; /* ... so many of them */
	const pid_t *pids;  /* and every thread that these processes have now */
	unsigned int npids;
	/*
	 * CPUs, "0-3,8", or "all" for the online ones; who names one that is not is refused. Alone:
	 * everything that runs there. With threads: those threads while they are there, each CPU a
	 * place of its own.
	 */
	const char *cpus;
	/*
	 * Only threads of this cgroup; NULL CPUs means "all" then. "a,b,,c" is a cgroup for each
	 * event in order, none where it is empty or the list is over; a single one is for all.
	 */
	const char *cgroup;
	bool every_thread; /* every thread of the machine, as of now; not with the others */
	/* This command's first thread, before it is started (command.h); with no other threads. */
	const struct ap_command *command;
};

enum ap_open_flags {
	/*
	 * keep what opens; ap_counters_error() says why others did not, and ap_counters_sum() tells
	 * the part of a count from the whole
	 */
	AP_OPEN_PARTIAL = 1 << 0,
	AP_OPEN_INHERIT = 1 << 1,       /* count children made from now on too */
	AP_OPEN_ON_EXEC = 1 << 2,       /* leaders start at the next execve of the target */
	AP_OPEN_RUNNING = 1 << 3,       /* leaders start at once */
	AP_OPEN_USER_FALLBACK = 1 << 4, /* may the kernel not be measured, count user mode (":u") */
	AP_OPEN_NO_GROUP_READ = 1 << 5, /* read every event singly even in a group */
	AP_OPEN_PINNED = 1 << 6,        /* leaders are pinned: always on the PMU or in error */
	/*
	 * map the user pages, and ask for them where that is needed (arm64), to read without a
	 * system call
	 */
	AP_OPEN_SELF_READ = 1 << 7,
	AP_OPEN_LOST = 1 << 8, /* ask for PERF_FORMAT_LOST where the kernel knows it */
	AP_OPEN_AS_GIVEN =
		1 << 9, /* take disabled, inherit, read_format... from the attrs as they are */
};

struct ap_open_opts {
	size_t size;
	unsigned int flags; /* enum ap_open_flags */
};

/*
 * Opens @specs on @target (NULL: the calling thread). Descriptors are close-on-exec; the soft
 * RLIMIT_NOFILE is raised as far as needed. All leaders are disabled unless a flag says otherwise;
 * members follow their leader.
 *   without AP_OPEN_PARTIAL: 0 if every cell opened, else the first failure and nothing stays open
 *   with it: 0 if at least one did, else the first failure. A thread that has gone by the time it
 *            is its turn is left out, unless it was the last.
 * -ESRCH, -EINVAL for a bad target or a list without events, -ENODEV for a CPU that is offline;
 * else as ap_event_open(). The virtual PMU counts commands and other programs of its session: the
 * calling thread is none (-ENOENT).
 */
AP_API AP_MUST_CHECK int ap_counters_open(struct ap_counters **out, struct ap_machine *m,
					  struct ap_specs *specs, const struct ap_target *target,
					  const struct ap_open_opts *opts, struct ap_error *err);

/*
 * All in one, for measuring a region of the calling thread: a machine, the events of @text and what
 * they count, closed with ap_counters_close() like the rest. Disabled at first; every event must
 * open.
 */
AP_API AP_MUST_CHECK int ap_counters_open_text(struct ap_counters **out, const char *text,
					       struct ap_error *err);

/* The specs that @c was opened with; valid until ap_counters_close() at least. */
AP_API struct ap_specs *ap_counters_specs(const struct ap_counters *c);

/* Closes everything; NULL is fine. Values already read are gone too. */
AP_API void ap_counters_close(struct ap_counters *c);

/* Start, stop or zero every group in every place, in the order opened. First -errno. */
AP_API int ap_counters_enable(struct ap_counters *c);
AP_API int ap_counters_disable(struct ap_counters *c);
AP_API int ap_counters_reset(struct ap_counters *c);

/*
 * Reads every cell into the object. A cell that cannot be read keeps its last value; one in error
 * state, whose counter was taken away, becomes 0. Returns 0, or the first cell's -errno.
 */
AP_API int ap_counters_read(struct ap_counters *c);

/* How many places there are, and which they are: { -1, -1 } for a number beyond them. */
AP_API unsigned int ap_counters_places(const struct ap_counters *c);
AP_API struct ap_place ap_counters_place(const struct ap_counters *c, unsigned int place);

/* What ap_counters_read() last found for spec number @spec in @place; NULL for an empty cell. */
AP_API const struct ap_value *ap_counters_value(const struct ap_counters *c, unsigned int spec,
						unsigned int place);

/* The event itself, to do more with it; NULL for an empty cell. Owned by @c. */
AP_API struct ap_event *ap_counters_event(const struct ap_counters *c, unsigned int spec,
					  unsigned int place);

enum ap_status {
	AP_STATUS_OK = 0,
	AP_STATUS_NOT_COUNTED,   /* it was open but never ran, or is in error state */
	AP_STATUS_NOT_SUPPORTED, /* it could not be opened anywhere: ap_counters_error() */
	AP_STATUS_PARTIAL, /* it could not be opened in some of its places: the sum is a part */
};

/* The sum over all places as last read. *@sum is written in every case, 0 if there is nothing. */
AP_API enum ap_status ap_counters_sum(const struct ap_counters *c, unsigned int spec,
				      struct ap_value *sum);

/*
 * Why spec number @spec could not be opened in some place, or NULL. With a place still open it
 * tells about the first one that failed.
 */
AP_API const struct ap_error *ap_counters_error(const struct ap_counters *c, unsigned int spec);

/*
 * Whether spec number @spec was to count in @place and could not be opened there. An empty cell
 * where this is false misses nothing: the spec's PMU does not count there, or the thread has gone.
 */
AP_API bool ap_counters_refused(const struct ap_counters *c, unsigned int spec, unsigned int place);

/* Whether @spec was opened for user mode only by AP_OPEN_USER_FALLBACK: show its name with ":u". */
AP_API bool ap_counters_user_only(const struct ap_counters *c, unsigned int spec);

AP_END_DECLS

#endif
