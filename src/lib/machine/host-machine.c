/* This machine: caches as the CPU's instructions or sysfs tell of them. */
#include "lib/machine/host-machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/machine/machine-file.h"

/* A line of a file of sysfs without its newline; "" if there is none. */
static void sysfs_line(const char *file, unsigned int index, char *buf, size_t size)
{
	char path[100];
	FILE *f;

	*buf = '\0';
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

static void sysfs_geometry(struct machine_cache cache[MACHINE_CACHES], u32 *line)
{
	for (unsigned int i = 0; i < 8; i++) {
		char level[16], type[32], size[32], ways[16], line_size[16];
		enum machine_cache_id id;
		unsigned long long bytes;
		char *unit;

		sysfs_line("level", i, level, sizeof(level));
		sysfs_line("type", i, type, sizeof(type));
		sysfs_line("size", i, size, sizeof(size));
		sysfs_line("ways_of_associativity", i, ways, sizeof(ways));
		sysfs_line("coherency_line_size", i, line_size, sizeof(line_size));
		if (!*level || !*size)
			break;
		if (*level == '1')
			id = !strcmp(type, "Instruction") ? MACHINE_L1I : MACHINE_L1D;
		else
			id = *level == '2' ? MACHINE_L2 : MACHINE_LL;
		bytes = strtoull(size, &unit, 10);
		bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
		cache[id].size = bytes;
		cache[id].ways = (u32)strtoul(ways, NULL, 10);
		*line = (u32)strtoul(line_size, NULL, 10);
	}
}

/* arm64 tells who has made the core, and which it is. */
static const char *arm_core(void)
{
	static const struct {
		const char *part, *name;
	} cores[] = {
		{"0xd08", "cortex-a72"},  {"0xd0c", "neoverse-n1"}, {"0xd40", "neoverse-v1"},
		{"0xd49", "neoverse-v1"}, {"0xd4f", "neoverse-v1"},
	};
	FILE *f = fopen("/proc/cpuinfo", "re");
	const char *found = NULL;
	char line[256];
	bool arm = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *part = strstr(line, "0xd");

		arm |= !strncmp(line, "CPU part", 8);
		for (size_t i = 0; part && arm && i < ARRAY_SIZE(cores); i++)
			if (!strncmp(part, cores[i].part, strlen(cores[i].part)))
				found = cores[i].name;
	}
	if (f)
		fclose(f);
	return found ? found : arm ? "neoverse-n1" : NULL;
}

const char *ap__host_base(void)
{
	struct machine_cache unused[MACHINE_CACHES] = {0};
	u32 line = 0;
	const char *name = ap__host_geometry(unused, &line);

	if (!name)
		name = arm_core();
	return name ? name : "skylake-server";
}

/* Takes over a cache that makes a machine; else what the nearest machine has stays. */
static bool take(struct machine *m, enum machine_cache_id id, const struct machine_cache *c)
{
	struct machine_mistake why;
	struct machine with = *m;

	with.cache[id].size = c->size;
	with.cache[id].ways = c->ways;
	if (with.cache[id].policy == MACHINE_PLRU && c->ways > 64)
		with.cache[id].policy = MACHINE_LRU;
	if (machine_check(&with, &why))
		return false;
	*m = with;
	return true;
}

void ap__host_machine(struct machine *m)
{
	struct machine_cache cache[MACHINE_CACHES] = {0};
	char base[MACHINE_NAME];
	u32 line = 0, told = 0;

	snprintf(base, sizeof(base), "%s", m->name);
	if (!ap__host_geometry(cache, &line) || !cache[MACHINE_L1D].size)
		sysfs_geometry(cache, &line);
	if (line == m->memory.line) {
		if (!cache[MACHINE_LL].size && m->cache[MACHINE_L2].size) {
			/* Two levels: the second is the last. */
			cache[MACHINE_LL] = cache[MACHINE_L2];
			cache[MACHINE_L2] = (struct machine_cache){0};
		}
		for (u32 id = 0; id < MACHINE_CACHES; id++)
			if (cache[id].size)
				told += take(m, id, &cache[id]);
	}
	snprintf(m->name, sizeof(m->name), MACHINE_HOST);
	snprintf(m->about, sizeof(m->about), "this machine: %s, the rest is %s's",
		 told == 4 ? "its caches"
		 : told    ? "those of its caches that it tells of"
			   : "it tells nothing of its caches",
		 base);
}
