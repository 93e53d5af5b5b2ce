/*
 * PURPOSE: a session: it plays the kernel for guests. It owns every perf event object, answers the
 * calls that guests' runtimes send over the wire (abi/wire.h), and learns of their forks, execs and
 * deaths. It lives in a process of its own (anyperf-session.c).
 *
 * Lifetime: session_new() to session_free(). Guests outlive the session unharmed: their perf calls
 * answer ENODEV from then on.
 * Locking: none; one thread. Nothing here blocks but session_run() with a timeout.
 * Errors: 0 or -errno; why is a sentence in the buffer the caller gives.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "abi/session-start.h"
#include "base/types.h"

struct session;

struct session_config {
	bool ignore_kernel; /* count requests that include kernel mode in user mode */
	int paranoid;       /* shown and checked; SESSION_PARANOID_HOST: max(the host's, 2) or, with
				ignore_kernel, the host's */
	u32 counters;       /* of the virtual PMU; 0: as many as wanted */
	const char *cpuid_profile; /* what cpuid_profile_find() takes */
	const char *name;          /* others may join under it; NULL: nobody can */
	int segment_fd;            /* the counter segment; -1: the session makes one. Not taken */
	struct run_config run; /* of all guests; of a segment of its own the session adds to it */
	bool verbose;          /* say on stderr why calls are refused */
	bool waited_for; /* guests have a bootstrap socket already, with all that they are shown */
	int bootstrap;   /* then: bootstrap_pair()'s @inside. Taken */
};

/*
 * @why has room for @len bytes. The session's memory and descriptors are private to the caller. The
 * process's soft limits of descriptors and file sizes are raised to the hard ones and SIGXFSZ is
 * ignored from then on: who goes on to start programs restores the three for them.
 */
int must_check session_new(const struct session_config *config, struct session **session, char *why,
			   size_t len);
void session_free(struct session *s);

/*
 * What guests inherit: the counter segment and the bootstrap socket, abi/wire.h. Borrowed; both are
 * CLOEXEC. session_close_bootstrap() gives up the session's own copy of the guests' end once the
 * first guest has it, so that session_is_over() can become true.
 */
int session_segment_fd(const struct session *s);
int session_bootstrap_fd(const struct session *s);
void session_close_bootstrap(struct session *s);

/* Serves what there is to serve, waiting for it at most @timeout_ms (-1: no limit). */
void session_run(struct session *s, int timeout_ms);

/* Has every process that held the bootstrap socket ended, and every guest? */
bool session_is_over(const struct session *s);

#endif
