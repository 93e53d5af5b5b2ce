/* The file, or files, or stream: what goes into it, and what is said of it at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/record/record-exact.h"
#include "cli/modeled-events.h"
#include "cli/record/record-priv.h"
#include "cli/report/uncounted.h"
#include "lib/command.h"
#include "lib/machine/machine-pmu.h"
#include "data/synthesize.h"
#include "elf/build-id.h"

#define DEFAULT_PATH "perf.data"

void record_output_progress_end(struct record_job *job)
{
	if (job->progress)
		fputs("\r\033[K", stderr);
	job->progress = false;
}

/* Writing goes on with whoever reads what is written so far; recording does not. */
static void give_up(struct record_job *job, const struct ap_error *err)
{
	if (job->broken)
		return;
	job->broken = true;
	record_output_progress_end(job);
	if (err->code == -EPIPE)
		command_error(&cmd_record, "whoever read the recording has gone");
	else
		command_error(&cmd_record,
			      "%s; what was written until now can be read, recording ends here",
			      err->why);
}

static int put(struct record_job *job, const void *records, size_t len)
{
	struct ap_error err;

	data_tally_add(&job->tally, records, len);
	if (job->exact)
		record_exact_note(job, records, len);
	if (data_writer_append(job->writer, records, len, &err))
		give_up(job, &err);
	return 0;
}

/* False: there is no memory for it. */
static bool hold(struct record_job *job, const void *record, size_t len)
{
	if (job->held_len + len > job->held_room) {
		size_t room = (job->held_len + len) * 2;
		u8 *more = realloc(job->held, room);

		if (!more)
			return false;
		job->held = more;
		job->held_room = room;
	}
	memcpy(job->held + job->held_len, record, len);
	job->held_len += len;
	return true;
}

/* What tells of tasks is this file's, the rest the next one's. */
static void divide(struct record_job *job, const u8 *records, size_t len)
{
	struct perf_event_header h;

	for (const u8 *end = records + len; (size_t)(end - records) >= sizeof(h);
	     records += h.size) {
		memcpy(&h, records, sizeof(h));
		if (h.size < sizeof(h) || h.size > (size_t)(end - records))
			return;
		if (data_tells_of_tasks(h.type) || !hold(job, records, h.size))
			(void)put(job, records, h.size);
	}
}

static int take(const void *records, size_t len, void *data)
{
	struct record_job *job = data;

	if (job->broken)
		return 0;
	if (job->opts.switch_when)
		data_task_log_add(&job->task_log, records, len);
	if (!job->switching)
		return put(job, records, len);
	divide(job, records, len);
	return 0;
}

static bool is_fifo(const struct record_opts *o)
{
	struct stat st;

	return o->output && !stat(o->output, &st) && S_ISFIFO(st.st_mode);
}

/* Also by another name, as /dev/stdout: what the command prints must not come in between. */
static bool is_stdout(const struct record_opts *o)
{
	struct stat out, st;

	if (o->output && !is_fifo(o))
		return !strcmp(o->output, "-");
	return !o->switch_when && !fstat(STDOUT_FILENO, &out) && S_ISFIFO(out.st_mode) &&
	       (!o->output ||
		(!stat(o->output, &st) && st.st_dev == out.st_dev && st.st_ino == out.st_ino));
}

int record_output_prepare(struct record_job *job)
{
	bool fifo = is_fifo(&job->opts);

	if (fifo && job->opts.switch_when)
		return command_error(&cmd_record, "--switch-output makes files, and '%s' is a FIFO",
				     job->opts.output);
	job->pipe = fifo || is_stdout(&job->opts);
	if (!job->pipe)
		return 0;
	if (fifo && !is_stdout(&job->opts)) {
		/* Here, where a signal still ends it, for it waits for a reader. */
		job->fd = open(job->opts.output, O_WRONLY | O_CLOEXEC);
		return job->fd < 0 ? command_error(&cmd_record, "cannot write to '%s': %s",
						   job->opts.output, strerror(errno))
				   : 0;
	}
	job->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (job->fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return command_error(&cmd_record, "cannot write to stdout: %s", strerror(errno));
	return 0;
}

static int open_file(struct record_job *job)
{
	struct stat st;
	char old[4096];

	if (job->pipe)
		return 0;
	job->path = job->opts.output ? job->opts.output : DEFAULT_PATH;
	if (!stat(job->path, &st) && S_ISREG(st.st_mode) && st.st_size) {
		snprintf(old, sizeof(old), "%s.old", job->path);
		(void)rename(job->path, old);
	}
	job->fd = open(job->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (job->fd < 0)
		return command_error(&cmd_record, "cannot write to '%s': %s", job->path,
				     strerror(errno));
	return 0;
}

/* Whether any event does, as it was opened. */
static bool sees_kernel(const struct record_job *job)
{
	for (u32 i = 0; i < job->nr_events; i++)
		if (!job->events[i].attr.exclude_kernel)
			return true;
	return false;
}

/* What runs already; of a command that waits to be started nothing is worth telling. */
static void synthesize(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	const struct data_synthesis s = {.layout = &job->layout,
					 .data_maps = record_opts_data_maps(o),
					 .put = take,
					 .data = job};

	if (sees_kernel(job))
		(void)data_synthesize_kernel(&s);
	if (o->pids || o->tids)
		for (u32 i = 0; i < job->nr_pids; i++)
			(void)data_synthesize_process(&s, job->pids[i]);
	else if (record_opts_has_target(o))
		(void)data_synthesize_all(&s);
}

/* What the files before have told of what runs now. */
static void tell_again(struct record_job *job)
{
	data_task_log_trim(&job->task_log);
	job->told_again = job->task_log.len;
	(void)put(job, job->task_log.bytes, job->task_log.len);
	(void)put(job, job->held, job->held_len);
	job->held_len = 0;
}

static void gather(struct record_job *job, struct data_features *f)
{
	char name[128], windows[32];
	bool modeled = false, often = false;

	data_features_gather(f, job->events, job->nr_events, job->argc, job->argv);
	for (u32 i = 0; i < job->nr_events; i++) {
		const struct pe_attr *attr = &job->events[i].attr;
		bool is = modeled_event((const struct perf_event_attr *)attr);

		modeled |= is;
		often |= is && attr->freq;
	}
	if (modeled && ap_machine_pmu(job->machine) == AP_PMU_VIRTUAL &&
	    ap__pmu_modeled(job->machine, name, sizeof(name)))
		data_features_add_machine(
			f, name,
			often && ap__pmu_windows(job->machine, windows, sizeof(windows)) ? windows
											 : NULL);
}

int record_output_begin(struct record_job *job)
{
	struct data_writer_opts opts = {.level = job->opts.level};
	struct data_features features = {0};
	struct ap_error err;
	int r;

	if (open_file(job))
		return -1;
	opts.pipe = job->pipe;
	if (job->pipe)
		gather(job, &features);
	data_tally_init(&job->tally, &job->layout);
	job->take = take;
	job->file_start = record_now();
	r = data_writer_open(&job->writer, job->fd, &opts, &err);
	if (!r)
		r = data_writer_start(job->writer, job->events, job->nr_events, &features, &err);
	data_features_release(&features);
	if (r)
		return record_say(&err, NULL);
	if (job->files)
		tell_again(job);
	else
		synthesize(job);
	return 0;
}

void record_output_pass(struct record_job *job)
{
	struct ap_error err;

	for (int i = 0; i < 2; i++) {
		struct ap_sampler *s = record_drained(job, i);

		if (s && ap_sampler_drain(s, take, job, &err))
			record_say(&err, NULL);
	}
	if (job->opts.switch_when)
		data_task_log_pass(&job->task_log);
	/* What is told at the end belongs to all times: it is one round. */
	if (!job->exact && !job->broken && data_writer_round(job->writer, &err))
		give_up(job, &err);
}

/*
 * Buffers are read one after the other: who has a sample in the second one may have begun after the
 * first one was read. So they are read once more, and what that brings of tasks is for the samples
 * that are in the file already.
 */
void record_output_last_pass(struct record_job *job)
{
	record_output_pass(job);
	job->switching = true;
	record_output_pass(job);
	job->switching = false;
}

void record_output_snapshot(struct record_job *job)
{
	struct ap_record rec;
	struct ap_error err;
	int n;

	if (!job->opts.overwrite)
		return;
	if (ap_sampler_snapshot(job->sampler, &err)) {
		record_say(&err, NULL);
		return;
	}
	while ((n = ap_sampler_next(job->sampler, &rec, &err))) {
		if (n > 0)
			take(rec.bytes, rec.size, job);
		else
			record_say(&err, NULL);
	}
	/* They reach back to before rounds that are in the file: one round holds all. */
	if (!job->broken && data_writer_round(job->writer, &err))
		give_up(job, &err);
}

/* What lies there now is not what was mapped if it is another inode. */
static bool id_of(const struct data_file *file, struct elf_build_id *id)
{
	struct stat st;

	*id = elf_build_id_made(file->build_id, file->build_id_size);
	return id->size || ((!file->ino || (!stat(file->name, &st) && st.st_ino == file->ino)) &&
			    elf_build_id_of_file(file->name, id));
}

static void add_build_ids(struct record_job *job, struct data_features *f)
{
	struct elf_build_id id;

	if (sees_kernel(job) && elf_build_id_of_kernel(&id))
		data_features_add_build_id(f, "[kernel.kallsyms]", PERF_RECORD_MISC_KERNEL,
					   id.bytes, id.size);
	for (u32 i = 0; i < job->tally.room; i++) {
		const struct data_file *file = &job->tally.files[i];

		if (file->name && id_of(file, &id))
			data_features_add_build_id(f, file->name, PERF_RECORD_MISC_USER, id.bytes,
						   id.size);
	}
}

/* What nobody has told in a record, so that the file knows it too. */
static void add_lost(struct record_job *job)
{
	const struct data_synthesis s = {.layout = &job->layout, .put = take, .data = job};
	uint64_t lost = 0, more;

	for (int i = 0; i < 2; i++) {
		struct ap_sampler *drained = record_drained(job, i);
		int err = drained ? ap_sampler_lost(drained, &more) : -ENOENT;

		if (!err) {
			lost += more;
		} else if (err == -ENODEV && ap__machine_virtual(job->machine) && !job->broken) {
			command_error(&cmd_record,
				      "the session of the virtual PMU was killed: what "
				      "came after that is not recorded");
			job->broken = true;
		}
	}
	if (lost > job->lost_told + job->tally.lost) {
		more = lost - job->lost_told - job->tally.lost;
		(void)data_synthesize_lost(&s, more);
		job->tally.lost += more;
	}
}

static const char *plural(u64 n)
{
	return n == 1 ? "" : "s";
}

/*
 * "perf.data.2026013112300512": the time at which it ended, as perf has it. A second one in the
 * same hundredth of a second has ".1" behind it, and replaces nothing.
 */
static void name_by_time(struct record_job *job)
{
	struct timespec now;
	char path[4200], stamp[32];
	struct tm tm;
	int n, err;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	n = snprintf(path, sizeof(path), "%s.%s%02ld", job->path, stamp, now.tv_nsec / 10000000);
	err = renameat2(AT_FDCWD, job->path, AT_FDCWD, path, RENAME_NOREPLACE);
	for (unsigned int i = 1; err && errno == EEXIST && i < 1000; i++) {
		snprintf(path + n, sizeof(path) - (size_t)n, ".%u", i);
		err = renameat2(AT_FDCWD, job->path, AT_FDCWD, path, RENAME_NOREPLACE);
	}
	/* Not every file system can promise to replace nothing. */
	if (err && errno == EINVAL)
		err = rename(job->path, path);
	if (err)
		command_error(&cmd_record, "cannot rename '%s' to '%s': %s", job->path, path,
			      strerror(errno));
	else if (!job->opts.quiet)
		fprintf(stderr, "anyperf record: %llu sample%s in %s\n",
			(unsigned long long)job->tally.samples, plural(job->tally.samples), path);
}

void record_output_end(struct record_job *job, bool switching)
{
	struct data_features features = {0};
	u64 times[2];
	struct ap_error err;

	if (!job->writer)
		return;
	if (!job->broken)
		add_lost(job);
	times[0] = job->tally.first;
	times[1] = job->tally.last;
	if (!job->pipe) {
		gather(job, &features);
		if (times[0])
			(void)!data_piece_add(&features.of[DATA_SAMPLE_TIME], times, sizeof(times));
	}
	add_build_ids(job, &features);
	if (data_writer_finish(job->writer, &features, &err))
		give_up(job, &err);
	data_features_release(&features);
	job->bytes += data_writer_bytes(job->writer);
	data_writer_close(job->writer);
	job->writer = NULL;
	if (!job->pipe && close(job->fd) && !job->broken)
		command_error(&cmd_record, "writing '%s': %s", job->path, strerror(errno));
	job->samples += job->tally.samples;
	job->lost_told += job->tally.lost;
	job->files++;
	if (switching)
		name_by_time(job);
	data_tally_release(&job->tally);
}

/* A command that prints on the terminal itself would be disturbed, and would disturb. */
static bool shows_progress(const struct record_job *job)
{
	const struct record_opts *o = &job->opts;

	return !o->quiet && isatty(STDERR_FILENO) && !(o->command && isatty(STDOUT_FILENO));
}

void record_output_progress(struct record_job *job)
{
	u64 bytes = job->bytes + (job->writer ? data_writer_bytes(job->writer) : 0);
	u64 samples = job->samples + job->tally.samples;

	if (!shows_progress(job))
		return;
	fprintf(stderr, "\ranyperf record: %llu sample%s, %.1f MB so far; ^C ends it",
		(unsigned long long)samples, plural(samples), (double)bytes / 1e6);
	job->progress = true;
}

void record_output_summary(struct record_job *job)
{
	double mb = (double)job->bytes / 1e6;
	const char *where = job->pipe ? "the stream" : job->path;

	if (job->lost_told)
		command_error(&cmd_record,
			      "%llu SAMPLE%s LOST, beside %llu recorded: the buffers (%u pages) "
			      "were full; try -m %u, or fewer samples",
			      (unsigned long long)job->lost_told,
			      job->lost_told == 1 ? " IS" : "S ARE",
			      (unsigned long long)job->samples, ap_sampler_pages(job->sampler),
			      ap_sampler_pages(job->sampler) * 4);
	if (!job->samples && job->exact && job->opts.toggle)
		command_error(
			&cmd_record,
			"NO SAMPLES: no function that --toggle=%s fits was executed; `anyperf "
			"record --exact` and `anyperf report` without it show which there are",
			job->opts.toggle);
	else if (!job->samples)
		command_error(&cmd_record,
			      "NO SAMPLES: what was recorded did not run long enough, or the event "
			      "did not occur");
	uncounted_text(&cmd_record, job->machine, stderr, "");
	if (job->opts.quiet)
		return;
	if (job->exact) {
		record_exact_summary(job, where);
		return;
	}
	/* Which of those that were taken are in the file is for its reader to count. */
	if (job->broken)
		fprintf(stderr, "anyperf record: %.3f MB are in %s\n", mb, where);
	else if (job->files > 1 || job->opts.switch_when)
		fprintf(stderr, "anyperf record: %llu sample%s, %.3f MB in %u file%s\n",
			(unsigned long long)job->samples, plural(job->samples), mb, job->files,
			plural(job->files));
	else
		fprintf(stderr, "anyperf record: %llu sample%s, %.3f MB in %s\n",
			(unsigned long long)job->samples, plural(job->samples), mb, where);
}
