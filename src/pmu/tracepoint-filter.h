/*
 * PURPOSE: a tracepoint's filter (SET_FILTER): the kernel's language of comparisons, `&&`, `||` and
 * `!`, made into a tree once and asked for each record. Pure.
 *
 * What the kernel does not understand has its errno, which is EINVAL as a rule; but ENOENT for a
 * parenthesis that is not closed, EPERM for what does not belong behind a comparison, and ESRCH for
 * a quote that is not closed.
 *
 * Lifetime: the format is borrowed for the filter's life; tp_filter_free() ends that.
 */
#ifndef PMU_TRACEPOINT_FILTER_H
#define PMU_TRACEPOINT_FILTER_H

#include "pmu/tracepoint-format.h"

struct tp_filter;

/* What a filter may ask for besides the record's fields. */
struct tp_context {
	u32 cpu;
	const char *comm; /* of the task */
	u32 size;         /* of the record, if it is longer than its format's */
};

/* 0; -ENOMEM; -EOPNOTSUPP: it compares a string in the program's memory; or as above. */
int must_check tp_filter_parse(const struct tp_format *format, const char *text,
			       struct tp_filter **filter);
void tp_filter_free(struct tp_filter *filter);

/* Whether it lets a record pass; @record has the format's size. */
bool tp_filter_passes(const struct tp_filter *filter, const u8 *record,
		      const struct tp_context *context);

#endif
