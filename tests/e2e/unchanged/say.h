/* One line per finding; the same lines natively and under the translator. */
#ifndef SAY_H
#define SAY_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY(...)                     \
	do {                         \
		printf(__VA_ARGS__); \
		putchar('\n');       \
		fflush(stdout);      \
	} while (0)

/* Says what a call returned, and errno if it failed. */
#define TRY(what, expr)                                                           \
	do {                                                                      \
		long ret_;                                                        \
		errno = 0;                                                        \
		ret_ = (long)(expr);                                              \
		SAY("%s: %ld %s", what, ret_, ret_ == -1 ? strerror(errno) : ""); \
	} while (0)

/* Says the condition and whether it holds. */
#define HOLDS(cond) SAY("%s: %s", #cond, (cond) ? "yes" : "NO")

#endif
