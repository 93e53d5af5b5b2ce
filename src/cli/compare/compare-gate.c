#include "cli/compare/compare-gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	char unit;
	double of;
} units[] = {
	{"", 0, 1},        {"%", '%', 1},    {"s", 's', 1},    {"ms", 's', 1e-3}, {"us", 's', 1e-6},
	{"ns", 's', 1e-9}, {"kB", 'b', 1e3}, {"MB", 'b', 1e6}, {"GB", 'b', 1e9},
};

static bool refuse(const char *text, const char *what, char *why, size_t size)
{
	snprintf(why, size, "'%.60s' %s, as in 'instructions>+0.1%%' or 'time>+5%%'", text, what);
	return false;
}

bool gate_parse(struct gate *g, const char *text, char *why, size_t size)
{
	/* Terms of events have neither of the two. */
	const char *sign = strpbrk(text, "<>"), *number = sign ? sign + 1 : NULL;
	char *end;

	*g = (struct gate){.text = text};
	if (!sign || sign == text || sign - text > GATE_NAME_MAX)
		return refuse(text, "is no name with a limit behind > or <", why, size);
	memcpy(g->name, text, (size_t)(sign - text));
	g->below = *sign == '<';
	/* strtod() takes blanks, "inf" and hexadecimal numbers, too. */
	if (number[strspn(number, "+-0123456789.")] == 'x' || !strpbrk(number, "0123456789") ||
	    !strchr("+-.0123456789", *number))
		return refuse(text, "has no number as its limit", why, size);
	g->limit = strtod(number, &end);
	for (u32 i = 0; i < ARRAY_SIZE(units); i++) {
		if (end == number || strcmp(end, units[i].name) != 0 || !isfinite(g->limit))
			continue;
		g->percent = units[i].unit == '%';
		g->unit = g->percent ? 0 : units[i].unit;
		g->limit *= units[i].of;
		return true;
	}
	return refuse(text, "has no number as its limit", why, size);
}

enum gate_result gate_judge(const struct gate *g, const struct gate_change *c)
{
	if (g->below ? c->high < g->limit : c->low > g->limit)
		return GATE_BROKEN;
	if (g->below ? c->value < g->limit : c->value > g->limit)
		return GATE_INCONCLUSIVE;
	return GATE_HELD;
}
