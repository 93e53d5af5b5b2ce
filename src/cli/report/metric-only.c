#include "cli/report/metric-only.h"

#include <stdlib.h>
#include <string.h>

bool metric_only_shows(const struct report_metric *m)
{
	return !strstr(m->unit, "/sec") && strcmp(m->unit, "CPUs utilized") != 0;
}

/* Whether it could be opened anywhere. */
static bool is_supported(const struct report *r, u32 event)
{
	if (!r->nr_units)
		return true;
	for (u32 u = 0; u < r->nr_units; u++) {
		const struct report_cell *cell = report_at(r, event, u);

		if (cell->present && cell->status != AP_STATUS_NOT_SUPPORTED)
			return true;
	}
	return false;
}

static void name_column(const struct report_event *ev, struct metric_column *column)
{
	bool share = !strncmp(column->unit, "of all", 6);

	snprintf(column->name, sizeof(column->name), "%s%s%s%s%s", ev->cgroup ? ev->cgroup : "",
		 ev->cgroup ? " " : "", share ? ev->name : "", share ? " " : "", column->unit);
}

/* The report as it would be if every event had counted: its metrics are all that there can be. */
struct metric_column *metric_columns(const struct report *r, u32 *nr)
{
	struct report full = *r;
	struct metric_column *columns;

	*nr = 0;
	full.nr_units = 1;
	full.elapsed.mean = 1;
	full.cells = calloc(r->nr_events + 1, sizeof(*full.cells));
	columns = calloc((size_t)r->nr_events * METRICS_MAX + 1, sizeof(*columns));
	if (!full.cells || !columns) {
		free(full.cells);
		free(columns);
		return NULL;
	}
	for (u32 e = 0; e < r->nr_events; e++) {
		full.cells[e].present = true;
		full.cells[e].status = is_supported(r, e) ? AP_STATUS_OK : AP_STATUS_NOT_SUPPORTED;
		full.cells[e].count.mean = 1;
	}
	for (u32 e = 0; e < r->nr_events; e++) {
		struct report_metric metrics[METRICS_MAX];
		u32 n = report_metrics(&full, e, 0, metrics);

		for (u32 i = 0; i < n; i++) {
			if (!metric_only_shows(&metrics[i]))
				continue;
			columns[*nr].event = e;
			columns[*nr].unit = metrics[i].unit;
			name_column(&r->events[e], &columns[*nr]);
			++*nr;
		}
	}
	free(full.cells);
	return columns;
}

bool metric_of_column(const struct report *r, const struct metric_column *column, u32 unit,
		      struct report_metric *m)
{
	struct report_metric metrics[METRICS_MAX];
	u32 n;

	if (!report_at(r, column->event, unit)->present)
		return false;
	n = report_metrics(r, column->event, unit, metrics);
	for (u32 i = 0; i < n; i++) {
		if (strcmp(metrics[i].unit, column->unit) != 0)
			continue;
		*m = metrics[i];
		return true;
	}
	return false;
}
