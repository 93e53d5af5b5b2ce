#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/cmd.h"
#include "cli/help/help.h"
#include "lib/spec/nearest.h"

/* What who knows perf may look for. A command that comes to be here is found before this. */
static bool is_of_perf(const char *name)
{
	static const char *const names[] = {
		"annotate", "archive", "bench",  "buildid-cache", "buildid-list",
		"c2c",      "config",  "daemon", "data",          "diff",
		"evlist",   "ftrace",  "inject", "iostat",        "kallsyms",
		"kmem",     "kvm",     "kwork",  "lock",          "mem",
		"probe",    "sched",   "test",   "timechart",     "trace",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static int no_such_command(const char *name)
{
	struct ap__nearest near;
	char hint[200];

	if (is_of_perf(name)) {
		fprintf(stderr,
			"anyperf: '%s' is a command of perf that anyperf does not have; under "
			"`anyperf run` perf itself has the virtual PMU\n`anyperf help` lists the "
			"commands.\n",
			name);
		return 2;
	}
	ap__nearest_init(&near, name);
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			ap__nearest_offer(&near, commands[i]->name);
	ap__nearest_text(&near, hint, sizeof(hint));
	fprintf(stderr, "anyperf: there is no command '%s'%s%s\n`anyperf help` lists them.\n", name,
		*hint ? "; " : "", hint);
	return 2;
}

/*
 * The exit status after a command: that what was to be shown has found its way is part of it. Here
 * for all commands, since the last bytes leave at the end.
 */
static int written(const struct command *cmd, int status)
{
	bool lost;

	errno = 0;
	lost = fflush(stdout) || ferror(stdout);
	/* Who fails already may have said why where nothing can be said. */
	if (!lost && (status || !ferror(stderr)))
		return status;
	command_error(cmd, "cannot write the output%s%s", errno ? ": " : "",
		      errno ? strerror(errno) : "");
	return cmd->failure;
}

/*
 * Where a standard descriptor is shut, as a daemon's may be, none of ours is to come: what is said
 * would be written into it. What is there instead can neither be read nor written to, as if it were
 * shut, and whoever we start finds it shut.
 */
static void hold_standard(void)
{
	struct pollfd all[] = {{STDIN_FILENO}, {STDOUT_FILENO}, {STDERR_FILENO}};

	if (poll(all, ARRAY_SIZE(all), 0) <= 0)
		return;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (all[fd].revents & POLLNVAL)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

static void too_large(int sig)
{
	(void)sig;
}

/*
 * Over the limit for files (ulimit -f) a write is to fail, and its file be named, rather than we be
 * killed without a word. By a handler, which what we start does not inherit.
 */
static void outlive_file_limit(void)
{
	struct sigaction act = {.sa_handler = too_large, .sa_flags = SA_RESTART}, before;

	if (!sigaction(SIGXFSZ, &act, &before) && before.sa_handler == SIG_IGN)
		sigaction(SIGXFSZ, &before, NULL);
}

int main(int argc, char **argv)
{
	const struct command *cmd;
	const char *name = argc > 1 ? argv[1] : NULL;

	hold_standard();
	outlive_file_limit();
	if (!name) {
		help_commands(stderr);
		return 2;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-v") || !strcmp(name, "-V"))
		name = "version";
	else if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	else if (!strcmp(name, "--dump-docs") && argc > 2) /* for the build: src/cli/meson.build */
		return written(&cmd_help, docs_write(argv[2], argc > 3 ? argv[3] : NULL));
	else if (name[0] == '-') {
		fprintf(stderr,
			"anyperf: '%s' stands before the command; options of a command follow it\n",
			name);
		help_commands(stderr);
		return 2;
	}
	cmd = command_find(name);
	if (!cmd)
		return no_such_command(name);
	return written(cmd, cmd->run(argc - 1, argv + 1));
}
