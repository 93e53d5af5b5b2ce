#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stat/stat-priv.h"

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
	stat_print_uncounted(st);
	if (st->opts.repeat && (!st->opts.interval_ms || st->opts.summary))
		stat_print(st, &r);
	/* Intervals alone, and columns, have no other place for it; JSON has one in each report. */
	if (r.deterministic && !st->opts.json &&
	    (st->opts.separator || (st->opts.interval_ms && !st->opts.summary)))
		stat_print_deterministic(st, &r);
	if (st->style.machine && st->opts.separator && !st->opts.json)
		stat_print_modeled(st, &r);
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
	if (stat_prepare(&st) || stat_output_open(&st))
		goto out;
	if (st.opts.control && control_open(&st.control, st.opts.control, why, sizeof(why))) {
		command_error(&cmd_stat, "--control: %s", why);
		goto out;
	}
	stat_output_start(&st);
	status = measure(&st);
	signals_release(&st.signals);
	control_close(&st.control);
	fflush(st.style.out);
	if (ferror(st.style.out) && status != cmd_stat.failure) {
		command_error(&cmd_stat, "cannot write the counts%s%s: %s",
			      st.opts.output ? " to " : "", st.opts.output ? st.opts.output : "",
			      strerror(errno));
		/* What the command says of itself is worth more. */
		status = status ? status : cmd_stat.failure;
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
