#include "session/helper-thread.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_SIZE (PTHREAD_STACK_MIN + 65536)

/*
 * With the first thread glibc takes this signal, by which it has all threads change their ids. We
 * change none, and a command that is started later inherits that it was ignored.
 */
#define SIGNAL_SETXID 33

struct kernel_action {
	void (*handler)(int sig);
	unsigned long flags;
	void (*restorer)(void);
	u64 mask;
};

static void action(const struct kernel_action *new, struct kernel_action *old)
{
	(void)syscall(SYS_rt_sigaction, SIGNAL_SETXID, new, old, sizeof(new->mask));
}

bool helper_start(void *(*fn)(void *arg), void *arg)
{
	struct kernel_action was = {0};
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	bool started;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	action(NULL, &was);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&thread, &attr, fn, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (was.handler == SIG_IGN)
		action(&was, NULL);
	pthread_attr_destroy(&attr);
	return started;
}
