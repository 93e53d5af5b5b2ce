/* PURPOSE: instructions of x86-64 that C has no words for. */
#ifndef SYS_ARCH_X86_64_CPU_H
#define SYS_ARCH_X86_64_CPU_H

#include "base/types.h"

/* Between two looks at what another CPU is about to change. */
static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

/*
 * Bytes in ascending order. rep movsb and stosb are what the CPU does fastest without vector
 * registers, which the guest world never touches.
 */
static inline void cpu_copy(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

static inline void cpu_fill(void *to, int byte, size_t len)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(byte) : "memory");
}

#endif
