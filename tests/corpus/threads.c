/*
 * Four threads made by clone, each with work of its own length; the main thread waits for each with
 * exactly one futex call, whoever is faster, so that each thread's count is the same in every run.
 */
#include "corpus.h"

#define STACK 65536
#define COUNT 4

static unsigned char stacks[COUNT][STACK] __attribute__((aligned(64)));
static volatile int tids[COUNT];
static uint64_t results[COUNT];
static volatile uint64_t shared;

static void work(long n)
{
	uint64_t v = (uint64_t)n + 1;

	for (long i = 0; i < 500 * (n + 1); i++)
		v = v * 6364136223846793005u + 1442695040888963407u;
	results[n] = v;
	__atomic_fetch_add(&shared, v, __ATOMIC_RELAXED);
}

/* CLONE_VM FS FILES SIGHAND THREAD SYSVSEM PARENT_SETTID CHILD_CLEARTID */
#define FLAGS 0x350f00

static long spawn(long n)
{
	unsigned char *top = stacks[n] + STACK - 64;
	register long r10 __asm__("r10") = (long)&tids[n];
	register long r12 __asm__("r12") = n;
	long ret;

	__asm__ volatile("syscall\n"
			 "	testq %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	xorl %%ebp, %%ebp\n"
			 "	movq %%r12, %%rdi\n"
			 "	call *%[work]\n"
			 "	xorl %%edi, %%edi\n"
			 "	movl $60, %%eax\n"
			 "	syscall\n"
			 "1:\n"
			 : "=a"(ret)
			 : "a"(56), "D"(FLAGS), "S"(top), "d"(&tids[n]), "r"(r10),
			   "r"(r12), [work] "b"(work)
			 : "rcx", "r11", "memory");
	return ret;
}

int run(void)
{
	for (long i = 0; i < COUNT; i++)
		if (spawn(i) < 0)
			return 1;
	for (long i = 0; i < COUNT; i++) {
		int tid = tids[i];

		/* Gone already: the value differs and the call returns at once. */
		do {
			call6(202, (long)&tids[i], 0 /* FUTEX_WAIT */, tid ? tid : -1, 0, 0, 0);
		} while (tids[i]);
	}
	for (long i = 0; i < COUNT; i++)
		say(results[i]);
	say(shared);
	return 0;
}
