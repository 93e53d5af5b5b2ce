/*
 * PURPOSE: numbers for people: with the thousands separators of the user's locale. The process's
 * own locale stays "C", so that every printf() writes machine-readable numbers.
 */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include "base/types.h"

struct number_style {
	char separator[8]; /* between groups of digits, UTF-8; "" for none */
	char point[8];
	u8 separator_columns; /* how wide it is shown */
	char grouping[8];     /* sizes of groups from the right, as in lconv(5) */
};

/* No separators, decimal point: the style of "C". */
extern const struct number_style number_plain;

/*
 * The style of the environment's LC_NUMERIC. Loads no locale, and makes no system call, if that is
 * "C".
 */
void number_style_init(struct number_style *style);

/* The sign before a deviation: ± where the environment's LC_CTYPE can show it, else +-. */
const char *number_plus_minus(void);

/*
 * Writes @value with @decimals digits after the point, right-aligned in @width columns (0: as long
 * as it is). Returns @buf; 64 bytes are enough for every number.
 */
char *number_text(const struct number_style *style, double value, int decimals, int width,
		  char *buf, size_t size);

#endif
