/*
 * PURPOSE: modeled events of `anyperf record --exact`: which of them are attributed to the
 * instructions that cause them, and at the end what each has caused, as samples.
 *
 * Lifetime: a struct record_modeled that is all zero has no events.
 */
#ifndef CLI_RECORD_RECORD_MODELED_H
#define CLI_RECORD_RECORD_MODELED_H

#include "abi/modeled-profile.h"
#include "cli/record/record-priv.h"

struct record_modeled {
	u32 nr;
	u8 counter[PROFILED_EVENTS];  /* enum model_counter */
	struct ap_specs *specs;       /* owned; NULL: no events */
	struct ap_counters *counters; /* owned; what is counted of each beside */
	u64 total[PROFILED_EVENTS];   /* that is attributed, and what is not */
	u64 unplaced[PROFILED_EVENTS];
	u64 places, bad;
};

/* Before there is a virtual PMU: what -e or --machine asks for. 0, or -1 after saying why not. */
must_check int record_modeled_choose(struct record_job *job);

/* Opens them, and describes them behind job->events[0]. 0, or -1 after saying why not. */
must_check int record_modeled_open(struct record_job *job);

void record_modeled_release(struct record_modeled *m);

/* The samples that come next, with @id, are of modeled event @i. */
void record_modeled_event(const struct record_job *job, struct ap_sample_id *id, u32 i);

/* Adds the samples of a thread: a modeled_thread_fn, whose @data is the job. */
struct profile_counts;
int record_modeled_put(const struct modeled_profile *p, u64 time, const struct profile_counts *c,
		       void *data);

/* Says what does not add up, once all are there. */
void record_modeled_check(struct record_job *job);

#endif
