#include "cli/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int watched[] = {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static bool is_ignored(int sig)
{
	struct sigaction now;

	return !sigaction(sig, NULL, &now) && now.sa_handler == SIG_IGN;
}

void signals_block(struct signals *s)
{
	*s = (struct signals){.blocked = true, .fd = -1};
	s->chld_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
	sigemptyset(&s->watched);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		sigaddset(&s->watched, watched[i]);
	sigprocmask(SIG_BLOCK, &s->watched, &s->before);
}

void signals_restore(const struct signals *s)
{
	if (!s->blocked)
		return;
	if (s->chld_ignored)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int signals_open(struct signals *s)
{
	s->fd = signalfd(-1, &s->watched, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? -errno : 0;
}

bool signals_take(struct signals *s, pid_t child)
{
	struct signalfd_siginfo info;
	bool child_changed = false;

	while (read(s->fd, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD) {
			child_changed = true;
			continue;
		}
		if (sig == s->own) {
			s->own_came = true;
			continue;
		}
		/* The kernel keeps it all the same, since it is blocked. */
		if (is_ignored(sig))
			continue;
		/* Without a program to take them SIGUSR1 and SIGUSR2 do what they do by default. */
		if (!child || (sig != SIGUSR1 && sig != SIGUSR2))
			s->ended_by = sig;
		/* SI_KERNEL is the terminal's ^C, ^\ and hang-up, which go to the whole group. */
		if (child && info.ssi_code != SI_KERNEL)
			kill(child, sig);
	}
	return child_changed;
}

void signals_release(struct signals *s)
{
	if (s->blocked && s->fd >= 0)
		close(s->fd);
	signals_restore(s);
	s->blocked = false;
	s->fd = -1;
}
