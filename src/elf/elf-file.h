/*
 * PURPOSE: reading ELF files of both classes as values, within their bounds. Numbers of another
 * byte order are not read: recordings are of this machine's.
 */
#ifndef ELF_ELF_FILE_H
#define ELF_ELF_FILE_H

#include "base/types.h"

struct elf_file {
	const u8 *bytes; /* borrowed */
	size_t len;
	bool is64;
	u64 phoff, shoff;
	u32 phentsize, phnum, shentsize, shnum, shstrndx, machine;
};

struct elf_segment {
	u32 type;
	u64 offset, vaddr, filesz, memsz;
};

struct elf_section {
	u32 name, type, link;
	u64 flags, addr, offset, size, entsize;
};

struct elf_symbol {
	u32 name;
	u8 info;
	u16 shndx;
	u64 value, size;
};

bool elf_file_open(struct elf_file *im, const void *bytes, size_t len);
bool elf_file_segment(const struct elf_file *im, u32 i, struct elf_segment *s);
bool elf_file_section(const struct elf_file *im, u32 i, struct elf_section *s);

/* How many symbols a section can hold within the file, and one of them. */
u64 elf_file_symbols(const struct elf_file *im, const struct elf_section *table);
bool elf_file_symbol(const struct elf_file *im, const struct elf_section *table, u64 i,
		     struct elf_symbol *s);

/*
 * Each symbol of a table that has a name, in order. Another value than 0 of @fn ends that, and is
 * returned.
 */
typedef int elf_symbol_fn(const struct elf_symbol *s, const char *name, void *data);
int elf_file_each_symbol(const struct elf_file *im, const struct elf_section *table,
			 elf_symbol_fn *fn, void *data);

/* The section of this name. */
bool elf_file_find(const struct elf_file *im, const char *name, struct elf_section *s);

/* The number of the symbol that the i-th entry of a relocation section is about. */
bool elf_file_relocation(const struct elf_file *im, const struct elf_section *table, u64 i,
			 u32 *symbol);

/* A text of a string table; NULL: it does not end within it. */
const char *elf_file_text(const struct elf_file *im, const struct elf_section *strings, u32 at);

#endif
