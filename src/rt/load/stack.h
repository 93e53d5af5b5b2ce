/*
 * PURPOSE: the first stack of a program. The kernel has built one for anyperf-rt, in the place,
 * with the size limit and the growth that the program's own would have; it is rewritten in place to
 * what the kernel would have built for the program (create_elf_tables(), copy_strings()).
 */
#ifndef RT_LOAD_STACK_H
#define RT_LOAD_STACK_H

#include "rt/load/elf.h"

/* What the kernel's stack of anyperf-rt holds. Points into that stack. */
struct stack_in {
	u64 argc; /* ours included */
	char **argv;
	char **envp;
	u64 envc;
	u64 (*auxv)[2];
	u64 auxc; /* pairs, AT_NULL included */
};

/* Takes the initial stack at @sp apart. */
void stack_parse(u64 sp, struct stack_in *in);
u64 stack_aux(const struct stack_in *in, u64 type);

struct stack_out {
	u64 sp;                                       /* where the program begins: argc is there */
	u64 argv_start, argv_end, env_start, env_end; /* strings */
	u64 auxv;
	u64 auxv_len;
	u64 end; /* of the mapping */
};

/*
 * Rewrites the stack, so it must not run on that stack. @prefix arguments stand in for the first
 * CONTROL_ARGS + (prefix ? 1 : 0) ones. @base is for AT_BASE, @vdso for AT_SYSINFO_EHDR. @scratch
 * holds the copy meanwhile; stack_scratch() says how many bytes it takes.
 */
size_t stack_scratch(const struct stack_in *in, char *const *prefix, u32 nprefix,
		     const char *execfn);
void stack_build(const struct stack_in *in, char *const *prefix, u32 nprefix, const char *execfn,
		 const struct elf_image *image, u64 base, u64 vdso, void *scratch,
		 struct stack_out *out);

#endif
