/* Expressions (5.1.6). */
#include "sym/cxx/reading-priv.h"

static bool read_expressions(struct cxx_name *n, u32 number)
{
	while (number--)
		if (!cxx_read_expression(n))
			return false;
	return true;
}

static bool read_name_in_expression(struct cxx_name *n)
{
	return cxx_read_unqualified(n) && (*n->at != 'I' || cxx_read_args(n));
}

static bool read_function_param(struct cxx_name *n)
{
	if (take(n, 'T'))
		return true;
	while (is_one_of(*n->at, "rVK"))
		n->at++;
	return cxx_number_and(n, '_');
}

static bool read_new(struct cxx_name *n)
{
	while (*n->at != '_')
		if (!cxx_read_expression(n))
			return false;
	n->at++;
	if (!cxx_read_type(n))
		return false;
	if (take_two(n, "pi"))
		return cxx_read_list(n, cxx_read_expression);
	return take(n, 'E') || cxx_read_expression(n);
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
			return cxx_read_prefix(n, false) && take(n, 'E') &&
			       read_name_in_expression(n);
	}
	return cxx_read_type(n) && read_name_in_expression(n);
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
	struct expansion start = cxx_so_far(n);

	if (is_among(op, "sr "))
		return read_in_scope(n);
	if (is_among(op, "sp ")) {
		if (!cxx_read_expression(n))
			return false;
		cxx_repeat(n, start);
		return true;
	}
	if (is_among(op, "fp "))
		return read_function_param(n);
	if (is_among(op, "il "))
		return cxx_read_list(n, cxx_read_expression);
	if (is_among(op, "tl "))
		return cxx_read_type(n) && cxx_read_list(n, cxx_read_expression);
	if (is_among(op, "cl "))
		return cxx_read_expression(n) && cxx_read_list(n, cxx_read_expression);
	if (is_among(op, "dt pt "))
		return cxx_read_expression(n) &&
		       (is_lower(*n->at) && !is_among(n->at, "on ") ? cxx_read_expression(n)
								    : read_name_in_expression(n));
	if (is_among(op, "st at ti "))
		return cxx_read_type(n);
	if (is_among(op, "dc sc cc rc "))
		return cxx_read_type(n) && cxx_read_expression(n);
	if (is_among(op, "sZ sz az te ng ad de co nt ps nx tw dl da aw pp mm gs ")) {
		(void)take(n, '_'); /* in front of what is counted up or down */
		return cxx_read_expression(n);
	}
	if (is_among(op, "sP "))
		return cxx_read_list(n, cxx_read_arg);
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
		return cxx_read_primary(n);
	if (*n->at == 'T')
		return cxx_read_param(n);
	if (is_number(*n->at))
		return read_name_in_expression(n);
	if (take_two(n, "on"))
		return read_name_in_expression(n);
	if (is_among(op, "cv "))
		return cxx_read_operator(n) && (take(n, '_') ? cxx_read_list(n, cxx_read_expression)
							     : cxx_read_expression(n));
	if (take(n, 'u'))
		return cxx_read_source_name(n) && cxx_read_list(n, cxx_read_arg);
	if (!is_lower(op[0]) || (!is_lower(op[1]) && !is_upper(op[1])))
		return false;
	n->at += 2;
	return read_operands(n, op);
}

bool cxx_read_expression(struct cxx_name *n)
{
	bool before = n->in_expression;
	bool fine;

	n->in_expression = true;
	fine = n->steps && n->steps-- && ++n->depth < DEPTH_MOST && read_some_expression(n);
	n->in_expression = before;
	n->depth--;
	return fine;
}
