#include "lib/spec/names.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "abi/perf.h"

#define HW(id, name, alias, desc)                                         \
	{                                                                 \
		name, alias, desc, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id \
	}
#define SW(id, name, alias, desc)                         \
	{                                                 \
		name, alias, desc, PERF_TYPE_SOFTWARE, id \
	}

/* clang-format off */
const struct ap__generic ap__generics[] = {
	HW(CPU_CYCLES, "cpu-cycles", "cycles",
	   "Cycles of the CPU's clock while it was not halted; their length follows the frequency"),
	HW(INSTRUCTIONS, "instructions", "", "Instructions retired"),
	HW(CACHE_REFERENCES, "cache-references", "",
	   "Accesses to the last level cache, on most CPUs; may include prefetches"),
	HW(CACHE_MISSES, "cache-misses", "", "Misses of the last level cache, on most CPUs"),
	HW(BRANCH_INSTRUCTIONS, "branch-instructions", "branches", "Branch instructions retired"),
	HW(BRANCH_MISSES, "branch-misses", "", "Branch instructions that were predicted wrongly"),
	HW(BUS_CYCLES, "bus-cycles", "", "Cycles of the bus or of a reference clock"),
	HW(STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "idle-cycles-frontend",
	   "Cycles in which no instruction could be issued"),
	HW(STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "idle-cycles-backend",
	   "Cycles in which no instruction could be retired"),
	HW(REF_CPU_CYCLES, "ref-cycles", "",
	   "Cycles of a clock of constant frequency while the CPU was not halted"),
	SW(0, "cpu-clock", "", "Time in ns by the CPU's clock"),
	SW(1, "task-clock", "", "Time in ns that the task was running on a CPU"),
	SW(2, "page-faults", "faults", "Page faults, minor and major"),
	SW(3, "context-switches", "cs", "Switches from the task to another one"),
	SW(4, "cpu-migrations", "migrations", "Moves of the task to another CPU"),
	SW(5, "minor-faults", "", "Page faults that needed no input from disk"),
	SW(6, "major-faults", "", "Page faults that had to wait for the disk"),
	SW(7, "alignment-faults", "", "Unaligned accesses fixed by the kernel; never on x86"),
	SW(8, "emulation-faults", "", "Instructions that the kernel had to emulate"),
	SW(9, "dummy", "", "Counts nothing; carries records about mappings, threads and names"),
	SW(10, "bpf-output", "", "Output of BPF programs as samples"),
	SW(11, "cgroup-switches", "", "Context switches to a task of another cgroup"),
};
/* clang-format on */
const unsigned int ap__ngenerics = ARRAY_SIZE(ap__generics);

const struct ap__generic *ap__generic_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ap__generics); i++) {
		const struct ap__generic *g = &ap__generics[i];

		if (strcmp(g->name, name) == 0 || (g->alias[0] && strcmp(g->alias, name) == 0))
			return g;
	}
	return NULL;
}

const struct ap__generic *ap__generic_of(u32 type, u64 config)
{
	for (size_t i = 0; i < ARRAY_SIZE(ap__generics); i++)
		if (ap__generics[i].type == type && ap__generics[i].config == config)
			return &ap__generics[i];
	return NULL;
}

/* The first spelling is the usual one; for operations the second is its plural. */
struct spelling {
	const char *names[6];
};

#define READ_OP     1
#define WRITE_OP    2
#define PREFETCH_OP 4

static const struct cache {
	struct spelling spelling;
	const char *desc;
	unsigned int ops; /* what perf has names for, whatever the CPU counts */
} caches[AP__CACHES] = {
	{{{"L1-dcache", "l1-d", "l1d", "L1-data"}},
	 "level 1 data cache",
	 READ_OP | WRITE_OP | PREFETCH_OP},
	{{{"L1-icache", "l1-i", "l1i", "L1-instruction"}},
	 "level 1 instruction cache",
	 READ_OP | PREFETCH_OP},
	{{{"LLC", "L2"}}, "last level cache", READ_OP | WRITE_OP | PREFETCH_OP},
	{{{"dTLB", "d-tlb", "Data-TLB"}}, "data TLB", READ_OP | WRITE_OP | PREFETCH_OP},
	{{{"iTLB", "i-tlb", "Instruction-TLB"}}, "instruction TLB", READ_OP},
	{{{"branch", "branches", "bpu", "btb", "bpc"}}, "branch predictor", READ_OP},
	{{{"node"}}, "memory of the CPU's own NUMA node", READ_OP | WRITE_OP | PREFETCH_OP},
};

static const struct spelling ops[AP__CACHE_OPS] = {
	{{"load", "loads", "read"}},
	{{"store", "stores", "write"}},
	{{"prefetch", "prefetches", "speculative-read", "speculative-load"}},
};

static const struct spelling results[2] = {
	{{"refs", "Reference", "ops", "access"}},
	{{"misses", "miss"}},
};

/* Whether @s begins with @word and that ends at a dash or at the end. *@rest is what follows. */
static bool begins(const char *s, const char *word, const char **rest)
{
	size_t n = strlen(word);

	if (strncasecmp(s, word, n) != 0 || (s[n] && s[n] != '-'))
		return false;
	*rest = s[n] ? s + n + 1 : s + n;
	/* "L1-dcache-" ends in a dash that nothing follows. */
	return !s[n] || s[n + 1];
}

/* @s as an operation and/or a result in either order, both optional. */
static bool op_result(const char *s, int *op, int *result)
{
	const char *rest;

	if (!*s)
		return true;
	for (int i = 0; i < AP__CACHE_OPS && *op < 0; i++)
		for (const char *const *w = ops[i].names; w < ops[i].names + 6 && *w; w++) {
			int was = *op;

			*op = i;
			if (begins(s, *w, &rest) && op_result(rest, op, result))
				return true;
			*op = was;
		}
	for (int i = 0; i < 2 && *result < 0; i++)
		for (const char *const *w = results[i].names; w < results[i].names + 6 && *w; w++) {
			int was = *result;

			*result = i;
			if (begins(s, *w, &rest) && op_result(rest, op, result))
				return true;
			*result = was;
		}
	return false;
}

int ap__cache_find(const char *name, u64 *config)
{
	for (int c = 0; c < AP__CACHES; c++)
		for (const char *const *w = caches[c].spelling.names;
		     w < caches[c].spelling.names + 6 && *w; w++) {
			int op = -1, result = -1;
			const char *rest;

			if (!begins(name, *w, &rest) || !op_result(rest, &op, &result))
				continue;
			if (op < 0)
				op = 0;
			if (result < 0)
				result = 0;
			if (!(caches[c].ops & 1u << op))
				return -EINVAL;
			*config = AP__CACHE_CONFIG(c, op, result);
			return 0;
		}
	return -ENOENT;
}

static bool split(u64 config, unsigned int *c, unsigned int *op, unsigned int *result)
{
	*c = config & 0xff;
	*op = config >> 8 & 0xff;
	*result = config >> 16 & 0xff;
	return !(config >> 24) && *c < AP__CACHES && *op < AP__CACHE_OPS && *result < 2 &&
	       (caches[*c].ops & 1u << *op);
}

bool ap__cache_name(u64 config, char *buf, size_t len)
{
	unsigned int c, op, result;

	if (!split(config, &c, &op, &result))
		return false;
	snprintf(buf, len, "%s-%s%s", caches[c].spelling.names[0], ops[op].names[result ? 0 : 1],
		 result ? "-misses" : "");
	return true;
}

static void bare_name(const struct perf_event_attr *attr, char *buf, size_t len)
{
	const struct ap__generic *g = ap__generic_of(attr->type, attr->config & UINT32_MAX);
	static const char *const access[4] = {"", ":r", ":w", ":rw"};

	/* perf takes these two aliases for the name. */
	if (g && attr->type == PERF_TYPE_HARDWARE && g->alias[0] && !strchr(g->alias, '-'))
		snprintf(buf, len, "%s", g->alias);
	else if (g)
		snprintf(buf, len, "%s", g->name);
	else if (attr->type == PERF_TYPE_HW_CACHE &&
		 ap__cache_name(attr->config & UINT32_MAX, buf, len))
		return;
	else if (attr->type == PERF_TYPE_RAW)
		snprintf(buf, len, "raw 0x%llx", (unsigned long long)attr->config);
	else if (attr->type == PERF_TYPE_BREAKPOINT)
		snprintf(buf, len, "mem:0x%llx%s", (unsigned long long)attr->bp_addr,
			 attr->bp_type & HW_BREAKPOINT_X ? ":x" : access[attr->bp_type & 3]);
	else if (attr->type == PERF_TYPE_TRACEPOINT)
		snprintf(buf, len, "tracepoint %llu", (unsigned long long)attr->config);
	else
		snprintf(buf, len, "event 0x%llx of PMU %u", (unsigned long long)attr->config,
			 attr->type);
}

void ap__attr_name(const struct perf_event_attr *attr, char *buf, size_t len)
{
	char modifiers[8] = "";
	size_t n = 0;

	bare_name(attr, buf, len);
	if (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv) {
		if (!attr->exclude_kernel)
			modifiers[n++] = 'k';
		if (!attr->exclude_user)
			modifiers[n++] = 'u';
		if (!attr->exclude_hv)
			modifiers[n++] = 'h';
	}
	for (unsigned int i = attr->precise_ip; i; i--)
		modifiers[n++] = 'p';
	if (n)
		snprintf(buf + strlen(buf), len - strlen(buf), ":%s", modifiers);
}

char *ap__cache_desc(u64 config, char *buf, size_t len)
{
	static const char *const what[AP__CACHE_OPS] = {"Reads", "Writes", "Prefetches"};
	unsigned int c, op, result;

	if (split(config, &c, &op, &result))
		snprintf(buf, len, "%s of the %s%s", what[op], caches[c].desc,
			 result ? " that missed" : "");
	else if (len)
		buf[0] = '\0';
	return buf;
}
