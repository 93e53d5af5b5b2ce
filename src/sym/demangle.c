#include "sym/demangle.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/cxx/expansion.h"
#include "sym/rust/demangle-rust.h"

typedef char *demangle_fn(const char *name, char *buf, size_t *len, int *status);

static demangle_fn *find_function(void)
{
	static demangle_fn *fn;
	static bool tried;

	if (!tried) {
		void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

		/* C has no cast from an object pointer to a function's; POSIX promises this. */
		if (lib)
			*(void **)&fn = dlsym(lib, "__cxa_demangle");
		tried = true;
	}
	return fn;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Whether "operator" stands at @p, alone; *@end is behind it and its symbols. */
static bool is_operator(const char *begin, const char *p, const char **end)
{
	static const char word[] = "operator";
	const char *q = p + strlen(word);

	if (strncmp(p, word, strlen(word)) != 0 || is_word(*q) || (p > begin && is_word(p[-1])))
		return false;
	if (!strncmp(q, "()", 2) || !strncmp(q, "[]", 2)) {
		*end = q + 2;
		return true;
	}
	while (*q && strchr("<>=+-*/%^&|~!,", *q) && !(*q == '<' && q[-1] == '<' && q[-2] == '<'))
		q++;
	*end = q;
	return true;
}

/* Behind what closes the bracket at @p; the end of the text if nothing does. */
static const char *behind_bracket(const char *p)
{
	int depth = 0;

	for (const char *begin = p; *p; p++) {
		const char *end;

		if (is_operator(begin, p, &end)) {
			p = end - 1;
			continue;
		}
		if (strchr("(<[{", *p))
			depth++;
		else if (strchr(")]}", *p) || (*p == '>' && p[-1] != '-'))
			depth--;
		if (!depth)
			return p + 1;
	}
	return p;
}

/* What may follow parameters. */
static bool is_tail(const char *p)
{
	return !*p || !strncmp(p, " const", 6) || !strncmp(p, " volatile", 9) ||
	       !strncmp(p, " [", 2) || !strncmp(p, " &", 2) || !strncmp(p, "[abi:", 5);
}

/* What the compiler makes of a function is named by all of that function's name, by perf too. */
static bool is_about_another(const char *name)
{
	static const char *const made[] = {"non-virtual thunk to ", "virtual thunk to ",
					   "covariant return thunk to ", "transaction clone for ",
					   "non-transaction clone for "};

	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if (!strncmp(name, made[i], strlen(made[i])))
			return true;
	return false;
}

char *sym_strip_types(char *name)
{
	char *params = NULL, *last = NULL;
	bool in_operator = false;

	if (is_about_another(name))
		return name;
	for (char *p = name; *p;) {
		const char *end;

		if (is_operator(name, p, &end)) {
			p = (char *)end;
			/* What follows, as in `operator new`, is its name. */
			in_operator = true;
			continue;
		}
		if (!strncmp(p, "(anonymous namespace)", 21)) {
			p += 21;
			continue;
		}
		if (strchr("(<[{", *p)) {
			end = behind_bracket(p);
			if (*p == '(' && is_tail(end)) {
				params = p;
				break;
			}
			p = (char *)end;
			continue;
		}
		if (*p == ' ' && !in_operator)
			last = p;
		p++;
	}
	if (!params || params == name) {
		return name;
	}
	*params = 0;
	/* Templates have their return type in front. */
	if (last)
		memmove(name, last + 1, strlen(last + 1) + 1);
	return name;
}

/* Without ".constprop.0" and the like, which are the compiler's, and the linker's "@@VERSION". */
static size_t length_of(const char *name)
{
	size_t rust = sym_rust_legacy_length(name);

	return rust ? rust : strcspn(name, ".@");
}

/* Behind the suffix of a clone at @p, as binutils have it: .cold, .constprop.0; @p: it is none. */
static const char *behind_clone(const char *p)
{
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	size_t n = *p == '.' ? strspn(p + 1, lower) : 0;

	if (!n)
		return p;
	p += 1 + n;
	while (*p == '.' && (n = strspn(p + 1, "0123456789")))
		p += 1 + n;
	return p;
}

/* @text, which is freed, and what the compiler has made of it. NULL: the rest is no such suffix. */
static char *add_clones(char *text, const char *rest)
{
	const char *end;
	char *more;

	while (text && (end = behind_clone(rest)) != rest) {
		if (asprintf(&more, "%s [clone %.*s]", text, (int)(end - rest), rest) < 0)
			more = NULL;
		free(text);
		text = more;
		rest = end;
	}
	if (!*rest || *rest == '@')
		return text;
	free(text);
	return NULL;
}

/* What is of C++ and stands in front of suffixes. NULL: nothing, or nobody can read it. */
static char *demangle_cxx(const char *name)
{
	demangle_fn *fn = find_function();
	char *plain = fn ? strndup(name, length_of(name)) : NULL, *text;
	int status;

	if (!plain)
		return NULL;
	/* Of what is as long as memory the demangler would make that, and take its time. */
	text = sym_cxx_is_short(plain) ? fn(plain, NULL, NULL, &status) : NULL;
	free(plain);
	if (!text || status)
		return NULL;
	sym_rust_legacy(text);
	return text;
}

static char *demangle(const char *name, bool whole)
{
	char *text;

	if (!sym_is_mangled(name))
		return NULL;
	/* Rust's names have no types that could be cut off. */
	if (name[1] == 'R')
		return sym_demangle_rust(name);
	text = demangle_cxx(name);
	if (!whole)
		return text ? sym_strip_types(text) : NULL;
	return sym_rust_legacy_length(name) ? text : add_clones(text, name + length_of(name));
}

char *sym_demangle_whole(const char *name)
{
	return demangle(name, true);
}

char *sym_demangle(const char *name)
{
	return demangle(name, false);
}
