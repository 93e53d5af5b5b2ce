/*
 * Programs with much to simulate: besides WHAT...
 *   burn N          so many rounds, each of some paths, with branches and accesses
 *   turns N         so many threads, one after the other as they wake each other, each four times
 *   forks           a child that burns, another by vfork, one that executes another, and then burns
 *   leader          the first thread ends before the second one, which is the last
 *   exec            burns, and becomes `burn`
 *   tasks           how many tasks it has, by what it can ask while it burns
 *   reads           counts itself, and says what each piece of work was
 *   parts N         burns N, and says how many cycles each of some short parts took at least
 *   holds           counts itself, says so, and does so until its input ends
 *   leaves          has counted itself, and says how many pages are missing when it goes on
 *   abort           burns, and dies of a signal
 *   users           burns, and gives its rights away
 *   limit           a user who may have two tasks burns and forks
 */
#include <dirent.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 100000u

static unsigned int table[1 << 16];

static void burn(unsigned int n)
{
	unsigned int x = 12345;

	for (unsigned int i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		if (x & 0x10000000)
			table[x >> 16]++;
		else if (table[i % (1 << 16)] & 1)
			x ^= i;
	}
	table[0] += x;
}

#define THREADS 16u

/* Who has read a byte of his pipe goes on, and then writes to that of the next. */
static int turn[THREADS + 1][2];
static unsigned int threads;

static void wait_for_turn(unsigned int who)
{
	char byte;

	if (read(turn[who][0], &byte, 1) != 1)
		_exit(9);
}

static void give_turn(unsigned int who)
{
	if (write(turn[who][1], "", 1) != 1)
		_exit(9);
}

static void *in_turns(void *arg)
{
	unsigned int me = (unsigned int)(unsigned long)arg;

	give_turn(threads);
	for (unsigned int i = 0; i < 4; i++) {
		wait_for_turn(me);
		burn(ROUNDS);
		give_turn((me + 1) % threads);
	}
	return NULL;
}

static void take_turns(unsigned int n)
{
	pthread_t thread[THREADS];

	threads = n;
	for (unsigned int i = 0; i < n + 1; i++)
		if (n > THREADS || pipe(turn[i < n ? i : n]))
			_exit(9);
	for (unsigned int i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, in_turns, (void *)(unsigned long)i))
			_exit(9);
		wait_for_turn(n);
	}
	give_turn(0);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void become_one_that_burns(char *self)
{
	char what[] = "burn", rounds[] = "100000";
	char *const argv[] = {self, what, rounds, NULL};

	execv(self, argv);
	_exit(9);
}

static void fork_some(char *self)
{
	pid_t pid;

	burn(ROUNDS);
	if (!fork()) {
		burn(ROUNDS);
		_exit(0);
	}
	wait(NULL);
	burn(ROUNDS);
	pid = vfork();
	if (!pid) {
		burn(ROUNDS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	burn(ROUNDS);
	pid = vfork();
	if (!pid)
		become_one_that_burns(self);
	waitpid(pid, NULL, 0);
	burn(ROUNDS);
}

static void *last(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	burn(ROUNDS);
	/* The C library would end the process. */
	syscall(SYS_exit, 0);
	return NULL;
}

static int folders(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2;
}

static int said(const char *path, const char *what)
{
	FILE *f = fopen(path, "r");
	char line[256];
	int n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)))
			n = atoi(line + strlen(what));
	if (f)
		fclose(f);
	return n;
}

static void tell_tasks(void)
{
	burn(ROUNDS);
	printf("%d", folders("/proc/self/task"));
	burn(ROUNDS);
	printf(" %d", said("/proc/self/status", "Threads:"));
	if (chdir("/"))
		return;
	burn(ROUNDS);
	printf(" %d", said("proc/self/status", "Threads:"));
	if (chdir("/proc/self"))
		return;
	burn(ROUNDS);
	printf(" %d", said("status", "Threads:"));
	burn(ROUNDS);
	/* Only of one thread. */
	printf(" %d", unshare(CLONE_THREAD));
	burn(ROUNDS);
	printf(" %d\n", unshare(CLONE_VM));
}

static void read_counts(void)
{
	static const unsigned long long configs[] = {
		PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_BRANCH_MISSES, PERF_COUNT_HW_CACHE_MISSES};
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .read_format = PERF_FORMAT_GROUP};
	unsigned long long values[4];
	long leader = -1;

	for (int i = 0; i < 3; i++) {
		long fd;

		attr.config = configs[i];
		attr.disabled = leader < 0;
		fd = syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);
		if (fd < 0)
			_exit(9);
		leader = leader < 0 ? fd : leader;
	}
	for (int i = 0; i < 6; i++) {
		if (i % 2)
			ioctl((int)leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
		ioctl((int)leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
		burn(ROUNDS + (unsigned int)i * 777);
		ioctl((int)leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		/* It is not counted. */
		burn(ROUNDS);
		if (read((int)leader, values, sizeof(values)) != sizeof(values))
			_exit(9);
		printf("%llu %llu %llu\n", values[1], values[2], values[3]);
	}
}

static int open_own_cycles(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .config = PERF_COUNT_HW_CPU_CYCLES,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0)
		_exit(9);
	return fd;
}

static unsigned long long value_of(int fd)
{
	unsigned long long value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		_exit(9);
	return value;
}

static void count_parts(unsigned int before)
{
	unsigned long long least = ~0ull;
	int fd;

	burn(before);
	fd = open_own_cycles();
	burn(before);
	for (int i = 0; i < 50; i++) {
		unsigned long long from = value_of(fd), cycles;

		burn(1000);
		cycles = value_of(fd) - from;
		least = cycles < least ? cycles : least;
	}
	close(fd);
	burn(before);
	printf("%llu\n", least);
}

static void hold(void)
{
	int fd = open_own_cycles();

	puts("counts");
	fflush(stdout);
	while (getchar() != EOF)
		;
	close(fd);
}

static void walk(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += 64)
		((volatile char *)memory)[at]++;
}

static void leave(void)
{
	static char memory[16 << 20];
	struct rusage before, after;

	walk(memory, sizeof(memory));
	close(open_own_cycles());
	getrusage(RUSAGE_SELF, &before);
	/* Caches in which that is simulated take memory, each time for other lines. */
	walk(memory, sizeof(memory));
	getrusage(RUSAGE_SELF, &after);
	printf("%ld\n", after.ru_minflt - before.ru_minflt);
}

static void fork_at_the_limit(void)
{
	const struct rlimit two = {2, 2};
	int status;

	/* Nobody else is that user. */
	if (setgid(1234567) || setuid(1234567) || setrlimit(RLIMIT_NPROC, &two))
		_exit(9);
	for (int i = 0; i < 3; i++) {
		pid_t pid;

		burn(ROUNDS);
		pid = fork();
		if (!pid)
			_exit(3);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
			_exit(8);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : 0;

	if (!strcmp(what, "burn")) {
		burn(n);
	} else if (!strcmp(what, "turns")) {
		take_turns(n);
	} else if (!strcmp(what, "forks")) {
		fork_some(argv[0]);
	} else if (!strcmp(what, "leader")) {
		pthread_t second, first = pthread_self();

		if (pthread_create(&second, NULL, last, &first))
			return 9;
		pthread_exit(NULL);
	} else if (!strcmp(what, "exec")) {
		burn(ROUNDS);
		become_one_that_burns(argv[0]);
	} else if (!strcmp(what, "tasks")) {
		tell_tasks();
	} else if (!strcmp(what, "reads")) {
		read_counts();
	} else if (!strcmp(what, "parts")) {
		count_parts(n);
	} else if (!strcmp(what, "holds")) {
		hold();
	} else if (!strcmp(what, "leaves")) {
		leave();
	} else if (!strcmp(what, "abort")) {
		burn(ROUNDS);
		abort();
	} else if (!strcmp(what, "users")) {
		burn(ROUNDS);
		if (setgid(65534) || setuid(65534))
			return 9;
		burn(ROUNDS);
	} else if (!strcmp(what, "limit")) {
		fork_at_the_limit();
	} else {
		return 1;
	}
	return 0;
}
