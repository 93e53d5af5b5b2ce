#include "cli/json-reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define DEPTH_MAX 32

struct json_parser {
	struct json_text *t;
	const char *at, *end, *begin;
	char *into; /* the next free byte of the strings */
	const char *wrong;
};

static bool fail(struct json_parser *p, const char *what)
{
	if (!p->wrong)
		p->wrong = what;
	return false;
}

static void skip_blanks(struct json_parser *p)
{
	while (p->at < p->end &&
	       (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
		p->at++;
}

static bool take(struct json_parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static u32 add_value(struct json_parser *p, const char *key)
{
	struct json_text *t = p->t;

	if (t->nr_values == t->room) {
		t->room = t->room ? t->room * 2 : 32;
		t->values = realloc(t->values, t->room * sizeof(*t->values));
		CHECK(t->values);
	}
	t->values[t->nr_values] = (struct json_value){.key = key};
	return t->nr_values++;
}

static bool hex4(struct json_parser *p, u32 *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++) {
		char c = p->at < p->end ? *p->at++ : 0;
		u32 digit = c >= '0' && c <= '9'   ? (u32)(c - '0')
			    : c >= 'a' && c <= 'f' ? (u32)(c - 'a') + 10
			    : c >= 'A' && c <= 'F' ? (u32)(c - 'A') + 10
						   : 16;

		if (digit == 16)
			return fail(p, "a \\u without four hexadecimal digits");
		*code = *code * 16 + digit;
	}
	return true;
}

static void put(struct json_parser *p, u32 byte)
{
	*p->into++ = (char)byte;
}

static void put_utf8(struct json_parser *p, u32 code)
{
	if (code < 0x80) {
		put(p, code);
	} else if (code < 0x800) {
		put(p, 0xc0 | code >> 6);
		put(p, 0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		put(p, 0xe0 | code >> 12);
		put(p, 0x80 | (code >> 6 & 0x3f));
		put(p, 0x80 | (code & 0x3f));
	} else {
		put(p, 0xf0 | code >> 18);
		put(p, 0x80 | (code >> 12 & 0x3f));
		put(p, 0x80 | (code >> 6 & 0x3f));
		put(p, 0x80 | (code & 0x3f));
	}
}

/* Behind "\u": at most three bytes for the six that are written, four for twelve. */
static bool take_code(struct json_parser *p)
{
	u32 code, low;

	if (!hex4(p, &code))
		return false;
	if (code >= 0xd800 && code < 0xdc00) {
		if (!take(p, '\\') || !take(p, 'u') || !hex4(p, &low) || low < 0xdc00 ||
		    low > 0xdfff)
			return fail(p, "half a surrogate pair");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code >= 0xdc00 && code < 0xe000) {
		return fail(p, "half a surrogate pair");
	}
	if (!code)
		return fail(p, "a string with a zero byte");
	put_utf8(p, code);
	return true;
}

static bool take_escape(struct json_parser *p)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	char c = p->at < p->end ? *p->at++ : 0;
	const char *found = c ? strchr(names, c) : NULL;

	if (c == 'u')
		return take_code(p);
	if (!found)
		return fail(p, "an unknown escape in a string");
	put(p, (u8)bytes[found - names]);
	return true;
}

/* Behind the first quote. What is written is never shorter than what it stands for. */
static bool take_string(struct json_parser *p, const char **text)
{
	*text = p->into;
	while (p->at < p->end) {
		char c = *p->at++;

		if (c == '"') {
			put(p, 0);
			return true;
		}
		if ((u8)c < 0x20)
			return fail(p, "a control character in a string");
		if (c == '\\' && !take_escape(p))
			return false;
		if (c != '\\')
			put(p, (u8)c);
	}
	return fail(p, "a string without an end");
}

static bool take_digits(struct json_parser *p)
{
	const char *from = p->at;

	while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
		p->at++;
	return p->at > from;
}

static bool take_number(struct json_parser *p, const char **text)
{
	const char *from = p->at;
	bool good;

	take(p, '-');
	good = take(p, '0') || take_digits(p);
	if (good && take(p, '.'))
		good = take_digits(p);
	if (good && (take(p, 'e') || take(p, 'E'))) {
		if (!take(p, '+'))
			take(p, '-');
		good = take_digits(p);
	}
	if (!good)
		return fail(p, "something that is no value");
	*text = p->into;
	memcpy(p->into, from, (size_t)(p->at - from));
	p->into += p->at - from;
	put(p, 0);
	return true;
}

static bool take_word(struct json_parser *p, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len) != 0)
		return false;
	p->at += len;
	return true;
}

static bool take_key(struct json_parser *p, const char **key)
{
	skip_blanks(p);
	if (!take(p, '"'))
		return fail(p, "a member without a name");
	if (!take_string(p, key))
		return false;
	skip_blanks(p);
	return take(p, ':') || fail(p, "a name without a colon");
}

static bool take_value(struct json_parser *p, const char *key, u32 depth, u32 *number);

/* Behind the bracket of value @number. */
static bool take_members(struct json_parser *p, u32 number, u32 depth, bool object)
{
	char end = object ? '}' : ']';
	u32 last = 0;

	skip_blanks(p);
	if (take(p, end))
		return true;
	do {
		const char *key = NULL;
		u32 member;

		if ((object && !take_key(p, &key)) || !take_value(p, key, depth + 1, &member))
			return false;
		if (last)
			p->t->values[last].next = member;
		else
			p->t->values[number].first = member;
		last = member;
		skip_blanks(p);
	} while (take(p, ','));
	return take(p, end) || fail(p, "a list without an end");
}

static bool take_value(struct json_parser *p, const char *key, u32 depth, u32 *number)
{
	u32 n = *number = add_value(p, key);
	enum json_kind kind = JSON_NUMBER;
	const char *text = NULL;

	if (depth > DEPTH_MAX)
		return fail(p, "more than 32 lists in each other");
	skip_blanks(p);
	if (take(p, '{') || take(p, '[')) {
		kind = p->at[-1] == '{' ? JSON_OBJECT : JSON_ARRAY;
		p->t->values[n].kind = kind;
		return take_members(p, n, depth, kind == JSON_OBJECT);
	}
	if (take(p, '"')) {
		kind = JSON_STRING;
		if (!take_string(p, &text))
			return false;
	} else if (take_word(p, "null")) {
		kind = JSON_NULL;
	} else if (take_word(p, "true")) {
		kind = JSON_TRUE;
	} else if (take_word(p, "false")) {
		kind = JSON_FALSE;
	} else if (!take_number(p, &text)) {
		return false;
	}
	p->t->values[n].kind = kind;
	p->t->values[n].text = text;
	return true;
}

int json_read(struct json_text *t, const char *bytes, size_t len, char *why, size_t size)
{
	/* A number is as long as what is written, and ends with a byte more; so the double. */
	struct json_parser p = {t, bytes, bytes + len, bytes, NULL, NULL};
	u32 whole, line = 1;

	*t = (struct json_text){.strings = malloc(2 * len + 1)};
	CHECK(t->strings);
	p.into = t->strings;
	if (take_value(&p, NULL, 0, &whole)) {
		skip_blanks(&p);
		if (p.at == p.end)
			return 0;
		fail(&p, "more than one value");
	}
	for (const char *c = bytes; c < p.at; c++)
		line += *c == '\n';
	snprintf(why, size, "line %u has %s", line, p.wrong);
	json_release(t);
	return -EINVAL;
}

void json_release(struct json_text *t)
{
	free(t->strings);
	free(t->values);
	*t = (struct json_text){0};
}

const struct json_value *json_first(const struct json_text *t, const struct json_value *v)
{
	return v && v->first ? &t->values[v->first] : NULL;
}

const struct json_value *json_next(const struct json_text *t, const struct json_value *v)
{
	return v && v->next ? &t->values[v->next] : NULL;
}

const struct json_value *json_member(const struct json_text *t, const struct json_value *object,
				     const char *key, enum json_kind kind)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (const struct json_value *v = json_first(t, object); v; v = json_next(t, v))
		if (!strcmp(v->key, key))
			return v->kind == kind ? v : NULL;
	return NULL;
}

const char *json_member_text(const struct json_text *t, const struct json_value *object,
			     const char *key)
{
	const struct json_value *v = json_member(t, object, key, JSON_STRING);

	return v ? v->text : NULL;
}

bool json_member_u64(const struct json_text *t, const struct json_value *object, const char *key,
		     u64 *value)
{
	const struct json_value *v = json_member(t, object, key, JSON_NUMBER);
	char *end;

	if (!v || v->text[0] == '-')
		return false;
	errno = 0;
	*value = strtoull(v->text, &end, 10);
	return !errno && !*end;
}
