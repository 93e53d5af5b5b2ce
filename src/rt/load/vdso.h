/*
 * PURPOSE: the vDSO's place. The kernel has put it where the program, or its interpreter, would
 * have come to lie had the program been started directly: it is taken away while the program is
 * mapped and put back below it, so that all addresses are those of a native start. Where nothing of
 * the program is put by the kernel it is in nobody's way, and stays.
 */
#ifndef RT_LOAD_VDSO_H
#define RT_LOAD_VDSO_H

#include "rt/task/thread.h"

struct vdso {
	u64 ehdr;        /* where it is now (AT_SYSINFO_EHDR); 0: there is none */
	u64 start, size; /* with its data pages; size 0: not to be moved */
	u64 pieces[8];   /* sizes of the mappings, which move one by one */
	u32 n;
};

/* It is at @ehdr. Unless it is taken it stays there. */
void vdso_at(struct vdso *v, u64 ehdr);
/* Takes it into the region; @stack is an address of the stack. */
void vdso_take(struct vdso *v, u64 stack);
/* The program shall have none: unmaps what was taken. */
void vdso_drop(struct vdso *v);
/* Puts it where the kernel would map it now. */
void vdso_put(struct vdso *v);
/* Makes its code known to the mm, and really not executable. */
void vdso_add_code(struct thread *t, const struct vdso *v);

#endif
