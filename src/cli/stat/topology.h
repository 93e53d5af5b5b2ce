/* PURPOSE: which core, die, socket and node a CPU belongs to, as /sys/devices/system says. */
#ifndef CLI_STAT_TOPOLOGY_H
#define CLI_STAT_TOPOLOGY_H

struct cpu_place {
	int socket, die, core, node;
};

/* What is not known (an offline CPU, an old kernel) is 0, as it is on machines that have one. */
struct cpu_place topology_of(int cpu);

#endif
