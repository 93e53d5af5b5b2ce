/* `anyperf compare`: commands side by side. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/compare/compare-facts.h"
#include "cli/compare/compare-symbols.h"
#include "cli/report/report.h"
#include "cli/report/uncounted.h"

bool compare_is_virtual(const struct compare_job *job)
{
	return !job->opts.pmu || !strcmp(job->opts.pmu, "virtual");
}

char *compare_line(char *text)
{
	for (char *c = text; *c; c++)
		if ((u8)*c < ' ' || *c == 0x7f)
			*c = ' ';
	return text;
}

static void prepare_sides(struct compare_job *job)
{
	static const char *const letters[COMPARE_SIDES_MAX] = {"A", "B", "C", "D",
							       "E", "F", "G", "H"};
	const struct compare_opts *o = &job->opts;

	u32 stored = o->baseline ? 1 : 0; /* it comes first, and is what others are held against */

	job->nr_sides = stored + o->nr_commands;
	job->sides = calloc(job->nr_sides, sizeof(*job->sides));
	CHECK(job->sides);
	job->sides[0].stored = stored;
	for (u32 i = 0; i < o->nr_commands; i++) {
		struct compare_side *side = &job->sides[stored + i];

		side->argv = o->commands[i];
		side->name = i < o->names.n ? o->names.at[i] : letters[i];
		side->title = compare_line(report_command(side->argv));
	}
}

/* What main() has put there is closed on exec; what we were started with is not. */
static bool is_shut(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags < 0 || flags & FD_CLOEXEC;
}

/*
 * Standard descriptors that are shut are /dev/null for the commands, so that all of them have the
 * same. Standard output must be there.
 */
static int fill_standard(const struct compare_job *job)
{
	if (!job->opts.output && is_shut(STDOUT_FILENO))
		return command_error(&cmd_compare, "cannot write to standard output: %s",
				     strerror(EBADF));
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int null = is_shut(fd) ? open("/dev/null", O_RDWR) : fd;

		if (null < 0 || (null != fd && dup2(null, fd) < 0))
			return command_error(&cmd_compare, "cannot open /dev/null: %s",
					     strerror(errno));
		if (null != fd)
			close(null);
	}
	return 0;
}

/* Of all that a file has, or of its name, if that is a device, which has no end. */
static void hash_input(struct compare_job *job, bool regular)
{
	static char piece[1 << 16];
	u64 hash = COMPARE_HASH;
	off_t at = 0;
	ssize_t n;

	while (regular && (n = pread(job->input, piece, sizeof(piece), at)) > 0) {
		hash = compare_hash_more(hash, piece, (size_t)n);
		at += n;
	}
	if (!regular)
		hash = compare_hash_more(hash, job->opts.input, strlen(job->opts.input));
	snprintf(job->input_hash, sizeof(job->input_hash), "%016llx", (unsigned long long)hash);
}

/* What runs read, each from its beginning. */
static int open_input(struct compare_job *job)
{
	const char *path = job->opts.input ? job->opts.input : "/dev/null";
	struct stat st;

	job->input = open(path, O_RDONLY | O_CLOEXEC);
	if (job->input < 0)
		return command_error(&cmd_compare, "--input: cannot read '%s': %s", path,
				     strerror(errno));
	if (!job->opts.input || fstat(job->input, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && lseek(job->input, 0, SEEK_CUR) < 0)
		return command_error(&cmd_compare,
				     "--input: '%s' can be read only once, and there are several "
				     "runs",
				     path);
	hash_input(job, S_ISREG(st.st_mode));
	return 0;
}

static int open_files(struct compare_job *job)
{
	const char *output = job->opts.output;

	if (fill_standard(job))
		return -1;
	job->no_output = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (job->no_output < 0)
		return command_error(&cmd_compare, "cannot open /dev/null: %s", strerror(errno));
	if (open_input(job))
		return -1;
	job->out = output ? fopen(output, "we") : stdout;
	if (!job->out)
		return command_error(&cmd_compare, "cannot write to '%s': %s", output,
				     strerror(errno));
	return 0;
}

static void say_uncounted(const struct compare_job *job)
{
	for (u32 i = 0; i < job->nr_sides; i++)
		if (job->sides[i].count_runs && job->sides[i].machine && compare_is_virtual(job))
			uncounted_text(&cmd_compare, job->sides[i].machine, stderr, "");
}

static bool has_results(const struct compare_job *job)
{
	return job->rounds ||
	       (job->sides[0].count_runs && job->sides[job->nr_sides - 1].count_runs);
}

static int print(struct compare_job *job)
{
	const char *format = job->opts.format ? job->opts.format : "text";

	if (!strcmp(format, "json"))
		compare_print_json(job);
	else if (!has_results(job))
		return 0;
	else if (!strcmp(format, "markdown"))
		compare_print_markdown(job, job->out);
	else if (!strcmp(format, "csv"))
		compare_print_csv(job);
	else if (!strcmp(format, "github"))
		return compare_print_github(job);
	else
		compare_print_text(job);
	return 0;
}

static int close_output(struct compare_job *job)
{
	int err = 0;

	if (fflush(job->out) || ferror(job->out))
		err = errno ? errno : EIO;
	/* What standard output could not take is said for all commands at the end. */
	if (job->out == stdout)
		return 0;
	if (fclose(job->out) && !err)
		err = errno;
	if (!err)
		return 0;
	command_error(&cmd_compare, "cannot write to '%s': %s", job->opts.output, strerror(err));
	return cmd_compare.failure;
}

static int compare(struct compare_job *job)
{
	int status, written;

	if (compare_baseline_try(job))
		return cmd_compare.failure;
	if (!job->opts.time_only && compare_prepare_counts(job))
		return job->status;
	if (job->opts.baseline && compare_baseline_load(job))
		return job->status;
	if (compare_check_gates(job))
		return cmd_compare.failure;
	if (!compare_warm_up(job) && (job->opts.time_only || !compare_count(job)) &&
	    (!job->opts.by || !compare_symbols(job)) && !job->opts.counts_only)
		(void)!compare_time(job);
	compare_progress(job, "%s", "");
	status = job->status;
	if (status && status != 2)
		return status;
	/* What is not complete is not judged. */
	if (!status && !compare_is_interrupted(job)) {
		if (compare_baseline_check(job))
			return job->status;
		status = compare_judge(job);
		if (compare_baseline_save(job))
			return cmd_compare.failure;
		if (job->opts.update && job->nr_sides == 1 && job->opts.nr_gates) {
			command_error(&cmd_compare,
				      "no limit of --fail-if was tested: there was nothing to "
				      "compare with; from now on there is");
			status = 2;
		}
	}
	say_uncounted(job);
	if (compare_is_interrupted(job) && !has_results(job))
		command_error(&cmd_compare, "interrupted, before there was anything to compare");
	written = print(job) ? cmd_compare.failure : 0;
	if (close_output(job))
		written = cmd_compare.failure;
	return written ? written : status;
}

static void release_side(struct compare_side *side)
{
	for (u32 i = 0; i < side->nr_counts; i++)
		free(side->counts[i].name);
	free(side->counts);
	for (u32 q = 0; q < TIMED_QUANTITIES; q++)
		free(side->timed[q]);
	free(side->title);
	ap_specs_free(side->specs);
	ap_machine_free(side->machine);
}

static int run(int argc, char **argv)
{
	struct compare_job job = {.input = -1, .no_output = -1, .signals.fd = -1};
	int parsed = compare_opts_parse(&job.opts, argc, argv);
	int status = cmd_compare.failure, sig;

	if (parsed < 0)
		return command_leave_status(&cmd_compare, parsed);
	prepare_sides(&job);
	compare_environment(&job);
	job.progress = isatty(STDERR_FILENO) && !job.opts.show_output;
	if (!open_files(&job))
		status = compare(&job);
	sig = job.signals.ended_by;
	if (job.signals.blocked)
		signals_release(&job.signals);
	for (u32 i = 0; i < job.nr_sides; i++)
		release_side(&job.sides[i]);
	free(job.sides);
	compare_symbols_free(&job);
	free(job.judged);
	ap_machine_free(job.native);
	compare_baseline_free(&job);
	compare_environment_free(&job);
	compare_opts_release(&job.opts);
	/* So that a shell's loop ends with us. */
	if (sig) {
		fflush(stdout);
		signal(sig, SIG_DFL);
		raise(sig);
	}
	return status;
}

const struct command cmd_compare = {
	.name = "compare",
	.summary = "run commands side by side and show what changed",
	.synopsis = "[options] [--] COMMAND [ARGUMENTS] --vs COMMAND [ARGUMENTS] [--vs ...]\n"
		    "[options] --save FILE | --baseline FILE [--] COMMAND [ARGUMENTS]",
	.description =
		"Runs two versions of a program, or more, and shows by how much they differ. Each is counted "
		"at least twice on the virtual PMU, in deterministic runs, in turns. Counts that are the same in "
		"each run are exact, however busy the machine is: one instruction more is a change. Others "
		"are shown with their range, and with what the program has made use of that varies between "
		"runs.\n\n"
		"Then each is timed: run natively, in rounds of one run each, in random order. Shown are medians, "
		"and by how much the command's is above that of the first, with the interval in which the true "
		"difference lies with 95 % (the bootstrap). If 0 is in it, no difference is shown. Counts and "
		"times are never of the same run.\n\n"
		"The commands find /dev/null as standard input and output, and of the environment only what "
		"does not vary with the shell and the user; see --env.",
	.options = compare_option_table,
	.sections = compare_sections,
	.see_also = "anyperf-stat(1)",
	.takes_command = true,
	.between = "--vs",
	.failure = 125,
	.run = run,
};
