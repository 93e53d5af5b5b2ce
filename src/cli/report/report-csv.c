/*
 * perf's columns for programs: [time,] [unit of aggregation, [cpus,]] count, unit, event,
 * [cgroup,] [deviation,] running ns, percent running, derived value, its unit. The decimal point is
 * a point in every locale, and the event's name the one that was asked for: programs look for it.
 */
#include <stdlib.h>

#include "cli/report/unit-label.h"
#include "cli/report/metric.h"
#include "cli/report/metric-only.h"
#include "cli/report/report.h"

static int prefix(const struct report *r, u32 unit, const struct report_style *style)
{
	const char *sep = style->separator;
	FILE *out = style->out;
	char text[48];

	if (r->part == PART_INTERVAL)
		fprintf(out, "%16.9f%s", r->at, sep);
	else if (r->part == PART_SUMMARY && style->csv_summary)
		fprintf(out, "%16s%s", "summary", sep);
	if (r->aggr == AGGR_GLOBAL)
		return 0;
	fprintf(out, "%s%s", unit_label(r->aggr, &r->units[unit], text, sizeof(text)), sep);
	if (!unit_counts_cpus(r->aggr))
		return 1;
	fprintf(out, "%u%s", r->units[unit].cpus, sep);
	return 2;
}

static void line(const struct report *r, u32 event, u32 unit, const struct report_style *style)
{
	const struct report_cell *cell = report_at(r, event, unit);
	const struct report_event *ev = &r->events[event];
	struct report_metric metrics[METRICS_MAX];
	u32 nr = report_metrics(r, event, unit, metrics);
	const char *sep = style->separator;
	FILE *out = style->out;
	u32 runs = cell->count.n ? cell->count.n : 1;
	const char *name = ev->asked ? ev->asked : ev->name;
	char part[64];

	report_part_text(r, event, unit, part, sizeof(part));
	prefix(r, unit, style);
	if (cell->status == AP_STATUS_OK)
		fprintf(out, "%.*f", ev->scale != 1 ? 2 : 0, report_value(r, event, unit));
	else
		fputs(report_no_count(cell), out);
	fprintf(out, "%s%s%s%s%s", sep, ev->unit, sep, name, sep);
	if (ev->cgroup)
		fprintf(out, "%s%s", ev->cgroup, sep);
	if (r->many)
		fprintf(out, "%.2f%%%s", series_error_percent(&cell->count), sep);
	fprintf(out, "%llu%s%.2f%s", (unsigned long long)(cell->running / runs), sep,
		report_percent(cell), sep);
	if (nr)
		fprintf(out, "%.*f%s%s", metrics[0].decimals, metrics[0].value, sep,
			metrics[0].unit);
	else
		fprintf(out, "%s%s", sep,
			*part                 ? part
			: ev->with_translator ? "with the translator's own"
					      : "");
	putc('\n', out);
	/* Further values stand in lines of their own, in the same columns. */
	for (u32 i = 1; i < nr; i++) {
		prefix(r, unit, style);
		for (int field = 0; field < 5 + r->many + (ev->cgroup != NULL); field++)
			fputs(sep, out);
		fprintf(out, "%.*f%s%s\n", metrics[i].decimals, metrics[i].value, sep,
			metrics[i].unit);
	}
}

static void lines(const struct report *r, const struct report_style *style)
{
	bool by_event = unit_event_first(r->aggr);
	u32 outer = by_event ? r->nr_events : r->nr_units;
	u32 inner = by_event ? r->nr_units : r->nr_events;

	for (u32 o = 0; o < outer; o++) {
		for (u32 i = 0; i < inner; i++) {
			u32 event = by_event ? o : i, unit = by_event ? i : o;

			if (report_at(r, event, unit)->present)
				line(r, event, unit, style);
		}
	}
}

/* As perf: a heading, then the values, each with a separator behind it. */
static void metric_table(const struct report *r, const struct report_style *style)
{
	static const char *const labels[] = {
		[AGGR_GLOBAL] = "",   [AGGR_THREAD] = "comm-pid", [AGGR_CPU] = "cpu",
		[AGGR_CORE] = "core", [AGGR_DIE] = "die",         [AGGR_SOCKET] = "socket",
		[AGGR_NODE] = "node",
	};
	const char *sep = style->separator;
	FILE *out = style->out;
	u32 nr;
	struct metric_column *columns = metric_columns(r, &nr);

	if (!style->brief_head) {
		if (r->part == PART_INTERVAL)
			fprintf(out, "time%s", sep);
		else if (r->part == PART_SUMMARY && style->csv_summary)
			fprintf(out, "summary%s", sep);
		if (r->aggr)
			fprintf(out, "%s%s", labels[r->aggr], sep);
		if (unit_counts_cpus(r->aggr))
			fprintf(out, "cpus%s", sep);
		for (u32 c = 0; c < nr; c++)
			fprintf(out, "%s%s", columns[c].name, sep);
		putc('\n', out);
	}
	for (u32 u = 0; u < r->nr_units; u++) {
		prefix(r, u, style);
		for (u32 c = 0; c < nr; c++) {
			struct report_metric m;

			if (metric_of_column(r, &columns[c], u, &m))
				fprintf(out, "%.*f", m.decimals, m.value);
			fputs(sep, out);
		}
		putc('\n', out);
	}
	free(columns);
}

void report_print_csv(const struct report *r, const struct report_style *style)
{
	if (style->metric_only) {
		metric_table(r, style);
		return;
	}
	lines(r, style);
}
