/*
 * PURPOSE: names of C++ and Rust as people write them, those of C++ without parameters and return
 * types, as perf shows them. libstdc++ is loaded when the first name of C++ is met; without it they
 * stay as they are, and so do those that would become megabytes (cxx/expansion.h). Rust's are read
 * by rust/demangle-rust.c.
 */
#ifndef SYM_DEMANGLE_H
#define SYM_DEMANGLE_H

#include "base/types.h"

static inline bool sym_is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* To be freed; NULL: it is not such a name, or nobody can read it. */
char *sym_demangle(const char *name);

/*
 * The same with parameters and return type, and of C++ with what the compiler has made of the
 * function, as binutils tell it: f(int) [clone .cold].
 */
char *sym_demangle_whole(const char *name);

/* Cuts parameters and return type off a name that was demangled, in place. Returns it. */
char *sym_strip_types(char *name);

#endif
