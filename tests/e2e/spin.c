/*
 * Burns CPU time in one function that another calls: spin MILLISECONDS [PAGES]; then touches so
 * many fresh pages, and asks for its parent once.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn(unsigned long n)
{
	/* Asked for its frame it has one, small as it is: call chains by frame pointers need it. */
	sink = (unsigned long)__builtin_frame_address(0);
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) static void calls_burn(void)
{
	burn(20000);
	sink++; /* so that the call above is not the last thing done */
}

__attribute__((noinline)) static void touch(volatile char *p, long pages)
{
	for (long i = 0; i < pages; i++)
		p[i * 4096] = 1;
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 100, pages = argc > 2 ? atol(argv[2]) : 0;

	while (cpu_ms() < ms)
		calls_burn();
	if (pages) {
		void *p = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return 1;
		madvise(p, (size_t)pages * 4096, MADV_NOHUGEPAGE);
		touch(p, pages);
	}
	return getppid() == -1;
}
