/*
 * PURPOSE: what `anyperf record --exact` knows, and with -g or --toggle who has called whom: what
 * the programs execute is read in order while they run, and their trees of calls become samples
 * with call chains at the end.
 */
#ifndef CLI_RECORD_RECORD_CALLS_H
#define CLI_RECORD_RECORD_CALLS_H

#include "cli/call-trace.h"
#include "cli/exact-threads.h"
#include "cli/record/record-exact.h"
#include "cli/record/record-modeled.h"

struct record_exact {
	struct exact_threads threads;
	u64 insns;               /* different ones that were executed; with calls, samples */
	struct call_trace trace; /* with calls */
	struct record_modeled modeled;
};

static inline bool record_has_calls(const struct record_job *job)
{
	return job->opts.graph || job->opts.toggle;
}

/* Before there is a virtual PMU. */
void record_calls_begin(struct record_job *job);
void record_calls_release(struct record_job *job);

/* A record of what tasks do. */
void record_calls_note(struct record_job *job, const struct ap_record *rec);

/* Adds the samples, once nothing runs any more that is waited for. */
void record_calls_write(struct record_job *job);

#endif
