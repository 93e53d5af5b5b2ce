/*
 * PURPOSE: profiles as callgrind and cachegrind write them, for callgrind_annotate, cg_annotate,
 * KCachegrind and whatever else reads these formats: "Callgrind Format Specification" in Valgrind's
 * manual, and the comments of cg_annotate.
 */
#ifndef CALLS_CALLGRIND_FILE_H
#define CALLS_CALLGRIND_FILE_H

#include <stdio.h>

#include "calls/calls.h"
#include "model/machine.h"

/* Where code is: of an instruction. */
struct calls_line {
	const char *file;     /* NULL: nobody knows */
	u32 line;             /* 0: nobody knows */
	u64 address;          /* as its object has it */
	const char *function; /* NULL: nobody knows; for cachegrind's file only */
};

struct callgrind_style {
	bool instr, line; /* positions: at least one of them */
	bool compress_strings, compress_pos;
	const char *creator;
	const char *command;   /* the command line */
	u32 pid, part, thread; /* thread 0: all of them */
	const char *trigger;   /* NULL: the end of the program */
	/* What was simulated: columns behind Ir. */
	bool caches, branches;
	const struct machine *machine; /* whose caches they were; NULL without */
	bool appending;                /* the file has the head already */
	void (*find)(void *data, u64 pc, struct calls_line *line);
	void *data;
};

/* Sums of all that was written, to which is added. */
struct callgrind_totals {
	u64 instructions;
	struct event_counts events;
};

static inline void callgrind_totals_add(struct callgrind_totals *to,
					const struct callgrind_totals *more)
{
	to->instructions += more->instructions;
	event_counts_add(&to->events, &more->events);
}

/* One part. */
void callgrind_write(FILE *f, const struct calls_profile *p, const struct callgrind_style *s,
		     struct callgrind_totals *totals);

/* The whole file. @p has costs alone; of their functions nothing is used. */
void cachegrind_write(FILE *f, const struct calls_profile *p, const struct callgrind_style *s,
		      struct callgrind_totals *totals);

/* "32768 B, 64 B, 8-way associative": of @id of @m, as these files have it. Returns @text. */
char *callgrind_cache_text(const struct machine *m, enum machine_cache_id id, char *text,
			   size_t size);

/* " Ir Dr Dw" and so on: the columns of callgrind, behind the first. */
void callgrind_columns(FILE *f, const struct event_counts *e, bool caches, bool branches);

/* A command line as it stands in such a file; to be freed. */
char *callgrind_command(char *const *argv);

#endif
