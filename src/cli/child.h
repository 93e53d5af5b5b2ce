/*
 * PURPOSE: the program that is measured, as the command line sees it: its end, what it has used,
 * and what we exit with for it. Making it is the library's (anyperf/command.h).
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <anyperf/command.h>

#include "cli/cmd.h"
#include "cli/signals.h"

struct child {
	struct ap_command *command; /* owned; NULL: there is none */
	struct ap_command_end end;  /* once child_reap() has returned 1 */
};

/* The options with which ap_command_new() gives a program its signals as @signals found them. */
struct ap_command_opts child_opts(const struct signals *signals);

/* Its process id; 0: there is none, or it has ended. */
pid_t child_pid(const struct child *c);

/*
 * 1 if the child has ended, 0 if it has not, or -errno with the reason if it could not be executed.
 */
must_check int child_reap(struct child *c, struct ap_error *err);

/*
 * If the child has been stopped and we are a shell's job: stops as well, so that the shell's job
 * control sees its job stopped, and lets the child go on when we do.
 */
void child_follow_stop(const struct child *c);

/*
 * What the child and those of its children that it has waited for have used, in ns. As wait4(2)
 * says once it has ended; before, in the clock ticks of /proc (10 ms), 0 where there is none.
 */
void child_cpu_time(const struct child *c, u64 *user, u64 *system);

/* The signal that ended it; 0: none did, or it has not ended. */
int child_signal(const struct child *c);

/* What we exit with for a child that has ended [the shell's convention: 128 + signal]. */
int child_exit_status(const struct child *c);

/*
 * Runs @text with the shell, which is given its signals as we were, and says it if that fails: 0 or
 * -1. NULL is fine. @option is where the text comes from.
 */
must_check int child_shell(const struct command *cmd, const struct signals *signals,
			   const char *text, const char *option);

/* What we exit with for one that could not be executed: 127, 126, or the command's own status. */
int child_failure_status(const struct command *cmd, const struct ap_error *err);

#endif
