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

/* Both print the same. */
#define BOTH(...)                                     \
	do {                                          \
		int n = VALGRIND_PRINTF(__VA_ARGS__); \
		if (n != printf(__VA_ARGS__))         \
			printf("it gave %d\n", n);    \
	} while (0)

static void prints(void)
{
	/* The compiler knows what these are not good for. */
	static char *volatile none;
	static volatile int wide = 70000;
	static char many[1000];

	memset(many, 'm', sizeof(many) - 1);
	BOTH("text\n");
	BOTH("a part, ");
	BOTH("%s\n\nand %s\n", "the end", "more");
	BOTH("[%d %i %5d %-5d| %05d %+d % d %.3d %.0d %hhd %hd %ld %lld %zd]\n", 1, -2, 3, 4, -5, 6,
	     7, 8, 0, (signed char)wide, (short)wide, -9L, 1LL << 62, (size_t)10);
	BOTH("[%u %x %X %#x %o %#o %08x %-8x| %lx %hhx %p %p]\n", ~0u, 255, 0xabc, 255, 8, 8,
	     0xbeef, 0xbeef, ~0ul, (unsigned char)wide, (void *)0x1234, (void *)many);
	BOTH("[%*d %-*d| %.*d %*d %c%c %5c %%]\n", 5, 42, 5, 42, 4, 7, -4, 3, 'a', 'b', 'c');
	BOTH("[%s %.3s %8s %-8s| %.*s %s]\n", "abc", "abcdef", "right", "left", 2, "xyz", none);
	BOTH("[%f %.2f %8.3f %-8.1f| %+.1f %08.2f %.0f %.0f %#.0f %5.0f]\n", 1.5, 3.14159, -2.71828,
	     0.05, 1.0, -1.5, 0.5, 1.5, 2.0, 99.5);
	BOTH("[%f %f %f %.10f %.17f %f]\n", 0.0, -0.0, 9.9999999, 1.0 / 3, 0.1, 1e15);
	BOTH("[%f %f %F %5f %Lf %f %.3f]\n", 1.0 / 0.0, -1.0 / 0.0, 1e19, 1.25, 2.5L, 5e-324,
	     1e-40);
	BOTH("[%d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f]\n", 1, 1.0, 2, 2.0, 3,
	     3.0, 4, 4.0, 5, 5.0, 6, 6.0, 7, 7.0, 8, 8.0, 9, 9.0, 10, 10.0);
	BOTH("%s\n", many);
	BOTH("no end of the line");
}

static unsigned long asked(unsigned long request, const void *a, const void *b)
{
	return VALGRIND_DO_CLIENT_REQUEST_EXPR(99, request, a, b, 0, 0, 0);
}

/* What requests of the core give. */
static void asks(void)
{
	static const char *const commands[] = {"zero",
					       "dump a hint",
					       "dump",
					       "dumps",
					       "instrumentation off",
					       "instrumentation on",
					       "v.info n_errs_found",
					       "nonsense",
					       ""};
	char line[64] = "line";

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("%s: %d\n", commands[i], (int)VALGRIND_MONITOR_COMMAND(commands[i]));
	printf("line: %d\n", (int)VALGRIND_MAP_IP_TO_SRCLOC(asks, line));
	printf("blocks: %lu %lu %lu\n", asked(0x1301, NULL, NULL), asked(0x1301, line, NULL),
	       asked(0x1302, NULL, NULL));
	printf("pools: %lu %lu\n", asked(0x1303, line, NULL), asked(0x130a, line, NULL));
	VALGRIND_DISABLE_ERROR_REPORTING;
	VALGRIND_ENABLE_ERROR_REPORTING;
	printf("stacks: %lu\n", asked(0x1501, line, line + 8) + asked(0x1502, NULL, NULL));
	printf("others: %lu %lu\n", asked(0x4d430000, line, line), asked(0x43540099, line, line));
	printf("threads: %lu\n", asked(0x1902, line, NULL));
}

/* What cannot be read. */
static void lies(void)
{
	struct {
		unsigned gp, fp;
		const void *overflow, *saved;
	} list = {48, 304, (const void *)8, (const void *)8};

	printf("%lu\n", asked(0x1403, (const void *)8, &list));
	printf("%lu\n", asked(0x1403, "text\n", (const void *)8));
	printf("%lu\n", asked(0x1403, "%d %f\n", &list));
	list.overflow = &list;
	printf("%d\n", asked(0x1403, "%s %99999d|%", &list) > 20);
	printf("%d\n", (int)VALGRIND_MONITOR_COMMAND((const char *)8));
	printf("%lu\n", asked(0x1701, lies, (const void *)8));
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
	} else if (!strcmp(what, "print")) {
		prints();
	} else if (!strcmp(what, "ask")) {
		asks();
	} else if (!strcmp(what, "lie")) {
		lies();
	} else {
		printf("%d %d\n", (int)RUNNING_ON_VALGRIND, (int)VALGRIND_COUNT_ERRORS);
	}
	return 0;
}
