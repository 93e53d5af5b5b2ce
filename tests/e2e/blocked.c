/*
 * Threads that sleep in the kernel until they are told, then run known code and are gone:
 *
 *   blocked N
 *
 * Thread i of N reads one byte of standard input, runs 10,000 x i turns of two instructions and
 * exits; after the read that is 2 x 10,000 x i + 4 instructions. "ready" is printed when all have
 * been started. The first thread sleeps for ever, and never leaves the kernel.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *blocked(void *turns)
{
	static char byte;

	asm volatile("xorl %%eax, %%eax\n\t" /* read(0, &byte, 1) */
		     "xorl %%edi, %%edi\n\t"
		     "movl $1, %%edx\n\t"
		     "syscall\n\t"
		     "movq %%rbx, %%r8\n\t"
		     "1: decq %%r8\n\t"
		     "jnz 1b\n\t"
		     "movl $60, %%eax\n\t" /* exit of this thread */
		     "xorl %%edi, %%edi\n\t"
		     "syscall"
		     :
		     : "S"(&byte), "b"(turns)
		     : "rax", "rdi", "rdx", "rcx", "r8", "r11", "memory");
	__builtin_unreachable();
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	for (long i = 1; i <= n; i++)
		if (pthread_create(&thread, NULL, blocked, (void *)(i * 10000)) != 0)
			return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
