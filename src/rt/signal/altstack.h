/* PURPOSE: the guest's alternate signal stack, with the kernel's rules (sigaltstack(2)). */
#ifndef RT_SIGNAL_ALTSTACK_H
#define RT_SIGNAL_ALTSTACK_H

#include "rt/task/thread.h"

/* As the kernel's sas_ss_flags(): 0, SS_ONSTACK or SS_DISABLE, for a stack pointer @sp. */
u32 altstack_flags(const struct thread *t, u64 sp);
bool altstack_on(const struct thread *t, u64 sp);
/* sigaltstack(2) by a program whose stack pointer is @sp: 0, -EPERM, -EINVAL or -ENOMEM. */
int altstack_set(struct thread *t, const stack_t *ss, u64 sp);

#endif
