/*
 * PURPOSE: the unit tests' harness. A file of TEST()s is one program: exit 0 all passed, 1 some
 * failed, 77 skipped. Tests place themselves in a linker section, so there is no list to maintain.
 * `prog NAME` runs just the tests whose name contains NAME.
 *
 * A failed EXPECT is reported with both values and the test goes on; ASSERT ends it.
 */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
	const char *name;
	void (*run)(void);
};

extern int test_failures; /* of the whole program, so far */

#define TEST(fn)                                                                 \
	static void test_##fn(void);                                             \
	static const struct test test_entry_##fn = {#fn, test_##fn};             \
	static const struct test *const test_ptr_##fn                            \
		__attribute__((used, section("unit_tests"))) = &test_entry_##fn; \
	static void test_##fn(void)

#define TEST_FAIL(...)                                          \
	do {                                                    \
		test_failures++;                                \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__);                   \
		fputc('\n', stderr);                            \
	} while (0)

#define EXPECT(cond)                                     \
	do {                                             \
		if (!(cond))                             \
			TEST_FAIL("expected %s", #cond); \
	} while (0)

#define EXPECT_EQ(a, b)                                                                       \
	do {                                                                                  \
		long long va_ = (long long)(a), vb_ = (long long)(b);                         \
		if (va_ != vb_)                                                               \
			TEST_FAIL("%s = %lld (%#llx), expected %s = %lld (%#llx)", #a, va_,   \
				  (unsigned long long)va_, #b, vb_, (unsigned long long)vb_); \
	} while (0)

#define EXPECT_STREQ(a, b)                                                                  \
	do {                                                                                \
		const char *sa_ = (a), *sb_ = (b);                                          \
		if (!sa_ || !sb_ || strcmp(sa_, sb_) != 0)                                  \
			TEST_FAIL("%s = \"%s\", expected \"%s\"", #a, sa_ ? sa_ : "(null)", \
				  sb_ ? sb_ : "(null)");                                    \
	} while (0)

#define EXPECT_CONTAINS(hay, needle)                                                  \
	do {                                                                          \
		const char *sa_ = (hay), *sb_ = (needle);                             \
		if (!sa_ || !strstr(sa_, sb_))                                        \
			TEST_FAIL("%s = \"%s\", which does not contain \"%s\"", #hay, \
				  sa_ ? sa_ : "(null)", sb_);                         \
	} while (0)

#define ASSERT(cond)                                                     \
	do {                                                             \
		if (!(cond)) {                                           \
			TEST_FAIL("expected %s, test ends here", #cond); \
			return;                                          \
		}                                                        \
	} while (0)

/* Ends the whole program as skipped; tests/allowed-skips must list it with the reason. */
#define TEST_SKIP(...)                        \
	do {                                  \
		fprintf(stderr, "skipped: "); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		exit(77);                     \
	} while (0)

#endif
