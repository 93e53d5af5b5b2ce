/*
 * PURPOSE: file and line of the code of one ELF file, from its DWARF or that of its debug file.
 * elfutils' libdw reads it; it is loaded when it is first wanted.
 *
 * Lifetime: new .. free; names of files live as long.
 */
#ifndef SYM_LINE_READER_H
#define SYM_LINE_READER_H

#include "elf/elf-file.h"

struct line_reader;

/*
 * @debug: its debug file; NULL: none. @im: the one of both that has line tables, to read these
 * alone if that saves time; NULL: not. Needed until this returns. NULL: there is no libdw, or it
 * cannot read the file.
 */
struct line_reader *line_reader_new(const char *path, const char *debug, const struct elf_file *im);
void line_reader_free(struct line_reader *r);

/* @addr as the file has it. False: nothing is known of it. */
bool line_reader_find(struct line_reader *r, u64 addr, const char **file, u32 *line);

/* Whether libdw is there. */
bool line_reader_works(void);

#endif
