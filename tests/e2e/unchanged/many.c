/*
 * Thousands of threads and processes that come and go in every way: what they leave behind must not
 * add up. Of the memory only growth is looked at, after everything has been done once.
 */
#include "say.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char stack[65536] __attribute__((aligned(16)));

static long value(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long v = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			v = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return v;
}

static void *thread(void *arg)
{
	return arg;
}

static int leave(void *arg)
{
	if (arg)
		execl("/bin/true", "true", NULL);
	syscall(SYS_exit, 3);
	return 0;
}

static int leave_group(void *arg)
{
	(void)arg;
	syscall(SYS_exit_group, 4);
	return 0;
}

static int wait_for_kill(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return 0;
}

static unsigned int sum;

static void reap(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, __WALL) == pid)
		sum = sum * 31 + (unsigned int)status;
}

static void make(int (*fn)(void *), void *arg, int flags, int sig)
{
	pid_t pid = clone(fn, stack + sizeof(stack), flags | SIGCHLD, arg);

	if (sig)
		kill(pid, sig);
	reap(pid);
}

static void turn(int i)
{
	pthread_t t;
	pid_t pid;

	for (int k = 0; k < 10; k++) {
		pthread_create(&t, NULL, thread, NULL);
		pthread_join(t, NULL);
	}
	make(leave, NULL, CLONE_VM, 0);
	make(leave_group, NULL, CLONE_VM, 0);
	make(wait_for_kill, NULL, CLONE_VM, SIGKILL);
	make(leave_group, NULL, CLONE_VM | CLONE_VFORK, 0);
	if (i % 20 == 0) {
		make(leave, (void *)1, CLONE_VM, 0);
		make(leave, (void *)1, CLONE_VM | CLONE_VFORK, 0);
	}
	for (int how = 0; how < 3; how++) {
		pid = fork();
		if (!pid) {
			pthread_create(&t, NULL, thread, NULL);
			if (how == 1)
				_exit(5);
			for (;;)
				pause();
		}
		if (how != 1)
			kill(pid, how ? SIGTERM : SIGKILL);
		reap(pid);
	}
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 150;
	long size, used;

	for (int i = 0; i < turns / 3; i++)
		turn(i);
	size = value("VmSize:");
	used = value("VmRSS:");
	sum = 0;
	for (int i = 0; i < turns; i++)
		turn(i);
	SAY("%d turns end as %x", turns, sum);
	size = value("VmSize:") - size;
	used = value("VmRSS:") - used;
	if (size > 60000 || used > 4000)
		SAY("grown by %ld KB of addresses, %ld KB of memory", size, used);
	if (argc > 2)
		pause();
	return 0;
}
