#include "sys/fmt.h"

#include "base/check.h"

struct sink {
	char *buf;
	size_t size, len;
};

static void put(struct sink *s, char c)
{
	if (s->len + 1 < s->size)
		s->buf[s->len] = c;
	s->len++;
}

static void put_number(struct sink *s, u64 v, u32 base, u32 width, char pad, bool minus)
{
	char digits[24];
	u32 n = 0;

	do
		digits[n++] = "0123456789abcdef"[v % base];
	while (v /= base);
	if (minus && pad == '0')
		put(s, '-');
	else if (minus)
		digits[n++] = '-';
	for (; width > n; width--)
		put(s, pad);
	while (n)
		put(s, digits[--n]);
}

size_t fmt_va(char *buf, size_t size, const char *format, va_list args)
{
	struct sink s = {buf, size, 0};

	for (const char *f = format; *f; f++) {
		u32 width = 0;
		char pad = ' ';
		bool wide = false;

		if (*f != '%') {
			put(&s, *f);
			continue;
		}
		f++;
		if (*f == '0')
			pad = '0';
		for (; *f >= '0' && *f <= '9'; f++)
			width = width * 10 + (u32)(*f - '0');
		for (; *f == 'l' || *f == 'z'; f++)
			wide = true;
		switch (*f) {
		case 's': {
			const char *str = va_arg(args, const char *);

			for (str = str ? str : "(null)"; *str; str++)
				put(&s, *str);
			break;
		}
		case 'c': put(&s, (char)va_arg(args, int)); break;
		case 'd': {
			s64 v = wide ? va_arg(args, s64) : va_arg(args, int);

			put_number(&s, v < 0 ? -(u64)v : (u64)v, 10, width, pad, v < 0);
			break;
		}
		case 'u':
		case 'x': {
			u64 v = wide ? va_arg(args, u64) : va_arg(args, u32);

			put_number(&s, v, *f == 'x' ? 16 : 10, width, pad, false);
			break;
		}
		case 'p':
			put(&s, '0');
			put(&s, 'x');
			put_number(&s, (u64)va_arg(args, void *), 16, 0, ' ', false);
			break;
		case '%': put(&s, '%'); break;
		default: CHECK(!"a conversion that fmt() does not know");
		}
	}
	if (size)
		buf[s.len < size ? s.len : size - 1] = '\0';
	return s.len;
}

size_t fmt(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	size_t n;

	va_start(args, format);
	n = fmt_va(buf, size, format, args);
	va_end(args);
	return n;
}
