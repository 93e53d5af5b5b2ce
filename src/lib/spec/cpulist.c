#include "lib/spec/cpulist.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define HIGHEST (1 << 20)

/* The next range of @s; what follows it, or NULL if there is none or it is malformed. */
static const char *next_range(const char *s, long *from, long *to)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return NULL;
	*from = *to = strtol(s, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return NULL;
		*to = strtol(end + 1, &end, 10);
	}
	if (*to < *from || (*end && *end != ','))
		return NULL;
	if (*end == ',' && !end[1])
		return NULL;
	return *end ? end + 1 : end;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int ap__cpulist_parse(const char *list, int **cpus)
{
	int *out = NULL, n = 0, room = 0, kept = 0;
	long from, to;

	while (*list) {
		list = next_range(list, &from, &to);
		if (!list || to >= HIGHEST) {
			free(out);
			return list ? -ERANGE : -EINVAL;
		}
		/* Overlapping ranges could make it far longer than there are CPUs. */
		if (n + (to - from + 1) > 2 * HIGHEST) {
			free(out);
			return -ERANGE;
		}
		for (long c = from; c <= to; c++) {
			if (n == room) {
				int *more = realloc(out, (size_t)(room = room ? 2 * room : 64) *
								 sizeof(*out));

				if (!more) {
					free(out);
					return -ENOMEM;
				}
				out = more;
			}
			out[n++] = (int)c;
		}
	}
	if (!out)
		return -EINVAL;
	qsort(out, (size_t)n, sizeof(*out), ascending);
	for (int i = 0; i < n; i++)
		if (!kept || out[kept - 1] != out[i])
			out[kept++] = out[i];
	*cpus = out;
	return kept;
}

bool ap__cpulist_has(const char *list, int cpu)
{
	long from, to;

	while (list && *list) {
		list = next_range(list, &from, &to);
		if (list && cpu >= from && cpu <= to)
			return true;
	}
	return false;
}

int ap__cpulist_last(const char *list)
{
	long from, to, last = -1;

	while (list && *list) {
		list = next_range(list, &from, &to);
		if (!list)
			return -1;
		if (to > last)
			last = to;
	}
	return (int)last;
}
