/*
 * Strings that are stored downwards, which takes the CPU a cycle or so for each byte, so that
 * signals of a timer come in the middle; with an argument there is no timer. Prints how many came.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define SIZE (1u << 20)

static char memory[SIZE];
static volatile int came;
static char *volatile last = memory + SIZE - 1;

static void on_alarm(int sig)
{
	(void)sig;
	came++;
}

__attribute__((noinline)) static void store(char *at, unsigned long n)
{
	__asm__ volatile("std; rep stosb; cld" : "+D"(at), "+c"(n) : "a"(0) : "memory", "cc");
}

int main(int argc, char **argv)
{
	volatile unsigned long n = SIZE;
	struct itimerval tick = {{0, 500}, {0, 500}};

	(void)argv;
	signal(SIGALRM, on_alarm);
	if (argc == 1)
		setitimer(ITIMER_REAL, &tick, NULL);
	for (int i = 0; i < 20; i++)
		store(last, n);
	printf("%d\n", came);
	return 0;
}
