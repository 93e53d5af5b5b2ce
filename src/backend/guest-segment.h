/*
 * PURPOSE: the counter segment (abi/meter.h) of whoever starts guests: made here, or that of a
 * session which was joined. What is said below of the segment's pages and lists is said of the run
 * that was opened with it: our commands and their descendants.
 *
 * Nothing that the guests write into the shared memory is trusted: it is data, bounded before use.
 * Locking: none. Errors: 0 or -errno with a sentence in @why, cut to @len bytes.
 */
#ifndef BACKEND_GUEST_SEGMENT_H
#define BACKEND_GUEST_SEGMENT_H

#include <stddef.h>
#include <sys/resource.h>

#include "abi/refusal-list.h"
#include "abi/run-config.h"
#include "abi/runs.h"

/* The soft limits that are lifted: RLIMIT_AS, RLIMIT_DATA and RLIMIT_NOFILE. */
enum lifted_limit { LIFTED_AS, LIFTED_DATA, LIFTED_FILES, LIFTED_LIMITS };

struct guest_segment {
	int fd;                       /* memfd; -1: not open */
	const u8 *map;                /* header and meters, read-only; owned */
	struct counter_segment *head; /* the same header, writable; owned */
	struct run_config config;     /* of all guests; `slots` is how many meters are mapped */
	struct meter_run *run;        /* ours; in the header */
	u32 number;                   /* the same; of the pages of our threads */
	struct rlimit limits[LIFTED_LIMITS]; /* as they were found */
};

/*
 * Makes a segment for guests with @config, whose `slots` it decides, and in it a run. With @keep
 * there is a page for every thread that it ever had.
 */
must_check int ap__segment_open(struct guest_segment *segment, const struct run_config *config,
				bool keep, char *why, size_t len);
/* The same for a segment that somebody else has made, with that @config; takes @fd. */
must_check int ap__segment_join(struct guest_segment *segment, int fd,
				const struct run_config *config, bool keep, char *why, size_t len);
/* Closes the run as well: its pages are anybody's. */
void ap__segment_close(struct guest_segment *segment);

/*
 * Whether the segment's session reads page faults in /proc, where the runtime's own are among them:
 * those of user mode alone, or those of all modes.
 */
bool ap__segment_faults_of_proc(const struct guest_segment *segment, bool user_only);

/*
 * 0, or the errno with which our command could not be started since this was last asked; *@text a
 * sentence or "".
 */
int ap__segment_failure(const struct guest_segment *segment, const char **text);

/*
 * How many meters were ever used, and the one at @index below that if it is our run's, else NULL.
 */
u32 ap__segment_used(const struct guest_segment *segment);
const struct meter *ap__segment_meter(const struct guest_segment *segment, u32 index);

/*
 * How many programs ran natively, and the one in entry @i of the segment's list if it is there and
 * ours.
 */
u32 ap__segment_uncounted(const struct guest_segment *segment);
bool ap__segment_uncounted_at(const struct guest_segment *segment, u32 i,
			      struct meter_uncounted *u);

/* In how many programs --alloc-sites knows no allocator, and what the first is called. */
u32 ap__segment_no_allocator(const struct guest_segment *segment, char name[16]);

/*
 * How many calls the session has refused to our run, and entry @i of its list if it is there and
 * ours.
 */
u32 ap__segment_refused(const struct guest_segment *segment);
bool ap__segment_refusal_at(const struct guest_segment *segment, u32 i, struct meter_refusal *r);

#endif
