/*
 * The pure half of elf.h: what a file is. Each rule is the kernel's; where a rule looks arbitrary
 * (65,536 bytes of program headers, 256 bytes of "#!" line) it is the kernel's number.
 */
#include "rt/load/elf.h"

#include <linux/errno.h>

#include "rt/arch/x86_64/rt-arch.h"
#include "sys/string.h"

enum exec_kind exec_classify(const u8 *head, size_t len)
{
	Elf64_Ehdr eh;

	if (len >= 2 && head[0] == '#' && head[1] == '!')
		return EXEC_SCRIPT;
	if (len < SELFMAG || memcmp(head, ELFMAG, SELFMAG) != 0)
		return EXEC_UNKNOWN;
	memset(&eh, 0, sizeof(eh));
	memcpy(&eh, head, len < sizeof(eh) ? len : sizeof(eh));
	if (eh.e_machine == ARCH_ELF && eh.e_ident[EI_CLASS] != ELFCLASS32)
		return EXEC_ELF;
	/* e_type and e_machine lie at the same place in both classes. */
	if (arch_elf_compat(eh.e_machine))
		return EXEC_ELF32;
	return EXEC_UNKNOWN;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

int script_parse(const u8 *head, size_t len, char *interp, char *arg)
{
	char buf[EXEC_HEAD + 1];
	char *end, *p, *name;

	memset(buf, 0, sizeof(buf));
	memcpy(buf, head, len < EXEC_HEAD ? len : EXEC_HEAD);

	/*
	 * A line that does not end within the buffer is refused only if the interpreter's name is
	 * cut off; a cut argument is passed on cut.
	 */
	end = str_chr(buf, '\n');
	if (!end || end >= buf + EXEC_HEAD) {
		for (p = buf + 2; p < buf + EXEC_HEAD && blank(*p); p++)
			;
		if (p == buf + EXEC_HEAD)
			return -ENOEXEC;
		while (p < buf + EXEC_HEAD && *p && !blank(*p))
			p++;
		if (p == buf + EXEC_HEAD)
			return -ENOEXEC;
		end = buf + EXEC_HEAD - 1;
	}
	*end = '\0';
	while (end > buf + 2 && blank(end[-1]))
		*--end = '\0';
	for (name = buf + 2; blank(*name); name++)
		;
	if (!*name || name >= end)
		return -ENOEXEC;
	for (p = name; *p && !blank(*p); p++)
		;
	str_put(arg, EXEC_HEAD, "");
	if (*p) {
		while (blank(*p))
			*p++ = '\0';
		if (*p)
			str_put(arg, EXEC_HEAD, p);
	}
	str_put(interp, EXEC_HEAD, name);
	return arg[0] ? 1 : 0;
}

int elf_check_header(const Elf64_Ehdr *eh, size_t len, bool interp)
{
	int bad = interp ? -ELIBBAD : -ENOEXEC;

	if (len < sizeof(*eh))
		return interp ? -EIO : -ENOEXEC;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return bad;
	if (!interp && eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return bad;
	if (eh->e_machine != ARCH_ELF)
		return bad;
	if (eh->e_phentsize != sizeof(Elf64_Phdr) || !eh->e_phnum || eh->e_phnum > ELF_PHDRS_MAX)
		return bad;
	return 0;
}

int elf_check_interp(const Elf64_Phdr *ph, const char *path)
{
	if (ph->p_filesz > 4096 || ph->p_filesz < 2)
		return -ENOEXEC;
	return path[ph->p_filesz - 1] ? -ENOEXEC : 0;
}
