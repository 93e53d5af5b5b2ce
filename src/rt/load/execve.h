/*
 * PURPOSE: execve. The old program's runtime decides what is to be run and answers every error that
 * the kernel would answer; then it becomes anyperf-rt again, which finds in a memfd (abi/control.h)
 * what to load. Programs that cannot be run under the translator are run by the kernel.
 */
#ifndef RT_LOAD_EXECVE_H
#define RT_LOAD_EXECVE_H

#include "rt/load/elf.h"
#include "rt/task/thread.h"

/* "#!" interpreters put these in front of the arguments; the first replaces argv[0]. */
#define EXEC_DEPTH  5
#define EXEC_PREFIX (2 * EXEC_DEPTH + 1)

enum exec_verdict {
	EXEC_RUN,       /* by us */
	EXEC_NATIVE,    /* by the kernel, uncounted; `why` says why */
	EXEC_NOT_FOUND, /* error */
};

struct exec_plan {
	int exe_fd, interp_fd;   /* -1: open it by its path, `exe` or what PT_INTERP names */
	bool frugal;             /* descriptors are scarce: keep none open */
	const char *why;         /* EXEC_NATIVE: a word or two */
	bool unknown;            /* EXEC_NATIVE: what format it has, the kernel may know */
	u32 prefix;              /* arguments to put in front */
	char *args[EXEC_PREFIX]; /* point into text[] */
	char comm[16];
	char exe[CONTROL_PATH];    /* real path of the ELF file */
	char execfn[CONTROL_PATH]; /* AT_EXECFN */
	char text[EXEC_DEPTH * 2 * EXEC_HEAD + CONTROL_PATH];
	size_t text_used;
	Elf64_Phdr phdrs[ELF_PHDRS_MAX]; /* scratch */
	struct elf_image image;          /* scratch */
};

/*
 * Finds out what execveat(@dir, @path, @flags) would run; @name is what the program is told of its
 * path. Returns 0 for EXEC_RUN (the fds are
 * open), 1 for EXEC_NATIVE, or -errno as execveat would. @plan is large: not for a stack.
 */
int exec_plan(int dir, const char *path, int flags, const char *name, struct exec_plan *plan);
void exec_plan_release(struct exec_plan *plan);

long guest_execve(struct thread *t);
long guest_execveat(struct thread *t);

#endif
