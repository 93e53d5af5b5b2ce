/*
 * No floating point is used: a double is taken apart, since the program's registers are in use.
 */
#include "rt/task/request-print.h"

#include "rt/mm/guest-mem.h"
#include "sys/fmt.h"
#include "sys/string.h"

struct printed {
	char *buf;
	size_t size, len;
};

static void put(struct printed *t, const char *s, size_t n)
{
	n = min_u64(n, t->size - t->len);
	memcpy(t->buf + t->len, s, n);
	t->len += n;
}

static void put_times(struct printed *t, char c, u64 n)
{
	for (; n && t->len < t->size; n--)
		put(t, &c, 1);
}

/* A va_list, as the ABI has it. */
struct arguments {
	u32 gp_offset, fp_offset;
	u64 overflow, saved;
};

#define SAVED_GP 48u  /* bytes of registers */
#define SAVED_FP 176u /* with those of vectors */

static u64 from_overflow(struct arguments *a, u64 size)
{
	u64 at = size > 8 ? ALIGN_UP(a->overflow, 16) : a->overflow;

	a->overflow = at + size;
	return at;
}

/* What cannot be read is 0. */
static u64 word_at(u64 at)
{
	u64 v = 0;

	return guest_read(&v, at, sizeof(v)) ? 0 : v;
}

/* Of registers of a kind, each of @size bytes, or where these are used up of what is behind. */
static u64 next_word(struct arguments *a, u32 *offset, u32 end, u32 size)
{
	u64 at = a->saved + *offset;

	if (*offset >= end)
		return word_at(from_overflow(a, 8));
	*offset += size;
	return word_at(at);
}

static u64 next_integer(struct arguments *a)
{
	return next_word(a, &a->gp_offset, SAVED_GP, 8);
}

/* The bits of a double. */
static u64 next_double(struct arguments *a)
{
	return next_word(a, &a->fp_offset, SAVED_FP, 16);
}

/* Of a long double the nearest double below. */
static u64 next_long_double(struct arguments *a)
{
	u64 at = from_overflow(a, 16), fraction = word_at(at), head = word_at(at + 8) & 0xffff;
	s64 exponent = (s64)(head & 0x7fff) - 16383;
	u64 sign = head >> 15 << 63;

	if (exponent > 1023)
		return sign | 0x7ffull << 52 |
		       (head << 49 == 0x7fffull << 49 ? fraction << 1 >> 12 : 0);
	if (!fraction || exponent < -1022)
		return sign;
	return sign | (u64)(exponent + 1023) << 52 | fraction << 1 >> 12;
}

struct conversion {
	bool left, zeroes, plus, blank, other;
	u64 width;
	bool has_precision;
	u64 precision;
	u32 bytes; /* of an integer */
	bool is_long_double;
	char what;
};

#define MOST 4096u /* of widths and precisions: no text is longer */

static u64 number(const char **f)
{
	u64 n = 0;

	for (; **f >= '0' && **f <= '9'; (*f)++)
		n = min_u64(n * 10 + (u64)(**f - '0'), MOST);
	return n;
}

/* What is behind the %; @*f goes to what is behind the conversion. */
static struct conversion parse(const char **f, struct arguments *a)
{
	struct conversion c = {.bytes = 4};
	s64 n;

	for (;; (*f)++) {
		if (**f == '-')
			c.left = true;
		else if (**f == '0')
			c.zeroes = true;
		else if (**f == '+')
			c.plus = true;
		else if (**f == ' ')
			c.blank = true;
		else if (**f == '#')
			c.other = true;
		else if (**f != '\'')
			break;
	}
	if (**f == '*') {
		(*f)++;
		n = (s32)next_integer(a);
		c.left |= n < 0;
		c.width = min_u64((u64)(n < 0 ? -n : n), MOST);
	} else {
		c.width = number(f);
	}
	if (**f == '.') {
		(*f)++;
		c.has_precision = true;
		if (**f == '*') {
			(*f)++;
			n = (s32)next_integer(a);
			c.has_precision = n >= 0;
			c.precision = min_u64((u64)n, MOST);
		} else {
			c.precision = number(f);
		}
	}
	for (;; (*f)++) {
		if (**f == 'h')
			c.bytes /= 2;
		else if (**f == 'l' || **f == 'j' || **f == 'z' || **f == 't' || **f == 'q')
			c.bytes = 8;
		else if (**f == 'L')
			c.is_long_double = true;
		else
			break;
	}
	c.what = **f;
	if (c.what)
		(*f)++;
	return c;
}

/* @before, as a sign, @zeroes and the text, of the conversion's width. */
static void put_field(struct printed *t, const struct conversion *c, const char *before, u64 zeroes,
		      const char *s, size_t n)
{
	size_t head = str_len(before);
	u64 len = head + zeroes + n, pad = c->width > len ? c->width - len : 0;

	if (!c->left && !c->zeroes)
		put_times(t, ' ', pad);
	put(t, before, head);
	if (!c->left && c->zeroes)
		zeroes += pad;
	put_times(t, '0', zeroes);
	put(t, s, n);
	if (c->left)
		put_times(t, ' ', pad);
}

static const char *sign_of(const struct conversion *c, bool minus)
{
	return minus ? "-" : c->plus ? "+" : c->blank ? " " : "";
}

static u32 in_octal(char *to, u64 v)
{
	u32 n = 0;

	for (u64 left = v; left; left >>= 3)
		n++;
	for (u32 i = n; i; v >>= 3)
		to[--i] = (char)('0' + (v & 7));
	return n;
}

static void put_integer(struct printed *t, struct conversion *c, u64 v)
{
	bool is_signed = c->what == 'd' || c->what == 'i', minus;
	u32 unused = 64 - 8 * (c->bytes ? c->bytes : 1);
	const char *before = "";
	char digits[24];
	u32 n = 0;

	v <<= unused;
	v = is_signed ? (u64)((s64)v >> unused) : v >> unused;
	minus = is_signed && (s64)v < 0;
	if (is_signed)
		before = sign_of(c, minus);
	else if (c->other && v && c->what != 'u')
		before = c->what == 'o' ? "0" : c->what == 'X' ? "0X" : "0x";
	if (v || !c->has_precision || c->precision)
		n = c->what == 'o' && v ? in_octal(digits, v)
					: (u32)fmt(digits, sizeof(digits),
						   c->what == 'x' || c->what == 'X' ? "%lx" : "%lu",
						   minus ? -v : v);
	for (u32 i = 0; c->what == 'X' && i < n; i++)
		if (digits[i] >= 'a')
			digits[i] = (char)(digits[i] - 'a' + 'A');
	c->zeroes &= !c->has_precision;
	put_field(t, c, before, c->has_precision && c->precision > n ? c->precision - n : 0, digits,
		  n);
}

#define DIGITS_MOST 17u /* behind the point: a double has no more */

static void put_double(struct printed *t, struct conversion *c, u64 bits)
{
	u64 precision = c->has_precision ? min_u64(c->precision, DIGITS_MOST) : 6, whole;
	u64 fraction = bits << 12 >> 12; /* then: in 2^-64 */
	s64 exponent = (s64)(bits >> 52 & 0x7ff) - 1023 - 52;
	const char *sign = sign_of(c, bits >> 63);
	char digits[48];
	size_t n, at;

	if (exponent == 0x7ff - 1023 - 52 || exponent > 11) {
		const char *name = exponent <= 0x7fe - 1023 - 52 ? "(large)"
				   : fraction                    ? "nan"
								 : "inf";

		c->zeroes = false;
		put_field(t, c, sign, 0, name, str_len(name));
		return;
	}
	/* Below what is left of 2^-64 there is nothing that 17 digits could tell. */
	if (exponent > -1023 - 52)
		fraction |= 1ull << 52;
	whole = exponent >= 0 ? fraction << exponent : exponent > -64 ? fraction >> -exponent : 0;
	if (exponent >= 0)
		fraction = 0;
	else if (exponent > -64)
		fraction <<= 64 + exponent;
	else
		fraction = exponent > -128 ? fraction >> (-exponent - 64) : 0;
	n = fmt(digits + 1, sizeof(digits) - 1, "%lu", whole) + 1;
	digits[0] = '0'; /* for 9.99 */
	at = n;
	for (u64 i = 0; i < precision; i++) {
		__extension__ unsigned __int128 next = (unsigned __int128)fraction * 10;

		digits[n++] = (char)('0' + (u32)(next >> 64));
		fraction = (u64)next;
	}
	/* To the nearest, and of two to the even one. */
	if (fraction > 1ull << 63 || (fraction == 1ull << 63 && digits[n - 1] & 1)) {
		size_t i = n;

		while (digits[--i] == '9')
			digits[i] = '0';
		digits[i]++;
	}
	if (precision || c->other) {
		memmove(digits + at + 1, digits + at, n - at);
		digits[at] = '.';
		n++;
	}
	at = digits[0] == '0';
	put_field(t, c, sign, 0, digits + at, n - at);
}

static void put_string(struct printed *t, struct conversion *c, u64 at)
{
	u64 most = c->has_precision ? c->precision : MOST;
	char s[256];
	size_t n;

	c->zeroes = false;
	if (!at) {
		put_field(t, c, "", 0, "(null)", 6);
		return;
	}
	/* Its length has to be known before what stands in front. */
	for (n = 0; n < most; n++) {
		if (guest_read(s, at + n, 1)) {
			put(t, "(bad address)", 13);
			return;
		}
		if (!s[0])
			break;
	}
	if (!c->left)
		put_times(t, ' ', c->width > n ? c->width - n : 0);
	for (u64 done = 0, part; done < n; done += part) {
		part = min_u64(n - done, sizeof(s));
		if (guest_read(s, at + done, part))
			break;
		put(t, s, part);
	}
	if (c->left)
		put_times(t, ' ', c->width > n ? c->width - n : 0);
}

static void convert(struct printed *t, struct conversion *c, struct arguments *a)
{
	char one;

	switch (c->what) {
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o': put_integer(t, c, next_integer(a)); break;
	case 'p':
		*c = (struct conversion){
			.left = c->left, .width = c->width, .bytes = 8, .other = true, .what = 'x'};
		put_integer(t, c, next_integer(a));
		break;
	case 'c':
		one = (char)next_integer(a);
		c->zeroes = false;
		put_field(t, c, "", 0, &one, 1);
		break;
	case 's': put_string(t, c, next_integer(a)); break;
	case 'f':
	case 'F':
	case 'e':
	case 'E':
	case 'g':
	case 'G': put_double(t, c, c->is_long_double ? next_long_double(a) : next_double(a)); break;
	case '%':
	case '\0': put(t, "%", 1); break;
	default:
		put(t, "%", 1);
		put(t, &c->what, 1);
		break;
	}
}

size_t request_print(char *buf, size_t size, u64 format, u64 list)
{
	struct printed t = {buf, size, 0};
	struct arguments a;
	char copy[1024];
	const char *f = copy;
	long n = guest_string(copy, format, sizeof(copy));

	if (n == -EFAULT || guest_read(&a, list, sizeof(a))) {
		put(&t, "(bad address)\n", 14);
		return t.len;
	}
	copy[sizeof(copy) - 1] = '\0';
	while (*f) {
		size_t plain = 0;
		struct conversion c;

		while (f[plain] && f[plain] != '%')
			plain++;
		put(&t, f, plain);
		f += plain;
		if (*f != '%')
			continue;
		f++;
		c = parse(&f, &a);
		convert(&t, &c, &a);
	}
	return t.len;
}
