/*
 * PURPOSE: what ran under the translator's eyes and is in no count, told to the user: programs that
 * it must leave to the kernel (setuid, 32-bit ...; doc/runtime.md), and threads that found no
 * meter. The same in each command that counts or records. What the guests wrote is bounded before
 * use.
 */
#ifndef CLI_RUN_UNCOUNTED_H
#define CLI_RUN_UNCOUNTED_H

#include <stdio.h>

#include <anyperf/command.h>

#include "cli/cmd.h"
#include "cli/json.h"

/* A line for each to @out, each behind @mark ("" or a comment's beginning). */
void uncounted_text(const struct command *cmd, struct ap_machine *m, FILE *out, const char *mark);

/* The member "uncounted": an array of the programs, empty if there is none. */
void uncounted_json(struct json *j, struct ap_machine *m);

#endif
