/*
 * Leaks what only words below stack pointers and in registers that are past lead to, in its first
 * thread and in another. LeakSanitizer says so if it is shown the threads as they are.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;
static sem_t leaked;
static volatile char kept_byte;

static __attribute__((noinline)) void leak(size_t size)
{
	volatile char *at = malloc(size);

	at[0] = 1;
}

static __attribute__((noinline)) void deep(int n, size_t size)
{
	volatile char here[256] = {0};

	if (n)
		deep(n - 1, size);
	else
		leak(size);
	kept_byte = here[n];
}

/* It sleeps in a system call when the leaks are looked for. */
static void *thread(void *arg)
{
	void *volatile mine = malloc(1000);

	(void)arg;
	deep(20, 30);
	sem_post(&leaked);
	for (;;)
		sem_wait(&(sem_t){0});
	free(mine);
	return NULL;
}

/* And this one runs. */
static void *spinning(void *arg)
{
	void *volatile mine = malloc(2000);

	deep(20, 40);
	sem_post(&leaked);
	for (;;)
		*(void *volatile *)arg = mine;
	return NULL;
}

/* A child without threads leaks as well, and is looked through when it ends. */
static void child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		deep(20, 300);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(3);
	deep(30, 400);
}

int main(int argc, char **argv)
{
	static void *seen;
	pthread_t t[2];

	(void)argv;
	if (argc > 1) {
		child();
		return 0;
	}

	kept = malloc(50);
	sem_init(&leaked, 0, 0);
	if (pthread_create(&t[0], NULL, thread, NULL) ||
	    pthread_create(&t[1], NULL, spinning, &seen))
		return 2;
	sem_wait(&leaked);
	sem_wait(&leaked);
	deep(20, 100);
	deep(30, 200);
	return 0;
}
