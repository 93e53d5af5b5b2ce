/*
 * PURPOSE: what a count is in relation to others: instructions per cycle, shares of misses, rates.
 */
#ifndef CLI_REPORT_METRIC_H
#define CLI_REPORT_METRIC_H

#include "cli/report/report.h"

enum metric_level { LEVEL_NORMAL = 0, LEVEL_NOTICE, LEVEL_HIGH, LEVEL_BAD };

struct report_metric {
	double value;
	int decimals;     /* 2 for ratios and shares, 3 for the others, as perf prints them */
	int width;        /* columns of the number */
	const char *unit; /* "CPUs utilized", "% of all branches" without the number */
	char gap[4];      /* between number and unit: "%", " ", "  " */
	enum metric_level level;
};

#define METRICS_MAX 2

/* Writes the derived values of one line into @out; returns how many there are. */
u32 report_metrics(const struct report *r, u32 event, u32 unit,
		   struct report_metric out[METRICS_MAX]);

#endif
