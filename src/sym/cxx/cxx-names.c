/* Names and encodings of C++, as the Itanium C++ ABI has them (5.1.2 to 5.1.4). */
#include <string.h>

#include "sym/cxx/reading-priv.h"

u64 cxx_take_number(struct cxx_name *n)
{
	u64 number = 0;

	(void)take(n, 'n');
	while (is_number(*n->at))
		number = bounded(number * 10 + (u64)(*n->at++ - '0'));
	return number;
}

bool cxx_number_and(struct cxx_name *n, char c)
{
	(void)cxx_take_number(n);
	return take(n, c);
}

bool cxx_read_source_name(struct cxx_name *n)
{
	u64 len;

	if (!is_number(*n->at))
		return false;
	len = cxx_take_number(n);
	if (!len || strnlen(n->at, len) < len)
		return false;
	n->at += len;
	return true;
}

bool cxx_read_list(struct cxx_name *n, bool (*what)(struct cxx_name *n))
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

bool cxx_read_substitution(struct cxx_name *n)
{
	u64 index;

	if (!take(n, 'S'))
		return false;
	if (is_one_of(*n->at, "tabsiod")) {
		n->at++;
		while (take(n, 'B'))
			if (!cxx_read_source_name(n))
				return false;
		return true;
	}
	if (!take_index(n, &index) || index >= n->nr)
		return false;
	cxx_add(n, n->part[index], 1);
	return true;
}

bool cxx_read_param(struct cxx_name *n)
{
	u64 index;

	if (!take(n, 'T') || (take(n, 'L') && !cxx_number_and(n, '_')) || !take_index(n, &index))
		return false;
	index = index < PARAMS_APART ? index : PARAMS_APART - 1;
	n->referred.params[index] = bounded(n->referred.params[index] + 1);
	return true;
}

bool cxx_read_declarations(struct cxx_name *n)
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
		if ((c == 'n' && !cxx_read_type(n)) || (c == 'k' && !cxx_read_name(n)))
			return false;
	}
}

bool cxx_read_requirement(struct cxx_name *n)
{
	return !take(n, 'Q') || cxx_read_expression(n);
}

static bool read_lambda(struct cxx_name *n)
{
	struct expansion before = n->referred;

	if (!cxx_read_declarations(n) || !cxx_read_requirement(n) ||
	    !cxx_read_list(n, cxx_read_type))
		return false;
	/* Its own parameters are `auto`. */
	memcpy(n->referred.params, before.params, sizeof(before.params));
	return cxx_number_and(n, '_');
}

bool cxx_read_operator(struct cxx_name *n)
{
	bool before = n->in_conversion, fine;

	if (take_two(n, "li"))
		return cxx_read_source_name(n);
	if (n->at[0] == 'v' && is_number(n->at[1])) {
		n->at += 2;
		return cxx_read_source_name(n);
	}
	if (take_two(n, "cv")) {
		n->in_conversion = !n->in_expression;
		fine = cxx_read_type(n);
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
		return cxx_read_list(n, cxx_read_source_name);
	if (take_two(n, "CI"))
		return is_number(*n->at) && n->at++ && cxx_read_type(n);
	if (!is_number(n->at[1]))
		return false;
	n->at += 2;
	return true;
}

bool cxx_read_unqualified(struct cxx_name *n)
{
	struct expansion start = cxx_so_far(n);
	bool fine;

	(void)take(n, 'F'); /* a friend that is defined in a class */
	if (take_two(n, "Ul"))
		fine = read_lambda(n);
	else if (take_two(n, "Ut"))
		fine = cxx_number_and(n, '_') && cxx_keep(n, start);
	else if (take(n, 'L') || is_number(*n->at))
		fine = cxx_read_source_name(n);
	else if (*n->at == 'C' || *n->at == 'D')
		fine = read_constructor(n);
	else
		fine = cxx_read_operator(n);
	while (fine && take(n, 'B'))
		fine = cxx_read_source_name(n);
	return fine;
}

bool cxx_read_prefix(struct cxx_name *n, bool is_part)
{
	struct expansion start = cxx_so_far(n);
	bool first = true;

	for (; *n->at != 'E'; first = false) {
		char c = *n->at;
		bool fine;

		if (!first && take(n, 'M'))
			continue;
		if (c == 'S')
			fine = cxx_read_substitution(n);
		else if (c == 'I')
			fine = !first && cxx_read_args(n);
		else if (c == 'T')
			fine = first && cxx_read_param(n);
		else if (c == 'D' && is_one_of(n->at[1], "Tt"))
			fine = cxx_read_type(n);
		else
			fine = cxx_read_unqualified(n);
		if (!fine)
			return false;
		if (is_part && c != 'S' && *n->at != 'E')
			cxx_keep(n, start);
	}
	return !first;
}

static bool read_nested(struct cxx_name *n)
{
	while (is_one_of(*n->at, "rVK"))
		n->at++;
	if (is_one_of(*n->at, "RO"))
		n->at++;
	return cxx_read_prefix(n, true) && take(n, 'E');
}

static bool read_local(struct cxx_name *n)
{
	if (!cxx_read_encoding(n) || !take(n, 'E'))
		return false;
	if (!take(n, 's')) {
		if (take(n, 'd') && !cxx_number_and(n, '_'))
			return false;
		if (!cxx_read_name(n))
			return false;
	}
	if (take_two(n, "__"))
		return cxx_number_and(n, '_');
	if (n->at[0] == '_' && is_number(n->at[1]))
		n->at += 2;
	return true;
}

bool cxx_read_name(struct cxx_name *n)
{
	struct expansion start = cxx_so_far(n);
	bool is_kept = false;

	if (take(n, 'N'))
		return read_nested(n);
	if (take(n, 'Z'))
		return read_local(n);
	if (*n->at == 'S' && n->at[1] != 't') {
		is_kept = true;
		if (!cxx_read_substitution(n))
			return false;
	} else {
		(void)take_two(n, "St");
		if (!cxx_read_unqualified(n))
			return false;
	}
	if (*n->at != 'I')
		return true;
	if (!is_kept)
		cxx_keep(n, start);
	return cxx_read_args(n);
}

static bool read_offset(struct cxx_name *n)
{
	if (take(n, 'v')) {
		if (!cxx_number_and(n, '_'))
			return false;
	} else if (!take(n, 'h')) {
		return false;
	}
	return cxx_number_and(n, '_');
}

/* Behind T or G. */
static bool read_special(struct cxx_name *n)
{
	char c = *n->at;

	if (n->at[-1] == 'T' && is_one_of(c, "hv"))
		return read_offset(n) && cxx_read_encoding(n);
	if (!c)
		return false;
	n->at++;
	if (n->at[-2] == 'G') {
		switch (c) {
		case 'V': return cxx_read_name(n);
		case 'R':
			if (!cxx_read_name(n))
				return false;
			while (is_number(*n->at) || is_upper(*n->at))
				n->at++;
			return take(n, '_') || !*n->at;
		case 'A': return cxx_read_encoding(n);
		case 'T': return (take(n, 't') || take(n, 'n')) && cxx_read_encoding(n);
		default: return false;
		}
	}
	switch (c) {
	case 'V':
	case 'T':
	case 'I':
	case 'S':
	case 'F':
	case 'J': return cxx_read_type(n);
	case 'c': return read_offset(n) && read_offset(n) && cxx_read_encoding(n);
	case 'C': return cxx_read_type(n) && cxx_number_and(n, '_') && cxx_read_type(n);
	case 'W':
	case 'H': return cxx_read_name(n);
	case 'A': return cxx_read_arg(n);
	default: return false;
	}
}

bool cxx_read_encoding(struct cxx_name *n)
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
		fine = cxx_read_name(n) && (take(n, 'J'), cxx_read_signature(n));
	}
	/* What arguments say of parameters is of those around. */
	mine = n->referred;
	memcpy(n->referred.params, before.params, sizeof(before.params));
	for (u32 i = 0; i < PARAMS_APART; i++)
		cxx_add(n, n->arg[i], mine.params[i] - before.params[i]);
	/* A reference that is referred to outside is as it was inside. */
	for (u32 i = 0; i < PARAMS_APART; i++)
		cxx_make_longer(&n->arg[i], around[i]);
	n->depth--;
	return fine;
}
