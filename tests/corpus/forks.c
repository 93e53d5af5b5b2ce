/*
 * fork, vfork, exec of itself: the tree, and each process by itself. posix_spawn has no place here:
 * its child asks for every blocked signal, and single-stepping makes the kernel unblock SIGTRAP, so
 * the oracle would see another run than the one without it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		_exit(99);
	printf("child said %d\n", WEXITSTATUS(status));
	fflush(stdout);
}

static int sum(int n)
{
	volatile int s = 0;

	for (int i = 0; i < n; i++)
		s += i;
	return s;
}

int main(int argc, char **argv)
{
	char seven[] = "7";
	char *again[] = {argv[0], seven, NULL};
	pid_t pid;

	if (argc > 1)
		return atoi(argv[1]) + (sum(300) & 1);
	for (int i = 1; i <= 3; i++) {
		pid = fork();
		if (pid == 0) {
			sum(100 * i);
			if (i == 2) {
				pid = fork();
				if (pid == 0)
					_exit(sum(50) & 7);
				reap(pid);
			}
			_exit(i);
		}
		reap(pid);
	}
	pid = vfork();
	if (pid == 0)
		_exit(40);
	reap(pid);
	pid = vfork();
	if (pid == 0) {
		execve(argv[0], again, environ);
		_exit(98);
	}
	reap(pid);
	pid = fork();
	if (pid == 0) {
		execve(argv[0], again, environ);
		_exit(98);
	}
	reap(pid);
	execve("/does/not/exist", again, environ);
	return 0;
}
