/*
 * PURPOSE: the cpuid instruction, and others that tell of the CPU. cpuid is remembered: in a
 * virtual machine each one is a trip to the hypervisor, and the C library asks some sixty times
 * when it starts, so half of a short program's time goes there. What is the same on all CPUs of the
 * machine is asked once, and told to the programs that a process becomes.
 */
#ifndef RT_ARCH_X86_64_CPUID_H
#define RT_ARCH_X86_64_CPUID_H

#include "rt/task/thread.h"

/* What cpuid says of @leaf and @subleaf: eax, ebx, ecx, edx. Any thread, but no signal handler. */
void cpuid(u32 leaf, u32 subleaf, u32 regs[4]);

/* Change what cpuid has answered: for a deterministic run, and to show the virtual PMU. */
void deterministic_cpuid(u32 leaf, u32 subleaf, u32 regs[4]);

/* The extended state that a level of features has; 0: the machine's, as it is. */
u64 deterministic_xcr0(void);

void perf_cpuid(u32 leaf, u32 regs[4]);

/* rdpmc with @index in ecx: true with *@value; false: it faults. */
bool perf_rdpmc(struct thread *t, u32 index, u64 *value);

#endif
