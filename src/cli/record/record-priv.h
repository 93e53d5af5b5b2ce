/*
 * PURPOSE: one `anyperf record` at work, as its parts hand it around: record-events.c says what is
 * sampled, record-open.c opens it, record-run.c lets the time pass, record-output.c writes.
 */
#ifndef CLI_RECORD_RECORD_PRIV_H
#define CLI_RECORD_RECORD_PRIV_H

#include <anyperf/anyperf.h>

#include "cli/child.h"
#include "cli/control-words.h"
#include "cli/record/record-options.h"
#include "cli/signals.h"
#include "data/tally.h"
#include "data/task-log.h"
#include "data/writer.h"

struct record_job {
	struct record_opts opts;
	int argc;
	char **argv;
	struct ap_machine *machine;
	struct ap_specs *specs;
	struct ap_sampler *sampler;
	/*
	 * What tasks do comes from an event of its own where samples have buffers that overwrite,
	 * begin late or may pause, or are of CPUs: files that were mapped meanwhile, or while what
	 * ran already was listed, would have no names.
	 */
	struct ap_specs *task_specs;
	struct ap_sampler *tasks;
	bool tasks_on_exec; /* a command's begins when that is executed */
	char *announced;    /* who samples, if that must be said; owned, NULL: nothing to say */

	pid_t *pids; /* of -p or -t; owned */
	u32 nr_pids;
	struct child child;
	struct signals signals;
	struct control control;
	bool enabled;

	/* What is written. */
	struct data_event *events; /* owned, with names and ids */
	u32 nr_events;
	struct ap_layout layout; /* of the first event */
	int fd;
	bool pipe;
	const char *path; /* NULL: a pipe */
	struct data_writer *writer;
	struct data_tally tally;       /* of this file */
	u64 samples, lost_told, bytes; /* of all files */
	u32 files;
	struct data_task_log task_log; /* with --switch-output: for the next file */
	u64 told_again;                /* bytes of this file that are from it */
	bool switching;                /* samples that are read now are the next file's */
	u8 *held;                      /* owned: those, with what else does not tell of tasks */
	size_t held_len, held_room;
	u64 file_start;             /* when the file was begun, now_ns() */
	struct record_exact *exact; /* with --exact; owned */
	ap_records_fn *take;        /* adds records to the file; its data is the job */
	bool progress;              /* stands on the terminal */
	bool broken;                /* writing has failed, and it was said */
};

/* The events of the options, or the default. 0, or -1 after saying what is wrong. */
must_check int record_events_prepare(struct record_job *job);

/* Opens the events with their buffers. 0, or -1 after saying why not. */
must_check int record_open(struct record_job *job);
void record_close(struct record_job *job);

/*
 * Before there is a command: a stream gets stdout for itself, and what the command prints there
 * goes to stderr, as with perf. 0, or -1 after saying why not.
 */
must_check int record_output_prepare(struct record_job *job);

/* Begins a file or the stream: header, events, what was there before. 0, or -1 after saying why. */
must_check int record_output_begin(struct record_job *job);

/* Empties all buffers into it, once, but for those that overwrite. */
void record_output_pass(struct record_job *job);

/* The one before the next file is begun. */
void record_output_last_pass(struct record_job *job);

/* With --overwrite: takes what the buffers hold. */
void record_output_snapshot(struct record_job *job);

/* Ends the file. With @switching it gets the time as its name. */
void record_output_end(struct record_job *job, bool switching);

/*
 * On a terminal: how much there is so far, in a line that is written over; and takes the line away
 * before something else is said.
 */
void record_output_progress(struct record_job *job);
void record_output_progress_end(struct record_job *job);

/* Says how it went. */
void record_output_summary(struct record_job *job);

/* Lets the time pass. Returns the exit status. */
int record_run(struct record_job *job);

u64 record_now(void);

/* One of the samplers, the @i-th, 0 or 1, that are emptied as they fill; NULL: there is none. */
struct ap_sampler *record_drained(const struct record_job *job, int i);

/* Says @err on stderr, behind @what (NULL: nothing). Returns -1. */
int record_say(const struct ap_error *err, const char *what);

#endif
