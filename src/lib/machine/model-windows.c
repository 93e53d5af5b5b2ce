#include "lib/machine/model-windows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/modeled.h"

#define WINDOW_AUTO 20000u

/*
 * A number with K, M or G behind it perhaps; *@at is moved past it. 0: none. One above WINDOW_MOST
 * is too large.
 */
static u32 number(const char **at)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	char *end;

	if (**at < '0' || **at > '9')
		return 0;
	n = strtoull(*at, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *u = units; unit && u <= unit && n <= WINDOW_MOST; u++)
		n *= 1000;
	*at = end + (unit != NULL);
	return n > WINDOW_MOST ? WINDOW_MOST + 1 : (u32)n;
}

int ap__model_windows(const char *text, u32 *window, u32 *every, const char **why)
{
	*window = *every = 0;
	if (!text || !strcmp(text, "no"))
		return 0;
	if (!strcmp(text, "auto")) {
		*window = WINDOW_AUTO;
		return 0;
	}
	*window = number(&text);
	if (*window && *text++ == '/')
		*every = number(&text);
	if (!*every || *text)
		*why = "is no, auto, or instructions of instructions, as 50K/10M";
	else if (*window > WINDOW_MOST || *every > WINDOW_MOST)
		*why = "has more than 2^30 instructions";
	else if (*window < WINDOW_LEAST)
		*why = "has windows of less than 1000 instructions";
	else if (*every % *window)
		*why = "has windows of which no whole number makes the period";
	else
		return 0;
	return -EINVAL;
}

char *ap__model_windows_text(u32 window, u32 every, char *buf, size_t size)
{
	if (window && every)
		snprintf(buf, size, "%u/%u", window, every);
	else
		snprintf(buf, size, "%s", window ? "auto" : "");
	return buf;
}
