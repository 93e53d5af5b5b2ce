/*
 * PURPOSE: CHECK(), the assertion that is never compiled out. A failed check is a bug of anyperf,
 * never bad input: bad input gets -errno and a reason.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/*
 * Each world brings its own: src/base/check.c (hosted) aborts, the runtime writes and kills itself.
 */
__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *what);

#define CHECK(cond)                                              \
	do {                                                     \
		if (__builtin_expect(!(cond), 0))                \
			check_failed(__FILE__, __LINE__, #cond); \
	} while (0)

#endif
