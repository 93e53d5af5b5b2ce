/*
 * PURPOSE: the functions of one ELF file as Valgrind knows them, which is not quite as perf does
 * (symbols.h): every symbol with a size that is no label, from both symbol tables and the debug
 * file; of several names the shortest; names of C++ with their parameters and clones; the frames
 * below main under one name. And the kinds of its sections, and the lines of its code.
 *
 * Lifetime: load .. free. Names live as long as the table.
 */
#ifndef SYM_FUNCTION_TABLE_H
#define SYM_FUNCTION_TABLE_H

#include "base/types.h"

struct function_table;

/* NULL: it is no such file. One without symbols has no functions. */
struct function_table *function_table_load(const char *path);
void function_table_free(struct function_table *t);

struct function_entry {
	u64 start, end; /* virtual addresses as the file has them; end is one past it */
	const char *name;
};

/* False: none is there. */
bool function_table_find(struct function_table *t, u64 addr, struct function_entry *f);

enum section_kind {
	SECTION_UNKNOWN,
	SECTION_TEXT,  /* .text */
	SECTION_PLT,   /* .plt */
	SECTION_OTHER, /* .data, .bss, .got */
};

enum section_kind function_table_section(const struct function_table *t, u64 addr);

/* The virtual address of the byte at @offset of the file; false: it is not loaded. */
bool function_table_address(const struct function_table *t, u64 offset, u64 *addr);

/*
 * File and line of the code at @addr, from DWARF by way of libdw. False: it is not known. @file
 * lives as long as the table.
 */
bool function_table_line(struct function_table *t, u64 addr, const char **file, u32 *line);

#endif
