/* The ELF reader: any bytes give symbols whose names and offsets can be used, or -ENOEXEC. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lib/spec/elf-symbol.h"

/* The samples are only changes to the image below: it holds zero bytes, which strings cannot. */
const char *const fuzz_samples[] = {"", "\x10", "0123456789abcdef",
				    "\xff\xff\xff\xff\xff\xff\xff\xff", NULL};
const char *const fuzz_words[] = {"\x01", "\x7f", "\x80", "\xff\xff", "@", NULL};

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[1];
	Elf64_Shdr shdr[3];
	Elf64_Sym sym[3];
	char str[16];
};

static void make(struct image *im)
{
	memset(im, 0, sizeof(*im));
	memcpy(im->ehdr.e_ident, ELFMAG, SELFMAG);
	im->ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	im->ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	im->ehdr.e_phoff = offsetof(struct image, phdr);
	im->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	im->ehdr.e_phnum = 1;
	im->ehdr.e_shoff = offsetof(struct image, shdr);
	im->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	im->ehdr.e_shnum = 3;
	im->phdr[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x1000, .p_filesz = sizeof(*im)};
	im->shdr[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				   .sh_link = 2,
				   .sh_offset = offsetof(struct image, sym),
				   .sh_size = sizeof(im->sym),
				   .sh_entsize = sizeof(Elf64_Sym)};
	im->shdr[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				   .sh_offset = offsetof(struct image, str),
				   .sh_size = sizeof(im->str)};
	for (int i = 1; i < 3; i++)
		im->sym[i] = (Elf64_Sym){.st_name = (Elf64_Word)(1 + 5 * (i - 1)),
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = 1,
					 .st_value = 0x1000 + (unsigned int)i};
	memcpy(im->str, "\0main\0exit", 11);
}

struct seen {
	size_t letters;
	u64 offsets; /* sum */
};

static int visit(const char *name, u64 offset, void *data)
{
	struct seen *seen = data;

	seen->letters += strlen(name);
	seen->offsets += offset;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct image *im = malloc(sizeof(*im));
	struct seen used = {0};
	size_t cut;
	int r;

	CHECK(im);
	make(im);
	/* Pairs of place and value, then perhaps the end of the file. */
	for (size_t i = 0; i + 2 < len; i += 3)
		((uint8_t *)im)[(data[i] | data[i + 1] << 8) % sizeof(*im)] = data[i + 2];
	r = ap__elf_symbols(im, sizeof(*im), visit, &used);
	CHECK(r == 0 || r == -ENOEXEC);
	if (!len)
		CHECK(r == 0 && used.letters == 8 && used.offsets == 1 + 2);
	if (len) {
		uint8_t *part;

		cut = data[len - 1] * sizeof(*im) / 256;
		part = malloc(cut ? cut : 1);
		CHECK(part);
		memcpy(part, im, cut);
		r = ap__elf_symbols(part, cut, visit, &used);
		CHECK(r == 0 || r == -ENOEXEC);
		free(part);
	}
	free(im);
	return 0;
}
