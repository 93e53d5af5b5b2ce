/*
 * A program that counts presets of floating-point numbers with PAPI around code that is known:
 *   client-papi-floats PRESET=COUNT...
 */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* 1000 times a multiplication of one double, and an addition of four floats. */
static void calculate(void)
{
	asm volatile("movl $1000, %%ecx\n"
		     "1: mulsd %%xmm0, %%xmm1\n"
		     "addps %%xmm2, %%xmm3\n"
		     "decl %%ecx\n"
		     "jnz 1b" ::
			     : "ecx", "cc", "memory", "xmm1", "xmm3");
}

static long long measure(int set, void (*fn)(void))
{
	long long v = -1;

	need(PAPI_start(set), "PAPI_start");
	fn();
	need(PAPI_stop(set, &v), "PAPI_stop");
	return v;
}

static int check(char *preset)
{
	char *count = strchr(preset, '=');
	long long without = 0, with = 0;
	int set = PAPI_NULL;

	if (!count)
		return 1;
	*count++ = 0;
	need(PAPI_create_eventset(&set), "PAPI_create_eventset");
	need(PAPI_add_named_event(set, preset), preset);
	/* The first rounds resolve symbols. */
	for (int i = 0; i < 3; i++) {
		without = measure(set, empty);
		with = measure(set, calculate);
	}
	need(PAPI_cleanup_eventset(set), "PAPI_cleanup_eventset");
	if (with - without == strtoll(count, NULL, 0))
		return 0;
	fprintf(stderr, "%s is %lld, not %s\n", preset, with - without, count);
	return 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) {
		fprintf(stderr, "PAPI_library_init failed\n");
		return 1;
	}
	for (int i = 1; i < argc; i++)
		failed |= check(argv[i]);
	return failed;
}
