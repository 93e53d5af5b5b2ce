/*
 * PURPOSE: the columns of --metric-only: which derived values a report's events can have, so that
 * one heading holds for all lines and intervals.
 */
#ifndef CLI_REPORT_METRIC_ONLY_H
#define CLI_REPORT_METRIC_ONLY_H

#include "cli/report/metric.h"

struct metric_column {
	u32 event;
	const char *unit; /* as in the metric; a static string */
	char name[160];   /* what the heading says */
};

/* Whether --metric-only shows it: what is per second or CPU is left out, as perf does. */
bool metric_only_shows(const struct report_metric *m);

/* The columns, allocated; NULL with *@nr 0 if there are none, or no memory. */
struct metric_column *metric_columns(const struct report *r, u32 *nr);

/* The value in a column of @unit. False: there is none. */
bool metric_of_column(const struct report *r, const struct metric_column *column, u32 unit,
		      struct report_metric *m);

#endif
