/*
 * A program with a part that is marked, between parts that are not: the arguments are how often to
 * pass it, how many turns to take in it, and how many before it, and
 * how many of a function of their own. The two functions differ, so that
 * the compiler keeps both.
 */
#include <anyperf/mark.h>
#include <stdlib.h>

static void turns(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static __attribute__((noinline)) void enter(void)
{
	__asm__ volatile("nop");
}

static __attribute__((noinline)) void leave(void)
{
	__asm__ volatile("nop; nop");
}

/* A function of its own, for what a change has added. */
static __attribute__((noinline)) void planted(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

int main(int argc, char **argv)
{
	int passes = argc > 1 ? atoi(argv[1]) : 1, inside = argc > 2 ? atoi(argv[2]) : 1;
	int before = argc > 3 ? atoi(argv[3]) : 1;

	turns(before);
	planted(argc > 4 ? atoi(argv[4]) : 0);
	for (int i = 0; i < passes; i++) {
		enter();
		ANYPERF_BEGIN(part);
		turns(inside);
		ANYPERF_END(part);
		leave();
		turns(before);
	}
	ANYPERF_MARK(after);
	return 0;
}
