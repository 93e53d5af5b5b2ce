#include "lib/spec/elf-symbol.h"

#include <elf.h>
#include <errno.h>

#include "elf/elf-file.h"

/* Where virtual address @addr is stored in the file. */
static bool file_offset(const struct elf_file *im, u64 addr, u64 *off)
{
	struct elf_segment s;

	for (u32 i = 0; elf_file_segment(im, i, &s); i++) {
		if (s.type == PT_LOAD && addr >= s.vaddr && addr - s.vaddr < s.filesz) {
			*off = addr - s.vaddr + s.offset;
			return true;
		}
	}
	return false;
}

static int walk_table(const struct elf_file *im, const struct elf_section *table, ap__symbol_fn *fn,
		      void *data)
{
	u64 n = elf_file_symbols(im, table);
	struct elf_section strings;
	struct elf_symbol sym;
	int r;

	if (!elf_file_section(im, table->link, &strings))
		return 0;
	for (u64 i = 0; i < n && elf_file_symbol(im, table, i, &sym); i++) {
		const char *name;
		u64 off;

		/* The two classes have the type in the same bits. */
		if (ELF64_ST_TYPE(sym.info) != STT_FUNC && ELF64_ST_TYPE(sym.info) != STT_GNU_IFUNC)
			continue;
		if (sym.shndx == SHN_UNDEF || !file_offset(im, sym.value, &off))
			continue;
		name = elf_file_text(im, &strings, sym.name);
		if (!name || !*name)
			continue;
		r = fn(name, off, data);
		if (r)
			return r;
	}
	return 0;
}

int ap__elf_symbols(const void *bytes, size_t len, ap__symbol_fn *fn, void *data)
{
	unsigned int tables = 0;
	struct elf_section s;
	struct elf_file im;
	int r;

	if (!elf_file_open(&im, bytes, len))
		return -ENOEXEC;
	/* A file has one of each; a made-up one could send us over the same table for hours. */
	for (u32 i = 0; tables < 4 && elf_file_section(&im, i, &s); i++) {
		if (s.type != SHT_SYMTAB && s.type != SHT_DYNSYM)
			continue;
		tables++;
		r = walk_table(&im, &s, fn, data);
		if (r)
			return r;
	}
	return 0;
}
