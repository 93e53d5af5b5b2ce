/* One JSON object a report, on one line: schema anyperf-stat-1, which doc/json.md describes. */
#include "cli/determinism.h"
#include "cli/json.h"
#include "cli/report/refused.h"
#include "cli/report/unit-label.h"
#include "cli/report/metric.h"
#include "cli/report/metric-only.h"
#include "cli/report/report.h"
#include "cli/report/uncounted.h"

static void unit_members(struct json *j, const struct report *r, const struct report_unit *u)
{
	switch (r->aggr) {
	case AGGR_GLOBAL: return;
	case AGGR_THREAD:
		json_s64(j, "tid", u->tid);
		json_str(j, "comm", u->comm);
		return;
	case AGGR_CPU: json_s64(j, "cpu", u->cpu); return;
	case AGGR_NODE: json_s64(j, "node", u->node); break;
	case AGGR_CORE:
	case AGGR_DIE:
	case AGGR_SOCKET:
		json_s64(j, "socket", u->socket);
		if (r->aggr != AGGR_SOCKET)
			json_s64(j, "die", u->die);
		if (r->aggr == AGGR_CORE)
			json_s64(j, "core", u->core);
		break;
	}
	json_u64(j, "cpus", u->cpus);
}

static void series(struct json *j, const struct report *r, const struct report_cell *cell,
		   u32 event)
{
	const struct report_event *ev = &r->events[event];
	int digits = ev->scale != 1 ? 6 : 0;

	json_double(j, "value_stderr", series_error(&cell->count) * ev->scale, digits + 2);
	json_array(j, "per_run");
	for (u32 i = 0; i < cell->count.n; i++)
		json_double(j, NULL, cell->per_run[i] * ev->scale, digits);
	json_end(j);
}

static void refusal(struct json *j, const struct report_event *ev)
{
	json_object(j, "reason");
	json_str(j, "cause", ap_cause_name(ev->error.cause));
	json_s64(j, "errno", -ev->error.code);
	json_str(j, "why", ev->error.why);
	json_str(j, "remedy", ev->error.remedy);
	json_end(j);
}

static void values(struct json *j, const struct report *r, u32 event, u32 unit)
{
	const struct report_cell *cell = report_at(r, event, unit);
	const struct report_event *ev = &r->events[event];
	bool mean = r->many && cell->count.n > 1;

	json_double(j, "value", report_value(r, event, unit), ev->scale != 1 ? 6 : mean ? 2 : 0);
	json_str(j, "unit", ev->unit);
	if (r->many) {
		series(j, r, cell, event);
	} else {
		json_u64(j, "count", cell->scaled);
		json_u64(j, "raw", cell->value);
	}
	json_u64(j, "enabled_ns", cell->enabled);
	json_u64(j, "running_ns", cell->running);
	json_double(j, "running_percent", report_percent(cell), 2);
	if (ev->with_translator)
		json_bool(j, "with_translator", true);
}

/* Of events without a metric to be shown --metric-only tells no more than why they are refused. */
static bool has_place(const struct report *r, u32 event, u32 unit, bool metric_only)
{
	struct report_metric metrics[METRICS_MAX];
	u32 nr = report_metrics(r, event, unit, metrics);

	for (u32 i = 0; i < nr; i++)
		if (metric_only_shows(&metrics[i]))
			return true;
	return !metric_only || r->events[event].refused;
}

static void one_count(struct json *j, const struct report *r, u32 event, u32 unit, bool metric_only)
{
	static const char *const status[] = {
		[AP_STATUS_OK] = "ok",
		[AP_STATUS_NOT_COUNTED] = "not-counted",
		[AP_STATUS_NOT_SUPPORTED] = "not-supported",
		[AP_STATUS_PARTIAL] = "partial",
	};
	const struct report_cell *cell = report_at(r, event, unit);
	const struct report_event *ev = &r->events[event];
	struct report_metric metrics[METRICS_MAX];
	u32 nr = report_metrics(r, event, unit, metrics);

	json_object(j, NULL);
	json_str(j, "event", ev->name);
	if (ev->asked) {
		json_str(j, "asked", ev->asked);
		json_bool(j, "user_only", true);
	}
	if (ev->cgroup)
		json_str(j, "cgroup", ev->cgroup);
	unit_members(j, r, &r->units[unit]);
	if (ev->modeled && cell->status == AP_STATUS_OK)
		json_bool(j, "modeled", true);
	json_str(j, "status", status[cell->status]);
	if (cell->status == AP_STATUS_OK && !metric_only)
		values(j, r, event, unit);
	if (cell->status == AP_STATUS_PARTIAL) {
		json_u64(j, "places", cell->places);
		json_u64(j, "opened_places", cell->opened);
	}
	json_array(j, "metrics");
	for (u32 i = 0; i < nr; i++) {
		char unit_text[64];

		if (metric_only && !metric_only_shows(&metrics[i]))
			continue;
		json_object(j, NULL);
		json_double(j, "value", metrics[i].value, 6);
		snprintf(unit_text, sizeof(unit_text), "%s%s", metrics[i].gap[0] == '%' ? "% " : "",
			 metrics[i].unit);
		json_str(j, "unit", unit_text);
		json_end(j);
	}
	json_end(j);
	if (ev->refused)
		refusal(j, ev);
	json_end(j);
}

static void times(struct json *j, const struct report *r)
{
	json_u64(j, "runs", r->runs);
	json_double(j, "elapsed_s", r->elapsed.mean, 9);
	if (r->many) {
		json_double(j, "elapsed_stderr_s", series_error(&r->elapsed), 9);
		json_array(j, "elapsed_per_run_s");
		for (u32 i = 0; i < r->runs; i++)
			json_double(j, NULL, r->run_elapsed[i], 9);
		json_end(j);
	}
	if (r->has_usage) {
		json_double(j, "user_s", r->user, 6);
		json_double(j, "sys_s", r->sys, 6);
	}
	if (r->command && r->part != PART_INTERVAL)
		json_s64(j, "exit_status", r->exit_status);
	if (r->signal && r->part != PART_INTERVAL)
		json_s64(j, "signal", r->signal);
	if (r->timed_out && r->part != PART_INTERVAL)
		json_bool(j, "timed_out", true);
}

void report_print_json(const struct report *r, const struct report_style *style)
{
	static const char *const parts[] = {
		[PART_WHOLE] = "whole",
		[PART_INTERVAL] = "interval",
		[PART_SUMMARY] = "summary",
	};
	struct json j;

	json_begin(&j, style->out);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-stat-1");
	json_str(&j, "part", parts[r->part]);
	if (r->part == PART_INTERVAL) {
		json_u64(&j, "interval", r->interval);
		json_double(&j, "at_s", r->at, 9);
	}
	json_str(&j, "target", r->target);
	if (r->command) {
		json_array(&j, "command");
		for (char *const *arg = r->command; *arg; arg++)
			json_str(&j, NULL, *arg);
		json_end(&j);
	}
	if (style->pmu) {
		json_object(&j, "pmu");
		json_str(&j, "used", style->pmu);
		json_str(&j, "why", style->pmu_why);
		if (style->machine)
			json_str(&j, "machine", style->machine);
		if (style->windows)
			json_str(&j, "windows", style->windows);
		if (style->windows)
			json_bool(&j, "estimated", style->estimated);
		if (style->unmodeled)
			json_bool(&j, "unmodeled", true);
		json_end(&j);
	}
	json_str(&j, "times", r->translated ? "translated" : "native");
	if (r->deterministic)
		deterministic_json(&j, r->seed, r->nondet);
	if (r->guests) {
		uncounted_json(&j, r->guests);
		refused_json(&j, r->guests);
	}
	times(&j, r);
	json_array(&j, "counts");
	for (u32 u = 0; u < r->nr_units; u++)
		for (u32 e = 0; e < r->nr_events; e++)
			if (report_at(r, e, u)->present && has_place(r, e, u, style->metric_only))
				one_count(&j, r, e, u, style->metric_only);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}
