/*
 * PURPOSE: the cpuid instruction, remembered. In a virtual machine each one is a trip to the hypervisor, and the
 * C library asks some sixty times when it starts, so half of a short program's time goes there. What is the
 * same on all CPUs of the machine is asked once, and told to the programs that a process becomes.
 */
#ifndef RT_ARCH_X86_64_CPUID_H
#define RT_ARCH_X86_64_CPUID_H

#include "abi/control.h"

/* What cpuid says of @leaf and @subleaf: eax, ebx, ecx, edx. Any thread, but no signal handler. */
void cpuid(u32 leaf, u32 subleaf, u32 regs[4]);

/* What is remembered, handed on through execve. */
void cpuid_save(struct control_cpuid *to);
void cpuid_load(const struct control_cpuid *from);

#endif
