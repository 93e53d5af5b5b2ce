/*
 * PURPOSE: what each thread of `anyperf run` has counted, for -v and -j. The session tells the sum
 * of a command's threads, as a kernel does; a thread's own share is what stands in its meter page.
 * With these options pages of ended threads are kept (doc/session.md).
 *
 * Guests write these pages: what is shown is bounded, and wrong if they want it so.
 */
#ifndef CLI_RUN_RUN_THREADS_H
#define CLI_RUN_RUN_THREADS_H

#include <stdio.h>

#include "backend/guest-segment.h"
#include "cli/json.h"
#include "cli/number.h"

/* A table: a line for each thread, in the order in which they came. */
void run_threads_text(const struct guest_segment *segment, const struct number_style *style,
		      FILE *out);

/* The member "processes": each with its threads. */
void run_threads_json(struct json *j, const struct guest_segment *segment);

#endif
