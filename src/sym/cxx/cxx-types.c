/* Types and arguments of templates (5.1.5). */
#include <string.h>

#include "sym/cxx/reading-priv.h"

bool cxx_read_primary(struct cxx_name *n)
{
	(void)take_two(n, "_Z");
	if (n->at[-1] == 'Z' || take(n, 'Z'))
		return cxx_read_encoding(n) && take(n, 'E');
	if (!cxx_read_type(n))
		return false;
	while (*n->at && *n->at != 'E')
		n->at++;
	return take(n, 'E');
}

static bool read_some_arg(struct cxx_name *n)
{
	if (!cxx_read_declarations(n))
		return false;
	if (take(n, 'X'))
		return cxx_read_expression(n) && take(n, 'E');
	if (take(n, 'L'))
		return cxx_read_primary(n);
	if (*n->at == 'I' || *n->at == 'J')
		return cxx_read_args(n);
	return cxx_read_type(n);
}

bool cxx_read_arg(struct cxx_name *n)
{
	bool fine = ++n->depth < DEPTH_MOST && read_some_arg(n);

	n->depth--;
	return fine;
}

bool cxx_read_args(struct cxx_name *n)
{
	u64 number = 0;

	n->at++;
	for (; *n->at != 'E' && *n->at != 'Q'; number++) {
		struct expansion start = cxx_so_far(n);

		if (!cxx_read_arg(n))
			return false;
		cxx_make_longer(&n->arg[number < PARAMS_APART ? number : PARAMS_APART - 1],
				cxx_since(n, start));
	}
	if (!cxx_read_requirement(n) || !take(n, 'E'))
		return false;
	n->pack = number > n->pack ? number : n->pack;
	return true;
}

bool cxx_read_signature(struct cxx_name *n)
{
	while (*n->at && !is_one_of(*n->at, "E.Q")) {
		if (is_one_of(n->at[0], "RO") && n->at[1] == 'E') {
			n->at++;
			return true;
		}
		if (!cxx_read_type(n))
			return false;
	}
	return cxx_read_requirement(n);
}

static bool read_function(struct cxx_name *n)
{
	if (take_two(n, "DO")) {
		if (!cxx_read_expression(n) || !take(n, 'E'))
			return false;
	} else if (take_two(n, "Dw")) {
		if (!cxx_read_list(n, cxx_read_type))
			return false;
	} else {
		(void)take_two(n, "Do");
	}
	(void)take_two(n, "Dx");
	if (!take(n, 'F'))
		return false;
	(void)take(n, 'Y');
	return cxx_read_signature(n) && take(n, 'E');
}

static bool read_array(struct cxx_name *n)
{
	if (is_number(*n->at))
		(void)cxx_take_number(n);
	else if (*n->at != '_' && !cxx_read_expression(n))
		return false;
	return take(n, '_') && cxx_read_type(n);
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
	case 't': return cxx_read_expression(n) && take(n, 'E');
	case 'p':
		start = cxx_so_far(n);
		if (!cxx_read_type(n))
			return false;
		cxx_repeat(n, start);
		return true;
	case 'v':
		if (take(n, '_') ? !cxx_read_expression(n) : !cxx_take_number(n))
			return false;
		return take(n, '_') && cxx_read_type(n);
	case 'F':
		*is_part = false;
		(void)cxx_take_number(n);
		return take(n, '_') || take(n, 'x') || take(n, 'b');
	case 'a': return true;
	default: *is_part = false; return is_one_of(c, "ncdefhisu");
	}
}

/* Behind T of a parameter that may be a template. */
static bool read_template_param(struct cxx_name *n, struct expansion start)
{
	struct cxx_name before;

	if (!cxx_read_param(n))
		return false;
	if (*n->at != 'I')
		return true;
	before = *n;
	if (n->in_conversion) {
		/* Arguments of the operator, unless others follow. */
		if (!cxx_read_args(n))
			return false;
		before.steps = n->steps;
		if (*n->at != 'I') {
			*n = before;
			return true;
		}
		*n = before;
	}
	cxx_keep(n, start);
	return cxx_read_args(n);
}

static bool read_some_type(struct cxx_name *n)
{
	static const char builtin[] = "abcdefghijlmnostvwxyz";
	struct expansion start = cxx_so_far(n);
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
		fine = *n->at == 'F' ? read_function(n) : cxx_read_type(n);
	} else if (is_number(c) || c == 'N' || c == 'Z') {
		fine = cxx_read_name(n);
	} else if (c == 'S' && (is_number(n->at[1]) || n->at[1] == '_' || is_upper(n->at[1]))) {
		is_part = false;
		fine = cxx_read_substitution(n);
		if (fine && *n->at == 'I') {
			is_part = true;
			fine = cxx_read_args(n);
		}
	} else if (c == 'S') {
		fine = cxx_read_name(n);
		is_part = n->at > from + 2;
	} else if (c == 'T') {
		fine = read_template_param(n, start);
	} else if (c == 'F') {
		fine = read_function(n);
	} else if (take(n, 'A')) {
		fine = read_array(n);
	} else if (take(n, 'M')) {
		fine = cxx_read_type(n) && cxx_read_type(n);
	} else if (is_one_of(c, "OPRCG")) {
		n->at++;
		fine = cxx_read_type(n);
	} else if (take(n, 'D')) {
		fine = read_d_type(n, &is_part);
	} else if (c == 'U' && is_one_of(n->at[1], "lt")) {
		fine = cxx_read_unqualified(n);
	} else if (take(n, 'U')) {
		fine = cxx_read_source_name(n) && (*n->at != 'I' || cxx_read_args(n)) &&
		       cxx_read_type(n);
	} else {
		fine = take(n, 'u') && cxx_read_source_name(n);
	}
	return fine && (!is_part || cxx_keep(n, start));
}

bool cxx_read_type(struct cxx_name *n)
{
	bool fine = n->steps && n->steps-- && ++n->depth < DEPTH_MOST && read_some_type(n);

	n->depth--;
	return fine;
}
