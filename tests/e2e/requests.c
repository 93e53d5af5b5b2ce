/* A program that steers callgrind: each of its requests, as a benchmark's harness makes them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile unsigned sink;

NOINLINE void work(int n);
NOINLINE void work(int n)
{
	for (int i = 0; i < n; i++)
		sink += (unsigned)i;
}

NOINLINE void before(void);
NOINLINE void before(void)
{
	work(10);
}

NOINLINE void measured(int n);
NOINLINE void measured(int n)
{
	work(n);
	work(n);
}

NOINLINE void starts(void);
NOINLINE void starts(void)
{
	CALLGRIND_START_INSTRUMENTATION;
	measured(3);
}

static void *thread(void *arg)
{
	measured(*(int *)arg);
	return NULL;
}

/* A line of each set of D1, 17 times. */
static volatile unsigned char lines[17][64][64] __attribute__((aligned(4096)));

NOINLINE void touches(void);
NOINLINE void touches(void)
{
	for (int i = 0; i < 64; i++)
		sink += lines[0][i][0];
}

static void *others(void *arg)
{
	for (int n = 1; n < 17; n++)
		for (int i = 0; i < 64; i++)
			sink += lines[n][i][0];
	CALLGRIND_DUMP_STATS;
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	before();
	if (!strcmp(what, "toggle")) {
		for (int i = 0; i < 3; i++) {
			CALLGRIND_TOGGLE_COLLECT;
			measured(100);
			CALLGRIND_TOGGLE_COLLECT;
			before();
		}
	} else if (!strcmp(what, "start")) {
		CALLGRIND_START_INSTRUMENTATION;
		measured(100);
		CALLGRIND_STOP_INSTRUMENTATION;
		before();
		starts();
		CALLGRIND_STOP_INSTRUMENTATION;
	} else if (!strcmp(what, "dump")) {
		measured(5);
		CALLGRIND_DUMP_STATS;
		measured(7);
		CALLGRIND_DUMP_STATS_AT("second");
		CALLGRIND_ZERO_STATS;
		measured(9);
		CALLGRIND_DUMP_STATS_AT("third");
	} else if (!strcmp(what, "join")) {
		for (int i = 1; i <= 8; i++) {
			pthread_t id;

			pthread_create(&id, NULL, thread, &i);
			pthread_join(id, NULL);
			if (i % 4)
				CALLGRIND_DUMP_STATS;
			else
				CALLGRIND_ZERO_STATS;
		}
	} else if (!strcmp(what, "cold")) {
		pthread_t id;

		touches();
		CALLGRIND_START_INSTRUMENTATION;
		touches();
		pthread_create(&id, NULL, others, NULL);
		pthread_join(id, NULL);
		touches();
		CALLGRIND_STOP_INSTRUMENTATION;
	} else if (!strcmp(what, "zero")) {
		CALLGRIND_ZERO_STATS;
		measured(11);
		CALLGRIND_DUMP_STATS;
	} else {
		printf("%d %d\n", (int)RUNNING_ON_VALGRIND, (int)VALGRIND_COUNT_ERRORS);
	}
	return 0;
}
