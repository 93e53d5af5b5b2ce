/*
 * String instructions that are left between two iterations: `repeating step` has the CPU trap
 * behind each, `fault` has one in the middle find a page that it may not write, and `signals` has
 * another thread send signals meanwhile. Each says what its handler has seen.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE (8ul << 20)

extern const char repeated[];
static unsigned char *memory;
static volatile unsigned long traps, faults, amid;
static volatile int done;

static void fill(unsigned char *to, unsigned long n, int with)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(with) : "memory");
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	(void)info;
	traps += uc->uc_mcontext.gregs[REG_RIP] == (greg_t)repeated;
}

static void step(void)
{
	unsigned char *to = memory, *from = memory + 4096;
	unsigned long n = 10;

	__asm__ volatile("pushfq\n"
			 "	orq $0x100, (%%rsp)\n"
			 "	popfq\n"
			 "repeated:\n"
			 "	rep movsb\n"
			 "	pushfq\n"
			 "	andq $~0x100, (%%rsp)\n"
			 "	popfq\n"
			 : "+D"(to), "+S"(from), "+c"(n)
			 :
			 : "memory", "cc");
	printf("%lu traps, %lu bytes\n", traps, (unsigned long)(to - memory));
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	faults++;
	printf("at %lu with %lu to go\n", (unsigned long)((unsigned char *)info->si_addr - memory),
	       (unsigned long)uc->uc_mcontext.gregs[REG_RCX]);
	mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
}

static void fault(void)
{
	mprotect(memory + SIZE / 2, 4096, PROT_READ);
	fill(memory + 4096, SIZE - 4096, 1);
	printf("%lu faults\n", faults);
}

/* The last fill is behind the first byte, but has not come to the last one. */
static void on_signal(int sig)
{
	(void)sig;
	amid += memory[0] != memory[SIZE - 1];
}

static void *sends(void *to)
{
	while (!done) {
		pthread_kill(*(pthread_t *)to, SIGUSR1);
		usleep(30);
	}
	return NULL;
}

static void signals(void)
{
	pthread_t self = pthread_self(), other;

	pthread_create(&other, NULL, sends, &self);
	for (int i = 1; i < 200 && (i <= 2 || !amid); i++)
		fill(memory, SIZE, i);
	done = 1;
	pthread_join(other, NULL);
	puts(amid ? "amid one" : "never");
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO};

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc != 2 || memory == MAP_FAILED)
		return 2;
	act.sa_sigaction = on_trap;
	sigaction(SIGTRAP, &act, NULL);
	act.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &act, NULL);
	signal(SIGUSR1, on_signal);
	if (!strcmp(argv[1], "step"))
		step();
	else if (!strcmp(argv[1], "fault"))
		fault();
	else
		signals();
	return 0;
}
