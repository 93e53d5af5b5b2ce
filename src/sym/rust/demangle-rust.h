/*
 * PURPOSE: names of Rust's "v0" mangling, which begin with _R, as people write them (RFC 2603 and
 * the page "v0 Symbol Format" of the rustc book). Hashes that tell crates of one name apart, types
 * of constants and what compilers have appended behind a dot are left out, as perf, Valgrind and
 * `c++filt -s rust` leave them out. Older names are C++'s, with a hash at the end.
 */
#ifndef SYM_RUST_DEMANGLE_RUST_H
#define SYM_RUST_DEMANGLE_RUST_H

#include <stddef.h>

/*
 * To be freed; NULL: it is not such a name, it is longer than 64 KB when written out, which a few
 * bytes with references can ask for, or there is no memory.
 */
char *sym_demangle_rust(const char *name);

/*
 * What is C++'s when it is read as such, but has been mangled by Rust's older compilers, which its
 * end tells: `_$LT$T$u20$as$u20$core..any..Any$GT$::type_id::h0123456789abcdef`. Cuts the hash off
 * and writes the rest as people do, in place; other names stay as they are.
 */
void sym_rust_legacy(char *name);

/* How long such a name is as it is mangled, which has dots within; 0: it is none. */
size_t sym_rust_legacy_length(const char *mangled);

#endif
