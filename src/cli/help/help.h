/*
 * PURPOSE: texts for people, made from the command and option tables: --help, `anyperf help`, and,
 * for the build, manual pages and shell completions.
 */
#ifndef CLI_HELP_HELP_H
#define CLI_HELP_HELP_H

#include <stdio.h>

#include "cli/cmd.h"

#define HELP_WIDTH 88

/* What `anyperf` alone prints: the commands with their summaries. */
void help_commands(FILE *out);

/* What --help prints: the forms of the command and one line per option. */
void help_options(FILE *out, const struct command *cmd);

/* What `anyperf help NAME` prints: everything that the manual page has. */
void help_full(FILE *out, const struct command *cmd);

/*
 * Prints @text in lines of at most @width columns, each indented by @indent; the first starts at
 * column @at. Paragraphs are separated by an empty line; lines that begin with two blanks stay as
 * they are. Ends with a newline.
 */
void help_wrap(FILE *out, const char *text, int indent, int at, int width);

/* "-e, --event=EVENT" as it stands in front of an option's help; returns the columns printed. */
int help_spelling(FILE *out, const struct option *o);

/*
 * Writes generated documentation to stdout: "man" with a command's name or "anyperf", "bash", "zsh"
 * or "fish". Returns the exit status.
 */
int docs_write(const char *kind, const char *name);

#endif
