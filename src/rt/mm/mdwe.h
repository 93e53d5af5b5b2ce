/*
 * PURPOSE: memory that has forbidden itself to become executable (PR_SET_MDWE, Linux 6.3). It is
 * held here, of the memory that is the guest's, as the kernel does not see what is executable to
 * the guest. One per address space.
 */
#ifndef RT_MM_MDWE_H
#define RT_MM_MDWE_H

#include "rt/task/thread.h"

/* PR_SET_MDWE and PR_GET_MDWE. */
long mdwe_prctl(struct thread *t);

/* At the start: the program before has had these bits; or whoever started us has set some. */
void mdwe_begin(u32 bits);
/* Whether the kernel knows of it and would refuse what the guest may still do. */
bool mdwe_of_kernel(void);

/* The PR_MDWE_ bits that a fork or the next program begins with; and in it. */
u32 mdwe_inherited(void);
void mdwe_inherit(u32 bits);

/* Whether a new mapping may not have @prot: as map_deny_write_exec() of the kernel. */
bool mdwe_denies(u64 prot);
/* What @t's mmap with such a @prot is told: what else is wrong with it comes first. */
long mdwe_refusal(struct thread *t, u64 prot);

/*
 * Under mm's lock: how far from @start on memory may become executable with @prot: as far as it is
 * already; @end if all may.
 */
u64 mdwe_end(u64 start, u64 end, u64 prot);

#endif
