/*
 * POSIX threads: creation in numbers, TLS, mutexes, conditions, barriers, cancellation, robust
 * lists, exit.
 */
#include "say.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MANY 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static __thread int mine = 5;
static __thread char big[10000];
static int turn, cleaned, destroyed;
static long total;
static pthread_key_t key;

static void *adds(void *arg)
{
	long n = (long)(intptr_t)arg;

	mine += (int)n;
	big[n % 10000] = 1;
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		total += mine - (int)n;
		pthread_mutex_unlock(&lock);
	}
	return (void *)(intptr_t)(mine + big[n % 10000]);
}

static void many(void)
{
	pthread_t t[MANY];
	long sum = 0;
	void *ret;

	for (long i = 0; i < MANY; i++)
		if (pthread_create(&t[i], NULL, adds, (void *)(intptr_t)i))
			SAY("pthread_create failed");
	for (long i = 0; i < MANY; i++) {
		pthread_join(t[i], &ret);
		sum += (long)(intptr_t)ret;
	}
	SAY("%d threads: total %ld, returned %ld, mine %d", MANY, total, sum, mine);
}

static void *plays(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 2 != me)
			pthread_cond_wait(&turn_changed, &lock);
		turn++;
		pthread_cond_broadcast(&turn_changed);
		pthread_mutex_unlock(&lock);
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void ping_pong(void)
{
	pthread_t t[2];

	pthread_barrier_init(&barrier, NULL, 3);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, plays, (void *)(intptr_t)i);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	SAY("turns: %d", turn);
}

static void clean(void *arg)
{
	cleaned += (int)(intptr_t)arg;
}

static void destroy(void *arg)
{
	destroyed += (int)(intptr_t)arg;
}

static void *waits_forever(void *arg)
{
	sem_t *ready = arg;

	pthread_setspecific(key, (void *)3);
	pthread_cleanup_push(clean, (void *)7);
	sem_post(ready);
	for (;;)
		pause();
	pthread_cleanup_pop(1);
	return NULL;
}

static void *spins_forever(void *arg)
{
	sem_t *ready = arg;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(ready);
	for (;;)
		__asm__ volatile("");
	return NULL;
}

static void cancellation(void)
{
	pthread_t t;
	void *ret;
	sem_t ready;

	sem_init(&ready, 0, 0);
	pthread_key_create(&key, destroy);
	for (int i = 0; i < 5; i++) {
		pthread_create(&t, NULL, waits_forever, &ready);
		sem_wait(&ready);
		pthread_cancel(t);
		pthread_join(t, &ret);
		HOLDS(ret == PTHREAD_CANCELED);
	}
	pthread_create(&t, NULL, spins_forever, &ready);
	sem_wait(&ready);
	pthread_cancel(t);
	pthread_join(t, &ret);
	SAY("cancelled; cleaned %d destroyed %d", cleaned, destroyed);
}

static void *dies_with_lock(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static void robust(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				  -1, 0);
	pthread_t t;
	pid_t pid;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &attr);
	pthread_create(&t, NULL, dies_with_lock, m);
	pthread_join(t, NULL);
	SAY("robust after a thread: %s", strerror(pthread_mutex_lock(m)));
	pthread_mutex_consistent(m);
	pthread_mutex_unlock(m);
	pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(m);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	SAY("robust after a process: %s", strerror(pthread_mutex_lock(m)));
}

static void *forks(void *arg)
{
	int status;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0)
		_exit(mine == 5 ? 11 : 12);
	waitpid(pid, &status, 0);
	return (void *)(intptr_t)WEXITSTATUS(status);
}

static void *leaves_last(void *arg)
{
	(void)arg;
	usleep(50000);
	SAY("the main thread has gone, this one ends the process");
	exit(23);
}

int main(void)
{
	pthread_t t;
	void *ret;

	many();
	ping_pong();
	cancellation();
	robust();
	for (int i = 0; i < 10; i++) {
		pthread_create(&t, NULL, forks, NULL);
		pthread_join(t, &ret);
		if ((long)(intptr_t)ret != 11)
			SAY("a child of a thread said %ld", (long)(intptr_t)ret);
	}
	pthread_create(&t, NULL, leaves_last, NULL);
	pthread_exit(NULL);
}
