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

struct symbol_walk {
	const struct elf_file *im;
	ap__symbol_fn *fn;
	void *data;
};

static int on_symbol(const struct elf_symbol *sym, const char *name, void *data)
{
	const struct symbol_walk *w = data;
	u64 off;

	/* The two classes have the type in the same bits. */
	if (ELF64_ST_TYPE(sym->info) != STT_FUNC && ELF64_ST_TYPE(sym->info) != STT_GNU_IFUNC)
		return 0;
	if (sym->shndx == SHN_UNDEF || !file_offset(w->im, sym->value, &off))
		return 0;
	return w->fn(name, off, w->data);
}

int ap__elf_symbols(const void *bytes, size_t len, ap__symbol_fn *fn, void *data)
{
	unsigned int tables = 0;
	struct elf_section s;
	struct elf_file im;
	struct symbol_walk w = {&im, fn, data};
	int r;

	if (!elf_file_open(&im, bytes, len))
		return -ENOEXEC;
	/* A file has one of each; a made-up one could send us over the same table for hours. */
	for (u32 i = 0; tables < 4 && elf_file_section(&im, i, &s); i++) {
		if (s.type != SHT_SYMTAB && s.type != SHT_DYNSYM)
			continue;
		tables++;
		r = elf_file_each_symbol(&im, &s, on_symbol, &w);
		if (r)
			return r;
	}
	return 0;
}
