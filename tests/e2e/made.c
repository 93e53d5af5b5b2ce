/*
 * What threads and processes cost; bench/thread-costs and rt_threads.py run it.
 *
 *   made LIVE create|fork|spawn|nested COUNT
 *
 * Beside LIVE threads that sleep: makes a thread and joins it, forks a child that ends at once, or
 * has posix_spawn(3), which is vfork and execve, start /bin/true; COUNT times. With `nested` it is
 * a thread that forks, and its child does all of that. Prints for one of them, children included:
 * microseconds of wall time and of CPU, and page faults.
 *
 *   made LIVE stay 0
 *
 * Prints a line when all are there, and ends when standard input does.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct costs {
	double wall, cpu;
	long faults;
};

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct costs so_far(void)
{
	struct rusage own, children;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return (struct costs){
		.wall = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
		.cpu = seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(children.ru_utime) +
		       seconds(children.ru_stime),
		.faults = own.ru_minflt + children.ru_minflt,
	};
}

static pthread_barrier_t all_there;

static void *sleeper(void *arg)
{
	pthread_barrier_wait(&all_there);
	for (;;)
		pause();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static int create(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL);
}

static int wait_for(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static int forked(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return wait_for(pid);
}

static int spawned(void)
{
	char name[] = "true", *argv[] = {name, NULL};
	pid_t pid;

	return posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) || wait_for(pid);
}

static void *fork_in_thread(void *arg)
{
	pid_t pid = fork();

	if (!pid)
		_exit(create() || create() || forked() || spawned() || create());
	*(int *)arg = wait_for(pid);
	return arg;
}

static int nested(void)
{
	pthread_t thread;
	int failed = 1;

	return pthread_create(&thread, NULL, fork_in_thread, &failed) ||
	       pthread_join(thread, NULL) || failed || create();
}

static const struct {
	const char *name;
	int (*once)(void);
} ways[] = {{"create", create}, {"fork", forked}, {"spawn", spawned}, {"nested", nested}};

static int measure(int (*once)(void), long count)
{
	struct costs from, upto;
	double n = (double)count;

	/* What is needed once is there, say the stack that the next thread gets as well. */
	if (once())
		return 1;
	from = so_far();
	for (long i = 0; i < count; i++)
		if (once())
			return 1;
	upto = so_far();
	printf("%.2f %.2f %.2f\n", (upto.wall - from.wall) * 1e6 / n,
	       (upto.cpu - from.cpu) * 1e6 / n, (double)(upto.faults - from.faults) / n);
	return 0;
}

int main(int argc, char **argv)
{
	long live = argc == 4 ? atol(argv[1]) : -1, count = argc == 4 ? atol(argv[3]) : 0;
	pthread_attr_t small;
	pthread_t thread;

	if (live < 0) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&all_there, NULL, (unsigned)live + 1);
	for (long i = 0; i < live; i++)
		if (pthread_create(&thread, &small, sleeper, NULL))
			return 77;
	pthread_barrier_wait(&all_there);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[2], ways[i].name))
			return measure(ways[i].once, count);
	printf("%ld\n", (long)getpid());
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
