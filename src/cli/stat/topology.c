#include "cli/stat/topology.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static int read_id(int cpu, const char *file)
{
	char path[96];
	int id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The kernel says -1 where the hardware does not tell. */
	if (fscanf(f, "%d", &id) != 1 || id < 0)
		id = 0;
	fclose(f);
	return id;
}

/* The CPU's directory holds a link nodeN. */
static int node_of(int cpu)
{
	char path[64];
	struct dirent *entry;
	int node = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, "node", 4) &&
		    sscanf(entry->d_name + 4, "%d", &node) == 1)
			break;
	closedir(dir);
	return node;
}

struct cpu_place topology_of(int cpu)
{
	return (struct cpu_place){
		.socket = read_id(cpu, "physical_package_id"),
		.die = read_id(cpu, "die_id"),
		.core = read_id(cpu, "core_id"),
		.node = node_of(cpu),
	};
}
