/*
 * PURPOSE: the build id of a file or of the running kernel: what tells one build of a program from
 * all others, and by which its debug file is found. Reads a few hundred bytes of the file, and
 * believes none of them.
 */
#ifndef ELF_BUILD_ID_H
#define ELF_BUILD_ID_H

#include "base/types.h"

struct elf_build_id {
	u8 bytes[20]; /* zeros behind a shorter one; a longer one is cut, as by kernel and perf */
	u8 size;      /* 0: there is none */
};

struct elf_build_id elf_build_id_made(const u8 *bytes, size_t size);

/* Recordings may have zeros as part of one that is shorter. */
bool elf_build_id_same(const struct elf_build_id *a, const struct elf_build_id *b);

/* False: the file is not ELF of this machine's byte order, has none, or cannot be read. */
bool elf_build_id_of_file(const char *path, struct elf_build_id *id);

/* The same of an open file, which is left where it is. */
bool elf_build_id_of_fd(int fd, struct elf_build_id *id);

/* Whether the file has this one; NULL and an empty one fit all. */
bool elf_build_id_is(const char *path, const struct elf_build_id *id);

bool elf_build_id_of_kernel(struct elf_build_id *id);

/* Finds it in notes, as sections and segments have them. */
bool elf_build_id_in_notes(const void *notes, size_t len, size_t align, struct elf_build_id *id);

/* In hexadecimal; @text has room for 41 bytes. Returns it. */
char *elf_build_id_text(const struct elf_build_id *id, char *text);

#endif
