#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/modeled-events.h"
#include "cli/record/record-priv.h"

static void log_line(enum ap_log_level level, const char *text, void *data)
{
	(void)level;
	(void)data;
	fprintf(stderr, "anyperf record: %s\n", text);
}

/* The signal that ended us both, so that a shell's loop ends with us; 0 if it was not so. */
static int shared_end(const struct record_job *job)
{
	int sig = WIFSIGNALED(job->child.end.status) ? WTERMSIG(job->child.end.status) : 0;

	return job->opts.command && sig && sig == job->signals.ended_by ? sig : 0;
}

static int prepare(struct record_job *job)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .log = log_line,
					      .log_level = (enum ap_log_level)job->opts.verbose);
	struct ap_virtual_opts virtual_opts =
		AP_OPTS(ap_virtual_opts, .flags = AP_VIRTUAL_TRANSLATIONS_TREE,
			.machine = job->opts.machine, .model_windows = job->opts.model_windows);
	char why[300];

	/* As for `stat`: what is between two words of a control descriptor may be short. */
	if (!job->opts.control)
		virtual_opts.flags |= AP_VIRTUAL_MODEL_WINDOWS_AUTO;
	opts.virtual_pmu = &virtual_opts;
	if (modeled_check(&cmd_record, job->opts.machine) ||
	    model_windows_check(&cmd_record, job->opts.model_windows))
		return -1;
	if (job->opts.exact && job->opts.model_windows &&
	    strcmp(job->opts.model_windows, "no") != 0)
		return command_error(&cmd_record,
				     "--model-windows=%s: with --exact the model sees "
				     "all; leave one of them out",
				     job->opts.model_windows);
	if (opts.log_level > AP_LOG_DEBUG)
		opts.log_level = AP_LOG_DEBUG;
	if (ap_machine_new(&job->machine, &opts))
		return command_error(&cmd_record, "out of memory");
	if (job->opts.control && control_open(&job->control, job->opts.control, why, sizeof(why)))
		return command_error(&cmd_record, "--control: %s", why);
	return record_events_prepare(job);
}

static int run(int argc, char **argv)
{
	struct record_job job = {.argc = argc, .argv = argv, .fd = -1};
	int parsed = record_opts_parse(&job.opts, argc, argv);
	int status = cmd_record.failure, sig;

	if (parsed < 0) {
		record_opts_release(&job.opts);
		return command_leave_status(&cmd_record, parsed);
	}
	job.control.fd = job.control.ack = -1;
	job.signals.fd = -1;
	if (!prepare(&job))
		status = record_run(&job);
	signals_release(&job.signals);
	control_close(&job.control);
	sig = shared_end(&job);
	record_close(&job);
	ap_command_free(job.child.command);
	ap_machine_free(job.machine);
	record_opts_release(&job.opts);
	if (sig) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	return status;
}

const struct command cmd_record = {
	.name = "record",
	.summary = "run a program and sample what it does into a file",
	.synopsis = "[options] [--] COMMAND [ARGUMENTS]\n"
		    "[options] -p PIDS | -t TIDS | -a | -C CPUS [--] [COMMAND [ARGUMENTS]]",
	.description =
		"Looks now and then at what a program and its children are doing, and writes that to "
		"perf.data, for `anyperf report`, `anyperf script` and perf. With -p, -t, -a, -C or -G "
		"something else is recorded, for as long as COMMAND runs if there is one, else until it "
		"ends or the recording is interrupted.",
	.options = record_option_table,
	.absent = record_absent_options,
	.sections = record_sections,
	.see_also = "anyperf-script(1), anyperf-report(1), anyperf-list(1), perf-record(1)",
	.takes_command = true,
	.failure = 125,
	.run = run,
};
