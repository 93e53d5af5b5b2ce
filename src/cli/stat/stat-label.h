/* PURPOSE: what the printers of `anyperf stat` share: the label of a unit, and who was refused why. */
#ifndef CLI_STAT_STAT_LABEL_H
#define CLI_STAT_STAT_LABEL_H

#include "cli/stat/stat-report.h"

/* "S0-D0-C1", "CPU2", "sleep-123"; "" for the whole. Returns @buf. */
const char *unit_label(enum stat_aggr aggr, const struct stat_unit *unit, char *buf, size_t size);

/* Whether lines of this aggregation also say how many CPUs they are of. */
bool unit_counts_cpus(enum stat_aggr aggr);

/* Whether all of an event's lines stand together; else all of a unit's. */
bool unit_event_first(enum stat_aggr aggr);

#endif
