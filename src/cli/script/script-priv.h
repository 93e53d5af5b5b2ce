/*
 * PURPOSE: one `anyperf script` at work: cmd-script.c reads, script-text.c and script-json.c print.
 */
#ifndef CLI_SCRIPT_SCRIPT_PRIV_H
#define CLI_SCRIPT_SCRIPT_PRIV_H

#include <stdio.h>

#include "cli/reading.h"

enum script_field {
	FIELD_COMM,
	FIELD_PID,
	FIELD_TID,
	FIELD_CPU,
	FIELD_TIME,
	FIELD_PERIOD,
	FIELD_EVENT,
	FIELD_TRACE,
	FIELD_ADDR,
	FIELD_IP,
	FIELD_SYM,
	FIELD_SYMOFF,
	FIELD_DSO,
	FIELD_UREGS,
	FIELD_BRSTACK,
	FIELD_BRSTACKSYM,
	FIELD_WEIGHT,
	FIELD_DATA_SRC,
	FIELD_PHYS_ADDR,
	FIELD_NUM,
};

struct script_opts {
	struct reading_filter filter;
	const char *fields; /* NULL: the default of each event */
	bool dump;
	bool json;
	bool ns; /* times in ns */
	bool lost;
};

struct script_job {
	struct script_opts opts;
	struct reading reading;
	u32 chosen;         /* BIT()s of fields; 0: the default */
	u32 added, removed; /* +field, -field */
	int name_width;     /* of the longest event's name; 0: not known yet */
};

/* Reads -F. 0, or -1 after saying what is wrong. */
must_check int script_fields_parse(struct script_job *job);

/* What samples must have for -F; once the recording is open. */
void script_fields_need(struct script_job *job);

/* What is shown of a sample. */
u32 script_fields_of(const struct script_job *job, const struct data_item *item);

void script_print_text(struct script_job *job, const struct data_item *item);
void script_print_json(struct script_job *job, const struct data_item *item);

/* The fields of a tracepoint's raw data, "pid=12 comm=true"; in script-trace.c. */
void script_print_trace(struct script_job *job, const struct data_item *item, FILE *out);

#endif
