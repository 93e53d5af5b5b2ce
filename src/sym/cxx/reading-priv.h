/*
 * PURPOSE: reading a mangled name of C++ as the Itanium C++ ABI has it, and with the substitutions
 * of GNU's demangler, whose cost is at issue. Nothing is made of it but how long it would become.
 *
 * What reads returns false for what is not understood; then where it stands means nothing.
 */
#ifndef SYM_CXX_READING_PRIV_H
#define SYM_CXX_READING_PRIV_H

#include <string.h>

#include "base/types.h"

#define COUNT_MOST   ((u64)1 << 40)
#define DEPTH_MOST   200u
#define PARAMS_APART 4u /* the last one is all others, too */

struct expansion {
	u64 text;                 /* without what parameters stand for */
	u64 params[PARAMS_APART]; /* how many times T_, T0_ and so on stand there */
};

struct cxx_name {
	const char *begin, *at;
	u32 depth;
	struct expansion referred; /* what references have added to at - begin; those of params */
	/* The longest arguments of the encoding, each as if one had all of what they have. */
	struct expansion arg[PARAMS_APART];
	u64 pack;  /* elements of the longest list of arguments */
	u64 steps; /* types and expressions that may still be read */
	bool in_conversion, in_expression;
	bool old_scopes, has_scopes; /* sr1A1x and not sr1AE1x; it may be either */
	u32 nr, room;
	struct expansion *part; /* what S_, S0_ and so on stand for; owned */
};

static inline u64 bounded(u64 count)
{
	return count < COUNT_MOST ? count : COUNT_MOST;
}

static inline u64 product_of(u64 a, u64 b)
{
	return a && b > COUNT_MOST / a ? COUNT_MOST : a * b;
}

static inline bool take(struct cxx_name *n, char c)
{
	if (*n->at != c)
		return false;
	n->at++;
	return true;
}

static inline bool take_two(struct cxx_name *n, const char *two)
{
	if (n->at[0] != two[0] || n->at[1] != two[1])
		return false;
	n->at += 2;
	return true;
}

static inline bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static inline bool is_number(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static inline bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* expansion.c. */

/* What has been read until now, since the name began. */
struct expansion cxx_so_far(const struct cxx_name *n);
/* What was read since @start, which cxx_so_far() gave. */
struct expansion cxx_since(const struct cxx_name *n, struct expansion start);
/* Adds @part @times times. */
void cxx_add(struct cxx_name *n, struct expansion part, u64 times);
/* What was read since @start may be referred to. */
bool cxx_keep(struct cxx_name *n, struct expansion start);
/* What was read since @start comes once for each element of a pack. */
void cxx_repeat(struct cxx_name *n, struct expansion start);
void cxx_make_longer(struct expansion *longest, struct expansion other);

/* cxx-names.c. */

/* It may be missing. */
u64 cxx_take_number(struct cxx_name *n);
bool cxx_number_and(struct cxx_name *n, char c);
bool cxx_read_source_name(struct cxx_name *n);
/* @what until an E. */
bool cxx_read_list(struct cxx_name *n, bool (*what)(struct cxx_name *n));
bool cxx_read_substitution(struct cxx_name *n);
bool cxx_read_param(struct cxx_name *n);
/* How parameters of a template are declared, if that stands here. */
bool cxx_read_declarations(struct cxx_name *n);
/* What a template requires, if it does. */
bool cxx_read_requirement(struct cxx_name *n);
bool cxx_read_operator(struct cxx_name *n);
bool cxx_read_unqualified(struct cxx_name *n);
/* Until an E. @is_part: what begins it may be referred to. */
bool cxx_read_prefix(struct cxx_name *n, bool is_part);
bool cxx_read_name(struct cxx_name *n);
bool cxx_read_encoding(struct cxx_name *n);

/* cxx-types.c. */

bool cxx_read_primary(struct cxx_name *n);
bool cxx_read_arg(struct cxx_name *n);
bool cxx_read_args(struct cxx_name *n);
/* Types until the end of what has them. */
bool cxx_read_signature(struct cxx_name *n);
bool cxx_read_type(struct cxx_name *n);

/* cxx-expressions.c. */

bool cxx_read_expression(struct cxx_name *n);

#endif
