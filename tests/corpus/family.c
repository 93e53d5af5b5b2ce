/* Children and a grandchild made by fork, each with calls, returns and indirect calls of its own */
#include "corpus.h"

static volatile uint64_t result;

static uint64_t fib(uint64_t n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint64_t down(uint64_t n)
{
	return n ? 1 + down(n - 1) : result;
}

static uint64_t (*volatile const works[])(uint64_t) = {fib, down};

static void work(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		result += works[i & 1](i & 1 ? 40 + i : 6);
}

static long fork_one(void)
{
	return call(57, 0, 0, 0);
}

static void await(long pid)
{
	call6(61, pid, 0, 0, 0, 0, 0);
}

int run(void)
{
	work(10);
	for (uint64_t i = 1; i <= 3; i++) {
		long pid = fork_one();

		if (!pid) {
			work(10 * i);
			pid = i == 2 ? fork_one() : 1;
			if (!pid)
				work(25);
			else if (i == 2)
				await(pid);
			leave(0);
		}
		await(pid);
		work(5);
	}
	say(result);
	return 0;
}
