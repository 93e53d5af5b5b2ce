#include "lib/spec/elf-symbol.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

struct image {
	const u8 *bytes;
	size_t len;
	bool is64;
	/* program and section headers: offset in the file, size of one, number */
	u64 phoff, shoff;
	u16 phentsize, phnum, shentsize, shnum;
};

struct segment {
	u32 type;
	u64 offset, vaddr, filesz;
};

struct elf_section {
	u32 type, link;
	u64 offset, size, entsize;
};

struct symbol {
	u32 name;
	u8 info;
	u16 shndx;
	u64 value;
};

/* @len bytes at @off of the file, copied, since nothing in it needs to be aligned. */
static bool take(const struct image *im, u64 off, void *out, size_t len)
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

static bool open_image(struct image *im, const void *bytes, size_t len)
{
	const u8 *id = bytes;
	u16 one = 1;
	bool little = *(const u8 *)&one;
	struct image hdr;

	if (len < EI_NIDENT || memcmp(id, ELFMAG, SELFMAG) != 0)
		return false;
	if (id[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB))
		return false;
	*im = (struct image){.bytes = bytes, .len = len, .is64 = id[EI_CLASS] == ELFCLASS64};
	if (!im->is64 && id[EI_CLASS] != ELFCLASS32)
		return false;
	if (!TAKE(im, 0, Ehdr, &hdr, .phoff = e_.e_phoff, .shoff = e_.e_shoff,
		  .phentsize = e_.e_phentsize, .phnum = e_.e_phnum, .shentsize = e_.e_shentsize,
		  .shnum = e_.e_shnum))
		return false;
	hdr.bytes = im->bytes;
	hdr.len = im->len;
	hdr.is64 = im->is64;
	*im = hdr;
	return true;
}

static bool section_at(const struct image *im, u32 i, struct elf_section *s)
{
	if (i >= im->shnum || im->shoff > im->len)
		return false;
	return TAKE(im, im->shoff + (u64)i * im->shentsize, Shdr, s, .type = e_.sh_type,
		    .link = e_.sh_link, .offset = e_.sh_offset, .size = e_.sh_size,
		    .entsize = e_.sh_entsize);
}

/* Where virtual address @addr is stored in the file. */
static bool file_offset(const struct image *im, u64 addr, u64 *off)
{
	struct segment s;

	if (im->phoff > im->len)
		return false;
	for (u32 i = 0; i < im->phnum; i++) {
		if (!TAKE(im, im->phoff + (u64)i * im->phentsize, Phdr, &s, .type = e_.p_type,
			  .offset = e_.p_offset, .vaddr = e_.p_vaddr, .filesz = e_.p_filesz))
			return false;
		if (s.type == PT_LOAD && addr >= s.vaddr && addr - s.vaddr < s.filesz) {
			*off = addr - s.vaddr + s.offset;
			return true;
		}
	}
	return false;
}

/* The NUL-terminated name at @at of string table @str, or NULL. */
static const char *string_at(const struct image *im, const struct elf_section *str, u32 at)
{
	u64 size = str->size;

	if (str->offset > im->len)
		return NULL;
	if (size > im->len - str->offset)
		size = im->len - str->offset;
	if (at >= size || !memchr(im->bytes + str->offset + at, '\0', size - at))
		return NULL;
	return (const char *)im->bytes + str->offset + at;
}

static int walk_table(const struct image *im, const struct elf_section *tab, ap__symbol_fn *fn,
		      void *data)
{
	size_t each = im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct elf_section str;
	struct symbol sym = {0};
	int r;

	if (tab->offset > im->len || !section_at(im, tab->link, &str))
		return 0;
	for (u64 at = 0; at + each <= tab->size; at += each) {
		const char *text;
		u64 off;

		if (!TAKE(im, tab->offset + at, Sym, &sym, .name = e_.st_name, .info = e_.st_info,
			  .shndx = e_.st_shndx, .value = e_.st_value))
			return 0;
		/* The two classes have the type in the same bits. */
		if (ELF64_ST_TYPE(sym.info) != STT_FUNC && ELF64_ST_TYPE(sym.info) != STT_GNU_IFUNC)
			continue;
		if (sym.shndx == SHN_UNDEF || !file_offset(im, sym.value, &off))
			continue;
		text = string_at(im, &str, sym.name);
		if (!text || !*text)
			continue;
		r = fn(text, off, data);
		if (r)
			return r;
	}
	return 0;
}

int ap__elf_symbols(const void *bytes, size_t len, ap__symbol_fn *fn, void *data)
{
	unsigned int tables = 0;
	struct elf_section s;
	struct image im;
	int r;

	if (!open_image(&im, bytes, len))
		return -ENOEXEC;
	/* A file has one of each; a made-up one could send us over the same table for hours. */
	for (u32 i = 0; i < im.shnum && tables < 4; i++) {
		if (!section_at(&im, i, &s))
			break;
		if (s.type != SHT_SYMTAB && s.type != SHT_DYNSYM)
			continue;
		tables++;
		r = walk_table(&im, &s, fn, data);
		if (r)
			return r;
	}
	return 0;
}
