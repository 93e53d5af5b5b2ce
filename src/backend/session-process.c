#include "backend/session-process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/trace.h"
#include "abi/wire.h"
#include "backend/runtime.h"
#include "session/sealed-memory.h"
#include "session/wire/fd-message.h"
#include "session/wire/rendezvous.h"

#define STACK_SIZE   65536
#define JOIN_SECONDS 10
/* Who hangs up may be a session that ends, which has its name for a moment more. */
#define JOIN_TRIES    50
#define JOIN_PAUSE_US 20000

const char *ap__no_process(int err)
{
	if (err == -EMFILE)
		return "no more descriptors are allowed; raise their limit (ulimit -n)";
	return err == -EAGAIN ? "no more processes are allowed; raise pids.max of the control "
				"group, or the limit of the user's (ulimit -u)"
			      : strerror(-err);
}

/* What the child needs, which must not allocate: another thread may hold the lock of malloc(3). */
struct spawn {
	int program; /* anyperf-session, O_PATH */
	int control; /* its end of the socket */
	char **argv;
	int err; /* of the child */
};

/* The child's child executes the program. When the child has gone it is nobody's that we know. */
static int spawn_child(void *arg)
{
	struct spawn *spawn = arg;
	pid_t pid;

	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): it executes or goes */
	pid = vfork();

	/* NOLINTBEGIN(clang-analyzer-unix.Vfork): an errno is all that is left in our memory */
	if (pid == 0) {
		if (fcntl(spawn->control, F_SETFD, 0) == 0)
			syscall(SYS_execveat, spawn->program, "", spawn->argv, environ,
				AT_EMPTY_PATH);
		spawn->err = errno;
		_exit(127);
	}
	/* NOLINTEND(clang-analyzer-unix.Vfork) */
	if (pid < 0)
		spawn->err = errno;
	_exit(0);
}

/*
 * Executes anyperf-session in a process that is nobody's child. The process between us and it ends
 * without a SIGCHLD, which one that has executed something would raise, and is waited for here: so
 * who uses the library hears of neither. 0 or -errno.
 */
static int spawn(int program, int control, char *const *words)
{
	struct spawn spawn = {.program = program, .control = control};
	char *stack = malloc(STACK_SIZE), number[16];
	sigset_t all, before;
	size_t n = 0;
	int err = 0;
	pid_t pid;

	while (words && words[n])
		n++;
	spawn.argv = calloc(n + 3, sizeof(*spawn.argv));
	if (!stack || !spawn.argv) {
		free(stack);
		free(spawn.argv);
		return -ENOMEM;
	}
	snprintf(number, sizeof(number), "%d", control);
	spawn.argv[0] = (char *)"anyperf-session";
	spawn.argv[1] = number;
	if (n)
		memcpy(spawn.argv + 2, words, n * sizeof(*words));
	/* A handler of ours that ran in the child would run in our memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(spawn_child, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, &spawn);
	if (pid < 0)
		err = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(stack);
	free(spawn.argv);
	if (err)
		return err;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return -spawn.err;
}

static int give_orders(int control, struct session_start *start, int segment_fd, int bootstrap)
{
	int err;

	start->magic = SESSION_START_MAGIC;
	err = send_fd(control, start, sizeof(*start), segment_fd, 0);
	return err ? err : send_fd(control, "", 1, bootstrap, 0);
}

int ap__session_start(struct session_start *start, int segment_fd, int bootstrap,
		      char *const *words, char *why, size_t len)
{
	struct session_started answer;
	int program = ap__runtime_open("session", "anyperf-session", why, len);
	int control[2], err, fd;

	if (program < 0)
		return program;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control)) {
		err = -errno;
		close(program);
		snprintf(why, len, "starting the session: %s", ap__no_process(err));
		return err;
	}
	/* Before it runs, so that it need not wait. */
	err = give_orders(control[0], start, segment_fd, bootstrap);
	if (!err)
		err = spawn(program, control[1], words);
	close(program);
	close(control[1]);
	if (err)
		snprintf(why, len, "starting the session: %s", ap__no_process(err));
	if (!err) {
		err = receive_fd(control[0], &answer, sizeof(answer), &fd);
		if (err)
			snprintf(why, len, "the session ended at once: %s", strerror(-err));
		else if (answer.err)
			snprintf(why, len, "%.*s", (int)sizeof(answer.why), answer.why);
		if (!err)
			err = answer.err;
	}
	close(control[0]);
	return err;
}

/*
 * Connects to who has the name of a session. Anybody on the machine can have taken it: one of
 * another user (-EPERM) gets no say in what we measure or what our guests are shown. The kernel
 * keeps who listened, so it is known before a byte is read. Who does not answer is not waited for
 * for ever: the time holds for what is read as well.
 */
static int connect_to(const char *name, int *sock)
{
	const struct timeval patience = {.tv_sec = JOIN_SECONDS};
	struct sockaddr_un sa;
	socklen_t sa_len = session_address(&sa, name), cred_len = sizeof(struct ucred);
	struct ucred cred;
	int err = 0;

	if (!sa_len)
		return -ENAMETOOLONG;
	*sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*sock < 0)
		return -errno;
	if (setsockopt(*sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(*sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(*sock, (struct sockaddr *)&sa, sa_len) ||
	    getsockopt(*sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len))
		err = -errno;
	else if (cred.uid != geteuid())
		err = -EPERM;
	if (err)
		close(*sock);
	return err;
}

/* What a session sends to who joins: its counters, and a socket through which guests register. */
static bool is_session(int segment_fd, int bootstrap)
{
	socklen_t len = sizeof(int), cred_len = sizeof(struct ucred);
	struct ucred cred;
	int type;

	return segment_fd >= 0 && sealed_memory_is(segment_fd, segment_offset(SEGMENT_SLOTS)) &&
	       bootstrap >= 0 && getsockopt(bootstrap, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_SEQPACKET &&
	       getsockopt(bootstrap, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0 &&
	       cred.uid == geteuid();
}

/* What it has to say. -ECONNRESET: it hangs up. */
static int ask(int sock, struct session_joined *joined, int *segment_fd, int *bootstrap)
{
	struct wire_fd_message message;
	int err = receive_fd(sock, joined, sizeof(*joined), segment_fd);

	if (!err) {
		err = receive_fd(sock, &message, sizeof(message), bootstrap);
		/* It has begun to answer. */
		err = err == -ECONNRESET ? -EPROTO : err;
	}
	close(sock);
	return err;
}

int ap__session_join(const char *name, struct run_config *config, int *segment_fd, int *bootstrap,
		     char *why, size_t len)
{
	struct session_joined joined = {0};
	int sock, err, asked = 0;

	for (u32 i = 0; i < JOIN_TRIES; i++) {
		*segment_fd = *bootstrap = -1;
		err = connect_to(name, &sock);
		if (!err)
			asked = ask(sock, &joined, segment_fd, bootstrap);
		if (err || asked != -ECONNRESET)
			break;
		usleep(JOIN_PAUSE_US);
	}
	if (err) {
		snprintf(why, len,
			 err == -ECONNREFUSED   ? "there is no session named \"%s\""
			 : err == -ENAMETOOLONG ? "the session's name \"%s\" is too long"
			 : err == -EPERM
				 ? "another user has taken the name of the session \"%s\" and "
				   "would say what is measured; choose another name"
			 : err == -EAGAIN ? "who has the name of the session \"%s\" does not answer"
					  : "joining the session \"%s\" failed",
			 name);
		return err;
	}
	err = asked;
	if (!err && joined.magic == SESSION_START_MAGIC && is_session(*segment_fd, *bootstrap)) {
		*config = joined.config;
		return 0;
	}
	if (*segment_fd >= 0)
		close(*segment_fd);
	if (*bootstrap >= 0)
		close(*bootstrap);
	*segment_fd = *bootstrap = -1;
	snprintf(why, len, "who has the name of the session \"%s\" %s", name,
		 err == -EAGAIN ? "does not answer" : "does not let us in, or is no session");
	return err ? err : -EPERM;
}
