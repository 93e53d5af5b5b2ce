/*
 * PURPOSE: recognises an executable file as the kernel does (fs/binfmt_elf.c, fs/binfmt_script.c)
 * and maps it. Recognising is pure and happens in the old program, where an error can still be the
 * result of execve; mapping happens in the new one, where an error can only be its death.
 */
#ifndef RT_LOAD_ELF_H
#define RT_LOAD_ELF_H

#include <linux/elf.h>

#include "base/types.h"

/* The kernel reads this much of a file before it decides what it is (BINPRM_BUF_SIZE). */
#define EXEC_HEAD 256u

enum exec_kind {
	EXEC_ELF,     /* an ELF executable of this CPU */
	EXEC_SCRIPT,  /* "#!" */
	EXEC_ELF32,   /* one of 32 bits, which we cannot run */
	EXEC_UNKNOWN, /* none of these; a binfmt_misc handler may know it */
};

/* What @head, the first @len <= EXEC_HEAD bytes of a file, announces. */
enum exec_kind exec_classify(const u8 *head, size_t len);

/*
 * Takes a "#!" line apart. @head of @len bytes is zero-padded to EXEC_HEAD. On success @interp (of
 * EXEC_HEAD bytes) and @arg (the same; "" if there is none, see the return value) are set.
 * Returns 1 with an argument, 0 without, -ENOEXEC as the kernel.
 */
int script_parse(const u8 *head, size_t len, char *interp, char *arg);

/*
 * Holds an ELF header against the kernel's rules: 0, or -ENOEXEC. @interp: the header is that
 * of a PT_INTERP file, whose complaint is -ELIBBAD.
 */
int elf_check_header(const Elf64_Ehdr *eh, size_t len, bool interp);

/* The path in a PT_INTERP segment's bytes is well formed: 0 or -ENOEXEC. */
int elf_check_interp(const Elf64_Phdr *ph, const char *path);

struct elf_image {
	u64 bias;  /* what was added to the file's addresses */
	u64 entry; /* biased */
	u64 phdr;  /* where the program headers are in memory, or 0 */
	u32 phnum;
	u64 start_code, end_code, start_data, end_data, brk; /* as in the kernel's mm_struct */
	bool dyn;
	bool has_interp;
	bool exec_stack; /* PT_GNU_STACK asks for it */
	char interp[4096];
};

/*
 * Reads the headers of the file @fd into @image and checks them. Returns 0 or the kernel's -errno.
 * @phdrs must have room for ELF_PHDRS_MAX; @phnum is set.
 */
#define ELF_PHDRS_MAX (65536u / sizeof(Elf64_Phdr))
int elf_read(int fd, bool interp, Elf64_Ehdr *eh, Elf64_Phdr *phdrs, struct elf_image *image);

/*
 * Maps the program that elf_read() has read. @at: bias for an ET_DYN, or 0 to let the kernel choose
 * (program interpreters, static PIEs). 0 or -errno.
 */
int elf_map(int fd, const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs, u64 at, struct elf_image *image);

/* How many bytes of addresses its segments take, from the first to the last. */
u64 elf_extent(const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs);
/* The largest alignment that a segment asks for, at least a page. */
u64 elf_alignment(const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs);

struct thread;
/* Makes the executable segments known to the mm. */
struct image_file;
void elf_add_code(struct thread *t, const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs, u64 bias,
		  const struct image_file *file);

#endif
