/*
 * PURPOSE: the symbols of one ELF file, or of the kernel, by address: a reader of our own, which
 * needs the tables and program headers and believes nothing in them.
 *
 * Lifetime: load .. free. Names live as long as the table.
 */
#ifndef SYM_SYMBOLS_H
#define SYM_SYMBOLS_H

#include "elf/build-id.h"

struct sym_symbol {
	u64 start, end; /* end is one past it */
	const char *name;
	const char *module; /* of the kernel: "[ext4]"; NULL: the kernel itself, or a file */
};

struct sym_symbols;

/*
 * Loads a file's function and data symbols from .symtab, or from .dynsym where there is none. @id
 * (NULL: any) must be the file's. NULL: it is not such a file, or has no symbols.
 */
struct sym_symbols *sym_symbols_load(const char *path, const struct elf_build_id *id);

/*
 * The same from the debug file of @running, which has the symbols; what tells the slots of the
 * procedure linkage table is in @running alone. @id is that of both.
 */
struct sym_symbols *sym_symbols_load_debug(const char *path, const char *running,
					   const struct elf_build_id *id);

/* The same for bytes in memory, which must stay. */
struct sym_symbols *sym_symbols_of_bytes(const void *bytes, size_t len);

/* /proc/kallsyms, or another of its form. NULL if it tells no addresses. */
struct sym_symbols *sym_symbols_of_kernel(const char *path);

/* What a just-in-time compiler tells of its code in /tmp/perf-PID.map. NULL: nothing. */
struct sym_symbols *sym_symbols_of_jit(const char *path);

void sym_symbols_free(struct sym_symbols *s);

/* The symbol that holds @addr: a virtual address as the file has it. NULL: none. */
const struct sym_symbol *sym_symbols_find(struct sym_symbols *s, u64 addr);

/* The address of a symbol; 0: there is none of that name. */
u64 sym_symbols_address(const struct sym_symbols *s, const char *name);

/* Whether .symtab was there, which has all functions. */
bool sym_symbols_complete(const struct sym_symbols *s);

size_t sym_symbols_count(const struct sym_symbols *s);

/*
 * The virtual address of the byte at @offset of a file, by its program headers. False: nothing of
 * it is loaded from there.
 */
struct sym_segments;
struct sym_segments *sym_segments_load(const char *path);
struct sym_segments *sym_segments_of_bytes(const void *bytes, size_t len);
bool sym_segments_address(const struct sym_segments *s, u64 offset, u64 *addr);

/*
 * The same of the byte @into behind the beginning of a mapping of the file from @pgoff on, which
 * may lie behind what the file holds of a segment, in its .bss.
 */
bool sym_segments_memory(const struct sym_segments *s, u64 pgoff, u64 into, u64 *addr);

#endif
