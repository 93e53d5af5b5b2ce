/*
 * PURPOSE: the place of a symbol in an ELF file, for uprobes. A reader of our own: the job needs
 * two tables and the program headers, and linking libelf would cost every start of the command line
 * more than that. Both ELF classes, this machine's byte order; never trusts an offset of the file.
 */
#ifndef LIB_SPEC_ELF_SYMBOL_H
#define LIB_SPEC_ELF_SYMBOL_H

#include "base/types.h"

/* Returns non-zero to stop. */
typedef int ap__symbol_fn(const char *name, u64 file_offset, void *data);

/*
 * Calls @fn for every function symbol that is defined in the file and lies in a loaded segment,
 * from .symtab and .dynsym. @bytes need not be a valid ELF file. Returns @fn's value, 0, or
 * -ENOEXEC.
 */
int ap__elf_symbols(const void *bytes, size_t len, ap__symbol_fn *fn, void *data);

#endif
