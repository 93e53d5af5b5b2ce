#include <stdlib.h>
#include <string.h>

#include "sym/rust/name-priv.h"

/* Digits to the base 16 and `_`: how many, from *@digits on, without zeros in front. */
static size_t hex(struct rust_name *r, const char **digits)
{
	size_t begin = r->at, end;

	while ((rust_peek(r) >= '0' && rust_peek(r) <= '9') ||
	       (rust_peek(r) >= 'a' && rust_peek(r) <= 'f'))
		r->at++;
	end = r->at;
	if (!rust_eat(r, '_'))
		r->wrong = true;
	*digits = r->sym + begin;
	return end - begin;
}

/* False: it has more than 64 bits. */
static bool hex_value(const char *digits, size_t n, u64 *value)
{
	*value = 0;
	for (; n && *digits == '0'; n--)
		digits++;
	for (size_t i = 0; i < n; i++)
		*value = *value << 4 |
			 (u64)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
	return n <= 16;
}

static void integer(struct rust_name *r)
{
	const char *digits;
	size_t n;
	u64 value;

	if (rust_eat(r, 'n'))
		rust_put(r, "-");
	n = hex(r, &digits);
	if (hex_value(digits, n, &value)) {
		rust_put_number(r, value);
	} else {
		rust_put(r, "0x");
		rust_put_bytes(r, digits, n);
	}
}

static void truth_or_char(struct rust_name *r, char tag)
{
	const char *digits;
	size_t n = hex(r, &digits);
	u64 value;

	if (!hex_value(digits, n, &value) || value > (tag == 'b' ? 1 : 0x10ffff)) {
		r->wrong = true;
	} else if (tag == 'b') {
		rust_put(r, value ? "true" : "false");
	} else {
		rust_put(r, "'");
		rust_put_char(r, (u32)value, '\'');
		rust_put(r, "'");
	}
}

/* The code at *@p, which has @left bytes, and moves behind it; ~0: it is not UTF-8. */
static u32 next_utf8(const u8 **p, size_t *left)
{
	u32 code = **p, more = code < 0x80   ? 0
			       : code < 0xc0 ? 4
			       : code < 0xe0 ? 1
			       : code < 0xf0 ? 2
					     : 3;

	if (more >= *left || more > 3)
		return ~0u;
	if (more)
		code &= 0x3fu >> more;
	*left -= more + 1;
	for ((*p)++; more--; (*p)++) {
		if ((**p & 0xc0) != 0x80)
			return ~0u;
		code = code << 6 | (**p & 0x3f);
	}
	return code;
}

/* The bytes of a text, two digits each. */
static void text(struct rust_name *r)
{
	const char *digits;
	size_t n = hex(r, &digits), left = n / 2;
	u8 *bytes, *to;
	const u8 *p;

	if (r->wrong || n % 2) {
		r->wrong = true;
		return;
	}
	p = to = bytes = calloc(1, left + 1);
	if (!bytes) {
		r->wrong = true;
		return;
	}
	for (size_t i = 0; i < n; i += 2) {
		u64 byte;

		(void)hex_value(digits + i, 2, &byte);
		*to++ = (u8)byte;
	}
	rust_put(r, "\"");
	while (left && !r->wrong) {
		u32 code = next_utf8(&p, &left);

		rust_put_char(r, code, '"');
	}
	rust_put(r, "\"");
	free(bytes);
}

static void field(struct rust_name *r)
{
	(void)rust_number_after(r, 's');
	rust_put_ident(r, rust_identifier(r));
	rust_put(r, ": ");
	rust_constant(r, true);
}

static void element(struct rust_name *r)
{
	rust_constant(r, true);
}

/* A value of a struct, or of a variant of an enum. */
static void variant(struct rust_name *r)
{
	rust_path(r, true);
	switch (rust_next(r)) {
	case 'U': break;
	case 'T':
		rust_put(r, "(");
		rust_list(r, element, ", ");
		rust_put(r, ")");
		break;
	case 'S':
		rust_put(r, " { ");
		rust_list(r, field, ", ");
		rust_put(r, " }");
		break;
	default: r->wrong = true;
	}
}

static void compound_constant(struct rust_name *r, char tag)
{
	switch (tag) {
	case 'e':
		rust_put(r, "*");
		text(r);
		break;
	case 'R':
	case 'Q':
		rust_put(r, tag == 'R' ? "&" : "&mut ");
		rust_constant(r, true);
		break;
	case 'A':
		rust_put(r, "[");
		rust_list(r, element, ", ");
		rust_put(r, "]");
		break;
	case 'T':
		rust_put(r, "(");
		rust_put(r, rust_list(r, element, ", ") == 1 ? ",)" : ")");
		break;
	case 'V': variant(r); break;
	default: r->wrong = true;
	}
}

static void constant_of(struct rust_name *r, char tag, bool in_value)
{
	size_t back = 0;

	if (tag == 'p') {
		rust_put(r, "_");
	} else if (tag == 'B') {
		if (rust_follow(r, &back))
			rust_constant(r, in_value);
		r->at = r->wrong ? r->at : back;
	} else if (tag && strchr("hmtyojalsxni", tag)) {
		integer(r);
	} else if (tag == 'b' || tag == 'c') {
		truth_or_char(r, tag);
	} else if (tag == 'R' && rust_eat(r, 'e')) {
		/* A reference to a text is what a text in quotes is. */
		text(r);
	} else {
		if (!in_value)
			rust_put(r, "{");
		compound_constant(r, tag);
		if (!in_value)
			rust_put(r, "}");
	}
}

void rust_constant(struct rust_name *r, bool in_value)
{
	if (rust_enter(r))
		constant_of(r, rust_next(r), in_value);
	rust_leave(r);
}
