#include "sym/rust/demangle-rust.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/rust/name-priv.h"

static void lifetime_name(struct rust_name *r, u64 index)
{
	u64 depth;

	if (r->quiet)
		return;
	if (!index) {
		rust_put(r, "'_");
		return;
	}
	if (index > r->lifetimes) {
		r->wrong = true;
		return;
	}
	depth = r->lifetimes - index;
	rust_put(r, "'");
	if (depth < 26) {
		rust_put_bytes(r, (char[]){(char)('a' + depth)}, 1);
	} else {
		rust_put(r, "_");
		rust_put_number(r, depth);
	}
}

/* What is bound here, until @r->lifetimes is set back. */
static void binder(struct rust_name *r)
{
	u64 n = rust_number_after(r, 'G');

	if (!n)
		return;
	rust_put(r, "for<");
	/* Each is written, so this ends when the text is too long. */
	for (u64 i = 0; i < n && !r->wrong && !r->quiet; i++) {
		if (i)
			rust_put(r, ", ");
		r->lifetimes++;
		lifetime_name(r, 1);
	}
	rust_put(r, "> ");
}

static void generic_argument(struct rust_name *r)
{
	if (rust_eat(r, 'L'))
		lifetime_name(r, rust_base_62(r));
	else if (rust_eat(r, 'K'))
		rust_constant(r, false);
	else
		rust_type(r);
}

/* A path of which somebody else writes the closing bracket, if it has an opening one. */
static bool open_path(struct rust_name *r)
{
	bool open = false;
	size_t back = 0;

	if (!rust_enter(r)) {
		/* Nothing more is read. */
	} else if (rust_eat(r, 'B')) {
		if (rust_follow(r, &back))
			open = open_path(r);
		r->at = r->wrong ? r->at : back;
	} else if (rust_eat(r, 'I')) {
		rust_path(r, false);
		rust_put(r, "<");
		rust_list(r, generic_argument, ", ");
		open = true;
	} else {
		rust_path(r, false);
	}
	rust_leave(r);
	return open;
}

static void bound_trait(struct rust_name *r)
{
	bool open = open_path(r);

	while (rust_eat(r, 'p')) {
		rust_put(r, open ? ", " : "<");
		open = true;
		rust_put_ident(r, rust_identifier(r));
		rust_put(r, " = ");
		rust_type(r);
	}
	if (open)
		rust_put(r, ">");
}

static void trait_object(struct rust_name *r)
{
	u64 outside = r->lifetimes, lifetime;

	rust_put(r, "dyn ");
	binder(r);
	rust_list(r, bound_trait, " + ");
	r->lifetimes = outside;
	if (!rust_eat(r, 'L')) {
		r->wrong = true;
		return;
	}
	lifetime = rust_base_62(r);
	if (lifetime) {
		rust_put(r, " + ");
		lifetime_name(r, lifetime);
	}
}

static void abi(struct rust_name *r)
{
	struct rust_ident id = {.text = "C", .len = 1};

	rust_put(r, "extern \"");
	if (!rust_eat(r, 'C'))
		id = rust_identifier(r);
	/* They have no hyphens in names. */
	for (size_t i = 0; i < id.len; i++)
		rust_put_bytes(r, id.text[i] == '_' ? "-" : &id.text[i], 1);
	rust_put(r, "\" ");
}

static void function(struct rust_name *r)
{
	u64 outside = r->lifetimes;

	binder(r);
	if (rust_eat(r, 'U'))
		rust_put(r, "unsafe ");
	if (rust_eat(r, 'K'))
		abi(r);
	rust_put(r, "fn(");
	rust_list(r, rust_type, ", ");
	rust_put(r, ")");
	if (!rust_eat(r, 'u')) {
		rust_put(r, " -> ");
		rust_type(r);
	}
	r->lifetimes = outside;
}

static void reference(struct rust_name *r, bool is_mutable)
{
	rust_put(r, "&");
	if (rust_eat(r, 'L')) {
		u64 lifetime = rust_base_62(r);

		if (lifetime) {
			lifetime_name(r, lifetime);
			rust_put(r, " ");
		}
	}
	if (is_mutable)
		rust_put(r, "mut ");
	rust_type(r);
}

static const char *basic_type(char tag)
{
	static const char *const names[26] = {"i8",   "bool",  "char",  "f64", "str", "f32", NULL,
					      "u8",   "isize", "usize", NULL,  "i32", "u32", "i128",
					      "u128", "_",     NULL,    NULL,  "i16", "u16", "()",
					      "...",  NULL,    "i64",   "u64", "!"};

	return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

static void compound_type(struct rust_name *r, char tag)
{
	size_t back = 0;

	switch (tag) {
	case 'R':
	case 'Q': reference(r, tag == 'Q'); break;
	case 'P':
	case 'O':
		rust_put(r, tag == 'P' ? "*const " : "*mut ");
		rust_type(r);
		break;
	case 'A':
	case 'S':
		rust_put(r, "[");
		rust_type(r);
		if (tag == 'A') {
			rust_put(r, "; ");
			rust_constant(r, true);
		}
		rust_put(r, "]");
		break;
	case 'T':
		rust_put(r, "(");
		rust_put(r, rust_list(r, rust_type, ", ") == 1 ? ",)" : ")");
		break;
	case 'F': function(r); break;
	case 'D': trait_object(r); break;
	case 'B':
		if (rust_follow(r, &back))
			rust_type(r);
		r->at = r->wrong ? r->at : back;
		break;
	default: r->at--; rust_path(r, false);
	}
}

void rust_type(struct rust_name *r)
{
	char tag = rust_next(r);
	const char *basic = basic_type(tag);

	if (r->wrong)
		return;
	if (basic) {
		rust_put(r, basic);
		return;
	}
	if (rust_enter(r))
		compound_type(r, tag);
	rust_leave(r);
}

/* Where the implementation stands: another may stand beside it, and nobody wants to read it. */
static void skip_place(struct rust_name *r)
{
	bool quiet = r->quiet;

	(void)rust_number_after(r, 's');
	r->quiet = true;
	rust_path(r, false);
	r->quiet = quiet;
}

static void nested(struct rust_name *r, bool in_value)
{
	char kind = rust_next(r);
	u64 nth;
	struct rust_ident id;

	rust_path(r, in_value);
	nth = rust_number_after(r, 's');
	id = rust_identifier(r);
	if (kind >= 'a' && kind <= 'z') {
		/* Without a name it is an implementation or a block. */
		if (id.len) {
			rust_put(r, "::");
			rust_put_ident(r, id);
		}
		return;
	}
	if (kind < 'A' || kind > 'Z') {
		r->wrong = true;
		return;
	}
	rust_put(r, "::{");
	if (kind == 'C' || kind == 'S')
		rust_put(r, kind == 'C' ? "closure" : "shim");
	else
		rust_put_bytes(r, &kind, 1);
	if (id.len) {
		rust_put(r, ":");
		rust_put_ident(r, id);
	}
	rust_put(r, "#");
	rust_put_number(r, nth);
	rust_put(r, "}");
}

static void path_of(struct rust_name *r, char tag, bool in_value)
{
	size_t back = 0;

	switch (tag) {
	case 'C':
		(void)rust_number_after(r, 's');
		rust_put_ident(r, rust_identifier(r));
		break;
	case 'N': nested(r, in_value); break;
	case 'M':
	case 'X':
	case 'Y':
		if (tag != 'Y')
			skip_place(r);
		rust_put(r, "<");
		rust_type(r);
		if (tag != 'M') {
			rust_put(r, " as ");
			rust_path(r, false);
		}
		rust_put(r, ">");
		break;
	case 'I':
		rust_path(r, in_value);
		rust_put(r, in_value ? "::<" : "<");
		rust_list(r, generic_argument, ", ");
		rust_put(r, ">");
		break;
	case 'B':
		if (rust_follow(r, &back))
			rust_path(r, in_value);
		r->at = r->wrong ? r->at : back;
		break;
	default: r->wrong = true;
	}
}

void rust_path(struct rust_name *r, bool in_value)
{
	if (rust_enter(r))
		path_of(r, rust_next(r), in_value);
	rust_leave(r);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

char *sym_demangle_rust(const char *name)
{
	struct rust_name r = {0};

	/* A digit would be a version that is not known yet. */
	if (name[0] != '_' || name[1] != 'R' || name[2] < 'A' || name[2] > 'Z')
		return NULL;
	r.sym = name + 2;
	while (is_word(r.sym[r.len]))
		r.len++;
	if (r.sym[r.len] && r.sym[r.len] != '.' && r.sym[r.len] != '@')
		return NULL;
	rust_path(&r, true);
	/* The crate whose code it is, if it is not that of the path. */
	if (!r.wrong && r.at < r.len) {
		r.quiet = true;
		rust_path(&r, false);
	}
	/* A crate may be called nothing, but who reads it wants to see something. */
	if (r.wrong || r.at < r.len || !r.written) {
		free(r.out);
		return NULL;
	}
	return r.out;
}
