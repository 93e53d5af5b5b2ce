/* A profile as a table for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/profile/profile.h"
#include "cli/put-name.h"

const char *profile_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const char *shown_name(const char *path, bool in_full)
{
	return in_full ? path : profile_base_name(path);
}

double profile_percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Of the columns that others stand behind. */
struct widths {
	int comm, object, symbol, line, data;
};

/* What a row is called in a column; in @room of 300 bytes where that is made. */
static const char *line_of(const struct profile_row *row, char *room)
{
	if (!row->file)
		return "??:0";
	snprintf(room, 300, "%s:%u", profile_base_name(row->file), row->line);
	return room;
}

static const char *data_of(const struct profile_row *row, char *room)
{
	if (row->data.name)
		return row->data.name;
	snprintf(room, 300, "0x%016" PRIx64, row->data.addr);
	return room;
}

static const char *symbol_of(const struct profile_row *row, char *room)
{
	if (row->symbol)
		return row->symbol;
	snprintf(room, 300, "0x%016" PRIx64, row->addr);
	return room;
}

static void widen(int *width, const char *text)
{
	int len = (int)strlen(text);

	*width = len > *width ? len : *width;
}

static struct widths measure(const struct profile *p, int event)
{
	struct widths w = {7, 13, 2, 11, 11}; /* of the headings */
	char room[300];

	for (u32 i = 0; i < p->n; i++) {
		const struct profile_row *row = &p->rows[i];

		if (row->event != event)
			continue;
		widen(&w.comm, row->comm ? row->comm : "");
		widen(&w.object, row->object ? shown_name(row->object, row->in_full) : "");
		widen(&w.symbol, symbol_of(row, room));
		widen(&w.line, line_of(row, room));
		widen(&w.data,
		      row->data.object ? shown_name(row->data.object, row->data_in_full) : "");
	}
	return w;
}

static void print_name(FILE *out, const char *before, int width, const char *name)
{
	fputs(before, out);
	put_name(out, -width, name);
}

/* What a row is of. */
static void print_place(const struct profile *p, const struct profile_row *row, struct widths w,
			FILE *out)
{
	bool more = p->keys & (PROFILE_LINE | PROFILE_DATA);
	char room[300];

	if (p->keys & PROFILE_PID)
		fprintf(out, "  %7" PRId32, (s32)row->pid);
	if (p->keys & PROFILE_TID)
		fprintf(out, "  %7" PRId32, (s32)row->tid);
	if (p->keys & PROFILE_CPU)
		fprintf(out, "  %3" PRIu32, row->cpu);
	if (p->keys & PROFILE_COMM)
		print_name(out, "  ", w.comm, row->comm);
	if (p->keys & PROFILE_OBJECT)
		print_name(out, "  ", w.object, shown_name(row->object, row->in_full));
	if (p->keys & PROFILE_SYMBOL)
		print_name(out, row->kernel ? "  [k] " : "  [.] ", more ? w.symbol : 0,
			   symbol_of(row, room));
	if (p->keys & PROFILE_LINE)
		print_name(out, "  ", p->keys & PROFILE_DATA ? w.line : 0, line_of(row, room));
	if (p->keys & PROFILE_DATA) {
		print_name(out, "  ", w.data, shown_name(row->data.object, row->data_in_full));
		print_name(out, "  ", 0, data_of(row, room));
	}
	fputc('\n', out);
}

bool profile_shows(const struct profile *p, const struct profile_row *row)
{
	u64 part = p->children ? row->children : row->period;
	u32 event = p->group ? p->group_by : (u32)row->event;

	if (!reading_lists(p->symbols, row->symbol) ||
	    (!reading_lists(p->objects, row->object) &&
	     !reading_lists(p->objects, row->object ? profile_base_name(row->object) : NULL)))
		return false;
	return event >= p->events || profile_percent(part, p->period[event]) >= p->least;
}

static void print_row(const struct profile *p, const struct profile_row *row, struct widths w,
		      FILE *out)
{
	u64 whole = p->period[row->event];

	if (p->children)
		fprintf(out, "  %7.2f%%", profile_percent(row->children, whole));
	fprintf(out, "  %7.2f%%  %10" PRIu64, profile_percent(row->period, whole), row->samples);
	print_place(p, row, w, out);
	call_tree_print(row->tree, p->children ? row->children : row->period, whole, p->tree_least,
			out);
}

static void print_headings(const struct profile *p, struct widths w, FILE *out)
{
	bool more = p->keys & (PROFILE_LINE | PROFILE_DATA);

	if (p->keys & PROFILE_PID)
		fprintf(out, "  %7s", "Pid");
	if (p->keys & PROFILE_TID)
		fprintf(out, "  %7s", "Tid");
	if (p->keys & PROFILE_CPU)
		fprintf(out, "  %3s", "CPU");
	if (p->keys & PROFILE_COMM)
		fprintf(out, "  %-*s", w.comm, "Command");
	if (p->keys & PROFILE_OBJECT)
		fprintf(out, "  %-*s", w.object, "Shared Object");
	if (p->keys & PROFILE_SYMBOL)
		fprintf(out, "  %-*s", more ? w.symbol + 4 : 0, "Symbol");
	if (p->keys & PROFILE_LINE)
		fprintf(out, "  %-*s", p->keys & PROFILE_DATA ? w.line : 0, "Source:Line");
	if (p->keys & PROFILE_DATA)
		fprintf(out, "  %-*s  Data", w.data, "Data Object");
}

void profile_print(const struct profile *p, const struct reading *r, int event, u32 rows, FILE *out)
{
	struct widths w = measure(p, event);

	fprintf(out, "# %" PRIu64 " samples of ", p->counts[event]);
	put_name(out, 0, reading_event_name(r, event));
	fprintf(out, ", standing for %" PRIu64 "\n#\n", p->period[event]);
	fprintf(out, "#");
	if (p->children)
		fprintf(out, " Children   ");
	fprintf(out, "%s     Samples", p->children ? "  Self" : " Overhead");
	print_headings(p, w, out);
	fprintf(out, "\n#\n");
	for (u32 i = 0; i < p->n && rows; i++)
		if (p->rows[i].event == event && profile_shows(p, &p->rows[i]) && rows--)
			print_row(p, &p->rows[i], w, out);
	fputc('\n', out);
}

/* Of an event that the recording has, and of which there is something. */
static bool is_in_group(const struct profile *p, u32 event)
{
	return event < p->events && p->counts[event];
}

static int group_width(const struct reading *r, u32 event)
{
	int width = 21; /* of a count and its share */

	widen(&width, reading_event_name(r, (int)event));
	return width;
}

void profile_print_group(const struct profile *p, const struct reading *r, FILE *out)
{
	struct widths w = measure(p, 0);

	fprintf(out, "# %" PRIu64 " samples of several events: counts, and shares of each\n#\n#",
		p->samples);
	for (u32 e = 0; e < p->group; e++) {
		if (is_in_group(p, e)) {
			fputc(' ', out);
			put_name(out, group_width(r, e), reading_event_name(r, (int)e));
		}
	}
	print_headings(p, w, out);
	fprintf(out, "\n#\n");
	for (u32 i = 0; i < p->n; i++) {
		const struct profile_row *row = &p->rows[i];

		if (!profile_shows(p, row))
			continue;
		fputc(' ', out);
		for (u32 e = 0; e < p->group; e++) {
			u64 n = row->group ? row->group[e] : 0;

			if (is_in_group(p, e))
				fprintf(out, " %*" PRIu64 " %7.2f%%", group_width(r, e) - 9, n,
					profile_percent(n, p->period[e]));
		}
		print_place(p, row, w, out);
	}
	fputc('\n', out);
}
