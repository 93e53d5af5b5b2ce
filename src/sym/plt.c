#include "sym/plt.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "sym/demangle.h"

/* How the CPU's linkers lay a table out: something in front of the slots, and the slots. */
struct plt_layout {
	u64 first, size;
};

static struct plt_layout layout_of(const struct elf_file *im, const struct elf_section *plt)
{
	/* Linkers of arm64 give the section an entry size, but not always a true one. */
	if (im->machine == EM_AARCH64)
		return (struct plt_layout){32, 16};
	if (im->machine == EM_ARM)
		return (struct plt_layout){20, 12};
	if (plt->entsize)
		return (struct plt_layout){plt->entsize, plt->entsize};
	return (struct plt_layout){16, 16};
}

/* A function within the file has no name here, since only its resolver's address is known. */
static char *slot_name(const char *function)
{
	char *plain = sym_demangle(function), *name;
	int len = asprintf(&name, "%s@plt", plain ? plain : function);

	free(plain);
	return len < 0 ? NULL : name;
}

/* Slots stand in the order of their relocations. */
static bool name_slots(const struct elf_file *im, const struct elf_section *plt,
		       struct plt_layout layout, const struct elf_section *relocations,
		       sym_slot_fn add, void *to)
{
	struct elf_section dynsym, strings;
	u32 number;

	if (!elf_file_section(im, relocations->link, &dynsym) || dynsym.type != SHT_DYNSYM ||
	    !elf_file_section(im, dynsym.link, &strings))
		return true;
	for (u64 i = 0; elf_file_relocation(im, relocations, i, &number); i++) {
		u64 at = layout.first + i * layout.size;
		struct elf_symbol raw;
		const char *function;
		char *name;

		if (at > plt->size || layout.size > plt->size - at)
			break;
		if (!elf_file_symbol(im, &dynsym, number, &raw))
			continue;
		function = elf_file_text(im, &strings, raw.name);
		if (!function)
			continue;
		name = slot_name(function);
		if (!name || !add(to, plt->addr + at, layout.size, name))
			return false;
	}
	return true;
}

bool sym_plt_slots(const struct elf_file *im, sym_slot_fn add, void *to)
{
	struct elf_section relocations, plt;
	struct plt_layout layout;

	if (!elf_file_find(im, ".rela.plt", &relocations) &&
	    !elf_file_find(im, ".rel.plt", &relocations))
		return true;
	if (elf_file_find(im, ".plt", &plt) && plt.type == SHT_PROGBITS &&
	    !name_slots(im, &plt, layout_of(im, &plt), &relocations, add, to))
		return false;
	/* With indirect branch tracking what is called are these; they go on to the others. */
	if (!elf_file_find(im, ".plt.sec", &plt) || plt.type != SHT_PROGBITS)
		return true;
	layout = layout_of(im, &plt);
	layout.first = 0;
	return name_slots(im, &plt, layout, &relocations, add, to);
}
