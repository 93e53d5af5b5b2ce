#include "sys/string.h"

#include "sys/arch/x86_64/cpu.h"

#include <linux/errno.h>

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	cpu_copy(to, from, len);
	return to;
}

void *memmove(void *to, const void *from, size_t len)
{
	u8 *d = to;
	const u8 *s = from;

	if (d <= s || d >= s + len)
		return memcpy(to, from, len);
	while (len--)
		d[len] = s[len];
	return to;
}

void *memset(void *to, int byte, size_t len)
{
	cpu_fill(to, byte, len);
	return to;
}

int memcmp(const void *a, const void *b, size_t len)
{
	const u8 *x = a, *y = b;

	for (; len; len--, x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}

size_t str_len(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int str_cmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (u8)*a - (u8)*b;
}

bool str_eq(const char *a, const char *b)
{
	return !str_cmp(a, b);
}

bool str_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return false;
	return true;
}

char *str_chr(const char *s, char c)
{
	for (; *s != c; s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

char *str_rchr(const char *s, char c)
{
	const char *last = NULL;

	for (; *s; s++)
		if (*s == c)
			last = s;
	return (char *)last;
}

int str_put(char *to, size_t size, const char *s)
{
	size_t n = 0;

	for (; n + 1 < size && s[n]; n++)
		to[n] = s[n];
	if (size)
		to[n] = '\0';
	return s[n] ? -ENAMETOOLONG : (int)n;
}

int str_u64(const char *s, u32 base, u64 *value)
{
	int n = 0;
	u64 v = 0;

	for (;; n++) {
		u32 c = (u8)s[n], digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (c | 0x20) - 'a' + 10;
		else
			break;
		v = v * base + digit;
	}
	if (n)
		*value = v;
	return n;
}
