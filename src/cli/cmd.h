/*
 * PURPOSE: what a command of anyperf is. Adding one (doc/howto-add-command.md has the long form):
 *   1. src/cli/cmd-NAME.c defines `const struct command cmd_NAME` and its option table;
 *   2. declare it below, list it in commands[] in commands.c and in src/cli/meson.build (source and
 *      cli_commands, from which the manual pages are made);
 *   3. a test in tests/e2e that uses each of its options (tests/e2e/cli_help.py checks).
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include "cli/option.h"

/* A section of a command's manual page. Texts are paragraphs separated by empty lines; lines that
 * begin with two blanks are shown as they are. */
struct section {
	const char *title; /* NULL ends an array */
	const char *text;
};

/* An option of perf's that is not here: told apart from a slip. */
struct absent_option {
	char letter;      /* 0: there is only the long name */
	const char *name; /* NULL ends an array */
	const char *why;  /* why it is not here, and what to do instead */
};

struct command {
	const char *name;
	const char *summary;  /* one line in lower case without a full stop */
	const char *synopsis; /* what follows `anyperf NAME`; one form a line */
	const char *description;
	const struct option *options;       /* NULL: none but -h, --help */
	const struct absent_option *absent; /* NULL: none */
	const struct section *sections;     /* NULL: none */
	const char *see_also;               /* more manual pages, "perf-stat(1), ..."; NULL: none */
	bool takes_command;                 /* the first operand begins a program's command line */
	const char *between; /* "--vs": there may be more, which it parts; else NULL */
	bool hidden;         /* left out of listings */

	/*
	 * What the command exits with when anyperf itself fails: 125 where the exit status is that
	 * of the program that is run (as env(1) and timeout(1) do), 2 elsewhere. */
	int failure;

	/* @argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

extern const struct command *const commands[]; /* NULL-ended, in the order of `anyperf help` */

extern const struct command cmd_stat;
extern const struct command cmd_compare;
extern const struct command cmd_run;
extern const struct command cmd_record;
extern const struct command cmd_valgrind;
extern const struct command cmd_report;
extern const struct command cmd_script;
extern const struct command cmd_top;
extern const struct command cmd_list;
extern const struct command cmd_machine;
extern const struct command cmd_doctor;
extern const struct command cmd_version;
extern const struct command cmd_help;

/* NULL if there is none of that name. */
const struct command *command_find(const char *name);

/* The exit status after options_parse() returned @parsed < 0. */
int command_leave_status(const struct command *cmd, int parsed);

/*
 * Prints "anyperf NAME: message\n" to stderr; with -1 it can be used as `return
 * command_error(...)`.
 */
int command_error(const struct command *cmd, const char *fmt, ...) printf_like(2, 3);

/* From now on it is in the name of @cmd, whose work another command does. */
void command_speaks(const struct command *cmd);

#endif
