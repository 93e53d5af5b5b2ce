#include "lib/spec/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 95

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

static int low(char c)
{
	/* perf's names mix - and _ so freely that they count as the same letter. */
	return c == '_' ? '-' : tolower((unsigned char)c);
}

unsigned int ap__edit_distance(const char *a, const char *b)
{
	/* Three rows of the usual table: two letters back (for swaps), one back, this one. */
	unsigned int rows[3][LONGEST + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > LONGEST || lb > LONGEST)
		return UINT_MAX;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned int *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			bool same = low(a[i - 1]) == low(b[j - 1]);

			row[j] = min3(up[j] + 1, row[j - 1] + 1, up[j - 1] + !same);
			if (i > 1 && j > 1 && low(a[i - 1]) == low(b[j - 2]) &&
			    low(a[i - 2]) == low(b[j - 1]) && up2[j - 2] + 1 < row[j])
				row[j] = up2[j - 2] + 1;
		}
	}
	return rows[la % 3][lb];
}

void ap__nearest_init(struct ap__nearest *n, const char *wanted)
{
	n->wanted = wanted;
	n->n = 0;
}

void ap__nearest_offer(struct ap__nearest *n, const char *candidate)
{
	size_t len = strlen(n->wanted), clen = strlen(candidate);
	unsigned int limit = len < 4 ? 1 : len < 9 ? 2 : (unsigned int)len / 3;
	unsigned int d, at;

	if (clen > LONGEST || clen + limit < len)
		return;
	/* What was written may be the beginning of a longer name: "page-fault", "branch". */
	if (clen > len && len >= 3 && strncasecmp(candidate, n->wanted, len) == 0)
		d = limit < 2 ? limit : 2;
	else if (clen > len + limit)
		return;
	else
		d = ap__edit_distance(n->wanted, candidate);
	if (d > limit)
		return;
	for (at = 0; at < n->n; at++)
		if (strcmp(n->name[at], candidate) == 0)
			return;
	for (at = 0; at < n->n && n->distance[at] <= d; at++)
		;
	if (at == NEAREST_MAX)
		return;
	if (n->n < NEAREST_MAX)
		n->n++;
	for (unsigned int i = n->n - 1; i > at; i--) {
		n->distance[i] = n->distance[i - 1];
		memcpy(n->name[i], n->name[i - 1], sizeof(n->name[i]));
	}
	n->distance[at] = d;
	memcpy(n->name[at], candidate, clen + 1);
}

char *ap__nearest_text(const struct ap__nearest *n, char *buf, size_t len)
{
	unsigned int best = 0;
	size_t have;

	if (!len)
		return buf;
	buf[0] = '\0';
	while (best < n->n && n->distance[best] == n->distance[0])
		best++;
	for (unsigned int i = 0; i < best; i++) {
		have = strlen(buf);
		snprintf(buf + have, len - have, "%s%s",
			 i == 0          ? "did you mean "
			 : i + 1 == best ? " or "
					 : ", ",
			 n->name[i]);
	}
	have = strlen(buf);
	if (n->n)
		snprintf(buf + have, len - have, "?");
	return buf;
}
