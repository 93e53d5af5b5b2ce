/* What a file says about CPUs, their caches and the memory beside them, out of sysfs and /proc. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/feature-priv.h"

#define CPU_DIR  "/sys/devices/system/cpu"
#define NODE_DIR "/sys/devices/system/node"

/* The first line of a file. */
static bool read_line(char *text, size_t size, const char *fmt, ...) printf_like(3, 4);
static bool read_line(char *text, size_t size, const char *fmt, ...)
{
	char path[200];
	va_list ap;
	bool found;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "re");
	found = f && fgets(text, (int)size, f);
	if (f)
		fclose(f);
	if (found)
		text[strcspn(text, "\n")] = 0;
	return found;
}

/* As perf has it: the vendor with three numbers on x86, a register elsewhere. */
static void gather_cpuid(struct data_piece *p)
{
	char vendor[64], family[16], model[16], stepping[16], text[128];

	if (data_look_up("/proc/cpuinfo", "vendor_id", vendor, sizeof(vendor)) &&
	    data_look_up("/proc/cpuinfo", "cpu family", family, sizeof(family)) &&
	    data_look_up("/proc/cpuinfo", "model\t", model, sizeof(model)) &&
	    data_look_up("/proc/cpuinfo", "stepping", stepping, sizeof(stepping))) {
		snprintf(text, sizeof(text), "%s,%s,%s,%s", vendor, family, model, stepping);
		data_piece_add_text(p, text);
	} else if (read_line(text, sizeof(text), CPU_DIR "/cpu0/regs/identification/midr_el1")) {
		data_piece_add_text(p, text);
	}
}

/* A number of texts and the texts, none of them twice. */
struct text_set {
	struct data_piece texts;
	u32 n;
};

static void add_once(struct text_set *set, const char *text)
{
	char one[1024];
	size_t at = 0;

	for (u32 i = 0; i < set->n; i++) {
		u32 len;

		memcpy(&len, set->texts.bytes + at, sizeof(len));
		if (!strcmp((const char *)set->texts.bytes + at + sizeof(len), text))
			return;
		at += sizeof(len) + len;
	}
	snprintf(one, sizeof(one), "%s", text);
	set->n += data_piece_add_text(&set->texts, one);
}

static void put_set(struct data_piece *p, struct text_set *set)
{
	data_piece_add(p, &set->n, sizeof(set->n));
	data_piece_add(p, set->texts.bytes, set->texts.len);
	free(set->texts.bytes);
}

/* -1: of a CPU that is not on. */
static void add_number(struct data_piece *p, u32 cpu, const char *name)
{
	char text[64];
	s32 n = read_line(text, sizeof(text), CPU_DIR "/cpu%u/topology/%s", cpu, name) ? atoi(text)
										       : -1;

	data_piece_add(p, &n, sizeof(n));
}

/* Which CPUs share a package, a core, a die; then each CPU's core, package, and die. */
static void gather_topology(struct data_piece *p, u32 cpus)
{
	static const char *const names[] = {"package_cpus_list", "core_cpus_list", "die_cpus_list"};
	struct text_set sets[ARRAY_SIZE(names)] = {{{0}, 0}};
	char text[1024];

	for (u32 cpu = 0; cpu < cpus; cpu++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (read_line(text, sizeof(text), CPU_DIR "/cpu%u/topology/%s", cpu,
				      names[i]))
				add_once(&sets[i], text);
	if (!sets[0].n || !sets[1].n) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			free(sets[i].texts.bytes);
		return;
	}
	put_set(p, &sets[0]);
	put_set(p, &sets[1]);
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		add_number(p, cpu, "core_id");
		add_number(p, cpu, "physical_package_id");
	}
	if (!sets[2].n)
		return;
	put_set(p, &sets[2]);
	for (u32 cpu = 0; cpu < cpus; cpu++)
		add_number(p, cpu, "die_id");
}

/* "Node 0 MemTotal:   12806360 kB" */
static u64 memory_of(u32 node, const char *key)
{
	char path[100], name[64], text[64];

	snprintf(path, sizeof(path), NODE_DIR "/node%u/meminfo", node);
	snprintf(name, sizeof(name), "Node %u %s", node, key);
	return data_look_up(path, name, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static void gather_nodes(struct data_piece *p)
{
	char text[1024], *at = text;
	u32 n = 0;

	if (!read_line(text, sizeof(text), NODE_DIR "/online"))
		return;
	data_piece_add(p, &n, sizeof(n));
	/* "0-3,8" */
	while (*at) {
		char *end, cpus[1024];
		u32 from = (u32)strtoul(at, &end, 10), to = from;

		if (*end == '-')
			to = (u32)strtoul(end + 1, &end, 10);
		for (u32 node = from; node <= to && to < 4096; node++) {
			u64 total = memory_of(node, "MemTotal"), rest = memory_of(node, "MemFree");

			if (!read_line(cpus, sizeof(cpus), NODE_DIR "/node%u/cpulist", node))
				continue;
			data_piece_add(p, &node, sizeof(node));
			data_piece_add(p, &total, sizeof(total));
			data_piece_add(p, &rest, sizeof(rest));
			data_piece_add_text(p, cpus);
			n++;
		}
		at = *end ? end + 1 : end;
	}
	if (p->bytes)
		memcpy(p->bytes, &n, sizeof(n));
}

#define MAX_LEVELS 8

/* One cache of one CPU, to those of its level; 0: it has no such, or another CPU has told of it. */
static u32 add_cache(struct data_piece levels[MAX_LEVELS], u32 cpu, u32 index)
{
	static const char *const names[] = {"level", "coherency_line_size", "number_of_sets",
					    "ways_of_associativity"};
	char map[1024], type[64], size[64], text[64];
	u32 numbers[ARRAY_SIZE(names)] = {0};
	struct data_piece *p;

	if (!read_line(map, sizeof(map), CPU_DIR "/cpu%u/cache/index%u/shared_cpu_list", cpu,
		       index) ||
	    (u32)strtoul(map, NULL, 10) != cpu ||
	    !read_line(type, sizeof(type), CPU_DIR "/cpu%u/cache/index%u/type", cpu, index) ||
	    !read_line(size, sizeof(size), CPU_DIR "/cpu%u/cache/index%u/size", cpu, index))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (read_line(text, sizeof(text), CPU_DIR "/cpu%u/cache/index%u/%s", cpu, index,
			      names[i]))
			numbers[i] = (u32)strtoul(text, NULL, 10);
	if (numbers[0] >= MAX_LEVELS)
		return 0;
	p = &levels[numbers[0]];
	data_piece_add(p, numbers, sizeof(numbers));
	data_piece_add_text(p, type);
	data_piece_add_text(p, size);
	data_piece_add_text(p, map);
	return 1;
}

/* As perf has it: by level, then by CPU. */
static void gather_caches(struct data_piece *p, u32 cpus)
{
	struct data_piece levels[MAX_LEVELS] = {{0}};
	u32 head[2] = {1, 0}; /* version, number */

	for (u32 cpu = 0; cpu < cpus; cpu++)
		for (u32 index = 0; index < 8; index++)
			head[1] += add_cache(levels, cpu, index);
	/* Also if the kernel tells of none, as in some virtual machines. */
	data_piece_add(p, head, sizeof(head));
	for (size_t i = 0; i < MAX_LEVELS; i++) {
		data_piece_add(p, levels[i].bytes, levels[i].len);
		free(levels[i].bytes);
	}
}

void data_features_gather_cpus(struct data_features *f)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	gather_cpuid(&f->of[DATA_CPUID]);
	gather_topology(&f->of[DATA_CPU_TOPOLOGY], cpus > 0 ? (u32)cpus : 0);
	gather_nodes(&f->of[DATA_NUMA_TOPOLOGY]);
	gather_caches(&f->of[DATA_CACHE], cpus > 0 ? (u32)cpus : 0);
}
