#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static int prepare_output(struct stat_job *st)
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

/* As perf does at the top of a file, so that several measurements in it can be told apart. */
static void start_file(const struct stat_job *st)
{
	time_t now = time(NULL);
	char text[32];

	if (st->opts.output && !st->opts.json)
		fprintf(st->style.out, "# started on %s\n", ctime_r(&now, text));
}

static void start_report(const struct stat_job *st, struct report *r)
{
	report_init(r, st->opts.aggr, st->events, st->nr_events);
	r->part = st->opts.interval_ms ? PART_SUMMARY : PART_WHOLE;
	/* -r 0 has no end to take a mean at: every run is a report of its own. */
	r->many = st->opts.repeat > 1;
	r->target = st->target;
	r->command = st->opts.command;
	r->guests = st->opts.command && stat_is_virtual(st) ? st->machine : NULL;
}

/* The signal that ended us both, so that a shell's loop ends with us; 0 if it was not so. */
static int shared_end(const struct stat_job *st)
{
	int sig = child_signal(&st->child);

	return st->opts.command && sig && sig == st->signals.ended_by ? sig : 0;
}

/* As a comment: what reads columns passes over it. */
static void print_deterministic(const struct stat_job *st, const struct report *r)
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

/* As above: columns have no place for it. */
static void print_modeled(const struct stat_job *st, const struct report *r)
{
	char note[600];

	fprintf(st->style.out, "# %s\n", modeled_note(r, &st->style, note, sizeof(note)));
}

/* The count is short by what is named first. JSON has a member for it. */
static void print_uncounted(const struct stat_job *st)
{
	const char *mark = stat_note_mark(st);

	if (!mark)
		return;
	uncounted_text(&cmd_stat, st->machine, stderr, mark);
	if (st->opts.verbose)
		refused_text(&cmd_stat, st->machine, stderr, mark);
}

static int measure(struct stat_job *st)
{
	struct report r;
	int failure = 0;
	long run;

	start_report(st, &r);
	for (run = 0; !st->opts.repeat || run < st->opts.repeat; run++) {
		if (st->opts.verbose && st->opts.repeat != 1)
			fprintf(stderr, "anyperf stat: run %ld\n", run + 1);
		if (stat_run(st, &r, &failure)) {
			int turned = stat_turn(st);

			report_release(&r);
			if (turned <= 0)
				return turned ? cmd_stat.failure : failure;
			start_report(st, &r);
			run--;
			continue;
		}
		if (!st->opts.repeat) {
			stat_print(st, &r);
			failure = r.exit_status;
			report_release(&r);
			start_report(st, &r);
		}
		if (st->signals.ended_by)
			break;
	}
	print_uncounted(st);
	if (st->opts.repeat && (!st->opts.interval_ms || st->opts.summary))
		stat_print(st, &r);
	/* Intervals alone, and columns, have no other place for it; JSON has one in each report. */
	if (r.deterministic && !st->opts.json &&
	    (st->opts.separator || (st->opts.interval_ms && !st->opts.summary)))
		print_deterministic(st, &r);
	if (st->style.machine && st->opts.separator && !st->opts.json)
		print_modeled(st, &r);
	if (st->opts.repeat)
		failure = st->opts.command ? r.exit_status : 0;
	report_release(&r);
	return failure;
}

static int run(int argc, char **argv)
{
	struct stat_job st = {0};
	int parsed = stat_opts_parse(&st.opts, argc, argv);
	char why[300];
	int status = cmd_stat.failure, sig;

	if (parsed < 0)
		return command_leave_status(&cmd_stat, parsed);
	st.control.fd = st.control.ack = -1;
	if (stat_prepare(&st) || prepare_output(&st))
		goto out;
	if (st.opts.control && control_open(&st.control, st.opts.control, why, sizeof(why))) {
		command_error(&cmd_stat, "--control: %s", why);
		goto out;
	}
	start_file(&st);
	status = measure(&st);
	signals_release(&st.signals);
	control_close(&st.control);
	fflush(st.style.out);
	if (ferror(st.style.out) && status != cmd_stat.failure) {
		command_error(&cmd_stat, "cannot write the counts: %s", strerror(errno));
		status = cmd_stat.failure;
	}
	sig = shared_end(&st);
	if (sig) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
out:
	stat_release(&st);
	return status;
}

const struct command cmd_stat = {
	.name = "stat",
	.summary = "run a program and count what it does",
	.synopsis = "[options] [--] COMMAND [ARGUMENTS]\n"
		    "[options] -p PIDS | -t TIDS | -a | -C CPUS [--] [COMMAND [ARGUMENTS]]",
	.description =
		"Counts events of a program from its first instruction to its end, with those of its "
		"children, and prints them with what they mean in relation to each other. With -p, -t, -a, "
		"-C or -G something else is measured, for as long as COMMAND runs if there is one, else "
		"until it ends or the measurement is interrupted.\n\n"
		"Without -e these are counted: task-clock, context-switches, cpu-migrations, page-faults, "
		"cycles, instructions, branches, branch-misses. On the virtual PMU cycles, cache misses, branch misses "
		"and the like are those of the model of a machine, which the heading and JSON name "
		"(anyperf-machine(1)). It sees a program in windows unless --model-windows=no is given: what "
		"takes more than some million instructions is estimated. With --machine=none it does not count, and the "
		"usual events are those that cost least.",
	.options = stat_option_table,
	.absent = stat_absent_options,
	.sections = stat_sections,
	.see_also = "anyperf-list(1), anyperf-machine(1), perf-stat(1), perf_event_open(2)",
	.takes_command = true,
	.failure = 125,
	.run = run,
};
