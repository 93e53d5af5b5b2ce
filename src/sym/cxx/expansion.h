/*
 * PURPOSE: how long a mangled name of C++ becomes. A part of one may stand for another part, again
 * and again, so 250 bytes can become more text than there is memory, and who reads a file of
 * somebody else's is to be safe from that. Nothing is written here; it is counted what would be.
 */
#ifndef SYM_CXX_EXPANSION_H
#define SYM_CXX_EXPANSION_H

#include "base/types.h"

/*
 * Whether @name, which begins with _Z, becomes no longer than a few megabytes. What is not
 * understood is judged by how many references it has.
 */
bool sym_cxx_is_short(const char *name);

#endif
