/* PURPOSE: what a count is in relation to others: instructions per cycle, shares of misses, rates. */
#ifndef CLI_STAT_STAT_METRIC_H
#define CLI_STAT_STAT_METRIC_H

#include "cli/stat/stat-report.h"

enum metric_level { LEVEL_NORMAL = 0, LEVEL_NOTICE, LEVEL_HIGH, LEVEL_BAD };

struct stat_metric {
	double value;
	int decimals;     /* 2 for ratios and shares, 3 for the others, as perf prints them */
	int width;        /* columns of the number */
	const char *unit; /* "CPUs utilized", "% of all branches" without the number */
	char gap[4];      /* between number and unit: "%", " ", "  " */
	enum metric_level level;
};

#define METRICS_MAX 2

/* Writes the derived values of one line into @out; returns how many there are. */
u32 stat_metrics(const struct stat_report *r, u32 event, u32 unit,
		 struct stat_metric out[METRICS_MAX]);

#endif
