/* The table of commands, and how they are found and heard. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

const struct command *const commands[] = {
	&cmd_stat,     &cmd_compare, &cmd_record,  &cmd_report, &cmd_script,  &cmd_top,  &cmd_run,
	&cmd_valgrind, &cmd_list,    &cmd_machine, &cmd_doctor, &cmd_version, &cmd_help, NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

int command_leave_status(const struct command *cmd, int parsed)
{
	return parsed == -2 ? 0 : cmd->failure;
}

static const struct command *speaker;

void command_speaks(const struct command *cmd)
{
	speaker = cmd;
}

int command_error(const struct command *cmd, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "anyperf %s: ", speaker ? speaker->name : cmd->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	putc('\n', stderr);
	return -1;
}
