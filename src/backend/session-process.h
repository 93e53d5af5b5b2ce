/*
 * PURPOSE: the process in which a session lives (src/session/anyperf-session.c), seen from who
 * wants one: starting it, and finding one that has a name.
 *
 * It is nobody's child, it shares no memory with its starter, and nothing of the starter's is
 * changed: no limit, no signal. It ends with the last process that holds the bootstrap socket.
 */
#ifndef BACKEND_SESSION_PROCESS_H
#define BACKEND_SESSION_PROCESS_H

#include <stddef.h>

#include "abi/session-start.h"
#include "base/types.h"

/* Why no process could be made, by the -errno of clone(2) or of what has to be open for it. */
const char *ap__no_process(int err);

/*
 * Starts a session as of @start (whose magic is filled in) for the segment @segment_fd, which reads
 * @bootstrap, the inside of bootstrap_pair(); both stay the caller's. @words, to be NULL or end
 * with NULL, is what ps(1) shows of it: the command that it is for. Returns when it serves, or
 * cannot: 0, or -errno with a sentence in @why, cut to @len bytes.
 */
int must_check ap__session_start(struct session_start *start, int segment_fd, int bootstrap,
				 char *const *words, char *why, size_t len);

/*
 * What guests inherit and are told, from the running session that the same user has named so; both
 * descriptors are the caller's. -ECONNREFUSED: there is none; any error with a sentence in @why.
 */
int must_check ap__session_join(const char *name, struct run_config *config, int *segment_fd,
				int *bootstrap, char *why, size_t len);

#endif
