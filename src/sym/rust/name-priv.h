/*
 * PURPOSE: what the parts of the reader of Rust's names share. name-text.c writes, name-reading.c
 * reads what paths, types and constants are made of, name-constant.c constants, and demangle-rust.c
 * the rest.
 */
#ifndef SYM_RUST_NAME_PRIV_H
#define SYM_RUST_NAME_PRIV_H

#include "base/types.h"

struct rust_ident {
	const char *text;
	size_t len;
	bool is_punycode;
};

struct rust_name {
	const char *sym; /* behind _R */
	size_t len, at;
	u32 depth;
	u64 lifetimes; /* that are bound here */
	bool quiet;    /* it is read, and not written */
	bool wrong;    /* nothing is read or written from here on */

	char *out;
	size_t written, room;
};

void rust_put(struct rust_name *r, const char *text);
void rust_put_bytes(struct rust_name *r, const char *text, size_t len);
void rust_put_number(struct rust_name *r, u64 n);
void rust_put_ident(struct rust_name *r, struct rust_ident id);
/* As it stands between quotes of the kind @quote. */
void rust_put_char(struct rust_name *r, u32 code, char quote);

/* The next character, 0 at the end. */
char rust_peek(const struct rust_name *r);
/* The same, and goes on; at the end the name is wrong. */
char rust_next(struct rust_name *r);
/* Whether @c comes, and goes on behind it. */
bool rust_eat(struct rust_name *r, char c);
/* What begins here is within something else. False: too deep. Each has its rust_leave(). */
bool rust_enter(struct rust_name *r);
void rust_leave(struct rust_name *r);
/* Digits to the base 62 and `_`, which alone is 0. */
u64 rust_base_62(struct rust_name *r);
/* Such a number and 1, if @tag comes in front of it; else 0. */
u64 rust_number_after(struct rust_name *r, char tag);
struct rust_ident rust_identifier(struct rust_name *r);
/*
 * Moves to where a reference leads, behind whose B the name stands. True: read there, and then set
 * r->at to *@back, unless the name is wrong.
 */
bool rust_follow(struct rust_name *r, size_t *back);
/* Reads items until an E, @between them. How many. */
u32 rust_list(struct rust_name *r, void (*item)(struct rust_name *r), const char *between);

/* In a value generic arguments have `::` in front; else constants but simple ones have braces. */
void rust_path(struct rust_name *r, bool in_value);
void rust_constant(struct rust_name *r, bool in_value);
void rust_type(struct rust_name *r);

#endif
