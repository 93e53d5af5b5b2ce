/*
 * PURPOSE: the program that is measured, as a child: made first, so that events can be opened on it,
 * and let go later, so that nothing of it is missed. Events with enable_on_exec start with its
 * execve, so that our own code in the child is not counted.
 *
 * Lifetime: child_make, child_release, then child_reap until it reports the end; child_abandon at
 * any time before that for one that must not run.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <sys/resource.h>
#include <sys/types.h>

#include "cli/signals.h"

struct child {
	pid_t pid;      /* 0: there is none */
	int gate;       /* our end of the socket on which the child waits; -1 once closed */
	int other;      /* the child's end, which we close when it is let go; valid before that */
	int status;     /* as wait4(2) gives it; valid after child_reap() returned 1 */
	int exec_errno; /* why the program could not be started, 0 if it was; as status */
	struct rusage usage; /* as status */
};

/*
 * Forks a child that waits at the gate and will then execute @argv, looked up in PATH, with
 * signals as @signals found them. 0 or -errno.
 */
must_check int child_make(struct child *c, char *const *argv, const struct signals *signals);

/* The same, becoming the program by @become(@arg, argv), which returns an errno, not by execvp(3). */
must_check int child_make_as(struct child *c, char *const *argv, const struct signals *signals,
			     int (*become)(void *arg, char *const *argv), void *arg);

/* Opens the gate. The child may be running, or even gone, when this returns. */
void child_release(struct child *c);

/* Makes a child that still waits at the gate go away, and waits for that. Fine if there is none. */
void child_abandon(struct child *c);

/* 1 if the child has ended (status, exec_errno and usage are filled in), 0 if it has not. With
 * @block waits for it. */
int child_reap(struct child *c, bool block);

/*
 * What the child and those of its children that it has waited for have used, in ns. As wait4(2) says once it has
 * ended; before, in the clock ticks of /proc (10 ms), 0 where there is none.
 */
void child_cpu_time(const struct child *c, u64 *user, u64 *system);

/* What we exit with for this child [the shell's convention: 126, 127, 128 + signal]. */
int child_exit_status(const struct child *c);

/* Says on stderr why the program of @argv could not be started; @who is the command's name. */
void child_explain(const struct child *c, const char *who, char *const *argv);

#endif
