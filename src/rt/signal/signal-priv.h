/* PURPOSE: what signal.c and signal-calls.c share. */
#ifndef RT_SIGNAL_SIGNAL_PRIV_H
#define RT_SIGNAL_SIGNAL_PRIV_H

#include "rt/signal/signal.h"

#define SIGNALS_IGNORED (SIG(SIGCHLD) | SIG(SIGCONT) | SIG(SIGURG) | SIG(SIGWINCH))

/* The guest asks for @act, and the kernel is told what stands for it. */
void signal_install(int sig, const struct sys_sigaction *act);

/* Those that were held back and are not blocked any more are noted. */
void signal_release_held(struct thread *t);

#endif
