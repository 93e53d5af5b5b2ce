#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void series_add(struct series *s, double sample)
{
	double delta = sample - s->mean;

	s->n++;
	s->mean += delta / s->n;
	s->m2 += delta * (sample - s->mean);
}

double series_error(const struct series *s)
{
	if (s->n < 2)
		return 0;
	return __builtin_sqrt(s->m2 / (s->n - 1) / s->n);
}

double series_error_percent(const struct series *s)
{
	return s->mean != 0 ? 100 * series_error(s) / s->mean : 0;
}

static enum report_kind cache_kind(u64 config)
{
	static const enum report_kind kinds[][2] = {
		[PERF_COUNT_HW_CACHE_L1D] = {KIND_L1D_ALL, KIND_L1D_MISSES},
		[PERF_COUNT_HW_CACHE_L1I] = {KIND_L1I_ALL, KIND_L1I_MISSES},
		[PERF_COUNT_HW_CACHE_LL] = {KIND_LL_ALL, KIND_LL_MISSES},
		[PERF_COUNT_HW_CACHE_DTLB] = {KIND_DTLB_ALL, KIND_DTLB_MISSES},
		[PERF_COUNT_HW_CACHE_ITLB] = {KIND_ITLB_ALL, KIND_ITLB_MISSES},
	};
	u64 cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

	if (cache >= ARRAY_SIZE(kinds) || op != PERF_COUNT_HW_CACHE_OP_READ || result > 1)
		return KIND_OTHER;
	return kinds[cache][result];
}

enum report_kind report_kind_of(const struct perf_event_attr *attr)
{
	static const enum report_kind hardware[] = {
		[PERF_COUNT_HW_CPU_CYCLES] = KIND_CYCLES,
		[PERF_COUNT_HW_INSTRUCTIONS] = KIND_INSTRUCTIONS,
		[PERF_COUNT_HW_CACHE_REFERENCES] = KIND_CACHE_REFS,
		[PERF_COUNT_HW_CACHE_MISSES] = KIND_CACHE_MISSES,
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = KIND_BRANCHES,
		[PERF_COUNT_HW_BRANCH_MISSES] = KIND_BRANCH_MISSES,
		[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = KIND_STALLED_FRONT,
		[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = KIND_STALLED_BACK,
	};
	/* On hybrid machines the upper half of config says which of the CPU's PMUs [TYPE]. */
	u64 config = attr->config & 0xffffffff;

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		return config < ARRAY_SIZE(hardware) ? hardware[config] : KIND_OTHER;
	case PERF_TYPE_HW_CACHE: return cache_kind(config);
	case PERF_TYPE_SOFTWARE:
		if (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK)
			return KIND_CPU_TIME;
		return KIND_OTHER;
	default: return KIND_OTHER;
	}
}

char *report_event_name(const struct ap_spec *spec, bool user_only)
{
	const char *end = strrchr(spec->name, ':'), *slash = strrchr(spec->name, '/');
	const char *more = ":u";
	size_t size = strlen(spec->name) + sizeof(":u");
	char *name = malloc(size);

	CHECK(name);
	if (!end || (slash && slash > end))
		end = slash;
	/* It needs no colon where modifiers stand already, or could: cpu/event=1/, cs:S. */
	if (end && !end[1 + strspn(end + 1, "ukhGHIpPDeWSb")])
		more = "u";
	snprintf(name, size, "%s%s", spec->name, user_only ? more : "");
	return name;
}

char *report_command(char *const *argv)
{
	size_t size = 3, len = 0;
	char *text;

	for (char *const *arg = argv; *arg; arg++)
		size += strlen(*arg) + 1;
	text = malloc(size);
	CHECK(text);
	for (char *const *arg = argv; *arg; arg++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "'", *arg);
	snprintf(text + len, size - len, "'");
	return text;
}

void report_init(struct report *r, enum report_aggr aggr, struct report_event *events, u32 nr)
{
	*r = (struct report){.aggr = aggr, .events = events, .nr_events = nr};
}

void report_release(struct report *r)
{
	for (u32 i = 0; i < r->nr_events * r->nr_units; i++)
		free(r->cells[i].per_run);
	free(r->cells);
	free(r->units);
	free(r->run_elapsed);
	r->cells = NULL;
	r->units = NULL;
	r->run_elapsed = NULL;
	r->nr_units = r->room = 0;
}

static bool same_unit(enum report_aggr aggr, const struct report_unit *a,
		      const struct report_unit *b)
{
	switch (aggr) {
	case AGGR_GLOBAL: return true;
	case AGGR_SOCKET: return a->socket == b->socket;
	case AGGR_DIE: return a->socket == b->socket && a->die == b->die;
	case AGGR_NODE: return a->node == b->node;
	case AGGR_CORE: return a->socket == b->socket && a->die == b->die && a->core == b->core;
	case AGGR_CPU: return a->cpu == b->cpu;
	case AGGR_THREAD: return a->tid == b->tid;
	}
	return false;
}

/* There may be thousands of threads: room is made for many at a time. */
static void grow(struct report *r)
{
	size_t row = r->nr_events * sizeof(*r->cells), old = r->room;

	r->room = r->room ? 2 * r->room : 1;
	r->units = realloc(r->units, r->room * sizeof(*r->units));
	/* With --null a unit has no cells. */
	r->cells = realloc(r->cells, r->room * row + 1);
	CHECK(r->units && r->cells);
	memset((char *)r->cells + old * row, 0, (r->room - old) * row);
}

u32 report_find_unit(struct report *r, const struct report_unit *unit)
{
	for (u32 u = 0; u < r->nr_units; u++)
		if (same_unit(r->aggr, &r->units[u], unit))
			return u;
	if (r->nr_units == r->room)
		grow(r);
	r->units[r->nr_units] = *unit;
	return r->nr_units++;
}

struct report_cell *report_at(const struct report *r, u32 event, u32 unit)
{
	return &r->cells[(size_t)unit * r->nr_events + event];
}

void report_add(struct report *r, u32 event, u32 unit, enum ap_status status,
		const struct ap_value *sum, bool scale)
{
	struct report_cell *cell = report_at(r, event, unit);
	bool first = !cell->present;
	u64 scaled = sum->value;

	cell->present = true;
	if (status == AP_STATUS_OK && scale && ap_value_scale(sum, &scaled) == AP_NOT_COUNTED)
		status = AP_STATUS_NOT_COUNTED;
	/* Over several runs one that counted is enough for a count. */
	if (first || status < cell->status)
		cell->status = status;
	if (status != AP_STATUS_OK)
		return;
	cell->scaled = scaled;
	cell->value += sum->value;
	cell->enabled += sum->enabled;
	cell->running += sum->running;
	series_add(&cell->count, (double)scaled);
	if (r->many) {
		cell->per_run = realloc(cell->per_run, cell->count.n * sizeof(*cell->per_run));
		CHECK(cell->per_run);
		cell->per_run[cell->count.n - 1] = (double)scaled;
	}
}

const char *report_no_count(const struct report_cell *cell)
{
	switch (cell->status) {
	case AP_STATUS_NOT_COUNTED: return "<not counted>";
	case AP_STATUS_PARTIAL: return "<partial>";
	default: return "<not supported>";
	}
}

const char *report_part_text(const struct report *r, u32 event, u32 unit, char *buf, size_t size)
{
	const struct report_cell *cell = report_at(r, event, unit);

	*buf = 0;
	if (cell->status == AP_STATUS_PARTIAL)
		snprintf(buf, size, "%u of %u %s", cell->opened, cell->places, r->places);
	return buf;
}

double report_value(const struct report *r, u32 event, u32 unit)
{
	return report_at(r, event, unit)->count.mean * r->events[event].scale;
}

double report_percent(const struct report_cell *cell)
{
	return cell->enabled ? 100.0 * (double)cell->running / (double)cell->enabled : 100.0;
}
