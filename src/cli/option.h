/*
 * PURPOSE: the options of one command as a table. The same table parses the command line, prints
 * --help, and makes the manual page and the shell completions (docs.c), so they cannot drift.
 *
 * A table is a constant array ended by an entry that has neither letter nor name. Options are
 * written the way getopt_long(3) and git read them: `-r5`, `-r 5`, `-ad`, `--repeat=5`,
 * `--repeat 5`, a unique beginning of a long name, `--` ends the options.
 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include "base/types.h"

enum option_kind {
	OPTION_END = 0,
	OPTION_GROUP, /* no option: @help is the heading of those that follow */
	OPTION_FLAG,  /* bool: the option sets it, --no-NAME clears it */
	OPTION_UNSET, /* bool: known and shown as --no-NAME, which clears it; --NAME sets it */
	OPTION_COUNT, /* int: one more each time; --no-NAME sets it to 0 */
	OPTION_INT,   /* long within @min..@max */
	OPTION_STR,   /* const char *, borrowed from argv; the last one wins */
	OPTION_CALL,  /* @call takes the argument */
};

/* What a shell offers as the option's argument. */
enum option_complete {
	COMPLETE_NONE = 0,
	COMPLETE_FILE,
	COMPLETE_EVENT,
	COMPLETE_PID,
	COMPLETE_COMMAND,
	COMPLETE_MACHINE, /* of the model: a name, or a file */
};

struct option {
	enum option_kind kind;
	char letter;                   /* 0: there is only the long name */
	const char *name;              /* NULL: there is only the letter */
	const char *arg;               /* what the argument is called in texts; NULL: takes none */
	const char *optional;          /* the same of one that may be left out: `-g=fp`, `--x=fp` */
	const char *help;              /* one line, for --help */
	const char *more;              /* more sentences, for the manual page; NULL: none */
	size_t offset;                 /* of the variable in the command's options struct */
	long min, max;                 /* OPTION_INT */
	const char *const *words;      /* the arguments allowed, NULL-ended; NULL: any */
	enum option_complete complete; /* what a shell offers for the argument */
	bool hidden;                   /* an older name: taken, and shown nowhere */

	/*
	 * OPTION_CALL: takes @arg (NULL if there is none) into @into. Returns 0, or -EINVAL
	 * with a sentence in @why, which is shown behind "anyperf stat: -x: ".
	 */
	int (*call)(void *into, const char *arg, char *why, size_t size);
};

struct command;

/*
 * Parses argv[1..] by @cmd's table into the struct @into. Operands are moved behind the options
 * unless the command takes a COMMAND, whose own options must stay its own: then the first operand
 * ends them. Returns the index of the first operand; or -1 after an error was reported (with the
 * nearest names for one that is not known); or -2 after --help or -h was served. A caller leaves
 * with command_leave_status() for both.
 */
must_check int options_parse(const struct command *cmd, void *into, int argc, char **argv);

#endif
