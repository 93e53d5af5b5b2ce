#include "pmu/tracepoint-filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX  256
#define DEPTH_MAX  64
#define STRING_MAX 256

enum node_kind { NODE_AND, NODE_OR, NODE_NOT, NODE_NUMBER, NODE_STRING };
enum compare_op { OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT, OP_AND, OP_GLOB };

struct filter_node {
	u8 kind; /* enum node_kind */
	u8 op;   /* enum compare_op */
	u16 left, right;
	const struct tp_field *field;
	u64 value;
	char *string;
};

struct tp_filter {
	u32 nr;
	u16 root;
	struct filter_node node[NODES_MAX];
};

/* The CPU and the name of the task are fields of every event, and stand in no record. */
static const struct tp_field cpu_field = {.name = "CPU", .size = 4, .is_signed = true};
static const struct tp_field comm_field = {.name = "COMM", .size = 16, .kind = TP_CHARS};

struct filter_parse {
	const struct tp_format *format;
	struct tp_filter *filter;
	const char *at;
	u32 depth;
};

static void skip_space(struct filter_parse *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static int new_node(struct filter_parse *p, enum node_kind kind, u16 *index)
{
	if (p->filter->nr == NODES_MAX)
		return -EINVAL;
	*index = (u16)p->filter->nr++;
	p->filter->node[*index].kind = (u8)kind;
	return 0;
}

static int operator(struct filter_parse *p, enum compare_op *op)
{
	/* What begins like another one comes behind it. */
	static const struct {
		const char *text;
		enum compare_op op;
	} ops[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
		   {"<", OP_LT},  {">", OP_GT},  {"&", OP_AND}, {"~", OP_GLOB}};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		size_t len = strlen(ops[i].text);

		if (strncmp(p->at, ops[i].text, len) != 0)
			continue;
		p->at += len;
		*op = ops[i].op;
		return 0;
	}
	return -EINVAL;
}

static int string_value(struct filter_parse *p, struct filter_node *n)
{
	char quote = *p->at;
	const char *end;

	if (quote != '"' && quote != '\'')
		return -EINVAL;
	end = strchr(p->at + 1, quote);
	if (!end)
		return -ESRCH;
	if (end - p->at > STRING_MAX)
		return -EINVAL;
	n->string = strndup(p->at + 1, (size_t)(end - p->at - 1));
	p->at = end + 1;
	return n->string ? 0 : -ENOMEM;
}

static int number_value(struct filter_parse *p, struct filter_node *n)
{
	const char *start = p->at;
	char *end;

	if (!isdigit((unsigned char)*start) && *start != '-')
		return -EINVAL;
	/* strtoull() would take a sign too. */
	if (*start == '-' && (!n->field->is_signed || !isdigit((unsigned char)start[1])))
		return -EINVAL;
	errno = 0;
	n->value = n->field->is_signed ? (u64)strtoll(start, &end, 0) : strtoull(start, &end, 0);
	if (errno || isalnum((unsigned char)*end))
		return -EINVAL;
	p->at = end;
	return 0;
}

static const struct tp_field *find_field(const struct tp_format *format, const char *name,
					 size_t len)
{
	const struct tp_field *field = tp_field_find(format, name, len);

	if (field)
		return field;
	if ((len == 3 && !memcmp(name, "CPU", 3)) || (len == 3 && !memcmp(name, "cpu", 3)))
		return &cpu_field;
	if (len == 4 && (!memcmp(name, "COMM", 4) || !memcmp(name, "comm", 4)))
		return &comm_field;
	return NULL;
}

static size_t name_length(const char *at)
{
	size_t len = 0;

	while (isalnum((unsigned char)at[len]) || at[len] == '_')
		len++;
	return len;
}

static int comparison(struct filter_parse *p, u16 *index)
{
	static const char user_string[] = ".ustring";
	const struct tp_field *field;
	struct filter_node *n;
	enum compare_op op;
	bool number;
	size_t len = name_length(p->at);
	int err;

	field = len ? find_field(p->format, p->at, len) : NULL;
	if (!field)
		return -EINVAL;
	p->at += len;
	if (!strncmp(p->at, user_string, sizeof(user_string) - 1)) {
		if (field->kind != TP_POINTER)
			return -EINVAL;
		p->at += sizeof(user_string) - 1;
	}
	skip_space(p);
	err = operator(p, &op);
	if (err)
		return err;
	skip_space(p);
	number = field->kind == TP_NUMBER || field->kind == TP_OTHER;
	err = new_node(p, number ? NODE_NUMBER : NODE_STRING, index);
	if (err)
		return err;
	n = &p->filter->node[*index];
	n->field = field;
	n->op = (u8)op;
	if (number)
		return op == OP_GLOB ? -EINVAL : number_value(p, n);
	if (op != OP_EQ && op != OP_NE && op != OP_GLOB)
		return -EINVAL;
	err = string_value(p, n);
	return !err && field->kind == TP_POINTER ? -EOPNOTSUPP : err;
}

static int any_of(struct filter_parse *p, u16 *index);

static int factor(struct filter_parse *p, u16 *index)
{
	u16 inner = 0;
	int err;

	if (p->depth == DEPTH_MAX)
		return -EINVAL;
	p->depth++;
	skip_space(p);
	if (*p->at == '(') {
		p->at++;
		err = any_of(p, index);
		skip_space(p);
		if (!err && *p->at != ')')
			err = *p->at ? -EPERM : -ENOENT;
		p->at += !err;
	} else if (*p->at == '!' && p->at[1] != '=' && p->at[1] != '~') {
		p->at++;
		err = factor(p, &inner);
		if (!err)
			err = new_node(p, NODE_NOT, index);
		if (!err)
			p->filter->node[*index].left = inner;
	} else {
		err = comparison(p, index);
	}
	p->depth--;
	return err;
}

/* Nothing behind an operator is as if that were not there. */
static bool is_operator(struct filter_parse *p, const char *text)
{
	skip_space(p);
	if (strncmp(p->at, text, 2) != 0)
		return false;
	p->at += 2;
	skip_space(p);
	return *p->at != '\0';
}

static int join(struct filter_parse *p, enum node_kind kind, u16 *left,
		int (*next)(struct filter_parse *p, u16 *index))
{
	u16 right = 0, both = 0;
	int err = next(p, &right);

	if (!err)
		err = new_node(p, kind, &both);
	if (err)
		return err;
	p->filter->node[both].left = *left;
	p->filter->node[both].right = right;
	*left = both;
	return 0;
}

static int all_of(struct filter_parse *p, u16 *index)
{
	int err = factor(p, index);

	while (!err && is_operator(p, "&&"))
		err = join(p, NODE_AND, index, factor);
	return err;
}

static int any_of(struct filter_parse *p, u16 *index)
{
	int err = all_of(p, index);

	while (!err && is_operator(p, "||"))
		err = join(p, NODE_OR, index, all_of);
	return err;
}

int tp_filter_parse(const struct tp_format *format, const char *text, struct tp_filter **filter)
{
	struct filter_parse p = {.format = format, .at = text};
	int err;

	p.filter = calloc(1, sizeof(*p.filter));
	if (!p.filter)
		return -ENOMEM;
	err = any_of(&p, &p.filter->root);
	skip_space(&p);
	if (!err && *p.at)
		err = -EPERM;
	if (err) {
		tp_filter_free(p.filter);
		return err;
	}
	*filter = p.filter;
	return 0;
}

void tp_filter_free(struct tp_filter *filter)
{
	for (u32 i = 0; filter && i < filter->nr; i++)
		free(filter->node[i].string);
	free(filter);
}

/* The field's value, made as wide as it has its sign. */
static u64 widened(const struct tp_field *f, u64 value)
{
	u32 unused = 64 - 8u * f->size;

	value <<= unused;
	return f->is_signed ? (u64)((s64)value >> unused) : value >> unused;
}

static u64 number_of(const struct tp_field *f, const u8 *record)
{
	u64 value = 0;

	memcpy(&value, record + f->offset, f->size);
	return widened(f, value);
}

static bool compare_numbers(const struct filter_node *n, u64 a)
{
	/* The comparison is made in the field's own type. */
	u64 b = widened(n->field, n->value);
	bool less = n->field->is_signed ? (s64)a < (s64)b : a < b;

	switch (n->op) {
	case OP_EQ: return a == b;
	case OP_NE: return a != b;
	case OP_LT: return less;
	case OP_LE: return less || a == b;
	case OP_GT: return !less && a != b;
	case OP_GE: return !less;
	default: return (a & b) != 0;
	}
}

/* `*` stands for any characters, `?` for one, [a-z] and [!a-z] for one of some. */
static bool one_of(const char **pattern, char c)
{
	const char *p = *pattern + 1;
	bool negated = *p == '!', found = false;

	for (p += negated; *p && *p != ']'; p++) {
		if (p[1] == '-' && p[2] && p[2] != ']') {
			found |= p[0] <= c && c <= p[2];
			p += 2;
		} else {
			found |= *p == c;
		}
	}
	if (!*p)
		return false;
	*pattern = p;
	return found != negated;
}

static bool globs(const char *pattern, const char *s)
{
	const char *back = NULL, *from = NULL;

	for (;;) {
		bool same = false;

		if (*pattern == '*') {
			back = ++pattern;
			from = s;
			continue;
		}
		if (!*s && !*pattern)
			return true;
		if (*s && *pattern == '?')
			same = true;
		else if (*s && *pattern == '[')
			same = one_of(&pattern, *s);
		else if (*s)
			same = *pattern == *s;
		if (same) {
			pattern++;
			s++;
			continue;
		}
		if (!back || !*from)
			return false;
		pattern = back;
		s = ++from;
	}
}

/* Empty if it is not within the record, or does not end there. */
static const char *dynamic_string(const struct tp_field *f, const u8 *record, u32 size)
{
	u64 where = number_of(f, record);
	u32 at = where & 0xffff, len = (u32)(where >> 16);

	if (!len || at > size || len > size - at || record[at + len - 1])
		return "";
	return (const char *)record + at;
}

static bool compare_strings(const struct filter_node *n, const u8 *record,
			    const struct tp_context *context)
{
	char text[TP_SIZE_MAX + 1];
	const char *s = text;

	if (n->field == &comm_field) {
		s = context->comm;
	} else if (n->field->kind == TP_DYNAMIC) {
		s = dynamic_string(n->field, record, context->size);
	} else {
		memcpy(text, record + n->field->offset, n->field->size);
		text[n->field->size] = '\0';
	}
	if (n->op == OP_GLOB)
		return globs(n->string, s);
	return !strcmp(n->string, s) == (n->op == OP_EQ);
}

/* As deep as the text was nested, which has a bound, or as long as its row of operators. */
static bool passes(const struct tp_filter *filter, u16 index, const u8 *record,
		   const struct tp_context *context)
{
	const struct filter_node *n = &filter->node[index];

	switch (n->kind) {
	case NODE_AND:
		return passes(filter, n->left, record, context) &&
		       passes(filter, n->right, record, context);
	case NODE_OR:
		return passes(filter, n->left, record, context) ||
		       passes(filter, n->right, record, context);
	case NODE_NOT: return !passes(filter, n->left, record, context);
	case NODE_STRING: return compare_strings(n, record, context);
	default:
		/* The kernel takes a comparison of an array, and finds that it never holds. */
		if (n->field->kind == TP_OTHER)
			return false;
		return compare_numbers(n, n->field == &cpu_field ? context->cpu
								 : number_of(n->field, record));
	}
}

bool tp_filter_passes(const struct tp_filter *filter, const u8 *record,
		      const struct tp_context *context)
{
	return passes(filter, filter->root, record, context);
}
