/*
 * A program that counts with PAPI: PAPI_TOT_INS and PAPI_BR_INS around code that is known. What
 * PAPI does between its own start and stop is the same each time, so two runs differ by the code
 * alone.
 */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>

#define TURNS "10000"

static int set = PAPI_NULL;

static void need(int result, const char *what)
{
	if (result >= PAPI_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, PAPI_strerror(result));
	exit(1);
}

static void empty(void)
{
	asm volatile("" ::: "memory");
}

static void loop(void)
{
	asm volatile("movl $" TURNS ", %%ecx\n1: decl %%ecx\njnz 1b" ::: "ecx", "cc", "memory");
}

static void measure(void (*fn)(void), long long v[2])
{
	need(PAPI_start(set), "PAPI_start");
	fn();
	need(PAPI_stop(set, v), "PAPI_stop");
}

int main(void)
{
	long long without[2], with[2];
	int failed;

	if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) {
		fprintf(stderr, "PAPI_library_init failed\n");
		return 1;
	}
	need(PAPI_create_eventset(&set), "PAPI_create_eventset");
	need(PAPI_add_event(set, PAPI_TOT_INS), "PAPI_TOT_INS");
	need(PAPI_add_event(set, PAPI_BR_INS), "PAPI_BR_INS");
	/* The first rounds resolve symbols. */
	for (int i = 0; i < 3; i++) {
		measure(empty, without);
		measure(loop, with);
	}
	printf("PAPI_TOT_INS %lld, PAPI_BR_INS %lld for a loop of " TURNS "\n",
	       with[0] - without[0], with[1] - without[1]);
	/* movl, 10,000 turns of two. */
	failed = with[0] - without[0] != 20001 || with[1] - without[1] != 10000;
	if (failed)
		fprintf(stderr, "expected 20001 and 10000\n");
	return failed;
}
