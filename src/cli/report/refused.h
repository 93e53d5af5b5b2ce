/*
 * PURPOSE: what the session refused to the programs of a run, told to the user: they got an errno,
 * as from a kernel. The same in `anyperf run` and `anyperf stat`. What is read from the shared
 * memory is bounded before use.
 */
#ifndef CLI_REPORT_REFUSED_H
#define CLI_REPORT_REFUSED_H

#include <stdio.h>

#include <anyperf/anyperf.h>

#include "cli/cmd.h"
#include "cli/json.h"

/*
 * Each different refusal to @out, a line behind @mark ("" or a comment's beginning): the program,
 * the event, why and the remedy.
 */
void refused_text(const struct command *cmd, struct ap_machine *m, FILE *out, const char *mark);

/* One line that says how many there were and how to see them; none if there were none. */
void refused_hint(const struct command *cmd, struct ap_machine *m, FILE *out);

/* The members "refused", an array, empty if there is none, and "refused_calls". */
void refused_json(struct json *j, struct ap_machine *m);

/* A name that guests have written, as text: of 15 bytes at most, and none that a terminal obeys. */
void guest_comm(const char written[16], char comm[16]);

#endif
