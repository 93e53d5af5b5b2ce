/*
 * anyperf-session: a session in a process of its own. It must outlive its starter when guests go on
 * as daemons, must not be hit by what a terminal sends to them, and must hold nothing open that
 * anybody waits for. It ends with its last guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/session-start.h"
#include "session/session.h"
#include "session/wire/fd-message.h"

/* The first descriptor behind the standard ones. */
#define CONTROL 3

static void leave_the_rest(bool keep_stderr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	for (int fd = 0; null >= 0 && fd < (keep_stderr ? 2 : 3); fd++)
		dup2(null, fd);
	if (null >= 0)
		close(null);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	/* What is executed by descriptor would go by the number of that. */
	prctl(PR_SET_NAME, "anyperf-session");
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/"))
		return; /* it only keeps a file system busy */
}

/*
 * What we are given shall not lie where /dev/null comes later: the starter may have had these shut.
 */
static void fill_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR);
}

/* Makes the socket CONTROL and closes what else the starter had open. */
static bool keep_control(int control)
{
	if (control != CONTROL && dup3(control, CONTROL, O_CLOEXEC) < 0)
		return false;
	syscall(SYS_close_range, CONTROL + 1, ~0u, 0);
	return true;
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, 0, size);
}

/* What is to be made, with the two descriptors. 0 or -errno. */
static int take_orders(struct session_start *start, int *segment_fd, int *bootstrap)
{
	char byte;
	int err = receive_fd(CONTROL, start, sizeof(*start), segment_fd);

	if (!err)
		err = receive_fd(CONTROL, &byte, sizeof(byte), bootstrap);
	if (err)
		return err;
	if (start->magic != SESSION_START_MAGIC ||
	    !is_text(start->cpuid_profile, sizeof(start->cpuid_profile)) ||
	    !is_text(start->name, sizeof(start->name)))
		return -EPROTO;
	return *segment_fd < 0 || *bootstrap < 0 ? -EMFILE : 0;
}

static void serve(void)
{
	struct session_started answer = {0};
	struct session_start start;
	struct session_config config;
	struct session *s = NULL;
	int segment_fd = -1, bootstrap = -1;

	answer.err = take_orders(&start, &segment_fd, &bootstrap);
	if (answer.err) {
		snprintf(answer.why, sizeof(answer.why),
			 answer.err == -EPROTO
				 ? "anyperf-session is of another version than who starts it"
				 : "starting the session: %s",
			 strerror(-answer.err));
	} else {
		leave_the_rest(start.flags & SESSION_START_VERBOSE);
		config = (struct session_config){
			.ignore_kernel = start.flags & SESSION_START_IGNORE_KERNEL,
			.paranoid = start.paranoid,
			.counters = start.counters,
			.cpuid_profile = *start.cpuid_profile ? start.cpuid_profile : NULL,
			.name = *start.name ? start.name : NULL,
			.segment_fd = segment_fd,
			.run = start.config,
			.verbose = start.flags & SESSION_START_VERBOSE,
			.waited_for = true,
			.bootstrap = bootstrap,
		};
		answer.err = session_new(&config, &s, answer.why, sizeof(answer.why));
		close(segment_fd);
	}
	if (send_fd(CONTROL, &answer, sizeof(answer), -1, 0) || !s)
		return;
	close(CONTROL);
	while (!session_is_over(s))
		session_run(s, -1);
	session_free(s);
}

int main(int argc, char **argv)
{
	char *end = NULL;
	long control = argc >= 2 ? strtol(argv[1], &end, 10) : -1;

	fill_standard();
	if (!end || *end || control < 0 || !keep_control((int)control)) {
		fprintf(stderr, "anyperf-session is the inside of `anyperf run`, not a command\n");
		return 1;
	}
	serve();
	return 0;
}
