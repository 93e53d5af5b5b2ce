/*
 * Faults that a handler repairs: the instruction runs again and counts once. SIGSEGV on reads and
 * writes (the handler maps the page or moves the register), SIGFPE and SIGILL (it skips), int3, and
 * SIGBUS.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static char *hole;
static volatile int seen[32];

static void on_fault(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	greg_t *g = uc->uc_mcontext.gregs;

	seen[sig]++;
	switch (sig) {
	case SIGSEGV:
		if ((char *)si->si_addr >= hole && (char *)si->si_addr < hole + 8 * 4096)
			mprotect((void *)((uintptr_t)si->si_addr & ~4095ul), 4096,
				 PROT_READ | PROT_WRITE);
		else
			g[REG_RBX] = (greg_t)hole; /* the wild pointer of wild() */
		break;
	case SIGFPE: g[REG_RCX] = 7; break;
	case SIGILL: g[REG_RIP] += 2; break;
	case SIGTRAP: g[REG_RAX] += 100; break;
	}
}

static int divide(int by)
{
	int q;

	__asm__ volatile("movl $700, %%eax\n	cltd\n	idivl %%ecx\n"
			 : "=a"(q)
			 : "c"(by)
			 : "rdx", "cc");
	return q;
}

static long wild(void)
{
	long v;

	__asm__ volatile("movq $0x10, %%rbx\n	movq (%%rbx), %0\n	addq $1, %0\n"
			 : "=r"(v)
			 :
			 : "rbx", "memory", "cc");
	return v;
}

int main(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};
	long trap;

	sa.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGTRAP, &sa, NULL);
	hole = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 8; i++) {
		hole[i * 4096] = (char)i;
		hole[i * 4096 + 100] += (char)(i + 1);
	}
	/* A rep that faults in its middle goes on where it was. */
	mprotect(hole + 4096, 4096, PROT_NONE);
	mprotect(hole + 3 * 4096, 4096, PROT_READ);
	__asm__ volatile("rep stosb" : : "D"(hole + 10), "c"(4 * 4096), "a"(0x5a) : "memory");
	printf("%d %ld %x\n", divide(0), wild(), (unsigned char)hole[3 * 4096 + 9]);
	__asm__ volatile("ud2");
	__asm__ volatile("int3" : "=a"(trap) : "a"(5));
	printf("%ld: %d segv %d fpe %d ill %d trap\n", trap, seen[SIGSEGV], seen[SIGFPE],
	       seen[SIGILL], seen[SIGTRAP]);
	return 0;
}
