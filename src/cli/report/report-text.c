/*
 * Text for people, in perf's columns [STAT-07..11]: the count right-aligned in 18, its unit in 4,
 * the event in 32, what it relates to in 38, then deviation and share of time. Nothing is printed
 * behind the last column in use.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/determinism.h"
#include "cli/help/help.h"
#include "cli/modeled-events.h"
#include "cli/put-name.h"
#include "cli/report/unit-label.h"
#include "cli/report/metric.h"
#include "cli/report/metric-only.h"
#include "cli/report/report.h"

#define COUNT_WIDTH  18
#define UNIT_WIDTH   4
#define NAME_WIDTH   32
#define CGROUP_WIDTH 16
#define METRIC_WIDTH 38
#define COLUMN_WIDTH 20 /* of --metric-only */

static const char *colour_of(const struct report_style *style, enum metric_level level)
{
	static const char *const codes[] = {
		[LEVEL_NORMAL] = "",
		[LEVEL_NOTICE] = "\033[33m",
		[LEVEL_HIGH] = "\033[35m",
		[LEVEL_BAD] = "\033[31m",
	};

	return style->colour ? codes[level] : "";
}

static const char *dim(const struct report_style *style)
{
	return style->colour ? "\033[2m" : "";
}

static const char *plain(const struct report_style *style)
{
	return style->colour ? "\033[0m" : "";
}

/* All numbers have the locale's decimal point. Only counts have its groups, as in perf. */
static const char *number(const struct report_style *style, double value, int decimals, int width,
			  char buf[64])
{
	struct number_style ungrouped = style->numbers;

	*ungrouped.separator = 0;
	return number_text(&ungrouped, value, decimals, width, buf, 64);
}

static void deviation(const struct report_style *style, double percent)
{
	char text[64];

	fprintf(style->out, "  ( +-%s%% )", number(style, percent, 2, 6, text));
}

/* Prints the label in front of a line. Labels of threads, whose width varies, are right-aligned. */
static void label(const struct report *r, u32 unit, FILE *out)
{
	char text[48];

	unit_label(r->aggr, &r->units[unit], text, sizeof(text));
	switch (r->aggr) {
	case AGGR_GLOBAL: break;
	case AGGR_THREAD: fprintf(out, "%24s ", text); break;
	case AGGR_CPU: fprintf(out, "%-10s ", text); break;
	case AGGR_CORE: fprintf(out, "%-15s %4u ", text, r->units[unit].cpus); break;
	case AGGR_DIE: fprintf(out, "%-12s %4u ", text, r->units[unit].cpus); break;
	case AGGR_SOCKET:
	case AGGR_NODE: fprintf(out, "%-6s %4u ", text, r->units[unit].cpus); break;
	}
}

/* Columns of what stands in front of a line. */
static int label_width(const struct report *r)
{
	static const int widths[] = {
		[AGGR_GLOBAL] = 0, [AGGR_THREAD] = 25, [AGGR_CPU] = 11,  [AGGR_CORE] = 21,
		[AGGR_DIE] = 18,   [AGGR_SOCKET] = 12, [AGGR_NODE] = 12,
	};

	return widths[r->aggr] + (r->part == PART_INTERVAL ? 17 : 0);
}

/* What takes turns on too few counters is not exact, and shows the share of its time. */
static bool all_exact(const struct report *r)
{
	for (u32 e = 0; e < r->nr_events; e++)
		for (u32 u = 0; u < r->nr_units; u++)
			if (r->events[e].exact &&
			    report_at(r, e, u)->running != report_at(r, e, u)->enabled)
				return false;
	return true;
}

/* Nobody shall take times of the translated run for native ones. Returns @buf. */
static char *translated_note(const struct report_style *style, bool exact, char *buf, size_t size)
{
	snprintf(buf, size,
		 "(%stimes and software events are those of the translated run, typically %s times "
		 "as long)",
		 exact ? "counts of instructions and branches are exact; " : "",
		 !style->machine  ? "1.1 to 3"
		 : style->windows ? "1.4 to 10"
				  : "10 to 120");
	return buf;
}

static void interval_heading(const struct report *r, const struct report_style *style)
{
	FILE *out = style->out;
	char note[600];

	static const char *const names[] = {
		[AGGR_GLOBAL] = "",
		[AGGR_THREAD] = "                comm-pid ",
		[AGGR_CPU] = "CPU        ",
		[AGGR_CORE] = "core            cpus ",
		[AGGR_DIE] = "die          cpus ",
		[AGGR_SOCKET] = "socket cpus ",
		[AGGR_NODE] = "node   cpus ",
	};

	/* At the first one nobody knows what will take turns. */
	if (r->translated && r->interval == 1)
		fprintf(out, "# %s\n", translated_note(style, false, note, sizeof(note)));
	if (style->machine && r->interval == 1)
		fprintf(out, "# %s\n", modeled_note(r, style, note, sizeof(note)));
	if (!style->metric_only)
		fprintf(out, "#           time %s            counts unit events\n", names[r->aggr]);
}

static void pad(FILE *out, int have, int want)
{
	if (have < want)
		fprintf(out, "%*s", want - have, "");
}

static void count(const struct report *r, u32 event, u32 unit, const struct report_style *style)
{
	const struct report_cell *cell = report_at(r, event, unit);
	const struct report_event *ev = &r->events[event];
	double value = report_value(r, event, unit);
	char text[64];

	if (cell->status == AP_STATUS_OK) {
		int decimals = ev->scale != 1 ? 2 : 0;

		number_text(&style->numbers, value, decimals, COUNT_WIDTH, text, sizeof(text));
		fputs(text, style->out);
	} else {
		fprintf(style->out, "%s%*s%s", dim(style), COUNT_WIDTH, report_no_count(cell),
			plain(style));
	}
	fprintf(style->out, " %-*s %s", UNIT_WIDTH, ev->unit, ev->name);
}

/* Prints one derived value; returns its columns. */
static int metric(const struct report_metric *m, const struct report_style *style)
{
	const char *colour = colour_of(style, m->level);
	char text[64];
	int cols;

	number(style, m->value, m->decimals, m->width, text);
	/* A decimal point of several bytes is a column wide. */
	cols = (int)strlen(text) - (int)strlen(style->numbers.point) + 1;
	fprintf(style->out, " # %s%s%s%s", colour, text, m->gap[0] == '%' ? "%" : "",
		*colour ? plain(style) : "");
	return 3 + cols + (m->gap[0] == '%') +
	       fprintf(style->out, "%s%s", m->gap + (m->gap[0] == '%'), m->unit);
}

static void prefix(const struct report *r, u32 unit, const struct report_style *style)
{
	char text[64];

	if (r->part == PART_INTERVAL)
		fprintf(style->out, "%s ", number(style, r->at, 9, 16, text));
	label(r, unit, style->out);
}

static void line(const struct report *r, u32 event, u32 unit, const struct report_style *style)
{
	const struct report_cell *cell = report_at(r, event, unit);
	FILE *out = style->out;
	struct report_metric metrics[METRICS_MAX];
	u32 nr = report_metrics(r, event, unit, metrics);
	const char *cgroup = r->events[event].cgroup;
	int width = cgroup ? NAME_WIDTH + CGROUP_WIDTH : NAME_WIDTH;
	int name = (int)strlen(r->events[event].name), at = 0;
	const struct report_event *ev = &r->events[event];
	bool ok = cell->status == AP_STATUS_OK;
	double error = ok && r->many ? series_error_percent(&cell->count) : 0;
	bool multiplexed = ok && cell->running != cell->enabled;
	bool same = ok && ev->exact && r->many && cell->count.n > 1 && error <= 0;
	char text[64], part[64];

	prefix(r, unit, style);
	count(r, event, unit, style);
	if (cgroup) {
		pad(out, name, NAME_WIDTH);
		name = NAME_WIDTH + fprintf(out, " %s", cgroup);
	}
	report_part_text(r, event, unit, part, sizeof(part));
	if (nr || *part || ev->with_translator || error > 0 || same || multiplexed)
		pad(out, name, width);
	if (nr)
		at = metric(&metrics[0], style);
	else if (*part)
		at = fprintf(out, " # %s", part);
	else if (ev->with_translator)
		at = fprintf(out, " # with the translator's own");
	if (error > 0 || same || multiplexed)
		pad(out, at, METRIC_WIDTH);
	if (error > 0)
		deviation(style, error);
	if (same)
		fprintf(out, "  ( %s 0 )", number_plus_minus());
	if (multiplexed)
		fprintf(out, "  (%s%%)", number(style, report_percent(cell), 2, 0, text));
	putc('\n', out);
	for (u32 i = 1; i < nr; i++) {
		prefix(r, unit, style);
		fprintf(out, "%*s", COUNT_WIDTH + 1 + UNIT_WIDTH + 1 + width, "");
		metric(&metrics[i], style);
		putc('\n', out);
	}
}

static void lines(const struct report *r, const struct report_style *style)
{
	u32 outer = unit_event_first(r->aggr) ? r->nr_events : r->nr_units;
	u32 inner = unit_event_first(r->aggr) ? r->nr_units : r->nr_events;

	for (u32 o = 0; o < outer; o++) {
		for (u32 i = 0; i < inner; i++) {
			u32 event = unit_event_first(r->aggr) ? o : i;
			u32 unit = unit_event_first(r->aggr) ? i : o;

			if (report_at(r, event, unit)->present)
				line(r, event, unit, style);
		}
	}
}

static int column_width(const struct metric_column *column)
{
	int width = (int)strlen(column->name);

	return width > COLUMN_WIDTH ? width : COLUMN_WIDTH;
}

/* One value of --metric-only, without blanks at the end of a line. */
static void metric_cell(const struct report *r, u32 unit, const struct metric_column *column,
			const struct report_style *style)
{
	int width = column_width(column);
	struct report_metric m;
	const char *colour;
	char text[64];

	if (!metric_of_column(r, column, unit, &m)) {
		fprintf(style->out, " %*s", width, "-");
		return;
	}
	colour = colour_of(style, m.level);
	number(style, m.value, m.decimals, width - (m.gap[0] == '%'), text);
	fprintf(style->out, " %s%s%s%s", colour, text, m.gap[0] == '%' ? "%" : "",
		*colour ? plain(style) : "");
}

/* --metric-only: a line a unit, a column a relation. */
static void metric_table(const struct report *r, const struct report_style *style)
{
	FILE *out = style->out;
	u32 nr;
	struct metric_column *columns = metric_columns(r, &nr);

	if (!nr && !style->brief_head)
		fputs(" no metric: nothing that was counted is related to anything but time\n",
		      out);
	if (nr && !style->brief_head) {
		fprintf(out, "%-*s", label_width(r),
			r->part == PART_INTERVAL ? "#           time" : "");
		for (u32 c = 0; c < nr; c++)
			fprintf(out, " %*s", column_width(&columns[c]), columns[c].name);
		putc('\n', out);
	}
	for (u32 u = 0; nr && u < r->nr_units; u++) {
		prefix(r, u, style);
		for (u32 c = 0; c < nr; c++)
			metric_cell(r, u, &columns[c], style);
		putc('\n', out);
	}
	free(columns);
}

/* How many digits behind the point make two of @error significant. */
static int precision(double error)
{
	int digits = 2;

	for (; error > 0 && error < 1 && digits < 11; error *= 10)
		digits++;
	return error > 0 ? digits : 9;
}

static void times(const struct report *r, const struct report_style *style)
{
	double error = series_error(&r->elapsed);
	int digits = precision(error);
	FILE *out = style->out;
	char text[64], other[64];

	if (!r->many) {
		fprintf(out, " %s seconds time elapsed\n",
			number(style, r->elapsed.mean, 9, 17, text));
		if (r->has_usage)
			fprintf(out, "\n %s seconds user\n %s seconds sys\n",
				number(style, r->user, 9, 17, text),
				number(style, r->sys, 9, 17, other));
		return;
	}
	if (style->table) {
		fprintf(out, " %17s# Table of individual measurements:\n", "");
		for (u32 i = 0; i < r->runs; i++) {
			double more = r->run_elapsed[i] - r->elapsed.mean;

			fprintf(out, " %s (%s%s) #\n",
				number(style, r->run_elapsed[i], digits, 17, text),
				more < 0 ? "" : "+", number(style, more, digits, 0, other));
		}
		fprintf(out, "\n %17s# Final result:\n", "");
	}
	fprintf(out, " %s +- %s seconds time elapsed",
		number(style, r->elapsed.mean, digits, 17, text),
		number(style, error, digits, 0, other));
	if (error > 0)
		deviation(style, series_error_percent(&r->elapsed));
	putc('\n', out);
}

/* Without the event that was asked about: the note names all of them. */
static const char *why_of(const struct report_event *ev)
{
	return ev->error.why + ev->error.about;
}

static bool same_refusal(const struct report_event *a, const struct report_event *b)
{
	return !strcmp(why_of(a), why_of(b)) && !strcmp(a->error.remedy, b->error.remedy);
}

/* Whether some count of the event is a part only. */
static bool is_partial(const struct report *r, u32 event)
{
	for (u32 u = 0; u < r->nr_units; u++)
		if (report_at(r, event, u)->present &&
		    report_at(r, event, u)->status == AP_STATUS_PARTIAL)
			return true;
	return false;
}

/* Under the table: why events were refused, once per cause. */
static void refusals(const struct report *r, const struct report_style *style)
{
	for (u32 e = 0; e < r->nr_events; e++) {
		const struct report_event *ev = &r->events[e];
		char note[2048], text[1100];
		size_t len = 0;
		bool told = !ev->refused, partial = false;

		for (u32 b = 0; b < e && !told; b++)
			told = r->events[b].refused && same_refusal(&r->events[b], ev);
		if (told)
			continue;
		for (u32 o = e; o < r->nr_events && len < 600; o++)
			if (r->events[o].refused && same_refusal(&r->events[o], ev)) {
				len += (size_t)snprintf(note + len, sizeof(note) - len, "%s%s",
							len ? ", " : "", r->events[o].name);
				partial |= is_partial(r, o);
			}
		ap_error_text(&ev->error, text, sizeof(text));
		len += (size_t)snprintf(note + len, sizeof(note) - len, ": %s",
					text + ev->error.about);
		if (partial && r->apart)
			snprintf(note + len, sizeof(note) - len,
				 "; %s shows the %s that were counted", r->apart, r->places);
		fputs("\n ", style->out);
		help_wrap(style->out, note, 1, 1, style->width);
	}
}

/* Of what stat itself knows there is nobody to name. */
static bool some_counted(const struct report *r)
{
	for (u32 e = 0; e < r->nr_events; e++)
		if (r->events[e].spec >= 0)
			return true;
	return false;
}

void report_print_text(const struct report *r, const struct report_style *style)
{
	FILE *out = style->out;
	char note[600];

	if (r->part == PART_INTERVAL) {
		if (!style->brief_head)
			interval_heading(r, style);
		if (style->metric_only)
			metric_table(r, style);
		else
			lines(r, style);
		return;
	}
	fputs("\n Performance counter stats for ", out);
	put_name(out, 0, r->target);
	if (r->many)
		fprintf(out, " (%u runs)", r->runs);
	fputs(":\n", out);
	if (*style->pmu_why && some_counted(r))
		fprintf(out, " (%s PMU: %s)\n", style->pmu, style->pmu_why);
	if (r->translated) {
		putc(' ', out);
		help_wrap(out, translated_note(style, all_exact(r), note, sizeof(note)), 1, 1,
			  style->width);
	}
	if (style->machine) {
		char in_brackets[sizeof(note) + 2];

		snprintf(in_brackets, sizeof(in_brackets), "(%s)",
			 modeled_note(r, style, note, sizeof(note)));
		putc(' ', out);
		help_wrap(out, in_brackets, 1, 1, style->width);
	}
	putc('\n', out);
	if (style->metric_only)
		metric_table(r, style);
	else
		lines(r, style);
	if (r->nr_events)
		putc('\n', out);
	times(r, style);
	refusals(r, style);
	if (r->deterministic) {
		deterministic_text(r->seed, r->nondet, note, sizeof(note));
		fputs("\n ", out);
		help_wrap(out, note, 1, 1, style->width);
	}
	if (style->hint) {
		fputs("\n ", out);
		help_wrap(out, style->hint, 1, 1, style->width);
	}
	putc('\n', out);
}
