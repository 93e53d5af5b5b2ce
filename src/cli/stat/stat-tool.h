/* PURPOSE: perf's tool events, which stat measures without a counter. Constants only. */
#ifndef CLI_STAT_STAT_TOOL_H
#define CLI_STAT_STAT_TOOL_H

#include "cli/report/report.h"

struct stat_tool {
	const char *name, *desc;
	enum report_kind kind;
};

extern const struct stat_tool stat_tools[]; /* a name of NULL ends it */

#endif
