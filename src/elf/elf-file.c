#include "elf/elf-file.h"

#include <elf.h>
#include <string.h>

/* Copied, since nothing in a file needs to be aligned. */
static bool take(const struct elf_file *im, u64 off, void *out, size_t len)
{
	if (off > im->len || len > im->len - off)
		return false;
	memcpy(out, im->bytes + off, len);
	return true;
}

/* Reads one of the two classes' structs and copies the wanted fields from it. */
#define TAKE(im, off, type, out, ...)                                       \
	({                                                                  \
		bool ok_;                                                   \
		if ((im)->is64) {                                           \
			Elf64_##type e_;                                    \
			ok_ = take(im, off, &e_, sizeof(e_));               \
			if (ok_)                                            \
				*(out) = (__typeof__(*(out))){__VA_ARGS__}; \
		} else {                                                    \
			Elf32_##type e_;                                    \
			ok_ = take(im, off, &e_, sizeof(e_));               \
			if (ok_)                                            \
				*(out) = (__typeof__(*(out))){__VA_ARGS__}; \
		}                                                           \
		ok_;                                                        \
	})

bool elf_file_open(struct elf_file *im, const void *bytes, size_t len)
{
	const u8 *id = bytes;
	const u16 one = 1;
	struct elf_file h;

	if (len < EI_NIDENT || memcmp(id, ELFMAG, SELFMAG) != 0 ||
	    id[EI_DATA] != (*(const u8 *)&one ? ELFDATA2LSB : ELFDATA2MSB) ||
	    (id[EI_CLASS] != ELFCLASS64 && id[EI_CLASS] != ELFCLASS32))
		return false;
	*im = (struct elf_file){.bytes = bytes, .len = len, .is64 = id[EI_CLASS] == ELFCLASS64};
	if (!TAKE(im, 0, Ehdr, &h, .phoff = e_.e_phoff, .shoff = e_.e_shoff,
		  .phentsize = e_.e_phentsize, .phnum = e_.e_phnum, .shentsize = e_.e_shentsize,
		  .shnum = e_.e_shnum, .shstrndx = e_.e_shstrndx, .machine = e_.e_machine))
		return false;
	h.bytes = bytes;
	h.len = len;
	h.is64 = im->is64;
	*im = h;
	return true;
}

bool elf_file_segment(const struct elf_file *im, u32 i, struct elf_segment *s)
{
	return i < im->phnum && im->phoff <= im->len &&
	       TAKE(im, im->phoff + (u64)i * im->phentsize, Phdr, s, .type = e_.p_type,
		    .offset = e_.p_offset, .vaddr = e_.p_vaddr, .filesz = e_.p_filesz,
		    .memsz = e_.p_memsz);
}

bool elf_file_section(const struct elf_file *im, u32 i, struct elf_section *s)
{
	return i < im->shnum && im->shoff <= im->len &&
	       TAKE(im, im->shoff + (u64)i * im->shentsize, Shdr, s, .name = e_.sh_name,
		    .type = e_.sh_type, .link = e_.sh_link, .entsize = e_.sh_entsize,
		    .flags = e_.sh_flags, .addr = e_.sh_addr, .offset = e_.sh_offset,
		    .size = e_.sh_size);
}

static size_t symbol_size(const struct elf_file *im)
{
	return im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

u64 elf_file_symbols(const struct elf_file *im, const struct elf_section *table)
{
	if (table->offset > im->len)
		return 0;
	return min_u64(table->size, im->len - table->offset) / symbol_size(im);
}

bool elf_file_symbol(const struct elf_file *im, const struct elf_section *table, u64 i,
		     struct elf_symbol *s)
{
	return TAKE(im, table->offset + i * symbol_size(im), Sym, s, .name = e_.st_name,
		    .info = e_.st_info, .shndx = e_.st_shndx, .value = e_.st_value,
		    .size = e_.st_size);
}

const char *elf_file_text(const struct elf_file *im, const struct elf_section *strings, u32 at)
{
	u64 size;

	if (strings->offset > im->len)
		return NULL;
	size = min_u64(strings->size, im->len - strings->offset);
	if (at >= size || !memchr(im->bytes + strings->offset + at, 0, size - at))
		return NULL;
	return (const char *)im->bytes + strings->offset + at;
}

int elf_file_each_symbol(const struct elf_file *im, const struct elf_section *table,
			 elf_symbol_fn *fn, void *data)
{
	u64 n = elf_file_symbols(im, table);
	struct elf_section strings;
	struct elf_symbol s;
	int r = 0;

	if (!elf_file_section(im, table->link, &strings))
		return 0;
	for (u64 i = 0; i < n && !r && elf_file_symbol(im, table, i, &s); i++) {
		const char *name = elf_file_text(im, &strings, s.name);

		if (name && *name)
			r = fn(&s, name, data);
	}
	return r;
}

bool elf_file_find(const struct elf_file *im, const char *name, struct elf_section *s)
{
	struct elf_section names;
	const char *own;

	if (!elf_file_section(im, im->shstrndx, &names))
		return false;
	for (u32 i = 0; elf_file_section(im, i, s); i++) {
		own = elf_file_text(im, &names, s->name);
		if (own && !strcmp(own, name))
			return true;
	}
	return false;
}

bool elf_file_relocation(const struct elf_file *im, const struct elf_section *table, u64 i,
			 u32 *symbol)
{
	bool addend = table->type == SHT_RELA;
	size_t size = im->is64 ? (addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel))
			       : (addend ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel));

	if (i >= table->size / size)
		return false;
	return TAKE(im, table->offset + i * size, Rel, symbol,
		    im->is64 ? (u32)((u64)e_.r_info >> 32) : (u32)e_.r_info >> 8);
}
