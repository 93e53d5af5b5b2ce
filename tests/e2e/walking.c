/*
 * Accesses whose misses are known: walking WHAT...
 *   walk BYTES TIMES   a load of every 64th byte of so much memory, so often
 *   threads N BYTES    the same, once, in each of so many threads in turn, each in its own memory
 *   fork               a child walks 64 KB that its parent has walked, and then the parent again
 *   random N           so many branches by random bits
 *   kill BYTES         a walk, a system call, then killed by itself
 *   exec ARGS...       becomes another of these
 *   jit N              so many times code is written, that walks
 *   share N            two threads add to words of one line, so many times, in turns
 *   atomic N           so many atomic additions, each to another line of 1 MB, and as many plain
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *memory(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	return p;
}

static void walk(const char *p, size_t size)
{
	for (size_t i = 0; i < size; i += 64)
		__asm__ volatile("movb (%0), %%al" : : "r"(p + i) : "al", "memory");
}

static void *walker(void *arg)
{
	size_t size = (size_t)arg;

	walk(memory(size), size);
	return NULL;
}

static unsigned int random_branches(unsigned long n)
{
	unsigned int x = 12345, taken = 0;

	for (unsigned long i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		__asm__ volatile("test $0x10000000, %1\n\tjz 1f\n\tinc %0\n1:"
				 : "+r"(taken)
				 : "r"(x)
				 : "cc");
	}
	return taken;
}

/* A function that loads from each address that it is called with, made anew each time. */
static void written(unsigned long n)
{
	static const unsigned char code[] = {0x8a, 0x07, 0xb8, 0, 0, 0, 0, 0xc3};
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *m = memory(1 << 20);

	if (p == MAP_FAILED)
		_exit(9);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int (*fn)(const char *) = (unsigned int (*)(const char *))p;

		memcpy(p, code, sizeof(code));
		memcpy(p + 3, &i, sizeof(i));
		if (fn(m + i % 16384 * 64) != i)
			_exit(8);
	}
}

/* In a loop each, so that they can be told apart by where they are. */
static void __attribute__((noinline)) atomic_additions(char *p, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		__asm__ volatile("lock incq (%0)" : : "r"(p + i % 16384 * 64) : "memory", "cc");
}

static void __attribute__((noinline)) plain_additions(char *p, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		__asm__ volatile("incq (%0)" : : "r"(p + i % 16384 * 64) : "memory", "cc");
}

static struct {
	volatile unsigned long word[2] __attribute__((aligned(64)));
	volatile unsigned int turn;
	unsigned long times;
} shared __attribute__((aligned(64)));

static void *sharer(void *arg)
{
	unsigned long me = (unsigned long)arg;

	for (unsigned long i = 0; i < shared.times; i++) {
		while (__atomic_load_n(&shared.turn, __ATOMIC_ACQUIRE) != me)
			sched_yield();
		for (int k = 0; k < 8; k++)
			shared.word[me]++;
		__atomic_store_n(&shared.turn, 1 - me, __ATOMIC_RELEASE);
		sched_yield();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long a = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	unsigned long b = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	char *p;

	if (!strcmp(what, "walk")) {
		p = memory(a);
		while (b--)
			walk(p, a);
	} else if (!strcmp(what, "threads")) {
		while (a--) {
			pthread_t t;

			if (pthread_create(&t, NULL, walker, (void *)b) || pthread_join(t, NULL))
				return 9;
		}
	} else if (!strcmp(what, "fork")) {
		p = memory(65536);
		walk(p, 65536);
		if (!fork()) {
			walk(p, 65536);
			_exit(0);
		}
		wait(NULL);
		walk(p, 65536);
	} else if (!strcmp(what, "random")) {
		printf("%u\n", random_branches(a));
	} else if (!strcmp(what, "kill")) {
		walk(memory(a), a);
		kill(getpid(), SIGKILL);
	} else if (!strcmp(what, "exec")) {
		execv(argv[0], argv + 1);
		return 9;
	} else if (!strcmp(what, "jit")) {
		written(a);
	} else if (!strcmp(what, "atomic")) {
		p = memory(1 << 20);
		atomic_additions(p, a);
		plain_additions(p, a);
	} else if (!strcmp(what, "share")) {
		pthread_t t;

		shared.times = a;
		if (pthread_create(&t, NULL, sharer, (void *)1))
			return 9;
		sharer(NULL);
		pthread_join(t, NULL);
	} else {
		return 1;
	}
	return 0;
}
