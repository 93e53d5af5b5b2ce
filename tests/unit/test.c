/* main() of every unit test program. */
#include "unit/test.h"

int test_failures;

extern const struct test *const __start_unit_tests[], *const __stop_unit_tests[];

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : "";
	int ran = 0;

	for (const struct test *const *t = __start_unit_tests; t < __stop_unit_tests; t++) {
		int before = test_failures;

		if (!strstr((*t)->name, only))
			continue;
		(*t)->run();
		ran++;
		printf("%s %s\n", test_failures == before ? "ok  " : "FAIL", (*t)->name);
	}
	if (!ran) {
		fprintf(stderr, "no test is named like \"%s\"\n", only);
		return 1;
	}
	return test_failures ? 1 : 0;
}
