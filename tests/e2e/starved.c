/*
 * Children that cannot be made, for want of memory in any of the steps that it takes, or because
 * the kernel refuses. argv[1]: how often. Says how many there were and by how much the process has
 * grown. With argv[2], children of children: how many generations.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP 0x4000
#define MOST 0x400000 /* what a child takes of the address space is less */

static long size(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 1)
		exit(2);
	close(fd);
	return atol(text) * 4096;
}

/* Whether the child, which is to end at once, could be made. */
static int child(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return pid > 0;
}

/*
 * Each generation is made by a child that shares its parent's memory (vfork) and forks. By how much
 * the last one is larger than the fifth.
 */
static void generations(int n)
{
	static long fifth; /* static, as the rest: a child of vfork writes to its parent's stack */
	static int i;

	for (i = 0; i < n; i++) {
		pid_t pid;
		int status;

		if (i == 5)
			fifth = size();
		pid = vfork();
		if (pid > 0) {
			waitpid(pid, &status, 0);
			_exit(WEXITSTATUS(status));
		}
		pid = (pid_t)syscall(SYS_fork);
		if (pid) {
			waitpid(pid, &status, 0);
			_exit(WEXITSTATUS(status));
		}
	}
	printf("generations %d grown %ld\n", n, size() - fifth);
	exit(0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, made = 0, failed = 0, refused = 0;
	struct rlimit was, limit;
	long before;

	if (argc > 2)
		generations(atoi(argv[2]));
	getrlimit(RLIMIT_AS, &was);
	child();
	before = size();
	for (int round = 0; round < rounds; round++) {
		for (long more = 0; more < MOST; more += STEP) {
			limit = was;
			limit.rlim_cur = (rlim_t)(size() + more);
			setrlimit(RLIMIT_AS, &limit);
			if (child())
				made++;
			else
				failed++;
			setrlimit(RLIMIT_AS, &was);
		}
		/* A thread with dispositions of its own is none. */
		for (int i = 0; i < 20; i++)
			refused += syscall(SYS_clone, CLONE_VM | CLONE_THREAD, 0, 0, 0, 0) == -1 &&
				   errno == EINVAL;
	}
	printf("made %d failed %d refused %d grown %ld\n", made, failed, refused, size() - before);
	return 0;
}
