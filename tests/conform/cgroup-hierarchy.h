/* PURPOSE: where cgroups are, for the programs that check events of cgroups. */
#ifndef CONFORM_CGROUP_HIERARCHY_H
#define CONFORM_CGROUP_HIERARCHY_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * Where the hierarchy of the perf_event controller is mounted: version 1 if there is one, else
 * version 2. False: neither is.
 */
static inline bool cgroup_hierarchy(char *dir, size_t size)
{
	char line[1024], at[256], type[64], *options;
	FILE *f = fopen("/proc/self/mountinfo", "r");

	*dir = 0;
	while (f && fgets(line, sizeof(line), f)) {
		options = strstr(line, " - ");
		if (!options || sscanf(options, " - %63s", type) != 1 ||
		    sscanf(line, "%*s %*s %*s %*s %255s", at) != 1)
			continue;
		if (!strcmp(type, "cgroup") && strstr(options, "perf_event")) {
			snprintf(dir, size, "%s", at);
			break;
		}
		if (!strcmp(type, "cgroup2") && !*dir)
			snprintf(dir, size, "%s", at);
	}
	if (f)
		fclose(f);
	return *dir;
}

#endif
