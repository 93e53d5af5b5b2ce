/*
 * Much that is short: herd WHAT N...
 *   forks      so many children, one after the other, that mispredict
 *   execs      so many children that execute /bin/true, likewise
 *   threads    so many threads that begin at once, and do
 *   supervises so many children, each counted from outside while it does; says what each was
 *   measures   so many threads that each count themselves from the same moment on, likewise
 * What is said is instructions and branch misses.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS  60000u
#define THREADS 16u

static volatile unsigned int result;
static pthread_barrier_t barrier;

/* About one of two branches in a round is mispredicted. */
static void mispredict(unsigned int n)
{
	unsigned long x = 88172645463325252ul;
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 1)
			__asm__ volatile("add $3, %0" : "+r"(sum));
		else
			__asm__ volatile("xor $5, %0" : "+r"(sum));
	}
	result = sum;
}

static void begin(int *fd, pid_t pid)
{
	static const unsigned long config[] = {PERF_COUNT_HW_INSTRUCTIONS,
					       PERF_COUNT_HW_BRANCH_MISSES};

	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = PERF_TYPE_HARDWARE,
			.config = config[i],
			.exclude_kernel = 1,
			.exclude_hv = 1,
		};

		fd[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
		if (fd[i] < 0)
			_exit(9);
	}
}

static void say(const int *fd)
{
	unsigned long long count[2];

	for (int i = 0; i < 2; i++)
		if (read(fd[i], &count[i], sizeof(count[i])) != sizeof(count[i]))
			_exit(9);
	printf("%llu %llu\n", count[0], count[1]);
	fflush(stdout);
}

static void forks(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!fork()) {
			mispredict(ROUNDS);
			_exit(0);
		}
		wait(NULL);
	}
}

static void execs(unsigned int n)
{
	char name[] = "/bin/true";
	char *const argv[] = {name, NULL};

	for (unsigned int i = 0; i < n; i++) {
		pid_t pid;

		if (posix_spawn(&pid, name, NULL, NULL, argv, NULL))
			_exit(9);
		waitpid(pid, NULL, 0);
	}
}

/* Events stay open. */
static void supervises(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int go[2], fd[2];
		char byte;
		pid_t pid;

		if (pipe(go))
			_exit(9);
		pid = fork();
		if (!pid) {
			if (read(go[0], &byte, 1) != 1)
				_exit(9);
			mispredict(ROUNDS);
			_exit(0);
		}
		begin(fd, pid);
		if (write(go[1], "", 1) != 1)
			_exit(9);
		waitpid(pid, NULL, 0);
		say(fd);
	}
}

static void *at_once(void *counts)
{
	int fd[2];

	pthread_barrier_wait(&barrier);
	if (!counts) {
		mispredict(ROUNDS * 5);
		return NULL;
	}
	begin(fd, 0);
	mispredict(ROUNDS * 5);
	say(fd);
	return NULL;
}

static void thread_all(unsigned int n, void *counts)
{
	pthread_t thread[THREADS];

	if (n > THREADS || pthread_barrier_init(&barrier, NULL, n))
		_exit(9);
	for (unsigned int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, at_once, counts))
			_exit(9);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	unsigned int n = argc == 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;

	if (!n)
		return 2;
	if (!strcmp(argv[1], "forks"))
		forks(n);
	else if (!strcmp(argv[1], "execs"))
		execs(n);
	else if (!strcmp(argv[1], "threads"))
		thread_all(n, NULL);
	else if (!strcmp(argv[1], "supervises"))
		supervises(n);
	else if (!strcmp(argv[1], "measures"))
		thread_all(n, &barrier);
	else
		return 2;
	return 0;
}
