/*
 * A process that shares the memory of another stops the threads of that by ptrace(2), wherever they
 * are, and does things while they stand, as LeakSanitizer does. It must not want anything that one
 * of those has at that moment and cannot give back.
 */
#include "say.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 3
#define STOPS   50

static char stack[65536] __attribute__((aligned(16)));
static volatile pid_t tids[THREADS], ended;
static volatile long turns[THREADS];
static int seize, stopped, odd;

/* Code that nobody has executed before. */
static int fresh(void)
{
	static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3}; /* mov $7, %eax; ret */
	unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sum = 0;

	for (int i = 0; i + 64 <= 4096; i += 64) {
		memcpy(at + i, code, sizeof(code));
		sum += ((int (*)(void))(void *)(at + i))();
	}
	munmap(at, 4096);
	return sum;
}

static void *busy(void *arg)
{
	long i = (long)arg;

	tids[i] = gettid();
	while (!ended)
		turns[i] += fresh() == 7 * 64;
	return NULL;
}

/* Whether it stands. Signals that come first go through. */
static int stop(pid_t tid)
{
	int status, wanted = seize ? SIGTRAP : SIGSTOP;

	if (ptrace(seize ? PTRACE_SEIZE : PTRACE_ATTACH, tid, 0, 0) ||
	    (seize && ptrace(PTRACE_INTERRUPT, tid, 0, 0)))
		return 0;
	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == wanted)
			return 1;
		if (seize)
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
	}
	return 0;
}

static int tracer(void *arg)
{
	siginfo_t info, again;

	for (int n = 0; n < STOPS; n++) {
		for (int i = 0; i < THREADS; i++)
			stopped += stop(tids[i]);
		ptrace(PTRACE_GETSIGINFO, tids[n % THREADS], 0, &info);
		odd += fresh() != 7 * 64;
		ptrace(PTRACE_GETSIGINFO, tids[n % THREADS], 0, &again);
		odd += info.si_signo != again.si_signo || info.si_code != again.si_code;
		for (int i = 0; i < THREADS; i++)
			odd += ptrace(PTRACE_DETACH, tids[i], 0, 0) != 0;
		usleep(200);
	}
	return 0;
}

static volatile int leave;

static void *leaver(void *arg)
{
	tids[0] = gettid();
	while (!leave)
		turns[0] += fresh() == 7 * 64;
	syscall(__NR_exit, SIGSTOP);
	return arg;
}

/* A thread may end when it was let go. Its tracer is told of that, and of nothing else. */
static int tracer_of_end(void *arg)
{
	int status;

	stopped += stop(tids[0]);
	leave = 1;
	odd += fresh() != 7 * 64;
	status = 0;
	do {
		ptrace(PTRACE_CONT, tids[0], 0, WIFSTOPPED(status) ? WSTOPSIG(status) : 0);
		odd += waitpid(tids[0], &status, __WALL) != tids[0];
	} while (!odd && WIFSTOPPED(status));
	odd += !WIFEXITED(status) || WEXITSTATUS(status) != SIGSTOP;
	return 0;
}

static void ends(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	stopped = odd = 0;
	for (int n = 0; n < STOPS; n++) {
		leave = 0;
		turns[0] = 0;
		/* Nobody can join it: it leaves behind the library's back. */
		pthread_create(&thread, NULL, leaver, NULL);
		pthread_detach(thread);
		while (!turns[0])
			usleep(100);
		pid = clone(tracer_of_end, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES,
			    NULL);
		HOLDS(waitpid(pid, &status, __WALL) == pid && status == 0);
	}
	SAY("ended: stopped %d, odd %d", stopped, odd);
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;
	pid_t pid;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, busy, (void *)i);
	while (!turns[0] || !turns[1] || !turns[2])
		usleep(100);
	for (seize = 0; seize < 2; seize++) {
		stopped = odd = 0;
		pid = clone(tracer, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
		HOLDS(waitpid(pid, &status, __WALL) == pid && status == 0);
		SAY("%s: stopped %d, odd %d", seize ? "seized" : "attached", stopped, odd);
	}
	ended = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	seize = 0;
	ends();
	return 0;
}
