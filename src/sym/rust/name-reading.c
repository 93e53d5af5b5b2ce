#include "sym/rust/name-priv.h"

/* Names of programs have a third of it; what is deeper is made to be deep. */
#define DEPTH_MAX 256u

char rust_peek(const struct rust_name *r)
{
	return !r->wrong && r->at < r->len ? r->sym[r->at] : 0;
}

char rust_next(struct rust_name *r)
{
	char c = rust_peek(r);

	if (c)
		r->at++;
	else
		r->wrong = true;
	return c;
}

bool rust_eat(struct rust_name *r, char c)
{
	if (rust_peek(r) != c)
		return false;
	r->at++;
	return true;
}

/* What begins here is within something else. Each has its rust_leave(). */
bool rust_enter(struct rust_name *r)
{
	r->wrong |= ++r->depth > DEPTH_MAX;
	return !r->wrong;
}

void rust_leave(struct rust_name *r)
{
	r->depth--;
}

/* Digits to the base 62 and `_`, which alone is 0. */
u64 rust_base_62(struct rust_name *r)
{
	u64 n = 0;

	if (rust_eat(r, '_'))
		return 0;
	for (char c; (c = rust_next(r)) != '_';) {
		u64 digit;

		if (c >= '0' && c <= '9')
			digit = (u64)(c - '0');
		else if (c >= 'a' && c <= 'z')
			digit = (u64)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'Z')
			digit = (u64)(c - 'A') + 36;
		else
			digit = UINT64_MAX;
		if (digit == UINT64_MAX || __builtin_mul_overflow(n, 62, &n) ||
		    __builtin_add_overflow(n, digit, &n)) {
			r->wrong = true;
			return 0;
		}
	}
	if (n == UINT64_MAX)
		r->wrong = true;
	return n + 1;
}

/* 0: there is none, which is one less than the number 0. */
u64 rust_number_after(struct rust_name *r, char tag)
{
	u64 n;

	if (!rust_eat(r, tag))
		return 0;
	n = rust_base_62(r);
	if (n == UINT64_MAX)
		r->wrong = true;
	return n + 1;
}

struct rust_ident rust_identifier(struct rust_name *r)
{
	struct rust_ident id = {.is_punycode = rust_eat(r, 'u')};
	char c = rust_next(r);

	if (c < '0' || c > '9')
		r->wrong = true;
	else
		id.len = (size_t)(c - '0');
	if (c != '0') {
		while (rust_peek(r) >= '0' && rust_peek(r) <= '9') {
			id.len = id.len * 10 + (size_t)(rust_next(r) - '0');
			if (id.len > r->len)
				r->wrong = true;
		}
	}
	(void)rust_eat(r, '_');
	if (r->wrong || id.len > r->len - r->at) {
		r->wrong = true;
		return (struct rust_ident){0};
	}
	id.text = r->sym + r->at;
	r->at += id.len;
	return id;
}

/* Where the reference at r->at leads: in front of itself, so that none leads round. */
bool rust_follow(struct rust_name *r, size_t *back)
{
	size_t here = r->at - 1;
	u64 to = rust_base_62(r);

	if (r->wrong || to >= here) {
		r->wrong = true;
		return false;
	}
	*back = r->at;
	r->at = to;
	/* What is not written need not be read twice. */
	return !r->quiet;
}

/* A list that ends with E. */
u32 rust_list(struct rust_name *r, void (*item)(struct rust_name *r), const char *between)
{
	u32 n = 0;

	while (!r->wrong && !rust_eat(r, 'E')) {
		if (n++)
			rust_put(r, between);
		item(r);
	}
	return n;
}
