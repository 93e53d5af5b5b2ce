/* Deep and wide recursion: calls and returns. */
#include "corpus.h"

static __attribute__((noinline)) int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static __attribute__((noinline)) int ackermann(int m, int n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

int run(void)
{
	say((uint64_t)fib(14));
	say((uint64_t)ackermann(2, 9));
	return 0;
}
