/* The hosted world's end of CHECK(). */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "anyperf: bug at %s:%d: %s does not hold. Please report it.\n", file, line,
		what);
	abort();
}
