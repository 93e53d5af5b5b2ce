/*
 * PURPOSE: signals while something is measured: they are blocked and read from a descriptor, so
 * that no handler is installed and what the user had ignored stays ignored. Only an ignored SIGCHLD
 * is put right, since wait4(2) would not give a status then. A program that is started gets
 * everything back.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

#include "base/types.h"

struct signals {
	bool blocked;      /* between signals_block() and signals_release() */
	sigset_t watched;  /* what is read from the descriptor */
	sigset_t before;   /* the mask as we found it */
	bool chld_ignored; /* as we found it */
	int fd;            /* signalfd; -1 until signals_open() */
	int ended_by;      /* the last signal that asked for an end, 0: none */
	int own;           /* one of those watched that is meant for us alone, 0: none */
	bool own_came;     /* whoever looks at it sets it back */
};

/*
 * Makes @s and blocks what is watched; once is enough for several programs. Best done after the
 * first one is made and before it is let go: it then inherits everything as it was without our
 * doing anything.
 */
void signals_block(struct signals *s);

/*
 * Everything as signals_block() found it, if it did; in a new process, before it executes a
 * program.
 */
void signals_restore(const struct signals *s);

/*
 * Opens the descriptor; best when the program runs already, which need not wait, if its start has
 * closed one: where that was the last that could be had, a program would have run for nothing. 0 or
 * -errno.
 */
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
