/*
 * PURPOSE: a session: it plays the kernel for guests. It owns every perf event object, answers the
 * calls that guests' runtimes send over the wire (abi/wire.h), and learns of their forks, execs and
 * deaths. `anyperf run` has one in a process of its own; in `anyperf stat` the command line is it.
 *
 * Lifetime: session_new() to session_free(). Guests outlive the session unharmed: their perf calls
 * answer ENODEV from then on.
 * Locking: none; one thread. Nothing here blocks but session_run() with a timeout.
 * Errors: 0 or -errno; why is a sentence in the buffer the caller gives.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "base/types.h"

struct cpuid_profile;
struct meter_tree;
struct refusal;
struct session;

#define SESSION_PARANOID_HOST (-1000)

struct session_config {
	bool ignore_kernel; /* count requests that include kernel mode in user mode */
	int paranoid;       /* shown and checked; SESSION_PARANOID_HOST: max(the host's, 2) or, with
				ignore_kernel, the host's */
	u32 counters;       /* of the virtual PMU; 0: as many as wanted */
	const char *cpuid_profile; /* what cpuid_profile_find() takes */
	const char *name;          /* others may join under it; NULL: nobody can */
	int tree_fd;               /* the meter tree; -1: the session makes one. Not taken */
	u32 tree_flags;            /* enum meter_tree_flags for a tree that the session makes */
	bool verbose;              /* say on stderr why calls are refused */
	bool waited_for; /* guests have a bootstrap socket already; the session's end of it: */
	int bootstrap; /* session_bootstrap()'s @inside; session_detach() leaves it to the caller */
};

/* Whether the kernel has what a session needs: 0, or -errno with a sentence in @why. */
int must_check session_possible(char *why, size_t len);

/*
 * @why has room for @len bytes. The session's memory and descriptors are private to the caller. The
 * process's soft limits of descriptors and file sizes are raised to the hard ones and SIGXFSZ is
 * ignored from then on: who goes on to start programs restores the three for them.
 */
int must_check session_new(const struct session_config *config, struct session **session, char *why,
			   size_t len);
void session_free(struct session *s);

/*
 * What guests inherit: the meter tree and the bootstrap socket, abi/wire.h. Borrowed; both are
 * CLOEXEC. session_close_bootstrap() gives up the session's own copy of the guests' end once the
 * first guest has it, so that session_is_over() can become true.
 */
int session_tree_fd(const struct session *s);
int session_bootstrap_fd(const struct session *s);
void session_close_bootstrap(struct session *s);

/* Becomes readable when session_run(s, 0) has something to do. */
int session_fd(const struct session *s);

/* Serves what there is to serve, waiting for it at most @timeout_ms (-1: no limit). */
void session_run(struct session *s, int timeout_ms);

/* Has every process that held the bootstrap socket ended, and every guest? */
bool session_is_over(const struct session *s);

/*
 * Direct calls: perf_event_open(2), ioctl(2), read(2), close(2) of the session's own process, which
 * is no guest. Handles are small numbers, like descriptors. Each takes notice of deaths first.
 */
struct pe_attr;
int must_check session_open(struct session *s, struct pe_attr *attr, int pid, int cpu, int leader,
			    u64 flags);
s64 must_check session_read(struct session *s, int handle, void *buf, size_t len);
int must_check session_ioctl(struct session *s, int handle, u64 cmd, u64 arg);
int session_close(struct session *s, int handle);

/*
 * @pid, a child of the session's process that is about to run a first program (the runtime with
 * CONTROL_LAUNCH), is a guest from now on: events can be opened on it, and its start is its execve.
 */
int must_check session_adopt(struct session *s, int pid);

/*
 * The directory that stands in for the root where a guest looks for PMUs, made at the first call;
 * NULL: it cannot be made. It goes with the session.
 */
const char *session_root(struct session *s);

/* Why the last direct call was refused. Valid until the next call. */
const struct refusal *session_refusal(const struct session *s);

/* Borrowed for the session's life; guests write to it at any time. */
const struct meter_tree *session_tree(const struct session *s);

/*
 * How many meters of the tree @tree_fd are to be used. All of them are addresses of several GB, of
 * which a new tree (-1) takes no more than an eighth of RLIMIT_AS; for one that has been made its
 * header says.
 */
u32 session_tree_slots(int tree_fd);

/*
 * A bootstrap socket that no session reads yet. *@outside is for guests. *@inside becomes readable
 * when one of them introduces itself, which then waits for session_detach() with it; it hangs up
 * (POLLHUP) with the last guest. Both are the caller's and CLOEXEC. In @tree guests are told that
 * there is a session as of @config and @profile. 0 or -errno.
 */
int must_check session_bootstrap(const struct session_config *config,
				 const struct cpuid_profile *profile, struct meter_tree *tree,
				 int *inside, int *outside);

/*
 * A session in a process of its own, for the tree config->tree_fd; it ends with its last guest.
 * *@bootstrap is the caller's, CLOEXEC, to be given to the first guest and closed; -1 if guests
 * have one already.
 */
int must_check session_detach(const struct session_config *config, int *bootstrap, char *why,
			      size_t len);

/*
 * What guests inherit, from the running session that the same user has named so; both descriptors
 * are the caller's. -ECONNREFUSED: there is none.
 */
int must_check session_join(const char *name, int *tree_fd, int *bootstrap, char *why, size_t len);

#endif
