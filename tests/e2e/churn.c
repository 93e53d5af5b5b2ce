/*
 * Forks, and executes programs, while threads begin and end beside it. Its argument is how often.
 * How many of its children ended otherwise than they asked for is what it prints.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
	for (volatile int i = 0; i < 1000; i++)
		;
	return arg;
}

static void *create(void *arg)
{
	pthread_t thread;

	for (;;)
		if (!pthread_create(&thread, NULL, nothing, NULL))
			pthread_join(thread, NULL);
	return arg;
}

/* Whether a child did not end well that begins as @first says. */
static int child(void (*first)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		first();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(1);
	return status != 0;
}

static void leave(void)
{
}

static void execute(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, create, NULL);
	usleep(1000);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1, executed = 0, forked = 0;
	pthread_t thread;

	for (int i = 0; i < times / 20; i++)
		executed += child(execute);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, create, NULL);
	for (int i = 0; i < times; i++)
		forked += child(leave);
	printf("%d %d\n", forked, executed);
	return 0;
}
