/*
 * A session in a process of its own, as `anyperf run` starts it: it must outlive its starter when
 * guests go on as daemons, must not be hit by what a terminal sends to them, and must hold nothing
 * open that anybody waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"

struct answer {
	int err;
	char why[300];
};

static void leave_the_rest(bool keep_stderr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	for (int fd = 0; null >= 0 && fd < (keep_stderr ? 2 : 3); fd++)
		dup2(null, fd);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "anyperf-session");
	if (chdir("/"))
		return; /* it only keeps a file system busy */
}

/* Closes what the starter had open, but the @n in @keep, which it sorts. */
static void close_others(int *keep, u32 n)
{
	unsigned from = 3;

	for (u32 i = 1; i < n; i++)
		for (u32 j = i; j && keep[j] < keep[j - 1]; j--) {
			int fd = keep[j];

			keep[j] = keep[j - 1];
			keep[j - 1] = fd;
		}
	for (u32 i = 0; i < n; i++) {
		unsigned fd = (unsigned)keep[i];

		if (fd > from)
			syscall(SYS_close_range, from, fd - 1, 0);
		if (fd >= from)
			from = fd + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

static void __attribute__((noreturn)) serve(const struct session_config *config, int ctl)
{
	int keep[] = {ctl, config->tree_fd, config->bootstrap};
	struct answer answer = {0};
	struct session *s = NULL;

	leave_the_rest(config->verbose);
	close_others(keep, config->waited_for ? 3 : 2);
	answer.err = session_new(config, &s, answer.why, sizeof(answer.why));
	if (send_fd(ctl, &answer, sizeof(answer), s ? session_bootstrap_fd(s) : -1, 0) || !s)
		_exit(answer.err != 0);
	close(ctl);
	session_close_bootstrap(s);
	while (!session_is_over(s))
		session_run(s, -1);
	session_free(s);
	_exit(0);
}

/* Without a child of the starter's own: its wait() must not see the session. */
int session_detach(const struct session_config *config, int *bootstrap, char *why, size_t len)
{
	struct answer answer = {0};
	int ctl[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) || (pid = fork()) < 0) {
		err = -errno;
		snprintf(why, len, "starting the session: %s", strerror(-err));
		return err;
	}
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			serve(config, ctl[1]);
		_exit(pid < 0);
	}
	close(ctl[1]);
	err = receive_fd(ctl[0], &answer, sizeof(answer), bootstrap);
	close(ctl[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (err) {
		snprintf(why, len, "the session ended at once: %s", strerror(-err));
		return err;
	}
	if (!answer.err && *bootstrap < 0 && !config->waited_for) {
		snprintf(why, len, "no descriptor is left for the session's bootstrap socket");
		return -EMFILE;
	}
	if (answer.err)
		snprintf(why, len, "%s", answer.why);
	return answer.err;
}

int session_join(const char *name, int *tree_fd, int *bootstrap, char *why, size_t len)
{
	struct wire_fd_message message;
	int sock, err = listen_connect(name, &sock);

	*tree_fd = *bootstrap = -1;
	if (err) {
		snprintf(why, len,
			 err == -ECONNREFUSED ? "there is no session named \"%s\""
					      : "joining the session \"%s\" failed",
			 name);
		return err;
	}
	err = receive_fd(sock, &message, sizeof(message), tree_fd);
	if (!err)
		err = receive_fd(sock, &message, sizeof(message), bootstrap);
	close(sock);
	if (!err && *tree_fd >= 0 && *bootstrap >= 0)
		return 0;
	if (*tree_fd >= 0)
		close(*tree_fd);
	if (*bootstrap >= 0)
		close(*bootstrap);
	snprintf(why, len, "the session \"%s\" does not let us in", name);
	return err ? err : -EPERM;
}
