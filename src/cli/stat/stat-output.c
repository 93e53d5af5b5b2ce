#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/determinism.h"
#include "cli/modeled-events.h"
#include "cli/stat/stat-priv.h"
#include "cli/terminal.h"
#include "cli/report/refused.h"
#include "cli/report/uncounted.h"

/* Asked when there is something to print, so that the command need not wait for the answers. */
static void prepare_style(struct stat_job *st)
{
	struct report_style *style = &st->style;
	struct terminal terminal;

	if (style->width)
		return;
	terminal = terminal_of(style->out);
	style->width = terminal.width;
	style->colour = terminal.colour;
	if (st->opts.big_num)
		number_style_init(&style->numbers);
}

void stat_print(struct stat_job *st, const struct report *r)
{
	/*
	 * Not earlier: it takes a look at the machine, and what is measured should not wait for it.
	 */
	st->style.pmu = stat_pmu_name(st);
	st->style.pmu_why = stat_pmu_why(st);
	st->style.machine = stat_machine(st, r);
	st->style.windows = stat_windows(st, r);
	st->style.hint = stat_hint(st);
	if (!st->opts.json && !st->opts.separator)
		prepare_style(st);
	if (st->opts.json)
		report_print_json(r, &st->style);
	else if (st->opts.separator)
		report_print_csv(r, &st->style);
	else
		report_print_text(r, &st->style);
	fflush(st->style.out);
}

static FILE *open_output(const struct stat_opts *o)
{
	if (o->quiet)
		return fopen("/dev/null", "we");
	if (o->log_fd >= 0)
		return fdopen((int)o->log_fd, "w");
	if (o->output)
		return fopen(o->output, o->append ? "ae" : "we");
	return stderr;
}

int stat_output_open(struct stat_job *st)
{
	static char buffer[16384]; /* stderr is unbuffered otherwise: a system call per number */
	const struct stat_opts *o = &st->opts;
	struct report_style *style = &st->style;
	style->out = open_output(o);
	if (!style->out) {
		if (o->output)
			return command_error(&cmd_stat, "cannot write to '%s': %s", o->output,
					     strerror(errno));
		return command_error(&cmd_stat, "--log-fd: descriptor %ld cannot be written to: %s",
				     o->log_fd, strerror(errno));
	}
	setvbuf(style->out, buffer, _IOFBF, sizeof(buffer));
	style->separator = o->separator;
	style->table = o->table;
	style->metric_only = o->metric_only;
	style->csv_summary = o->csv_summary;
	style->numbers = number_plain;
	return 0;
}

void stat_output_start(const struct stat_job *st)
{
	time_t now = time(NULL);
	char text[32];

	if (st->opts.output && !st->opts.json)
		fprintf(st->style.out, "# started on %s\n", ctime_r(&now, text));
}

void stat_print_deterministic(const struct stat_job *st, const struct report *r)
{
	char note[400];

	deterministic_text(r->seed, r->nondet, note, sizeof(note));
	fprintf(st->style.out, "# %s\n", note);
}

const char *stat_note_mark(const struct stat_job *st)
{
	bool same = st->style.out == stderr;

	if (st->opts.quiet || (st->opts.json && same))
		return NULL;
	return st->opts.separator && same ? "# " : "";
}

void stat_print_modeled(const struct stat_job *st, const struct report *r)
{
	char note[600];

	fprintf(st->style.out, "# %s\n", modeled_note(r, &st->style, note, sizeof(note)));
}

/* In how many places it could be opened, and could not. */
static u32 places_of(const struct stat_job *st, u32 spec, u32 *refused)
{
	u32 n = 0;

	*refused = 0;
	for (u32 p = 0; p < ap_counters_places(st->counters); p++) {
		n += ap_counters_event(st->counters, spec, p) != NULL;
		*refused += ap_counters_refused(st->counters, spec, p);
	}
	return n;
}

void stat_print_partial(struct stat_job *st)
{
	const char *mark = stat_note_mark(st);
	bool columns = st->opts.separator || st->opts.interval_ms;

	if (!mark || !columns || st->opts.json || st->said_partial)
		return;
	for (u32 e = 0; e < st->nr_events; e++) {
		const struct report_event *ev = &st->events[e];
		const char *places, *apart;
		u32 refused, opened;
		char text[1100];

		if (ev->spec < 0 || !ev->refused)
			continue;
		opened = places_of(st, (u32)ev->spec, &refused);
		if (!opened || !refused)
			continue;
		ap_error_text(&ev->error, text, sizeof(text));
		places = stat_places_name(st, &apart);
		fprintf(stderr, "%sanyperf stat: %s: counted for %u of %u %s only: %s\n", mark,
			ev->name, opened, opened + refused, places, text + ev->error.about);
		st->said_partial = true;
	}
}

void stat_print_uncounted(const struct stat_job *st)
{
	const char *mark = stat_note_mark(st);

	if (!mark)
		return;
	uncounted_text(&cmd_stat, st->machine, stderr, mark);
	if (st->opts.verbose)
		refused_text(&cmd_stat, st->machine, stderr, mark);
}
