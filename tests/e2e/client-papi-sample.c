/*
 * A program that samples with PAPI: PAPI_overflow and PAPI_profil on code that is known. PAPI stops
 * an event at its overflow, calls the handler and lets the event go on, so there are as many
 * overflows as the count has periods, whatever the handler executes.
 */
#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS    "1000000" /* of two instructions, one of them a branch */
#define PERIOD   100000
#define PER_LOOP (2 * 1000000 / PERIOD)

/* A loop that has its addresses to itself. */
void papi_loop(void);
extern const char papi_loop_end[];
asm(".text\n"
    "papi_loop:\n"
    "movl $" TURNS ", %ecx\n"
    "1: decl %ecx\n"
    "jnz 1b\n"
    "ret\n"
    "papi_loop_end:\n");

static __thread long overflows, in_loop, branches;
static int failures;

static void need(int result, const char *what)
{
	if (result >= PAPI_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, PAPI_strerror(result));
	exit(1);
}

static void expect(long long got, long long least, long long most, const char *what)
{
	if (got >= least && got <= most)
		return;
	fprintf(stderr, "%s: %lld, expected %lld to %lld\n", what, got, least, most);
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static void on_overflow(int set, void *address, long long vector, void *context)
{
	(void)set, (void)context;
	if (vector & 1) {
		overflows++;
		in_loop += (char *)address >= (char *)papi_loop && (char *)address < papi_loop_end;
	}
	branches += !!(vector & 2);
}

static int both_events(void)
{
	int set = PAPI_NULL;

	need(PAPI_create_eventset(&set), "PAPI_create_eventset");
	need(PAPI_add_event(set, PAPI_TOT_INS), "PAPI_TOT_INS");
	need(PAPI_add_event(set, PAPI_BR_INS), "PAPI_BR_INS");
	return set;
}

static void count_loop(int set, long long v[2])
{
	need(PAPI_start(set), "PAPI_start");
	papi_loop();
	need(PAPI_stop(set, v), "PAPI_stop");
}

static void overflow(const char *name)
{
	int set = both_events();
	long long v[2];

	overflows = in_loop = branches = 0;
	need(PAPI_overflow(set, PAPI_TOT_INS, PERIOD, 0, on_overflow), "PAPI_overflow");
	count_loop(set, v);
	expect(overflows, v[0] / PERIOD, v[0] / PERIOD, name);
	expect(in_loop, PER_LOOP - 1, PER_LOOP, "of these, in the loop");
	expect(branches, 0, 0, "overflows of what does not overflow");

	need(PAPI_overflow(set, PAPI_BR_INS, PERIOD, 0, on_overflow), "PAPI_overflow, second");
	overflows = in_loop = branches = 0;
	count_loop(set, v);
	expect(overflows, v[0] / PERIOD, v[0] / PERIOD, "overflows of the first of two");
	expect(branches, v[1] / PERIOD, v[1] / PERIOD, "overflows of the second of two");

	need(PAPI_overflow(set, PAPI_TOT_INS, 0, 0, on_overflow), "PAPI_overflow, off");
	overflows = branches = 0;
	count_loop(set, v);
	expect(overflows, 0, 0, "overflows of an event that has none any more");
	expect(branches, v[1] / PERIOD, v[1] / PERIOD, "overflows of the one beside it");
	need(PAPI_cleanup_eventset(set), "PAPI_cleanup_eventset");
	need(PAPI_destroy_eventset(&set), "PAPI_destroy_eventset");
}

/* One bucket for two bytes of code: the samples are at the loop's two instructions. */
static void profile(void)
{
	static unsigned int buckets[16];
	unsigned int length = (unsigned int)(papi_loop_end - (char *)papi_loop), sum = 0;
	int set = both_events();
	long long v[2];

	need(PAPI_profil(buckets, sizeof(buckets), (void *)papi_loop, 65536, set, PAPI_TOT_INS,
			 PERIOD, PAPI_PROFIL_POSIX | PAPI_PROFIL_BUCKET_32),
	     "PAPI_profil");
	count_loop(set, v);
	for (unsigned int i = 0; i < sizeof(buckets) / sizeof(*buckets); i++) {
		sum += buckets[i];
		if (2 * i >= length)
			expect(buckets[i], 0, 0, "samples behind the loop");
	}
	expect(sum, PER_LOOP - 1, PER_LOOP, "samples in the profile");
	need(PAPI_profil(buckets, sizeof(buckets), (void *)papi_loop, 65536, set, PAPI_TOT_INS, 0,
			 PAPI_PROFIL_POSIX),
	     "PAPI_profil, off");
	memset(buckets, 0, sizeof(buckets));
	count_loop(set, v);
	for (unsigned int i = 0; i < sizeof(buckets) / sizeof(*buckets); i++)
		expect(buckets[i], 0, 0, "samples of a profile that has ended");
}

static void *thread(void *unused)
{
	(void)unused;
	need(PAPI_register_thread(), "PAPI_register_thread");
	overflow("overflows of a thread");
	need(PAPI_unregister_thread(), "PAPI_unregister_thread");
	return NULL;
}

int main(void)
{
	pthread_t threads[3];

	if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) {
		fprintf(stderr, "PAPI_library_init failed\n");
		return 1;
	}
	need(PAPI_thread_init(pthread_self), "PAPI_thread_init");
	overflow("overflows");
	profile();
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return !!failures;
}
