#include <stdio.h>

#include "cli/cmd.h"
#include "cli/help/help.h"

static int run(int argc, char **argv)
{
	int first = options_parse(&cmd_help, NULL, argc, argv);
	const struct command *cmd;

	if (first < 0)
		return command_leave_status(&cmd_help, first);
	if (first == argc) {
		help_commands(stdout);
		return 0;
	}
	if (argc - first > 1) {
		command_error(&cmd_help, "takes one command at a time, not '%s'", argv[first + 1]);
		return cmd_help.failure;
	}
	cmd = command_find(argv[first]);
	if (!cmd) {
		command_error(&cmd_help, "there is no command '%s'; `anyperf help` lists them",
			      argv[first]);
		return cmd_help.failure;
	}
	help_full(stdout, cmd);
	return 0;
}

const struct command cmd_help = {
	.name = "help",
	.summary = "say what there is to a command",
	.synopsis = "[COMMAND]",
	.description =
		"Without an argument, lists the commands. With one, prints everything that the "
		"command's manual page says, so that it can be read where no manual pages are "
		"installed.",
	.failure = 2,
	.run = run,
};
