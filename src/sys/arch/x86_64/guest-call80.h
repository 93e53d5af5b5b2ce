/*
 * PURPOSE: guest_call() of sys/guest-call.h by `int $0x80`, which is an i386 call of 64-bit code.
 */
#ifndef SYS_ARCH_X86_64_GUEST_CALL80_H
#define SYS_ARCH_X86_64_GUEST_CALL80_H

#include "sys/guest-call.h"

/* i386 numbers, and arguments of 32 bits. */
guest_call_fn guest_call80;
extern const char guest_call80_begin[], guest_call80_insn[], guest_call80_end[],
	guest_call80_redo[];

#endif
