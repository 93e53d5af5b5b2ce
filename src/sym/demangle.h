/*
 * PURPOSE: names of C++ as people write them, without parameters and return types, as perf shows
 * them. libstdc++ is loaded when the first such name is met; without it names stay as they are.
 */
#ifndef SYM_DEMANGLE_H
#define SYM_DEMANGLE_H

#include "base/types.h"

/* To be freed; NULL: it is not such a name, or nobody can read it. */
char *sym_demangle(const char *name);

/* The same with parameters and return type. */
char *sym_demangle_whole(const char *name);

/* Cuts parameters and return type off a name that was demangled, in place. Returns it. */
char *sym_strip_types(char *name);

#endif
