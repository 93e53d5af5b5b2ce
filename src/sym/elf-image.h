/*
 * PURPOSE: reading ELF files of both classes as values, within their bounds. Numbers of another
 * byte order are not read: recordings are of this machine's.
 */
#ifndef SYM_ELF_IMAGE_H
#define SYM_ELF_IMAGE_H

#include "base/types.h"

struct sym_image {
	const u8 *bytes; /* borrowed */
	size_t len;
	bool is64;
	u64 phoff, shoff;
	u32 phentsize, phnum, shentsize, shnum, shstrndx, machine;
};

struct sym_segment {
	u32 type;
	u64 offset, vaddr, filesz;
};

struct sym_section {
	u32 name, type, link;
	u64 flags, addr, offset, size, entsize;
};

struct sym_raw_symbol {
	u32 name;
	u8 info;
	u16 shndx;
	u64 value, size;
};

bool sym_image_open(struct sym_image *im, const void *bytes, size_t len);
bool sym_image_segment(const struct sym_image *im, u32 i, struct sym_segment *s);
bool sym_image_section(const struct sym_image *im, u32 i, struct sym_section *s);

/* How many symbols a section can hold within the file, and one of them. */
u64 sym_image_symbols(const struct sym_image *im, const struct sym_section *table);
bool sym_image_symbol(const struct sym_image *im, const struct sym_section *table, u64 i,
		      struct sym_raw_symbol *s);

/* The section of this name. */
bool sym_image_find(const struct sym_image *im, const char *name, struct sym_section *s);

/* The number of the symbol that the i-th entry of a relocation section is about. */
bool sym_image_relocation(const struct sym_image *im, const struct sym_section *table, u64 i,
			  u32 *symbol);

/* A text of a string table; NULL: it does not end within it. */
const char *sym_image_text(const struct sym_image *im, const struct sym_section *strings, u32 at);

#endif
