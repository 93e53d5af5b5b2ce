#include "cli/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

void json_begin(struct json *j, FILE *out)
{
	*j = (struct json){.out = out};
}

void json_begin_lines(struct json *j, FILE *out)
{
	*j = (struct json){.out = out, .lines = true};
}

static void new_line(const struct json *j, u32 depth)
{
	if (j->lines)
		fprintf(j->out, "\n%*s", (int)(2 * depth), "");
}

/* The bytes of the UTF-8 sequence at @s, or 0 if they are none. */
static size_t utf8_len(const unsigned char *s)
{
	size_t len = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates and what lies beyond U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void quoted(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	putc('"', out);
	while (*s) {
		size_t len = 1;

		if (*s == '"' || *s == '\\') {
			fprintf(out, "\\%c", *s);
		} else if (*s == '\n') {
			fputs("\\n", out);
		} else if (*s == '\t') {
			fputs("\\t", out);
		} else if (*s < 0x20 || *s == 0x7f) {
			fprintf(out, "\\u%04x", *s);
		} else if (*s < 0x80) {
			putc(*s, out);
		} else {
			len = utf8_len(s);
			if (len)
				fwrite(s, 1, len, out);
			else
				fputs("\\ufffd", out);
			len += !len;
		}
		s += len;
	}
	putc('"', out);
}

static void key_and_comma(struct json *j, const char *key)
{
	CHECK(!j->depth || (key == NULL) == ((j->array & BIT(j->depth)) != 0));
	if (j->some & BIT(j->depth))
		fputs(j->lines ? "," : ", ", j->out);
	j->some |= BIT(j->depth);
	if (j->depth)
		new_line(j, j->depth);
	if (key) {
		quoted(j->out, key);
		fputs(": ", j->out);
	}
}

static void open_one(struct json *j, const char *key, bool array)
{
	key_and_comma(j, key);
	putc(array ? '[' : '{', j->out);
	CHECK(++j->depth < 64);
	j->some &= ~BIT(j->depth);
	j->array = array ? j->array | BIT(j->depth) : j->array & ~BIT(j->depth);
}

void json_object(struct json *j, const char *key)
{
	open_one(j, key, false);
}

void json_array(struct json *j, const char *key)
{
	open_one(j, key, true);
}

void json_end(struct json *j)
{
	CHECK(j->depth);
	if (j->some & BIT(j->depth))
		new_line(j, j->depth - 1);
	putc(j->array & BIT(j->depth) ? ']' : '}', j->out);
	j->depth--;
}

void json_finish(struct json *j)
{
	CHECK(!j->depth);
	putc('\n', j->out);
}

void json_str(struct json *j, const char *key, const char *value)
{
	key_and_comma(j, key);
	if (value)
		quoted(j->out, value);
	else
		fputs("null", j->out);
}

void json_u64(struct json *j, const char *key, u64 value)
{
	key_and_comma(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_s64(struct json *j, const char *key, s64 value)
{
	key_and_comma(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	key_and_comma(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_double(struct json *j, const char *key, double value, int digits)
{
	key_and_comma(j, key);
	/* value - value is NaN for NaN and the infinities. */
	if (value - value == 0)
		fprintf(j->out, "%.*f", digits, value);
	else
		fputs("null", j->out);
}
