/*
 * PURPOSE: the exact profile of `anyperf record --exact`: how often each instruction was executed,
 * as samples at the end of the recording.
 */
#ifndef CLI_RECORD_RECORD_EXACT_H
#define CLI_RECORD_RECORD_EXACT_H

#include "cli/record/record-priv.h"

/* Turns to a virtual PMU whose guests count each path. 0, or -1 after saying why not. */
must_check int record_exact_begin(struct record_job *job);
void record_exact_release(struct record_job *job);

/* The event that tells of tasks is described as what the samples are of. */
void record_exact_describe(struct data_event *d);

/* Looks at records for when threads end. */
void record_exact_note(struct record_job *job, const void *records, size_t len);

/* While programs run, with -g or --toggle: reads what they have executed. In how many ns again. */
u64 record_exact_read(struct record_job *job);
/* Whether that is to be called. */
bool record_exact_reads(const struct record_job *job);

/* Adds the samples, once nothing runs any more that is waited for. */
void record_exact_write(struct record_job *job);

void record_exact_summary(const struct record_job *job, const char *where);

#endif
