#include "cli/report/metric.h"

#include <string.h>

/* Shares above these are worth a look, and a worry: the limits at which perf changes colour. */
struct limits {
	double notice, high, bad;
};

static const struct limits front_limits = {10, 30, 50};
static const struct limits back_limits = {20, 50, 75};
static const struct limits miss_limits = {5, 10, 20};

static enum metric_level level_of(double share, const struct limits *l)
{
	return share > l->bad      ? LEVEL_BAD
	       : share > l->high   ? LEVEL_HIGH
	       : share > l->notice ? LEVEL_NOTICE
				   : LEVEL_NORMAL;
}

static bool same_cgroup(const struct report_event *a, const struct report_event *b)
{
	return !a->cgroup || !b->cgroup ? a->cgroup == b->cgroup : !strcmp(a->cgroup, b->cgroup);
}

/* The mean count of the first event of @kind in @unit; 0 if there is none. */
static double count_of(const struct report *r, u32 unit, enum report_kind kind,
		       const struct report_event *beside)
{
	for (u32 e = 0; e < r->nr_events; e++) {
		const struct report_cell *cell = report_at(r, e, unit);

		if (r->events[e].kind != kind || cell->status != AP_STATUS_OK || !cell->present)
			continue;
		/* CPU time is CPU time whatever modes it was counted in. */
		if ((kind == KIND_CPU_TIME || r->events[e].modes == beside->modes) &&
		    same_cgroup(&r->events[e], beside))
			return cell->count.mean;
	}
	return 0;
}

static struct report_metric share(double part, double whole, const char *unit,
				  const struct limits *limits)
{
	double percent = 100 * part / whole;

	return (struct report_metric){
		percent, 2, 7, unit, "% ", level_of(percent, limits),
	};
}

static struct report_metric per_second(double count, double ns)
{
	double rate = count / ns * 1e9;
	const char *unit = "/sec";

	if (rate >= 1e9) {
		rate /= 1e9;
		unit = "G/sec";
	} else if (rate >= 1e6) {
		rate /= 1e6;
		unit = "M/sec";
	} else if (rate >= 1e3) {
		rate /= 1e3;
		unit = "K/sec";
	}
	return (struct report_metric){rate, 3, 8, unit, " ", LEVEL_NORMAL};
}

/* Misses and the accesses they are a share of. */
static const struct {
	enum report_kind part, whole;
	const char *unit;
} misses[] = {
	{KIND_BRANCH_MISSES, KIND_BRANCHES, "of all branches"},
	{KIND_CACHE_MISSES, KIND_CACHE_REFS, "of all cache refs"},
	{KIND_L1D_MISSES, KIND_L1D_ALL, "of all L1-dcache accesses"},
	{KIND_L1I_MISSES, KIND_L1I_ALL, "of all L1-icache accesses"},
	{KIND_LL_MISSES, KIND_LL_ALL, "of all LL-cache accesses"},
	{KIND_DTLB_MISSES, KIND_DTLB_ALL, "of all dTLB cache accesses"},
	{KIND_ITLB_MISSES, KIND_ITLB_ALL, "of all iTLB cache accesses"},
};

static u32 instructions(const struct report *r, u32 unit, const struct report_event *ev,
			double count, struct report_metric *out)
{
	double cycles = count_of(r, unit, KIND_CYCLES, ev);
	double front = count_of(r, unit, KIND_STALLED_FRONT, ev);
	double back = count_of(r, unit, KIND_STALLED_BACK, ev);
	double stalled = front > back ? front : back;
	u32 n = 0;

	if (cycles > 0)
		out[n++] = (struct report_metric){count / cycles,   2,    7,
						  "insn per cycle", "  ", LEVEL_NORMAL};
	if (stalled > 0 && count > 0)
		out[n++] = (struct report_metric){stalled / count,           2,    7,
						  "stalled cycles per insn", "  ", LEVEL_NORMAL};
	return n;
}

u32 report_metrics(const struct report *r, u32 event, u32 unit,
		   struct report_metric out[METRICS_MAX])
{
	const struct report_event *ev = &r->events[event];
	const struct report_cell *cell = report_at(r, event, unit);
	double count = cell->count.mean;
	double ns = count_of(r, unit, KIND_CPU_TIME, ev);
	double cycles = count_of(r, unit, KIND_CYCLES, ev);
	u32 n = 0;

	if (cell->status != AP_STATUS_OK)
		return 0;
	switch (ev->kind) {
	case KIND_CPU_TIME:
		if (r->elapsed.mean > 0)
			out[n++] = (struct report_metric){count / (r->elapsed.mean * 1e9),
							  3,
							  8,
							  "CPUs utilized",
							  " ",
							  LEVEL_NORMAL};
		return n;
	case KIND_CYCLES:
		/* Cycles of a machine over times that are not its own are no frequency. */
		if (ns > 0 && !r->translated)
			out[n++] = (struct report_metric){count / ns, 3,   8,
							  "GHz",      " ", LEVEL_NORMAL};
		return n;
	case KIND_INSTRUCTIONS: n = instructions(r, unit, ev, count, out); break;
	case KIND_STALLED_FRONT:
		if (cycles > 0)
			out[n++] = share(count, cycles, "frontend cycles idle", &front_limits);
		break;
	case KIND_STALLED_BACK:
		if (cycles > 0)
			out[n++] = share(count, cycles, "backend cycles idle", &back_limits);
		break;
	default: break;
	}
	for (size_t i = 0; i < ARRAY_SIZE(misses); i++) {
		double whole;

		if (misses[i].part != ev->kind)
			continue;
		whole = count_of(r, unit, misses[i].whole, ev);
		if (whole > 0)
			out[n++] = share(count, whole, misses[i].unit, &miss_limits);
	}
	/* Exact counts over times that are longer than native ones would pass for a native rate. */
	if (!n && ns > 0 && !*ev->unit && !r->translated)
		out[n++] = per_second(count, ns);
	return n;
}
