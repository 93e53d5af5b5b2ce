/*
 * PURPOSE: call chains from what a sample copied: the user registers and the top of the user stack,
 * by the unwind tables of the files that were mapped. elfutils' libdw reads those; it is loaded
 * when the first such sample comes.
 *
 * Lifetime: new .. free; the view must live as long.
 */
#ifndef SYM_UNWIND_H
#define SYM_UNWIND_H

#include "sym/symbol-view.h"

#define SYM_UNWIND_DEPTH 127 /* frames, as many as perf follows */

enum sym_cpu { SYM_CPU_X86_64, SYM_CPU_ARM64, SYM_CPU_OTHER };

/* Borrowed from a sample. */
struct sym_unwind_input {
	enum sym_cpu cpu;
	u32 pid;
	u64 mask;          /* of registers, by the kernel's numbers (PERF_REG_*) */
	const u64 *values; /* of those that are in the mask; copied, they need not be aligned */
	const u8 *stack;   /* from the stack pointer upwards */
	size_t stack_len;
};

struct sym_unwinder;

/* NULL: libdw is not there. */
struct sym_unwinder *sym_unwinder_new(struct sym_view *v);
void sym_unwinder_free(struct sym_unwinder *u);

/*
 * The frames from the innermost outwards, as far as they can be followed: first where the sample
 * was taken, then a byte before each return address, which lies in the calling instruction. How
 * many they are.
 */
u32 sym_unwind(struct sym_unwinder *u, const struct sym_unwind_input *in,
	       u64 addrs[SYM_UNWIND_DEPTH]);

#endif
