#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/rust/name-priv.h"

#define TEXT_MAX (64u << 10)

/* Longer identifiers that are not ASCII stay encoded. */
#define IDENT_MAX 256u

void rust_put_bytes(struct rust_name *r, const char *text, size_t len)
{
	size_t need = r->written + len + 1, room = r->room ? r->room : 128;
	char *more;

	if (r->quiet || r->wrong)
		return;
	if (need > TEXT_MAX) {
		r->wrong = true;
		return;
	}
	while (room < need)
		room *= 2;
	if (room > r->room) {
		more = realloc(r->out, room);
		if (!more) {
			r->wrong = true;
			return;
		}
		r->out = more;
		r->room = room;
	}
	memcpy(r->out + r->written, text, len);
	r->written += len;
	r->out[r->written] = 0;
}

void rust_put(struct rust_name *r, const char *text)
{
	rust_put_bytes(r, text, strlen(text));
}

void rust_put_number(struct rust_name *r, u64 n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	rust_put(r, text);
}

static void put_utf8(struct rust_name *r, u32 code)
{
	char c[4];
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const u8 first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n; i-- > 1; code >>= 6)
		c[i] = (char)(0x80 | (code & 0x3f));
	c[0] = (char)(first[n] | code);
	rust_put_bytes(r, c, n);
}

static bool is_char(u32 code)
{
	return code < 0x110000 && (code < 0xd800 || code >= 0xe000);
}

void rust_put_char(struct rust_name *r, u32 code, char quote)
{
	static const char escaped[] = "\tt\rr\nn\\\\";
	const char *e = code && code < 0x80 ? strchr(escaped, (int)code) : NULL;
	char text[16];

	if (!is_char(code)) {
		r->wrong = true;
	} else if (e && (e - escaped) % 2 == 0) {
		rust_put_bytes(r, (char[]){'\\', e[1]}, 2);
	} else if (code == (u32)quote) {
		rust_put_bytes(r, (char[]){'\\', quote}, 2);
	} else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
		snprintf(text, sizeof(text), "\\u{%" PRIx32 "}", code);
		rust_put(r, text);
	} else {
		put_utf8(r, code);
	}
}

/* How the steps between characters are weighed (RFC 3492, sections 3.4 and 6.1). */
static u32 adapt(u32 delta, u32 points, bool first)
{
	u32 k = 0;

	delta /= first ? 700 : 2;
	for (delta += delta / points; delta > 35 * 26 / 2; delta /= 35)
		k += 36;
	return k + 36 * delta / (delta + 38);
}

/* RFC 3492, section 6.2, with `_` before what is encoded. The number of characters; 0: wrong. */
static size_t punycode(struct rust_ident id, u32 *chars)
{
	u32 n = 0x80, i = 0, bias = 72;
	size_t count = 0, at = 0;

	for (size_t k = id.len; k-- > 0;) {
		if (id.text[k] == '_') {
			for (; count < k; count++)
				chars[count] = (u8)id.text[count];
			at = k + 1;
			break;
		}
	}
	while (at < id.len) {
		u32 before = i;
		u64 weight = 1;

		for (u32 k = 36;; k += 36) {
			u32 threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias, digit;
			char c = at < id.len ? id.text[at++] : 0;

			if (c >= 'a' && c <= 'z')
				digit = (u32)(c - 'a');
			else if (c >= '0' && c <= '9')
				digit = (u32)(c - '0') + 26;
			else
				return 0;
			if (i + digit * weight > 0x7fffffff)
				return 0;
			i += (u32)(digit * weight);
			if (digit < threshold)
				break;
			weight *= 36 - threshold;
			if (weight > 0x7fffffff)
				return 0;
		}
		count++;
		bias = adapt(i - before, (u32)count, !before);
		n += i / (u32)count;
		i %= (u32)count;
		if (!is_char(n))
			return 0;
		memmove(&chars[i + 1], &chars[i], (count - 1 - i) * sizeof(*chars));
		chars[i++] = n;
	}
	return count;
}

void rust_put_ident(struct rust_name *r, struct rust_ident id)
{
	u32 chars[IDENT_MAX];
	size_t n;

	if (r->quiet || r->wrong)
		return;
	if (!id.is_punycode) {
		rust_put_bytes(r, id.text, id.len);
		return;
	}
	n = id.len <= IDENT_MAX ? punycode(id, chars) : 0;
	for (size_t i = 0; i < n; i++)
		put_utf8(r, chars[i]);
	if (n)
		return;
	rust_put(r, "punycode{");
	rust_put_bytes(r, id.text, id.len);
	rust_put(r, "}");
}
