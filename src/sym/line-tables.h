/*
 * PURPOSE: file and line of code by the line tables of a file alone. libdw decompresses all debug
 * sections of a file when it is asked for the first time: of a C library that is a tenth of a
 * second. Here it is given a file in memory which has nothing but the tables.
 *
 * Lifetime: new .. free; names live as long.
 */
#ifndef SYM_LINE_TABLES_H
#define SYM_LINE_TABLES_H

#include "elf/elf-file.h"

struct line_tables;

/*
 * @libdw: from dlopen(). NULL: the debug sections of @im are not compressed, or the tables are too
 * large to be read whole, or older than DWARF 5.
 */
struct line_tables *line_tables_new(void *libdw, const struct elf_file *im);
void line_tables_free(struct line_tables *t);

/*
 * @addr as the file has it. *@dir: what *@name is relative to; NULL: nothing. False: nothing is
 * known of it.
 */
bool line_tables_find(const struct line_tables *t, u64 addr, const char **name, const char **dir,
		      u32 *line);

#endif
