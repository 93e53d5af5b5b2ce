#include "cli/number.h"

#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct number_style number_plain = {.point = "."};

/* The name of the environment's locale for @category. */
static const char *locale_name(const char *category)
{
	const char *const vars[] = {"LC_ALL", category, "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(vars); i++) {
		const char *v = getenv(vars[i]);

		if (v && *v)
			return v;
	}
	return "C";
}

static bool is_plain(const char *name)
{
	return !strcmp(name, "C") || !strcmp(name, "POSIX");
}

/* Every character of the separators in use is one column wide. */
static u8 columns(const char *utf8)
{
	u8 n = 0;

	for (; *utf8; utf8++)
		n += (*utf8 & 0xc0) != 0x80;
	return n;
}

void number_style_init(struct number_style *style)
{
	locale_t locale, before;
	const char *name = locale_name("LC_NUMERIC");
	struct lconv *conv;

	*style = number_plain;
	if (is_plain(name) || !strncmp(name, "C.", 2))
		return;
	locale = newlocale(LC_NUMERIC_MASK, "", (locale_t)0);
	if (!locale)
		return;
	before = uselocale(locale);
	conv = localeconv();
	if (*conv->decimal_point)
		snprintf(style->point, sizeof(style->point), "%s", conv->decimal_point);
	snprintf(style->separator, sizeof(style->separator), "%s", conv->thousands_sep);
	snprintf(style->grouping, sizeof(style->grouping), "%s", conv->grouping);
	style->separator_columns = columns(style->separator);
	uselocale(before);
	freelocale(locale);
}

const char *number_plus_minus(void)
{
	locale_t locale;
	bool utf8;

	if (is_plain(locale_name("LC_CTYPE")))
		return "+-";
	locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (!locale)
		return "+-";
	utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
	freelocale(locale);
	return utf8 ? "±" : "+-";
}

char *number_text(const struct number_style *style, double value, int decimals, int width,
		  char *buf, size_t size)
{
	char plain[400], grouped[400]; /* the largest double has 309 digits */
	char *out = grouped + sizeof(grouped) - 1;
	const char *group = style->grouping;
	const char *digits, *fraction;
	int in_group = 0, cols, left;
	size_t n;

	snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	digits = plain + (plain[0] == '-');
	n = strcspn(digits, ".");
	fraction = digits + n;
	*out = 0;
	cols = (int)n;
	for (; n; n--) {
		if (*style->separator && *group && *group != CHAR_MAX && in_group == *group) {
			size_t sep = strlen(style->separator);

			/* The last size stands for all further groups. */
			if (group[1])
				group++;
			if ((size_t)(out - grouped) <= sep + 1)
				break;
			out -= sep;
			memcpy(out, style->separator, sep);
			cols += style->separator_columns;
			in_group = 0;
		}
		*--out = digits[n - 1];
		in_group++;
	}
	if (plain[0] == '-') {
		*--out = '-';
		cols++;
	}
	if (*fraction)
		cols += 1 + (int)strlen(fraction + 1);
	left = width > cols ? width - cols : 0;
	snprintf(buf, size, "%*s%s%s%s", left, "", out, *fraction ? style->point : "",
		 *fraction ? fraction + 1 : "");
	return buf;
}
