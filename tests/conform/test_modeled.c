/*
 * Events that depend on a machine, which the virtual PMU counts by the model of one [HW-*,
 * CACHE-*]: which there are, and that they count what happens. A PMU of hardware counts the same,
 * about.
 */
#include "conform/region.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CELL(cache, op, miss) ((u64)(cache) | (u64)(op) << 8 | (u64)(miss) << 16)
#define LOADS                 10000
#define LINES                 65536 /* 4 MB */

/* Here is a PMU that counts cycles: hardware, or a model. */
static bool no_machine(const char *row, const char *text)
{
	if (no_pmu(row, text))
		return true;
	if (!try_self(ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)))
		return false;
	skip_row(row, text, "no machine and no model of one");
	return true;
}

static int open_event(u32 type, u64 config, int group)
{
	struct pe_attr attr = ev_attr(type, config);

	attr.disabled = group < 0;
	return (int)ev_open(&attr, 0, -1, group, 0);
}

/* What @fd counts of @body, behind a round without being counted. */
static u64 count_of(int fd, void (*body)(void))
{
	u64 count = 0;

	body();
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	body();
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read(fd, &count, sizeof(count)) == sizeof(count));
	return count;
}

static u64 counted(u32 type, u64 config, void (*body)(void))
{
	int fd = open_event(type, config, -1);
	u64 count;

	NEED(fd >= 0);
	count = count_of(fd, body);
	close(fd);
	return count;
}

static volatile u64 sink;
static volatile u64 *volatile lines;

static void spin_some(void)
{
	for (u32 i = 0; i < 10000; i++)
		asm volatile("" ::: "memory");
}

static void spin_more(void)
{
	for (u32 i = 0; i < 100; i++)
		spin_some();
}

/* Branches that follow no rule, of half of which the direction is wrong. */
__attribute__((noinline)) static void branch_at_random(void)
{
	u64 state = 88172645463325252ull;

	for (u32 i = 0; i < 20000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		if (state >> 40 & 1)
			asm volatile("nop" ::: "memory");
		else
			asm volatile("" ::: "memory");
	}
}

static void load(void)
{
	for (u32 i = 0; i < LOADS; i++)
		(void)*(volatile u64 *)region_buffer;
}

static void store(void)
{
	for (u32 i = 0; i < LOADS; i++)
		*(volatile u64 *)region_buffer = i;
}

/* Each line once, in an order that no prefetcher knows. */
static void load_lines(void)
{
	u64 at = 0;

	for (u32 i = 0; i < LINES; i++) {
		at = (at * 1664525 + 1013904223) % LINES;
		(void)lines[at * 8];
	}
}

CONFORM(generic_ids)
{
	static const struct {
		const char *row, *name;
		u64 id;
	} ids[] = {
		{"HW-00", "cycles open", PERF_COUNT_HW_CPU_CYCLES},
		{"HW-02", "cache-references open", PERF_COUNT_HW_CACHE_REFERENCES},
		{"HW-03", "cache-misses open", PERF_COUNT_HW_CACHE_MISSES},
		{"HW-05", "branch-misses open", PERF_COUNT_HW_BRANCH_MISSES},
		{"HW-06", "bus-cycles open", PERF_COUNT_HW_BUS_CYCLES},
		{"HW-07", "stalled-cycles-frontend open", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
		{"HW-08", "stalled-cycles-backend open", PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
		{"HW-09", "ref-cycles open", PERF_COUNT_HW_REF_CPU_CYCLES},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		long err;

		if (no_machine(ids[i].row, ids[i].name))
			continue;
		err = try_self(ev_attr(PERF_TYPE_HARDWARE, ids[i].id));
		/* Hardware need not have them all. */
		CHECK_ROW(ids[i].row, !err || (!virtual_world() && err == -ENOENT), ids[i].name,
			  "%ld", err);
	}
}

CONFORM(cycles)
{
	u64 some, more, ref, bus;

	if (no_machine("HW-00", "cycles of what takes longer"))
		return;
	some = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, spin_some);
	more = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, spin_more);
	CHECK_ROW("HW-00", some > 2000 && more > 50 * some && more < 500 * some,
		  "cycles of what takes longer", "%lu and %lu", some, more);
	if (!virtual_world())
		return;
	ref = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, spin_more);
	CHECK_ROW("HW-09", ref > more / 2 && ref < more * 2, "ref-cycles are cycles of one clock",
		  "%lu and %lu", ref, more);
	bus = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, spin_more);
	CHECK_ROW("HW-06", bus && bus < ref, "the bus is slower", "%lu and %lu", bus, ref);
}

CONFORM(branch_misses)
{
	u64 few, many, cell, front;

	if (no_machine("HW-05", "mispredictions"))
		return;
	few = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, spin_some);
	many = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, branch_at_random);
	CHECK_ROW("HW-05", few < 300, "a loop is foreseen", "%lu", few);
	CHECK_ROW("HW-05", many > 6000 && many < 14000, "of what is random half is not", "%lu",
		  many);
	if (!virtual_world())
		return;
	cell = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_BPU, 0, 1), branch_at_random);
	CHECK_ROW("CACHE-01", cell > 6000 && cell < 14000, "BPU's read misses are the same", "%lu",
		  cell);
	front = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
			branch_at_random);
	CHECK_ROW("HW-07", front > many, "mispredictions stall the front", "%lu", front);
}

CONFORM(caches)
{
	u64 loads, stores, hits, misses, refs, missed, back;

	if (no_machine("CACHE-04", "loads of L1D"))
		return;
	lines = mmap(NULL, LINES * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(lines != MAP_FAILED);
	for (u32 i = 0; i < LINES; i++)
		lines[i * 8] = i;
	if (virtual_world()) {
		loads = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_L1D, 0, 0), load);
		CHECK_ROW("CACHE-02", loads >= LOADS && loads < LOADS + 200, "each load is a read",
			  "%lu", loads);
		stores = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_L1D, 1, 0), store);
		CHECK_ROW("CACHE-02", stores >= LOADS && stores < LOADS + 200,
			  "each store is a write", "%lu", stores);
		hits = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_DTLB, 0, 0), load);
		CHECK_ROW("CACHE-01", hits >= LOADS && hits < LOADS + 200,
			  "each is looked up in DTLB", "%lu", hits);
		back = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
			       load_lines);
		CHECK_ROW("HW-08", back > LINES, "misses stall the back", "%lu", back);
	}
	if (try_self(ev_attr(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_L1D, 0, 1)))) {
		skip_row("CACHE-03", "misses of L1D", "the PMU here does not count them");
		return;
	}
	hits = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_L1D, 0, 1), load);
	misses = counted(PERF_TYPE_HW_CACHE, CELL(PERF_COUNT_HW_CACHE_L1D, 0, 1), load_lines);
	CHECK_ROW("CACHE-03", hits < 500 && misses > LINES / 4, "misses of L1D", "%lu and %lu",
		  hits, misses);
	if (!virtual_world())
		return;
	refs = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, load_lines);
	missed = counted(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, load_lines);
	CHECK_ROW("HW-02", refs > LINES / 8 && refs < 4 * LINES,
		  "what misses the nearer caches is looked for in the last", "%lu", refs);
	CHECK_ROW("HW-03", missed <= refs, "what is not there either are misses", "%lu of %lu",
		  missed, refs);
}

/* In the virtual world each cell of the matrix opens that happens in a machine. */
CONFORM(cells)
{
	static const char *const ops[] = {"rwp", "r-p", "rwp", "rw-", "r--", "r--", "rw-"};

	if (!virtual_world() || no_machine("CACHE-01", "cells of the matrix")) {
		skip_row("CACHE-01", "cells of the matrix", "needs the virtual PMU");
		return;
	}
	for (u32 id = 0; id < ARRAY_SIZE(ops); id++)
		for (u32 op = 0; op < 3; op++)
			for (u32 miss = 0; miss < 2; miss++) {
				char text[32];

				snprintf(text, sizeof(text), "cache event %#lx",
					 CELL(id, op, miss));
				check_err("CACHE-01", text,
					  try_self(ev_attr(PERF_TYPE_HW_CACHE, CELL(id, op, miss))),
					  ops[id][op] == '-' ? ENOENT : 0);
			}
}

/* A group of what is counted and what is modeled is on and off as one. */
CONFORM(group)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	u64 v[4];
	int lead;

	if (no_machine("GRP-01", "a group of instructions, cycles and branch-misses"))
		return;
	attr.read_format = PERF_FORMAT_GROUP;
	attr.disabled = 1;
	lead = (int)ev_open(&attr, 0, -1, -1, 0);
	NEED(lead >= 0);
	NEED(open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, lead) >= 0);
	NEED(open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, lead) >= 0);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	branch_at_random();
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	branch_at_random();
	NEED(ev_read(lead, v, sizeof(v)) == sizeof(v));
	CHECK_ROW("GRP-01", v[0] == 3 && v[1] > 100000 && v[2] > 20000 && v[3] < 14000,
		  "a group of instructions, cycles and branch-misses", "%lu: %lu %lu %lu", v[0],
		  v[1], v[2], v[3]);
	sink = v[1];
}
