/*
 * PURPOSE: one `anyperf valgrind` at work: call-trace.c reads what the programs execute,
 * valgrind-output.c writes profiles and messages, cmd-valgrind.c lets the time pass.
 */
#ifndef CLI_VALGRIND_VALGRIND_PRIV_H
#define CLI_VALGRIND_VALGRIND_PRIV_H

#include <anyperf/anyperf.h>
#include <stdio.h>

#include "cli/call-trace.h"
#include "cli/child.h"
#include "cli/signals.h"
#include "cli/valgrind/valgrind-options.h"

struct valgrind_job {
	struct valgrind_opts opts;
	struct machine caches; /* if they are simulated */
	struct ap_machine *machine;
	struct ap_specs *specs;
	struct ap_sampler *sampler; /* tells of processes and mappings */
	struct child child;
	struct signals signals;
	u32 pid; /* of the command; it may have ended */
	struct call_trace trace;
	struct simulation_opts simulation;
	char *command; /* as text; owned */
	FILE *log;     /* messages */
	bool in_line;  /* what was printed there last has not ended its line */
	bool lost;     /* a profile could not be written */
};

static inline struct valgrind_job *valgrind_job_of(const struct traced_program *p)
{
	return p->trace->data;
}

/* Writes what @p has collected since the last part; @trigger NULL: the end of the program. */
void valgrind_write(struct traced_program *p, const char *trigger);
/* What stands in the messages when @p has ended. */
void valgrind_say_totals(struct traced_program *p);
/* "==PID== text" where messages go. */
void valgrind_say(struct valgrind_job *job, u32 pid, const char *fmt, ...) printf_like(3, 4);
/* There, what a client request prints; if it is @marked lines have "**PID** " in front of them. */
void valgrind_print(struct traced_program *p, const char *text, bool marked);
int valgrind_open_log(struct valgrind_job *job);
/* Before the command runs: whether its profile can be written. -1 after saying that it cannot. */
int valgrind_check_output(const struct valgrind_job *job);
/* @format with %p and %q{VAR}; to be freed. NULL after saying what is wrong with it. */
char *valgrind_file_name(const char *option, const char *format, u32 pid);

#endif
