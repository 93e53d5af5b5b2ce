/*
 * PURPOSE: threads of the session's for what may take as long as somebody else likes. Nobody waits
 * for them; they take no signal, as those are the session's.
 */
#ifndef SESSION_HELPER_THREAD_H
#define SESSION_HELPER_THREAD_H

#include "base/types.h"

/* Runs @fn(@arg) in a thread of its own; false: there can be none. */
bool helper_start(void *(*fn)(void *arg), void *arg);

#endif
