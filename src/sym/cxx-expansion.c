/*
 * Names are read as the Itanium C++ ABI has them, and with the substitutions of GNU's demangler,
 * whose cost is at issue. Lengths are in characters of the mangled name: what a reference stands
 * for counts as often as it does. Those of template parameters are not known before the arguments
 * are, so they are counted apart, and an encoding ends with the product.
 */
#include "sym/cxx-expansion.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_MOST ((u64)1 << 20)
#define COUNT_MOST  ((u64)1 << 40)
#define DEPTH_MOST  200u
#define STEPS_MOST  20000u

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

static bool read_type(struct cxx_name *n);
static bool read_expression(struct cxx_name *n);
static bool read_encoding(struct cxx_name *n);
static bool read_name(struct cxx_name *n);
static bool read_args(struct cxx_name *n);

static u64 bounded(u64 count)
{
	return count < COUNT_MOST ? count : COUNT_MOST;
}

static u64 product_of(u64 a, u64 b)
{
	return a && b > COUNT_MOST / a ? COUNT_MOST : a * b;
}

static struct expansion so_far(const struct cxx_name *n)
{
	struct expansion now = n->referred;

	now.text += (u64)(n->at - n->begin);
	return now;
}

static struct expansion since(const struct cxx_name *n, struct expansion start)
{
	struct expansion part = so_far(n);

	part.text -= start.text;
	for (u32 i = 0; i < PARAMS_APART; i++)
		part.params[i] -= start.params[i];
	return part;
}

static void add(struct cxx_name *n, struct expansion part, u64 times)
{
	struct expansion *r = &n->referred;

	r->text = bounded(r->text + product_of(part.text, times));
	for (u32 i = 0; i < PARAMS_APART; i++)
		r->params[i] = bounded(r->params[i] + product_of(part.params[i], times));
}

/* What was read since @start may be referred to. */
static bool keep(struct cxx_name *n, struct expansion start)
{
	if (n->nr < n->room)
		n->part[n->nr++] = since(n, start);
	return true;
}

static bool take(struct cxx_name *n, char c)
{
	if (*n->at != c)
		return false;
	n->at++;
	return true;
}

static bool take_two(struct cxx_name *n, const char *two)
{
	if (n->at[0] != two[0] || n->at[1] != two[1])
		return false;
	n->at += 2;
	return true;
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool is_number(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* It may be missing. */
static u64 take_number(struct cxx_name *n)
{
	u64 number = 0;

	(void)take(n, 'n');
	while (is_number(*n->at))
		number = bounded(number * 10 + (u64)(*n->at++ - '0'));
	return number;
}

static bool number_and(struct cxx_name *n, char c)
{
	(void)take_number(n);
	return take(n, c);
}

static bool read_source_name(struct cxx_name *n)
{
	u64 len;

	if (!is_number(*n->at))
		return false;
	len = take_number(n);
	if (!len || strnlen(n->at, len) < len)
		return false;
	n->at += len;
	return true;
}

/* @what until an E. */
static bool read_list(struct cxx_name *n, bool (*what)(struct cxx_name *n))
{
	while (*n->at != 'E')
		if (!what(n))
			return false;
	n->at++;
	return true;
}

/* Behind S or T: the number of what is meant; false: it is none. */
static bool take_index(struct cxx_name *n, u64 *index)
{
	*index = 0;
	if (take(n, '_'))
		return true;
	for (; is_number(*n->at) || is_upper(*n->at); n->at++)
		*index = bounded(*index * 36 +
				 (u64)(is_number(*n->at) ? *n->at - '0' : *n->at - 'A' + 10));
	++*index;
	return take(n, '_');
}

static bool read_substitution(struct cxx_name *n)
{
	u64 index;

	if (!take(n, 'S'))
		return false;
	if (is_one_of(*n->at, "tabsiod")) {
		n->at++;
		while (take(n, 'B'))
			if (!read_source_name(n))
				return false;
		return true;
	}
	if (!take_index(n, &index) || index >= n->nr)
		return false;
	add(n, n->part[index], 1);
	return true;
}

static bool read_param(struct cxx_name *n)
{
	u64 index;

	if (!take(n, 'T') || (take(n, 'L') && !number_and(n, '_')) || !take_index(n, &index))
		return false;
	index = index < PARAMS_APART ? index : PARAMS_APART - 1;
	n->referred.params[index] = bounded(n->referred.params[index] + 1);
	return true;
}

/* What was read since @start comes once for each element of a pack. */
static void repeat(struct cxx_name *n, struct expansion start)
{
	/* Arguments of a conversion come behind it. */
	u64 times = n->in_conversion ? n->pack + n->room : n->pack;

	if (times > 1)
		add(n, since(n, start), times - 1);
}

/* How parameters of a template are declared, if that stands here. */
static bool read_declarations(struct cxx_name *n)
{
	u32 lists = 0;

	for (;;) {
		char c = *n->at == 'T' ? n->at[1] : 0;

		if (lists && take(n, 'E')) {
			lists--;
			continue;
		}
		if (!is_one_of(c, "yntpk"))
			return !lists;
		n->at += 2;
		lists += c == 't';
		if ((c == 'n' && !read_type(n)) || (c == 'k' && !read_name(n)))
			return false;
	}
}

/* What a template requires, if it does. */
static bool read_requirement(struct cxx_name *n)
{
	return !take(n, 'Q') || read_expression(n);
}

static bool read_lambda(struct cxx_name *n)
{
	struct expansion before = n->referred;

	if (!read_declarations(n) || !read_requirement(n) || !read_list(n, read_type))
		return false;
	/* Its own parameters are `auto`. */
	memcpy(n->referred.params, before.params, sizeof(before.params));
	return number_and(n, '_');
}

static bool read_operator(struct cxx_name *n)
{
	bool before = n->in_conversion, fine;

	if (take_two(n, "li"))
		return read_source_name(n);
	if (n->at[0] == 'v' && is_number(n->at[1])) {
		n->at += 2;
		return read_source_name(n);
	}
	if (take_two(n, "cv")) {
		n->in_conversion = !n->in_expression;
		fine = read_type(n);
		n->in_conversion = before;
		return fine;
	}
	if (!is_lower(n->at[0]) || (!is_lower(n->at[1]) && !is_upper(n->at[1])))
		return false;
	n->at += 2;
	return true;
}

static bool read_constructor(struct cxx_name *n)
{
	if (take_two(n, "DC"))
		return read_list(n, read_source_name);
	if (take_two(n, "CI"))
		return is_number(*n->at) && n->at++ && read_type(n);
	if (!is_number(n->at[1]))
		return false;
	n->at += 2;
	return true;
}

static bool read_unqualified(struct cxx_name *n)
{
	struct expansion start = so_far(n);
	bool fine;

	(void)take(n, 'F'); /* a friend that is defined in a class */
	if (take_two(n, "Ul"))
		fine = read_lambda(n);
	else if (take_two(n, "Ut"))
		fine = number_and(n, '_') && keep(n, start);
	else if (take(n, 'L') || is_number(*n->at))
		fine = read_source_name(n);
	else if (*n->at == 'C' || *n->at == 'D')
		fine = read_constructor(n);
	else
		fine = read_operator(n);
	while (fine && take(n, 'B'))
		fine = read_source_name(n);
	return fine;
}

/* Until an E. @is_part: what begins it may be referred to. */
static bool read_prefix(struct cxx_name *n, bool is_part)
{
	struct expansion start = so_far(n);
	bool first = true;

	for (; *n->at != 'E'; first = false) {
		char c = *n->at;
		bool fine;

		if (!first && take(n, 'M'))
			continue;
		if (c == 'S')
			fine = read_substitution(n);
		else if (c == 'I')
			fine = !first && read_args(n);
		else if (c == 'T')
			fine = first && read_param(n);
		else if (c == 'D' && is_one_of(n->at[1], "Tt"))
			fine = read_type(n);
		else
			fine = read_unqualified(n);
		if (!fine)
			return false;
		if (is_part && c != 'S' && *n->at != 'E')
			keep(n, start);
	}
	return !first;
}

static bool read_nested(struct cxx_name *n)
{
	while (is_one_of(*n->at, "rVK"))
		n->at++;
	if (is_one_of(*n->at, "RO"))
		n->at++;
	return read_prefix(n, true) && take(n, 'E');
}

static bool read_local(struct cxx_name *n)
{
	if (!read_encoding(n) || !take(n, 'E'))
		return false;
	if (!take(n, 's')) {
		if (take(n, 'd') && !number_and(n, '_'))
			return false;
		if (!read_name(n))
			return false;
	}
	if (take_two(n, "__"))
		return number_and(n, '_');
	if (n->at[0] == '_' && is_number(n->at[1]))
		n->at += 2;
	return true;
}

static bool read_name(struct cxx_name *n)
{
	struct expansion start = so_far(n);
	bool is_kept = false;

	if (take(n, 'N'))
		return read_nested(n);
	if (take(n, 'Z'))
		return read_local(n);
	if (*n->at == 'S' && n->at[1] != 't') {
		is_kept = true;
		if (!read_substitution(n))
			return false;
	} else {
		(void)take_two(n, "St");
		if (!read_unqualified(n))
			return false;
	}
	if (*n->at != 'I')
		return true;
	if (!is_kept)
		keep(n, start);
	return read_args(n);
}

static bool read_primary(struct cxx_name *n)
{
	(void)take_two(n, "_Z");
	if (n->at[-1] == 'Z' || take(n, 'Z'))
		return read_encoding(n) && take(n, 'E');
	if (!read_type(n))
		return false;
	while (*n->at && *n->at != 'E')
		n->at++;
	return take(n, 'E');
}

static bool read_some_arg(struct cxx_name *n)
{
	if (!read_declarations(n))
		return false;
	if (take(n, 'X'))
		return read_expression(n) && take(n, 'E');
	if (take(n, 'L'))
		return read_primary(n);
	if (*n->at == 'I' || *n->at == 'J')
		return read_args(n);
	return read_type(n);
}

static bool read_arg(struct cxx_name *n)
{
	bool fine = ++n->depth < DEPTH_MOST && read_some_arg(n);

	n->depth--;
	return fine;
}

static void make_longer(struct expansion *longest, struct expansion other)
{
	longest->text = other.text > longest->text ? other.text : longest->text;
	for (u32 i = 0; i < PARAMS_APART; i++)
		if (other.params[i] > longest->params[i])
			longest->params[i] = other.params[i];
}

static bool read_args(struct cxx_name *n)
{
	u64 number = 0;

	n->at++;
	for (; *n->at != 'E' && *n->at != 'Q'; number++) {
		struct expansion start = so_far(n);

		if (!read_arg(n))
			return false;
		make_longer(&n->arg[number < PARAMS_APART ? number : PARAMS_APART - 1],
			    since(n, start));
	}
	if (!read_requirement(n) || !take(n, 'E'))
		return false;
	n->pack = number > n->pack ? number : n->pack;
	return true;
}

/* Types until the end of what has them. */
static bool read_signature(struct cxx_name *n)
{
	while (*n->at && !is_one_of(*n->at, "E.Q")) {
		if (is_one_of(n->at[0], "RO") && n->at[1] == 'E') {
			n->at++;
			return true;
		}
		if (!read_type(n))
			return false;
	}
	return read_requirement(n);
}

static bool read_function(struct cxx_name *n)
{
	if (take_two(n, "DO")) {
		if (!read_expression(n) || !take(n, 'E'))
			return false;
	} else if (take_two(n, "Dw")) {
		if (!read_list(n, read_type))
			return false;
	} else {
		(void)take_two(n, "Do");
	}
	(void)take_two(n, "Dx");
	if (!take(n, 'F'))
		return false;
	(void)take(n, 'Y');
	return read_signature(n) && take(n, 'E');
}

static bool read_array(struct cxx_name *n)
{
	if (is_number(*n->at))
		(void)take_number(n);
	else if (*n->at != '_' && !read_expression(n))
		return false;
	return take(n, '_') && read_type(n);
}

/* Behind D. *@is_part: it may be referred to. */
static bool read_d_type(struct cxx_name *n, bool *is_part)
{
	struct expansion start;
	char c = *n->at;

	if (is_one_of(c, "oOwx")) {
		n->at--;
		return read_function(n);
	}
	if (!c)
		return false;
	n->at++;
	switch (c) {
	case 'T':
	case 't': return read_expression(n) && take(n, 'E');
	case 'p':
		start = so_far(n);
		if (!read_type(n))
			return false;
		repeat(n, start);
		return true;
	case 'v':
		if (take(n, '_') ? !read_expression(n) : !take_number(n))
			return false;
		return take(n, '_') && read_type(n);
	case 'F':
		*is_part = false;
		(void)take_number(n);
		return take(n, '_') || take(n, 'x') || take(n, 'b');
	case 'a': return true;
	default: *is_part = false; return is_one_of(c, "ncdefhisu");
	}
}

/* Behind T of a parameter that may be a template. */
static bool read_template_param(struct cxx_name *n, struct expansion start)
{
	struct cxx_name before;

	if (!read_param(n))
		return false;
	if (*n->at != 'I')
		return true;
	before = *n;
	if (n->in_conversion) {
		/* Arguments of the operator, unless others follow. */
		if (!read_args(n))
			return false;
		before.steps = n->steps;
		if (*n->at != 'I') {
			*n = before;
			return true;
		}
		*n = before;
	}
	keep(n, start);
	return read_args(n);
}

static bool read_some_type(struct cxx_name *n)
{
	static const char builtin[] = "abcdefghijlmnostvwxyz";
	struct expansion start = so_far(n);
	const char *from = n->at;
	bool is_part = true, fine;
	char c = *n->at;

	if (is_one_of(c, builtin)) {
		n->at++;
		return true;
	}
	if (is_one_of(c, "rVK")) {
		while (is_one_of(*n->at, "rVK"))
			n->at++;
		fine = *n->at == 'F' ? read_function(n) : read_type(n);
	} else if (is_number(c) || c == 'N' || c == 'Z') {
		fine = read_name(n);
	} else if (c == 'S' && (is_number(n->at[1]) || n->at[1] == '_' || is_upper(n->at[1]))) {
		is_part = false;
		fine = read_substitution(n);
		if (fine && *n->at == 'I') {
			is_part = true;
			fine = read_args(n);
		}
	} else if (c == 'S') {
		fine = read_name(n);
		is_part = n->at > from + 2;
	} else if (c == 'T') {
		fine = read_template_param(n, start);
	} else if (c == 'F') {
		fine = read_function(n);
	} else if (take(n, 'A')) {
		fine = read_array(n);
	} else if (take(n, 'M')) {
		fine = read_type(n) && read_type(n);
	} else if (is_one_of(c, "OPRCG")) {
		n->at++;
		fine = read_type(n);
	} else if (take(n, 'D')) {
		fine = read_d_type(n, &is_part);
	} else if (c == 'U' && is_one_of(n->at[1], "lt")) {
		fine = read_unqualified(n);
	} else if (take(n, 'U')) {
		fine = read_source_name(n) && (*n->at != 'I' || read_args(n)) && read_type(n);
	} else {
		fine = take(n, 'u') && read_source_name(n);
	}
	return fine && (!is_part || keep(n, start));
}

static bool read_type(struct cxx_name *n)
{
	bool fine = n->steps && n->steps-- && ++n->depth < DEPTH_MOST && read_some_type(n);

	n->depth--;
	return fine;
}

static bool read_expressions(struct cxx_name *n, u32 number)
{
	while (number--)
		if (!read_expression(n))
			return false;
	return true;
}

static bool read_name_in_expression(struct cxx_name *n)
{
	return read_unqualified(n) && (*n->at != 'I' || read_args(n));
}

static bool read_function_param(struct cxx_name *n)
{
	if (take(n, 'T'))
		return true;
	while (is_one_of(*n->at, "rVK"))
		n->at++;
	return number_and(n, '_');
}

static bool read_new(struct cxx_name *n)
{
	while (*n->at != '_')
		if (!read_expression(n))
			return false;
	n->at++;
	if (!read_type(n))
		return false;
	if (take_two(n, "pi"))
		return read_list(n, read_expression);
	return take(n, 'E') || read_expression(n);
}

/*
 * Behind sr: a scope, and a name in it. GNU's demangler reads it as it is now, and if that makes no
 * name of all of it once more as it was.
 */
static bool read_in_scope(struct cxx_name *n)
{
	if (is_number(*n->at) || is_lower(*n->at) || is_one_of(*n->at, "CUL")) {
		n->has_scopes = true;
		if (!n->old_scopes)
			return read_prefix(n, false) && take(n, 'E') && read_name_in_expression(n);
	}
	return read_type(n) && read_name_in_expression(n);
}

/* Whether the two letters @op are among those of @list, each of which has a blank behind it. */
static bool is_among(const char *op, const char *list)
{
	for (; *list; list += 3)
		if (list[0] == op[0] && list[1] == op[1])
			return true;
	return false;
}

/* Behind the two letters @op. */
static bool read_operands(struct cxx_name *n, const char *op)
{
	struct expansion start = so_far(n);

	if (is_among(op, "sr "))
		return read_in_scope(n);
	if (is_among(op, "sp ")) {
		if (!read_expression(n))
			return false;
		repeat(n, start);
		return true;
	}
	if (is_among(op, "fp "))
		return read_function_param(n);
	if (is_among(op, "il "))
		return read_list(n, read_expression);
	if (is_among(op, "tl "))
		return read_type(n) && read_list(n, read_expression);
	if (is_among(op, "cl "))
		return read_expression(n) && read_list(n, read_expression);
	if (is_among(op, "dt pt "))
		return read_expression(n) &&
		       (is_lower(*n->at) && !is_among(n->at, "on ") ? read_expression(n)
								    : read_name_in_expression(n));
	if (is_among(op, "st at ti "))
		return read_type(n);
	if (is_among(op, "dc sc cc rc "))
		return read_type(n) && read_expression(n);
	if (is_among(op, "sZ sz az te ng ad de co nt ps nx tw dl da aw pp mm gs ")) {
		(void)take(n, '_'); /* in front of what is counted up or down */
		return read_expression(n);
	}
	if (is_among(op, "sP "))
		return read_list(n, read_arg);
	if (is_among(op, "tr "))
		return true;
	if (is_among(op, "nw na "))
		return read_new(n);
	if (is_among(op, "qu "))
		return read_expressions(n, 3);
	if (is_among(op, "fl fr fL fR ")) {
		/* The operator that folds. */
		if (!n->at[0] || !n->at[1])
			return false;
		n->at += 2;
		return read_expressions(n, is_upper(op[1]) ? 2 : 1);
	}
	return read_expressions(n, 2);
}

static bool read_some_expression(struct cxx_name *n)
{
	const char *op = n->at;

	if (take(n, 'L'))
		return read_primary(n);
	if (*n->at == 'T')
		return read_param(n);
	if (is_number(*n->at))
		return read_name_in_expression(n);
	if (take_two(n, "on"))
		return read_name_in_expression(n);
	if (is_among(op, "cv "))
		return read_operator(n) &&
		       (take(n, '_') ? read_list(n, read_expression) : read_expression(n));
	if (take(n, 'u'))
		return read_source_name(n) && read_list(n, read_arg);
	if (!is_lower(op[0]) || (!is_lower(op[1]) && !is_upper(op[1])))
		return false;
	n->at += 2;
	return read_operands(n, op);
}

static bool read_expression(struct cxx_name *n)
{
	bool before = n->in_expression;
	bool fine;

	n->in_expression = true;
	fine = n->steps && n->steps-- && ++n->depth < DEPTH_MOST && read_some_expression(n);
	n->in_expression = before;
	n->depth--;
	return fine;
}

static bool read_offset(struct cxx_name *n)
{
	if (take(n, 'v')) {
		if (!number_and(n, '_'))
			return false;
	} else if (!take(n, 'h')) {
		return false;
	}
	return number_and(n, '_');
}

/* Behind T or G. */
static bool read_special(struct cxx_name *n)
{
	char c = *n->at;

	if (n->at[-1] == 'T' && is_one_of(c, "hv"))
		return read_offset(n) && read_encoding(n);
	if (!c)
		return false;
	n->at++;
	if (n->at[-2] == 'G') {
		switch (c) {
		case 'V': return read_name(n);
		case 'R':
			if (!read_name(n))
				return false;
			while (is_number(*n->at) || is_upper(*n->at))
				n->at++;
			return take(n, '_') || !*n->at;
		case 'A': return read_encoding(n);
		case 'T': return (take(n, 't') || take(n, 'n')) && read_encoding(n);
		default: return false;
		}
	}
	switch (c) {
	case 'V':
	case 'T':
	case 'I':
	case 'S':
	case 'F':
	case 'J': return read_type(n);
	case 'c': return read_offset(n) && read_offset(n) && read_encoding(n);
	case 'C': return read_type(n) && number_and(n, '_') && read_type(n);
	case 'W':
	case 'H': return read_name(n);
	case 'A': return read_arg(n);
	default: return false;
	}
}

static bool read_encoding(struct cxx_name *n)
{
	struct expansion around[PARAMS_APART], before = n->referred, mine;
	bool fine;

	if (++n->depth >= DEPTH_MOST)
		return false;
	memcpy(around, n->arg, sizeof(around));
	memset(n->arg, 0, sizeof(n->arg));
	if (*n->at == 'T' || *n->at == 'G') {
		n->at++;
		fine = read_special(n);
	} else {
		fine = read_name(n) && (take(n, 'J'), read_signature(n));
	}
	/* What arguments say of parameters is of those around. */
	mine = n->referred;
	memcpy(n->referred.params, before.params, sizeof(before.params));
	for (u32 i = 0; i < PARAMS_APART; i++)
		add(n, n->arg[i], mine.params[i] - before.params[i]);
	/* A reference that is referred to outside is as it was inside. */
	for (u32 i = 0; i < PARAMS_APART; i++)
		make_longer(&n->arg[i], around[i]);
	n->depth--;
	return fine;
}

/* Whether all of it is understood and short. */
static bool is_short(struct cxx_name *n, const char *name)
{
	n->begin = name;
	n->at = name + 2;
	/* What is read again and again here is by the demangler, too. */
	n->steps = STEPS_MOST;
	return read_encoding(n) && !*n->at && so_far(n).text <= LENGTH_MOST;
}

/*
 * The same of what is not understood: with each reference, and what may look like one, all that was
 * there before may be there once more, and with each pack as often as there are characters. Some
 * names with scopes that make no sense the demangler of GCC 12 reads for ever.
 */
static bool is_short_at_worst(const char *name)
{
	u64 len = strlen(name), longest = len, begins = 0;

	if (strstr(name, "sr"))
		return false;
	for (; *name; name++) {
		/* Of letters and digits in a row each S and T may be where it begins. */
		if (is_one_of(*name, "ST"))
			begins++;
		else if (*name != '_' && !is_number(*name) && !is_upper(*name))
			begins = 0;
		for (; *name == '_' && begins; begins--)
			longest = bounded(longest * 2);
		if (!strncmp(name, "Dp", 2) || !strncmp(name, "sp", 2))
			longest = product_of(longest, len);
	}
	return longest <= LENGTH_MOST;
}

bool sym_cxx_is_short(const char *name)
{
	struct cxx_name n = {.room = (u32)strlen(name)}, old = {.old_scopes = true};
	bool fine;

	if (strncmp(name, "_Z", 2) != 0)
		return false;
	n.part = malloc(n.room * sizeof(*n.part));
	if (!n.part)
		return false;
	old.part = n.part;
	old.room = n.room;
	fine = is_short(&n, name) || (n.has_scopes && is_short(&old, name));
	free(n.part);
	return fine || is_short_at_worst(name);
}
