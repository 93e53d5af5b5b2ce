/*
 * PURPOSE: the file that has the symbols and lines of another one, which was stripped: by its build
 * id below /usr/lib/debug/.build-id, else by what its section .gnu_debuglink names, where gdb looks
 * for it: in its folder, in .debug of that, and in its folder below /usr/lib/debug. The contents
 * must have the checksum that the section says.
 */
#ifndef SYM_DEBUG_FILE_H
#define SYM_DEBUG_FILE_H

#include "elf/build-id.h"

#define DEBUG_PATH_MAX 1024

/* @id: of @path as it was recorded (NULL: any). False: there is none. */
bool sym_debug_file(const char *path, const struct elf_build_id *id, char debug[DEBUG_PATH_MAX]);

/* Maps a file to be read, to be unmapped. NULL: it is none, or empty, or cannot be read. */
const void *sym_map_file(const char *path, size_t *len);

#endif
