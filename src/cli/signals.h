/*
 * PURPOSE: signals while something is measured: they are blocked and read from a descriptor, so that
 * no handler is installed, no dispositions change (a program that is started inherits them), and
 * what the user had ignored stays ignored.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

#include "base/types.h"

struct signals {
	sigset_t before; /* the mask as we found it: what a program that is started gets */
	int fd;          /* signalfd; -1 until signals_open() */
	int ended_by;    /* the last signal that asked for an end, 0: none */
};

/* Blocks what is watched. Done before the program is made, so that no SIGCHLD is missed. */
void signals_block(struct signals *s);

/* Opens the descriptor; not before the program runs, which need not wait for it. 0 or -errno. */
must_check int signals_open(struct signals *s);

/*
 * Takes all signals that have come. Those for the program are sent on to @child (0: there is none),
 * unless the terminal has sent them to its whole process group, of which the child is a member.
 * Returns whether SIGCHLD was among them.
 */
bool signals_take(struct signals *s, pid_t child);

/* Closes the descriptor and restores the mask. */
void signals_release(struct signals *s);

#endif
