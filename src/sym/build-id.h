/*
 * PURPOSE: the build id of a file or of the running kernel: what tells one build of a program from
 * all others, and by which its debug file is found. Reads a few hundred bytes of the file, and
 * believes none of them.
 */
#ifndef SYM_BUILD_ID_H
#define SYM_BUILD_ID_H

#include "base/types.h"

struct sym_build_id {
	u8 bytes[20];
	u8 size; /* 0: there is none */
};

/* False: the file is not ELF of this machine's byte order, has none, or cannot be read. */
bool sym_build_id_of_file(const char *path, struct sym_build_id *id);

/* Whether the file has this one; NULL and an empty one fit all. */
bool sym_build_id_is(const char *path, const struct sym_build_id *id);

bool sym_build_id_of_kernel(struct sym_build_id *id);

/* Finds it in notes, as sections and segments have them. */
bool sym_build_id_in_notes(const void *notes, size_t len, size_t align, struct sym_build_id *id);

/* In hexadecimal; @text has room for 41 bytes. Returns it. */
char *sym_build_id_text(const struct sym_build_id *id, char *text);

#endif
