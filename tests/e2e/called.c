/* A program with calls of all kinds, whose graph is known. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

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

int main(void)
{
	void (*volatile through)(int) = tail;
	int numbers[100];

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
