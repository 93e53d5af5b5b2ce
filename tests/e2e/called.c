/* A program with calls of all kinds, whose graph is known. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile int sink;
static jmp_buf env;

NOINLINE int fib(int n);
NOINLINE int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

NOINLINE void leaf(int n);
NOINLINE void leaf(int n)
{
	sink += n;
}

NOINLINE void tail(int n);
NOINLINE void tail(int n)
{
	sink++;
	leaf(n);
}

NOINLINE void jumps(int n);
NOINLINE void jumps(int n)
{
	if (sink++ == -1)
		return;
	if (n)
		jumps(n - 1);
	else
		longjmp(env, 1);
	sink++;
}

NOINLINE void catches(void);
NOINLINE void catches(void)
{
	if (!setjmp(env))
		jumps(3);
	leaf(2);
}

static void handler(int sig)
{
	leaf(sig);
}

NOINLINE void signals(void);
NOINLINE void signals(void)
{
	raise(SIGUSR1);
	leaf(3);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Calls of several threads are counted together, and those of one that never ends. */
static void *thread(void *arg)
{
	for (int i = 0; i < 50; i++)
		tail(i);
	if (arg)
		*(volatile int *)arg = 1;
	while (arg)
		pause();
	return NULL;
}

static void threads(void)
{
	static volatile int ready;
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, i < 3 ? NULL : (void *)&ready);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	while (!ready)
		usleep(1000);
	if (!fork()) {
		leaf(1);
		exit(0);
	}
	wait(NULL);
	exit(0);
}

/* Lines that are not in a cache of 32 KB, nor in one of 1 MB before the second round. */
static char lines[2 << 20];

__attribute__((noinline)) static void walks(void)
{
	for (int round = 0; round < 2; round++)
		for (unsigned i = 0; i < sizeof(lines); i += 64)
			sink += lines[i];
	for (unsigned i = 0; i < sizeof(lines); i += 128)
		lines[i] = (char)i;
	for (unsigned i = 0; i < 4096; i += 64)
		lines[i]++;
}

/* Nobody foresees where that goes. */
__attribute__((noinline)) static void turns(void)
{
	static void *const to[] = {&&a, &&b, &&c, &&d};
	unsigned n = 1;

	for (int i = 0; i < 3000; i++) {
		n = n * 1103515245 + 12345;
		if (n >> 30 & 1)
			sink++;
		goto *to[n >> 28 & 3];
a:
		sink += 2;
b:
		sink += 3;
c:
		sink += 5;
d:
		sink += 7;
	}
}

int main(int argc, char **argv)
{
	void (*volatile through)(int) = tail;
	int numbers[100];

	if (argc > 1 && argv[1][0] == 'w') {
		walks();
		turns();
		return 0;
	}
	if (argc > 1)
		threads();
	signal(SIGUSR1, handler);
	for (int i = 0; i < 10; i++)
		leaf(i);
	for (int i = 0; i < 5; i++)
		through(i);
	for (int i = 0; i < 3; i++)
		catches();
	signals();
	for (int i = 0; i < 100; i++)
		numbers[i] = i * 7919 % 101;
	qsort(numbers, 100, sizeof(numbers[0]), by_value);
	sink += fib(10);
	return numbers[50] == 0;
}
