/* PURPOSE: `int $0x80` in 64-bit code, see syscall-int80.c. */
#ifndef RT_ARCH_X86_64_INT80_H
#define RT_ARCH_X86_64_INT80_H

#include "rt/task/thread.h"

/* Answers the `int $0x80` at which dbt_run() stopped. */
void syscall_int80(struct thread *t);

#endif
