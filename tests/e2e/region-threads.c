/*
 * Threads that pass a part that is marked, and a function that passes one in itself: the arguments
 * are how many threads, how many turns to take in a part, and how many outside; how deep the
 * function goes, and how often it leaves its part without the mark.
 */
#include <anyperf/mark.h>
#include <pthread.h>
#include <stdlib.h>

#define THREADS 16

static int inside, outside;

static void turns(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static void *work(void *unused)
{
	turns(outside);
	ANYPERF_BEGIN(part);
	turns(inside);
	ANYPERF_END(part);
	turns(outside);
	return unused;
}

static __attribute__((noinline)) void dive(int deeper, int forgotten)
{
	ANYPERF_BEGIN(dive);
	turns(inside);
	if (deeper)
		dive(deeper - 1, forgotten - 1);
	turns(inside);
	if (forgotten > 0)
		return;
	ANYPERF_END(dive);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1, deep = argc > 4 ? atoi(argv[4]) : 0;
	pthread_t all[THREADS];

	inside = argc > 2 ? atoi(argv[2]) : 1;
	outside = argc > 3 ? atoi(argv[3]) : 1;
	for (int i = 0; i < threads && i < THREADS; i++)
		if (pthread_create(&all[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < threads && i < THREADS; i++)
		pthread_join(all[i], NULL);
	dive(deep, argc > 5 ? atoi(argv[5]) : 0);
	return 0;
}
