#include <stdlib.h>
#include <string.h>

#include "sym/rust/demangle-rust.h"
#include "sym/rust/name-priv.h"

#define DIGITS 16
#define HASH   "::h0123456789abcdef"

/* 16 digits, of which a name that only looks so has fewer different ones. */
static bool is_hash(const char *digits)
{
	u32 seen = 0;

	if (strspn(digits, "0123456789abcdef") != DIGITS)
		return false;
	for (u32 i = 0; i < DIGITS; i++)
		seen |= 1u << (digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
	return __builtin_popcount(seen) >= 5;
}

size_t sym_rust_legacy_length(const char *mangled)
{
	for (const char *p = mangled; (p = strstr(p, "17h")); p++) {
		const char *end = p + 3 + DIGITS;

		if (is_hash(p + 3) && *end == 'E' && (!end[1] || strchr(".@", end[1])))
			return (size_t)(end + 1 - mangled);
	}
	return 0;
}

/* What `$WORD$` stands for, and its length with both signs; NULL: for nothing. */
static const char *escape(const char *p, size_t *len, char one[2])
{
	static const char *const words[][2] = {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"},
					       {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}};
	const char *end = strchr(p + 1, '$');
	unsigned long code;
	char *behind;

	if (!end)
		return NULL;
	*len = (size_t)(end - p) + 1;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (*len == strlen(words[i][0]) + 2 && !strncmp(p + 1, words[i][0], *len - 2))
			return words[i][1];
	/* Letters that are not ASCII are not allowed there, and were never written so. */
	if (p[1] != 'u' || *len > 6)
		return NULL;
	code = strtoul(p + 2, &behind, 16);
	if (behind != end || code < 0x20 || code > 0x7e)
		return NULL;
	one[0] = (char)code;
	one[1] = 0;
	return one;
}

void sym_rust_legacy(char *name)
{
	size_t len = strlen(name), n;
	char *to = name, one[2];
	const char *p = name;

	if (len < sizeof(HASH) || strncmp(name + len - strlen(HASH), "::h", 3) != 0 ||
	    !is_hash(name + len - DIGITS))
		return;
	name[len - strlen(HASH)] = 0;
	while (*p) {
		const char *stands_for;

		/* Identifiers do not begin with a sign, so the compiler puts this in front. */
		if (*p == '_' && p[1] == '$' && (p == name || p[-1] == ':')) {
			p++;
		} else if (*p == '$' && (stands_for = escape(p, &n, one))) {
			*to++ = *stands_for;
			p += n;
		} else if (*p == '.' && p[1] == '.') {
			*to++ = ':';
			*to++ = ':';
			p += 2;
		} else {
			*to++ = *p++;
		}
	}
	*to = 0;
}
