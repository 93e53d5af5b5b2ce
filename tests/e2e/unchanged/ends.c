/*
 * Ways to end: by return, exit, signal, from a thread, leaving a core where the limit allows one.
 */
#include "say.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void at_exit(void)
{
	SAY("at exit");
}

static void *ends(void *arg)
{
	(void)arg;
	exit(31);
}

int main(int argc, char **argv)
{
	struct rlimit rl = {RLIM_INFINITY, RLIM_INFINITY};
	const char *how = argc > 1 ? argv[1] : "";
	volatile int zero = 0;
	pthread_t t;

	setrlimit(RLIMIT_CORE, &rl);
	atexit(at_exit);
	SAY("about to %s", how);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		*(volatile int *)(long)zero = 1;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "quit"))
		raise(SIGQUIT);
	if (!strcmp(how, "trap"))
		__asm__ volatile("int3");
	if (!strcmp(how, "ill"))
		__asm__ volatile("ud2");
	if (!strcmp(how, "fpe"))
		return 1 / zero;
	if (!strcmp(how, "exit"))
		syscall(SYS_exit_group, 300);
	if (!strcmp(how, "thread")) {
		pthread_create(&t, NULL, ends, NULL);
		pthread_join(t, NULL);
	}
	return 257;
}
