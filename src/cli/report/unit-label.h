/* PURPOSE: the label of a unit, as all printers of a report write it. */
#ifndef CLI_REPORT_UNIT_LABEL_H
#define CLI_REPORT_UNIT_LABEL_H

#include "cli/report/report.h"

/* "S0-D0-C1", "CPU2", "sleep-123"; "" for the whole. Returns @buf. */
const char *unit_label(enum report_aggr aggr, const struct report_unit *unit, char *buf,
		       size_t size);

/* Whether lines of this aggregation also say how many CPUs they are of. */
bool unit_counts_cpus(enum report_aggr aggr);

/* Whether all of an event's lines stand together; else all of a unit's. */
bool unit_event_first(enum report_aggr aggr);

#endif
