/*
 * PURPOSE: system-call user dispatch (prctl PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11), by which a
 * program catches its own system calls with SIGSYS. It is not set up in the kernel, where it would
 * catch the runtime's. A setting belongs to its thread; children and new programs begin without.
 */
#ifndef RT_SYSCALL_USER_DISPATCH_H
#define RT_SYSCALL_USER_DISPATCH_H

#include "rt/task/thread.h"

/* prctl(PR_SET_SYSCALL_USER_DISPATCH): 0, -EINVAL or -EFAULT. */
long dispatch_prctl(struct thread *t);

/*
 * True if the call @nr is caught, by the gate that the kernel calls @arch (AUDIT_ARCH_). Then the
 * signal is noted and the call must not be made. To be asked while t->dispatch.on, before seccomp
 * is.
 */
bool dispatch_catches(struct thread *t, u32 arch, u64 nr);

#endif
