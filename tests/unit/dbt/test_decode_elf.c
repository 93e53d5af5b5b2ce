/*
 * Every instruction of every executable section of ELF files, decoded by us and by Zydis:
 * test_decode_elf FILE|DIRECTORY|self... "self" is what this program itself has mapped (libc,
 * Zydis, the dynamic linker). A run that compares nothing fails.
 */
#include "unit/dbt/decode_oracle.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long files;

static void section(const u8 *p, size_t n)
{
	for (size_t at = 0; at < n;)
		at += oracle_compare(p + at, n - at);
}

static void elf_file(const char *path)
{
	const Elf64_Ehdr *e;
	const Elf64_Shdr *s;
	struct stat st;
	const u8 *map;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(*e))
		goto out_fd;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto out_fd;
	e = (const Elf64_Ehdr *)map;
	if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_machine != EM_X86_64 ||
	    (e->e_type != ET_EXEC && e->e_type != ET_DYN) ||
	    e->e_shoff + (size_t)e->e_shnum * sizeof(*s) > (size_t)st.st_size)
		goto out_map;
	files++;
	s = (const Elf64_Shdr *)(map + e->e_shoff);
	for (int i = 0; i < e->e_shnum; i++)
		if ((s[i].sh_flags & SHF_EXECINSTR) && s[i].sh_type == SHT_PROGBITS &&
		    s[i].sh_offset + s[i].sh_size <= (size_t)st.st_size)
			section(map + s[i].sh_offset, s[i].sh_size);
out_map:
	munmap((void *)map, (size_t)st.st_size);
out_fd:
	close(fd);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && S_ISREG(st->st_mode))
		elf_file(path);
	return 0;
}

static void mapped_files(void)
{
	char line[4096], path[4096], last[4096] = "";
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) != 1 || path[0] != '/' ||
		    !strcmp(path, last))
			continue;
		memcpy(last, path, sizeof(last));
		elf_file(path);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "self"))
			mapped_files();
		else if (nftw(argv[i], visit, 64, FTW_PHYS))
			perror(argv[i]);
	printf("%lu files, %lu instructions, %lu explained, %lu differences\n", files,
	       oracle_compared, oracle_exceptions, oracle_differences);
	return oracle_differences || !oracle_compared;
}
