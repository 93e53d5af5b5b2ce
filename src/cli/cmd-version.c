#include <stdio.h>
#include <sys/utsname.h>

#include <anyperf/api.h>

#include "cli/cmd.h"
#include "cli/json.h"

struct version_opts {
	bool json;
};

static const struct option options[] = {
	{OPTION_FLAG, 'j', "json", .offset = offsetof(struct version_opts, json),
	 .help = "print a JSON object (doc/json.md)"},
	{0},
};

static int run(int argc, char **argv)
{
	struct version_opts opts = {0};
	int first = options_parse(&cmd_version, &opts, argc, argv);
	struct utsname host;
	struct json j;

	if (first < 0)
		return command_leave_status(&cmd_version, first);
	if (first < argc) {
		command_error(&cmd_version, "takes no argument, not '%s'", argv[first]);
		return cmd_version.failure;
	}
	if (!opts.json) {
		printf("anyperf %s\n", ap_version());
		return 0;
	}
	uname(&host);
	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-version-1");
	json_str(&j, "version", ap_version());
	json_str(&j, "kernel", host.release);
	json_str(&j, "machine", host.machine);
	json_str(&j, "compiler", __VERSION__);
	json_end(&j);
	json_finish(&j);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.synopsis = "[--json]",
	.description = "Prints the version of anyperf and of the library that is part of it; with "
		       "--json also the running kernel, the machine and the compiler, which belong "
		       "into a bug report.",
	.options = options,
	.failure = 2,
	.run = run,
};
