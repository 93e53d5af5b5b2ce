/*
 * PURPOSE: one `anyperf valgrind` at work: valgrind-trace.c reads what the programs execute,
 * valgrind-output.c writes profiles and messages, cmd-valgrind.c lets the time pass.
 */
#ifndef CLI_VALGRIND_VALGRIND_PRIV_H
#define CLI_VALGRIND_VALGRIND_PRIV_H

#include <anyperf/anyperf.h>
#include <stdio.h>

#include "backend/guest-segment.h"
#include "calls/callgrind-file.h"
#include "cli/child.h"
#include "cli/signals.h"
#include "cli/valgrind/valgrind-code.h"
#include "cli/valgrind/valgrind-options.h"

#define VALGRIND_PARTS 1024u

/* A part of a path that was executed by itself. */
struct valgrind_part {
	u64 first, last;
	u64 accesses; /* a hash of what it accesses */
	u32 n;
	struct calls_span *span; /* NULL: none */
};

/* A program that a process has run. */
struct valgrind_program {
	struct valgrind_job *job;
	u32 space, pid; /* which one it is */
	struct calls_graph *graph;
	struct calls_span **span; /* by number of path; owned */
	u32 nr_spans;
	struct event_simulation *simulation; /* NULL: none; owned */
	u16 *slots;                          /* how many each span takes, likewise; owned */
	struct valgrind_part part[VALGRIND_PARTS];
	u32 parts;                     /* written so far */
	struct callgrind_totals total; /* in all of them */
	bool instrumented;
	bool written; /* the last part is */
	struct valgrind_program *next;
};

struct valgrind_reader; /* valgrind-trace.c */

struct valgrind_job {
	struct valgrind_opts opts;
	struct machine caches; /* if they are simulated */
	struct ap_machine *machine;
	struct ap_specs *specs;
	struct ap_sampler *sampler; /* tells of processes and mappings */
	struct child child;
	struct signals signals;
	u32 pid; /* of the command; it may have ended */
	struct code_view *code;
	struct valgrind_program *programs;
	struct valgrind_reader *reader;
	char *command; /* as text; owned */
	FILE *log;     /* messages */
};

/* What the sampler has to tell: mappings, processes. */
void valgrind_take_records(struct valgrind_job *job);

/* Reads what was executed since the last time; whether there was anything. */
bool valgrind_read(struct valgrind_job *job);
/* All that is left, when nobody runs any more; frees the reader. */
void valgrind_read_end(struct valgrind_job *job);

/* Writes what @p has collected since the last part; @trigger NULL: the end of the program. */
void valgrind_write(struct valgrind_program *p, const char *trigger);
/* What stands in the messages when @p has ended. */
void valgrind_say_totals(struct valgrind_program *p);
/* "==PID== text" where messages go. */
void valgrind_say(struct valgrind_job *job, u32 pid, const char *fmt, ...) printf_like(3, 4);
int valgrind_open_log(struct valgrind_job *job);
/* @format with %p and %q{VAR}; to be freed. NULL after saying what is wrong with it. */
char *valgrind_file_name(const char *option, const char *format, u32 pid);

#endif
