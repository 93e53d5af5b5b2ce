/*
 * What an event costs the session among many: a session and a guest without a runtime, to be run by
 * tests/e2e/session_scale.py under `anyperf run --count`, which counts the instructions of both.
 *
 *   scale N PAIRS [hung | large | forged]
 *
 * Opens N events, PAIRS times opens one more and closes it, and closes all. hung: the N report
 * POLLHUP to epoll, for which the session has to look for their last close. large: the meter has
 * all classes that there can be. forged: it says besides that its thread is moving hits, for ever.
 *
 * Both are on one CPU, where neither spins: so hardly anything depends on time.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/session/mock-guest.h"

static void fail(const char *what)
{
	fprintf(stderr, "scale: %s\n", what);
	exit(1);
}

/* An event is a descriptor of the session's and one of the guest's. */
static void raise_limit(rlim_t n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail("getrlimit");
	if (limit.rlim_cur < n)
		limit.rlim_cur = n;
	if (limit.rlim_max < n)
		limit.rlim_max = n;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		fprintf(stderr, "%lu descriptors are not to be had\n", (unsigned long)n);
		exit(77);
	}
}

static int one_open(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 handle;
	int fd;

	attr.disabled = 0;
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &handle);
	if (fd < 0)
		fail("an event cannot be opened");
	return fd;
}

static void guest(int segment, int bootstrap, u32 n, u32 pairs, const char *how)
{
	int *fds = calloc(n, sizeof(*fds));
	struct mock g;

	alarm(100);
	mock_init(&g, segment, bootstrap);
	if (!fds || mock_hello(&g, -1, 0))
		fail("HELLO");
	if (!strcmp(how, "large") || !strcmp(how, "forged"))
		g.m->classes = METER_CLASSES;
	g.m->folding = !strcmp(how, "forged");
	for (u32 i = 0; i < n; i++) {
		fds[i] = one_open(&g);
		g.slot->args.event.handle = g.slot->result.event.handle;
		if (!strcmp(how, "hung") && mock_call(&g, WIRE_OP_HANGUP) != 1)
			fail("HANGUP");
	}
	for (u32 i = 0; i < pairs; i++)
		close(one_open(&g));
	for (u32 i = 0; i < n; i++)
		close(fds[i]);
	if (mock_call(&g, WIRE_OP_PING))
		fail("PING");
	free(fds);
}

int main(int argc, char **argv)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	u32 n = argc >= 3 ? (u32)atoi(argv[1]) : 0, pairs = argc >= 3 ? (u32)atoi(argv[2]) : 0;
	struct session *s = NULL;
	int status = 1;
	cpu_set_t cpus;
	char why[300];
	pid_t pid;

	if (!n)
		fail("how many?");
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
	raise_limit(n + 100);
	if (session_new(&config, &s, why, sizeof(why)))
		fail("no session");
	pid = fork();
	if (pid == 0) {
		guest(session_segment_fd(s), session_bootstrap_fd(s), n, pairs,
		      argc > 3 ? argv[3] : "");
		_exit(0);
	}
	session_close_bootstrap(s);
	while (!session_is_over(s))
		session_run(s, -1);
	waitpid(pid, &status, 0);
	session_free(s);
	return status != 0;
}
