/*
 * A program that single-steps itself, with a timer that interrupts it: how many traps it has in
 * each of many rounds, which is always the same.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile long traps;

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void on_alarm(int sig)
{
	(void)sig;
}

int main(void)
{
	const struct itimerval tick = {{0, 700}, {0, 700}};
	long least = 1 << 30, most = 0;

	signal(SIGTRAP, on_trap);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &tick, NULL);
	for (int round = 0; round < 15; round++) {
		char area[8];

		traps = 0;
		__asm__ volatile("movl $100, %%edx\n"
				 "	pushfq\n"
				 "	orl $0x100, (%%rsp)\n"
				 "	popfq\n"
				 "1:	nop\n"
				 "	movl $8, %%ecx\n"
				 "	leaq %0, %%rdi\n"
				 "	jmp 2f\n"
				 "2:	rep stosb\n" /* a trap for each iteration */
				 "	decl %%edx\n"
				 "	jnz 1b\n"
				 "	pushfq\n"
				 "	andl $~0x100, (%%rsp)\n"
				 "	popfq"
				 : "=m"(area)
				 :
				 : "rax", "rcx", "rdx", "rdi", "memory", "cc");
		least = traps < least ? traps : least;
		most = traps > most ? traps : most;
	}
	printf("%ld to %ld traps\n", least, most);
	return 0;
}
