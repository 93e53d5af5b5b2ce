/* A profile as a table for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/profile/profile.h"

static const char *short_name(const char *object)
{
	const char *slash = strrchr(object, '/');

	return slash && slash[1] ? slash + 1 : object;
}

double profile_percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct widths {
	int comm, object;
};

static struct widths measure(const struct profile *p, int event)
{
	struct widths w = {7, 13}; /* of the headings */

	for (u32 i = 0; i < p->n; i++) {
		const struct profile_row *row = &p->rows[i];
		int len;

		if (row->event != event)
			continue;
		len = row->comm ? (int)strlen(row->comm) : 0;
		w.comm = len > w.comm ? len : w.comm;
		len = row->object ? (int)strlen(short_name(row->object)) : 0;
		w.object = len > w.object ? len : w.object;
	}
	return w;
}

static void print_row(const struct profile *p, const struct profile_row *row, struct widths w,
		      FILE *out)
{
	u64 whole = p->period[row->event];

	if (p->children)
		fprintf(out, "  %7.2f%%", profile_percent(row->children, whole));
	fprintf(out, "  %7.2f%%  %10" PRIu64, profile_percent(row->period, whole), row->samples);
	if (p->keys & PROFILE_COMM)
		fprintf(out, "  %-*s", w.comm, row->comm);
	if (p->keys & PROFILE_OBJECT)
		fprintf(out, "  %-*s", w.object, short_name(row->object));
	if ((p->keys & PROFILE_SYMBOL) && row->symbol)
		fprintf(out, "  [%c] %s", row->kernel ? 'k' : '.', row->symbol);
	else if (p->keys & PROFILE_SYMBOL)
		fprintf(out, "  [%c] 0x%016" PRIx64, row->kernel ? 'k' : '.', row->addr);
	fputc('\n', out);
}

void profile_print(const struct profile *p, const struct reading *r, int event, u32 rows, FILE *out)
{
	struct widths w = measure(p, event);

	fprintf(out, "# %" PRIu64 " samples of %s, standing for %" PRIu64 "\n#\n", p->counts[event],
		reading_event_name(r, event), p->period[event]);
	fprintf(out, "#");
	if (p->children)
		fprintf(out, " Children   ");
	fprintf(out, "%s     Samples", p->children ? "  Self" : " Overhead");
	if (p->keys & PROFILE_COMM)
		fprintf(out, "  %-*s", w.comm, "Command");
	if (p->keys & PROFILE_OBJECT)
		fprintf(out, "  %-*s", w.object, "Shared Object");
	if (p->keys & PROFILE_SYMBOL)
		fprintf(out, "  Symbol");
	fprintf(out, "\n#\n");
	for (u32 i = 0; i < p->n && rows; i++)
		if (p->rows[i].event == event && rows--)
			print_row(p, &p->rows[i], w, out);
	fputc('\n', out);
}
